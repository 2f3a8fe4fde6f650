"""Whether what was chosen on some rows is surely better than something simpler, or may follow their noise.

The best of many rules is the best on the rows where it was chosen, in part by chance: corners of a curve that other
rows do not have. A simpler rule that meets the same goals is given up only where the other has less of what is made
small by more than the standard error of that difference allows, which is paired: both decide about the same rows.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from counterpoise._base.types import FloatArray
from counterpoise.goals import Rate
from counterpoise.goals.binding import BoundRates, Views, bind_rates
from counterpoise.mixtures.answers import TRAIN
from counterpoise.mixtures.choosing import Aim, Evidence
from counterpoise.mixtures.goal_rows import TalliedGoals
from counterpoise.solvers.result import FEASIBLE

SURELY = 2.0  # standard errors by which something must be better than what is simpler
# Standard errors by which what is usual must meet goals: at none it missed them on new rows where tuned rules did not.
_ROOM = 1.0
_TINY = 1e-300  # no weight at all, in parts of a goal's scale
ByRow = dict[str, FloatArray]  # by dataset, what each row adds to a difference


class Decider(NamedTuple):
    """Who decides about the rows of choice: models or rules, and their shares."""

    evidence: Evidence
    mixture: FloatArray

    def meets(self, aim: Aim, n_rows: FloatArray | None = None) -> bool:
        """Tell whether the goals are met by more than a standard error of each, beside what a confidence asks for."""
        if not aim.goals:
            return True
        answers = self.evidence.answers
        tallied = TalliedGoals.of(aim.goals, answers.views())
        limits = tallied.rows(answers.counter(tallied.views))
        scale = limits.scale
        room = _ROOM * np.sqrt(self._variances(tallied.bound(), scale, n_rows)) * scale
        return bool((limits.rows @ self.mixture + room <= limits.bounds + FEASIBLE * scale).all())

    def _variances(self, bound: BoundRates, scale: FloatArray, n_rows: FloatArray | None) -> FloatArray:
        """Return the variance of each goal: of the answers about its rows, those that add and those that take away.

        In parts of the squares of the goals' scales, which may be too small or too large to be written as they are.
        """
        variances = np.zeros(len(bound.constants))
        for name, raw in bound.weights.items():
            shares, weights = self.shares(name), sp.csr_array(raw.multiply(1.0 / scale[:, None]))
            for part in (weights.maximum(0.0), (-weights).maximum(0.0)):
                means = part @ shares / np.maximum(part.sum(axis=1), _TINY)
                squares = part.power(2) if n_rows is None or name != TRAIN else part.power(2).multiply(1.0 / n_rows)
                own = squares @ shares**2 - 2.0 * means * (squares @ shares) + means**2 * squares.sum(axis=1)
                variances += np.maximum(own, 0.0)
        return variances

    def shares(self, name: str) -> FloatArray:
        """Return how likely each answer about each row of a dataset is, one behind the other."""
        return self.evidence.answers.shares(name, self.mixture).ravel()


def is_surely_better(
    best: Decider,
    simple: Decider,
    aim: Aim,
    row_prices: FloatArray,
    n_rows: FloatArray | None = None,
    *,
    n_tuned: int = 1,
) -> bool:
    """Tell whether the best has surely less of what is made small than what is simpler; both meet the goals.

    Goals that bind make it dearer or cheaper on other rows, by their prices: so a row counts in the standard error by
    what it adds to the objective and, at these prices, to the goals. What the simple one leaves unused of the goals, as
    rates of one rule move in steps, is worth its price on any rows: that is compared with the noise of the objective.

    Parameters
    ----------
    best, simple : Decider
        On the same rows.
    aim : Aim
        The objective is a mean of losses, or a rate.
    row_prices : array
        The multipliers of the rows of the goals, at the best.
    n_rows : array, optional
        How many rows each labelled one stands for.
    n_tuned : int, default=1
        How many thresholds of disjoint rows were tuned, where the simple one tuned none. What each gains by chance adds
        up, and the standard error grows with the root of their number only.
    """
    views = simple.evidence.answers.views()
    more = _more_of_objective(best, simple, aim, views)
    noise, unused, scale = dict(more), 0.0, float(np.sqrt(n_tuned))
    if aim.goals and row_prices.any():
        for name, costs in TalliedGoals.of(aim.goals, views).row_costs(row_prices).items():
            added = _added(costs, best, simple, name)
            noise[name], unused = noise.get(name, 0.0) + added, unused - float(added.sum())
    gain = sum(float(part.sum()) for part in more.values())
    is_gain = exceeds(gain / scale, noise, views, n_rows)
    return is_gain or exceeds(unused / scale, more, views, n_rows)


def exceeds(gain: float, noise: ByRow, views: Views, n_rows: FloatArray | None = None) -> bool:
    """Tell whether a gain is above what the noise allows, given what each row adds to a difference."""
    variance, unit = 0.0, max((float(np.abs(added).max(initial=0.0)) for added in noise.values()), default=0.0) or 1.0
    for name, own in noise.items():
        weights, added = views.table(name).weights(), own / unit  # squares of what is tiny would be 0
        spread = added - weights / weights.sum() * added.sum()
        counts = n_rows if name == TRAIN and n_rows is not None else np.ones(1)  # rows whose weights are alike
        variance += float((spread**2 / counts).sum())
    return gain / unit > SURELY * float(np.sqrt(variance))


def _more_of_objective(best: Decider, simple: Decider, aim: Aim, views: Views) -> ByRow:
    """Return what each row adds to what the simple one has more of the objective."""
    if isinstance(aim.objective, Rate):
        costs = bind_rates([aim.objective.resolved(views)], views).row_weights(np.ones(1))
        return {name: _added(own, best, simple, name) for name, own in costs.items()}
    lost, least = (one.evidence.losses @ one.mixture for one in (simple, best))
    weights = views.table(TRAIN).weights()
    return {TRAIN: weights / weights.sum() * (lost - least)}


def _added(costs: FloatArray, best: Decider, simple: Decider, name: str) -> FloatArray:
    """Return what each row adds to a linear function of the answers, of the simple one less the best."""
    added = costs * (simple.shares(name) - best.shares(name))
    return np.asarray(added.reshape(simple.evidence.answers.tables[name].n_samples, -1).sum(axis=1))
