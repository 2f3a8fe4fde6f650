"""The table of means and the page of ``deciding_model.py``, as functions of its results."""

import csv
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
from papers.markdown import markdown_table

TEMPLATE = Path(__file__).parent / "deciding_model_template.md"
KEY = ("set", "rows", "model", "goal", "candidate")
COSTS = ("fit_seconds", "predict_seconds", "bytes")
MEANS = ("bound", "slack", "excess", "shift", "against_drawn", "error", *COSTS)
ERRORS = ("excess", "shift", "against_drawn", "error")  # with standard errors over the splits
CHOOSING = {
    1_000: ("adult", "credit default", "covertype", "ringnorm"),
    5_000: ("adult", "credit default", "covertype", "ringnorm"),
    20_000: ("adult", "credit default", "covertype", "w8a"),
    50_000: ("covertype", "noisy, generated"),  # of the sets above none other has so many rows
}
CONFIRMING = {
    1_000: ("ACS income", "census income", "MNIST", "COMPAS"),
    5_000: ("ACS income", "census income", "MNIST", "noisy, generated"),
    20_000: ("ACS income", "census income", "MNIST", "noisy, generated"),
    50_000: ("ACS income", "census income", "MNIST"),
}
MOST_BIAS, SAME_ERROR, FEW_ROWS = 0.5, 0.02, 5_000  # percentage points; fewer rows are few
MOST_FITS = {True: 11, False: 6}  # of few rows, and of more
SIZED = dict[str, dict[str, float]]


class Candidate(NamedTuple):
    """What decides: the way, and the number of folds whose scores thresholds were chosen on."""

    way: str
    n_folds: int

    @property
    def n_kept(self) -> int:
        """Return the number of models kept."""
        return 1 if self.way == "refit" else self.n_folds

    @property
    def n_fits(self) -> int:
        """Return the number of fits."""
        return self.n_folds + (self.way == "refit")

    @property
    def is_entrant(self) -> bool:
        """Tell whether it is one fixed rule on one score."""
        return self.way not in {"drawn", "vote"}


CANDIDATES = {
    "drawn 5": Candidate("drawn", 5),
    "vote 5": Candidate("vote", 5),
    "refit 5": Candidate("refit", 5),
    "refit 10": Candidate("refit", 10),
    "mean 5": Candidate("mean", 5),
    "mean 10": Candidate("mean", 10),
    "mean logit 5": Candidate("mean logit", 5),
    "mean logit 10": Candidate("mean logit", 10),
}
DRAWN = "drawn 5"


