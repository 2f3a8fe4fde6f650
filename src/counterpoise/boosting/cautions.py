"""What a fit says that ended well by its own measure, and not as its user would expect."""

import warnings
from typing import Any

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.mixtures.choosing import Evidence

_FAR = 0.1  # part of the rows by which a mixture may err more often than its first model before it is said
_WEAKER = "a weaker learner, as by a larger min_samples_leaf or a smaller max_depth"


class Caution(UserWarning):
    """What boosters warn of."""


class CostlyTail(Caution):
    """A mixture is far worse on average than the first of its models."""


class NothingToLearn(Caution):
    """A base learner makes no error on the rows it is fitted to, so that boosting ends before it begins."""


def warn_of_the_average(evidence: Evidence, mixture: FloatArray, goals: Any) -> None:
    """Say where a mixture errs far more often than its first model, and what limits that."""
    means = np.average(evidence.losses, axis=0, weights=evidence.sample_weight)
    first, mixed = float(means[0]), float(means @ mixture)
    if mixed <= first + _FAR:
        return
    others = " and the goals" if goals else ""
    warnings.warn(
        f"On the rows where it was chosen the mixture errs on {mixed:.1%} on average, its first model alone on "
        f"{first:.1%}: so much it pays for the tail{others}. To pay less set budget={_FAR / 2}, which limits it, or a "
        f"larger alpha{', or loosen the goals' if goals else ''}.",
        CostlyTail,
        stacklevel=4,
    )


def warn_of_no_errors(n_models: int, other_way: str = "") -> None:
    """Say that a learner left nothing to boost."""
    warnings.warn(
        f"The base learner makes no error on the rows it is fitted to: no row weighs more than another, and boosting "
        f"ended with {n_models} model{'s' if n_models > 1 else ''}. Give {_WEAKER}{other_way}.",
        NothingToLearn,
        stacklevel=3,
    )
