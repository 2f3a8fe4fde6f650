"""Rates on several classes: one called another, costs of that, and averages over all classes."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from counterpoise.goals.expressions import Rate, Ratio
from counterpoise.goals.rates import METRICS, RATIOS, MetricFunction, named
from counterpoise.goals.rows import DEFAULT, EACH, Cell, Dataset, rows_of
from counterpoise.goals.terms import MACRO, Count, Metric, Term, finite, is_number
from counterpoise.goals.wording import text_of, unknown, written_number, written_value

CONFUSION, COST, ARROW = "confusion", "cost", "->"
_LABELLED = Cell(label=True)


def confusion(
    dataset: Dataset | str = DEFAULT, /, *ranges: str, of: Any = None, called: Any = None, **where: Any
) -> Rate:
    """Return the share of the rows of one class that are called another.

    Parameters
    ----------
    dataset, *ranges, **where
        As for ``recall``.
    of, called : labels
        The class that rows are labelled, and the one that is predicted.

    Examples
    --------
    >>> from counterpoise.goals import Table, confusion
    >>> rate = confusion("train", of="cat", called="dog")
    >>> print(rate <= 0.1)
    confusion(train, of=cat, called=dog) <= 0.1
    >>> rate.value(["cat", "dog", "dog", "fish"], Table(None, y=["cat", "cat", "dog", "fish"]))
    0.5
    """
    return confused(rows_of(dataset, ranges, of, where), called)


def confused(rows: Dataset, called: Any) -> Rate:
    """Return the same for rows that have the class already."""
    if rows.of is None or called is None:
        raise ValueError(
            f"{CONFUSION} needs two classes, as in {CONFUSION}(train, of=cat, called=dog); got of={rows.of} and "
            f"called={called}."
        )
    text = str(Dataset().seen_as(called).of)
    count = Count(positive=True, cell=_LABELLED, called=text)
    return Rate(0.0, (Term(1.0, Metric(CONFUSION, (count,), _LABELLED, (), f", called={written_value(text)}"), rows),))


def macro(metric: MetricFunction[Rate] | str, dataset: Dataset | str = DEFAULT, /, *ranges: str, **where: Any) -> Rate:
    """Return the average of a rate over all classes, each of which counts alike.

    Examples
    --------
    >>> from counterpoise.goals import Table, macro, recall
    >>> rate = macro(recall, "train")  # the balanced accuracy
    >>> print(rate >= 0.7)
    macro(recall, train) >= 0.7
    >>> rate.value(["a", "b", "b", "b"], Table(None, y=["a", "a", "b", "b"]))
    0.75
    """
    return averaged(metric_name(metric), rows_of(dataset, ranges, None, where))


def averaged(name: str, rows: Dataset) -> Rate:
    """Return the same for the name of a metric."""
    if name in RATIOS:
        raise TypeError(
            f"{MACRO}({name}, {rows}) is an average of ratios, which is not linear: ask it of every class, as in "
            f"every_class({name}, {rows}) >= 0.8."
        )
    if rows.of is not None:
        raise ValueError(f"{MACRO} is an average over all classes; got of={rows.of}.")
    (term,) = _plain(named(name, rows)).terms
    return Rate(0.0, (term._replace(rows=replace(rows, of=EACH)),))


def _plain(rate: Rate | Ratio) -> Rate:
    assert isinstance(rate, Rate)  # noqa: S101 - ratios were refused
    return rate


def metric_name(metric: Any) -> str:
    """Return the name of a metric, given it or its function."""
    name = metric if isinstance(metric, str) else getattr(metric, "__name__", None)
    if not isinstance(name, str):
        raise TypeError(f"A metric must be given as recall or as its name 'recall'; got {metric!r}.")
    if name not in METRICS and name not in RATIOS:
        raise unknown("metric", name, [*METRICS, *RATIOS])
    return name


def cost(
    dataset: Dataset | str = DEFAULT, costs: Any = None, /, *ranges: str, classes: Any = None, **where: Any
) -> Rate:
    """Return the average cost of a row, given what it costs to call one class another.

    Parameters
    ----------
    dataset, *ranges, **where
        As for ``recall``.
    costs : dict, array of shape (n_classes, n_classes) or data frame
        A cost for ``"sick->well"`` (labelled sick, called well) or for the pair of both labels; what is not named costs
        nothing. Of an array the rows are labels and the columns predictions.
    classes : sequence of labels
        Of the rows and columns of an array.

    Examples
    --------
    >>> from counterpoise.goals import cost, parse_rate
    >>> rate = cost("train", {"sick->well": 20, "well->sick": 1})
    >>> print(rate <= 0.5)
    cost(train, {sick->well: 20, well->sick: 1}) <= 0.5
    >>> rate == cost("train", [[0, 20], [1, 0]], classes=["sick", "well"]) == parse_rate(str(rate))
    True
    """
    return costed(rows_of(dataset, ranges, None, where), _entries(costs, classes))


def costed(rows: Dataset, entries: Iterable[tuple[str, str, float]]) -> Rate:
    """Return the same for costs as triples of two classes and a number."""
    found: dict[tuple[str, str], float] = {}
    for label, called, amount in entries:
        if (label, called) in found:
            raise ValueError(f"A cost must be named once; {label}{ARROW}{called} is there twice.")
        found[label, called] = finite(amount)
    priced = {pair: amount for pair, amount in sorted(found.items()) if amount}
    if not priced:
        raise ValueError(f"{COST} needs a cost that is not 0, as in {COST}(train, {{sick->well: 20}}); got none.")
    if rows.of is not None or rows.label is not None or rows.baseline is not None:
        raise ValueError(f"{COST} names its classes itself, and is about all rows of a dataset or group; got {rows}.")
    written = [f"{written_value(a)}{ARROW}{written_value(b)}: {written_number(x)}" for (a, b), x in priced.items()]
    counts = tuple(
        Count(positive=True, cell=_LABELLED, coefficient=amount, of=label, called=called)
        for (label, called), amount in priced.items()
    )
    return Rate(0.0, (Term(1.0, Metric(COST, counts, Cell(), (), f", {{{', '.join(written)}}}"), rows),))


def _entries(costs: Any, classes: Any) -> list[tuple[str, str, float]]:
    if isinstance(costs, Mapping):
        return [(*pair_of(key), _amount(key, amount)) for key, amount in costs.items()]
    if hasattr(costs, "columns"):
        rows, columns = list(costs.index), list(costs.columns)
    else:
        rows = columns = list(classes) if classes is not None else []
    matrix = np.asarray(costs, dtype=np.float64) if costs is not None else np.empty(0)
    if matrix.shape != (len(rows), len(columns)) or not matrix.size:
        raise ValueError(
            f"costs must be a dict such as {{'sick->well': 20}}, or an array with a row and a column for each of "
            f"classes; got shape {matrix.shape} for {len(rows)} classes."
        )
    texts = [[text_of(label) for label in side] for side in (rows, columns)]
    return [(a, b, float(matrix[i, j])) for i, a in enumerate(texts[0]) for j, b in enumerate(texts[1])]


def pair_of(key: Any) -> tuple[str, str]:
    """Return the two classes that a cost is named by."""
    pair = [part.strip() for part in key.split(ARROW)] if isinstance(key, str) else key
    if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not all(text_of(part) for part in pair):  # noqa: PLR2004
        raise ValueError(f"A cost is named by two classes, as 'sick->well', or by the pair of them; got {key!r}.")
    return text_of(pair[0]), text_of(pair[1])


def _amount(key: Any, amount: Any) -> float:
    if not is_number(amount):
        raise TypeError(f"A cost must be a number; got {amount!r} for {key!r}.")
    return finite(amount)
