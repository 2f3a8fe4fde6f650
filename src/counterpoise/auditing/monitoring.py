"""Goals watched over time: after every batch of rows, which hold, which fail, and since when.

The verdicts may be looked at after every row, for as long as you like: all of them are right together, at all times,
with the stated confidence. How that is possible is in ``theory.sequential``, what is counted in ``auditing.streams``.

A goal fails where one of its limits is exceeded, such as that of one group. Limits share the risk of the goal: its
evidence is the average of theirs, with weights fixed before the rows of the limit were seen. A goal holds where all its
limits do; each has the whole risk, as the statement is wrong only if a certain one is. Goals share the risk equally.

A second process watches for changes: a goal that held for a year would else take long to fail. At every batch a new
test starts, on the rows from there on. The sum of their evidence, each times the rows of its first batch, is on average
at most the number of rows so far while the goal holds: so the average number of rows until it reaches a threshold is at
least that threshold (Shin, Ramdas and Rinaldo 2022, E-detectors). Tests may be dropped at any time, which makes the sum
smaller; a few dozen are kept. The one with the most evidence estimates when the change began.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from counterpoise._base.checks import check_number
from counterpoise._base.shapes import ANY, LABEL, NOTHING, TEXT, OrNone, Some, check_shape, number, one_of, whole
from counterpoise._base.text import short, shown
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray
from counterpoise.auditing.arriving import ArrivingRows, Waiting, has_label
from counterpoise.auditing.audit import FAILS, HOLDS, UNDECIDED, add_confidence
from counterpoise.auditing.streams import LEVELS, CountedStream, MonitoredLimit, Stream, count_rows, no_rows
from counterpoise.auditing.verdicts import GoalVerdict, Moment, Verdicts
from counterpoise.goals.binding import PreparedPredictions, Views, no_rows_reason, prepare
from counterpoise.goals.bound_goals import refuse_compared, risk_of_each
from counterpoise.goals.catalogue import needs
from counterpoise.goals.classes import check_classes, distinct_labels, find_classes, without_deferred
from counterpoise.goals.equality import Distance
from counterpoise.goals.expressions import Goal, amount_columns, terms_of
from counterpoise.goals.parsing import as_goals
from counterpoise.goals.rates import WorstRate
from counterpoise.goals.tables import check_largest_value
from counterpoise.goals.terms import DEFAULT, Dataset, NoRows, is_missing, text_of

__all__ = ["Monitor"]

_FIRST = 0.9  # part of the risk for the groups of the first update; those that appear later share the rest
_STARTS, _RECENT = 40, 12  # tests for a change that are kept, and how many of the last of them in any case
_MOST_NAMED = 1000  # groups that are known before any row
_MANY = 10**6  # groups, of which the check of their number is made elsewhere
_FORM = "counterpoise monitor 1"
_ROUNDING = 1e-9  # part of a number of rows by which sums of parts of rows may miss it
_OPTIONS = ("classes", "pos_label", "defer_label", "largest_weight", "largest_value", "groups", "run_length")


_STATE = {
    "form": TEXT,
    "goals": [TEXT, ...],
    "classes": OrNone([LABEL, ...]),
    "pos_label": OrNone(LABEL),
    "defer_label": OrNone(LABEL),
    "largest_weight": OrNone(number(0.0)),
    "largest_value": ANY,  # a number or an object, checked where it is used
    "groups": {str: [OrNone(LABEL)]},
    "run_length": number(1.0),
    "numbers": (whole(), whole(), whole()),
    **dict.fromkeys(("found", "sizes", "streams", "starts", "watched", "waiting"), ANY),  # whose shapes depend on these
}


class _KnownGroups(Views):
    """What phrases ask of data, answered by all rows so far."""

    def __init__(self, classes: Any, found: Mapping[str, list[Any]], sizes: Mapping[str, float]) -> None:
        super().__init__({}, classes)
        self.found, self.sizes = found, sizes
        self.asked: dict[str, Dataset] = {}  # rows whose number was asked for

    def groups(self, rows: Dataset, columns: tuple[str, ...], most: int) -> tuple[int, list[Dataset]]:  # noqa: ARG002
        """Return the groups that have appeared, in the order of their appearance."""
        known = self.found.get(_phrase_key(rows, columns), [])
        return len(known), [rows.select(dict(values)) for values in known]

    def n_rows(self, rows: Dataset) -> int:
        """Return how many rows there were."""
        self.asked[str(rows)] = rows
        return round(self.sizes.get(str(rows), 0.0))

    def mean_amount(self, rows: Dataset) -> float:  # noqa: ARG002
        """Return the unit of amounts, which must not depend on them."""
        return 1.0


class _WatchedGoal:
    """A goal with the limits that it stands for so far, and what was noticed."""

    def __init__(self, goal: Goal, risk: float) -> None:
        self.goal, self.risk = goal, risk
        left = goal.left.rate if isinstance(goal.left, Distance) else goal.left
        self.phrase = left if isinstance(left, WorstRate) and left.by else None
        self.limits: dict[str, MonitoredLimit] = {}  # in the order of their appearance
        self.n_first = 0
        self.needs_labels = needs(goal, "label")
        self.verdict, self.note = UNDECIDED, ""
        self.moments: dict[str, Moment | None] = dict.fromkeys(("failed_at", "began", "changed_at"))

    def log_weights(self) -> FloatArray:
        """Return the logarithm of the part of the risk that each limit has."""
        first = (1.0 if self.phrase is None else _FIRST) / max(self.n_first, 1)
        later = np.arange(1.0, len(self.limits) - self.n_first + 1)
        parts = np.concatenate([np.full(self.n_first, first), (1.0 - _FIRST) / (later * (later + 1.0))])
        return np.asarray(np.log(parts))

    def new_limits(self, views: Views) -> dict[str, MonitoredLimit]:
        """Return the limits that it stands for in addition, now that more groups are known."""
        self.note = ""
        try:
            parts = self.goal.parts(views)
        except NoRows as error:
            self.note = no_rows_reason(error)
            return {}
        return {str(part): MonitoredLimit.of(part) for part in parts if str(part) not in self.limits}

    def look(self, counted: Mapping[str, CountedStream]) -> None:
        """Find the verdict: what fails stays so, and whether it holds may change."""
        if self.verdict == FAILS:
            return
        level, sign, bound = -math.log(self.risk), self.goal.sign, self.goal.bound
        against, holds = [-math.inf], bool(self.limits)
        for limit, weight in zip(self.limits.values(), self.log_weights().tolist(), strict=True):
            outside = sign * (limit.estimate(counted) - bound)
            if outside > 0:
                against.append(weight + limit.evidence(counted, bound, sign, level - weight))
            holds = holds and outside <= 0 and limit.evidence(counted, bound, -sign, level) >= level
        self.verdict = FAILS if logsumexp(against) >= level else HOLDS if holds else UNDECIDED


class _CheckedBatch(NamedTuple):
    """Rows as rates see them."""

    prepared: PreparedPredictions
    ids: AnyArray | None

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return self.prepared.views.table(DEFAULT).n_samples


class _Start(NamedTuple):
    """A batch at which a test for a change starts."""

    moment: Moment
    masses: tuple[float, float]  # rows of the batch: all, and those with a label
    numbers: dict[str, FloatArray]  # of the streams before it


class Monitor:
    """Goals watched over time, on rows that keep coming.

    Parameters
    ----------
    goals : goals or their texts
        On the dataset ``train``, which are here the rows that come. A goal may carry its own confidence. Totals, which
        are facts about given rows, cannot be watched.
    confidence : float in (0, 1), default=0.95
        The probability that no verdict is ever wrong, at whatever time, of all goals that carry no confidence.
    classes : array of labels, optional
        All classes; by default those of the first update.
    pos_label : label, optional
        The positive class; by default the last of the sorted classes.
    defer_label : label, optional
        What answers hold for rows that are deferred to a person.
    largest_weight : float, optional
        The largest weight that a row can ever have. Needed where rows have weights.
    largest_value : float or dict from columns to floats, optional
        The largest amount that a row can ever have, for goals that count amounts.
    groups : dict from columns to lists of values, optional
        The groups that phrases such as ``every_group`` are about; by default those that appear. Those of the first
        update share nine tenths of the risk, later ones the rest.
    run_length : float >= 1, default=1_000_000
        How many rows pass on average, at least, before the watch for changes gives a false alarm for some goal.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise import Monitor
    >>> rng = np.random.default_rng(0)
    >>> monitor = Monitor("selection_rate <= 0.3", classes=[0, 1])
    >>> for week in range(1, 7):
    ...     answers = rng.random(500) < (0.25 if week < 4 else 0.45)
    ...     verdicts = monitor.update(answers.astype(int), time=f"week {week}")
    >>> print(verdicts)
    goal                  estimate     low    high  bound  verdict  since   rows
    positive_rate <= 0.3    0.3617  0.3335  0.3906    0.3  fails    week 4  3000
    positive_rate <= 0.3: a violation since week 4 was noticed at week 4.
    All verdicts, at all times, are right together with confidence 0.95.
    """

    def __init__(
        self,
        goals: Any,
        *,
        confidence: float = 0.95,
        classes: ArrayLike | None = None,
        pos_label: Any = None,
        defer_label: Any = None,
        largest_weight: float | None = None,
        largest_value: float | Mapping[str, float] | None = None,
        groups: Mapping[str, Sequence[Any]] | None = None,
        run_length: float = 1_000_000,
    ) -> None:
        all_goals = add_confidence(as_goals(goals), confidence)
        _check_goals(all_goals)
        self.goals = tuple(all_goals)
        self.run_length = check_number(run_length, "run_length", "[1, inf)", "a number of rows")
        self.pos_label, self.defer_label = pos_label, defer_label
        self.classes = None if classes is None else check_classes(classes).tolist()
        weight = None if largest_weight is None else check_number(largest_weight, "largest_weight", "(0, inf)")
        self.largest_weight, self.largest_value = weight, check_largest_value(largest_value)
        self.groups = {
            name: [value.item() if isinstance(value, np.generic) else value for value in values]
            for name, values in (groups or {}).items()
        }
        refuse_compared(all_goals, "A monitor")
        self._amounts = amount_columns(all_goals)
        _check_amounts(self._amounts, self.largest_value)
        self._watched = [
            _WatchedGoal(goal, risk) for goal, risk in zip(all_goals, risk_of_each(all_goals), strict=True)
        ]
        self._columns = list(dict.fromkeys(name for one in self._watched for name in _columns_of(one)))
        self._needs_baseline = any(needs(goal, "baseline") for goal in all_goals)
        self._needs_labels = any(needs(goal, "label") for goal in all_goals)
        self.n_rows = self.n_updates = self.n_unlabelled = 0
        self._waiting = Waiting(self._columns, {}, {})
        self._found: dict[str, list[Any]] = {}  # groups by phrase
        self._sizes: dict[str, float] = {}
        self._counted: dict[str, CountedStream] = {}
        self._starts: list[_Start] = []
        for one in self._watched:
            if one.phrase is not None and set(one.phrase.by) <= self.groups.keys():
                texts = [[text_of(value) for value in self.groups[column]] for column in one.phrase.by]
                if math.prod(map(len, texts)) > _MOST_NAMED:
                    raise ValueError(
                        f"groups must make at most {_MOST_NAMED} groups of {one.goal}; got "
                        f"{math.prod(map(len, texts))}. Leave it out: groups that appear are found."
                    )
                pairs = [[list(pair) for pair in zip(one.phrase.by, own, strict=True)] for own in product(*texts)]
                self._found[_phrase_key(one.phrase.rows, one.phrase.by)] = pairs

    @property
    def n_waiting(self) -> int:
        """Return how many rows wait for their label."""
        return self._waiting.n_rows

    @property
    def n_early(self) -> int:
        """Return how many labels came whose row has not come yet."""
        return self._waiting.n_labels

    def update(
        self,
        answers: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        baseline: Any = None,
        sample_weight: Any = None,
        ids: Any = None,
        time: Any = None,
    ) -> Verdicts:
        """Count a batch of rows, or a single one, and look at the goals.

        A batch is one look, and the order of its rows plays no role. One that is refused changes nothing.

        Parameters
        ----------
        answers : array of decisions, one decision, or None
            None: ``y`` and ``ids`` are labels of rows that came earlier, or will come.
        y : array of labels, optional
            A missing one is not known yet. Rows with ids wait for it; others are never counted where a goal needs it.
        sensitive_features : data frame, dict of arrays or array, optional
            Columns that goals name; a bare array is the column ``group``.
        baseline : array of labels, optional
            The decisions of the deployed model.
        sample_weight : array, optional
            Weights up to ``largest_weight``.
        ids : array, optional
            Who each row is about. Rows of one id in one update count as one together, in each rate. A label that comes
            later goes to the row of its id that has waited longest.
        time : str, number or date, optional
            When the batch was decided; by default the number of the update.

        Returns
        -------
        Verdicts
            As ``verdicts``.
        """
        moment = Moment(_plain_time(time, self.n_updates + 1), self.n_updates + 1, self.n_rows)
        waiting, n_unlabelled, rows = self._waiting.copy(), 0, None
        if answers is None:
            if y is None or ids is None:
                raise ValueError("Without answers an update needs y and ids: labels, and the rows that they belong to.")
            labelled = waiting.match(y, ids) if self._needs_labels else None
        else:
            parts = (sensitive_features, baseline, sample_weight, ids)
            rows = ArrivingRows.read(answers, y, *parts, columns=self._columns)
            self._check_parts(rows)
            labelled = None
        classes = self._find_classes(rows)
        if rows is not None and self._needs_labels:
            labelled, n_unlabelled = waiting.admit(rows)
        every = None if rows is None else self._prepare(rows, classes, has_labels=False)
        known = None if labelled is None else self._prepare(labelled, classes, has_labels=True)
        found, sizes, limits, counted = self._count(classes, every, known)  # from here on nothing is refused
        self._remember(moment, every, known)
        self._found, self._sizes, self._counted = found, sizes, counted
        for one, more in zip(self._watched, limits, strict=True):
            one.n_first = one.n_first or len(more)
            one.limits |= more
        self._waiting, self.n_unlabelled = waiting, self.n_unlabelled + n_unlabelled
        self.classes, self.n_updates = classes, self.n_updates + 1
        self.n_rows += 0 if rows is None else rows.n_rows
        self._judge(moment._replace(n_rows=self.n_rows))
        return self.verdicts

    def state(self) -> dict[str, Any]:
        """Return all that a monitor is, as plain values that JSON holds exactly: ``restore`` makes it again.

        Examples
        --------
        >>> import json
        >>> from counterpoise import Monitor
        >>> monitor = Monitor("selection_rate <= 0.3", classes=[0, 1])
        >>> verdicts = monitor.update([0, 1, 0])
        >>> again = Monitor.restore(json.loads(json.dumps(monitor.state())))
        >>> again.verdicts == verdicts
        True
        """
        options = {name: getattr(self, name) for name in _OPTIONS}
        options |= {name: one.item() for name, one in options.items() if isinstance(one, np.generic)}
        starts = [
            [list(one.moment), list(one.masses), {key: own.tolist() for key, own in one.numbers.items()}]
            for one in self._starts
        ]
        watched = [
            [list(one.limits), one.n_first, one.verdict, {name: own and list(own) for name, own in one.moments.items()}]
            for one in self._watched
        ]
        return {
            "form": _FORM,
            "goals": [str(goal) for goal in self.goals],
            **options,
            "numbers": [self.n_rows, self.n_updates, self.n_unlabelled],
            "found": self._found,
            "sizes": self._sizes,
            "streams": {key: one.numbers.tolist() for key, one in self._counted.items()},
            "starts": starts,
            "watched": watched,
            "waiting": [self._waiting.rows, self._waiting.labels],
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> "Monitor":
        """Return the monitor of a ``state``, which goes on as if it had never stopped."""
        if not isinstance(state, Mapping) or state.get("form") != _FORM:
            form = state.get("form") if isinstance(state, Mapping) else state
            raise ValueError(f"This is not the state of a monitor of this version; got {shown(form)}.")
        try:
            check_shape(state, _STATE, "state")
            monitor = cls(state["goals"], **{name: state[name] for name in _OPTIONS})
            monitor._continue(state)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"The state of a monitor is damaged: {short(error).rstrip('.')}. Pass what state() gave."
            ) from error
        return monitor

    def _continue(self, state: Mapping[str, Any]) -> None:
        """Take over what a state has counted, after checking it against the shape that goals and options give it."""
        self.n_rows, self.n_updates, self.n_unlabelled = state["numbers"]
        moment = (LABEL, whole(1, self.n_updates), whole(0, self.n_rows))
        size, n_columns = number(0.0, self.n_rows * (1.0 + _ROUNDING)), len(self._columns)
        weight = NOTHING if self.largest_weight is None else number(0.0)
        groups = {
            _phrase_key(one.phrase.rows, one.phrase.by): [tuple((one_of(name), TEXT) for name in one.phrase.by)]
            for one in self._watched
            if one.phrase is not None
        }
        moments = dict.fromkeys(self._watched[0].moments, OrNone(moment))
        watched = ([TEXT], whole(), one_of(HOLDS, FAILS, UNDECIDED), moments)
        shape = {
            **dict.fromkeys(_STATE, ANY),
            "found": Some(groups),
            "sizes": {str: number(0.0)},
            "starts": [(moment, (size, size), {str: ANY})],
            "watched": (watched,) * len(self._watched),
            "waiting": (
                {str: [(LABEL, OrNone(LABEL), weight, *[OrNone(LABEL)] * n_columns), ...]},
                {str: [LABEL, ...]},
            ),
        }
        check_shape(state, shape, "state")
        if len(state["starts"]) > _STARTS:
            raise ValueError(f"starts must be at most {_STARTS}; got {len(state['starts'])}")
        self._found, self._sizes = dict(state["found"]), dict(state["sizes"])
        self._waiting = Waiting(self._columns, *state["waiting"])
        classes = self._class_values(self.classes)
        known = _KnownGroups(classes, self._found, self._sizes)
        streams: dict[str, Stream] = {}
        for one, (names, n_first, verdict, own_moments) in zip(self._watched, state["watched"], strict=True):
            limits = one.new_limits(known)
            check_shape(dict.fromkeys(names), Some(dict.fromkeys(limits, ANY)), f"the limits of {one.goal}")
            one.limits = {name: limits[name] for name in names}
            check_shape(n_first, whole(0, len(one.limits)), "the number of first limits")
            one.n_first, one.verdict = n_first, verdict
            one.moments = {name: own and Moment(*own) for name, own in own_moments.items()}
            streams |= {term.key: term.stream for limit in one.limits.values() for term in limit.terms}
        limits_of_rows = {"largest_weight": self.largest_weight, "largest_value": self.largest_value}
        blank = {key: no_rows(stream, classes, self._amounts, **limits_of_rows) for key, stream in streams.items()}
        numbers = Some({key: (size,) * own.numbers.size for key, own in blank.items()})
        check_shape(state["streams"], numbers, "streams")
        self._counted = {
            key: blank[key]._replace(numbers=np.array(own, dtype=np.float64)) for key, own in state["streams"].items()
        }
        for own_moment, masses, own_numbers in state["starts"]:
            check_shape(own_numbers, numbers, "streams at a start")
            arrays = {key: np.array(own, dtype=np.float64) for key, own in own_numbers.items()}
            if any(key not in self._counted or (own > self._counted[key].numbers).any() for key, own in arrays.items()):
                raise ValueError("a start must not have counted more rows than there are now")
            self._starts.append(_Start(Moment(*own_moment), tuple(masses), arrays))

    def _check_parts(self, rows: ArrivingRows) -> None:
        """Check what a batch must have for all that goals ask, also of rows whose label comes later."""
        missing = [name for name in self._columns if name not in rows.columns]
        if missing:
            raise ValueError(
                f"The goals name the column {missing[0]!r}, which the rows do not have. Pass it in sensitive_features."
            )
        if self._needs_baseline and rows.baseline is None:
            raise ValueError("Some goal compares with the deployed model. Pass its decisions as baseline.")
        if (rows.weights is None) != (self.largest_weight is None):
            what = "sample_weight without largest_weight" if self.largest_weight is None else "no sample_weight"
            raise ValueError(
                f"Weights need a limit that holds for all rows to come: pass largest_weight to Monitor and "
                f"sample_weight to each update; got {what}."
            )

    def _find_classes(self, rows: ArrivingRows | None) -> list[Any] | None:
        """Return the classes; those of the first rows where none were named."""
        if self.classes is not None or rows is None:
            return self.classes
        answers = without_deferred(rows.answers, self.defer_label)
        labels = None if rows.y is None else rows.y[has_label(rows.y)]
        names = distinct_labels([answers, labels]).tolist()
        if set(names) <= {0, 1}:
            return [0, 1]
        if len(names) < 2:  # noqa: PLR2004 - a decision between two
            raise ValueError(f"The first rows show the class {names[0]!r} alone. Name all classes, as classes=[0, 1].")
        return sorted(names, key=lambda label: (str(type(label)), label))

    def _prepare(self, rows: ArrivingRows, classes: list[Any] | None, *, has_labels: bool) -> "_CheckedBatch | None":
        """Return rows of positive weight as rates see them, after checking them; None where there are none."""
        counting = rows if rows.weights is None else rows.only(np.flatnonzero(rows.weights > 0))
        if not counting.n_rows:
            return None
        limits = {"largest_weight": self.largest_weight, "largest_value": self.largest_value}
        table = counting.table(limits, has_labels=has_labels)
        for column in self._amounts:
            table.largest_amount(column, DEFAULT)
        options = {"classes": classes, "pos_label": self.pos_label, "defer_label": self.defer_label}
        prepared = prepare(counting.answers, table, kind="labels", **options)
        for part in ("y",) * has_labels + ("baseline",) * self._needs_baseline:
            prepared.views.codes(DEFAULT, part)
        views = Views(prepared.views.tables, prepared.views.classes, LEVELS)
        return _CheckedBatch(prepared._replace(views=views), counting.ids)

    def _count(
        self, classes: list[Any] | None, every: "_CheckedBatch | None", known: "_CheckedBatch | None"
    ) -> tuple[dict[str, list[Any]], dict[str, float], list[dict[str, MonitoredLimit]], dict[str, CountedStream]]:
        """Return the groups that have appeared, the limits that goals stand for, and the counts of all streams."""
        found, sizes, counted = dict(self._found), dict(self._sizes), dict(self._counted)
        for one in self._watched:
            if one.phrase is not None and every is not None:
                key = _phrase_key(one.phrase.rows, one.phrase.by)
                found[key] = _with_groups(found.get(key, []), one.phrase, every.prepared.views)
        views = _KnownGroups(self._class_values(classes), found, sizes)
        limits = [one.new_limits(views) for one in self._watched]
        if views.asked:  # some groups are left out while they are small
            for name, rows in views.asked.items():
                batch = every if rows.label is None else known
                sizes[name] = sizes.get(name, 0.0) + (0 if batch is None else _n_rows_of(batch.prepared.views, rows))
            views = _KnownGroups(views.classes, found, sizes)
            limits = [one.new_limits(views) for one in self._watched]
        pairs = zip(self._watched, limits, strict=True)
        all_limits = (limit for one, more in pairs for limit in (one.limits | more).values())
        streams = {term.key: term.stream for limit in all_limits for term in limit.terms}
        for key, stream in streams.items():
            batch = known if stream.needs_label else every
            more = None if batch is None else count_rows(stream, batch.prepared, batch.ids)
            if more is not None:
                own = counted.get(key)
                counted[key] = more if own is None else own._replace(numbers=own.numbers + more.numbers)
        return found, sizes, limits, counted

    def _class_values(self, classes: list[Any] | None) -> Any:
        known = find_classes((), classes=classes, pos_label=self.pos_label)
        return known._replace(deferred=self.defer_label)

    def _remember(self, moment: Moment, every: "_CheckedBatch | None", known: "_CheckedBatch | None") -> None:
        """Start a test for a change at this batch; of older ones those that are close together are dropped."""
        masses = tuple(0.0 if part is None else float(part.n_rows) for part in (every, known))
        if any(masses):
            numbers = {key: stream.numbers for key, stream in self._counted.items()}
            self._starts.append(_Start(moment._replace(n_rows=self.n_rows), (masses[0], masses[1]), numbers))
        while len(self._starts) > _STARTS:
            ages = np.array([self.n_rows + 1.0 - start.moment.n_rows for start in self._starts])
            gaps = (ages[:-2] - ages[2:]) / ages[1:-1]  # between the neighbours of each, as parts of its age
            del self._starts[1 + int(gaps[: len(gaps) - _RECENT].argmin())]

    def _judge(self, moment: Moment) -> None:
        """Look at all goals."""
        for one in self._watched:
            one.look(self._counted)
            if one.verdict == FAILS and one.moments["failed_at"] is None:
                one.moments["failed_at"] = moment
            evidence, began = self._evidence_of_change(one)
            if evidence >= math.log(self.run_length * len(self._watched)) and one.moments["changed_at"] is None:
                one.moments["changed_at"] = moment
            if one.moments["began"] is None and (one.moments["failed_at"] or one.moments["changed_at"]):
                one.moments["began"] = began

    def _evidence_of_change(self, one: _WatchedGoal) -> tuple[float, Moment | None]:
        """Return the logarithm of the evidence of a change, and the batch with which it most likely began."""
        level = math.log(self.run_length * len(self._watched))
        masses = np.array([start.masses[one.needs_labels] for start in self._starts])
        total, best, began = -math.inf, -math.inf, None
        for limit, weight in zip(one.limits.values(), one.log_weights(), strict=True):
            if not limit.has_rows(self._counted):
                continue
            numbers = {}
            for key in (term.key for term in limit.terms):
                none = np.zeros(self._counted[key].numbers.size)
                numbers[key] = np.array([start.numbers.get(key, none) for start in self._starts])
            logs = limit.evidence_since(self._counted, numbers, level)
            with np.errstate(divide="ignore"):
                total = float(np.logaddexp(total, logsumexp(logs + np.log(masses)) + weight))
            place = int(logs.argmax())
            if logs[place] + weight > best:
                best, began = float(logs[place] + weight), self._starts[place].moment
        return total, began

    @property
    def verdicts(self) -> Verdicts:
        """What the rows so far show about each goal."""
        return Verdicts(self._verdict(one) for one in self._watched)

    def _verdict(self, one: _WatchedGoal) -> GoalVerdict:
        goal, sign = one.goal, one.goal.sign
        estimates = {name: limit.estimate(self._counted) for name, limit in one.limits.items()}
        known = {name: value for name, value in estimates.items() if not math.isnan(value)}
        near, far = -math.inf, math.inf  # ends of sign * value
        name, note = "", one.note
        for (own, limit), weight in zip(one.limits.items(), one.log_weights().tolist(), strict=True):
            inner = limit.end(self._counted, one.risk * math.exp(weight), sign)
            outer = limit.end(self._counted, one.risk, -sign)
            near = max(near, sign * inner)
            far = sign * outer if own == next(iter(one.limits)) else max(far, sign * outer)
        if one.verdict == HOLDS:
            far = min(far, sign * goal.bound)
        low, high = sorted((sign * near, sign * far)) if near <= far else (sign * near, sign * near)
        low, high = max(low, goal.left.least), min(high, goal.left.most)
        estimate, n_rows, worst = math.nan, 0, ""
        if known:
            name = (max if sign > 0 else min)(known, key=lambda own: known[own])
            estimate, n_rows = known[name], one.limits[name].n_rows(self._counted)
            views = _KnownGroups(self._class_values(self.classes), self._found, self._sizes)
            places = [str(part) for part in goal.parts(views)]
            worst = goal.worst_part(places.index(name), estimate, views) if name in places else name
        empty = [own for own, limit in one.limits.items() if not limit.has_rows(self._counted)]
        if not note and empty:
            note = f"no row yet that counts in {one.limits[empty[0]].goal.with_confidence(None)}"
        waiting = self.n_waiting if one.needs_labels else 0
        ends = estimate, low, high, goal.bound, n_rows, waiting, worst
        moments = one.moments
        parts = moments["failed_at"], moments["began"], moments["changed_at"]
        return GoalVerdict(goal, one.verdict, *ends, *parts, note)


def _phrase_key(rows: Dataset, columns: Sequence[str]) -> str:
    return f"{rows} by {list(columns)}"


def _with_groups(known: Sequence[Any], phrase: WorstRate, views: Views) -> list[Any]:
    """Return the groups of a phrase, as columns and texts, with those that a batch adds."""
    try:
        _, groups = views.groups(phrase.rows, phrase.by, _MANY)
    except NoRows:
        return list(known)
    values = [[[column, dict(rows.conditions)[column]] for column in phrase.by] for rows in groups]
    return [*known, *(one for one in values if one not in known)]


def _n_rows_of(views: Views, rows: Dataset) -> int:
    try:
        return len(views.rows(rows)[0])
    except NoRows:
        return 0


def _columns_of(one: _WatchedGoal) -> Iterator[str]:
    yield from one.goal.compared_columns
    for term in terms_of(one.goal):
        yield from (interval.column for interval in term.rows.ranges)
    yield from amount_columns([one.goal])


def _plain_time(time: Any, number: int) -> Any:
    """Return the time of a batch as a text or a number."""
    if time is None:
        return number
    if np.ndim(time) or is_missing(time):
        raise ValueError(f"time is one value for the whole batch, such as '2026-11-18'; got {time!r}.")
    value = time.item() if isinstance(time, np.number) else time
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else text_of(time)


def _check_goals(goals: Sequence[Goal]) -> None:
    if not goals:
        raise ValueError("A monitor needs at least one goal, as in recall >= 0.9; got none.")
    for goal in goals:
        others = [name for name in goal.datasets if name != DEFAULT]
        if goal.is_total:
            raise ValueError(f"The goal {goal} is on a total, a fact about given rows. Watch a mean, as a cost is.")
        if others:
            raise ValueError(f"A monitor watches one stream of rows; the goal {goal} names the dataset {others[0]!r}.")
        if any(term.metric.min_rows for term in terms_of(goal)):
            raise ValueError(
                f"The goal {goal} averages over the classes with enough rows, and would change as rows come. Leave "
                "min_rows out, or write every_class."
            )


def _check_amounts(columns: Iterable[str], limits: Any) -> None:
    for column in columns:
        if limits is None or (isinstance(limits, dict) and column not in limits):
            raise ValueError(
                f"Goals that count amounts need the largest amount that a row can ever have: pass "
                f"largest_value={{{column!r}: ...}} to Monitor, or set data.largest_value in the goals file of a run."
            )
