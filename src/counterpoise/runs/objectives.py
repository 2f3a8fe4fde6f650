"""What a fit made as small as possible: read from its model, in words, and measured."""

from typing import Any

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.goals import Dataset, Rate, as_objective, error_rate
from counterpoise.mixtures.pool import groups_of
from counterpoise.runs.data import Part
from counterpoise.runs.fitting import last_step, mixes
from counterpoise.runs.quantities import CVAR, OWN, RATE, WORST_GROUP
from counterpoise.theory.risks import CVaR, WorstGroup


def aim_of(model: Any) -> str | Rate:
    """Return what a model was chosen or trained to make small: one of the words above, or a rate."""
    estimator = last_step(model)
    if mixes(model):
        is_chosen = getattr(estimator, "mixture", "optimal") == "optimal"
        aim = estimator.objective_ if is_chosen else OWN
        return CVAR if isinstance(aim, CVaR) else WORST_GROUP if isinstance(aim, WorstGroup) else aim
    if hasattr(estimator, "objective_value_"):  # trained inside goals, for the error unless another rate is named
        return error_rate(Dataset("train")) if estimator.objective is None else as_objective(estimator.objective)
    return OWN


def aim_words(aim: str | Rate) -> dict[str, str]:
    """Return the kind of an aim, and the text of a rate."""
    return {"kind": RATE, "text": str(aim)} if isinstance(aim, Rate) else {"kind": aim}


def worst_group_loss(losses: FloatArray, part: Part) -> float:
    """Return the average loss of the group that has the largest."""
    groups, _ = groups_of(part.groups, len(part))
    weights = np.ones(len(part)) if part.weights is None else part.weights
    total = np.bincount(groups, weights)
    shares = np.divide(np.bincount(groups, weights * losses), total, out=np.zeros(total.size), where=total > 0)
    return float(shares.max())
