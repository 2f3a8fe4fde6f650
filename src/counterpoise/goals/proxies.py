"""Goals on groups of which only probabilities are known: each row counts with its probability of being in the group.

Nobody may ask applicants for credit about their race, so lenders estimate it from name and place. A rate of a group is
then ``sum of p_i z_i / sum of p_i``, with p_i the probability that row i is in the group and z_i what is counted.
That is the rate of the group itself on average if, given what the probabilities were computed from, decisions and
labels do not depend on the group, and if the probabilities are right. Else it is off by the covariance of group and
decision given those inputs, of either sign, and no number of rows shows it (Chen, Kallus, Mao, Svacha and Udell 2019;
Kallus, Mao and Zhou 2022).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np

from counterpoise._base.checks import warn_caller
from counterpoise._base.types import AnyArray
from counterpoise.goals.equality import Distance
from counterpoise.goals.expressions import Absolute, Goal, Rate, Ratio, make_rate
from counterpoise.goals.parsing import as_goals
from counterpoise.goals.tables import columns_by_name, read_amounts
from counterpoise.goals.terms import Dataset, unknown

__all__ = ["ProxyAssumption", "proxy_goals"]

Proxies = Mapping[str, Mapping[str, str]]  # by group column: the column of probabilities of each group
_SUM = 1e-6  # by which probabilities of a row may differ from 1: decimals in a file


class ProxyAssumption(UserWarning):
    """Rates by probabilities of groups are those of the groups under an assumption that the data cannot show."""

    __module__ = "counterpoise.goals"


def proxy_goals(goals: Any, proxies: Proxies, data: Any) -> tuple[Goal, ...]:
    """Return goals on groups as goals on probabilities of being in them.

    Parameters
    ----------
    goals : goals or their texts
        On groups as usual, such as ``positive_rate(race=black) >= 0.8 * positive_rate(race=white)``. A phrase over all
        groups, such as ``max_difference(recall, by=race) <= 0.1``, becomes a goal for each pair.
    proxies : dict from str to dict from str to str
        For each group column, which need not exist, the column of probabilities of each group: ``{"race": {"black":
        "p_black", "white": "p_white"}}``.
    data : data frame, or dict of arrays
        The rows, or a part of them: probabilities of a column must lie in [0, 1] and sum to 1 in each row.

    Returns
    -------
    tuple of Goal
        Goals in which rows count with an amount, ``value=p_black``, for audits and to choose rules by. Pass the columns
        of probabilities as ``sensitive_features``, and ``largest_value=1``.

    Warns
    -----
    ProxyAssumption
        What must hold for these rates to be those of the groups. The data cannot show it.

    Examples
    --------
    >>> import warnings
    >>> from counterpoise.goals import proxy_goals
    >>> chances = {"p_black": [0.9, 0.2], "p_white": [0.1, 0.8]}
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     (goal,) = proxy_goals(
    ...         "positive_rate(race=black) >= 0.8 * positive_rate(race=white)",
    ...         {"race": {"black": "p_black", "white": "p_white"}},
    ...         chances,
    ...     )
    >>> print(goal)
    positive_rate(value=p_black) >= 0.8 * positive_rate(value=p_white)
    >>> print(caught[0].message)
    Rates by race are those of its groups only if, given what the probabilities were computed from, decisions and ...
    """
    check_proxies(proxies, columns_by_name(data))
    weighted = weighted_goals(as_goals(goals), proxies)
    warn_caller(assumption(proxies), ProxyAssumption)
    return weighted


def assumption(proxies: Iterable[str]) -> str:
    """Return what must hold for rates by probabilities of groups to be those of the groups."""
    return (
        f"Rates by {' and '.join(proxies)} are those of its groups only if, given what the probabilities were computed "
        "from, decisions and labels do not depend on the group. The rows cannot show whether that is so."
    )


def check_proxies(proxies: Proxies, columns: Mapping[str, AnyArray]) -> None:
    """Refuse probabilities that are none, or do not sum to 1 in each row."""
    for column, groups in proxies.items():
        if not isinstance(groups, Mapping) or len(set(groups.values())) < max(len(groups), 2):
            raise ValueError(
                f"proxies must name a column of probabilities for each group of {column!r}, two or more, as in "
                f"{{{column!r}: {{'a': 'p_a', 'b': 'p_b'}}}}; got {groups!r}."
            )
        total: Any = 0.0
        for name in groups.values():
            if name not in columns:
                raise unknown("column", name, columns, where=f" of probabilities of {column!r}")
            chances = read_amounts(columns[name], name, "proxies")
            outside = np.flatnonzero((chances < 0) | (chances > 1))
            if outside.size:
                raise ValueError(
                    f"Column {name!r} must hold probabilities, from 0 to 1; row {outside[0]} holds "
                    f"{chances[outside[0]]:g}."
                )
            total = total + chances
        off = np.flatnonzero(np.abs(total - 1.0) > _SUM)
        if off.size:
            raise ValueError(
                f"The probabilities of {column!r} must sum to 1 in each row; those of row {off[0]} sum to "
                f"{total[off[0]]:g} ({off.size} of {total.size} rows do not). Add a column for all other groups."
            )


def weighted_goals(goals: Iterable[Goal], proxies: Proxies) -> tuple[Goal, ...]:
    """Return goals in which rows count with their probabilities."""
    return tuple(dict.fromkeys(one for goal in goals for one in _weighted(goal, proxies)))


def _weighted(goal: Goal, proxies: Proxies) -> Iterator[Goal]:
    left: Any = goal.left
    if isinstance(left, Distance):  # an equality of each of several rates is one of each
        inner: list[Any] = [one.left for one in _weighted(replace(goal, left=left.rate), proxies)]
        target = _with_weights(left.target, proxies)
        yield from (replace(goal, left=Distance(one, target)) for one in inner)
        return
    by: tuple[str, ...] = getattr(left, "by", ())
    within: tuple[str, ...] = getattr(left, "within", ())
    right = _with_weights(goal.right, proxies)
    if not any(column in proxies for column in (*by, *within)):
        yield replace(goal, left=_with_weights(left, proxies), right=right)
        return
    if len(by) > 1 or within or left.min_rows:
        raise ValueError(
            f"{goal} needs the group of each row, and of {', '.join(proxies)} only probabilities are known. Write it "
            "over this column alone, without within and min_rows, or as a goal for each group."
        )
    for pair in permutations(proxies[by[0]].values(), 2):  # "a" and "b" are the groups of a phrase without data
        chosen = {**proxies, by[0]: dict(zip("ab", pair, strict=True))}
        for member in left.members():
            yield replace(goal, left=_with_weights(member, chosen), right=right)


def _with_weights(rates: Any, proxies: Proxies) -> Any:
    """Return rates of groups as rates of weighted rows."""
    if isinstance(rates, Rate):
        return make_rate(rates.constant, [term._replace(rows=_rows(term.rows, proxies)) for term in rates.terms])
    if isinstance(rates, Ratio):
        weighted = Ratio(_with_weights(rates.numerator, proxies), _with_weights(rates.denominator, proxies))
        return rates if weighted == rates else weighted  # which keeps its name
    if isinstance(rates, Absolute):
        return Absolute(_with_weights(rates.inner, proxies))
    return replace(rates, rows=_rows(rates.rows, proxies)) if hasattr(rates, "rows") else rates


def _rows(rows: Dataset, proxies: Proxies) -> Dataset:
    known = [(column, text) for column, text in rows.conditions if column in proxies]
    if not known:
        return rows
    ((column, text), *more) = known
    if more or rows.value is not None:
        other = more[0][0] if more else f"value={rows.value}"
        raise ValueError(
            f"Rows count with one column: {column}={text} counts with a probability, and so does {other}. Write a goal "
            "on one of them."
        )
    if text not in proxies[column]:
        raise unknown("value", text, proxies[column], where=f" of column {column!r}")
    others = tuple(one for one in rows.conditions if one[0] != column)
    return replace(rows, conditions=others).with_value(proxies[column][text])
