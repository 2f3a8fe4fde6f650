"""Rows that a person decides about: how many there are, and what leaving more or fewer to a person would buy."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.goals import Goal, InfeasibleGoals, parse_goal
from counterpoise.metrics import cvar_loss
from counterpoise.mixtures.cautions import Caution
from counterpoise.runs.fitted import has_rules, last_step
from counterpoise.runs.judging import Judge
from counterpoise.runs.quantities import BOUGHT, DECIDED_ERROR, DEFER_RATE, MIXTURE
from counterpoise.runs.scoring import Number

_RATES = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)  # of a curve


def error_and_deferral(judge: Judge, method: str, split: str, losses: FloatArray) -> dict[str, float]:
    """Return how many rows are decided wrongly, deferred, and wrong among the decided, given the losses of all."""
    weights, deferred = judge.data.splits[split].mass, judge.deferred(method, split)
    mean = float(np.average(losses, weights=weights))
    if deferred is None or judge.deferral is None:
        return {"error": mean}
    left = float(np.average(deferred, weights=weights))
    error = max(mean - judge.deferral.cost * left, 0.0)
    decided = {DECIDED_ERROR: error / (1.0 - left)} if left < 1 else {}
    return {"error": error, DEFER_RATE: left, **decided}


def deferral_curve(judge: Judge, splits: list[str]) -> Iterator[Number]:
    """Yield what the best mixtures that defer at most so many rows do on some splits; nothing is trained.

    The tail is that of the settings. Goals on the rate of all deferred rows make room for those of the curve.
    """
    if judge.deferral is None or not has_rules(judge.model):
        return
    for rate in _rates(judge):
        chosen = _limited(judge, rate)
        for split in splits if chosen is not None else ():
            for name, value in _numbers(chosen, split).items():
                yield Number(MIXTURE, BOUGHT + name, split, value, f"rate={rate!r}")


def _numbers(judge: Any, split: str) -> dict[str, float]:
    losses, weights = judge.row_losses(split)[MIXTURE], judge.data.splits[split].mass
    tail = cvar_loss(losses, float(judge.settings.alpha), weights)
    return {"tail": tail, **error_and_deferral(judge, MIXTURE, split, losses)}


def _limited(judge: Judge, rate: float) -> Judge | None:
    """Return what judges the best mixture that defers at most so many rows; None where there is none."""
    limit, model = _limit(rate), last_step(judge.model)
    goals = [goal for goal in model.goals_ if goal.with_confidence(None).with_bound(rate) != limit]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Caution)
        try:
            chosen = model.rebalance(goals=[*goals, limit])
        except InfeasibleGoals:
            return None
    return Judge(judge.settings, judge.data, chosen, ())


def _limit(rate: float) -> Goal:
    return parse_goal(f"defer_rate(train) <= {rate!r}")


def _rates(judge: Judge) -> list[float]:
    """Return the rates of a curve, the bound that was asked for among them."""
    goals = [goal.with_confidence(None) for goal in judge.estimator.goals_]
    asked = [goal.bound for goal in goals if goal == _limit(float(goal.bound))]
    return sorted({*_RATES, *map(float, asked)})
