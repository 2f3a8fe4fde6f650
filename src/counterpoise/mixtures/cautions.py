"""What a fit says that ended well by its own measure, and not as its user would expect."""

import warnings

_FAR = 0.1  # part of the rows by which a mixture may err more often than a model alone before it is said


class Caution(UserWarning):
    """What classifiers warn of."""


class CostlyTail(Caution):
    """A mixture is far worse on average than one of its models alone."""


def warn_of_the_average(mixed: float, alone: float, whose: str, *, has_goals: bool, stacklevel: int) -> None:
    """Say where a mixture errs far more often than a model alone, and what limits that."""
    if mixed <= alone + _FAR:
        return
    warnings.warn(
        f"On the rows where it was chosen the mixture errs on {mixed:.1%} on average, {whose} alone on {alone:.1%}: so "
        f"much it pays for the tail{' and the goals' if has_goals else ''}. To pay less set budget={_FAR / 2}, which "
        f"limits it, or a larger alpha{', or loosen the goals' if has_goals else ''}.",
        CostlyTail,
        stacklevel=stacklevel + 1,
    )
