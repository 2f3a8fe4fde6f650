"""Figure 2 with the decisions that ``ConstrainedClassifier`` makes by default: its threshold is moved.

``python -m papers.dataset_constraints.moved_threshold [OUTPUT]`` makes ``moved_threshold.csv``, of which the page has a
section; the decisions by the sign of the same scores are in ``results.parquet``. A run that was stopped goes on where
it was.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from counterpoise.classifiers.constrained import ConstrainedClassifier
from counterpoise.datasets import TableData, load_dataset
from counterpoise.goals import positive_rate
from counterpoise.runs import ProgressCallback
from papers.dataset_constraints.experiment import FAIRNESS, KAPPAS, THRESHOLDED, WEAK, fairness_rows, fairness_split
from papers.dataset_constraints.zafar_forms import Split
from papers.markdown import markdown_table
from papers.results import ResultRow, ResultsTable
from papers.study import measure_left, run_alone

MOVED = "ours, threshold moved"
_ENOUGH = 1e-9  # of a ratio, for rounding


def measure(split: Split) -> list[ResultRow]:
    """Return errors and ratios of the positive rates on one split, for all kappas."""
    return list(measured(fairness_split(load_dataset(FAIRNESS), split.seed), split.seed))


def measured(parts: dict[str, TableData], seed: int, kappas: Sequence[float] = KAPPAS) -> Iterator[ResultRow]:
    """Yield the same, given the rows."""
    train = parts["train"]
    for kappa in kappas:
        goal = positive_rate(sex="Female") >= kappa * positive_rate(sex="Male")
        model = ConstrainedClassifier(goals=goal, regularization=1.0 / len(train.y))
        model.fit(train.X, train.y, sensitive_features=train.sensitive)

        def decide(rows: object, model: ConstrainedClassifier = model) -> np.ndarray:
            return np.asarray(model.decision_proba(rows)[:, 1])

        yield from fairness_rows(parts, decide, WEAK, MOVED, seed, f"kappa={kappa:g}")


def section(moved: ResultsTable, signs: ResultsTable) -> str:
    """Return both decisions of the same scores on the splits that both have, kappa by kappa."""
    seeds = {row.seed for row in moved}
    both = {THRESHOLDED: signs.where(dataset=FAIRNESS, learner=WEAK), MOVED: moved}
    lines, kept = [], dict.fromkeys(both, 0)
    for kappa in KAPPAS:
        cells = []
        for split in ("train", "test"):
            for quantity in ("ratio", "error"):
                for method, rows in both.items():
                    here = rows.where(method=method, settings=f"kappa={kappa:g}", split=split, quantity=quantity)
                    values = [row.value for row in here if row.seed in seeds]
                    cells.append(f"{np.mean(values):.4f}")
                    if (split, quantity) == ("train", "ratio"):
                        kept[method] += sum(value >= kappa - _ENOUGH for value in values)
        lines.append([f"{kappa:g}", *cells])
    heads = [f"{split} {quantity}, {how}" for split in ("train", "test") for quantity in ("ratio", "error") for how in
             ("sign", "moved")]  # fmt: skip
    n_fits = len(seeds) * len(KAPPAS)
    return f"""## Decisions of ConstrainedClassifier

By default the classifier does not decide by the sign of its score but moves the threshold to where its decisions meet
the goals on the training rows. {WEAK[0].upper()}{WEAK[1:]}, means over {len(seeds)} splits. Made by
`python -m papers.dataset_constraints.moved_threshold`; every number is in `moved_threshold.csv`.

{markdown_table(["kappa", *heads], lines)}

On the training rows the goal holds in {kept[THRESHOLDED]} of {n_fits} fits by the sign, and in {kept[MOVED]} with the
threshold moved; nothing is promised of test rows."""


def reproduce(output: Path, *, n_seeds: int = 5, tell: ProgressCallback = lambda _progress: None) -> Path:
    """Run what ``moved_threshold.csv`` in the folder does not hold yet, and return its path."""
    return measure_left([Split(seed) for seed in range(n_seeds)], measure, output / "moved_threshold.csv", tell=tell)


if __name__ == "__main__":
    sys.exit(run_alone(reproduce, "dataset_constraints", sys.argv[1:]))
