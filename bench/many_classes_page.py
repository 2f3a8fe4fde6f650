"""The page of ``many_classes.py``, as a function of its table."""

import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from scipy.stats import ttest_rel

sys.path.insert(0, str(Path(__file__).parent.parent))
from papers.markdown import markdown_table

TEMPLATE = Path(__file__).parent / "many_classes_template.md"
RECALL, SURE, TAIL = "recall", "sure recall", "tail"
HEADS = ("plain, choice", "rules, choice", "plain, test", "rules, test", "gain", "price")
Cell = dict[str, np.ndarray]  # by column: a number for each seed


def write_page(folder: Path, rows: list[dict[str, str]], sets: Iterable[str]) -> None:
    """Write the page of a table, given all sets that may be in it."""
    page = TEMPLATE.read_text(encoding="utf-8")
    absent = sorted({*sets} - {row["set"] for row in rows})
    parts = {
        "recalls": _recalls(rows, RECALL),
        "sure": _recalls(rows, SURE),
        "tails": _tails(rows),
        "sizes": _sizes(rows),
        "seeds": str(len({row["seed"] for row in rows})),
        "absent": f" Not run: {', '.join(absent)}." if absent else "",
    }
    for name, text in parts.items():
        page = page.replace(f"{{{name}}}", text)
    (folder / "README.md").write_text(page, encoding="utf-8")


def _cells(rows: list[dict[str, str]], task: str) -> dict[tuple[str, float], Cell]:
    """Return numbers by set and level, one for each seed."""
    found: dict[tuple[str, float], list[dict[str, str]]] = {}
    for row in rows:
        if row["task"] == task:
            found.setdefault((row["set"], float(row["level"])), []).append(row)
    names = [name for name in rows[0] if name not in ("set", "task", "level")]
    return {key: {name: np.array([float(row[name]) for row in some]) for name in names} for key, some in found.items()}


def _kept(cell: Cell) -> tuple[Cell, int]:
    """Return the seeds on which rules were found, and on how many none were."""
    is_found = np.isfinite(cell["chosen"])
    return {name: values[is_found] for name, values in cell.items()}, int((~is_found).sum())


def _recalls(rows: list[dict[str, str]], task: str) -> str:
    heads = ["set", "floor", *HEADS, "none found"]
    lines = []
    for (title, level), cell in _cells(rows, task).items():
        own, missing = _kept(cell)
        if not own["chosen"].size:
            lines.append([title, f"{level:g}", *[""] * 6, str(missing)])
            continue
        numbers = [own[name].mean() for name in ("plain_chosen", "chosen", "plain_tested", "tested")]
        gain = _difference(own["tested"], own["plain_tested"])
        price = _difference(100 * own["error_tested"], 100 * own["plain_error_tested"])
        lines.append([title, f"{level:g}", *(f"{one:.3f}" for one in numbers), gain, price, str(missing)])
    return markdown_table(heads, lines, n_words=1)


def _tails(rows: list[dict[str, str]]) -> str:
    heads = ["set", "alpha", *HEADS, "a coin, test"]
    lines = []
    for (title, level), cell in _cells(rows, TAIL).items():
        numbers = [cell[name].mean() for name in ("plain_chosen", "chosen", "plain_tested", "tested")]
        gain = _difference(cell["plain_tested"], cell["tested"])
        price = _difference(100 * cell["error_tested"], 100 * cell["plain_error_tested"])
        cells = [*(f"{one:.3f}" for one in numbers), gain, price, f"{_coin(cell).mean():.3f}"]
        lines.append([title, f"{level:g}", *cells])
    return markdown_table(heads, lines, n_words=1)


def _coin(cell: Cell) -> np.ndarray:
    """Return the tail of the plain model on test rows where a coin decides so often that it errs as the rules do."""
    fair, plain = 1 - 1 / cell["classes"], cell["plain_error_tested"]
    share = np.maximum(0.0, (cell["error_tested"] - plain) / (fair - plain))
    return (1 - share) * cell["plain_tested"] + share * fair


def _difference(one: np.ndarray, other: np.ndarray) -> str:
    """Return the mean difference with its p-value, by a paired t-test over the seeds."""
    if one.size < 2:
        return f"{(one - other).mean():+.3f}"
    if np.ptp(one - other) < 1e-12:
        return f"{(one - other).mean():+.3f}"
    return f"{(one - other).mean():+.3f} (p {ttest_rel(one, other).pvalue:.3f})"


def _sizes(rows: list[dict[str, str]]) -> str:
    found = {row["set"]: (row["classes"], row["rows"]) for row in rows}
    return ", ".join(f"{title} {int(rows):,} rows of {classes} classes" for title, (classes, rows) in found.items())
