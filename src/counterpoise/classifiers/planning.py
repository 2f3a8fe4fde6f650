"""How many rows goals need, before anything is fitted: for a margin of so much, and for an audit that says "holds".

A pilot of scores stands for the population. The choice of one rule with margins (``rules.margins``) is made on it as if
there were n rows: standard errors shrink as one over the square root of n, and resamples draw n rows. So goals that
bind, goals that fail together, and the optimism of the choice are in the plan as they will be in the fit. The rows of
the pilot are spread over the scores of their neighbours of the same class and group, because many rows have finer
thresholds than the few of a pilot, and a smoother error.

The choice is then repeated on resamples of n rows, with the same target. What the goals have there at its rule is the
margin to expect of a fit: more than the least that would be enough, because the cheapest rule of some rows lies where
these rows happen to be easy. What the goals have at the same rules on the pilot is what an audit will find. An audit of
m rows says "holds" where its bound clears that of the goal, here by a normal approximation; the exact bounds of
audits are a little wider.

Without a pilot, scores are assumed: normal in each class, so that one threshold has a recall and a false positive rate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from counterpoise._base.checks import as_numbers, check_confidence, check_fraction, check_number, check_positive
from counterpoise._base.text import text_table
from counterpoise._base.types import ArrayLike, FloatArray, IntArray
from counterpoise.classifiers.goal import PREFIT, GoalClassifier
from counterpoise.goals import Goal, Table, as_goals
from counterpoise.goals.classes import as_labels, distinct_labels
from counterpoise.rules.goal_rows import TRAIN
from counterpoise.rules.margins import FOLD_SHIFT, SafeRule, TargetPath, describe_margins, two_digits
from counterpoise.rules.options import Deferral
from counterpoise.rules.scores.candidates import follow_cuts
from counterpoise.rules.scores.table import ScoreTable, find_groups, rank

ROWS = (300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
_N_RESAMPLES = 200  # on which the choice is repeated
# Neighbours on each side, in parts of the number of rows of a class and group to the power 0.8, as for densities.
_REACH = 0.1  # with 0.25 the classes of rare positives overlap more than they do, with none single pilots vary far more
_FINE = 40_000  # rows of a pilot after some were put between them: thresholds as fine as many rows have them
_DISTANT = 3.0  # standard errors inside of its bound, from which on a goal takes no rows: chance alone cannot miss it
_LEAST_IN_CELL, _MOST_ASSUMED = 200, 200_000  # assumed rows: of each class in each group, and in all
_MOST_AUDITED = 1e9  # rows of an audit: no more are tried
_PAIR = 2  # classes
_DIGITS = 12  # of values of rules: equal ones are equal whatever the order of their sums
_WHOLE = 1e-6  # shares of groups add up to one but for this


@dataclass(frozen=True)
class AssumedScores:
    """Assumptions about a model in the place of a pilot: scores that are normal in each class.

    The threshold 0 has the assumed recall and false positive rate, and others those of the binormal curve through them.

    Parameters
    ----------
    base_rate : float in (0, 1), or dict from values of a group to such numbers
        The share of positives.
    recall, false_positive_rate : float in (0, 1), or dict as above
        What the model has at one threshold; the recall must be above the false positive rate.
    groups : dict from columns to dicts from values to shares, default={}
        How large groups are, as in ``{"sex": {"F": 0.33, "M": 0.67}}``. Columns are independent of each other.

    Examples
    --------
    >>> import counterpoise as cp
    >>> groups = {"sex": {"F": 0.33, "M": 0.67}}
    >>> cp.AssumedScores(base_rate={"F": 0.1, "M": 0.3}, recall=0.7, false_positive_rate=0.1, groups=groups).recall
    0.7
    """

    base_rate: Any
    recall: Any
    false_positive_rate: Any
    groups: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, shares in self.groups.items():
            total = sum(check_fraction(share, f"groups[{name!r}][{value!r}]") for value, share in shares.items())
            if abs(total - 1.0) > _WHOLE:
                raise ValueError(f"The shares of groups[{name!r}] must add up to 1; got {dict(shares)}: {total:g}.")
        for values in self._cells():
            self._rates(values)

    def pilot(self) -> tuple[IntArray, FloatArray, dict[str, Any] | None]:
        """Return labels, scores and columns of rows that are as assumed, by quantiles: nothing is drawn."""
        cells = []
        for values in self._cells():
            share = float(np.prod([self.groups[name][value] for name, value in values.items()]))
            base, recall, alarms = self._rates(values)
            cells += [(values, 1, share * base, ndtri(recall)), (values, 0, share * (1.0 - base), ndtri(alarms))]
        n_rows = np.clip(_LEAST_IN_CELL / min(part for _, _, part, _ in cells), _FINE, _MOST_ASSUMED)
        labels, scores, columns = [], [], dict[str, list[str]]({name: [] for name in self.groups})
        for values, label, part, center in cells:
            size = max(round(n_rows * part), 1)
            labels.append(np.full(size, label))
            scores.append(center + ndtri((np.arange(size) + 0.5) / size))
            for name, value in values.items():
                columns[name] += [value] * size
        return np.concatenate(labels), np.concatenate(scores), columns or None

    def _cells(self) -> list[dict[str, str]]:
        """Return all combinations of values of the groups."""
        return [dict(zip(self.groups, values, strict=True)) for values in product(*self.groups.values())]

    def _rates(self, values: Mapping[str, str]) -> tuple[float, float, float]:
        """Return base rate, recall and false positive rate of a combination of values."""
        rates = []
        for name in ("base_rate", "recall", "false_positive_rate"):
            rate = getattr(self, name)
            if isinstance(rate, Mapping):
                own = next((column for column, shares in self.groups.items() if set(shares) == set(rate)), None)
                if own is None:
                    raise ValueError(
                        f"{name} must be a number, or have one for each value of one of the groups "
                        f"{ {column: list(shares) for column, shares in self.groups.items()} }; got {dict(rate)}."
                    )
                rate = rate[values[own]]
            rates.append(check_number(rate, name, "(0, 1)", "a share of rows"))
        if rates[1] <= rates[2]:
            raise ValueError(
                f"recall must be above false_positive_rate, as of a model that is better than chance; got {rates[1]:g} "
                f"and {rates[2]:g}."
            )
        return rates[0], rates[1], rates[2]


class GoalPlan(NamedTuple):
    """How many rows one goal needs."""

    goal: Goal
    rows: int | None  # to choose on, for a margin of at most that requested; None: no number of rows is enough
    audit_rows: int | None  # of an audit that then says "holds"; None: no number of rows is enough
    reason: str = ""  # why no rows are needed, or none are enough


class PlannedMargin(NamedTuple):
    """What is to be expected of one goal, if there are so many rows to choose on."""

    goal: Goal
    aimed_at: float  # by the rule that is chosen, on the rows that it is chosen on
    margin: float | None  # how far that is inside of the bound; None where the goal has no margin
    standard_error: float | None  # of the value on as many new rows
    audit_rows: int | None  # of an audit that says "holds"; None: no number of rows is enough
    reason: str = ""  # why the goal has no margin

    @property
    def is_distant(self) -> bool:
        """Return whether the goal is met by more than chance can undo."""
        if self.margin is None or self.standard_error is None:
            return False
        return self.margin > _DISTANT * self.standard_error


class PlanPoint(NamedTuple):
    """What is to be expected of so many rows to choose on."""

    rows: int
    is_reached: bool  # whether the confidence is
    margins: tuple[PlannedMargin, ...]
    cost: float  # of the margins: how much more of the objective than the best rule without
    limiting: Goal | None  # the goal that is the least sure to hold
    is_costly: bool  # whether the confidence is not reached because it costs too much


@dataclass(frozen=True)
class Plan:
    """How many rows goals need; ``print`` shows tables, ``plot`` draws the margins over the rows."""

    goals: tuple[GoalPlan, ...]
    points: tuple[PlanPoint, ...]  # from few rows to many
    margin: float  # that was requested
    confidence: float
    audit_confidence: float
    power: float

    @property
    def rows(self) -> int | None:
        """Return how many rows to choose on are enough for all goals; None where no number is."""
        reached = _from_there_on([point.is_reached for point in self.points])
        if reached is None or any(
            goal.rows is None and one.margin is not None
            for goal, one in zip(self.goals, self.points[-1].margins, strict=True)
        ):
            return None
        return max([self.points[reached].rows if reached else 0, *(goal.rows or 0 for goal in self.goals)])

    def __str__(self) -> str:
        heads = ["", "goal", "rows", "audit rows"]
        lines = [
            [str(number), str(one.goal), _count(one.rows), _count(one.audit_rows)]
            for number, one in enumerate(self.goals, start=1)
        ]
        numbers = [f"{what} {number}" for what in ("margin", "audit") for number in range(1, len(self.goals) + 1)]
        steps = [
            [
                _count(point.rows),
                "yes" if point.is_reached else "no",
                f"{point.cost:.4f}",
                *("-" if one.margin is None else f"{one.margin:.4f}" for one in point.margins),
                *(_count(one.audit_rows) for one in point.margins),
            ]
            for point in self.points
        ]
        enough = (
            f"All goals together: {_count(self.rows)} rows." if self.rows else "No number of rows is enough for all."
        )
        notes = [f"{number}: {one.reason}." for number, one in enumerate(self.goals, start=1) if one.reason]
        return "\n".join([
            f"Rows for margins of at most {self.margin:g} at a confidence of {self.confidence:g}, and rows of an audit",
            f'at {self.audit_confidence:g} that then says "holds" with a probability of {self.power:g}:',
            "",
            text_table([heads, *lines], "<<>>"),
            *notes,
            enough,
            *self._limits(),
            *self._audits(),
            "",
            text_table([["rows", "reached", "cost", *numbers], *steps], "><>" + ">" * len(numbers)),
        ])  # fmt: skip

    def _limits(self) -> list[str]:
        """Return why the most rows do not reach the confidence, in a sentence."""
        last = self.points[-1]
        if last.is_reached:
            return []
        sentence = f"Even {last.rows:,} rows do not reach the confidence"
        if last.is_costly:
            return [f"{sentence}: the margins would raise the objective by more than a quarter. Loosen a bound."]
        if last.limiting is None:
            return [f"{sentence}: no goal has a margin."]
        return [f"{sentence}: {last.limiting} limits it. The population nearly misses it. Loosen its bound."]

    def _audits(self) -> list[str]:
        """Return why some goals have no number of rows for an audit, in a sentence."""
        margins = [one for point in self.points for one in point.margins if one.margin is not None]
        if all(one.audit_rows is not None for one in margins):
            return []
        holds = f"Where an audit has no number (-), the goal itself holds with less than {self.power:g}"
        return [f"{holds}, whatever the audit: lower power, or raise confidence."]

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers as plain data, for JSON."""
        options = {name: getattr(self, name) for name in ("margin", "confidence", "audit_confidence", "power", "rows")}
        points = [
            point._asdict()
            | {"margins": [_plain(one) for one in point.margins]}
            | {"limiting": None if point.limiting is None else str(point.limiting)}
            for point in self.points
        ]
        return options | {"goals": [_plain(one) for one in self.goals], "points": points}

    def plot(self, ax: Any = None, **kwargs: Any) -> Any:
        """Draw the margin of each goal over the rows with matplotlib, and return the axes.

        Hollow dots: the confidence is not reached. ``kwargs`` go to matplotlib's ``plot``.
        """
        if ax is None:
            from matplotlib.figure import Figure  # noqa: PLC0415 - heavy, and optional

            ax = Figure(figsize=(6, 4), layout="constrained").subplots()
        for place, one in enumerate(self.goals):
            own = [(point.rows, point.margins[place].margin, point.is_reached) for point in self.points]
            rows, margins, is_reached = np.array([dot for dot in own if dot[1] is not None]).reshape(-1, 3).T
            if not rows.size:
                continue
            (line,) = ax.plot(rows, margins, **{"label": str(one.goal)} | kwargs)
            dots = {"linestyle": "", "marker": "o", "color": line.get_color()}
            ax.plot(rows, margins, **dots, markerfacecolor="white")
            ax.plot(rows[is_reached == 1], margins[is_reached == 1], **dots)
        ax.axhline(self.margin, color="gray", linestyle=":")
        ax.set(xscale="log", yscale="log", xlabel="rows to choose on", ylabel="margin inside of the bound")
        ax.grid(visible=True, alpha=0.3)
        if ax.get_legend_handles_labels()[1]:
            for text in ax.legend(frameon=False).get_texts():
                text.set_parse_math(False)  # a group's name may hold dollar signs
        return ax


