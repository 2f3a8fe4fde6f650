"""The usual goals of fairness, metrics of one's own, and a table of all that goals can be made of."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import update_wrapper
from itertools import permutations
from typing import Any, NamedTuple, TypeAlias, cast

from counterpoise._base.checks import check_fraction, check_number
from counterpoise.goals.disparity import DISPARITY
from counterpoise.goals.expressions import Expression, Goal, Rate, Ratio, terms_of
from counterpoise.goals.parsing import OWN_WORDS
from counterpoise.goals.rates import (
    ALIASES,
    CONFUSION,
    COST,
    FLIP_RATE,
    FORMS,
    MAXIMIZED,
    MEANINGS,
    METRICS,
    OTHER_NAMES,
    RATIOS,
    TABLE_METRICS,
    TOTAL,
    false_positive_rate,
    make_metric,
    positive_rate,
    recall,
)
from counterpoise.goals.terms import (
    DEFAULT,
    MACRO,
    WORD,
    Cell,
    Count,
    Dataset,
    Metric,
    format_call,
    format_number,
    rows_of,
)


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
    positive_rate(sex=F) <= positive_rate(sex=M) + 0.1
    positive_rate(sex=M) <= positive_rate(sex=F) + 0.1
    """
    return _alike(positive_rate, groups, within)


def equal_opportunity(groups: Sequence[Dataset], *, within: float = 0.05) -> list[Goal]:
    """Ask that no two groups' recalls differ by more than ``within`` (Hardt et al. 2016); as ``demographic_parity``.

    Examples
    --------
    >>> from counterpoise.goals import Dataset, equal_opportunity
    >>> print(equal_opportunity(Dataset("train").by(sex=["F", "M"]))[0])
    recall(sex=F) <= recall(sex=M) + 0.05
    """
    return _alike(recall, groups, within)


def equalized_odds(groups: Sequence[Dataset], *, within: float = 0.05) -> list[Goal]:
    """Ask that no two groups' recalls and false positive rates differ by more; see ``demographic_parity``.

    Examples
    --------
    >>> from counterpoise.goals import Dataset, equalized_odds
    >>> for goal in equalized_odds(Dataset("train").by(sex=["F", "M"]))[::2]:
    ...     print(goal)
    recall(sex=F) <= recall(sex=M) + 0.05
    false_positive_rate(sex=F) <= false_positive_rate(sex=M) + 0.05
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
    positive_rate(sex=F) >= 0.8 * positive_rate(sex=M)
    """
    check_number(ratio, "ratio", "(0, 1]")
    return [positive_rate(one) >= ratio * positive_rate(other) for one, other in _pairs(groups)]


def _alike(rate: Callable[[Dataset], Rate], groups: Sequence[Dataset], within: float) -> list[Goal]:
    within = check_fraction(within, "within")
    return [rate(one) <= rate(other) + within for one, other in _pairs(groups)]


def _pairs(groups: Sequence[Dataset]) -> list[tuple[Dataset, Dataset]]:
    pairs = list(permutations(groups, 2)) if isinstance(groups, Iterable) else []
    if not pairs or not all(isinstance(group, Dataset) for pair in pairs for group in pair):
        raise TypeError(f"groups must be two Datasets or more, as train.by(sex=['F', 'M']) gives; got {groups!r}.")
    return pairs


Definition: TypeAlias = Callable[[Dataset], Rate | Ratio]
_BUILT_IN = frozenset([*METRICS, *RATIOS, *ALIASES])


def register_metric(
    define: Definition, /, *, name: str | None = None, greater_is_better: bool = False
) -> Callable[..., Rate | Ratio]:
    """Make a metric of your own known by its name: to goals and their texts, tables of rates, displays and reports.

    Parameters
    ----------
    define : callable
        Takes rows, and returns a rate or a ratio that is made of metrics there are, on all of these rows or on those of
        a label or of the baseline's answer.
    name : str, optional
        Default: the name of the function. A metric of your own may be defined anew; goals made before keep theirs.
    greater_is_better : bool, default=False
        Whether a ratio is maximised where it is the objective; rates, as all other objectives, are minimised.

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
    cost(sex=F) <= 0.3
    >>> parse_goal("cost <= 0.3") == (5 * false_negatives("train") + false_positives("train") <= 0.3)
    True
    >>> forget_metric("cost")
    """
    name = getattr(define, "__name__", None) if name is None else name
    if not isinstance(name, str) or not re.fullmatch(WORD, name) or name in {"with", "abs", *OWN_WORDS, *_BUILT_IN}:
        raise ValueError(f"The name of a metric must be a word that no metric has yet; got {name!r}.")
    example = define(Dataset())
    if greater_is_better and not isinstance(example, Ratio):
        raise ValueError(
            f"greater_is_better is for ratios, and {name} is a rate: as an objective write -1 * {name}, which is "
            "minimised."
        )
    if isinstance(example, Ratio):
        for rate in (example.numerator, example.denominator):
            _as_metric(name, rate)  # raises if it cannot be a metric
        entry: dict[str, Any] = {name: lambda rows: replace(cast("Ratio", define(rows)), name=format_call(name, rows))}
    else:
        entry = {name: _as_metric(name, example)}
    forget_metric(name)
    (RATIOS if isinstance(example, Ratio) else METRICS).update(entry)
    TABLE_METRICS.append(name)
    if greater_is_better:
        MAXIMIZED.add(name)
    MEANINGS[name] = (define.__doc__ or "a metric of your own").strip().partition("\n")[0]

    def metric(
        dataset: Dataset | str = DEFAULT, /, *ranges: str, of: Any = None, value: str | None = None, **where: Any
    ) -> Rate | Ratio:
        return make_metric(name, rows_of(dataset, ranges, of, where, value))

    update_wrapper(metric, define).__name__ = name
    return metric


