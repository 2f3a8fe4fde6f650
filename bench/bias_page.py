"""The page of ``bias.py``, as a function of its table."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
from counterpoise.mixtures.goal import REFIT_ROWS
from papers.markdown import markdown_table

WAYS = FOLDS, REFIT, SPLIT = "fold models", "refit", "30 % split"
KEY = ("model", "set", "goal", "bound")
FLOOR = "recall"
Cell = dict[str, np.ndarray]  # by way: (n_splits, 2), rates and errors
TEMPLATE = Path(__file__).parent / "bias_template.md"


def write_page(folder: Path, rows: list[dict[str, str]]) -> None:
    """Write the page of a table."""
    cells = cells_of(rows)
    models = dict.fromkeys(key[0] for key in cells)
    parts = {
        "tables": "\n".join(f"## {model}\n\n{_table(cells, model)}\n" for model in models),
        "sizes": _sizes(cells, rows),
        "refit_rows": f"{REFIT_ROWS:,}",
    }
    page = TEMPLATE.read_text(encoding="utf-8")
    for name, text in parts.items():
        page = page.replace(f"{{{name}}}", text)
    (folder / "README.md").write_text(page, encoding="utf-8")


def cells_of(rows: list[dict[str, str]]) -> dict[tuple[str, ...], Cell]:
    """Return rates and errors by way, of the splits that all ways have."""
    found: dict[tuple[str, ...], dict[str, dict[int, list[float]]]] = {}
    for row in rows:
        ways = found.setdefault(tuple(row[name] for name in KEY), {way: {} for way in WAYS})
        ways[row["way"]][int(row["split"])] = [float(row["rate"]), float(row["error"])]
    return {
        key: {way: np.array([one[split] for split in sorted(one)]) for way, one in ways.items()}
        for key, ways in found.items()
    }


def _table(cells: dict[tuple[str, ...], Cell], model: str) -> str:
    heads = ["set", "goal", "splits", *WAYS, "refit less folds"]
    lines = []
    for (of, title, goal, bound), cell in cells.items():
        if of == model:
            ways = [_cell(cell[way], goal, float(bound)) for way in WAYS]
            wanted = f"{goal} {'≥' if goal == FLOOR else '≤'} {float(bound):g}"
            lines.append([title, wanted, str(len(cell[FOLDS])), *ways, f"{_shift(cell):+.2f}"])
    return markdown_table(heads, lines, n_words=2)


def _cell(found: np.ndarray, goal: str, bound: float) -> str:
    rates, errors = found.T
    spread = 100 * rates.std(ddof=1) / len(rates) ** 0.5
    violated = np.mean(_missed(rates, goal, bound) > 0)
    return f"{100 * (rates.mean() - bound):+.2f} ± {spread:.2f}; {100 * violated:.0f} %; {100 * errors.mean():.2f}"


def _missed(rates: np.ndarray, goal: str, bound: float) -> np.ndarray:
    """Return by how much rates are on the wrong side of a bound."""
    return bound - rates if goal == FLOOR else rates - bound


def _shift(cell: Cell) -> float:
    """Return how far the refit is from the fold models, in standard deviations of one fit."""
    return float((cell[REFIT] - cell[FOLDS])[:, 0].mean() / cell[FOLDS][:, 0].std(ddof=1))


def _sizes(cells: dict[tuple[str, ...], Cell], rows: list[dict[str, str]]) -> str:
    sizes = {row["set"]: int(row["rows"]) for row in rows}
    heads = ["set", "way", "towards violation", "on either side", "in standard errors", "violated, %", "error, %"]
    lines = []
    for title in sorted(sizes, key=sizes.__getitem__):
        some = [(key, cell) for key, cell in cells.items() if key[1] == title]
        lines += [[title, way, *_size(some, way)] for way in WAYS]
    return markdown_table(heads, lines, n_words=2)


def _size(some: list[tuple[tuple[str, ...], Cell]], way: str) -> list[str]:
    missed = [_missed(cell[way][:, 0], goal, float(bound)) for (_, _, goal, bound), cell in some]
    means = 100 * np.array([one.mean() for one in missed])
    scaled = [one.mean() / one.std(ddof=1) * one.size**0.5 for one in missed]
    violated, errors = (
        np.mean([(one > 0).mean() for one in missed]),
        np.mean([cell[way][:, 1].mean() for _, cell in some]),
    )
    numbers = (means.max(), np.abs(means).max(), np.sqrt(np.mean(np.square(scaled))))
    return [*(f"{number:.2f}" for number in numbers), f"{100 * violated:.0f}", f"{100 * errors:.2f}"]
