"""Rates: what is counted, on which rows. The metrics of Goh, Cotter, Gupta and Friedlander (NIPS 2016), Tables 2 and 4.

Every metric here is a linear combination of positive and negative predictions on parts of a dataset, or a ratio of two
of those. A metric is a row of the table ``METRICS``: data, not a class. Its counts are shares of the dataset's weight,
so ``true_positives(train)`` is #TP / n. A deferred row, about which a person decides, is neither positive nor negative,
neither right nor wrong, stays in every denominator, and differs from what any baseline says.

Corrections to the printed tables (first sign the label, second the baseline's prediction):
#Changes = |D++| s_n(D++) + |D+-| s_p(D+-) + |D-+| s_n(D-+) + |D--| s_p(D--), and
#Losses = |D++| s_n(D++) + |D--| s_p(D--). The goal on egregious negatives, printed ``s_n(D-) <= kappa``, has ``>=``.

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

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from counterpoise.goals.expressions import Rate, Ratio
from counterpoise.goals.rows import DEFAULT, Cell, Dataset, rows_of
from counterpoise.goals.terms import Count, Metric, Term
from counterpoise.goals.wording import unknown

__all__ = [
    "Dataset",
    "Rate",
    "Ratio",
    "accuracy",
    "churn",
    "correct",
    "coverage",
    "decided_error_rate",
    "decided_positive_rate",
    "defer_rate",
    "error_rate",
    "f1_score",
    "false_negative_rate",
    "false_negatives",
    "false_positive_rate",
    "false_positives",
    "loss_rate",
    "negative_rate",
    "positive_rate",
    "precision",
    "recall",
    "true_negative_rate",
    "true_negatives",
    "true_positive_rate",
    "true_positives",
    "win_change_ratio",
    "win_loss_ratio",
    "win_rate",
    "wins_minus_losses",
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
TABLED = ["positive_rate", "error_rate", "recall", "false_positive_rate", "precision", "churn"]  # and those registered
_HELP = """Return {meaning}.

Parameters
----------
dataset : Dataset or str, default="train"
    The rows, or their name.
*ranges : str
    Conditions on numbers, as ``"18<=age<25"``.
of : label, optional
    The class that is called positive; by default the ``pos_label`` of whoever is asked.
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

    def __call__(self, dataset: Dataset | str = DEFAULT, /, *ranges: str, of: Any = None, **where: Any) -> Made_co: ...


def _rate(
    name: str, meaning: str, *counts: Count, out_of: Cell = _ALL, of_each: tuple[Count, ...] = ()
) -> MetricFunction[Rate]:
    """Enter a metric into the table, and return the function that makes a rate of it."""
    METRICS[name] = Metric(name, counts, out_of, of_each)
    return _function(name, f"the share of {meaning}", lambda rows: _counted(name, rows))


def _ratio(name: str, meaning: str, sides: Callable[[Dataset], tuple[Rate, Rate]]) -> MetricFunction[Ratio]:
    """Enter a ratio of two rates, and return the function that makes it."""
    RATIOS[name] = lambda rows: Ratio(*sides(rows), f"{name}({rows})")
    return _function(name, meaning, RATIOS[name])


def _function(name: str, meaning: str, make: Callable[[Dataset], Made_co]) -> MetricFunction[Made_co]:
    def metric(dataset: Dataset | str = DEFAULT, /, *ranges: str, of: Any = None, **where: Any) -> Made_co:
        return make(rows_of(dataset, ranges, of, where))

    kind = Ratio if name in RATIOS else Rate
    MEANINGS[name] = meaning.replace("``", "`")
    metric.__name__ = metric.__qualname__ = name
    metric.__doc__ = _HELP.format(name=name, meaning=meaning, kind=kind.__name__)
    metric.__annotations__["return"] = kind
    return metric


def _counted(name: str, rows: Dataset) -> Rate:
    term = Term(1.0, METRICS[name], rows)
    if not any(term.counted()):
        raise ValueError(f"{term} counts nothing, because no row of {rows} can be among those that {name} is about.")
    return Rate(0.0, (term,))


def named(name: str, rows: Dataset) -> Rate | Ratio:
    """Return the metric of that name on the rows."""
    if name in RATIOS:
        return RATIOS[name](rows)
    if name not in METRICS:
        raise unknown("metric", name, [*METRICS, *RATIOS])
    return _counted(name, rows)


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
true_positive_rate = _rate("true_positive_rate", "positives that are found: recall", _TP, out_of=_POSITIVES)
false_negative_rate = _rate("false_negative_rate", "positives that are not found", _FN, out_of=_POSITIVES)
false_positive_rate = _rate("false_positive_rate", "negatives that are predicted positive", _FP, out_of=_NEGATIVES)
true_negative_rate = _rate("true_negative_rate", "negatives that are predicted negative", _TN, out_of=_NEGATIVES)
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
f1_score = _ratio(
    "f1_score",
    "the harmonic mean of precision and recall: 2 #TP / (2 #TP + #FN + #FP)",
    lambda rows: (2 * true_positives(rows), 2 * true_positives(rows) + error_rate(rows)),
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