def plan(
    goals: Any,
    y: ArrayLike | None = None,
    scores: Any = None,
    *,
    margin: float = 0.02,
    confidence: float = 0.9,
    audit_confidence: float = 0.95,
    power: float = 0.8,
    rows: ArrayLike | None = None,
    sensitive_features: Any = None,
    baseline: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    ids: Any = None,
    datasets: Mapping[str, Table] | None = None,
    by: Any = (),
    objective: Any = None,
    deferral: Deferral | None = None,
    pos_label: Any = None,
    in_folds: bool = False,
) -> Plan:
    """Return how many rows goals need, for margins of at most ``margin`` and for an audit that says "holds".

    Nothing is trained. Two classes, one score.

    Parameters
    ----------
    goals : goals or their texts
        As for ``GoalClassifier``.
    y : array of shape (n_samples,), optional
        The labels of a pilot: rows of the population that the scoring model was not trained on, some hundreds or more.
    scores : array of shape (n_samples,), dict of arrays by dataset, or AssumedScores
        The scores of the pilot, higher for the positive class; a dict where goals refer to other datasets. Or
        assumptions, without ``y``.
    margin : float, default=0.02
        How far a value that is aimed at may lie inside of the bound of its goal, in the units of the goal.
    confidence : float in (0, 1), default=0.9
        With which all goals hold together on new rows: as for ``GoalClassifier``.
    audit_confidence : float in (0, 1), default=0.95
        Of the audit, as for ``certify``: all its verdicts are right together with this probability.
    power : float in (0.5, 1), default=0.8
        The probability with which the audit says "holds" of a goal. Where the goal itself holds less surely, no number
        of rows is enough: keep it below ``confidence``.
    rows : array of int, optional
        For how many rows to choose on the margins are computed. Default: eight numbers from 300 to 1,000,000.
    sensitive_features, baseline, sample_weight, ids, datasets
        What belongs to the rows of the pilot, as for ``GoalClassifier.fit``. Other datasets grow in the same
        proportion as the pilot does.
    by, objective, deferral, pos_label
        As for ``GoalClassifier``.
    in_folds : bool, default=False
        Whether the classifier will be trained on the rows that its rules are chosen on, in folds, as ``cv="auto"``
        does: its margins are then about an eighth wider.

    Returns
    -------
    Plan
        ``goals`` has the rows for each goal, ``points`` what to expect of each number of rows, and ``rows`` what is
        enough for all goals. Numbers of rows are rounded up to two digits.

    Raises
    ------
    InfeasibleGoals
        Where no thresholds meet the goals on the pilot.

    Examples
    --------
    >>> import counterpoise as cp
    >>> assumed = cp.AssumedScores(base_rate=0.2, recall=0.8, false_positive_rate=0.1)
    >>> print(cp.plan("recall >= 0.7", scores=assumed, rows=[1000, 10_000]))
    Rows for margins of at most 0.02 at a confidence of 0.9, and rows of an audit
    at 0.95 that then says "holds" with a probability of 0.8:
    <BLANKLINE>
       goal            rows  audit rows
    1  recall >= 0.7  5,200      83,000
    All goals together: 5,200 rows.
    <BLANKLINE>
      rows  reached    cost  margin 1  audit 1
     1,000  yes      0.0046    0.0488    6,300
    10,000  yes      0.0009    0.0140  230,000
    """
    margin, confidence = check_positive(margin, "margin"), check_confidence(confidence)
    audit_confidence, power = check_confidence(audit_confidence, "audit_confidence"), float(power)
    check_number(power, "power", "(0.5, 1)", "the probability that an audit says holds")
    sizes = _check_rows(rows)
    _refuse_totals(as_goals(goals))
    if isinstance(scores, AssumedScores):
        others = {"y": y, "sensitive_features": sensitive_features, "sample_weight": sample_weight, "ids": ids}
        passed = [name for name, value in (others | {"datasets": datasets}).items() if value is not None]
        if passed:
            raise ValueError(f"AssumedScores stand for a pilot, so pass no {', '.join(passed)} beside them.")
        y, scores, sensitive_features = scores.pilot()
    if y is None or scores is None:
        raise ValueError("A plan needs the labels y and the scores of a pilot, or scores=AssumedScores(...).")
    first = as_numbers(scores[TRAIN] if isinstance(scores, Mapping) and TRAIN in scores else scores, "scores")
    if first.ndim != 1:
        raise ValueError(f"scores must hold one number for each row, of shape (n_samples,); got shape {first.shape}.")
    n_classes = len(distinct_labels([as_labels(y)]))
    if n_classes > _PAIR:
        raise ValueError(f"A plan is for two classes, which a threshold separates; y holds {n_classes}.")
    model = GoalClassifier(
        [scores], cv=PREFIT, goals=goals, by=by, objective=objective, deferral=deferral, pos_label=pos_label,
        confidence=None,
    )  # fmt: skip
    columns: dict[str, Any] = {"sensitive_features": sensitive_features, "baseline": baseline, "ids": ids}
    model.fit(first[:, None], y, sample_weight, datasets=datasets, **columns)
    if not model.goals_:
        raise ValueError('A plan needs at least one goal, as in "recall >= 0.9"; got none.')
    points = _points(model, sizes, confidence, audit_confidence, power, in_folds=in_folds)
    needs = tuple(_goal_plan(place, points, margin) for place in range(len(model.goals_)))
    return Plan(needs, points, margin, confidence, audit_confidence, power)


