"""The page of ``vadaboost``: its tables with the published figures beside ours, as a function of the results table."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from papers.arrays import FloatArray
from papers.markdown import markdown_table
from papers.results import ResultsTable
from papers.study import Study
from papers.vadaboost.data import TASKS, Task
from papers.vadaboost.experiment import COARSE_BINS, DATASETS, FINE, FINE_BINS, LEARNERS, METHODS, measure, wanted
from papers.vadaboost.figures import draw_bound, draw_cost

_COMMAND = "python -m papers vadaboost"
_SIGNIFICANT = 0.01
_AGREES = 2.0  # combined standard errors within which a mean agrees with the published one
_ROUNDED = 0.05  # the most that a standard error printed as 0.0 may be
_FAR = 1.5  # points of difference from which the page says what is known of why
_PERCENT = 100.0
_REPRODUCED, _IN_PART = 0.9, 0.5  # parts of a table's means that agree
_TITLES = {"stump": "Table 1: decision stumps", "cart": "Table 2: CART"}

_TIE = 1e-9  # means of the same errors in another order differ by rounding


class Line(NamedTuple):
    """One data set in one table: test errors in percent, one row for each method and a column for each repeat."""

    task: Task
    methods: tuple[str, ...]
    published: tuple[float, ...]
    spreads: tuple[float, ...]  # the standard errors printed beside
    errors: FloatArray

    @property
    def means(self) -> FloatArray:
        """Return the mean of each method."""
        return np.asarray(self.errors.mean(axis=1))

    @property
    def agrees(self) -> FloatArray:
        """Return of which methods our mean is within two combined standard errors of the published one."""
        n_repeats = self.errors.shape[1]
        own = self.errors.std(axis=1, ddof=1) / np.sqrt(n_repeats) if n_repeats > 1 else 0.0
        combined = np.hypot(own, np.maximum(self.spreads, _ROUNDED))
        return np.asarray(np.abs(self.means - np.array(self.published)) <= _AGREES * combined)

    def of(self, method: str) -> float:
        """Return the mean of a method."""
        return float(self.means[self.methods.index(method)])


def sections(rows: ResultsTable, folder: Path) -> list[str]:
    """Return the paragraphs of the page, and leave its figures in the folder."""
    lines = {learner: lines_of(rows, learner) for learner in LEARNERS}
    figures = [draw_bound(folder / "bound.png"), draw_cost(folder / "cost.png")]
    parts = [_section(learner, found, rows) for learner, found in lines.items() if found]
    finer = _finer_errors(rows)
    if lines["cart"]:
        parts.append(_bins_note(finer))
    return [_HEAD, *parts, _notes(lines, finer), *filter(None, figures)]


_HEAD = f"""# Variance Penalizing AdaBoost: Tables 1 and 2, Figures 1 and 2

Made by `{_COMMAND}`; every number of the tables is in `results.parquet` beside this page. Those of other settings,
in the reasons for differences below and of fewer costs C, were measured once and are not kept. Test error in percent:
half of the rows for training, a quarter for validation (when to stop, which penalty, which C), a quarter for testing,
repeated with other splits. Each cell has our mean and standard error, then the published mean in brackets. **Bold**:
the least mean of the row. A star: not significantly above it by a paired t-test at 1 %.

The rule of agreement: a mean agrees with the published one where they differ by at most two combined standard errors,
ours and the printed one (0.0 in print counts as {_ROUNDED:g}). A table is *reproduced* if at least 90 % of its means
agree, *in part* if at least half do, else *not reproduced*. These two shares, and the 0.05, were set when the counts
were known: with 0.0 as it is printed 68 of 90 and 17 of 72 means agree, and no word of the verdicts changes.

The costs C that RLP-Boost and RQP-Boost choose from
were compared with others on [other data sets](../what_did_not_help.md): those of RQP-Boost stand, for RLP-Boost twice
as many between the same ends are 0.2 ± 0.1 points better there. Its columns were made anew with them, and are 0.01 ±
0.01 points better on average than with the fewer: the gain did not carry over."""


def lines_of(rows: ResultsTable, learner: str) -> list[Line]:
    """Return the data sets of a table that every method has measured, in the paper's order."""
    methods = tuple(method for method in METHODS if learner == "stump" or method != "EBBoost")
    values: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows.where(learner=learner, quantity="error"):
        values.setdefault((row.dataset, row.method), {})[row.seed] = _PERCENT * row.value
    lines = []
    for task in TASKS:
        found = [values.get((task.name, method), {}) for method in methods]
        seeds = sorted(set.intersection(*map(set, found)))
        if seeds:
            errors = np.array([[one[seed] for seed in seeds] for one in found])
            place = 0 if learner == "stump" else 1
            lines.append(Line(task, methods, (task.stump, task.cart)[place], task.printed_errors[place], errors))
    return lines


