"""Metrics of one's own: defined by those there are, and known by name wherever those are."""

import re
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeAlias

from counterpoise.goals.arguments import OWN_WORDS
from counterpoise.goals.expressions import Rate, Ratio
from counterpoise.goals.rates import MEANINGS, METRICS, RATIOS, TABLED, named
from counterpoise.goals.rows import DEFAULT, Cell, Dataset, rows_of
from counterpoise.goals.terms import Count, Metric
from counterpoise.goals.wording import WORD

Definition: TypeAlias = Callable[[Dataset], Rate | Ratio]
_BUILT_IN = frozenset([*METRICS, *RATIOS])


def register_metric(define: Definition, /, *, name: str | None = None) -> Callable[..., Rate | Ratio]:
    """Make a metric of your own known by its name: to goals and their texts, tables of rates, displays and reports.

    Parameters
    ----------
    define : callable
        Takes rows, and returns a rate or a ratio that is made of metrics there are, on all of these rows or on those of
        a label or of the baseline's answer.
    name : str, optional
        Default: the name of the function. A metric of your own may be defined anew; goals made before keep theirs.

    Returns
    -------
    callable
        The metric, with the arguments of ``positive_rate``. ``register_metric`` can be written as a decorator.

    Examples
    --------
    >>> from counterpoise.goals import (
    ...     false_negatives, false_positives, forget_metric, parse_goal, register_metric)
    >>> @register_metric
    ... def cost(rows):
    ...     return 5 * false_negatives(rows) + false_positives(rows)
    >>> print(cost("train", sex="F") <= 0.3)
    cost(train, sex=F) <= 0.3
    >>> parse_goal("cost(train) <= 0.3") == (5 * false_negatives("train") + false_positives("train") <= 0.3)
    True
    >>> forget_metric("cost")
    """
    name = getattr(define, "__name__", None) if name is None else name
    if not isinstance(name, str) or not re.fullmatch(WORD, name) or name in {"with", "abs", *OWN_WORDS, *_BUILT_IN}:
        raise ValueError(f"The name of a metric must be a word that no metric has yet; got {name!r}.")
    found = define(Dataset())
    if isinstance(found, Ratio):
        for rate in (found.numerator, found.denominator):
            _as_metric(name, rate)  # which says what is wrong
        added: dict[str, Any] = {name: lambda rows: Ratio(*_sides(define(rows)), f"{name}({rows})")}
    else:
        added = {name: _as_metric(name, found)}
    forget_metric(name)
    (RATIOS if isinstance(found, Ratio) else METRICS).update(added)
    TABLED.append(name)
    MEANINGS[name] = (define.__doc__ or "a metric of your own").strip().partition("\n")[0]

    def metric(dataset: Dataset | str = DEFAULT, /, *ranges: str, of: Any = None, **where: Any) -> Rate | Ratio:
        return named(name, rows_of(dataset, ranges, of, where))

    update_wrapper(metric, define).__name__ = name
    return metric


def own_metrics() -> list[str]:
    """Return the names that were registered."""
    return [name for name in TABLED if name not in _BUILT_IN]


def _sides(ratio: Any) -> tuple[Rate, Rate]:
    return ratio.numerator, ratio.denominator


def forget_metric(name: str) -> None:
    """Take back what ``register_metric`` did, where it did; goals made of the metric keep it.

    Examples
    --------
    >>> from counterpoise.goals import false_positives, forget_metric, parse_goal, register_metric
    >>> alarms = register_metric(false_positives, name="alarms")
    >>> forget_metric("alarms")
    >>> parse_goal("alarms(train) <= 0.1")
    Traceback (most recent call last):
    ...
    counterpoise.goals.UnknownName: Unknown metric 'alarms'. ...
    """
    if name in own_metrics():
        TABLED.remove(name)
        METRICS.pop(name, None)
        MEANINGS.pop(name, None)
        RATIOS.pop(name, None)


def _as_metric(name: str, rate: Any) -> Metric:
    """Return a rate on the rows of ``train`` as what it counts on any rows."""
    if not isinstance(rate, Rate) or not rate.terms:
        raise TypeError(f"The metric {name} must return a rate or a ratio, as error_rate(rows) is; got {rate!r}.")
    every = [Count(sign, Cell(), rate.constant) for sign in (True, False, None)] if rate.constant else []  # 1
    if any(one.called is not None for one in rate.counted):
        raise ValueError(f"The metric {name} must not name a class: who uses it does, as in {name}(train, of=cat).")
    counted = [(one, _cell(name, one.rows), _cell(name, one.out_of)) for one in rate.counted]
    return Metric(name, (*every, *(Count(one.positive, cell, one.coefficient, whole) for one, cell, whole in counted)))


def _cell(name: str, rows: Dataset) -> Cell:
    if rows.conditions or rows.ranges or rows.name != DEFAULT:
        raise ValueError(
            f"The metric {name} must speak of the rows that it is given, all or by label and baseline; it speaks of "
            f"{rows}. Goals can add up rates on groups and datasets themselves."
        )
    return Cell(rows.label, rows.baseline)