def own_metrics() -> list[str]:
    """Return the names that were registered."""
    return [name for name in TABLE_METRICS if name not in _BUILT_IN]


def forget_metric(name: str) -> None:
    """Take back what ``register_metric`` did, where it did; goals made of the metric keep it.

    Examples
    --------
    >>> from counterpoise.goals import false_positives, forget_metric, parse_goal, register_metric
    >>> alarms = register_metric(false_positives, name="alarms")
    >>> forget_metric("alarms")
    >>> parse_goal("alarms <= 0.1")
    Traceback (most recent call last):
    ...
    counterpoise.goals.UnknownName: Unknown metric 'alarms'. ...
    """
    if name in own_metrics():
        TABLE_METRICS.remove(name)
        METRICS.pop(name, None)
        MEANINGS.pop(name, None)
        RATIOS.pop(name, None)
        MAXIMIZED.discard(name)


def _as_metric(name: str, rate: Any) -> Metric:
    """Return a rate on the rows of ``train`` as what it counts on any rows."""
    if not isinstance(rate, Rate) or not rate.terms:
        raise TypeError(f"The metric {name} must return a rate or a ratio, as error_rate(rows) is; got {rate!r}.")
    every = [Count(sign, Cell(), rate.constant) for sign in (True, False, None)] if rate.constant else []  # 1
    if any(one.called is not None for one in rate.row_counts):
        raise ValueError(f"The metric {name} must not name a class: the goal does, as in {name}(of=cat).")
    counts = [(one, _cell(name, one.rows), _cell(name, one.out_of)) for one in rate.row_counts]
    return Metric(name, (*every, *(Count(one.positive, cell, one.coefficient, whole) for one, cell, whole in counts)))


def _cell(name: str, rows: Dataset) -> Cell:
    if rows.value is not None:
        raise ValueError(f"The metric {name} must not name amounts: the goal does, as in {name}(value=amount).")
    if rows.conditions or rows.ranges or rows.name != DEFAULT:
        raise ValueError(
            f"The metric {name} must use the rows that it is called with, all or by label and baseline; it uses "
            f"{rows}. Goals can add up rates on groups and datasets themselves."
        )
    return Cell(rows.label, rows.baseline)


LEGEND = (
    "#[...] is the weight of the rows for which it holds, n that of all rows; p is the prediction, y the label, b the "
    "prediction of the baseline, c the class that of names, by default the positive one. p=- is a deferred row, which "
    "is not among p!=c. v is the amount in a column."
)


class Entry(NamedTuple):
    """A metric or a phrase."""

    name: str
    formula: str
    needs: str  # of the data
    meaning: str


