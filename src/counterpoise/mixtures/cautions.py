"""What a fit says that ended well by its own measure, and not as its user would expect."""

import warnings
from typing import Any

_FAR = 0.1  # part of the rows by which a mixture may err more often than a model alone before it is said


class Caution(UserWarning):
    """What classifiers warn of."""


class CostlyTail(Caution):
    """A mixture is far worse on average than one of its models alone."""


class Everybody(Caution):
    """Rules that call everybody the same."""


def warn_of_everybody(label: Any, *, stacklevel: int) -> None:
    """Say that all are called one class, whatever their scores."""
    warnings.warn(
        f"The goals are met by calling everybody {label!r}, whatever their scores. Is that the positive class, and are "
        "scores higher for it? pos_label (positive on the command line) names it.",
        Everybody,
        stacklevel=stacklevel + 1,
    )


def warn_of_deferring_all(cost: float | None, *, stacklevel: int) -> None:
    """Say that nobody is decided about."""
    warnings.warn(
        f"Everybody is deferred: with defer_cost={cost} that is the least loss. Raise it, or limit how many are, as "
        "in the goal defer_rate(train) <= 0.1.",
        Everybody,
        stacklevel=stacklevel + 1,
    )


def warn_of_the_average(mixed: float, alone: float, whose: str, aim: Any, *, stacklevel: int) -> None:
    """Say where a mixture chosen for an ``Aim`` errs far more often than a model alone, and what limits that."""
    if mixed <= alone + _FAR:
        return
    has_tail = getattr(aim.objective, "tail_fraction", None) != 1.0
    ways = [f"set budget={_FAR / 2}, which limits it"] if has_tail and aim.budget is None else []
    ways += ["take a larger alpha"] if has_tail else []
    ways += ["loosen the goals"] if aim.goals else []
    price = " and ".join([*(["the tail"] if has_tail else []), *(["the goals"] if aim.goals else [])])
    warnings.warn(
        f"On the rows where it was chosen the mixture errs on {mixed:.1%} on average, {whose} alone on "
        f"{max(alone, 0.0):.1%}: that is the price of {price}. To pay less {', or '.join(ways)}.",
        CostlyTail,
        stacklevel=stacklevel + 1,
    )
