"""Rules that choose the next sample weights from the losses of the models so far.

Each is made by a function of its settings and takes a ``History``. Weights are new arrays, on the simplex. Nothing is
kept but in ``History.memory``, so that the same history, its memory included, leads to the same weights.
"""

import copy

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.boosting.rounds import History, Rule
from counterpoise.rules.choosing import outliers
from counterpoise.solvers import minimize_risk, regularized_weights
from counterpoise.theory.risks import Risk


def hedge(eta: float) -> Rule:
    """Weigh each sample by ``exp(eta * its losses so far)`` (Algorithm 2 of Zhai et al. 2021, line 5)."""

    def reweigh(history: History) -> FloatArray:
        # Zero-one losses add up to few different totals: an exponential for each of them, not for each sample.
        mass = np.bincount(history.totals, history.start, history.n_rounds + 1).astype(np.float64)
        return np.asarray(hedge_table(eta, mass)[history.totals] * history.start)

    return reweigh


def hedge_table(eta: float, mass: FloatArray) -> FloatArray:
    """Return the weight of a unit of mass by its number of failures, given the mass by that number."""
    most = int(np.flatnonzero(mass)[-1])
    table = np.exp(eta * np.minimum(np.arange(mass.size) - most, 0))
    return np.asarray(table / (table @ mass))


def adaptive_hedge() -> Rule:
    """Weigh by ``exp(sum of step * loss)`` with AdaBoost's step of each round, ``log((1 - error) / error)``.

    The remark below Algorithm 2 of Zhai et al. 2021 has it beside the constant step of ``hedge``: the error is the
    weighted loss of the round's model, which errs on half of the next weights. A model worse than chance has a step
    below zero.
    """

    def reweigh(history: History) -> FloatArray:
        errors = np.clip(history.weighted_losses, _PERFECT, 1 - _PERFECT)
        exponents = history.losses @ np.log((1 - errors) / errors)
        exponents -= exponents.max(where=history.start > 0, initial=-np.inf)
        weights = np.exp(np.minimum(exponents, 0.0)) * history.start
        return np.asarray(weights / weights.sum())

    return reweigh


_PERFECT = 1e-10  # error, a part of all weight, at which a model counts as perfect: its step stays finite


def hedge_groups(eta: float, groups: IntArray) -> Rule:
    """Weigh each group by ``exp(eta * its average losses so far)``, and samples equally within it (Group DRO)."""

    def reweigh(history: History) -> FloatArray:
        prior, failures = (np.bincount(groups, one) for one in (history.start, history.start * history.totals))
        return np.asarray(group_table(eta, prior, failures)[groups] * history.start)

    return reweigh


def group_table(eta: float, prior: AnyArray, failures: AnyArray) -> FloatArray:
    """Return the weight of a unit of mass by its group, given the mass and the failures by mass of each group."""
    is_live = prior > 0  # a group may consist of outliers
    means = np.divide(failures, prior, out=np.zeros(prior.size), where=is_live)
    weights = np.where(is_live, np.exp(eta * (means - means.max())), 0.0)
    return np.asarray(weights / weights.sum() / np.where(is_live, prior, 1.0))


def dual_of(risk: Risk, tol: float = 1e-4) -> Rule:
    """Take the dual weights of the mixture problem: those on which the best mixture so far is worst (Algorithm 1).

    ``tol`` is the gap of that problem as a part of the risk's size.
    """

    def reweigh(history: History) -> FloatArray:
        weights = minimize_risk(history.losses, risk, sample_weight=history.start, tol=tol * risk.size).weights
        return weights if risk.is_worst_case else weights / weights.sum()

    return reweigh


def regularized_dual(alpha: float, beta: float, tol: float = 1e-4) -> Rule:
    """Take the entropy-regularized dual weights, which move less from round to round (eq. 8)."""

    def reweigh(history: History) -> FloatArray:
        last = history.memory.get(_MIXTURE, np.empty(0))
        # The mixture of the round before, with a little room for the new model, is a start in the interior.
        follows = last.size > 0 and last.size + 1 == history.n_rounds
        start = np.append(last * (1 - _FRESH), _FRESH) if follows else None
        found = regularized_weights(history.losses, alpha, beta, sample_weight=history.start, tol=tol, start=start)
        history.memory[_MIXTURE] = found.mixture
        return found.weights

    return reweigh


_MIXTURE = "mixture"  # in the memory: the one that a solve found
_FRESH = 0.1  # share of the newest model in the mixture that a solve starts from


def without_outliers(rule: Rule, fraction: float) -> Rule:
    """Let a rule choose among the samples that are left without those of the highest losses (DORO)."""

    def reweigh(history: History) -> FloatArray:
        kept = np.where(outliers(history.totals, history.start, fraction), 0.0, history.start)
        other = copy.copy(history)  # with the same memory
        other.start = kept / kept.sum()
        return rule(other)

    return reweigh
