"""Phrases on the worst of several: every class, every group, the largest difference, the least ratio.

Which classes and groups there are is known once there are data; a phrase is written before. One goal on a phrase is
then a limit on each of its parts, with one price, one verdict and one line in a report.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any, NamedTuple, cast

from counterpoise.goals.class_rates import metric_name
from counterpoise.goals.expressions import Rate, Ratio, Several
from counterpoise.goals.rates import RATIOS, MetricFunction, named
from counterpoise.goals.rows import DEFAULT, Dataset, rows_of
from counterpoise.goals.terms import Known
from counterpoise.goals.wording import NoRows, written_name

MOST_GROUPS = 50  # every pair of which makes two rows of the program

Members = tuple[Rate | Ratio, ...]


class Form(NamedTuple):
    """A kind of phrase."""

    meaning: str
    formula: str
    combine: Callable[[Sequence[Any]], Members]
    sense: str = ""  # of the goals on it; both where empty
    metrics: tuple[str, ...] = ()  # empty where one is given
    by: bool = True  # whether it is over the groups of columns, and not over classes


def _differences(rates: Sequence[Any]) -> Members:
    return tuple(one - other for one, other in permutations(rates, 2))


def _ratios(rates: Sequence[Any]) -> Members:
    return tuple(one / other for one, other in permutations(rates, 2))


_GAP, _SHARE = "max over groups - min over groups", "min over groups / max over groups"
FORMS = {
    "every_class": Form(
        "a rate of each class, as several goals at once", "metric(of=c), each class c", tuple, by=False
    ),
    "every_group": Form("a rate of each group, as several goals at once", "metric(column=g), each group g", tuple),
    "max_difference": Form("the largest difference of a rate between two groups", _GAP, _differences, "<="),
    "min_ratio": Form("the least ratio of a rate between two groups", _SHARE, _ratios, ">="),
    "demographic_parity_difference": Form(
        "the largest difference of positive rates", _GAP, _differences, "<=", ("positive_rate",)
    ),
    "demographic_parity_ratio": Form("the least ratio of positive rates", _SHARE, _ratios, ">=", ("positive_rate",)),
    "equal_opportunity_difference": Form("the largest difference of recalls", _GAP, _differences, "<=", ("recall",)),
    "equal_opportunity_ratio": Form("the least ratio of recalls", _SHARE, _ratios, ">=", ("recall",)),
    "equalized_odds_difference": Form(
        "the largest difference of recalls or of false positive rates",
        _GAP,
        _differences,
        "<=",
        ("recall", "false_positive_rate"),
    ),
    "equalized_odds_ratio": Form(
        "the least ratio of recalls or of false positive rates",
        _SHARE,
        _ratios,
        ">=",
        ("recall", "false_positive_rate"),
    ),
}


@dataclass(frozen=True)
class Phrase(Several):
    """The worst of a rate over all classes, or over the groups that columns make.

    Examples
    --------
    >>> from counterpoise.goals import Table, max_difference, recall
    >>> phrase = max_difference(recall, "train", by="sex")
    >>> table = Table(None, y=[1, 1, 1, 1], sensitive_features={"sex": list("FFMM")})
    >>> print((phrase <= 0.1).evaluate([1, 1, 1, 0], table, classes=[0, 1]))  # doctest: +NORMALIZE_WHITESPACE
    max_difference(recall, train, by=sex) <= 0.1: missed by 0.4
    (0.5, bound 0.1: recall(train, sex=F) - recall(train, sex=M))
    """

    form: str
    rows: Dataset
    metric: str = ""  # where the form does not say which
    by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        wanted = FORMS[self.form]
        if wanted.by != bool(self.by):
            over = "the groups of a column, as by=sex" if wanted.by else "all classes, and takes no by"
            raise ValueError(f"{self.form} is over {over}; got by={', '.join(self.by) or None}.")
        if not wanted.by and self.rows.of is not None:
            raise ValueError(f"{self.form} is over all classes; got of={self.rows.of}.")
        if self.metric in RATIOS and wanted.combine is not tuple:
            bound = "<= 0.2" if "error" in self.metric else ">= 0.8"
            raise TypeError(
                f"{self} compares ratios, which is not linear once multiplied through: bound each of them, as in "
                f"every_group({self.metric}, {self.rows}, by={self.by[0]}) {bound}."
            )
        for column in self.by:
            self.rows.where(**{column: ""})  # which says what is wrong with a column of this name
        _ = self.sample  # and this, with what is counted

    @property
    def sense(self) -> str:  # type: ignore[override]
        return FORMS[self.form].sense

    @property
    def datasets(self) -> tuple[str, ...]:
        return (self.rows.name,)

    @property
    def compared_columns(self) -> tuple[str, ...]:
        return (*self.rows.compared_columns, *self.by)

    @property
    def sample(self) -> Members:
        return self._of([replace(self.rows, name=text) for text in "ab"])

    def members(self, known: Known) -> Members:
        if not self.by:
            return self._of([self.rows.seen_as(text) for text in known.class_texts()])
        columns, n_groups = " and ".join(map(repr, self.by)), known.count_groups(self.rows, self.by)
        if n_groups > MOST_GROUPS:
            raise ValueError(
                f"{self} is over at most {MOST_GROUPS} groups; by {columns} there are {n_groups}. Bring values "
                "together in a column of their own, or use ranges such as age<=33."
            )
        groups = known.groups(self.rows, self.by)
        if len(groups) < 2 and FORMS[self.form].combine is not tuple:  # noqa: PLR2004
            held = f"one, {groups[0]}" if groups else "none"
            raise NoRows(f"{self} compares groups; by {columns} there is {held}.")
        if not groups:
            raise NoRows(f"{self} is about groups; by {columns} there is none.")
        return self._of(groups)

    def _of(self, groups: Sequence[Dataset]) -> Members:
        form = FORMS[self.form]
        metrics = form.metrics or (self.metric,)
        return tuple(member for name in metrics for member in form.combine([named(name, rows) for rows in groups]))

    def __str__(self) -> str:
        parts = [*filter(None, [self.metric]), str(self.rows), *(f"by={written_name(column)}" for column in self.by)]
        return f"{self.form}({', '.join(parts)})"

    def __repr__(self) -> str:
        return f"<{self}>"


def _over_groups(form: str) -> Callable[..., Phrase]:
    def phrase(
        dataset: Dataset | str = DEFAULT, /, *ranges: str, by: str | Sequence[str] = (), of: Any = None, **where: Any
    ) -> Phrase:
        return Phrase(form, rows_of(dataset, ranges, of, where), by=_columns(by))

    return _documented(form, phrase, 'dataset="train", by=column', f'{form}("train", by="sex")')


def _of_metric(form: str) -> Callable[..., Phrase]:
    def phrase(
        metric: MetricFunction[Any] | str,
        dataset: Dataset | str = DEFAULT,
        /,
        *ranges: str,
        by: str | Sequence[str] = (),
        of: Any = None,
        **where: Any,
    ) -> Phrase:
        return Phrase(form, rows_of(dataset, ranges, of, where), metric_name(metric), _columns(by))

    call = f'{form}("recall", "train"{", by=" + repr("sex") if FORMS[form].by else ""})'
    return _documented(form, phrase, "metric, dataset", call)


def _documented(form: str, phrase: Any, arguments: str, call: str) -> Callable[..., Phrase]:
    wanted = FORMS[form]
    phrase.__name__ = phrase.__qualname__ = form
    phrase.__doc__ = f"""Return {wanted.meaning}: {wanted.formula}.

