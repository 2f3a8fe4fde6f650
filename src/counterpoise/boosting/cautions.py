"""What a booster says that had nothing to boost."""

from counterpoise._base.checks import warn_caller
from counterpoise.mixtures.cautions import Caution

_WEAKER = "a weaker learner, as by a larger min_samples_leaf or a smaller max_depth"


class NothingToLearn(Caution):
    """A base learner makes no error on the rows it is fitted to, so that boosting ends before it begins."""


def warn_of_no_errors(n_models: int, other_way: str = "") -> None:
    """Say that a learner left nothing to boost."""
    warn_caller(
        f"The base learner makes no error on the rows it is fitted to: no row weighs more than another, and boosting "
        f"ended with {n_models} model{'s' if n_models > 1 else ''}. Give {_WEAKER}{other_way}.",
        NothingToLearn,
    )
