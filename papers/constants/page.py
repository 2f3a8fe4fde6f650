"""The page of the settings, as a function of the table."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from papers.arrays import FloatArray
from papers.constants.experiment import (
    BUDGET,
    CLASS_ROWS,
    CONSTANTS,
    DATASETS,
    FEWEST,
    GRID_ROWS,
    GRIDS,
    KAPPAS,
    N_SEEDS,
    OF_BOUNDS,
    OF_CHURN_STRENGTH,
    OF_LINEAR,
    OF_MOVES,
    OF_QUADRATIC,
    OF_STEP,
    OF_STRENGTH,
    OF_WIDTH,
    RAISED,
    STRENGTH_ROWS,
    TAILS,
    Constant,
    measure,
    wanted,
)
from papers.constants.schedules import schedule_section
from papers.dro_boosting.experiment import N_TRAIN
from papers.markdown import markdown_table
from papers.results import ResultsTable, read_rows
from papers.study import Study

_COMMAND = "python -m papers constants --output docs/results/constants"
_SCHEDULES = Path("boosted_cvar", "schedules.csv")  # beside the folder of this page


class Choice(NamedTuple):
    """What the rule says of a setting."""

    candidate: str
    above: float  # by how much what the tables had is above the choice
    error: float  # standard error of that, 0 where it is the choice

    @property
    def tells_apart(self) -> bool:
        """Return whether the tables' setting is further above than one standard error."""
        return self.above > self.error


def values_of(constant: Constant, rows: ResultsTable) -> tuple[list[tuple[str, str, int]], FloatArray]:
    """Return the splits that have all candidates, and their numbers: a row for each split, a column for each."""
    found: dict[tuple[str, str, int], dict[str, float]] = {}
    for row in rows.where(experiment=constant.name):
        found.setdefault((row.dataset, row.learner, row.seed), {})[row.method] = row.value
    whole = [split for split, one in found.items() if set(constant.candidates) <= one.keys()]
    return whole, np.array([[found[split][name] for name in constant.candidates] for split in whole])


def choose(constant: Constant, values: FloatArray) -> Choice:
    """Return the choice by the rule that stands in the experiment.

    Examples
    --------
    >>> import numpy as np
    >>> from papers.constants.experiment import CONSTANTS
    >>> from papers.constants.page import choose
    >>> bounds = CONSTANTS[-1]
    >>> choose(bounds, np.array([[9.0, 7.0, 4.0, 2.0, 0.0], [8.0, 7.0, 3.0, 1.0, 0.0]])).candidate
    '+0 %'
    """
    if constant.name == OF_BOUNDS:
        place = int(np.flatnonzero((values >= FEWEST).all(axis=0)).max(initial=0))
        return Choice(constant.candidates[place], 0.0, 0.0)
    place = int(values.mean(axis=0).argmin())
    above, error = paired(values[:, constant.candidates.index(constant.before)] - values[:, place])
    return Choice(constant.candidates[place], above, error)


def paired(differences: FloatArray) -> tuple[float, float]:
    """Return the mean of some differences and its standard error, 0 of a single one."""
    several = differences.size > 1
    return float(differences.mean()), float(differences.std(ddof=1) / np.sqrt(differences.size)) if several else 0.0


def sections(rows: ResultsTable, folder: Path) -> list[str]:
    """Return the paragraphs of the page."""
    found = [_HEAD]
    for constant in CONSTANTS:
        splits, values = values_of(constant, rows)
        if splits:
            found += _section(constant, splits, values)
    schedules = folder.parent / _SCHEDULES
    return [*found, *(schedule_section(read_rows(schedules)) if schedules.exists() else ())]


def _section(constant: Constant, splits: Sequence[tuple[str, str, int]], values: FloatArray) -> list[str]:
    sets = list(dict.fromkeys((dataset, learner) for dataset, learner, _ in splits))
    least, lines = int(values.mean(axis=0).argmin()), []
    for place, candidate in enumerate(constant.candidates):
        means = [values[[split[:2] == one for split in splits], place].mean() for one in sets]
        above = paired(values[:, place] - values[:, least])
        cells = [_number(constant, value) for value in (*means, values[:, place].mean())]
        lines.append([candidate, *cells, *_difference(constant, above)])
    several = len({learner for _, learner in sets}) > 1
    heads = [constant.name, *(f"{dataset}, {learner}" if several else dataset for dataset, learner in sets), "mean"]
    heads += _difference_head(constant)
    n_splits = len({split[2] for split in splits})
    about = f"{_ABOUT[constant.name]}\nMeans of the {constant.quantity} over {n_splits} splits."
    return [
        f"## {constant.name[0].upper()}{constant.name[1:]}",
        about,
        markdown_table(heads, lines),
        _said(constant, values),
    ]


