"""What is measured of boosted models whose losses are known: the paper's curves."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from counterpoise.metrics import cvar_curve, cvar_loss
from counterpoise.solvers import cvar_path, minimize_cvar
from papers.arrays import ByteArray, FloatArray

NAME = "boosted-cvar"
ALPHAS = np.linspace(0.01, 0.5, 50)
ERROR_ALPHAS = ALPHAS[4::5]  # the average loss hardly depends on alpha
LP_ALPHAS = (0.05, 0.1, 0.2, 0.3, 0.5)  # of Regularized LPBoost, a training each
ROUND_ALPHAS = (0.05, 0.1, 0.2)
ROUND_COUNTS = (1, 2, 5, 10, 20, 30, 50, 75, 100)
ETA, BETA = 1.0, 100.0
METHODS = ("ERM", "AdaBoost + Average", "AdaLPBoost", "Regularized LPBoost")


class Losses(NamedTuple):
    """Zero-one losses of the base models where the mixture is chosen and where it is judged."""

    chosen_on: ByteArray
    judged_on: ByteArray


def curves(losses: Losses) -> Iterator[tuple[str, float, float, float]]:
    """Yield method, alpha, test CVaR and average test loss for the three methods that share their models."""
    n_models = losses.judged_on.shape[1]
    optimal = [found.mixture for found in cvar_path(losses.chosen_on, ALPHAS)]
    fixed = {"ERM": np.eye(1, n_models)[0], "AdaBoost + Average": np.full(n_models, 1 / n_models)}
    for method, mixture in fixed.items():
        error = float(_mean_losses(losses.judged_on) @ mixture)
        for alpha, cvar in zip(ALPHAS, cvar_curve(losses.judged_on, ALPHAS, mixture=mixture), strict=True):
            yield method, float(alpha), float(cvar), error
    for alpha, mixture in zip(ALPHAS, optimal, strict=True):
        cvar = cvar_loss(losses.judged_on, float(alpha), mixture=mixture)
        yield "AdaLPBoost", float(alpha), cvar, float(_mean_losses(losses.judged_on) @ mixture)


def against_rounds(losses: Losses) -> Iterator[tuple[int, float, float]]:
    """Yield number of base models, alpha and test CVaR of AdaLPBoost."""
    for n_rounds in ROUND_COUNTS:
        if n_rounds <= losses.judged_on.shape[1]:
            for alpha in ROUND_ALPHAS:
                mixture = minimize_cvar(losses.chosen_on[:, :n_rounds], alpha).mixture
                yield n_rounds, alpha, cvar_loss(losses.judged_on[:, :n_rounds], alpha, mixture=mixture)


def _mean_losses(losses: ByteArray) -> FloatArray:
    return np.asarray(losses.mean(axis=0))
