"""The blocks and figures of ``vadaboost``: Tables 1 and 2 beside ours, as functions of the table."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from counterpoise.theory.guarantees import vadaboost_rounds_ratio
from papers.arrays import FloatArray
from papers.experiments import Blocks, Experiment, with_error
from papers.markdown import markdown_table
from papers.printed import Printed, count
from papers.tables import ResultsTable
from papers.vadaboost.data import TASKS, Task
from papers.vadaboost.experiment import DATASETS, EXACT, LEARNERS, METHODS, Repeat, measure, wanted
from papers.vadaboost.figures import draw_bound

_ROUNDED = 0.05  # the most that a standard error printed as 0.0 may be
_FAR = 1.5  # points of difference from which a mean is named
_PERCENT = 100.0
_TIE = 1e-9  # means of the same errors in another order differ by rounding
TITLES = {"stump": "VadaBoost, Table 1", "cart": "VadaBoost, Table 2"}


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

    def printed(self, table: str) -> list[Printed]:
        """Return the printed means beside ours."""
        n_repeats = self.errors.shape[1]
        own = self.errors.std(axis=1, ddof=1) / np.sqrt(n_repeats) if n_repeats > 1 else np.zeros(len(self.methods))
        columns = zip(self.methods, self.means, own, self.published, self.spreads, strict=True)
        return [
            Printed(table, f"{self.task.name}, {method}", float(mean), float(error), known, max(spread, _ROUNDED))
            for method, mean, error, known, spread in columns
        ]


def lines_of(rows: ResultsTable, learner: str) -> list[Line]:
    """Return the data sets of a table that every method has measured, in the paper's order."""
    methods = tuple(method for method in METHODS if learner == "stump" or method != "EBBoost")
    known: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows.where(learner=learner, quantity="error"):
        known.setdefault((row.dataset, row.method), {})[row.seed] = _PERCENT * row.value
    lines = []
    for task in TASKS:
        found = [known.get((task.name, method), {}) for method in methods]
        seeds = sorted(set.intersection(*map(set, found)))
        if seeds:
            errors = np.array([[by_seed[seed] for seed in seeds] for by_seed in found])
            place = 0 if learner == "stump" else 1
            lines.append(Line(task, methods, (task.stump, task.cart)[place], task.printed_errors[place], errors))
    return lines


def printed(rows: ResultsTable) -> list[Printed]:
    """Return all printed means of both tables beside ours."""
    return [
        number for learner in LEARNERS for line in lines_of(rows, learner) for number in line.printed(TITLES[learner])
    ]


def sets_ahead(lines: list[Line]) -> tuple[int, int]:
    """Return on how many sets VadaBoost is at or below AdaBoost, here and as published."""
    places = [lines[0].methods.index(name) for name in ("VadaBoost", "AdaBoost")]
    ours, theirs = ([np.array(line)[places] for line in found] for found in
                    ([line.means for line in lines], [line.published for line in lines]))  # fmt: skip
    return tuple(sum(bool(vada <= ada + _TIE) for vada, ada in found) for found in (ours, theirs))  # type: ignore[return-value]


def sets_of_ebboost(lines: list[Line]) -> tuple[int, int]:
    """Return on how many sets EBBoost has the least mean, here and as published."""
    place = lines[0].methods.index("EBBoost")
    ours, theirs = [line.means for line in lines], [np.array(line.published) for line in lines]
    return tuple(sum(bool(means[place] == means.min()) for means in found) for found in (ours, theirs))  # type: ignore[return-value]


def blocks(rows: ResultsTable) -> Blocks:
    """Return the blocks of what was measured."""
    found: dict[str, str] = {}
    for learner in LEARNERS:
        lines = lines_of(rows, learner)
        if lines:
            found[f"methods, {learner}"] = _methods(lines, TITLES[learner])
            found[f"far, {learner}"] = _far(lines, TITLES[learner])
    exact = _exact(rows)
    ratios = ", ".join(
        f"{vadaboost_rounds_ratio(error):.2f} at {error:g}" for error in (0.01, 0.1, 0.2, 0.3, 0.4, 0.49)
    )
    return found | ({"exact": exact} if exact else {}) | {"rounds": ratios}


def _methods(lines: list[Line], table: str) -> str:
    """Return for each method the mean difference and how many means agree."""
    numbers = [number for line in lines for number in line.printed(table)]
    body = []
    for place, method in enumerate(lines[0].methods):
        own = [line.printed(table)[place] for line in lines]
        ours, theirs = (np.mean([getattr(number, name) for number in own]) for name in ("ours", "published"))
        body.append([method, f"{ours:.2f}", f"{theirs:.2f}", count(own)])
    heads = ["method", "ours: mean error, %", "published", "means that agree"]
    ours, theirs = sets_ahead(lines)
    ahead = f"VadaBoost at or below AdaBoost on {ours} of {len(lines)} sets, published {theirs}."
    if "EBBoost" in lines[0].methods:
        ours, theirs = sets_of_ebboost(lines)
        ahead += f" EBBoost has the least mean on {ours}, published {theirs}."
    return f"{markdown_table(heads, body)}\n\n{count(numbers)} means agree. {ahead}"


def _far(lines: list[Line], table: str) -> str:
    """Return the sets whose means are further off than the rest."""
    body = []
    for line in lines:
        gaps = line.means - np.array(line.published)
        if np.abs(gaps).max() > _FAR:
            worst = int(np.abs(gaps).argmax())
            cells = [
                f"{line.means[worst]:.1f}",
                f"{line.published[worst]:.1f}",
                f"{line.printed(table)[worst].away:+.0f}",
            ]
            body.append([line.task.name, line.methods[worst], *cells])
    return markdown_table(["set", "furthest method", "ours, %", "published, %", "standard errors"], body, n_words=2)


def _exact(rows: ResultsTable) -> str:
    """Return the errors with exact CART beside those with bins and the published ones, on the same splits."""
    body = []
    for line in lines_of(rows, "cart"):
        for place, method in enumerate(line.methods):
            exact, binned = (
                {row.seed: _PERCENT * row.value
                 for row in rows.where(dataset=line.task.name, learner=learner, method=method, quantity="error")}
                for learner in (EXACT, "cart")
            )  # fmt: skip
            seeds = sorted(exact.keys() & binned.keys())
            if seeds:
                pair = [np.array([found[seed] for seed in seeds]) for found in (exact, binned)]
                cells = [with_error(errors, 2) for errors in (*pair, pair[0] - pair[1])]
                body.append([line.task.name, method, str(len(seeds)), *cells, f"{line.published[place]:.2f}"])
    heads = ["set", "method", "splits", "exact CART", "32 bins, the same splits", "difference", "published"]
    return markdown_table(heads, body, n_words=2) if body else ""


def figures(_rows: ResultsTable) -> dict[str, Any]:
    """Return Figure 1."""
    return {"vadaboost_bound.svg": draw_bound()}


EXPERIMENT = Experiment(
    "vadaboost", "Shivaswamy and Jebara 2011: Tables 1 and 2", wanted, measure, blocks, DATASETS, 50, figures
)
_SMALL = replace(
    EXPERIMENT, parts=lambda datasets, _n_seeds: [Repeat(name, "stump", 0) for name in datasets], datasets=("wisc",)
)
EXPERIMENT = replace(EXPERIMENT, quick=_SMALL)