def summarised(rows: list[dict[str, str]], path: Path) -> None:
    """Write the means over the splits, with standard errors."""
    drawn = {_split(row): _shift(row) for row in rows if row["candidate"] == DRAWN}
    found: dict[tuple[str, ...], list[list[float]]] = {}
    for row in rows:
        numbers = {**{name: row[name] for name in MEANS if name in row}, "shift": _shift(row)}
        numbers["against_drawn"] = _shift(row) - drawn[_split(row)]
        found.setdefault(tuple(row[name] for name in KEY), []).append([float(numbers[name]) for name in MEANS])
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*KEY, "splits", *MEANS, *(f"{name}_se" for name in ERRORS)])
        for key in sorted(found, key=lambda key: (int(key[1]), key[0], *key[2:4], list(CANDIDATES).index(key[4]))):
            values = np.array(found[key])
            spread = values.std(0, ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.full(len(MEANS), np.nan)
            errors = [spread[MEANS.index(name)] for name in ERRORS]
            writer.writerow([*key, len(values), *(f"{value:.5g}" for value in (*values.mean(0), *errors))])


def _split(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in ("set", "rows", "split", "model", "goal"))


def _shift(row: dict[str, str]) -> float:
    """Return how far the rate on test rows is on the wrong side of that on the scores chosen on."""
    return float(row["excess"]) - float(row["slack"])


def write_page(folder: Path, rows: list[dict[str, str]]) -> None:
    """Write the page of a table of means."""
    sizes = sorted({int(row["rows"]) for row in rows})
    parts = {
        "splits": _splits(rows, sizes),
        "tables": "\n".join(f"## {size:,} rows\n\n{_tables(rows, size)}" for size in sizes),
        "by_model": _by(rows, sizes, "model"),
        "by_goal": _by(rows, sizes, "goal"),
        "verdict": verdict(rows, sizes),
    }
    page = TEMPLATE.read_text(encoding="utf-8")
    for name, text in parts.items():
        page = page.replace(f"{{{name}}}", text)
    (folder / "README.md").write_text(page, encoding="utf-8")


def _splits(rows: list[dict[str, str]], sizes: list[int]) -> str:
    lines = []
    for size in sizes:
        some = [row for row in rows if int(row["rows"]) == size]
        numbers = sorted({int(row["splits"]) for row in some})
        number = str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
        lines.append([f"{size:,}", ", ".join(CHOOSING[size]), ", ".join(CONFIRMING[size]), number])
    return markdown_table(["rows", "choosing sets", "confirming sets", "splits"], lines, n_words=3)


def of_part(rows: list[dict[str, str]], size: int, *, chooses: bool) -> SIZED:
    """Return what each candidate comes to at a size, on the choosing or on the other sets; rates in points."""
    found: SIZED = {}
    for title in CANDIDATES:
        cells = [
            row
            for row in rows
            if int(row["rows"]) == size and row["candidate"] == title and (row["set"] in CHOOSING[size]) == chooses
        ]
        if cells:
            found[title] = _means(cells)
    return found


def _means(cells: list[dict[str, str]]) -> dict[str, float]:
    of = {name: np.array([float(row[name]) for row in cells]) for name in (*MEANS, "shift_se")}
    return {
        "bias": 100 * float(np.abs(of["shift"]).mean()),
        "chance": 100 * float(of["shift_se"].mean() * (2 / np.pi) ** 0.5),
        "worst": 100 * float(np.abs(of["shift"]).max()),
        "towards": 100 * float(of["shift"].mean()),
        "paired": 100 * float(np.abs(of["against_drawn"]).mean()),
        "off": 100 * float(np.abs(of["excess"]).mean()),
        "error": 100 * float(of["error"].mean()),
        **{name: float(of[name].mean()) for name in COSTS},
    }


def _tables(rows: list[dict[str, str]], size: int) -> str:
    heads = ["candidate", "fits", "bias", "by chance", "worst", "towards violation", "from drawn 5", "off the bound"]
    heads += ["error, %", "fit, s", "predict, s", "kB"]
    text = ""
    for chooses, title in ((True, "Choosing"), (False, "Confirming")):
        lines = []
        for name, of in of_part(rows, size, chooses=chooses).items():
            rates = [f"{of[key]:.2f}" for key in ("bias", "chance", "worst")]
            rates += [f"{of['towards']:+.2f}", f"{of['paired']:.2f}", f"{of['off']:.2f}", f"{of['error']:.3f}"]
            costs = [f"{of['fit_seconds']:.2f}", f"{of['predict_seconds']:.3f}", f"{of['bytes'] / 1000:,.0f}"]
            lines.append([name, str(CANDIDATES[name].n_fits), *rates, *costs])
        text += f"{title} sets:\n\n{markdown_table(heads, lines)}\n\n"
    return text


def _by(rows: list[dict[str, str]], sizes: list[int], column: str) -> str:
    """Return bias and error of each candidate by model or goal, over all sets."""
    values = list(dict.fromkeys(row[column] for row in rows))
    lines = []
    for size in sizes:
        for title in CANDIDATES:
            some = [row for row in rows if int(row["rows"]) == size and row["candidate"] == title]
            parts = [_means([row for row in some if row[column] == value]) for value in values] if some else []
            cells = [f"{of['bias']:.2f}; {of['towards']:+.2f}; {of['error']:.2f}" for of in parts]
            lines += [[f"{size:,}", title, *cells]] if some else []
    return markdown_table(["rows", "candidate", *values], lines, n_words=2)


def limit_of(found: SIZED, size: int) -> float:
    """Return the largest bias that the rule allows."""
    return found[DRAWN]["bias"] + MOST_BIAS if size < FEW_ROWS else MOST_BIAS


def chosen(found: SIZED, size: int) -> str:
    """Return the candidate that the rule takes."""
    entrants = [
        title
        for title in found
        if CANDIDATES[title].is_entrant and CANDIDATES[title].n_fits <= MOST_FITS[size < FEW_ROWS]
    ]
    kept = [title for title in entrants if found[title]["bias"] <= limit_of(found, size)]
    kept = kept or [min(entrants, key=lambda title: found[title]["bias"])]
    least = min(found[title]["error"] for title in kept)
    near = [title for title in kept if found[title]["error"] <= least + SAME_ERROR]
    return min(near, key=lambda title: (CANDIDATES[title].n_kept, CANDIDATES[title].n_fits, found[title]["error"]))


def verdict(rows: list[dict[str, str]], sizes: list[int]) -> str:
    """Return what the rule takes at each size, and whether the other sets confirm it."""
    heads = ["rows", "taken", "bias (limit), choosing", "error less drawn 5, choosing"]
    heads += ["bias (limit), confirming", "error less drawn 5, confirming", "confirmed", "cells with a lower error"]
    lines = []
    for size in sizes:
        first, second = (of_part(rows, size, chooses=chooses) for chooses in (True, False))
        taken = chosen(first, size)
        cells, hits = [], []
        for found in (first, second):
            of, limit = found[taken], limit_of(found, size)
            less = of["error"] - found[DRAWN]["error"]
            hits += [of["bias"] <= limit, less <= 0]
            cells += [f"{of['bias']:.2f} ({limit:.2f})", f"{less:+.3f}"]
        answers = [f"{name}: {'yes' if hit else 'no'}" for name, hit in zip(("bias", "error"), hits[2:], strict=True)]
        lines.append([f"{size:,}", taken, *cells, ", ".join(answers), _wins(rows, size, taken)])
    return markdown_table(heads, lines, n_words=2)


def _wins(rows: list[dict[str, str]], size: int, taken: str) -> str:
    """Return in how many sets, models and goals among the confirming ones a candidate errs less than ``drawn 5``."""
    cells: dict[tuple[str, ...], dict[str, float]] = {}
    for row in rows:
        if int(row["rows"]) == size and row["set"] not in CHOOSING[size]:
            cells.setdefault((row["set"], row["model"], row["goal"]), {})[row["candidate"]] = float(row["error"])
    return f"{sum(cell[taken] < cell[DRAWN] for cell in cells.values())} of {len(cells)}"
