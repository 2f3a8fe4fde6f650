"""The remark below Algorithm 2 of Zhai et al. (2021): a constant step of the weights does better than AdaBoost's own.

``python -m papers.boosted_cvar.steps [OUTPUT]`` boosts the tables of ``experiment`` with both, and makes ``steps.csv``,
of which the page has a section. A run that was stopped goes on where it was.
"""

import sys
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from counterpoise.boosting.learner import LearnerFit
from counterpoise.boosting.rounds import History, Rule, boost
from counterpoise.boosting.row_store import RowStore
from counterpoise.boosting.rules import adaptive_hedge, hedge
from counterpoise.datasets import load_dataset
from counterpoise.metrics import cvar_loss
from counterpoise.rules.goal_rows import find_positive
from counterpoise.rules.pool import Pool, failures
from counterpoise.runs import ProgressCallback
from counterpoise.solvers import minimize_cvar
from papers.arrays import FloatArray
from papers.boosted_cvar.curves import ETA, EXPERIMENT, Losses
from papers.boosted_cvar.experiment import (
    PROTOCOLS,
    Protocol,
    Repeat,
    as_features,
    make_learner,
    protocol_of,
    split_parts,
)
from papers.markdown import markdown_table
from papers.results import ResultRow, ResultsTable
from papers.study import measure_left, run_alone

CONSTANT, ADAPTIVE = f"eta = {ETA:g}", "AdaBoost's step"
STEPS: dict[str, Rule] = {CONSTANT: hedge(ETA), ADAPTIVE: adaptive_hedge()}
MIXTURES = ("AdaLPBoost", "average")
SHOWN = (0.05, 0.1, 0.3)
ALPHAS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
CHOSEN = [one for one in PROTOCOLS if one.dataset in ("adult", "compas") and one.learner != "network"]


def boosted_losses(protocol: Protocol, seed: int, data: Any, rule: Rule) -> Losses:
    """Return the losses of models boosted by a rule, where a mixture is chosen and where it is judged."""
    parts = split_parts(protocol, data.y, seed)
    train, chosen, test = parts[0], parts[-2], parts[-1]
    X = as_features(protocol.learner, data, train)
    classes, codes = np.unique(data.y, return_inverse=True)
    learner = make_learner(protocol.learner, data.categorical)
    seeds = np.random.SeedSequence(seed).generate_state(protocol.n_rounds + 1) >> np.uint32(1)
    fit = LearnerFit(learner, X[train], codes[train], classes, lambda number: int(seeds[number]))
    history = History(RowStore(np.full(train.size, 1 / train.size), protocol.n_rounds))
    boost(fit, history, reweigh=rule, stop=lambda *_: False, n_rounds=protocol.n_rounds)
    return Losses(
        *(
            failures(Pool(history.models, find_positive(classes, None), None).ask(X[rows], len(X[rows])), codes[rows])
            for rows in (chosen, test)
        )
    )


def measure(repeat: Repeat) -> list[ResultRow]:
    """Return the test CVaR of both steps, of the best mixture and of the average."""
    return list(measured(protocol_of(repeat), repeat.seed, load_dataset(repeat.dataset)))


def measured(protocol: Protocol, seed: int, data: Any) -> Iterator[ResultRow]:
    """Yield the same, given the data."""
    with warnings.catch_warnings():  # as in the paper, a learner stops after so many steps, converged or not
        warnings.filterwarnings("ignore", "lbfgs failed to converge")
        for name, rule in STEPS.items():
            yield from _rows(protocol, seed, name, boosted_losses(protocol, seed, data, rule))


def _rows(protocol: Protocol, seed: int, step: str, losses: Losses) -> Iterator[ResultRow]:
    n_models = losses.judged_on.shape[1]
    for alpha in ALPHAS:
        mixtures = (minimize_cvar(losses.chosen_on, alpha).mixture, np.full(n_models, 1 / n_models))
        for name, mixture in zip(MIXTURES, mixtures, strict=True):
            value = cvar_loss(losses.judged_on, alpha, mixture=mixture)
            yield ResultRow(
                EXPERIMENT, protocol.dataset, protocol.learner, f"{name}, {step}", seed, alpha,
                "cvar", "test", float(value), f"T={n_models}",
            )  # fmt: skip


def section(rows: ResultsTable) -> str:
    """Return what both steps reach, and the difference of seed and seed."""
    pairs = sorted({(row.dataset, row.learner) for row in rows})
    lines = []
    for (dataset, learner), mixture, alpha in product(pairs, MIXTURES, SHOWN):
        here = rows.where(dataset=dataset, learner=learner, alpha=alpha)
        constant, adaptive = _both(here, mixture)
        behind, error = difference(here, mixture)
        cells = [f"{constant.mean():.3f}", f"{adaptive.mean():.3f}", f"{behind:+.3f} ± {error:.3f}"]
        lines.append([dataset, learner, mixture, f"{alpha:g}", *cells])
    heads = ["data set", "learner", "mixture", "alpha", *STEPS, "difference"]
    return f"{_ABOUT}\n\n{markdown_table(heads, lines, n_words=3)}"


def difference(rows: ResultsTable, mixture: str = MIXTURES[0]) -> tuple[float, float]:
    """Return how much higher the CVaR is with AdaBoost's step, seed by seed, and the standard error of that."""
    constant, adaptive = _both(rows, mixture)
    return float((adaptive - constant).mean()), float((adaptive - constant).std(ddof=1) / np.sqrt(constant.size))


def _both(rows: ResultsTable, mixture: str) -> list[FloatArray]:
    values = [{row.seed: row.value for row in rows.where(method=f"{mixture}, {step}")} for step in STEPS]
    seeds = sorted(values[0].keys() & values[1].keys())
    return [np.array([one[seed] for seed in seeds]) for one in values]


_ABOUT = """## A constant step against AdaBoost's own

The paper finds that weights grow better by a constant step than by AdaBoost's, `log((1 - error) / error)` of each
round's model, which vanishes where a model is hardly better than chance on its weights. Test CVaR of the best mixture
and of the plain average by either, means over seeds; differences are AdaBoost's step less the constant one, seed by
seed, with their standard error. Made by `python -m papers.boosted_cvar.steps`; every number is in `steps.csv`."""


def reproduce(output: Path, *, n_seeds: int = 5, tell: ProgressCallback = lambda _progress: None) -> Path:
    """Run what ``steps.csv`` in the folder does not hold yet, and return its path."""
    wanted = [Repeat(one.dataset, one.learner, seed) for one in CHOSEN for seed in range(n_seeds)]
    return measure_left(wanted, measure, output / "steps.csv", tell=tell)


if __name__ == "__main__":
    sys.exit(run_alone(reproduce, "boosted_cvar", sys.argv[1:]))
