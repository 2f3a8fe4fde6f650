"""Rules that choose the next sample weights from the losses of the models so far.

Each is made by a function of its settings and takes a ``History``. Weights are new arrays, on the simplex. Nothing is
kept but in ``History.memory``, so that the same history, its memory included, leads to the same weights.
"""

import copy

import numpy as np

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.boosting.rounds import History, Rule
from counterpoise.boosting.row_store import dual_weights
from counterpoise.solvers import regularized_weights
from counterpoise.theory.risks import Risk


def hedge(eta: float) -> Rule:
    """Weigh each sample by ``exp(eta * its losses so far)`` (Algorithm 2 of Zhai et al. 2021, line 5)."""

    def reweigh(history: History) -> FloatArray:
        rows = history.rows
        return np.asarray(hedge_factors(eta, rows.mass_by_failures())[rows.totals] * rows.start)

    return reweigh


def hedge_factors(eta: float, mass_by_failures: FloatArray) -> FloatArray:
    """Return what the weight of a row is multiplied by, given how many models fail on it.

    Zero-one losses add up to few different totals: an exponential for each of them, not for each sample.
    """
    largest = int(np.flatnonzero(mass_by_failures)[-1])
    factors = np.exp(eta * np.minimum(np.arange(mass_by_failures.size) - largest, 0))
    return np.asarray(factors / (factors @ mass_by_failures))


def adaptive_hedge() -> Rule:
    """Weigh by ``exp(sum of step * loss)`` with AdaBoost's step of each round, ``log((1 - error) / error)``.

    The remark below Algorithm 2 of Zhai et al. 2021 has it beside the constant step of ``hedge``: the error is the
    weighted loss of the round's model, which errs on half of the next weights. A model worse than chance has a step
    below zero.
    """

    def reweigh(history: History) -> FloatArray:
        errors = np.clip(history.weighted_losses, _PERFECT, 1 - _PERFECT)
        exponents = history.rows.losses @ np.log((1 - errors) / errors)
        exponents -= exponents.max(where=history.rows.start > 0, initial=-np.inf)
        weights = np.exp(np.minimum(exponents, 0.0)) * history.rows.start
        return np.asarray(weights / weights.sum())

    return reweigh


_PERFECT = 1e-10  # error, a part of all weight, at which a model counts as perfect: its step stays finite


def hedge_groups(eta: float, groups: IntArray) -> Rule:
    """Weigh each group by ``exp(eta * its average losses so far)``, and samples equally within it (Group DRO)."""

    def reweigh(history: History) -> FloatArray:
        mass, failures = (np.bincount(groups, one) for one in (history.rows.start, history.rows.failures))
        is_live = mass > 0  # a group may consist of outliers
        means = np.divide(failures, mass, out=np.zeros(mass.size), where=is_live)
        weights = np.where(is_live, np.exp(eta * (means - means.max())), 0.0)
        factors = weights / weights.sum() / np.where(is_live, mass, 1.0)
        return np.asarray(factors[groups] * history.rows.start)

    return reweigh


def dual_of(risk: Risk, tol: float = 1e-4) -> Rule:
    """Take the dual weights of the mixture problem: those on which the best mixture so far is worst (Algorithm 1).

    ``tol`` is the gap of that problem as a part of the risk's size.
    """

    def reweigh(history: History) -> FloatArray:
        return dual_weights(history.rows, risk, tol * risk.size)

    return reweigh


def regularized_dual(alpha: float, beta: float, tol: float = 1e-9) -> Rule:
    """Take the entropy-regularized dual weights, which move less from round to round (eq. 8).

    Newton's method gets to so small a gap in next to no time, and the weights are then exact.
    """

    def reweigh(history: History) -> FloatArray:
        rows, last = history.rows, history.memory.get(_MIXTURE, np.empty(0))
        # The mixture of the round before, with a little room for the new model, is a start in the interior.
        follows = last.size > 0 and last.size + 1 == history.n_rounds
        start = np.append(last * (1 - _FRESH), _FRESH) if follows else None
        solution = regularized_weights(rows.losses, alpha, beta, sample_weight=rows.start, tol=tol, start=start)
        history.memory[_MIXTURE] = solution.mixture
        return solution.weights

    return reweigh


_MIXTURE = "mixture"  # in the memory: the mixture of the last solve
_FRESH = 0.1  # share of the newest model in the mixture that a solve starts from


def without_outliers(rule: Rule, fraction: float) -> Rule:
    """Let a rule choose among the samples that are left without those of the highest losses (DORO)."""

    def reweigh(history: History) -> FloatArray:
        other = copy.copy(history)  # with the same memory
        other.rows = history.rows.without_outliers(fraction)
        return rule(other)

    return reweigh
