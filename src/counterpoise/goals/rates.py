"""Rates: what is counted, on which rows. The metrics of Goh, Cotter, Gupta and Friedlander (NIPS 2016), Tables 2 and 4.

Every metric here is a linear combination of positive and negative predictions on parts of a dataset, or a ratio of two
of those. A metric is a row of the table ``METRICS``: data, not a class. Its counts are shares of the dataset's weight,
so ``true_positives`` is #TP / n. ``ALIASES`` has other names of metrics, which scikit-learn and fairlearn use; a
goal prints under the main name. A deferred row, about which a person decides, is neither positive nor negative, neither
right nor wrong, stays in every denominator, and differs from any prediction of the baseline.

Corrections to the printed tables (first sign the label, second the baseline's prediction):
#Changes = |D++| s_n(D++) + |D+-| s_p(D+-) + |D-+| s_n(D-+) + |D--| s_p(D--), and
#Losses = |D++| s_n(D++) + |D--| s_p(D--). The goal on egregious negatives, printed ``s_n(D-) <= kappa``, has ``>=``.

Below the rates stand those on several classes (one called another, costs of that, averages over all classes) and
phrases on the worst of several: every class, every group, the largest difference, the least ratio. Which classes and
groups there are is known once there are data; a phrase is written before. One goal on a phrase is then a limit on each
of its parts, with one price, one verdict and one line in a report.

Examples
--------
>>> from counterpoise.goals import Dataset, Table, positive_rate
>>> rate = positive_rate("train", sex="F")
>>> rate == positive_rate(Dataset("train").where(sex="F"))
True
>>> people = Table(None, sensitive_features={"sex": ["F", "F", "M"]})
>>> rate.value(["yes", "no", "yes"], people, classes=["no", "yes"])
0.5
>>> rate.expected_value([0.9, 0.5, 0.2], people), rate.ramp_value([0.3, -2.0, 1.0], people)
(0.7, 0.4)
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from operator import sub, truediv
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np

from counterpoise.goals.binding import Views, all_left_out
from counterpoise.goals.expressions import ComparedRatios, Rate, Ratio, Searched, WorstOf
from counterpoise.goals.strata import Strata, describe_pair
from counterpoise.goals.terms import (
    DEFAULT,
    EACH,
    MACRO,
    Cell,
    Count,
    Dataset,
    Metric,
    NoRows,
    Term,
    check_finite,
    format_call,
    format_name,
    format_number,
    format_value,
    is_number,
    rows_of,
    text_of,
    unknown,
)
from counterpoise.goals.words import check_min_rows, min_rows_text, with_size

__all__ = [
    "Dataset",
    "Rate",
    "Ratio",
    "abstention_rate",
    "accuracy",
    "accuracy_score",
    "balanced_accuracy",
    "balanced_accuracy_score",
    "change_rate",
    "churn",
    "confusion",
    "correct",
    "cost",
    "coverage",
    "decided_error_rate",
    "decided_positive_rate",
    "defer_rate",
    "demographic_parity_difference",
    "demographic_parity_ratio",
    "equal_opportunity_difference",
    "equal_opportunity_ratio",
    "equalized_odds_difference",
    "equalized_odds_ratio",
    "error",
    "error_rate",
    "every_class",
    "every_group",
    "f1",
    "f1_score",
    "fall_out",
    "false_alarm_rate",
    "false_discovery_rate",
    "false_negative_rate",
    "false_negatives",
    "false_omission_rate",
    "false_positive_rate",
    "false_positives",
    "fdr",
    "flip_rate",
    "fnr",
    "fpr",
    "hit_rate",
    "jaccard_score",
    "loss_rate",
    "macro",
    "max_difference",
    "min_ratio",
    "miss_rate",
    "negative_predictive_value",
    "negative_rate",
    "npv",
    "positive_predictive_value",
    "positive_rate",
    "ppv",
    "precision",
    "precision_score",
    "recall",
    "recall_score",
    "selection_rate",
    "sensitivity",
    "specificity",
    "tnr",
    "total",
    "tpr",
    "true_negative_rate",
    "true_negatives",
    "true_positive_rate",
    "true_positives",
    "win_change_ratio",
    "win_loss_ratio",
    "win_rate",
    "wins_minus_losses",
    "zero_one_loss",
]

_ALL, _POSITIVES, _NEGATIVES = Cell(), Cell(label=True), Cell(label=False)
_TP, _FN = Count(positive=True, cell=_POSITIVES), Count(positive=False, cell=_POSITIVES)
_FP, _TN = Count(positive=True, cell=_NEGATIVES), Count(positive=False, cell=_NEGATIVES)
_CHANGES = (
    Count(positive=False, cell=Cell(baseline=True)),
    Count(positive=True, cell=Cell(baseline=False)),
    Count(positive=None, cell=_ALL),
)
_CHANGES_OF_EACH = _CHANGES[0], Count(positive=None, cell=Cell(baseline=True))
_WINS = (
    Count(positive=True, cell=Cell(label=True, baseline=False)),
    Count(positive=False, cell=Cell(label=False, baseline=True)),
)
_LOSSES = (
    Count(positive=False, cell=Cell(label=True, baseline=True)),
    Count(positive=True, cell=Cell(label=False, baseline=False)),
)
_NOT_LOSSES = tuple(count._replace(coefficient=-1.0) for count in _LOSSES)

METRICS: dict[str, Metric] = {}
RATIOS: dict[str, Callable[[Dataset], Ratio]] = {}
MEANINGS: dict[str, str] = {}  # in words
OTHER_NAMES = {
    "positive_rate": ("selection_rate",),
    "error_rate": ("error", "zero_one_loss"),
    "accuracy": ("accuracy_score",),
    "balanced_accuracy": ("balanced_accuracy_score",),
    "recall": ("true_positive_rate", "tpr", "sensitivity", "hit_rate", "recall_score"),
    "false_negative_rate": ("fnr", "miss_rate"),
    "false_positive_rate": ("fpr", "fall_out", "false_alarm_rate"),
    "true_negative_rate": ("tnr", "specificity"),
    "precision": ("positive_predictive_value", "ppv", "precision_score"),
    "negative_predictive_value": ("npv",),
    "false_discovery_rate": ("fdr",),
    "f1_score": ("f1",),
    "churn": ("change_rate",),
    "defer_rate": ("abstention_rate",),
}
ALIASES = {alias: name for name, aliases in OTHER_NAMES.items() for alias in aliases}
MAXIMIZED = {  # ratios that are better when larger: as objectives they are maximised, where they stand alone
    "precision",
    "negative_predictive_value",
    "f1_score",
    "jaccard_score",
    "win_loss_ratio",
    "win_change_ratio",
}
TABLE_METRICS = [
    "positive_rate",
    "error_rate",
    "recall",
    "false_positive_rate",
    "precision",
    "churn",
]  # and those registered
_HELP = """Return {meaning}.{aliases}

