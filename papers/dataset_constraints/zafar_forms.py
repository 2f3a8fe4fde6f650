"""The constraint of Zafar et al. (2015) in the ramp form of Goh et al. (2016), Appendix D, beside its hinge form.

``python -m papers.dataset_constraints.zafar_forms [OUTPUT]`` makes ``zafar_ramp.csv``, of which the page has a section;
those of the hinge form are in ``results.parquet``. A run that was stopped goes on where it was.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from counterpoise.datasets import TableData, load_dataset
from counterpoise.runs import ProgressCallback
from papers.dataset_constraints.baselines import zafar_ramp
from papers.dataset_constraints.experiment import (
    COVARIANCES,
    FAIRNESS,
    WEAK,
    ZAFAR,
    fairness_rows,
    fairness_split,
)
from papers.markdown import markdown_table
from papers.results import ResultRow, ResultsTable
from papers.study import measure_left, run_alone

RAMP = "Zafar et al., ramp"
LEARNER = WEAK  # regularized by 1/n, as the paper


class Split(NamedTuple):
    """A part of the study."""

    seed: int


def measure(split: Split) -> list[ResultRow]:
    """Return errors and ratios of the positive rates on one split, for all bounds."""
    return list(measured(fairness_split(load_dataset(FAIRNESS), split.seed), split.seed))


def measured(parts: dict[str, TableData], seed: int, covariances: Sequence[float] = COVARIANCES) -> Iterator[ResultRow]:
    """Yield the same, given the rows."""
    train = parts["train"]
    men = train.sensitive["sex"] == "Male"
    for c in covariances:
        found = zafar_ramp(train.X, train.y > 0, men, c=c, regularization=1.0 / len(train.y))
        yield from fairness_rows(parts, found.above(0.0), LEARNER, RAMP, seed, f"c={c:g}")


def section(ramps: ResultsTable, hinges: ResultsTable) -> str:
    """Return both forms on the test rows of the splits that both have, bound by bound."""
    lines = []
    for c in COVARIANCES:
        lines.append([f"{c:g}"])
        for quantity in ("error", "ratio"):
            known = {
                "dataset": FAIRNESS,
                "learner": LEARNER,
                "settings": f"c={c:g}",
                "split": "test",
                "quantity": quantity,
            }
            ramp, hinge = (
                {row.seed: row.value for row in rows.where(method=method, **known)}
                for rows, method in ((ramps, RAMP), (hinges, ZAFAR))
            )
            seeds = sorted(ramp.keys() & hinge.keys())
            lines[-1] += [f"{np.mean([form[seed] for seed in seeds]):.4f}" for form in (hinge, ramp)]
    heads = ["c", "error, hinge", "error, ramp", "ratio, hinge", "ratio, ramp"]
    n_splits = len({row.seed for row in ramps})
    return f"{_ABOUT.format(n_splits=n_splits)}\n\n{markdown_table(heads, lines)}\n\n{_in_short(lines)}"


def _in_short(lines: Sequence[Sequence[str]]) -> str:
    hinge, ramp = (sorted(line[place] for line in lines) for place in (3, 4))
    return f"Over all c the ratio goes from {hinge[0]} to {hinge[-1]} by hinges, from {ramp[0]} to {ramp[-1]} by ramps."


_ABOUT = """## The ramp form of the covariance constraint

Appendix D also writes the constraint of Zafar et al. as a ramp, an egregious example in place of a hinge. The bound is
the same; the loss is then the ramp's, from the hinge form's point on. Linear, regularization 1/n, means over the test
rows of {n_splits} splits. Made by `python -m papers.dataset_constraints.zafar_forms`; every number is in
`zafar_ramp.csv`."""


def reproduce(output: Path, *, n_seeds: int = 5, tell: ProgressCallback = lambda _progress: None) -> Path:
    """Run what ``zafar_ramp.csv`` in the folder does not hold yet, and return its path."""
    return measure_left([Split(seed) for seed in range(n_seeds)], measure, output / "zafar_ramp.csv", tell=tell)


if __name__ == "__main__":
    sys.exit(run_alone(reproduce, "dataset_constraints", sys.argv[1:]))
