"""Rates: what is counted, on which rows. The metrics of Goh, Cotter, Gupta and Friedlander (NIPS 2016), Tables 2 and 4.

Every metric here is a linear combination of positive and negative predictions on parts of a dataset, or a ratio of two
of those. A metric is a row of the table ``METRICS``: data, not a class. Its counts are shares of the dataset's weight,
so ``true_positives(train)`` is #TP / n.

Corrections to the printed tables (first sign the label, second the baseline's prediction):
#Changes = |D++| s_n(D++) + |D+-| s_p(D+-) + |D-+| s_n(D-+) + |D--| s_p(D--), and
#Losses = |D++| s_n(D++) + |D--| s_p(D--).
"""

from collections.abc import Callable
from typing import Any

from counterpoise.goals.expressions import Rate, Ratio
from counterpoise.goals.rows import DEFAULT, Cell, Dataset, as_dataset
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
_CHANGES = Count(positive=False, cell=Cell(baseline=True)), Count(positive=True, cell=Cell(baseline=False))
_WINS = (
    Count(positive=True, cell=Cell(label=True, baseline=False)),
    Count(positive=False, cell=Cell(label=False, baseline=True)),
)
_LOSSES = (
    Count(positive=False, cell=Cell(label=True, baseline=True)),
    Count(positive=True, cell=Cell(label=False, baseline=False)),
)

METRICS = {
    metric.name: metric
    for metric in (
        Metric("positive_rate", (Count(positive=True, cell=_ALL),)),
        Metric("negative_rate", (Count(positive=False, cell=_ALL),)),
        Metric("coverage", (Count(positive=True, cell=_ALL),)),
        Metric("true_positives", (_TP,)),
        Metric("true_negatives", (_TN,)),
        Metric("false_positives", (_FP,)),
        Metric("false_negatives", (_FN,)),
        Metric("error_rate", (_FP, _FN)),
        Metric("accuracy", (_TP, _TN)),
        Metric("correct", (_TP, _TN)),
        Metric("recall", (_TP,), out_of=_POSITIVES),
        Metric("true_positive_rate", (_TP,), out_of=_POSITIVES),
        Metric("false_negative_rate", (_FN,), out_of=_POSITIVES),
        Metric("false_positive_rate", (_FP,), out_of=_NEGATIVES),
        Metric("true_negative_rate", (_TN,), out_of=_NEGATIVES),
        Metric("churn", _CHANGES),
        Metric("win_rate", _WINS),
        Metric("loss_rate", _LOSSES),
        Metric("wins_minus_losses", _WINS + tuple(count._replace(coefficient=-1.0) for count in _LOSSES)),
    )
}


def positive_rate(dataset: Dataset | str = DEFAULT, /, **where: Any) -> Rate:
    """Return the share of positive predictions.

    Parameters
    ----------
    dataset : Dataset or str, default="train"
        The rows, or their name.
    **where
        Conditions on columns, as for ``Dataset.where``.

    Returns
    -------
    Rate
        It can be added, scaled, and compared to make a goal. All metrics here take the same arguments.

    Examples
    --------
    >>> from counterpoise.goals import Dataset, Table, positive_rate
    >>> rate = positive_rate("train", sex="F")
    >>> rate == positive_rate(Dataset("train").where(sex="F"))
    True
    >>> people = Table(None, sensitive_features={"sex": ["F", "F", "M"]})
    >>> rate.value(["yes", "no", "yes"], people)
    0.5
    >>> rate.expected_value([0.9, 0.5, 0.2], people), rate.ramp_value([0.3, -2.0, 1.0], people)
    (0.7, 0.4)
    """
    return _rate("positive_rate", dataset, where)


def negative_rate(dataset: Dataset | str = DEFAULT, /, **where: Any) -> Rate:
    """Return the share of negative predictions."""
    return _rate("negative_rate", dataset, where)


def coverage(dataset: Dataset | str = DEFAULT, /, **where: Any) -> Rate:
    """Return the share of positive predictions, under the name that budgets use."""
    return _rate("coverage", dataset, where)


def true_positives(dataset: Dataset | str = DEFAULT, /, **where: Any) -> Rate:
    """Return #TP over the number of all rows."""
    return _rate("true_positives", dataset, where)


def true_negatives(dataset: Dataset | str = DEFAULT, /, **where: Any) -> Rate:
    """Return #TN over the number of all rows."""
    return _rate("true_negatives", dataset, where)


def false_positives(dataset: Dataset | str = DEFAULT, /, **where: Any) -> Rate:
    """Return #FP over the number of all rows."""
    return _rate("false_positives", dataset, where)


def false_negatives(dataset: Dataset | str = DEFAULT, /, **where: Any) -> Rate:
    """Return #FN over the number of all rows."""
    return _rate("false_negatives", dataset, where)


def error_rate(dataset: Dataset | str = DEFAULT, /, **where: Any) -> Rate:
    """Return the share of wrong predictions.

    Arguments are those of ``positive_rate``.

    Examples
    --------
    >>> from counterpoise.goals import error_rate
    >>> print(error_rate("train", age=30) <= 0.2)
    error_rate(train, age=30) <= 0.2
    """
    return _rate("error_rate", dataset, where)


def accuracy(dataset: Dataset | str = DEFAULT, /, **where: Any) -> Rate:
    """Return the share of right predictions."""
    return _rate("accuracy", dataset, where)