def catalogue() -> list[Entry]:
    """Return all metrics, those registered among them, and all phrases; other names stand behind the meaning.

    Examples
    --------
    >>> from counterpoise.goals.catalogue import catalogue
    >>> print(*next(entry for entry in catalogue() if entry.name == "churn")[2:], sep=": ")
    baseline: the share of predictions that differ from the baseline's; it needs no labels (also change_rate)
    """
    entries = [Entry(name, _formula(metric), _needs(metric), _meaning(name)) for name, metric in METRICS.items()]
    for name, make in RATIOS.items():
        ratio = make(Dataset())
        sides = [str(side).replace(f"({Dataset()})", "") for side in (ratio.numerator, ratio.denominator)]
        formula = " / ".join(f"({side})" if " + " in side or " - " in side else side for side in sides)
        metrics = (term.metric for term in (*ratio.numerator.terms, *ratio.denominator.terms))
        entries.append(Entry(name, formula, _needs(*metrics), _meaning(name)))
    one_class = "the share of the rows of one class, of, called another, called"
    entries += [
        Entry(CONFUSION, "#[p=d, y=c] / #[y=c]", "labels", one_class),
        Entry(
            COST,
            "sum of cost(c->d) * #[p=d, y=c] / n",
            "labels",
            "the average cost of a row; costs are numbers or columns of amounts, as in cost({1->0: amount, 0->1: 5})",
        ),
        Entry(
            TOTAL,
            "sum of v over p=c",
            "amounts",
            "the sum of the amounts of rows predicted positive, as in total(value=profit)",
        ),
        Entry(
            FLIP_RATE,
            "#[p!=p of the twin] / n",
            "twins",
            "the share of rows decided otherwise than their twins in another dataset: flip_rate(twin=swapped) <= 0.05",
        ),
        Entry(
            DISPARITY,
            "max over groups of mean over strata of group / #[p!=c] - group / #[p=c]",
            "groups, strata",
            "the largest share of a group in the rejected less that in the accepted, inside strata, as in "
            "conditional_disparity(by=sex, within=job) <= 0.05",
        ),
        Entry(MACRO, "mean over classes c of metric(of=c)", "", "the average of a metric over all classes"),
        Entry("abs", "max(rate, -rate)", "", "the absolute value, most often of a difference of two rates"),
    ]
    for name, kind in FORMS.items():
        formula = f"{kind.formula}, of {' and '.join(kind.metrics)}" if kind.metrics else kind.formula
        needs = [_needs(*(METRICS[metric] for metric in kind.metrics)), "groups" if kind.by else ""]
        entries.append(Entry(name, formula, ", ".join(filter(None, needs)), kind.meaning))
    equality = "a rate that must be a number, up to a tolerance (0.005 if left out): selection_rate == 0.2 +- 0.005"
    small = (
        "groups or classes with fewer rows are left out and listed: max_difference(recall, by=sex, min_rows=50) <= 0.1"
    )
    inside = "groups are compared inside each stratum, such as a job: max_difference(recall, by=sex, within=job) <= 0.1"
    average = (
        "their rates are averaged over the strata first: "
        "max_difference(recall, by=sex, within=job, average=True) <= 0.1"
    )
    money = (
        "rows count with the amounts of a column, none below 0, in any metric or phrase: recall(value=amount) >= 0.8"
    )
    return [
        *entries,
        Entry("==", "max(rate - number, number - rate) <= tolerance", "", equality),
        Entry("min_rows", "rows that the metric is out of >= min_rows, each group", "", small),
        Entry("within", "metric(column=g, within=s) of each group g in each stratum s", "groups, strata", inside),
        Entry("average", "sum over strata s of rows(s) / rows * metric(column=g, within=s)", "groups, strata", average),
        Entry("value", "sum of v in place of #", "amounts", money),
    ]


def needs(rate: Goal | Expression, part: str) -> bool:
    """Return whether a rate or a goal depends on the "label" or on the "baseline" of rows."""
    counts = (one for term in terms_of(rate) for one in term.row_counts())
    return any(getattr(rows, part) is not None for one in counts for rows in (one.rows, one.out_of))


def _meaning(name: str) -> str:
    """Return what a metric is, with its other names."""
    aliases = ", ".join(OTHER_NAMES.get(name, ()))
    return f"{MEANINGS[name]} (also {aliases})" if aliases else MEANINGS[name]


def _needs(*metrics: Metric) -> str:
    """Return what metrics ask of the data."""
    counts = [(metric, count) for metric in metrics for count in metric.counts]
    cells = [cell for metric, count in counts for cell in (metric.out_of, count.cell, count.out_of) if cell is not None]
    parts = (("labels", "label"), ("baseline", "baseline"))
    return ", ".join(word for word, part in parts if any(getattr(cell, part) is not None for cell in cells))


def _formula(metric: Metric) -> str:
    """Return what a metric counts, out of what."""
    parts: dict[Cell, list[Count]] = {}
    for count in metric.counts:
        parts.setdefault(metric.out_of if count.out_of is None else count.out_of, []).append(count)
    fractions = []
    for cell, counts in parts.items():
        total = ""
        for count in counts:
            size = "" if abs(count.coefficient) == 1 else f"{format_number(abs(count.coefficient))} "
            sign = ("" if count.coefficient > 0 else "-") if not total else (" + " if count.coefficient > 0 else " - ")
            answer = "p=-" if count.positive is None else "p=c" if count.positive else "p!=c"
            total += f"{sign}{size}{_weight(count.cell, answer)}"
        fractions.append(f"{f'({total})' if len(counts) > 1 else total} / {_weight(cell) or 'n'}")
    return " + ".join(fractions)


def _weight(cell: Cell, *words: str) -> str:
    parts = [(name, value) for name, value in (("y", cell.label), ("b", cell.baseline)) if value is not None]
    words = (*words, *(f"{name}{'=' if value else '!='}c" for name, value in parts))
    return f"#[{', '.join(words)}]" if words else ""