def _section(learner: str, lines: list[Line], rows: ResultsTable) -> str:
    methods = lines[0].methods
    seconds = sum(row.value for row in rows.where(learner=learner, quantity="processor seconds"))
    counts = sorted({line.errors.shape[1] for line in lines})
    repeats = f"{counts[0]} repeats" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} repeats"
    head = [
        f"## {_TITLES[learner]}",
        "",
        f"{repeats} of {len(lines)} data sets, {seconds / 60:.0f} minutes of processor time.",
        "",
    ]
    body = [[line.task.name, *_cells(line)] for line in lines]
    wins = [str(sum(_is_least(line, method) for line in lines)) for method in methods]
    stars = [str(sum(_is_star(line, method) for line in lines)) for method in methods]
    foot = [["*least mean*", *wins], ["*least or starred*", *stars]]
    return "\n".join([*head, markdown_table(["data set", *methods], [*body, *foot]), "", _verdict(lines)])


def _cells(line: Line) -> list[str]:
    cells = []
    for place, method in enumerate(line.methods):
        errors = line.errors[place]
        text = f"{errors.mean():.2f}"
        if errors.size > 1:
            text += f" ± {errors.std(ddof=1) / np.sqrt(errors.size):.2f}"
        if _is_least(line, method):
            text = f"**{text}**"
        elif _is_star(line, method):
            text += " *"
        cells.append(f"{text} ({line.published[place]:.2f})")
    return cells


def _is_least(line: Line, method: str) -> bool:
    return bool(line.of(method) == line.means.min())


def _is_star(line: Line, method: str) -> bool:
    """Return whether the method is not significantly above the least mean."""
    from scipy.stats import ttest_rel  # noqa: PLC0415 - heavy

    errors, least = line.errors[line.methods.index(method)], line.errors[line.means.argmin()]
    if errors.size == 1 or np.ptp(errors - least) == 0:  # no spread to compare with
        return bool(errors.mean() == least.mean())
    return bool(ttest_rel(errors, least).pvalue > _SIGNIFICANT)


def sets_ahead(lines: list[Line]) -> tuple[int, int]:
    """Return on how many sets VadaBoost is at or below AdaBoost, here and as published."""

    def count(means: list[tuple[float, float]]) -> int:
        return sum(vada <= ada + _TIE for vada, ada in means)

    ours = count([(line.of("VadaBoost"), line.of("AdaBoost")) for line in lines])
    places = lines[0].methods.index("VadaBoost"), lines[0].methods.index("AdaBoost")
    return ours, count([(line.published[places[0]], line.published[places[1]]) for line in lines])


def _verdict(lines: list[Line]) -> str:
    ours, theirs = sets_ahead(lines)
    agree = sum(int(line.agrees.sum()) for line in lines)
    n_cells = sum(len(line.methods) for line in lines)
    share = agree / n_cells
    verdict = "Reproduced" if share >= _REPRODUCED else "Reproduced in part" if share >= _IN_PART else "Not reproduced"
    best = ""
    if "EBBoost" in lines[0].methods:
        at = lines[0].methods.index("EBBoost")
        own = sum(_is_least(line, "EBBoost") for line in lines)
        printed = sum(line.published[at] == min(line.published) for line in lines)
        best = (
            f" EBBoost has the least mean on {own} of the data sets, and on {printed} as published: its published "
            f"advantage is {'' if own >= printed else 'not '}reproduced."
        )
    return (
        f"**{verdict}**: {agree} of {n_cells} means agree with the published ones. VadaBoost is at or below AdaBoost "
        f"on {ours} of {len(lines)} data sets; published: {theirs} of the same.{best}"
    )


def _is_close(line: Line) -> bool:
    return bool(np.abs(line.means - np.array(line.published)).max() <= _FAR)


class Finer(NamedTuple):
    """AdaBoost's errors in percent with more bins, and what they are above those of Table 2, on the same splits."""

    error: float
    difference: float
    standard_error: float
    n_splits: int

    @property
    def matters(self) -> bool:
        """Tell whether the difference is more than two of its standard errors."""
        return abs(self.difference) > 2 * self.standard_error

    def __str__(self) -> str:
        return f"{self.difference:+.2f} ± {self.standard_error:.2f}"


