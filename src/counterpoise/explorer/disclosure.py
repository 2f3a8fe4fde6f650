"""Numbers that the explorer hides because they would reveal single rows.

Everyone who has the address of a page may see sums over rows, but no rows. A goal of your own is refused if fewer than
ten rows count for it, or if its conditions leave out fewer than ten. Goals that the model was chosen for stay, and
their numbers are hidden. The messages name no value that few rows have and no number of rows. They are the same for few
rows and for none, so nobody can find out by asking which values there are. Two large groups may still differ in a few
rows only. Noise alone would help against that, and then no number on the page would be that of the library.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from counterpoise._base.text import did_you_mean
from counterpoise._base.types import BoolArray, ByteArray, FloatArray, IntArray
from counterpoise.explorer.setting import Recent, goal_key, number, numbers
from counterpoise.explorer.solving import MixtureRates
from counterpoise.goals import Goal, Table
from counterpoise.goals.binding import Views
from counterpoise.goals.bound_goals import check_goal_data
from counterpoise.goals.catalogue import needs
from counterpoise.goals.classes import Classes
from counterpoise.goals.expressions import ComparedRatios, Ratio, terms_of
from counterpoise.goals.rates import MOST_GROUPS, TABLE_METRICS, WorstRate, make_metric
from counterpoise.goals.tables import combine_groups
from counterpoise.goals.terms import BadColumn, Dataset, Fraction, NoRows, format_name, format_value, kinds_of
from counterpoise.metrics import as_fraction
from counterpoise.theory.confidence import upper_bounded_mean, upper_share

LEAST_ROWS = 10  # behind a number that is shown
HIDDEN = f"fewer than {LEAST_ROWS} rows"
UNREADABLE = (
    "A column holds values that this goal cannot use. Conditions such as age<=33 need numbers. Amounts must be finite "
    "numbers, at least 0 in rates."
)
_MOST_VALUES = 30  # of a column that are listed
_MOST_REASONS = 500  # goals of which it is known whether they are about few rows


class DisclosureGuard:
    """Decides which goals are about few rows, on the selection rows or on held-out ones.

    Parameters
    ----------
    choice, held_out : dicts from names to Table
        The second is empty where there are no held-out rows.
    classes : Classes
    own : iterable of Goal
        The goals that the model was fitted for. They stay, however few their rows are.
    """

    def __init__(
        self, choice: Mapping[str, Table], held_out: Mapping[str, Table], classes: Classes, own: Iterable[Goal]
    ) -> None:
        self._choice, self._held_out, self._classes = choice, held_out, classes
        self._own = {goal_key(goal) for goal in own}
        self._reasons = Recent(_MOST_REASONS)

    def check(self, goal: Goal) -> None:
        """Refuse a goal that the user adds, if it is about few rows."""
        why = self.why(goal)
        if why and goal_key(goal) not in self._own:
            raise ValueError(why)

    def why(self, goal: Goal) -> str:
        """Return why a goal is hidden; an empty text where it is not."""
        name = goal_key(goal)
        if name not in self._reasons:
            self._reasons[name] = self._find_reason(goal)
        return self._reasons[name]  # type: ignore[no-any-return]

    def _find_reason(self, goal: Goal) -> str:
        """Check the selection rows, and held-out rows that have what the goal needs."""
        why = _why(goal, Views(self._choice, self._classes), "")
        if why or not self._held_out:
            return why
        try:
            return _why(goal, Views(self._held_out, self._classes), "the held-out rows of ")
        except ValueError:  # they lack a column, labels or a baseline: nothing is shown of them, and the page says so
            return ""


def _why(goal: Goal, views: Views, which: str) -> str:
    left, reason = goal.left, ""
    try:
        check_goal_data([goal], views)
    except BadColumn:
        return UNREADABLE
    except ValueError:  # what else is wrong the checks below find, or the program
        reason = ""
    if isinstance(left, WorstRate):  # its rows are checked before its groups are looked up
        table = views.table(left.rows.name)
        many = [
            name for name in (*left.by, *left.within) if name in table.columns and _n_values(table, name) > MOST_GROUPS
        ]
        reason = _of_columns(left.rows, views, which)
        if many and not reason:
            count = _n_values(table, many[0])
            reason = f"The column {many[0]!r} has {count} values: too many to be groups. Use ranges of it."
    else:
        reasons = (_of_columns(rows, views, which) for parts in _row_sets(goal, views) for rows in parts)
        reason = next(filter(None, reasons), "")
    if reason or not any(_are_few(views, parts) for parts in _row_sets(goal, views)):
        return reason
    return (
        f"The goal {goal} is about fewer than {LEAST_ROWS} rows of {which}its datasets, or leaves out fewer. It would "
        "reveal single rows. Use a wider group or range."
    )


def _of_columns(rows: Dataset, views: Views, which: str) -> str:
    """Return which condition only few rows meet, and the values that more rows have."""
    table = views.table(rows.name)
    for column, text in rows.conditions:
        if column in table.columns and table.matches(column, text).sum() < LEAST_ROWS:
            where = f"{which}dataset {rows.name!r}"
            return f"Fewer than {LEAST_ROWS} rows of {where} have {_describe_values(table, column, text)}"
    return ""


def _row_sets(goal: Goal, views: Views) -> Iterator[tuple[Dataset, ...]]:
    """Yield the rows that shares are taken of, and the parts that are counted together, for every group."""
    try:
        goals = goal.parts(views)
    except NoRows:  # there is no group to compare
        return
    for term in dict.fromkeys(term for part in goals for term in terms_of(part)):
        counts = list(term.row_counts())
        yield from {(one.out_of,) for one in counts}
        yield tuple(dict.fromkeys(one.rows for one in counts))


def _are_few(views: Views, parts: tuple[Dataset, ...]) -> bool:
    """Return whether parts of rows, or the rows that they leave out, are few: the rest follows from the whole."""
    if any(_effective_rows(views, rows) < LEAST_ROWS for rows in parts if rows.value is not None):
        return True  # few of the rows have most of the amounts
    count = sum(_count(views, rows) for rows in parts)
    wholes = (sum(_count(views, rows) for rows in wider) for wider in _wider(parts))
    return count < LEAST_ROWS or any(0 < whole - count < LEAST_ROWS for whole in wholes)


def _wider(parts: tuple[Dataset, ...]) -> Iterator[tuple[Dataset, ...]]:
    """Yield the same parts of all rows, and of those without one of the conditions; then rows of every kind."""
    conditions, ranges = parts[0].conditions, parts[0].ranges
    fewer: list[dict[str, Any]] = [{"conditions": (), "ranges": ()}]
    fewer += [{"conditions": tuple(one for one in conditions if one != dropped)} for dropped in conditions]
    fewer += [{"ranges": tuple(one for one in ranges if one != dropped)} for dropped in ranges]
    yield from (tuple(replace(rows, **some) for rows in parts) for some in fewer)
    yield (replace(parts[0], label=None, baseline=None),)


def _count(views: Views, rows: Dataset) -> int:
    if rows.of is not None:
        views.place(rows.of)  # which says what classes there are
    try:
        return int(views.rows(rows)[0].size)
    except NoRows:
        return 0


def _effective_rows(views: Views, rows: Dataset) -> float:
    """Return on how many rows of equal amounts a sum of amounts rests."""
    try:
        sizes = np.abs(views.rows(rows)[1])
    except NoRows:
        return 0.0
    return float(sizes.sum() ** 2 / max(float((sizes**2).sum()), np.finfo(np.float64).tiny))


def is_of_few(goal: Goal, mixture: MixtureRates) -> bool:
    """Return whether a goal on ratios, such as precision, counts few rows; their number depends on the decisions."""
    ratios: list[Any] = []
    for left in (part.left for part in goal.parts(mixture.views)):
        ratios += [left.one, left.other] if isinstance(left, ComparedRatios) else [left]
    rates = [ratio.denominator for ratio in ratios if isinstance(ratio, Ratio)]
    behind = [mixture.value(rate) * min(_count(mixture.views, one.out_of) for one in rate.row_counts) for rate in rates]
    return any(count < LEAST_ROWS for count in behind)


def _describe_values(table: Table, column: str, text: str) -> str:
    """Return the condition, and the values that it could name."""
    values = values_of(table, column)
    condition = f"{format_name(column)}={format_value(text[:_MOST_VALUES])}."
    if values is None:
        return f"{condition} The column has {_n_values(table, column)} values: too many to list."
    return f"{condition}{did_you_mean(text, values)} Values of more rows: {', '.join(map(repr, values)) or 'none'}."


def _n_values(table: Table, column: str) -> int:
    values = table.column(column)
    return np.unique(values).size if values.dtype.kind in "biuf" else len(table.levels(column).place)


def values_of(table: Table, column: str) -> list[str] | None:
    """Return the values of a column that goals may name, those of enough rows; None where there are many."""
    try:
        values = table.column(column)
        if values.dtype.kind in "biuf" and _n_values(table, column) > _MOST_VALUES:
            return None
        levels = table.levels(column)
    except (TypeError, ValueError):
        return None
    if len(levels.place) > _MOST_VALUES:
        return None
    counts = np.bincount(levels.codes[levels.codes >= 0], minlength=len(levels.place))
    return [text for text, place in levels.place.items() if counts[place] >= LEAST_ROWS]


def amounts_of(table: Table) -> dict[str, list[str]]:
    """Return the columns of numbers that differ: those that rates may count with, and those with losses among them."""
    columns: dict[str, list[str]] = {"amounts": [], "profits": []}
    for column in table.columns:
        with suppress(ValueError):
            values = table.column(column)
            if values.dtype.kind in "iuf" and np.isfinite(values).all() and np.ptp(values) > 0:
                columns["amounts" if values.min() >= 0 else "profits"].append(column)
    return columns


def shown_groups(sizes: Sequence[float], *others: Sequence[float]) -> list[bool]:
    """Return which groups are shown: none that is small, and so many others hidden that no small rest is left.

    All rows less those of the groups that are shown are the hidden ones: where these are few, the smallest other group
    is hidden with them. Leaving them out of what all rows have would give a sum that is nowhere else. The same holds
    for other counts that numbers of a group rest on, such as its positives.

    Examples
    --------
    >>> from counterpoise.explorer.disclosure import shown_groups
    >>> shown_groups([400, 5, 300, 200]), shown_groups([400, 6, 7]), shown_groups([30, 20])
    ([True, False, True, False], [True, False, False], [True, True])
    >>> shown_groups([400, 100, 300], [90, 4, 80])
    [True, False, False]
    """
    counts = np.array([sizes, *others], dtype=np.float64)
    shown: BoolArray = np.asarray((counts >= LEAST_ROWS).all(axis=0))
    while shown.any() and any(0 < rest < LEAST_ROWS for rest in counts[:, ~shown].sum(axis=1).tolist()):
        shown[np.where(shown, counts[0], np.inf).argmin()] = False
    return [bool(one) for one in shown.tolist()]


def spread(counts: IntArray) -> list[float]:
    """Return counts of neighbouring cells, evened out over so many that each number stands for enough rows.

    Their sum stays. Where there are few in all, there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.explorer.disclosure import spread
    >>> spread(np.array([0, 40, 3, 2, 5, 0, 1])), spread(np.array([4, 5]))
    ([0.0, 40.0, 2.2, 2.2, 2.2, 2.2, 2.2], [0.0, 0.0])
    """
    if counts.sum() < LEAST_ROWS:
        return [0.0] * counts.size
    blocks: list[list[int]] = []
    block: list[int] = []
    for count in counts.tolist():
        block = [*block, count]
        if sum(block) == 0 or sum(block) >= LEAST_ROWS:
            blocks, block = [*blocks, block], []
    while 0 < sum(block) < LEAST_ROWS:  # what is left goes with what stands before it
        block = blocks.pop() + block
    return [sum(some) / len(some) for some in [*blocks, block] for _ in some]


MOST_EXPLORED = 12
DEFERRED = "defer_rate"
_ANSWERS = 3
_KINDS = 4 * _ANSWERS  # of rows: by label, by deployed answer, and by one of three answers
_BY_LABEL = np.repeat(np.eye(2), _KINDS // 2, axis=0)  # which kinds of rows are negative, and which positive
_WRONG = np.array([[0, 1, 0] * 2 + [0] * 6, [0] * 6 + [1, 0, 0] * 2])  # kinds that are wrongly positive, and negative
_RISK = 0.025  # of each end of an interval
IntervalOf: TypeAlias = Callable[[float, float], tuple[float, float]]


class GroupRates:
    """Labelled rows by group, label and baseline prediction; with the decisions these make kinds of rows."""

    def __init__(self, table: Table, classes: Classes) -> None:
        labels, baseline = (None if part is None else part == classes.positive for part in (table.y, table.baseline))
        unknown = [word for word, part in (("label", labels), ("baseline", baseline)) if part is None]
        codes, names = group_codes(table)
        self.names, self.sizes = ["all", *names], [table.n_samples, *np.bincount(codes, minlength=len(names)).tolist()]
        self._base = codes * _KINDS + kinds_of(np.zeros(table.n_samples, dtype=np.int64), labels, baseline)
        self._weights, self._size = table.sample_weight, _KINDS * max(len(names), 1)
        rates = {name: make_metric(name, Dataset()) for name in (DEFERRED, *TABLE_METRICS)}
        parts = {name: as_fraction(one) for name, one in rates.items() if not any(needs(one, word) for word in unknown)}
        self.fractions = {name: part for name, part in parts.items() if part is not None}
        self._of_labels = {name for name in self.fractions if needs(rates[name], "label")}
        self._deployed = None if baseline is None else np.asarray(baseline, dtype=np.uint8)
        self._has_labels = labels is not None

    def of_deployed(self) -> list[dict[str, Any]] | None:
        """Return the rates of the deployed model; None where its predictions are not known."""
        return None if self._deployed is None else self.of_decisions(self._deployed)

    def of_decisions(self, decisions: ByteArray, *, defers: bool = False) -> list[dict[str, Any]]:
        """Return the rates of each group that is large enough, with intervals where they are shares of rows."""
        kinds = self._base + decisions
        rows = self._count_kinds(kinds, None)
        counts = rows if self._weights is None else self._count_kinds(kinds, self._weights)
        return self._groups(counts, rows, with_intervals=self._weights is None, defers=defers)

    def of_shares(
        self, shares: FloatArray, deferred: FloatArray | None, *, held_out: bool = False
    ) -> list[dict[str, Any]]:
        """Return the expected rates of each group, from the probabilities of positive decisions and of deferral.

        On held-out rows, a rate has an interval if the decisions do not change the number of rows that it is out of.
        """
        deferral = np.zeros(shares.size) if deferred is None else deferred
        answers = (1.0 - shares - deferral, shares, deferral)
        rows = self._expected_counts(answers, None)
        counts = rows if self._weights is None else self._expected_counts(answers, self._weights)
        with_intervals = held_out and self._weights is None
        return self._groups(counts, rows, with_intervals=with_intervals, defers=deferred is not None, are_drawn=True)

    def _expected_counts(self, answers: tuple[FloatArray, ...], weights: FloatArray | None) -> FloatArray:
        parts = answers if weights is None else [weights * part for part in answers]
        return np.asarray(sum(self._count_kinds(self._base + code, part) for code, part in enumerate(parts)))

    def _count_kinds(self, kinds: Any, weights: FloatArray | None) -> FloatArray:
        return np.asarray(np.bincount(kinds, weights, self._size), dtype=np.float64)

    def _groups(
        self, counts: FloatArray, rows: FloatArray, *, with_intervals: bool, defers: bool, are_drawn: bool = False
    ) -> list[dict[str, Any]]:
        """Return each group that is shown, with its rates that rest on enough rows.

        Beside them is which parts of its rows are wrongly positive, and wrongly negative.
        """
        # how many rows of each kind there are: in all, then in each group
        by_group = (some.reshape(-1, _KINDS) for some in (counts, rows))
        weights, n_rows = (np.vstack([some.sum(axis=0), some]) for some in by_group)
        fractions = {name: part for name, part in self.fractions.items() if defers or name != DEFERRED}
        # Of a group with few positives, rates that use labels would together reveal their number.
        by_label = (n_rows @ _BY_LABEL).T
        places = np.flatnonzero(self._are_shown(self.sizes)).tolist()
        wrong, is_told = weights @ _WRONG.T / weights.sum(axis=1, keepdims=True), self._are_shown(self.sizes, *by_label)
        groups: list[dict[str, Any]] = [
            {"group": self.names[place], "rows": self.sizes[place], "rates": {}}
            | {"wrong": numbers(wrong[place]) if is_told[place] and self._has_labels else None}
            for place in places
        ]
        for name, part in fractions.items():
            enough = self._are_shown(self.sizes, n_rows @ part.bottom, *(by_label if name in self._of_labels else ()))
            has_interval = with_intervals and _has_interval(part, are_drawn=are_drawn)
            bounds = partial(_bounds, are_drawn=are_drawn) if has_interval else None
            for one, place in zip(groups, places, strict=True):
                one["rates"][name] = _rate(weights[place], part, bounds) if enough[place] else None
        return groups

    def _are_shown(self, *counts: Any) -> list[bool]:
        """Return what is shown for all rows together and for each group, from the counts of their rows."""
        of_names = [np.asarray(some)[: len(self.names)] for some in counts]
        every = all(some[0] >= LEAST_ROWS for some in of_names)
        return [every, *shown_groups(*(some[1:].tolist() for some in of_names))]


def group_codes(table: Table) -> tuple[Any, list[str]]:
    """Return the group of each row by the sensitive columns: all of them where that makes few groups, else the first.

    Without such columns all rows are of one group, which has no name.
    """
    columns = table.sensitive_columns
    for some in (columns, columns[:1]):
        codes, names = combine_groups({name: table.levels(name) for name in some}, table.n_samples)
        if some and len(names) <= MOST_EXPLORED:
            return codes, names
    return np.zeros(table.n_samples, dtype=np.int64), []


def _has_interval(part: Fraction, *, are_drawn: bool) -> bool:
    """Return whether a rate is a share of rows; of drawn decisions, of rows whose number does not depend on them."""
    by_answer = part.bottom.reshape(-1, _ANSWERS)
    return part.is_count and (not are_drawn or bool((by_answer == by_answer[:, :1]).all()))


def _bounds(top: float, bottom: float, *, are_drawn: bool) -> tuple[float, float]:
    """Return the exact interval of a share of rows; where decisions are drawn, that of a mean of probabilities."""
    if not are_drawn:
        return 1.0 - upper_share(bottom - top, bottom, _RISK), upper_share(top, bottom, _RISK)
    n_rows, mean = round(bottom), min(top / bottom, 1.0)
    return 1.0 - upper_bounded_mean(1.0 - mean, n_rows, _RISK), upper_bounded_mean(mean, n_rows, _RISK)


def _rate(counts: FloatArray, part: Fraction, bounds: IntervalOf | None) -> list[float | None] | None:
    """Return value, low and high; None where no row counts."""
    top, bottom = float(part.top @ counts), float(part.bottom @ counts)
    if bottom <= 0:
        return None
    if bounds is None:
        return [number(top / bottom), None, None]
    low, high = bounds(top, bottom)
    return [number(top / bottom), number(low), number(high)]
