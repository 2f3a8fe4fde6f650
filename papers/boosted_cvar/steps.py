"""The remark below Algorithm 2 of Zhai et al. (2021): a constant step of the weights does better than AdaBoost's own.

The tables of ``experiment`` are boosted with both.
"""

import warnings
from collections.abc import Iterator, Sequence
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
from counterpoise.solvers import minimize_cvar
from papers.arrays import FloatArray
from papers.boosted_cvar.curves import ETA, NAME, Losses
from papers.boosted_cvar.experiment import (
    PROTOCOLS,
    Protocol,
    Repeat,
    as_features,
    make_learner,
    protocol_of,
    split_parts,
)
from papers.experiments import Blocks, Experiment, values, with_error
from papers.markdown import markdown_table
from papers.tables import ResultRow, ResultsTable

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
                NAME, protocol.dataset, protocol.learner, f"{name}, {step}", seed, alpha,
                "cvar", "test", float(value), f"T={n_models}",
            )  # fmt: skip


def gains(rows: ResultsTable, alpha: float, mixture: str = MIXTURES[0]) -> dict[tuple[str, str], FloatArray]:
    """Return for each data set and learner how much higher the CVaR is with AdaBoost's step, seed by seed."""
    known = values((row for row in rows if row.alpha == alpha), "dataset", "learner", "method")
    pairs = dict.fromkeys(key[:2] for key in known)
    return {pair: known[*pair, f"{mixture}, {ADAPTIVE}"] - known[*pair, f"{mixture}, {CONSTANT}"] for pair in pairs}


def blocks(rows: ResultsTable) -> Blocks:
    """Return the differences at some alphas."""
    by_alpha = {alpha: gains(rows, alpha) for alpha in SHOWN}
    lines = [[*pair, *(with_error(by_alpha[alpha][pair], sign="+") for alpha in SHOWN)] for pair in by_alpha[SHOWN[0]]]
    return {"table": markdown_table(["set", "learner", *(f"alpha {alpha:g}" for alpha in SHOWN)], lines, n_words=2)}


def wanted(datasets: Sequence[str], n_seeds: int) -> list[Repeat]:
    """Return the repeats."""
    return [
        Repeat(one.dataset, one.learner, seed) for one in CHOSEN if one.dataset in datasets for seed in range(n_seeds)
    ]


EXPERIMENT = Experiment(
    "boosted-cvar-steps", "a constant step beside AdaBoost's", wanted, measure, blocks, ("compas", "adult"), 5
)
