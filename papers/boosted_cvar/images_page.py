"""Networks on CIFAR-10: the table is a function of the losses that ``networks`` kept, made on any machine."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from papers.boosted_cvar.losses import MODELS, TRAINING, WARM_UP, WEIGHING, result_rows
from papers.boosted_cvar.page import draw, pattern_table, patterns, tail_table
from papers.experiments import STORED, Blocks, Experiment
from papers.kept_losses import KeptLosses
from papers.markdown import markdown_table
from papers.tables import ResultRow, ResultsTable

LOSSES = STORED / "losses"
LONG = "WRN-28-1, long warm-up"
_SECONDS, _MANY = (WARM_UP, TRAINING, WEIGHING), 30  # models, for which the paper compares times


class Run(NamedTuple):
    """Networks that were boosted together."""

    dataset: str
    learner: str
    method: str
    seed: int
    alpha: float | None
    quantity: str = MODELS


@cache
def _files() -> dict[Run, Path]:
    return {_run_of(path): path for path in sorted(LOSSES.glob("losses_*.npz"))}


def _run_of(path: Path) -> Run:
    (row,) = (row for row in result_rows(KeptLosses.read(path)) if row.quantity == MODELS)
    return Run(row.dataset, row.learner, row.method, row.seed, row.alpha)


def parts(datasets: Sequence[str], n_seeds: int) -> list[Run]:
    """Return the runs whose losses were kept."""
    return [run for run in _files() if run.dataset in datasets and run.seed < n_seeds]


def measure(run: Run) -> list[ResultRow]:
    """Return what follows from the losses of a run."""
    return list(result_rows(KeptLosses.read(_files()[run])))


def training_seconds(rows: ResultsTable) -> dict[tuple[str, ...], dict[str, list[float]]]:
    """Return the seconds that were kept, by learner, method and settings."""
    found: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for row in rows:
        if row.quantity in _SECONDS:
            n_models = re.findall(r"\bT=(\d+)", row.settings)[-1]
            key = (row.learner, row.method, "" if row.alpha is None else f"{row.alpha:g}", n_models)
            found.setdefault(key, {}).setdefault(row.quantity, []).append(row.value)
    return found


def times_of_erm(seconds: dict[str, list[float]]) -> float:
    """Return the time of the warm-up and 30 models with their weights, over that of the warm-up and one model."""
    warm_up, training, weighing = (float(np.mean(seconds[name])) for name in _SECONDS)
    return (warm_up + _MANY * (training + weighing)) / (warm_up + training)


def after(rows: ResultsTable, n_rounds: int, alpha: float) -> float:
    """Return the mean CVaR of AdaLPBoost after so many models, of the long warm-up."""
    found = [row.value for row in rows.where(learner=LONG, alpha=alpha) if row.settings.endswith(f"rounds={n_rounds}")]
    return float(np.mean(found))


def blocks(rows: ResultsTable) -> Blocks:
    """Return the blocks of what was measured."""
    times = [
        [learner, method, alpha, n_models, f"{times_of_erm(seconds):.1f}"]
        for (learner, method, alpha, n_models), seconds in sorted(training_seconds(rows).items())
    ]
    found = {"pattern": pattern_table(patterns(rows))}
    found["times"] = markdown_table(["network", "method", "alpha", "models", "times ERM"], times, n_words=2)
    if len(rows.where(learner=LONG)):
        found["tails"] = tail_table(rows, "cifar10", LONG)
    return found


def figures(rows: ResultsTable) -> dict[str, Any]:
    """Return the curves."""
    return {"boosted_cvar_images.svg": draw(rows)}


EXPERIMENT = Experiment(
    "boosted-cvar-images", "Zhai et al. 2021: networks on CIFAR-10, of their kept losses",
    parts, measure, blocks, ("cifar10",), 5, figures,
)  # fmt: skip
