"""A session: models with what they said in memory, which answers a setting in tens of milliseconds."""

from collections import Counter, OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from counterpoise.auditing.audit import GoalAudit, add_confidence, audit_predictions
from counterpoise.explorer.disclosure import HIDDEN, LEAST_ROWS, DisclosureGuard, GroupRates, is_of_few
from counterpoise.explorer.setting import AskedGoal, Setting, in_field, number, reach, shape, threshold, told_apart
from counterpoise.explorer.solving import DRAGGED, RELEASED, Solved, Unmet, is_priced, scale_of, tail_of
from counterpoise.explorer.state import (
    Said,
    SessionParts,
    SessionState,
    check_columns,
    columns_of,
    deferral_at,
    state_of,
)
from counterpoise.goals import Goal, InfeasibleGoals
from counterpoise.goals.binding import PreparedPredictions, Views
from counterpoise.goals.parsing import refuse_deferral
from counterpoise.rules.choosing import FIXED, Problem
from counterpoise.rules.goal_rows import TRAIN
from counterpoise.rules.scores.table import ScoreTable


def why_not_least(found: Any, model: Any) -> str:
    """Return why what is made small is not as small as a mixture could make it; nothing where it is."""
    solved, objective = found.solved, found.problem.objective
    if solved.mixture.size > 1 or solved.thresholds is None:
        return ""
    if model.decision == FIXED:
        is_more = solved.cost > RELEASED * scale_of(objective)
        return f"One rule decides, without draws: a mixture would have {solved.cost:.2g} less." if is_more else ""
    more = solved.value - solved.lower
    if not more > RELEASED * scale_of(objective):
        return ""
    if tail_of(objective) == 1.0 and not found.problem.goals and model.keeps_default_threshold:
        return f"Plain training is kept, as there are no goals: it is within {more:.2g} of the best."
    return ""


def spelled(goal: Goal) -> dict[str, Any]:
    """Return the two sides of a goal as texts, and between what its bound can move."""
    low, high = reach(goal)
    words = {"left": str(goal.left), "sense": goal.sense, "right": str(goal.right)}
    return words | {"low": number(low), "high": number(high)}


def refuse_deferral_here(goal: Goal, *, can_defer: bool) -> None:
    """Refuse a goal on deferred rows where none are, with what to do on the page."""
    try:
        refuse_deferral([goal])
    except ValueError as error:
        way = "Let rows be left to a person, below the goals, then add it." if can_defer else "These models decide all."
        raise ValueError(f"The goal {goal} uses deferred rows, but no row is deferred. {way}") from error


def standing(goal: Goal, tallied: Any) -> dict[str, Any]:
    """Return how a goal stands on the selection rows."""
    try:
        check = goal.at(tallied)
        if is_of_few(goal, tallied):
            return {"note": HIDDEN, "holds": bool(check.holds)}
    except ValueError as error:
        return {"note": str(error)}
    told = {"value": number(check.value), "bound": number(check.bound), "holds": bool(check.holds)}
    return told | ({"worst": check.worst} if check.worst else {})


def verdict_of(one: GoalAudit) -> dict[str, Any]:
    """Return what held-out rows show about a goal."""
    if any(count < LEAST_ROWS for _, count in one.counts):  # of ratios: how many rows count depends on decisions
        return {"verdict": "not asked", "note": HIDDEN}
    words: dict[str, Any] = {name: number(getattr(one, name)) for name in ("estimate", "low", "high")}
    n_rows = sum(count for _, count in one.counts)
    return words | {"verdict": one.verdict, "words": one.words, "rows": n_rows, "note": one.note}


def ways_out(error: InfeasibleGoals) -> dict[str, Any]:
    """Return the goals that conflict, and each set of bounds that would do."""
    ways = [
        [{"goal": str(old), "instead": str(new), "bound": new.bound} for old, new in way.items()]
        for way in error.ways_out
    ]
    return {"conflict": [str(goal) for goal in error.conflict], "ways": ways}