def correct(dataset: Dataset | str = DEFAULT, /, **where: Any) -> Rate:
    """Return the share of right predictions, for examples that must not go wrong: ``correct(D) >= 1``.

    ``correct(D.positives) >= 1`` asks it of the positive ones only. The paper prints the goal on negatives as
    ``s_n(D-) <= kappa``; it must be ``>=``.
    """
    return _rate("correct", dataset, where)


def recall(dataset: Dataset | str = DEFAULT, /, **where: Any) -> Rate:
    """Return the share of positive predictions among the rows labelled positive.

    Arguments are those of ``positive_rate``.

    Examples
    --------
    >>> from counterpoise.goals import recall
    >>> print(recall("train", sex="F") >= 0.9)
    recall(train, sex=F) >= 0.9
    """
    return _rate("recall", dataset, where)


def true_positive_rate(dataset: Dataset | str = DEFAULT, /, **where: Any) -> Rate:
    """Return the share of positive predictions among the rows labelled positive; another name of recall."""
    return _rate("true_positive_rate", dataset, where)


def false_negative_rate(dataset: Dataset | str = DEFAULT, /, **where: Any) -> Rate:
    """Return the share of negative predictions among the rows labelled positive."""
    return _rate("false_negative_rate", dataset, where)


def false_positive_rate(dataset: Dataset | str = DEFAULT, /, **where: Any) -> Rate:
    """Return the share of positive predictions among the rows labelled negative."""
    return _rate("false_positive_rate", dataset, where)


def true_negative_rate(dataset: Dataset | str = DEFAULT, /, **where: Any) -> Rate:
    """Return the share of negative predictions among the rows labelled negative."""
    return _rate("true_negative_rate", dataset, where)


def churn(dataset: Dataset | str = DEFAULT, /, **where: Any) -> Rate:
    """Return the share of predictions that differ from the baseline's; needs no labels.

    Arguments are those of ``positive_rate``.

    Examples
    --------
    >>> from counterpoise.goals import churn
    >>> print(churn("mail") <= 0.03)
    churn(mail) <= 0.03
    """
    return _rate("churn", dataset, where)


def win_rate(dataset: Dataset | str = DEFAULT, /, **where: Any) -> Rate:
    """Return the share of rows on which the prediction is right and the baseline's wrong."""
    return _rate("win_rate", dataset, where)


def loss_rate(dataset: Dataset | str = DEFAULT, /, **where: Any) -> Rate:
    """Return the share of rows on which the prediction is wrong and the baseline's right."""
    return _rate("loss_rate", dataset, where)


def wins_minus_losses(dataset: Dataset | str = DEFAULT, /, **where: Any) -> Rate:
    """Return the share of wins less that of losses: the gain in accuracy over the baseline."""
    return _rate("wins_minus_losses", dataset, where)


def precision(dataset: Dataset | str = DEFAULT, /, **where: Any) -> Ratio:
    """Return the share of rows labelled positive among the positive predictions, a ratio: #TP / (#TP + #FP).

    Arguments are those of ``positive_rate``.

    Examples
    --------
    >>> from counterpoise.goals import precision
    >>> print(precision("train") >= 0.9)
    precision(train) >= 0.9
    """
    rows = as_dataset(dataset).where(**where)
    return Ratio(true_positives(rows), positive_rate(rows), f"precision({rows})")


def f1_score(dataset: Dataset | str = DEFAULT, /, **where: Any) -> Ratio:
    """Return the harmonic mean of precision and recall, a ratio: 2 #TP / (2 #TP + #FN + #FP)."""
    rows = as_dataset(dataset).where(**where)
    hits = 2 * true_positives(rows)
    return Ratio(hits, hits + error_rate(rows), f"f1_score({rows})")


def win_loss_ratio(dataset: Dataset | str = DEFAULT, /, **where: Any) -> Ratio:
    """Return #Wins / #Losses against the baseline, a ratio."""
    rows = as_dataset(dataset).where(**where)
    return Ratio(win_rate(rows), loss_rate(rows), f"win_loss_ratio({rows})")


def win_change_ratio(dataset: Dataset | str = DEFAULT, /, **where: Any) -> Ratio:
    """Return #Wins / #Changes against the baseline, a ratio."""
    rows = as_dataset(dataset).where(**where)
    return Ratio(win_rate(rows), churn(rows), f"win_change_ratio({rows})")


RATIOS: dict[str, Callable[[Dataset], Ratio]] = {
    "precision": precision,
    "f1_score": f1_score,
    "win_loss_ratio": win_loss_ratio,
    "win_change_ratio": win_change_ratio,
}
TABLED = ["positive_rate", "error_rate", "recall", "false_positive_rate", "precision", "churn"]  # and those registered


_EARLIER = {"wins": "win_rate", "losses": "loss_rate"}  # names of metrics in files of earlier versions


def named(name: str, rows: Dataset) -> Rate | Ratio:
    """Return the metric of that name on the rows."""
    name = _EARLIER.get(name, name)
    if name in RATIOS:
        return RATIOS[name](rows)
    if name not in METRICS:
        raise unknown("metric", name, [*METRICS, *RATIOS])
    return _rate(name, rows, {})


def _rate(name: str, dataset: Dataset | str, where: dict[str, Any]) -> Rate:
    term = Term(1.0, METRICS[name], as_dataset(dataset).where(**where))
    if not any(term.counted()):
        raise ValueError(
            f"{term} counts nothing, because no row of {term.rows} can be among those that {name} is about."
        )
    return Rate(0.0, (term,))
