"""The usual phrases of fairness, over two groups or more, as goals."""

from collections.abc import Callable, Iterable, Sequence
from itertools import permutations

from counterpoise._base.checks import check_fraction, check_number
from counterpoise.goals.expressions import Rate
from counterpoise.goals.goal import Goal
from counterpoise.goals.rates import false_positive_rate, positive_rate, recall
from counterpoise.goals.rows import Dataset


def demographic_parity(groups: Sequence[Dataset], *, within: float = 0.05) -> list[Goal]:
    """Ask that positive predictions be about as frequent in each group: no two rates differ by more than ``within``.

    Parameters
    ----------
    groups : sequence of Dataset
        Two or more, as ``Dataset.by`` gives them.
    within : float in [0, 1), default=0.05

    Returns
    -------
    list of Goal
        Two for each pair of groups.

    Examples
    --------
    >>> from counterpoise.goals import Dataset, demographic_parity
    >>> for goal in demographic_parity(Dataset("train").by(sex=["F", "M"]), within=0.1):
    ...     print(goal)
    positive_rate(train, sex=F) <= positive_rate(train, sex=M) + 0.1
    positive_rate(train, sex=M) <= positive_rate(train, sex=F) + 0.1
    """
    return _alike(positive_rate, groups, within)


def equal_opportunity(groups: Sequence[Dataset], *, within: float = 0.05) -> list[Goal]:
    """Ask that no two groups' recalls differ by more than ``within`` (Hardt et al. 2016); as ``demographic_parity``.

    Examples
    --------
    >>> from counterpoise.goals import Dataset, equal_opportunity
    >>> print(equal_opportunity(Dataset("train").by(sex=["F", "M"]))[0])
    recall(train, sex=F) <= recall(train, sex=M) + 0.05
    """
    return _alike(recall, groups, within)


def equalized_odds(groups: Sequence[Dataset], *, within: float = 0.05) -> list[Goal]:
    """Ask that no two groups' recalls and false positive rates differ by more; see ``demographic_parity``.

    Examples
    --------
    >>> from counterpoise.goals import Dataset, equalized_odds
    >>> for goal in equalized_odds(Dataset("train").by(sex=["F", "M"]))[::2]:
    ...     print(goal)
    recall(train, sex=F) <= recall(train, sex=M) + 0.05
    false_positive_rate(train, sex=F) <= false_positive_rate(train, sex=M) + 0.05
    """
    return _alike(recall, groups, within) + _alike(false_positive_rate, groups, within)


def eighty_percent_rule(groups: Sequence[Dataset], *, ratio: float = 0.8) -> list[Goal]:
    """Ask that every group be favoured at least ``ratio`` times as often as any other.

    Parameters
    ----------
    groups : sequence of Dataset
        Two or more, as ``Dataset.by`` gives them.
    ratio : float in (0, 1], default=0.8

    Examples
    --------
    >>> from counterpoise.goals import Dataset, eighty_percent_rule
    >>> print(eighty_percent_rule(Dataset("train").by(sex=["F", "M"]))[0])
    positive_rate(train, sex=F) >= 0.8 * positive_rate(train, sex=M)
    """
    check_number(ratio, "ratio", "(0, 1]")
    return [positive_rate(one) >= ratio * positive_rate(other) for one, other in _pairs(groups)]


def _alike(rate: Callable[[Dataset], Rate], groups: Sequence[Dataset], within: float) -> list[Goal]:
    within = check_fraction(within, "within")
    return [rate(one) <= rate(other) + within for one, other in _pairs(groups)]


def _pairs(groups: Sequence[Dataset]) -> list[tuple[Dataset, Dataset]]:
    found = list(permutations(groups, 2)) if isinstance(groups, Iterable) else []
    if not found or not all(isinstance(group, Dataset) for pair in found for group in pair):
        raise TypeError(f"groups must be two Datasets or more, as train.by(sex=['F', 'M']) gives; got {groups!r}.")
    return found
