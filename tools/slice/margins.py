"""The rule of least cost whose goals hold on new rows with a stated probability, in one pass over a grid of targets."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.rules.margins import normal_draws, share_inside, unless_few_rows
from tools.slice.cells import Cells, Layout, Rows
from tools.slice.rates import ALLOWED, FAR, Evaluator, Values, risk_of
from tools.slice.search import TARGETS, Pool, best_of, find_pool, near_frontier

N_RESAMPLES = 60
_MOST_OPTIMISM = 3.0  # standard errors
_REFINED_AT = np.array([-np.inf, 0.5, 1.0, 1.5, 2.0])  # targets whose thresholds are counted more finely
# Of the most that a rule of the score tells about labels: rules below are nearly trivial, and no choice at any bound.
_LEAST_INFORMED = 0.25
_MOST_RULES = 2000  # whose choice is repeated on resamples


class SafeRule(NamedTuple):
    """The rule that was chosen, and how sure its goals are."""

    rule: IntArray
    cost: float
    share: float  # the probability that all goals hold on new rows
    is_reached: bool
    shares: FloatArray  # the same at each target


class Choice(NamedTuple):
    """A rule with its thresholds, and the cells that it was chosen on."""

    thresholds: FloatArray
    safe: SafeRule
    evaluator: Evaluator


def choose(rows: Rows, goals: Any, names: Any, confidence: float = 0.9, **options: Any) -> Choice:
    """Count the rows and choose a rule; where a place holds many scores, count those near good rules again, finer."""
    layout = Layout.of([rows])
    evaluator = Evaluator(Cells.count(rows, layout), goals, names, amounts=list(rows.amounts), **options)
    pool = find_pool(evaluator)
    if not layout.is_exact:
        good = pool.rules[np.unique(pool.best(_REFINED_AT))]
        thresholds = np.array([evaluator.thresholds(rule) for rule in good])
        at = np.searchsorted(layout.edges, thresholds[np.isfinite(thresholds)])
        layout = layout.refined(rows.scores, np.unique([at, at + 1]))
        evaluator = Evaluator(Cells.count(rows, layout), goals, names, amounts=list(rows.amounts), **options)
        pool = find_pool(evaluator, start=np.array([evaluator.places(own) for own in thresholds]))
    safe = safe_rule(evaluator, pool, confidence)
    return Choice(evaluator.thresholds(safe.rule), safe, evaluator)


def safe_rule(evaluator: Evaluator, pool: Pool, confidence: float = 0.9, seed: int = 0) -> SafeRule:
    """Return the cheapest rule of the pool whose goals hold together on new rows with the confidence."""
    informed = evaluator.informedness(pool.rules)
    pool = near_frontier(pool.only(informed >= _LEAST_INFORMED * informed.max()), _MOST_RULES)
    errors = pool.values.errors / _person_factor(evaluator, pool)
    z = pool.values.z * _person_factor(evaluator, pool)
    now = pool.values._replace(z=z, risk=risk_of(z))
    places, gained = best_of(now, TARGETS), np.zeros((TARGETS.size, z.shape[1]))
    for sums in evaluator.cells.resamples(N_RESAMPLES, np.random.default_rng(seed)):
        values = evaluator.resampled_values(pool.rules, sums)
        other = np.clip(-values[:, evaluator.random] / errors, -FAR, FAR)
        violation = np.where(values > ALLOWED, values, 0.0).sum(axis=1)
        again = best_of(Values(now.cost, violation, other, risk_of(other), errors), TARGETS)
        shift = other - z
        gained += shift[again] - shift[places]
    optimism = np.clip(gained / N_RESAMPLES, 0.0, _MOST_OPTIMISM)
    at_level = pool.rules[best_of(now, np.array([ndtri(confidence)]))[0]]
    draws = normal_draws(evaluator.covariance(at_level, evaluator.cells.by_person))
    inside = unless_few_rows(z[places] - optimism, evaluator.least_rows()[None])
    shares = np.array([share_inside(draws, slack) for slack in inside])
    shares[now.violation[places] > 0] = 0.0
    reached = np.flatnonzero(shares >= confidence)
    at = int(reached[0]) if reached.size else int(shares.argmax())
    rule, cost = pool.rules[places[at]], float(now.cost[places[at]])
    return SafeRule(rule, cost, share=float(shares[at]), is_reached=bool(reached.size), shares=shares)


def _person_factor(evaluator: Evaluator, pool: Pool) -> FloatArray:
    """Return by how much slacks shrink because rows of a person are alike, measured at one rule."""
    if evaluator.cells.by_person is None:
        return np.ones(pool.values.z.shape[1])
    rule = pool.rules[pool.best(np.zeros(1))[0]]
    by_row, by_person = evaluator.covariance(rule), evaluator.covariance(rule, evaluator.cells.by_person)
    factor = np.sqrt(by_person.diagonal() / np.maximum(by_row.diagonal(), 1e-300))
    return np.asarray(1.0 / np.maximum(factor, 1.0))