def _finer_errors(rows: ResultsTable) -> dict[str, Finer]:
    """Return what more bins do to AdaBoost, by data set."""
    found = {}
    for task in TASKS:
        fine, coarse = (
            {
                row.seed: _PERCENT * row.value
                for row in rows.where(dataset=task.name, learner=learner, method="AdaBoost")
            }
            for learner in (FINE, "cart")
        )
        seeds = sorted(fine.keys() & coarse.keys())
        if len(seeds) > 1:
            differences = np.array([fine[seed] - coarse[seed] for seed in seeds])
            spread = float(differences.std(ddof=1) / np.sqrt(len(seeds)))
            mean = float(np.mean([fine[seed] for seed in seeds]))
            found[task.name] = Finer(mean, float(differences.mean()), spread, len(seeds))
    return found


def _bins_note(finer: dict[str, Finer]) -> str:
    """Say that the trees are coarser than CART's, and what that does."""
    said = (
        "These trees are not pruned and split no node of fewer than 10 samples, as MATLAB's CART. Unlike it they cut "
        f"a\nfeature at the edges of {COARSE_BINS} bins only, not between any two values. (The stumps of Table 1 have "
        f"{FINE_BINS} bins.)"
    )
    if not finer:
        return said
    matters = ", ".join(f"{name} {one}" for name, one in finer.items() if one.matters) or "nowhere"
    n_splits = max(one.n_splits for one in finer.values())
    return (
        f"{said}\nTest error of AdaBoost with {FINE_BINS} bins less that with {COARSE_BINS}, in points, on the first "
        f"{n_splits} splits, where it is more\nthan two standard errors: {matters} (of {len(finer)} data sets)."
    )


def _notes(lines: dict[str, list[Line]], finer: dict[str, Finer]) -> str:
    """Return how the tasks were made, and for the means that are further off than the rest, why."""
    head = ["## How the data sets were made", ""]
    made = [f"- {task.name}: {task.note}." for task in TASKS if task.note]
    off = [
        f"- {line.task.name}, {learner}: up to {np.abs(line.means - np.array(line.published)).max():.1f} points off. "
        f"{_WHY.get((line.task.name, learner), 'Why, we do not know.')}{_by_bins(finer, line, learner)}"
        for learner, found in lines.items()
        for line in found
        if not _is_close(line)
    ]
    return "\n".join(
        [*head, *made, *(["", f"Further than {_FAR} points from the published means:", "", *off] if off else [])]
    )


def _by_bins(finer: dict[str, Finer], line: Line, learner: str) -> str:
    one = finer.get(line.task.name)
    if learner != "cart" or one is None or not one.matters:
        return ""
    return f" With {FINE_BINS} bins for {COARSE_BINS} AdaBoost has {one.error:.1f} % ({one.n_splits} splits)."


_SMALL_TREES = (
    "The paper does not say how large its trees are. Ours grow until a node has fewer than 10 samples; AdaBoost with "
    "trees of depth {depth} has {error} % here (20 splits), against {published} % published."
)
# Errors of AdaBoost measured with this protocol on 20 splits, other settings as in the tables, 32 bins among them.
_WHY = {
    ("a5a", "cart"): _SMALL_TREES.format(depth=7, error="17.6", published="17.59"),
    ("abalone", "cart"): ("The number of bins explains most of it, and not the size of the trees."),
    ("musk", "cart"): _SMALL_TREES.format(depth=3, error="2.1", published="2.36"),
    ("wine", "cart"): _SMALL_TREES.format(depth=3, error="22.1", published="21.94"),
    ("ringnorm", "stump"): (
        "The error falls with the number of rows, which the paper does not give: AdaBoost has 16.7 % with 400 rows, "
        "14.4 % with 500, 9.7 % with 700 (20 splits)."
    ),
    ("ringnorm", "cart"): (
        "The error falls with the number of rows, which the paper does not give: AdaBoost has 10.2 % with 500 rows, "
        "6.9 % with 700 (20 splits)."
    ),
    ("waveform", "cart"): (
        "Ours are lower, and the error falls with the number of rows, which the paper does not give: AdaBoost has "
        "12.5 % with 1,000 rows, 10.8 % with 2,000, 10.5 % with 3,000 (20 splits)."
    ),
    ("splice", "stump"): (
        "The paper's version is that of the IDA benchmark, which codes letters by numbers that are not documented; "
        "how letters are coded matters little to ours (6.2 % with indicators, 20 splits). That version also has fewer "
        "rows, and 1,000 of them for training."
    ),
}


STUDY = Study("vadaboost", "Shivaswamy and Jebara 2011", wanted, measure, sections, DATASETS, n_seeds=50, n_jobs=-1)