def _refuse_totals(goals: Sequence[Goal]) -> None:
    total = next((goal for goal in goals if goal.is_total), None)
    if total is not None:
        raise ValueError(
            f"A plan is about rates and means; got {total}, a sum that grows with the rows. Bound a mean, as in "
            "cost({1->0: amount}) <= 2.5."
        )


def _points(
    model: GoalClassifier,
    sizes: list[int],
    confidence: float,
    audit_confidence: float,
    power: float,
    *,
    in_folds: bool,
) -> tuple[PlanPoint, ...]:
    """Return the choice with margins for each number of rows."""
    known, problem = model.family_.selection_data, model.problem()
    n_pilot = known.answers.tables[TRAIN].n_samples
    codes = model.groups_.codes_of_each(known.answers.tables)
    fine = _spread_rows(known, codes, -(-_FINE // n_pilot))._replace(has_fold_scores=in_folds)
    train = fine.answers.tables[TRAIN]
    ranked = rank(fine, find_groups(problem.by, train))
    plain, points = ranked.as_cuts(model.rules_), []
    level = float(ndtri(1.0 - (1.0 - audit_confidence) / len(problem.goals)))  # the goals share the risk
    for size in sizes:
        cuts = follow_cuts(ranked, problem, plain, size / train.n_samples)
        rule, safe = cuts.safe_rule(confidence)
        checks = ranked.predictions_of(rule).answers.checks(problem.goals, np.ones(1))
        described = describe_margins(safe, checks)
        shown, true, errors = _repeat_choice(cuts.path, safe)
        margins = []
        for place, (one, part) in enumerate(zip(described.margins, safe.margins, strict=True)):
            if one.standard_error is None or not part.slack:
                margins.append(PlannedMargin(one.goal, one.value, None, None, None, one.reason))
                continue
            unit = abs((one.value - one.bound) / part.slack)  # a ratio is multiplied through by its denominator
            width, error = float(unit * shown[:, place].mean()), float(unit * errors[:, place].mean())
            audits = _audit_rows(true[:, place], errors[:, place], size, level, power, in_folds=in_folds)
            margins.append(PlannedMargin(one.goal, one.bound - one.goal.sign * width, width, error, audits))
        is_reached = described.confidence is not None
        points.append(PlanPoint(size, is_reached, tuple(margins), safe.cost, described.limiting, described.is_costly))
    return tuple(points)


def _repeat_choice(path: TargetPath, safe: SafeRule) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what the choice on resamples comes to: slack there, slack on all rows, and standard errors.

    Each is of shape (n_resamples, n_goals), of the part of a goal that is closest to its bound on the resample.
    """
    problem, table, random = path.problem, path.table, path.problem.random
    goals = list(problem.by_goal().values())
    if not random.size:  # no goal has a margin
        nothing = np.zeros((1, len(goals)))
        return nothing, nothing, nothing
    repeated = []
    for sums in table.resamples(_N_RESAMPLES, np.random.default_rng(1), problem.persons):
        for values in np.round(table.values(table.shares(sums)), _DIGITS):
            slack = -values[random]
            ranking = problem.rank_values(values, slack / path.errors)._replace(cost=path.now.cost)
            rule = int(ranking.best(np.array([safe.target]))[0])
            worst = [int(own[slack[own, rule].argmin()]) if own.size else 0 for own in goals]
            repeated.append((slack[worst, rule], (path.z * path.errors)[worst, rule], path.errors[worst, rule]))
    shown, true, errors = np.array(repeated).transpose(1, 0, 2)
    return shown, true, errors


def _spread_rows(known: ScoreTable, codes: Mapping[str, IntArray], n_copies: int) -> ScoreTable:
    """Return scores with ``n_copies`` rows for each, spread evenly over those of its neighbours of its class and group.

    Scores that several rows share stay as they are: the model has no finer ones there. Lists stay too.
    """
    tables, scores, persons = dict(known.answers.tables), dict(known.scores), known.persons
    for name, table in known.answers.tables.items():
        if n_copies == 1 or not table.population:
            continue
        own = known.scores[name][:, 0]
        levels, inverse, counts = np.unique(own, return_inverse=True, return_counts=True)
        # In normal scores of the ranks, as the tails of plain scores would be moved outwards.
        normal = ndtri((np.cumsum(counts) - counts / 2) / own.size)
        x, at = normal[inverse.ravel()], (np.arange(n_copies) + 0.5) / n_copies
        labels = np.zeros(own.size) if table.y is None else (table.y == known.answers.positive.labels[1])
        spread = np.repeat(x[:, None], n_copies, axis=1)
        for cell in np.unique(2 * codes[name] + labels):
            rows = np.flatnonzero(2 * codes[name] + labels == cell)
            rows = rows[np.argsort(own[rows], kind="stable")]
            reach = max(round(_REACH * rows.size**0.8), 1)
            places = np.arange(rows.size)
            # As far to the left as to the right, so that the ends of the scores stay where they are.
            reaches = np.minimum(reach, np.minimum(places, rows.size - 1 - places))
            low, high = x[rows[places - reaches]], x[rows[places + reaches]]
            wide = low[:, None] + at * (high - low)[:, None]
            # With the mean and the deviation of before (Silverman and Young 1987): else classes would overlap more.
            scale = x[rows].std() / wide.std() if wide.std() > 0 else 1.0
            spread[rows] = x[rows].mean() + scale * (wide - wide.mean())
        is_tied = counts[inverse.ravel()] > 1
        spread = np.interp(np.where(is_tied[:, None], x[:, None], spread), normal, levels)
        places = np.repeat(np.arange(own.size), n_copies)
        tables[name], scores[name] = table.only(places), spread.reshape(-1, 1)
        if name == TRAIN and persons is not None:  # each copy of a person is another one
            persons = (persons[:, None] + np.arange(n_copies) * (persons.max() + 1)).ravel()
    weight = None if known.sample_weight is None else np.repeat(known.sample_weight, n_copies)
    groups = None if known.groups is None else np.repeat(known.groups, n_copies)
    answers = replace(known.answers, tables=tables)
    return known._replace(scores=scores, answers=answers, sample_weight=weight, groups=groups, persons=persons)


def _audit_rows(
    slack: FloatArray, errors: FloatArray, rows: int, level: float, power: float, *, in_folds: bool
) -> int | None:
    """Return how many rows an audit needs to say "holds" with a probability of ``power``; None where none are enough.

    The slacks are those of a goal on the population, at rules that were chosen on ``rows`` rows, where standard errors
    are ``errors``; they are taken to be normal. The bound of an audit lies ``level`` standard errors from its estimate.
    """
    own = float(np.sqrt((errors**2).mean()))
    shift = own * FOLD_SHIFT / np.hypot(1.0, FOLD_SHIFT) if in_folds else 0.0
    of_row = np.sqrt((own**2 - shift**2) * rows)
    spread = np.hypot(slack.std(), shift)

    def surplus(log_rows: float) -> float:
        error = of_row * np.exp(-log_rows / 2)
        return float(ndtr((slack.mean() - level * error) / np.hypot(error, spread))) - power

    most = np.log(_MOST_AUDITED)
    if surplus(most) < 0:
        return None
    return 1 if surplus(0.0) >= 0 else two_digits(np.exp(brentq(surplus, 0.0, most)))


def _goal_plan(place: int, points: tuple[PlanPoint, ...], most: float) -> GoalPlan:
    """Return how many rows a goal needs for its margin, between the numbers of rows that were tried."""
    margins = [point.margins[place] for point in points]
    goal, last = margins[-1].goal, points[-1]
    widths = np.array([one.margin for one in margins], dtype=np.float64)
    if np.isnan(widths[-1]):
        return GoalPlan(goal, None, None, f"no margin, as {margins[-1].reason}")
    first = _from_there_on([
        point.is_reached and (one.is_distant or width <= most)
        for point, one, width in zip(points, margins, widths.tolist(), strict=True)
    ])  # fmt: skip
    if first is None:
        reason = f"its margin is {widths[-1]:.3g} at {last.rows:,} rows" if last.is_reached else ""
        return GoalPlan(goal, None, None, reason)
    rows, audits = float(points[first].rows), margins[first].audit_rows
    if margins[first].is_distant:
        return GoalPlan(goal, two_digits(rows), audits, "it is met by more than chance can undo")
    if first and points[first - 1].is_reached and widths[first - 1] > most:
        ends = np.log([points[first - 1].rows, rows])
        rows = float(np.exp(np.interp(-np.log(most), -np.log(widths[first - 1 : first + 1]), ends)))
        before = margins[first - 1].audit_rows
        if audits is not None and before is not None:
            audits = two_digits(np.exp(np.interp(np.log(rows), ends, np.log([before, audits]))))
    return GoalPlan(goal, two_digits(rows), audits)


def _plain(one: GoalPlan | PlannedMargin) -> dict[str, Any]:
    return one._asdict() | {"goal": str(one.goal)}


def _from_there_on(flags: list[bool]) -> int | None:
    """Return the first place from which on all flags are true; None where the last is not."""
    first = next((len(flags) - place for place, flag in enumerate(reversed(flags)) if not flag), 0)
    return first if first < len(flags) else None


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def _check_rows(rows: ArrayLike | None) -> list[int]:
    sizes = np.unique(as_numbers(ROWS if rows is None else rows, "rows")).astype(np.float64)
    if not sizes.size or sizes[0] < 1 or (sizes != np.round(sizes)).any():
        raise ValueError(f"rows must be whole numbers of at least 1; got {rows!r}.")
    return [int(size) for size in sizes]