Parameters
----------
dataset : Dataset or str, default="train"
    The rows, or their name.
*ranges : str
    Conditions on numbers, as ``"18<=age<25"``.
of : label, optional
    The class that is called positive; by default the ``pos_label`` of the estimator.
value : str, optional
    A column of amounts, which rows count with instead of 1.
**where
    Conditions on columns, as for ``Dataset.where``.

Returns
-------
{kind}
    It can be scaled, and compared to make a goal; rates can be added too.

Examples
--------
>>> from counterpoise.goals import {name}
>>> print({name}("mail", sex="F") <= 0.2)
{name}(mail, sex=F) <= 0.2
"""
Made_co = TypeVar("Made_co", Rate, Ratio, covariant=True)


class MetricFunction(Protocol[Made_co]):
    """Makes a rate, or a ratio, of rows: a dataset or its name, and conditions on columns."""

    def __call__(
        self, dataset: Dataset | str = DEFAULT, /, *ranges: str, of: Any = None, value: str | None = None, **where: Any
    ) -> Made_co: ...


def _rate(
    name: str, meaning: str, *counts: Count, out_of: Cell = _ALL, of_each: tuple[Count, ...] = ()
) -> MetricFunction[Rate]:
    """Enter a metric into the table, and return the function that makes a rate of it."""
    METRICS[name] = Metric(name, counts, out_of, of_each)
    return _function(name, f"the share of {meaning}", lambda rows: cast("Rate", make_metric(name, rows)))


def _ratio(name: str, meaning: str, sides: Callable[[Dataset], tuple[Rate, Rate]]) -> MetricFunction[Ratio]:
    """Enter a ratio of two rates, and return the function that makes it."""
    RATIOS[name] = lambda rows: Ratio(*sides(rows), format_call(name, rows))
    return _function(name, meaning, RATIOS[name])


def _function(name: str, meaning: str, make: Callable[[Dataset], Made_co]) -> MetricFunction[Made_co]:
    def metric(
        dataset: Dataset | str = DEFAULT, /, *ranges: str, of: Any = None, value: str | None = None, **where: Any
    ) -> Made_co:
        return make(rows_of(dataset, ranges, of, where, value))

    kind = Ratio if name in RATIOS else Rate
    MEANINGS[name] = meaning.replace("``", "`")
    metric.__name__ = metric.__qualname__ = name
    aliases = ", ".join(f"``{alias}``" for alias in OTHER_NAMES.get(name, ()))
    aliases = aliases and f"\n\nAlso known as {aliases}."
    metric.__doc__ = _HELP.format(name=name, meaning=meaning, kind=kind.__name__, aliases=aliases)
    metric.__annotations__["return"] = kind
    return metric


def make_metric(name: str, rows: Dataset) -> Rate | Ratio:
    """Return the metric of that name, or of that alias, on the rows."""
    name = ALIASES.get(name, name)
    if name == FLIP_RATE:
        return make_flip_rate(rows)
    if rows.twin is not None:
        raise ValueError(f"twin is for {FLIP_RATE}, which compares decisions; {name} takes none.")
    if name in RATIOS:
        return RATIOS[name](rows)
    if name not in METRICS:
        raise unknown("metric", name, [*METRICS, *RATIOS, *ALIASES])
    term = Term(1.0, METRICS[name], rows)
    if METRICS[name].is_mean and len(list(term.row_counts())) < len(METRICS[name].counts):
        raise ValueError(f"{name} is a mean over the classes, and {rows} leaves out the rows of some of them.")
    if not any(term.row_counts()):
        raise ValueError(f"{term} counts nothing, because no row of {rows} can be among those that {name} is about.")
    return Rate(0.0, (term,))


def is_maximized(objective: object) -> bool:
    """Return whether an objective, or its text, is maximised: one ratio by its name, of those better when larger.

    Examples
    --------
    >>> from counterpoise.goals import f1_score, false_discovery_rate
    >>> from counterpoise.goals.rates import is_maximized
    >>> is_maximized(f1_score()), is_maximized(false_discovery_rate()), is_maximized(1 - f1_score())
    (True, False, False)
    """
    return str(objective).partition("(")[0] in MAXIMIZED


positive_rate = _rate("positive_rate", "positive predictions", Count(positive=True, cell=_ALL))
negative_rate = _rate("negative_rate", "negative predictions", Count(positive=False, cell=_ALL))
coverage = _rate("coverage", "positive predictions, as budgets call it", Count(positive=True, cell=_ALL))
defer_rate = _rate("defer_rate", "rows that are deferred to a person", Count(positive=None, cell=_ALL))
true_positives = _rate("true_positives", "true positives in all rows: #TP / n", _TP)
true_negatives = _rate("true_negatives", "true negatives in all rows: #TN / n", _TN)
false_positives = _rate("false_positives", "false positives in all rows: #FP / n", _FP)
false_negatives = _rate("false_negatives", "false negatives in all rows: #FN / n", _FN)
error_rate = _rate("error_rate", "wrong predictions", _FP, _FN, of_each=(_FN,))
accuracy = _rate("accuracy", "right predictions", _TP, _TN, of_each=(_TP,))
correct = _rate(
    "correct", "right predictions, for examples that must not go wrong: ``correct(D) >= 1``", _TP, _TN, of_each=(_TP,)
)
recall = _rate("recall", "positive predictions among the rows labelled positive", _TP, out_of=_POSITIVES)
false_negative_rate = _rate("false_negative_rate", "positives that are decided negative", _FN, out_of=_POSITIVES)
false_positive_rate = _rate("false_positive_rate", "negatives that are predicted positive", _FP, out_of=_NEGATIVES)
true_negative_rate = _rate("true_negative_rate", "negatives that are predicted negative", _TN, out_of=_NEGATIVES)
METRICS["balanced_accuracy"] = Metric(
    "balanced_accuracy",
    (_TP._replace(coefficient=0.5, out_of=_POSITIVES), _TN._replace(coefficient=0.5, out_of=_NEGATIVES)),
    of_each=(_TP._replace(out_of=_POSITIVES),),
    is_mean=True,
)
balanced_accuracy = _function(
    "balanced_accuracy",
    "the mean of the recalls of all classes; of two, of recall and true negative rate",
    lambda rows: cast("Rate", make_metric("balanced_accuracy", rows)),
)
churn = _rate(
    "churn", "predictions that differ from the baseline's; it needs no labels", *_CHANGES, of_each=_CHANGES_OF_EACH
)
win_rate = _rate(
    "win_rate", "rows on which the prediction is right and the baseline's wrong", *_WINS, of_each=_WINS[:1]
)
loss_rate = _rate(
    "loss_rate", "rows on which the prediction is wrong and the baseline's right", *_LOSSES, of_each=_LOSSES[:1]
)
wins_minus_losses = _rate(
    "wins_minus_losses",
    "wins less that of losses: the gain in accuracy over the baseline",
    *_WINS,
    *_NOT_LOSSES,
    of_each=(_WINS[0], _NOT_LOSSES[0]),
)
precision = _ratio(
    "precision",
    "the share of rows labelled positive among the positive predictions: #TP / (#TP + #FP)",
    lambda rows: (true_positives(rows), positive_rate(rows)),
)
negative_predictive_value = _ratio(
    "negative_predictive_value",
    "the share of rows labelled negative among the negative predictions: #TN / (#TN + #FN)",
    lambda rows: (true_negatives(rows), negative_rate(rows)),
)
false_discovery_rate = _ratio(
    "false_discovery_rate",
    "the share of rows labelled negative among the positive predictions: #FP / (#TP + #FP)",
    lambda rows: (false_positives(rows), positive_rate(rows)),
)
false_omission_rate = _ratio(
    "false_omission_rate",
    "the share of rows labelled positive among the negative predictions: #FN / (#TN + #FN)",
    lambda rows: (false_negatives(rows), negative_rate(rows)),
)
f1_score = _ratio(
    "f1_score",
    "the harmonic mean of precision and recall: 2 #TP / (2 #TP + #FN + #FP)",
    lambda rows: (2 * true_positives(rows), 2 * true_positives(rows) + error_rate(rows)),
)
jaccard_score = _ratio(
    "jaccard_score",
    "true positives among the rows that are labelled or predicted positive: #TP / (#TP + #FN + #FP)",
    lambda rows: (true_positives(rows), true_positives(rows) + error_rate(rows)),
)
decided_error_rate = _ratio(
    "decided_error_rate",
    "the share of wrong predictions among those that are not deferred",
    lambda rows: (error_rate(rows), error_rate(rows) + accuracy(rows)),
)
decided_positive_rate = _ratio(
    "decided_positive_rate",
    "the share of positive predictions among those that are not deferred",
    lambda rows: (positive_rate(rows), positive_rate(rows) + negative_rate(rows)),
)
win_loss_ratio = _ratio(
    "win_loss_ratio", "#Wins / #Losses against the baseline", lambda rows: (win_rate(rows), loss_rate(rows))
)
win_change_ratio = _ratio(
    "win_change_ratio", "#Wins / #Changes against the baseline", lambda rows: (win_rate(rows), churn(rows))
)

# The names of ``OTHER_NAMES``, each on a line of its own metric, so that editors and type checkers know them.
selection_rate = positive_rate
error = zero_one_loss = error_rate
accuracy_score = accuracy
balanced_accuracy_score = balanced_accuracy
true_positive_rate = tpr = sensitivity = hit_rate = recall_score = recall
fnr = miss_rate = false_negative_rate
fpr = fall_out = false_alarm_rate = false_positive_rate
tnr = specificity = true_negative_rate
positive_predictive_value = ppv = precision_score = precision
npv = negative_predictive_value
fdr = false_discovery_rate
f1 = f1_score
change_rate = churn
abstention_rate = defer_rate


CONFUSION, COST, TOTAL, ARROW = "confusion", "cost", "total", "->"
FLIP_RATE = "flip_rate"


def confusion(
    dataset: Dataset | str = DEFAULT,
    /,
    *ranges: str,
    of: Any = None,
    called: Any = None,
    value: str | None = None,
    **where: Any,
) -> Rate:
    """Return the share of the rows of one class that are called another.

    Parameters
    ----------
    dataset, *ranges, value, **where
        As for ``recall``.
    of, called : labels
        The class that rows are labelled, and the one that is predicted.

    Examples
    --------
    >>> from counterpoise.goals import Table, confusion
    >>> rate = confusion("train", of="cat", called="dog")
    >>> print(rate <= 0.1)
    confusion(of=cat, called=dog) <= 0.1
    >>> rate.value(["cat", "dog", "dog", "fish"], Table(None, y=["cat", "cat", "dog", "fish"]))
    0.5
    """
    return make_confusion(rows_of(dataset, ranges, of, where, value), called)


def make_confusion(rows: Dataset, called: Any) -> Rate:
    """Return the same for rows that have the class already."""
    if rows.of is None or called is None:
        raise ValueError(
            f"{CONFUSION} needs two classes, as in {CONFUSION}(of=cat, called=dog); got of={rows.of} and "
            f"called={called}."
        )
    text = str(Dataset().with_class(called).of)
    count = Count(positive=True, cell=_POSITIVES, called=text)
    return Rate(0.0, (Term(1.0, Metric(CONFUSION, (count,), _POSITIVES, (), f"called={format_value(text)}"), rows),))


def macro(
    metric: MetricFunction[Rate] | str,
    dataset: Dataset | str = DEFAULT,
    /,
    *ranges: str,
    min_rows: int = 0,
    value: str | None = None,
    **where: Any,
) -> Rate:
    """Return the average of a rate over all classes, each of which counts alike.

    Classes with fewer than ``min_rows`` rows, of those that the rate is out of, are left out.

    Examples
    --------
    >>> from counterpoise.goals import Table, macro, recall
    >>> rate = macro(recall, "train")  # the balanced accuracy
    >>> print(rate >= 0.7)
    macro(recall) >= 0.7
    >>> rate.value(["a", "b", "b", "b"], Table(None, y=["a", "a", "b", "b"]))
    0.75
    """
    return make_macro(metric_name(metric), rows_of(dataset, ranges, None, where, value), min_rows)


def make_macro(name: str, rows: Dataset, min_rows: Any = 0) -> Rate:
    """Return the same for the name of a metric."""
    name = ALIASES.get(name, name)
    if name in RATIOS:
        raise TypeError(
            f"{format_call(MACRO, rows, first=name)} is an average of ratios, which is not linear: set a goal for "
            f"every class, as in {format_call('every_class', rows, first=name)} >= 0.8."
        )
    if rows.of is not None:
        raise ValueError(f"{MACRO} is an average over all classes; got of={rows.of}.")
    (term,) = cast("Rate", make_metric(name, rows)).terms
    metric = term.metric._replace(min_rows=check_min_rows(min_rows))
    return Rate(0.0, (term._replace(metric=metric, rows=replace(rows, of=EACH)),))


def metric_name(metric: Any) -> str:
    """Return the main name of a metric, given a name of it or its function."""
    name = metric if isinstance(metric, str) else getattr(metric, "__name__", None)
    if not isinstance(name, str):
        raise TypeError(f"A metric must be a function such as recall, or its name, 'recall'; got {metric!r}.")
    return ALIASES.get(name, name)


def cost(dataset: Any = DEFAULT, costs: Any = None, /, *ranges: str, classes: Any = None, **where: Any) -> Rate:
    """Return the average cost of a row, given what it costs to call one class another.

    Called as ``cost(dataset, costs)``, or as ``cost(costs)`` for the rows that are judged.

    Parameters
    ----------
    dataset, *ranges, **where
        As for ``recall``.
    costs : dict, array of shape (n_classes, n_classes) or data frame
        A cost for ``"sick->well"`` (labelled sick, called well) or for the pair of both labels; what is not named costs
        nothing. A cost is a number, or the name of a column with the cost of each row. Of an array the rows are labels
        and the columns predictions.
    classes : sequence of labels
        Of the rows and columns of an array.

    Examples
    --------
    >>> from counterpoise.goals import cost, parse_rate
    >>> rate = cost("train", {"sick->well": 20, "well->sick": 1})
    >>> print(rate <= 0.5)
    cost({sick->well: 20, well->sick: 1}) <= 0.5
    >>> rate == cost("train", [[0, 20], [1, 0]], classes=["sick", "well"]) == parse_rate(str(rate))
    True
    >>> rate == cost({"sick->well": 20, "well->sick": 1})
    True
    >>> print(cost("train", {(1, 0): "amount", (0, 1): 5}) <= 2.5)
    cost({0->1: 5, 1->0: amount}) <= 2.5
    """
    if not isinstance(dataset, (Dataset, str)):
        dataset, costs, ranges = DEFAULT, dataset, (*([] if costs is None else [costs]), *ranges)
    return make_cost(rows_of(dataset, ranges, None, where), _entries(costs, classes))


def make_cost(rows: Dataset, entries: Iterable[tuple[str, str, float | str]]) -> Rate:
    """Return the same for costs as triples of two classes and a number, or the name of a column."""
    costs: dict[tuple[str, str], float | str] = {}
    for label, called, amount in entries:
        if (label, called) in costs:
            raise ValueError(f"Each cost must be named once; {label}{ARROW}{called} occurs twice.")
        costs[label, called] = amount if isinstance(amount, str) else check_finite(amount)
    amounts = {pair: amount for pair, amount in sorted(costs.items()) if amount}
    if not amounts:
        raise ValueError(f"{COST} needs a cost that is not 0, as in {COST}({{sick->well: 20}}); got none.")
    if rows.of is not None or rows.label is not None or rows.baseline is not None:
        raise ValueError(f"{COST} names its classes itself, and is about all rows of a dataset or group; got {rows}.")
    if rows.value is not None:
        raise ValueError(
            f"{COST} names its amounts in its costs, as in {COST}({{1->0: {format_name(rows.value)}}}); got "
            f"value={rows.value} beside them."
        )
    texts, counts = [], []
    for (label, called), amount in amounts.items():
        is_column = isinstance(amount, str)
        text = format_name(amount) if isinstance(amount, str) else format_number(amount)
        texts.append(f"{format_value(label)}{ARROW}{format_value(called)}: {text}")
        of: dict[str, Any] = {"value": amount} if is_column else {"coefficient": amount}
        counts.append(Count(positive=True, cell=_POSITIVES, of=label, called=called, **of))
    return Rate(0.0, (Term(1.0, Metric(COST, tuple(counts), Cell(), (), f"{{{', '.join(texts)}}}"), rows),))


def _entries(costs: Any, classes: Any) -> list[tuple[str, str, float | str]]:
    if isinstance(costs, Mapping):
        for key, amount in costs.items():
            if not is_number(amount) and not (isinstance(amount, str) and amount):
                raise TypeError(
                    f"A cost must be a number, or the name of a column of amounts; got {amount!r} for {key!r}."
                )
        return [(*pair_of(key), amount) for key, amount in costs.items()]
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


def total(
    dataset: Dataset | str = DEFAULT, /, *ranges: str, value: str | None = None, of: Any = None, **where: Any
) -> Rate:
    """Return the sum of the amounts of the rows that are predicted positive, such as the profit of loans granted.

    It is no share: it grows with the rows, and with their weights. A goal on it, or an objective, is about as many rows
    as its dataset has.

    Parameters
    ----------
    dataset, *ranges, of, **where
        As for ``recall``.
    value : str
        The column of amounts; they may be negative.

    Examples
    --------
    >>> from counterpoise.goals import Table, total
    >>> profit = total("train", value="profit")
    >>> print(profit >= 1000)
    total(value=profit) >= 1000
    >>> loans = Table(None, y=[0, 1, 1], sensitive_features={"profit": [-500, 300, 200]})
    >>> profit.value([1, 1, 0], loans)
    -200.0
    """
    return make_total(rows_of(dataset, ranges, of, where, value))


def make_total(rows: Dataset) -> Rate:
    """Return the same for rows that have the column of amounts already."""
    if rows.value is None:
        raise ValueError(f"{TOTAL} needs a column of amounts, as in {TOTAL}(value=profit); got none.")
    count = Count(positive=True, cell=_ALL, value=rows.value)
    details = f"value={format_name(rows.value)}"
    return Rate(0.0, (Term(1.0, Metric(TOTAL, (count,), _ALL, (), details, is_total=True), rows.without_value),))


def flip_rate(
    dataset: Dataset | str = DEFAULT,
    /,
    *ranges: str,
    twin: Dataset | str | None = None,
    value: str | None = None,
    **where: Any,
) -> Rate:
    """Return the share of rows that are decided otherwise than their twins.

    The twins are the same rows in the same order, with what you changed: the sex of a person, say. Both are decided by
    the same rule; in a mixture of rules the same draw decides both.

    Parameters
    ----------
    dataset, *ranges, value, **where
        As for ``recall``. Conditions are on the rows, not on the twins.
    twin : Dataset or str
        The dataset of the twins.

    Examples
    --------
    >>> from counterpoise.goals import Table, flip_rate
    >>> rate = flip_rate("train", twin="swapped")
    >>> print(rate <= 0.05)
    flip_rate(twin=swapped) <= 0.05
    >>> rows = {"train": Table(None, y=[0, 1, 1, 0]), "swapped": Table(None, sensitive_features={"sex": list("FFMM")})}
    >>> rate.value({"train": [0, 1, 1, 0], "swapped": [0, 1, 0, 0]}, rows)
    0.25
    """
    rows = rows_of(dataset, ranges, None, where, value)
    return make_flip_rate(rows if twin is None else rows.with_twin(twin))


def make_flip_rate(rows: Dataset) -> Rate:
    """Return the same for rows that have their twins already."""
    if rows.twin is None:
        raise ValueError(
            f"{FLIP_RATE} needs the dataset of the twins, the same rows changed, as in {FLIP_RATE}(train, "
            "twin=swapped); got none."
        )
    if rows.of is not None:
        raise ValueError(f"{FLIP_RATE} counts decisions that differ, of either class; got of={rows.of}.")
    return Rate(0.0, (Term(1.0, Metric(FLIP_RATE, (Count(positive=True, cell=_ALL),), _ALL), rows),))


def pair_of(key: Any) -> tuple[str, str]:
    """Return the two classes that a cost is named by."""
    pair = [part.strip() for part in key.split(ARROW)] if isinstance(key, str) else key
    if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not all(text_of(part) for part in pair):  # noqa: PLR2004
        raise ValueError(f"A cost is named by two classes, as 'sick->well', or by the pair of them; got {key!r}.")
    return text_of(pair[0]), text_of(pair[1])


MOST_GROUPS = 50  # every pair of which makes two rows of the program
_MOST_COUNTED = 1000  # groups that are counted, where small ones are left out

Members = tuple[Rate | Ratio | Searched, ...]


class WorstRateForm(NamedTuple):
    """A kind of phrase."""

    meaning: str
    formula: str
    combine: Callable[[Any, Any], Any] | None  # the rates of two groups; None: each rate stands alone
    sense: str = ""  # of the goals on it; both where empty
    metrics: tuple[str, ...] = ()  # empty where one is given
    by: bool = True  # whether it is over the groups of columns, and not over classes


_GAP, _SHARE = "max over groups - min over groups", "min over groups / max over groups"
FORMS = {
    "every_class": WorstRateForm(
        "a rate of each class, as several goals at once", "metric(of=c), each class c", None, by=False
    ),
    "every_group": WorstRateForm(
        "a rate of each group, as several goals at once", "metric(column=g), each group g", None
    ),
    "max_difference": WorstRateForm("the largest difference of a rate between two groups", _GAP, sub, "<="),
    "min_ratio": WorstRateForm("the least ratio of a rate between two groups", _SHARE, truediv, ">="),
}
for _name, _rates, _metrics in (
    ("demographic_parity", "positive rates", ("positive_rate",)),
    ("equal_opportunity", "recalls", ("recall",)),
    ("equalized_odds", "recalls or of false positive rates", ("recall", "false_positive_rate")),
):
    FORMS[f"{_name}_difference"] = WorstRateForm(f"the largest difference of {_rates}", _GAP, sub, "<=", _metrics)
    FORMS[f"{_name}_ratio"] = WorstRateForm(f"the least ratio of {_rates}", _SHARE, truediv, ">=", _metrics)


@dataclass(frozen=True, eq=False, repr=False)
class WorstRate(WorstOf):
    """The worst of a rate over all classes, or over the groups that columns make.

    Examples
    --------
    >>> from counterpoise.goals import Table, max_difference, recall
    >>> phrase = max_difference(recall, "train", by="sex")
    >>> table = Table(None, y=[1, 1, 1, 1], sensitive_features={"sex": list("FFMM")})
    >>> print((phrase <= 0.1).evaluate([1, 1, 1, 0], table, classes=[0, 1]))  # doctest: +NORMALIZE_WHITESPACE
    max_difference(recall, by=sex) <= 0.1: missed by 0.4
    (0.5, bound 0.1: recall(sex=F) - recall(sex=M))
    """

    form: str
    rows: Dataset
    metric: str = ""  # where the form does not say which
    by: tuple[str, ...] = ()
    min_rows: int = 0  # that a group must have, of those that the metric is out of; others are left out
    within: tuple[str, ...] = ()  # columns of strata, inside which groups are compared
    average: bool = False  # whether the rates of groups are averaged over the strata first

    def __post_init__(self) -> None:
        check_min_rows(self.min_rows)
        kind = FORMS[self.form]
        self._check_strata(kind)
        if kind.by != bool(self.by):
            over = "the groups of a column, as by=sex" if kind.by else "all classes, and takes no by"
            raise ValueError(f"{self.form} is over {over}; got by={', '.join(self.by) or None}.")
        if not kind.by and self.rows.of is not None:
            raise ValueError(f"{self.form} is over all classes; got of={self.rows.of}.")
        if self.metric in RATIOS and kind.combine is not None:
            self._check_ratios()
        for column in (*self.by, *self.within):
            self.rows.select({column: ""})  # raises for a column that cannot have this name
        self.members()  # raises where the metric counts nothing

    def _check_ratios(self) -> None:
        if self.within:
            raise ValueError(
                f"{self} compares ratios inside strata, each of which would need a search of its own: leave within "
                f"out, or write a goal for each stratum, as in {self.form}({self.metric}, job=clerk, by={self.by[0]})."
            )
        if not RATIOS[self.metric](self.rows).is_share:
            each = format_call("every_group", self.rows, first=self.metric, last=["by=" + self.by[0]])
            raise ValueError(
                f"{self} compares ratios, which are searched between 0 and 1, and {self.metric} can be beyond: bound "
                f"each of them, as in {each} >= 1."
            )

    def _check_strata(self, kind: WorstRateForm) -> None:
        if self.within and kind.combine is None:
            raise ValueError(
                f"{self.form} compares no groups, so it has no strata: name all columns in by, as in "
                f"every_group(recall, by=sex, by=job); got within={', '.join(self.within)}."
            )
        both = [column for column in self.within if column in self.by]
        if both:
            raise ValueError(
                f"{self.form} compares the groups of by inside each stratum of within, so a column is in one of them; "
                f"got {both[0]!r} in both."
            )
        if not isinstance(self.average, bool):
            raise TypeError(f"average must be True or False; got {self.average!r}.")
        if self.average and not self.within:
            raise ValueError(
                f"average=True averages over strata, so {self.form} needs their columns too, as within=job; got none."
            )

    @property
    def sense(self) -> str:  # type: ignore[override]
        return FORMS[self.form].sense

    @property
    def least(self) -> float:  # type: ignore[override]
        return 0.0 if FORMS[self.form].combine is sub else -math.inf  # of two differences of opposite sign

    @property
    def most(self) -> float:  # type: ignore[override]
        return 1.0 if FORMS[self.form].combine is truediv else math.inf  # of a quotient and its inverse

    def key(self) -> tuple[Any, ...]:
        return self.form, self.rows, self.metric, self.by, self.min_rows, self.within, self.average

    def members(self, views: Views | None = None) -> Members:
        form, columns = FORMS[self.form], " and ".join(map(repr, self.by))
        if views is not None and self.within:
            return tuple(self._comparisons(views).values())
        if views is None and self.by:
            strata = [(column, "a") for column in self.within]
            values = ([*((column, text) for column in self.by), *strata] for text in "ab")
            groups = [replace(self.rows, conditions=(*self.rows.conditions, *more)) for more in values]
        elif views is None:
            groups = [replace(self.rows, of=text) for text in "ab"]
        else:
            groups = [rows for rows, n_rows in self._sizes(views) if n_rows >= self.min_rows]
            if self.by and len(groups) < 2 and form.combine is not None:  # noqa: PLR2004
                group = f"one, {groups[0]}" if groups else "none"
                enough = f" with {self.min_rows} rows or more" if self.min_rows else ""
                raise NoRows(f"{self} compares groups; by {columns} there is {group}{enough}.")
            if not groups:
                raise NoRows(f"{self} is about groups; by {columns} there is none.")
        members: list[Rate | Ratio | Searched] = []
        for name in form.metrics or (self.metric,):
            rates = [make_metric(name, rows) for rows in groups]
            if form.combine is not None and name in RATIOS:
                ratios = cast("list[Ratio]", rates)
                is_quotient = form.combine is truediv
                members += [ComparedRatios(*pair, is_quotient) for pair in permutations(ratios, 2)]
                continue
            members += rates if form.combine is None else [form.combine(*pair) for pair in permutations(rates, 2)]
        return tuple(members)

    def _comparisons(self, views: Views) -> dict[Any, Rate | Ratio]:
        """Return what is compared inside strata; of averages the key says which groups."""
        return views.cache(("strata", self), lambda: self._compare(views))

    def _compare(self, views: Views) -> dict[Any, Rate | Ratio]:
        form, strata = FORMS[self.form], self._strata(views)
        if not strata.cells:
            enough = f" with {self.min_rows} rows or more" if self.min_rows else ""
            raise NoRows(
                f"{self} compares groups inside strata; by {' and '.join(map(repr, self.by))} within "
                f"{' and '.join(map(repr, self.within))} no stratum has two groups{enough}."
            )
        if not self.average and strata.n_pairs > MOST_GROUPS * (MOST_GROUPS - 1):
            raise ValueError(
                f"{self} makes at most {MOST_GROUPS * (MOST_GROUPS - 1) // 2} comparisons of two groups; here there "
                f"are {strata.n_pairs // 2}. Merge values in a new column, or set average=True."
            )
        found: dict[Any, Rate | Ratio] = {}
        for name in form.metrics or (self.metric,):
            make = partial(make_metric, name)
            if self.average:
                averages = strata.averages(make, form.combine, views)  # type: ignore[arg-type]
                found |= {(name, pair): member for pair, member in averages.items()}
            else:
                found |= dict(enumerate(strata.members(make, form.combine), len(found)))  # type: ignore[arg-type]
        return found

    def _strata(self, views: Views) -> Strata:
        least = max(self.min_rows, 1)
        return views.cache(("cells", self), lambda: Strata.of(self.rows, self._find_sizes(views), self.within, least))

    def describe_part(self, place: int, value: float, views: Views) -> str:
        if not self.average:
            return super().describe_part(place, value, views)
        name, pair = list(self._comparisons(views))[place]
        return f"{name} of {describe_pair(pair, 'less' if FORMS[self.form].sense == '<=' else 'over')}"

    def _sizes(self, views: Views) -> list[tuple[Dataset, int]]:
        """Return the groups or classes with their numbers of rows, which are counted where the least is given.

        The rows are those that the metrics are out of: of recall, the positives.
        """
        if not self.min_rows:
            return self._find_sizes(views)
        return views.cache(("sizes", self), lambda: self._find_sizes(views))

    def _find_sizes(self, views: Views) -> list[tuple[Dataset, int]]:
        if not self.by:
            groups = [self.rows.with_class(text) for text in views.class_texts()]
        else:
            most = _MOST_COUNTED if self.min_rows or self.within else MOST_GROUPS
            n_groups, groups = views.groups(self.rows, (*self.by, *self.within), most)
            self._check_number(n_groups, most)
        if not self.min_rows and not self.within:
            return [(rows, 0) for rows in groups]
        metrics = FORMS[self.form].metrics or (self.metric,)
        sizes = [min(_n_rows(make_metric(name, rows), views) for name in metrics) for rows in groups]
        if self.within:
            return list(zip(groups, sizes, strict=True))
        n_kept = sum(size >= self.min_rows for size in sizes)
        if groups and not n_kept:
            raise all_left_out(self, self.min_rows, max(sizes))
        self._check_number(n_kept if self.by else 0, MOST_GROUPS)
        return list(zip(groups, sizes, strict=True))

    def _check_number(self, n_groups: int, most: int) -> None:
        if n_groups > most:
            columns = " and ".join(map(repr, (*self.by, *self.within)))
            raise ValueError(
                f"{self} is over at most {most} groups; by {columns} there are {n_groups}. Merge values in a new "
                "column, or use ranges such as age<=33."
            )

    def left_out(self, views: Views) -> tuple[str, ...]:
        if self.within:
            return self._strata(views).left_out
        if not self.min_rows:
            return ()
        small = [(rows, n_rows) for rows, n_rows in self._sizes(views) if n_rows < self.min_rows]
        names = ([part for part in rows.parts if part not in self.rows.parts] for rows, _ in small)
        return tuple(with_size(", ".join(name), n_rows) for name, (_, n_rows) in zip(names, small, strict=True))

    def __str__(self) -> str:
        words = [f"by={format_name(column)}" for column in self.by]
        words += [f"within={format_name(column)}" for column in self.within]
        words += [*(["average=True"] if self.average else []), *min_rows_text(self.min_rows)]
        return format_call(self.form, self.rows, first=self.metric, last=words)


def _n_rows(metric: Rate | Ratio, views: Views) -> int:
    """Return how many rows a metric is out of; of several numbers the least."""
    sides = (metric.numerator, metric.denominator) if isinstance(metric, Ratio) else (metric,)
    counts = (one for rate in sides for one in rate.resolve(views).row_counts)
    return min(views.n_rows(rows) for rows in dict.fromkeys(one.out_of for one in counts))


def _group_function(form: str) -> Callable[..., WorstRate]:
    def phrase(
        dataset: Dataset | str = DEFAULT,
        /,
        *ranges: str,
        by: str | Sequence[str] = (),
        within: str | Sequence[str] = (),
        average: bool = False,
        min_rows: int = 0,
        of: Any = None,
        value: str | None = None,
        **where: Any,
    ) -> WorstRate:
        rows, strata = rows_of(dataset, ranges, of, where, value), columns_of(within, "within")
        return WorstRate(form, rows, "", columns_of(by), min_rows, strata, average)

    return _with_docstring(form, phrase, 'dataset="train", by=column', f'{form}("train", by="sex")')


def _metric_function(form: str) -> Callable[..., WorstRate]:
    def phrase(
        metric: MetricFunction[Any] | str,
        dataset: Dataset | str = DEFAULT,
        /,
        *ranges: str,
        by: str | Sequence[str] = (),
        within: str | Sequence[str] = (),
        average: bool = False,
        min_rows: int = 0,
        of: Any = None,
        value: str | None = None,
        twin: Dataset | str | None = None,
        **where: Any,
    ) -> WorstRate:
        rows, strata = rows_of(dataset, ranges, of, where, value), columns_of(within, "within")
        rows = rows if twin is None else rows.with_twin(twin)
        return WorstRate(form, rows, metric_name(metric), columns_of(by), min_rows, strata, average)

    call = f'{form}("recall", "train"{", by=" + repr("sex") if FORMS[form].by else ""})'
    return _with_docstring(form, phrase, "metric, dataset", call)


_STRATA_HELP = """