_MOST_STATES = 3  # sets of columns that rules look at, for which everything is kept
_MOST_MEMBERS = 40  # of a mixture that are listed
_MOST_KEPT = 500  # mixtures: a setting has one, whoever asks for it, and however often
_NOT_MET = "These goals cannot hold together."  # where the bounds that can would tell about few rows
_MOST_CHECKED = 100  # goals of which it is known whether the held-out rows can answer them


class AnsweredSetting(NamedTuple):
    """A setting with its mixture, and what the mixture says about rows."""

    setting: Setting
    problem: Problem
    state: SessionState
    solved: Solved


class Session:
    """What the page asks: another setting, and slower views of it.

    Parameters
    ----------
    parts : SessionParts
        From ``session_of_model`` or ``session_of_run``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from counterpoise import GoalClassifier
    >>> from counterpoise.explorer import session_of_model
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GaussianNB().fit(X[:200], y[:200])
    >>> decided = GoalClassifier(model, cv="prefit", goals=["recall(train) >= 0.9"], random_state=0)
    >>> decided = decided.fit(X[200:400], y[200:400])
    >>> session = session_of_model(decided, X[400:], y[400:])
    >>> answer = session.answer(session.start)
    >>> answer["kind"], answer["goals"][0]["choice"]["holds"]
    ('answer', True)
    >>> abs(answer["value"] - decided.value_) < 3e-3
    True
    """

    def __init__(self, parts: SessionParts) -> None:
        self.parts = parts
        self.lock = Lock()  # one setting is solved at a time
        self._states: OrderedDict[Any, SessionState] = OrderedDict()
        self.start = start_of(parts)
        answers = parts.evidence.answers
        held = parts.held_out
        self.classes = answers.positive.labels
        self._held_views: dict[bool, Views] = {}
        self._rates = GroupRates((answers.tables if held is None else held.tables)[TRAIN], self.classes)
        self.columns = columns_of(parts)  # that rules may look at
        own = [one.goal for one in self.start.goals]
        self._times_asked = Counter(map(shape, own))
        self.few = DisclosureGuard(answers.tables, {} if held is None else held.tables, self.classes, own)
        sizes = [tables[TRAIN].n_samples for tables in (answers.tables, *([] if held is None else [held.tables]))]
        self.least_alpha = min(1.0, self.start.alpha or 1.0, LEAST_ROWS / min(sizes))
        self._unasked: dict[tuple[str, bool], str] = {}
        self.found: dict[Any, Any] = {}  # what views found once for many settings
        self._kept: OrderedDict[str, Solved] = OrderedDict()  # by the setting that rests there

    @property
    def has_scores(self) -> bool:
        """Tell whether rules of scores are mixed."""
        return isinstance(self.parts.evidence, ScoreTable)

    @property
    def decides_by_one_rule(self) -> bool:
        """Tell whether one rule decides, which no tail can be chosen for."""
        return bool(self.parts.estimator.decision == FIXED)

    def problem(self, setting: Setting) -> Problem:
        """Return what a setting asks of a mixture."""
        estimator = self.parts.estimator
        limits: dict[str, Any] = {"mixture": "optimal", "budget": setting.budget}
        limits["deferral"] = deferral_at(estimator, setting.defer)
        objective = estimator.objective_ if setting.alpha is None else None
        return estimator.build_problem(setting.alpha, objective, setting.active, **limits)  # type: ignore[no-any-return]

    def state(self, setting: Setting) -> SessionState:
        """Return what is kept for rules that look at some columns, and may defer or not."""
        name = setting.by, setting.defer
        if name not in self._states:
            self._states[name] = state_of(self.parts, *name)
        self._states.move_to_end(name)
        while len(self._states) > _MOST_STATES:
            self._states.popitem(last=False)
        return self._states[name]

    def _views(self, *, defers: bool) -> Views | None:
        """Return the held-out rows as rates see them, with a third answer where rows may be deferred."""
        held = self.parts.held_out
        if held is None:
            return None
        if defers not in self._held_views:
            deferral = deferral_at(self.parts.estimator, 0.0 if defers else None)
            label = None if deferral is None else deferral.label
            self._held_views[defers] = Views(held.tables, self.classes._replace(deferred=label))
        return self._held_views[defers]

    def solve(self, setting: Setting, tol: float = DRAGGED) -> AnsweredSetting:
        """Return the mixture of a setting, or raise ``Unmet``.

        That of the model's own setting is the model's own. One that was found where a value rests is kept, so that
        what is shown, drawn and exported of a setting is one and the same.
        """
        self.check(setting)
        problem, state, name = self.problem(setting), self.state(setting), setting.written()
        if name in self._kept:
            self._kept.move_to_end(name)
            return AnsweredSetting(setting, problem, state, self._kept[name])
        is_own = setting == self.start
        solved = state.program.stored(self.parts.estimator) if is_own else state.program.solve(problem, tol)
        found = AnsweredSetting(setting, problem, state, solved)
        return self._keep(found) if is_own or tol <= RELEASED else found

    def explain(self, setting: Setting) -> AnsweredSetting:
        """Return the mixture of a setting that seemed to have none, or raise ``InfeasibleGoals``."""
        problem, state = self.problem(setting), self.state(setting)
        return self._keep(AnsweredSetting(setting, problem, state, state.program.explain(problem)))

    def settled(self, setting: Setting) -> AnsweredSetting:
        """Return the mixture where a setting rests, or raise ``InfeasibleGoals``."""
        with self.lock:
            try:
                return self.solve(setting, RELEASED)
            except Unmet:
                return self.explain(setting)

    def _keep(self, found: AnsweredSetting) -> AnsweredSetting:
        self._kept[found.setting.written()] = found.solved
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return found

    def answer(self, setting: Setting, *, exact: bool = False) -> dict[str, Any]:
        """Return all that follows a value while it is dragged; where it is exact, with a smaller gap.

        Where no mixture is found that meets the goals its kind is "unmet"; which of them conflict takes longer:
        ``conflict``.
        """
        with self.lock:
            try:
                return self._told(self.solve(setting, RELEASED if exact else DRAGGED))
            except (Unmet, InfeasibleGoals):
                return {"kind": "unmet", "setting": setting.as_words()}

    def recent(self, setting: Setting) -> AnsweredSetting:
        """Return the mixture that a setting was answered with, solved anew where it did not rest there."""
        with self.lock:
            return self.solve(setting)

    def conflict(self, setting: Setting) -> dict[str, Any]:
        """Return which goals conflict, and the nearest bounds that can be met; the answer, where none do after all."""
        with self.lock:
            try:
                return self._told(self.explain(setting))
            except InfeasibleGoals as error:
                told = {"kind": "infeasible", "setting": setting.as_words()} | ways_out(error)
                is_of_few = any(self.few.why(goal) for goal in setting.active)
                return told | ({"message": _NOT_MET, "ways": []} if is_of_few else {"message": str(error)})

    def check(self, setting: Setting) -> None:
        """Refuse, before anything is computed, what cannot be asked of these models or would tell about few rows."""
        with in_field("alpha"):
            if setting.alpha is None and self.start.alpha is not None:
                raise ValueError("alpha must be a number in (0, 1]: the models are chosen for a tail.")
            if setting.alpha is not None and setting.alpha < 1 and self.decides_by_one_rule:
                raise ValueError(
                    f"alpha must be 1 here, got {setting.alpha:g}: the model decides by one rule, and the loss of its "
                    "tail follows from its error alone. For a tail, fit it with decision='sticky', which mixes rules."
                )
            if setting.alpha is not None and setting.alpha < self.least_alpha:
                raise ValueError(
                    f"alpha must be at least {self.least_alpha:.4g} here, got {setting.alpha:g}: a tail of fewer than "
                    f"{LEAST_ROWS} rows would tell about single ones."
                )
        with in_field("by"):
            if setting.by != self.start.by and (setting.by, setting.defer) not in self._states:
                check_columns(self.parts, setting.by, dict.fromkeys([*self.columns, *self.start.by]))
        asked: Counter[str] = Counter()
        for place, one in enumerate(setting.goals):
            with in_field("goals", place):
                name = shape(one.goal)
                asked[name] += 1
                if asked[name] > max(self._times_asked[name], 1):
                    raise ValueError(f"The goal {one.goal} is there already, up to its bound: move that.")
                self.few.check(one.goal)
                if setting.defer is None:
                    refuse_deferral_here(one.goal, can_defer=self.has_scores)

    def _told(self, found: AnsweredSetting) -> dict[str, Any]:
        solved, state = found.solved, found.state
        heaviest = int(np.bincount(solved.models, solved.mixture).argmax())
        said = {name: rows.said(solved) for name, rows in state.held_out.items()}
        return {
            "kind": "answer",
            "setting": found.setting.as_words(),
            "objective": str(found.problem.objective),
            "value": number(solved.value),
            "lower": number(solved.lower),
            "note": why_not_least(found, self.parts.estimator),
            "goals": self._goals(found, said),
            "losses": self._losses(found),
            "members": self._members(found),
            "groups": list(state.groups),
            "panels": {"model": heaviest, "groups": state.panels(self.parts, heaviest)},
            "rates": self._group_rates(found, said),
        }

    def _goals(self, found: AnsweredSetting, said: Mapping[str, Said]) -> list[dict[str, Any]]:
        """Return how each goal stands on the selection rows and on held-out rows, with its price."""
        tallied, prices = found.state.program.tallied(found.solved), iter(found.solved.prices.tolist())
        verdicts = self.verdicts(found.setting, said, quick=True)
        told = []
        for one, verdict in zip(found.setting.goals, verdicts, strict=True):
            words = {"text": str(one.goal), "bound": one.goal.bound, "on": one.on, **spelled(one.goal)}
            price, is_told = next(prices) if one.on else None, not self.few.why(one.goal)
            words["price"] = number(price) if price is not None and is_told else None
            is_known = price is not None and is_told
            words["is_free"] = is_known and not is_priced(float(price or 0.0), one.goal, found.problem.objective)
            words["choice"] = standing(one.goal, tallied) if is_told else {"note": HIDDEN}
            told.append(words | {"held_out": verdict})
        return told

    def verdicts(self, setting: Setting, said: Mapping[str, Said], *, quick: bool) -> list[dict[str, Any] | None]:
        """Return what held-out rows show about each goal, in expectation over the draws; None without such rows.

        A goal that a run aims at with room is judged by the bound that its goals file asks for, as its report does.
        """
        held, goals = self._views(defers=setting.defer is not None), [self._judged(one.goal) for one in setting.goals]
        if held is None:
            return [None] * len(goals)
        refused = [self._why_unasked(goal, held) for goal in goals]
        found: list[Any] = [{"verdict": "not asked", "note": why} if why else None for why in refused]
        answers: dict[str, Any] = {name: one.answers for name, one in said.items()}
        prepared = PreparedPredictions(held, answers, any(one.are_drawn for one in said.values()))
        for on in (True, False):  # those that count are right together; they do not pay for those that are off
            places = [place for place, one in enumerate(setting.goals) if one.on is on and found[place] is None]
            listed = add_confidence([goals[place] for place in places], self.parts.confidence)
            for place, audit in zip(places, audit_predictions(listed, prepared, quick=quick), strict=True):
                found[place] = verdict_of(audit)
        for one, judged, words in zip(setting.goals, goals, found, strict=True):
            if judged.bound != one.goal.bound and words["note"] != HIDDEN:
                words["note"] = f"{words['note']} (of {judged.bound:g}, as the goals file asks)".strip()
        return found

    def asked_for(self, setting: Setting) -> tuple[Goal, ...]:
        """Return the goals that count as a goals file asks for them: without room, where they still stand with it."""
        return tuple(map(self._judged, setting.active))

    def _judged(self, goal: Goal) -> Goal:
        asked = self.parts.bounds_asked.get(str(goal))
        return goal if asked is None else goal.with_bound(asked)

    def _why_unasked(self, goal: Goal, held: Views) -> str:
        """Return why the held-out rows cannot answer a goal, or what they say is not told; nothing where it is."""
        if self.few.why(goal):
            return HIDDEN
        name = shape(goal), held.classes.deferred is None
        if name not in self._unasked:
            if len(self._unasked) > _MOST_CHECKED:
                self._unasked.clear()
                self._held_views.clear()  # they keep the rows of every goal that was asked
            nobody = {one: np.zeros(table.n_samples) for one, table in held.tables.items()}
            try:
                asked = add_confidence(goal, self.parts.confidence)
                (found,) = audit_predictions(asked, PreparedPredictions(held, nobody), quick=True)
                self._unasked[name] = "" if found.has_estimate else f"{found.note}."
            except (ValueError, KeyError) as error:
                self._unasked[name] = str(error)
        return self._unasked[name]

    def _losses(self, found: AnsweredSetting) -> dict[str, Any]:
        """Return the mean and the tail's loss of the mixture and of plain training, on both sets of rows."""
        alpha, state, told = found.setting.alpha, found.state, {}
        for name, rows in {"choice": "chosen_on", "held_out": "held_out"}.items():
            if rows == "held_out" and self.parts.held_out is None:
                continue
            # the solver told the tail's loss of the selection rows
            is_known = rows == "chosen_on" and alpha is not None
            mean, tail = getattr(state, rows)[TRAIN].loss(found.solved, None if is_known else alpha)
            words = {"mean": mean, "plain_mean": state.plain_mean(rows)}
            if alpha is not None:  # plain training is one model, which errs or not, so that its mean tells
                words |= {"tail": found.solved.value if is_known else tail}
                words |= {"plain_tail": min(1.0, state.plain_mean(rows) / alpha)}
            told[name] = {word: number(value) for word, value in words.items()}
        return told

    def _group_rates(self, found: AnsweredSetting, said: Mapping[str, Said]) -> dict[str, Any]:
        if self.parts.held_out is None:
            told = found.state.chosen_on[TRAIN]
            both = told.expected(found.solved), told.deferred(found.solved)
            return {"rows": "choice", "groups": self._rates.of_shares(*both)}
        own = said[TRAIN]
        if own.are_drawn:
            return {"rows": "held_out", "groups": self._rates.of_shares(own.positive, own.deferred, held_out=True)}
        defers = found.setting.defer is not None
        return {"rows": "held_out", "groups": self._rates.of_decisions(np.asarray(own.answers), defers=defers)}

    def _members(self, found: AnsweredSetting) -> list[dict[str, Any]]:
        """Return the models or rules that carry weight, the heaviest first."""
        solved, names = found.solved, told_apart(self.parts.names)
        told = []
        for place in np.argsort(-solved.mixture, kind="stable")[:_MOST_MEMBERS].tolist():
            share = float(solved.mixture[place])
            if share <= 0:
                break
            words: dict[str, Any] = {"share": number(share), "model": names[int(solved.models[place])]}
            if solved.thresholds is not None:
                levels = [threshold(one) for one in solved.thresholds[place].tolist()]
                words["thresholds"] = levels[: len(found.state.groups)]
                if len(levels) > len(found.state.groups):
                    words["lower"] = levels[len(found.state.groups) :]
            told.append(words)
        return told


def start_of(parts: SessionParts) -> Setting:
    """Return what the model was chosen for."""
    estimator = parts.estimator
    by = estimator.groups_.by if isinstance(parts.evidence, ScoreTable) else ()
    goals = tuple(AskedGoal(goal) for goal in estimator.goals_)
    cost = None if estimator.deferral is None else estimator.deferral.cost
    return Setting(tail_of(estimator.objective_), getattr(estimator, "budget", None), goals, tuple(by), cost)