def _number(constant: Constant, value: float) -> str:
    return f"{value:.1f}" if constant.name == OF_BOUNDS else f"{value:.4f}"


def _difference_head(constant: Constant) -> list[str]:
    return [] if constant.name == OF_BOUNDS else ["above the least"]


def _difference(constant: Constant, above: tuple[float, float]) -> list[str]:
    if constant.name == OF_BOUNDS:
        return []
    return [f"{above[0]:.4f} ± {above[1]:.4f}" if any(above) else "0"]


def _said(constant: Constant, values: FloatArray) -> str:
    choice = choose(constant, values)
    start = f"The choice is **{choice.candidate}**"
    if choice.candidate == constant.before:
        return f"{start}, which the tables have."
    if choice.candidate == constant.now:
        return f"{start}. The tables had *{constant.before}*, and were run again with it."
    told = f"{start}; the tables have *{constant.now}*, {choice.above:.4f} ± {choice.error:.4f} above it"
    if choice.tells_apart:
        return f"{told}: further than one standard error, and to be run again."
    return f"{told}: the two cannot be told apart, and the tables stand."


def _costs(method: str) -> str:
    return "; ".join(f"*{name}*: {', '.join(f'{cost:g}' for cost in costs)}" for name, costs in GRIDS[method].items())


_HEAD = f"""# Settings chosen where no table looks

Made by `{_COMMAND}`; every number is in `results.parquet`
beside this page. These settings of the pages were once looked at on test rows of their own tables. Here they are chosen
on data sets, classes or splits that no table of the page in question uses, by one rule, which was written down before
anything here was measured:

> The candidate of the least mean of what is held out, over sets and splits, is the choice. Where what the tables have
> is no further above it than one standard error of their difference, set by set and split by split, the two cannot be
> told apart, and the tables stand; else they are to be run again with the choice.

± is that standard error, over all sets and splits."""

_GRID = f"""The tables try the costs of a grid, and validation rows choose among them. Here are other grids, with all
else as in the tables, on sets of at most {GRID_ROWS:,} rows that are not among the eighteen: other pairs of digits, red
wines in place of white ones, and more."""
_ABOUT = {
    OF_STEP: f"""The part of the line search's step that a round of DRO-Boosting goes, all else as in
[its Table 1](../dro_boosting/README.md): {N_TRAIN:,} training rows or half of those that there are, trees of depth 5,
rounds chosen on a fifth of them. Neither credit default nor the American Community Survey, whose tables stand there, is
among the sets; of Adult it is the training part.""",
    OF_LINEAR: f"{_GRID}\n{_costs('RLP-Boost')}.",
    OF_QUADRATIC: f"The same for [RQP-Boost](../vadaboost/README.md).\n{_costs('RQP-Boost')}.",
    OF_STRENGTH: f"""The regularization that stands beside the paper's 1/n in
[Figure 2](../dataset_constraints/README.md), there on Adult. Half of at most {STRENGTH_ROWS:,} people train, as
indicators like those of a9a; of the others it is the error plus what the goal is missed by, a mean over kappa
{", ".join(f"{kappa:g}" for kappa in KAPPAS)}. Three splits were planned; they became five after one of COMPAS had been
seen.""",
    OF_CHURN_STRENGTH: """The regularization of all fits of
[Figure 3's analogue](../dataset_constraints/README.md), which the paper chose for its support vector machine. Here it
is chosen for it too, its bias shifted, on rows of the same survey in splits of other seeds: they meet rows of the
tables' splits by chance.""",
    OF_WIDTH: "The same for the gamma of the random features.",
    OF_MOVES: f"""Rules of class probabilities are moved as the labels of the selection rows say where that saves so
many standard errors; all else as in [more than two classes](../many_classes/README.md), on at most {CLASS_ROWS:,} rows
of sets that are not there. *floor*: the worst recall of all classes is to be {RAISED[0]:g} and {RAISED[1]:g} above
that of the plain model on the selection rows, and the loss is the error plus what is missed. *tail*: the loss of the
worst-off {TAILS[0]:g} and {TAILS[1]:g} of the rows, plus what the budget of {BUDGET:g} is missed by. Four splits were
planned, and three were run, for want of time.""",
    OF_BOUNDS: f"""How many of the [twenty models](../mixture_goals/README.md) meet all six goals on the selection rows,
with every bound tighter by a part of it, in splits that the tables do not have. No test row is looked at. There is no
loss to be least here; the rule is: the tightest bounds that {FEWEST} models meet in every split.""",
}

STUDY = Study(
    "constants", "settings of the papers' pages, chosen where no table looks", wanted, measure, sections, DATASETS,
    n_seeds=N_SEEDS,
)  # fmt: skip
