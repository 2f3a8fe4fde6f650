"""What is asked: a limit at three bounds, at the least cost; both are measured on test rows."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from counterpoise.metrics import cvar_loss
from papers.arrays import BoolArray, FloatArray
from papers.comparison.rows import Rows, Source

GROUP, DEPLOYED = "group", "deployed"  # columns that rules may look at
Chances = FloatArray  # that each row is called positive


class Question(NamedTuple):
    """A limit and a cost.

    ``value`` is what the limit is about, the smaller the stricter (floors have their sign turned), and ``cost`` is what
    is to be small, both on rows, of the chances with which these are called positive.
    """

    name: str
    limit: str  # in our language, with {bound} in the place of the bound
    value: Callable[[Rows, Chances], float]
    cost: Callable[[Rows, Chances], float]
    bounds: tuple[float, ...]  # that everyone is asked for
    more: tuple[float, ...]  # of our frontier, beside these
    objective: str | None = None  # what is minimized, in our language; None: the error
    by: str = ""  # the column that rules may look at
    words: tuple[str, str] = ("largest difference", "error")  # of value and cost

    @property
    def is_floor(self) -> bool:
        """Tell whether the value must be at least the bound."""
        return ">=" in self.limit

    @property
    def frontier(self) -> tuple[float, ...]:
        """Return all bounds of our frontier, the strictest first."""
        return tuple(sorted({*self.bounds, *self.more}, reverse=self.is_floor))

    def suits(self, source: Source) -> bool:
        """Tell whether a set can be asked."""
        return not source.tail_only and (self.by != GROUP or source.column is not None)

    def score(self, rows: Rows, said: Chances, bound: float) -> float:
        """Return one number to maximize: less cost, and far below it whatever misses the bound."""
        limit = -bound if self.is_floor else bound
        return -self.cost(rows, said) - _FAR * max(0.0, self.value(rows, said) - limit)


_FAR = 1e3


def _error(rows: Rows, said: Chances) -> float:
    return float(np.abs(rows.y - said).mean())


def _rate(said: Chances, where: BoolArray) -> float:
    return float(said[where].mean()) if where.any() else 0.0


def _by_group(rows: Rows, said: Chances, label: int | None = None) -> FloatArray:
    """Return the positive rate of each group, of all rows or of those with a label."""
    counted = np.ones(rows.y.size, dtype=bool) if label is None else rows.y == label
    return np.array([_rate(said, counted & (rows.group == group)) for group in np.unique(rows.group)])


def _parity(rows: Rows, said: Chances) -> float:
    return float(np.ptp(_by_group(rows, said)))


def _opportunity(rows: Rows, said: Chances) -> float:
    return float(np.ptp(_by_group(rows, said, 1)))


def _odds(rows: Rows, said: Chances) -> float:
    return max(float(np.ptp(_by_group(rows, said, label))) for label in (0, 1))


def _ratio(rows: Rows, said: Chances) -> float:
    """Return minus the ratio of the rates; where nobody is called positive they are equal."""
    rates = _by_group(rows, said)
    return -float(rates.min() / rates.max()) if rates.max() > 0 else -1.0


def _worst_recall(rows: Rows, said: Chances) -> float:
    return -float(_by_group(rows, said, 1).min())


def _recall(rows: Rows, said: Chances) -> float:
    return -_rate(said, rows.y == 1)


def _precision(rows: Rows, said: Chances) -> float:
    """Return minus the share of positives among those called so; who calls nobody positive is never wrong in that."""
    return -float(said @ rows.y / said.sum()) if said.sum() > 0 else -1.0


def _false_alarms(rows: Rows, said: Chances) -> float:
    return _rate(said, rows.y == 0)


def _missed(rows: Rows, said: Chances) -> float:
    return 1.0 + _recall(rows, said)


def _churn(rows: Rows, said: Chances) -> float:
    return float(np.abs(rows.deployed - said).mean())


PARITY, OPPORTUNITY, ODDS = "demographic parity", "equal opportunity", "equalized odds"
RATIO, RECALL, PRECISION = "80 % rule", "recall floor", "precision floor"
CHURN, WORST, TAIL = "churn", "worst group", "tail loss"
# No bound of exact equality: the only single rule that meets one may be to call nobody positive, far from all others.
_BOUNDS, _MORE = (0.02, 0.05, 0.1), (0.01, 0.035, 0.07, 0.15, 0.2, 0.3, 1.0)
# Costs bend along recalls and precisions: lines between bounds lie above them, by hundredths of a point with these.
_RECALLS, _PRECISIONS = (
    tuple(round(float(one), 4) for one in np.arange(least, most, 0.02)) for least, most in ((0.25, 0.95), (0.4, 0.9))
)
_GOALS = (
    *(
        Question(name, f"{rate}(train, by={GROUP}) <= {{bound}}", value, _error, _BOUNDS, _MORE, by=GROUP)
        for name, rate, value in (
            (PARITY, "demographic_parity_difference", _parity),
            (OPPORTUNITY, "equal_opportunity_difference", _opportunity),
            (ODDS, "equalized_odds_difference", _odds),
        )
    ),
    Question(
        RATIO,
        f"demographic_parity_ratio(train, by={GROUP}) >= {{bound}}",
        _ratio,
        _error,
        (0.7, 0.8, 0.9),
        (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75, 0.85, 0.95),
        by=GROUP,
        words=("ratio of rates", "error"),
    ),
    Question(
        RECALL,
        "recall(train) >= {bound}",
        _recall,
        _false_alarms,
        (0.7, 0.8, 0.9),
        (0.2, *_RECALLS, 0.96, 0.98, 0.99),
        "false_positive_rate(train)",
        words=("recall", "false alarms"),
    ),
    Question(
        PRECISION,
        "precision(train) >= {bound}",
        _precision,
        _missed,
        (0.6, 0.7, 0.8),
        (*_PRECISIONS, 0.9, 0.95),
        "false_negative_rate(train)",
        words=("precision", "positives missed"),
    ),
    Question(
        CHURN,
        "churn(train) <= {bound}",
        _churn,
        _error,
        (0.01, 0.02, 0.05),
        (0.0, 0.005, 0.03, 0.08, 0.12, 0.2, 1.0),
        by=DEPLOYED,
        words=("answers changed", "error"),
    ),
    Question(
        WORST,
        f"every_group(recall, train, by={GROUP}) >= {{bound}}",
        _worst_recall,
        _error,
        (0.5, 0.6, 0.7),
        (0.0, 0.2, 0.3, 0.4, 0.45, 0.55, 0.65, 0.75, 0.8, 0.9),
        by=GROUP,
        words=("recall of the worst group", "error"),
    ),
)
GOALS = {question.name: question for question in _GOALS}
ALPHAS = (0.05, 0.1, 0.2)
BUDGETS = (0.0, 0.005, 0.01, 0.03, 0.05, 0.1, 0.2, 1.0)


def tail_of(losses: FloatArray, alpha: float) -> tuple[float, float]:
    """Return the average loss and that of the worst-off part: the value and the cost of the question about tails."""
    return float(losses.mean()), float(cvar_loss(losses, alpha))