With ``within``, the name of a column or of several, groups are compared inside each stratum: each combination of values
of these columns. Strata with fewer than two groups are left out. With ``average=True`` every two groups are compared
once, by their rates averaged over the strata that hold both. The weight of a stratum is its share of the rows that the
metric is out of, of all groups that are compared in it. What is left out is listed with the result."""


def _with_docstring(form: str, phrase: Any, arguments: str, call: str) -> Callable[..., WorstRate]:
    kind = FORMS[form]
    phrase.__name__ = phrase.__qualname__ = form
    phrase.__doc__ = f"""Return {kind.meaning}: {kind.formula}.

Called as ``{form}({arguments})``, with conditions, ``of`` and ``value`` as for ``recall``. Groups are those that the
rows hold. Those with fewer than ``min_rows`` rows, of the rows that the metric is out of, are left out; for recall
these are the positives.{_STRATA_HELP if kind.combine is not None else ""}

Returns
-------
Phrase
    To be compared with a number, which makes one goal.

Examples
--------
>>> from counterpoise.goals import {form}
>>> goal = {call} {kind.sense or ">="} 0.5
>>> goal.has_parts
True
"""
    return cast("Callable[..., WorstRate]", phrase)


def columns_of(by: str | Sequence[str], name: str = "by") -> tuple[str, ...]:
    columns = (by,) if isinstance(by, str) else tuple(by) if isinstance(by, list | tuple) else (by,)
    if not all(isinstance(column, str) for column in columns):
        example = {"by": "sex", "within": "job"}[name]
        raise TypeError(f"{name} must be the name of a column, or a list of names, as {name}={example!r}; got {by!r}.")
    return columns


every_class = _metric_function("every_class")
every_group = _metric_function("every_group")
max_difference = _metric_function("max_difference")
min_ratio = _metric_function("min_ratio")
demographic_parity_difference = _group_function("demographic_parity_difference")
demographic_parity_ratio = _group_function("demographic_parity_ratio")
equal_opportunity_difference = _group_function("equal_opportunity_difference")
equal_opportunity_ratio = _group_function("equal_opportunity_ratio")
equalized_odds_difference = _group_function("equalized_odds_difference")
equalized_odds_ratio = _group_function("equalized_odds_ratio")
