"""How many rows goals need, before anything is fitted: for a margin of so much, and for an audit to say "holds".

A pilot of scores stands for the population. The choice of one rule with margins (``rules.margins``) is made on it as if
there were n rows: standard errors shrink as one over the square root of n, and resamples draw n rows. So goals that
bind, goals that fail together, and the optimism of the choice are in the plan as they will be in the fit.

The choice is then repeated on resamples of n rows, with the same target. What the goals have there at its rule is the
margin to expect of a fit: more than the least that would be enough, because the cheapest rule of some rows lies where
these rows happen to be easy. What the goals have at the same rules on the pilot is what an audit will find. An audit of
m rows says "holds" where its bound clears that of the goal, here by a normal approximation; the exact bounds of
audits are a little wider.

For a proof (``rules.proving``) each resample is two: rules are traced on one, and tested in their order on the other,
by a normal approximation too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from counterpoise._base.checks import as_numbers, check_confidence, check_number, check_positive
from counterpoise._base.text import text_table
from counterpoise._base.types import ArrayLike, FloatArray
from counterpoise.classifiers.goal import PREFIT, GoalClassifier
from counterpoise.classifiers.pilots import AssumedScores, Pilot
from counterpoise.goals import Goal, Table, as_goals
from counterpoise.goals.classes import as_labels, distinct_labels
from counterpoise.rules.goal_rows import TRAIN
from counterpoise.rules.margins import (
    FOLD_SHIFT,
    SafeRule,
    TargetPath,
    describe_margins,
    follow_targets,
    most_rise,
    two_digits,
)
from counterpoise.rules.options import Deferral, Proof
from counterpoise.rules.proving import goals_to_prove, share_to_test, traced_targets, why_no_proof

ROWS = (300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
_N_RESAMPLES = 200  # on which the choice is repeated
_FREE = 1.1  # times what a margin would be if its goal were not asked for: up to this, the goal takes no rows
_DISTANT = 3.0  # standard errors: no goal keeps so much for itself
_MOST_AUDITED = 1e9  # rows of an audit: no more are tried
_PAIR = 2  # classes
_TINY = 1e-300
_DIGITS = 12  # of values of rules: equal ones are equal whatever the order of their sums


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
    standard_error: float | None  # of the value
    audit_rows: int | None  # of an audit that says "holds"; None: no number of rows is enough
    reason: str = ""  # why the goal has no margin
    without: float = 0.0  # what the margin would be if this goal were not asked for, and the others were


class PlanPoint(NamedTuple):
    """What is to be expected of so many rows to choose on."""

    rows: int
    is_reached: bool  # whether the confidence is; of a proof, whether one is found with the requested power
    margins: tuple[PlannedMargin, ...]
    cost: float  # of the margins: how much more of the objective than the best rule without
    limiting: Goal | None  # the goal that is the least sure to hold


@dataclass(frozen=True)
class Plan:
    """How many rows goals need; ``print`` shows tables, ``plot`` draws the margins over the rows."""

    goals: tuple[GoalPlan, ...]
    points: tuple[PlanPoint, ...]  # from few rows to many
    margin: float  # that was requested
    confidence: float
    audit_confidence: float
    power: float
    is_proof: bool = False

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
        what = f"{'a proof with ' * self.is_proof}margins of at most {self.margin:g} at a confidence of"
        return "\n".join([
            f"Rows for {what} {self.confidence:g}, and rows of an audit",
            f'at {self.audit_confidence:g} that, with a probability of {self.power:g}, says "holds" where a goal does:',
            "",
            text_table([heads, *lines], "<<>>"),
            *notes,
            enough,
            *self._limits(),
            "",
            text_table([["rows", "reached", "cost", *numbers], *steps], "><>" + ">" * len(numbers)),
        ])  # fmt: skip

    def _limits(self) -> list[str]:
        """Return why the most rows do not reach the confidence, in a sentence."""
        last = self.points[-1]
        if last.is_reached:
            return []
        sentence = f"Even {last.rows:,} rows do not reach the confidence"
        if last.limiting is None:
            return [f"{sentence}: no goal has a margin."]
        return [f"{sentence}: {last.limiting} limits it. The population nearly misses it. Loosen its bound."]

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers as plain data, for JSON."""
        options = {
            name: getattr(self, name)
            for name in ("margin", "confidence", "audit_confidence", "power", "is_proof", "rows")
        }
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
    confidence: float | Proof = 0.9,
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

    Nothing is trained. One model: a score of two classes, or probabilities of more.

    Parameters
    ----------
    goals : goals or their texts
        As for ``GoalClassifier``.
    y : array of shape (n_samples,), optional
        The labels of a pilot: rows of the population that the scoring model was not trained on, some hundreds or more.
    scores : array of shape (n_samples,) or (n_samples, n_classes), dict of arrays by dataset, or AssumedScores
        The scores of the pilot, higher for the positive class; of more than two classes their probabilities. A dict
        where goals refer to other datasets. Or assumptions, without ``y``.
    margin : float, default=0.02
        How far a value that is aimed at may lie inside of the bound of its goal, in the units of the goal.
    confidence : float in (0, 1) or Proof, default=0.9
        With which all goals hold together on new rows: as for ``GoalClassifier``. With ``Proof(0.9)`` the rows are
        those of which some prove it, with a probability of ``power``.
    audit_confidence : float in (0, 1), default=0.95
        Of the audit, as for ``certify``: all its verdicts are right together with this probability.
    power : float in (0.5, 1), default=0.8
        The probability with which the audit says "holds" of a goal that does hold on the population.
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
        If no thresholds meet the goals on the pilot.

    Examples
    --------
    >>> import counterpoise as cp
    >>> assumed = cp.AssumedScores(base_rate=0.2, recall=0.8, false_positive_rate=0.1)
    >>> print(cp.plan("recall >= 0.7", scores=assumed, rows=[1000, 10_000]))
    Rows for margins of at most 0.02 at a confidence of 0.9, and rows of an audit
    at 0.95 that, with a probability of 0.8, says "holds" where a goal does:
    <BLANKLINE>
       goal            rows  audit rows
    1  recall >= 0.7  5,400      31,000
    All goals together: 5,400 rows.
    <BLANKLINE>
      rows  reached    cost  margin 1  audit 1
     1,000  yes      0.0045    0.0490    5,800
    10,000  yes      0.0009    0.0142   57,000
    """
    margin, is_proof = check_positive(margin, "margin"), isinstance(confidence, Proof)
    level = confidence.confidence if isinstance(confidence, Proof) else check_confidence(confidence)
    audit_confidence, power = check_confidence(audit_confidence, "audit_confidence"), float(power)
    check_number(power, "power", "(0.5, 1)", "the probability that an audit says holds")
    sizes = _check_rows(rows)
    _refuse_totals(as_goals(goals))
    if isinstance(scores, AssumedScores):
        others = {"y": y, "sensitive_features": sensitive_features, "sample_weight": sample_weight, "ids": ids}
        passed = [name for name, value in (others | {"datasets": datasets}).items() if value is not None]
        if passed:
            raise ValueError(f"AssumedScores stand for a pilot, so pass no {', '.join(passed)} beside them.")
        compared = {name for goal in as_goals(goals) for name in goal.compared_columns}
        for name in sorted(compared - set(scores.groups)):
            raise ValueError(
                f"A goal compares groups of {name!r}, and nothing is assumed about them. Pass their shares, as in "
                f"AssumedScores(..., groups={{{name!r}: {{'a': 0.4, 'b': 0.6}}}}), or on the command line as in "
                f"--group {name}=a:0.4,b:0.6."
            )
        y, scores, sensitive_features = scores.pilot()
    if y is None or scores is None:
        raise ValueError("A plan needs the labels y and the scores of a pilot, or scores=AssumedScores(...).")
    first = as_numbers(scores[TRAIN] if isinstance(scores, Mapping) and TRAIN in scores else scores, "scores")
    n_classes = len(distinct_labels([as_labels(y)]))
    shape = (len(first),) if n_classes <= _PAIR else (len(first), n_classes)
    if first.shape != shape:
        what = "one number for each row, of shape (n_samples,)"
        if n_classes > _PAIR:
            what = f"the probabilities of the {n_classes} classes that y holds, of shape (n_samples, {n_classes})"
        raise ValueError(f"scores must hold {what}; got shape {first.shape}.")
    model = GoalClassifier(
        [scores], cv=PREFIT, goals=goals, by=by, objective=objective, deferral=deferral, pos_label=pos_label,
        confidence=None,
    )  # fmt: skip
    columns: dict[str, Any] = {"sensitive_features": sensitive_features, "baseline": baseline, "ids": ids}
    model.fit(first.reshape(len(first), -1), y, sample_weight, datasets=datasets, **columns)
    if not model.goals_:
        raise ValueError('A plan needs at least one goal, as in "recall >= 0.9"; got none.')
    if is_proof:
        _refuse_without_proof(model)
    pilot = Pilot.of(model, in_folds=in_folds)
    points = _points(pilot, sizes, level, audit_confidence, power, in_folds=in_folds, is_proof=is_proof)
    needs = tuple(_goal_plan(place, points, margin) for place in range(len(model.goals_)))
    return Plan(needs, points, margin, level, audit_confidence, power, is_proof)


def _refuse_without_proof(model: GoalClassifier) -> None:
    kept = model.family_.selection_data
    if np.ptp(kept.answers.tables[TRAIN].weights()) > 0:
        raise ValueError(
            "A plan of a proof takes rows that weigh the same. Leave out sample_weight, or plan margins, as with "
            "confidence=0.9."
        )
    reason = why_no_proof(goals_to_prove(model.problem().goals, kept), kept)
    if reason:
        raise ValueError(f"No number of rows gives a proof, as {reason}.")


def _refuse_totals(goals: Sequence[Goal]) -> None:
    total = next((goal for goal in goals if goal.is_total), None)
    if total is not None:
        raise ValueError(
            f"A plan is about rates and means; got {total}, a sum that grows with the rows. Bound a mean, as in "
            "cost({1->0: amount}) <= 2.5."
        )


def _points(
    pilot: Pilot,
    sizes: list[int],
    confidence: float,
    audit_confidence: float,
    power: float,
    *,
    in_folds: bool,
    is_proof: bool,
) -> tuple[PlanPoint, ...]:
    """Return the choice with margins, or of what is proven, for each number of rows."""
    points, goals = [], pilot.problem.goals
    level = float(ndtri(1.0 - (1.0 - audit_confidence) / len(goals)))  # the goals share the risk
    share = share_to_test(len(goals), of_folds=in_folds)
    for size in sizes:
        wide = {}
        if is_proof and pilot.has_thresholds:  # rules are traced from farther inside, in standard errors of few rows
            wide["targets"] = traced_targets((1.0 - share) / share) / np.sqrt(1.0 - share)
        alone = {} if is_proof else {"confidence": confidence}
        rules, candidates = pilot.find(row_factor=size / pilot.n_rows, **wide, **alone)
        path = follow_targets(candidates.table, candidates.problem)
        safe = path.safe_rule(confidence)
        described = describe_margins(safe, pilot.checks(rules, safe.place))
        is_reached, cost = described.confidence is not None, safe.cost
        repeated = _repeat_choice(path, safe)
        if is_proof:
            repeated = _repeat_proof(path, confidence, share, fills=pilot.is_fine)
            is_reached = path.problem.random.size > 0 and len(repeated.costs) >= power * _N_RESAMPLES
            cost = float(repeated.costs.mean()) if repeated.costs.size else 0.0
        margins = []
        for place, (one, part) in enumerate(zip(described.margins, safe.margins, strict=True)):
            if one.standard_error is None or part.standard_error is None or not repeated.costs.size:
                margins.append(PlannedMargin(one.goal, one.value, None, None, None, one.reason or "nothing is proven"))
                continue
            unit = one.standard_error / part.standard_error  # a ratio is multiplied through by its denominator
            width, error = (float(unit * numbers[:, place].mean()) for numbers in (repeated.shown, repeated.errors))
            true, errors = repeated.true[:, place], repeated.errors[:, place]
            audits = _audit_rows(true, errors, size, level, power, in_folds=in_folds and not is_proof)
            without = unit * _slack_without(path, place, safe.target)
            aimed_at = one.bound - one.goal.sign * width
            margins.append(PlannedMargin(one.goal, aimed_at, width, error, audits, without=without))
        points.append(PlanPoint(size, is_reached, tuple(margins), cost, described.limiting))
    return tuple(points)


class Repeated(NamedTuple):
    """What the choice on resamples leads to, for the part of each goal that is closest to its bound there."""

    shown: FloatArray  # (n_resamples, n_goals): slack on the resample
    true: FloatArray  # on all rows
    errors: FloatArray
    costs: FloatArray  # (n_resamples,): how much more of the objective than the best rule

    @classmethod
    def of(cls, path: TargetPath, chosen: list[tuple[int, FloatArray]]) -> "Repeated":
        """Return what rules come to, each with the slack of all rules on its resample."""
        own_parts, rules = list(path.problem.by_goal().values()), [rule for rule, _ in chosen]
        worst = np.array([
            [int(own[slack[own, rule].argmin()]) if own.size else 0 for own in own_parts] for rule, slack in chosen
        ], dtype=np.int64).reshape(len(rules), len(own_parts))  # fmt: skip
        at, true = np.array(rules, dtype=np.int64)[:, None], path.z * path.errors
        plain = path.now.cost[path.now.best(np.array([-np.inf]))[0]]
        costs = path.now.cost[rules] - plain
        if not path.problem.random.size:  # no goal has a margin
            nothing = np.zeros(worst.shape)
            return cls(nothing, nothing, nothing, costs)
        shown = np.array([slack[own, rule] for own, (rule, slack) in zip(worst, chosen, strict=True)])
        return cls(shown.reshape(worst.shape), true[worst, at], path.errors[worst, at], costs)

    def towards(self, other: "Repeated", parts: FloatArray) -> "Repeated":
        """Return the same of rules that lie some part of the way to others."""
        pairs = zip(self, other, strict=True)
        shown, true, errors, costs = (one + (parts * (two - one).T).T for one, two in pairs)
        return Repeated(shown, true, errors, costs)


def _repeat_choice(path: TargetPath, safe: SafeRule) -> Repeated:
    """Return what the choice on resamples leads to, with the target that one rule has."""
    problem, table, random, chosen = path.problem, path.table, path.problem.random, []
    for sums in table.resamples(_N_RESAMPLES, np.random.default_rng(1), problem.persons):
        values = np.round(table.values(table.shares(sums)), _DIGITS)
        slack = -values[random]
        ranking = problem.rank_values(values, slack / path.errors).with_cost(table.cost)
        chosen.append((int(ranking.best(np.array([safe.target]))[0]), slack))
    return Repeated.of(path, chosen)


def _repeat_proof(path: TargetPath, confidence: float, share: float, *, fills: bool) -> Repeated:
    """Return what the choice of a proven rule leads to on those pairs of resamples that prove one.

    Between traced thresholds others are tested too where ``fills``; rates there are taken to lie on a line.
    """
    problem, random, cost = path.problem, path.problem.random, path.now.cost
    parts = [problem._replace(row_factor=problem.row_factor * part) for part in (1.0 - share, share)]
    parts[1] = parts[1]._replace(error_factors={})  # the deciding model scores the test rows
    tables = [part.table(path.table.rules) for part in parts]
    errors = [np.sqrt(table.variances(random, path.shares)) for table in tables]
    # Counts are whole numbers, and exact tests allow for half of a row.
    passing = ndtri(confidence) * errors[1] + 0.5 / np.maximum(parts[1].least_rows(tables[1], path.shares), 1e-9)
    fixed = np.flatnonzero([not part.is_random for part in problem.parts])
    targets, best = traced_targets((1.0 - share) / share), float(cost[path.now.best(np.array([-np.inf]))[0]])
    found: list[tuple[tuple[int, FloatArray], tuple[int, FloatArray], float]] = []
    rng = np.random.default_rng(1)
    for sums in zip(*(table.resamples(_N_RESAMPLES, rng, problem.persons) for table in tables), strict=True):
        traced, tested = (table.values(table.shares(own)) for table, own in zip(tables, sums, strict=True))
        is_met = np.asarray((traced[fixed] <= problem.allowed[fixed]).all(axis=0))
        ranking = problem.rank_values(traced, -traced[random] / errors[0]).with_cost(path.table.cost)
        places = list(dict.fromkeys(ranking._replace(is_met=is_met).best(targets).tolist()))
        room = (-tested[random] - passing)[:, places]
        n_passed = int(np.append((room < 0).any(axis=0), True).argmax())
        if not n_passed or not is_met[places[n_passed - 1]]:
            continue
        one = places[n_passed - 1]
        other, part = one, 0.0
        if fills and n_passed < len(places):
            before, after = room[:, n_passed - 1], room[:, n_passed]
            other, part = places[n_passed], float((before / np.maximum(before - after, before + _TINY)).min())
        if cost[one] + part * (cost[other] - cost[one]) <= best + most_rise(best):
            shown = -((1.0 - share) * traced + share * tested)[random]
            found.append(((one, shown), (other, shown), part))
    last, following = (Repeated.of(path, [pair[place] for pair in found]) for place in (0, 1))  # type: ignore[misc]
    return last.towards(following, np.array([part for _, _, part in found]))


def _slack_without(path: TargetPath, goal: int, target: float) -> float:
    """Return how far inside a goal is where it is not asked for: at the best rule for the others, or one as cheap."""
    problem, own, cost = path.problem, path.problem.by_goal()[goal], path.now.cost
    others = np.flatnonzero([part.goal != goal for part in problem.parts])
    values = path.table.values(path.shares)
    is_met = np.asarray((values[others] <= problem.allowed[others]).all(axis=0))
    risk = ndtr(-np.delete(path.z, own, axis=0)).sum(axis=0)
    rule = int(path.now._replace(risk=risk, is_met=is_met).best(np.array([target]))[0])
    as_cheap = is_met & (risk <= max(risk[rule], ndtr(-target))) & (np.round(cost - cost[rule], _DIGITS) <= 0)
    return float((path.z * path.errors)[own].min(axis=0)[as_cheap].max())


def _audit_rows(
    slack: FloatArray, errors: FloatArray, rows: int, level: float, power: float, *, in_folds: bool
) -> int | None:
    """Return how many rows an audit needs to say "holds" with a probability of ``power`` of a goal that does hold.

    The slacks are those of a goal on the population, at rules that were chosen on ``rows`` rows, where standard errors
    are ``errors``; they are taken to be normal. The bound of an audit lies ``level`` standard errors from its estimate.
    None: the largest audit that is tried is too small.
    """
    own = float(np.sqrt((errors**2).mean()))
    shift = own * FOLD_SHIFT / np.hypot(1.0, FOLD_SHIFT) if in_folds else 0.0
    of_row = np.sqrt((own**2 - shift**2) * rows)
    spread = np.hypot(slack.std(), shift)
    needed = power * float(ndtr(slack.mean() / max(spread, _TINY)))

    def surplus(log_rows: float) -> float:
        error = of_row * np.exp(-log_rows / 2)
        return float(ndtr((slack.mean() - level * error) / np.hypot(error, spread))) - needed

    most = np.log(_MOST_AUDITED)
    if surplus(most) < 0:
        return None
    return 1 if surplus(0.0) >= 0 else two_digits(np.exp(brentq(surplus, 0.0, most)))


def _goal_plan(place: int, points: tuple[PlanPoint, ...], most: float) -> GoalPlan:
    """Return how many rows a goal needs for its margin, between the numbers of rows that were tried."""
    margins = [point.margins[place] for point in points]
    goal, last = margins[-1].goal, points[-1]
    if margins[-1].margin is None:
        return GoalPlan(goal, None, None, f"no margin, as {margins[-1].reason}")
    widths = np.array([np.nan if one.margin is None else one.margin for one in margins])
    errors = np.array([one.standard_error or 0.0 for one in margins])
    enough = np.maximum(most, _FREE * np.array([one.without for one in margins]))
    enough = np.where(widths > _DISTANT * errors, np.maximum(enough, widths), enough)
    first = _from_there_on([
        point.is_reached and width <= allowed for point, width, allowed in zip(points, widths, enough, strict=True)
    ])  # fmt: skip
    if first is None:
        reason = f"its margin is {widths[-1]:.3g} at {last.rows:,} rows" if last.is_reached else ""
        return GoalPlan(goal, None, None, reason)
    rows, audits = float(points[first].rows), margins[first].audit_rows
    reason = "the objective and the other goals keep it farther inside" if enough[first] > most else ""
    if first and points[first - 1].is_reached and widths[first - 1] > enough[first - 1]:
        ends, excess = np.log([points[first - 1].rows, rows]), np.log(widths / enough)[first - 1 : first + 1]
        rows = float(np.exp(np.interp(0.0, -excess, ends)))
        before = margins[first - 1].audit_rows
        if audits is not None and before is not None:
            audits = two_digits(np.exp(np.interp(np.log(rows), ends, np.log([before, audits]))))
    return GoalPlan(goal, two_digits(rows), audits, reason)


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