Called as ``{form}({arguments})``, with conditions and ``of`` as for ``recall``. Groups are those that the rows hold.

Returns
-------
Phrase
    To be compared with a number, which makes one goal.

Examples
--------
>>> from counterpoise.goals import {form}
>>> goal = {call} {wanted.sense or ">="} 0.5
>>> goal.is_several
True
"""
    return cast("Callable[..., Phrase]", phrase)


def _columns(by: str | Sequence[str]) -> tuple[str, ...]:
    columns = (by,) if isinstance(by, str) else tuple(by) if isinstance(by, list | tuple) else (by,)
    if not all(isinstance(column, str) for column in columns):
        raise TypeError(f"by must be the name of a column, or a list of names, as by='sex'; got {by!r}.")
    return columns


every_class = _of_metric("every_class")
every_group = _of_metric("every_group")
max_difference = _of_metric("max_difference")
min_ratio = _of_metric("min_ratio")
demographic_parity_difference = _over_groups("demographic_parity_difference")
demographic_parity_ratio = _over_groups("demographic_parity_ratio")
equal_opportunity_difference = _over_groups("equal_opportunity_difference")
equal_opportunity_ratio = _over_groups("equal_opportunity_ratio")
equalized_odds_difference = _over_groups("equalized_odds_difference")
equalized_odds_ratio = _over_groups("equalized_odds_ratio")
