"""A session: models with their scores or predictions in memory, which answers a setting in tens of milliseconds."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.budget import OutOfTime, TimeLimit, check_budget, choosing, is_advice_cut, within
from counterpoise._base.types import FloatArray
from counterpoise.auditing.audit import GoalAudit, add_confidence, audit_predictions
from counterpoise.explorer.disclosure import HIDDEN, LEAST_ROWS, UNREADABLE, DisclosureGuard, GroupRates, is_of_few
from counterpoise.explorer.margins import describe_margins, tightened
from counterpoise.explorer.setting import (
    Recent,
    Setting,
    SettingGoal,
    goal_key,
    in_field,
    make_unique,
    number,
    reach,
    threshold,
)
from counterpoise.explorer.solving import (
    DRAGGED,
    RELEASED,
    BestMixture,
    Missed,
    RulesProgram,
    Unmet,
    is_priced,
    scale_of,
    tail_of,
)
from counterpoise.explorer.state import (
    RowAnswers,
    SessionParts,
    SessionState,
    aimed_goals,
    check_columns,
    columns_of,
    deferral_at,
    state_of,
    why_no_margins,
)
from counterpoise.goals import Goal, InfeasibleGoals
from counterpoise.goals.binding import PreparedPredictions, Views
from counterpoise.goals.parsing import uses_deferral
from counterpoise.goals.ranges import goal_range
from counterpoise.goals.terms import BadColumn, Pairs
from counterpoise.rules.choosing import FIXED, Problem
from counterpoise.rules.goal_rows import TRAIN
from counterpoise.rules.infeasible import CUT
from counterpoise.rules.margins import Margins
from counterpoise.rules.options import Proof
from counterpoise.rules.scores.table import ScoreTable
from counterpoise.theory.confidence import Bounds


def why_not_least(result: Any, model: Any) -> str:
    """Return why the objective is above the best over mixtures; an empty text where it is not."""
    solution, objective = result.solution, result.problem.objective
    if solution.mixture.size > 1 or solution.thresholds is None:
        return ""
    if model.decision == FIXED:
        is_more = solution.cost > RELEASED * scale_of(objective)
        return f"One rule decides, without draws. A mixture would have {solution.cost:.2g} less." if is_more else ""
    more = solution.value - solution.lower
    if not more > RELEASED * scale_of(objective):
        return ""
    if tail_of(objective) == 1.0 and not result.problem.goals and model.keeps_default_threshold:
        return f"There are no goals, so the model keeps its usual threshold, which is within {more:.2g} of the best."
    return ""


_PAIRED = "decisions are drawn, so whether a row and its twin differ is known on the selection rows only"


def standing(goal: Goal, rates: Any) -> dict[str, Any]:
    """Return the value of a goal on the selection rows, and whether it holds."""
    try:
        check = goal.at(rates)
        if is_of_few(goal, rates):
            return {"note": HIDDEN, "holds": bool(check.holds)}
    except ValueError as error:
        return {"note": str(error)}
    words = {"value": number(check.value), "bound": number(check.bound), "holds": bool(check.holds)}
    n_small = len(check.left_out)  # which groups they are would reveal few rows
    small = f"{n_small} small group{'' if n_small == 1 else 's'} left out" if n_small else ""
    worst = "; ".join(filter(None, [check.worst, small]))
    return words | ({"worst": worst} if worst else {})


def verdict_of(one: GoalAudit) -> dict[str, Any]:
    """Return the verdict of held-out rows on a goal."""
    if any(count < LEAST_ROWS for _, count in one.counts):  # of ratios: how many rows count depends on decisions
        return {"verdict": "not asked", "note": HIDDEN}
    words: dict[str, Any] = {name: number(getattr(one, name)) for name in ("estimate", "low", "high")}
    n_rows = sum(count for _, count in one.counts)
    return words | {"verdict": one.verdict, "words": one.words, "rows": n_rows, "note": one.note}


_BEYOND = 10.0  # how far a ratio is looked at, whose reach is not known
_MOST_STATES = 3  # sets of columns that rules use, for which everything is stored
_MOST_MEMBERS = 40  # of a mixture that are listed
_MOST_SOLUTIONS = 500  # mixtures: one for each setting, for all pages
_WITH_DEFERRAL = "Allow deferral under Details, then add it."
_NOT_MET = "These goals cannot hold together."  # where the nearest bounds would reveal few rows
_MOST_CACHED = 1000  # edges of ranges and other things that stay the same from one setting to another
_FIRST_SECONDS = 0.2  # that a first answer is solved for, so that the page has it in 0.3
_MOST_CHECKED = 100  # goals of which it is known whether the held-out rows can answer them


class SettingResult(NamedTuple):
    """A setting, its problem, and the mixture that solves it."""

    setting: Setting
    problem: Problem
    state: SessionState
    solution: BestMixture
    is_too_much: bool = False  # of the margins that a page keeps: no mixture has them
    is_last: bool = False  # whether the mixture is that of the last setting that could be met

    @property
    def prices(self) -> FloatArray:
        """Return the prices of the goals; none are known where goals compare ratios, which are searched."""
        is_searched = any(goal.compares_ratios for goal in self.problem.goals)
        return np.empty(0) if is_searched else self.solution.prices


class Session:
    """Answers the requests of a page: other settings, and slower views of them.

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
    >>> decided = GoalClassifier(model, cv="prefit", goals=["recall >= 0.9"], random_state=0)
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
        self._states = Recent(_MOST_STATES)
        self.start = start_of(parts)
        answers = parts.selection_data.answers
        held_out = {} if parts.held_out is None else parts.held_out.tables
        self.classes = answers.positive.labels
        self._held_out_views: dict[bool, Views] = {}
        self.rates = GroupRates((held_out or answers.tables)[TRAIN], self.classes)
        self.columns = columns_of(parts)  # that rules may use
        own = [one.goal for one in self.start.goals]
        self._own_counts = Counter(map(goal_key, own))
        self.few = DisclosureGuard(answers.tables, held_out, self.classes, own)
        sizes = [tables[TRAIN].n_samples for tables in (answers.tables, held_out) if tables]
        self.least_alpha = min(1.0, self.start.alpha or 1.0, LEAST_ROWS / min(sizes))
        self._refusals: dict[tuple[str, bool], str] = {}
        self._reaches = Recent(_MOST_CHECKED)
        self.cache = Recent(_MOST_CACHED)  # results of views that hold for many settings
        self._solutions = Recent(_MOST_SOLUTIONS)  # by the setting that rests there
        self._last: SettingResult | None = None  # of the last answer that has a mixture

    @property
    def has_scores(self) -> bool:
        """Return whether rules of scores are mixed."""
        return isinstance(self.parts.selection_data, ScoreTable)

    @property
    def decides_by_one_rule(self) -> bool:
        """Return whether the model decides by one rule, for which alpha must be 1."""
        return bool(self.parts.estimator.decision == FIXED)

    def problem(self, setting: Setting) -> Problem:
        """Return the problem of a setting."""
        estimator = self.parts.estimator
        limits: dict[str, Any] = {"mixture": "optimal", "budget": setting.budget}
        limits["deferral"] = deferral_at(estimator, setting.defer)
        limits["confidence"] = setting.confidence
        objective = estimator.objective_ if setting.alpha is None else None
        return estimator.build_problem(setting.alpha, objective, setting.active, **limits)  # type: ignore[no-any-return]

    def state(self, setting: Setting) -> SessionState:
        """Return the rows and the program for rules that use some columns, with or without deferral."""
        name = setting.by, setting.defer
        if name not in self._states:
            self._states[name] = state_of(self.parts, *name)
        return self._states[name]  # type: ignore[no-any-return]

    def _views(self, *, defers: bool) -> Views | None:
        """Return the held-out rows as rates read them, with a third decision where rows may be deferred."""
        held_out = self.parts.held_out
        if held_out is None:
            return None
        if defers not in self._held_out_views:
            deferral = deferral_at(self.parts.estimator, 0.0 if defers else None)
            label = None if deferral is None else deferral.label
            self._held_out_views[defers] = Views(held_out.tables, self.classes._replace(deferred=label))
        return self._held_out_views[defers]

    def solve(self, setting: Setting, tol: float = DRAGGED, kept: Sequence[float | None] = ()) -> SettingResult:
        """Return the mixture of a setting, or raise ``Unmet``.

        The model's own setting has the model's own mixture. The mixture of a setting where the user stops is stored, so
        that the page shows, draws and exports the same one. While a value moves, bounds are tightened by ``kept``,
        the last margins, where other ones are not known yet.
        """
        self.check(setting)
        problem, state, name = self.problem(setting), self.state(setting), setting.to_json()
        if name in self._solutions:
            return SettingResult(setting, problem, state, self._solutions[name])
        is_own = setting == self.start
        program, is_exact, is_too_much = state.program, is_own or tol <= RELEASED, False
        if not self.has_margins(setting):
            solution = program.own_solution(self.parts.estimator) if is_own else program.solve(problem, tol)
        else:
            assert isinstance(program, RulesProgram)  # noqa: S101 - others have no margins
            is_exact = tol <= RELEASED or program.knows_margins(problem)
            if is_exact:
                solution = self._with_margins(setting, problem, program)
            elif is_own:
                solution = self._own_with_margins(program)
            else:
                try:
                    solution = program.solve(problem._replace(goals=tightened(setting, kept)), tol)
                except Unmet:
                    solution, is_too_much = program.solve(problem, tol), any(kept)
        result = SettingResult(setting, problem, state, solution, is_too_much)
        return self._remember(result) if is_exact else result

    def has_margins(self, setting: Setting) -> bool:
        """Return whether goals of a setting get margins."""
        return setting.confidence is not None and bool(setting.active)

    def _with_margins(self, setting: Setting, problem: Problem, program: RulesProgram) -> BestMixture:
        """Return the rule with margins; the model's own one at its own setting."""
        assert setting.confidence is not None  # noqa: S101 - the caller checks it
        try:
            plain = self.solve(replace(setting, confidence=None), RELEASED).solution
        except (Unmet, InfeasibleGoals):
            if setting != self.start:
                raise
            return self._own_with_margins(program)  # the model has a rule, whatever a search finds
        solution = program.with_margins(problem, plain, setting.confidence)
        return self._own_with_margins(program, solution) if setting == self.start else solution

    def _own_with_margins(self, program: RulesProgram, solution: BestMixture | None = None) -> BestMixture:
        """Return the rule of the model with its own margins; what limits them is known from the setting's solution."""
        estimator = self.parts.estimator
        known = Margins(None, (), 0.0, None, None) if solution is None or solution.margins is None else solution.margins
        own = {"margins": estimator.margins_, "confidence": estimator.confidence_, "proof": estimator.proof_}
        plain = None if solution is None else solution.plain
        return program.own_solution(estimator)._replace(margins=known._replace(**own), plain=plain)

    def explain(self, setting: Setting) -> SettingResult:
        """Return the mixture of a setting that seemed to have none, or raise ``InfeasibleGoals``."""
        plain = replace(setting, confidence=None)
        problem, state = self.problem(plain), self.state(plain)
        result = self._remember(SettingResult(plain, problem, state, state.program.explain(problem)))
        return self.solve(setting, RELEASED) if self.has_margins(setting) else result._replace(setting=setting)

    def solve_exactly(self, setting: Setting) -> SettingResult:
        """Return the mixture of a setting where the user stops, or raise ``InfeasibleGoals``."""
        with self.lock:
            try:
                return self.solve(setting, RELEASED)
            except Unmet:
                return self.explain(setting)

    def _remember(self, result: SettingResult) -> SettingResult:
        self._solutions[result.setting.to_json()] = result.solution
        return result

    def answer(self, setting: Setting, *, exact: bool = False, kept: Sequence[float | None] = ()) -> dict[str, Any]:
        """Return the panels that change while a value is dragged; with ``exact``, at a smaller gap.

        If no mixture meets the goals, the kind of the answer is "unmet". ``conflict`` returns which of them
        conflict, and takes longer. ``kept`` are the last margins, by goal, which are kept while a value is dragged.
        An answer that is not exact comes soon: where a search takes long, it has the last mixture that was found, and
        ``is_last`` is true.
        """
        with self.lock:
            try:
                result = self.solve(setting, RELEASED, kept) if exact else self._solve_soon(setting, kept)
            except (Unmet, InfeasibleGoals):
                return {"kind": "unmet", "setting": setting.as_words()}
            self._last = self._last if result.is_last else result
            return self._describe(result)

    def _solve_soon(self, setting: Setting, kept: Sequence[float | None]) -> SettingResult:
        """Return the mixture of a setting or, where that takes long, the last one that was found."""
        last = self._last
        if last is None or (last.setting.defer is None) != (setting.defer is None):
            return self.solve(setting, DRAGGED, kept)
        try:
            with within(TimeLimit(_FIRST_SECONDS)):
                return self.solve(setting, DRAGGED, kept)
        except Missed:
            pass
        except OutOfTime:
            check_budget()  # of those around: it was cancelled
        solution = last.solution._replace(margins=None, value=np.nan, lower=np.nan, prices=np.empty(0))
        return last._replace(setting=setting, problem=self.problem(setting), solution=solution, is_last=True)

    def answer_in_steps(self, setting: Setting) -> Iterator[dict[str, Any] | None]:
        """Yield None where margins must be computed, which another thread may do, and the exact answer in the end."""
        if self.has_margins(setting):
            with suppress(Unmet, InfeasibleGoals):  # as the answer says
                with self.lock:
                    plain = self.solve(replace(setting, confidence=None), RELEASED)
                    program = plain.state.program
                    assert isinstance(program, RulesProgram)  # noqa: S101 - others have no margins
                    is_known = program.knows_margins(plain.problem)
                if not is_known:
                    yield None
                    path = program.follow_margins(plain.problem, plain.solution)  # the lock is free meanwhile
                    with self.lock:
                        program.keep_margins(plain.problem, path)
        yield self.answer(setting, exact=True)

    def recent(self, setting: Setting) -> SettingResult:
        """Return the mixture that the page shows for a setting; solve it again where only a preview was computed."""
        with self.lock:
            return self.solve(setting)

    def conflict(self, setting: Setting, *, with_ways: bool = True) -> dict[str, Any]:
        """Return the goals that conflict and the nearest bounds that can be met, or the answer if all can be met.

        What is not found within about 5 s is left out.
        """
        with self.lock, choosing():
            try:
                return self._describe(self.explain(setting))
            except InfeasibleGoals as error:
                words = {"kind": "infeasible", "setting": setting.as_words()}
                words["conflict"] = [str(goal) for goal in error.conflict]
                if any(self.few.why(goal) for goal in setting.active):
                    return words | {"message": _NOT_MET, "ways": []}
                message = f"{error} {CUT}" if is_advice_cut() else str(error)
                ways = [
                    [{"goal": str(old), "instead": str(new), "bound": new.bound} for old, new in way.items()]
                    for way in (error.ways_out if with_ways else ())
                ]
                return words | {"message": message, "ways": ways}

    def check(self, setting: Setting) -> None:
        """Refuse, before anything is computed, settings that do not fit these models or would reveal few rows."""
        with in_field("alpha"):
            if setting.alpha is None and self.start.alpha is not None:
                raise ValueError("alpha must be a number in (0, 1], because this model minimises the loss of a tail.")
            if setting.alpha is not None and setting.alpha < 1 and self.decides_by_one_rule:
                raise ValueError(
                    f"alpha must be 1 here; got {setting.alpha:g}. One rule decides, and the loss of its tail "
                    "depends on its error alone. For a tail, fit with decision='sticky'."
                )
            if setting.alpha is not None and setting.alpha < self.least_alpha:
                raise ValueError(
                    f"alpha must be at least {self.least_alpha:.4g} here; got {setting.alpha:g}. A tail of fewer "
                    f"than {LEAST_ROWS} rows would reveal single rows."
                )
        with in_field("confidence"):
            if setting.confidence is not None and why_no_margins(self.parts.estimator):
                raise ValueError(
                    f"confidence must be null here; got {setting.confidence:g}. {why_no_margins(self.parts.estimator)}"
                )
        with in_field("by"):
            if setting.by != self.start.by and (setting.by, setting.defer) not in self._states:
                check_columns(self.parts, setting.by, dict.fromkeys([*self.columns, *self.start.by]))
        counts: Counter[str] = Counter()
        for place, one in enumerate(setting.goals):
            with in_field("goals", place):
                name = goal_key(one.goal)
                counts[name] += 1
                if counts[name] > max(self._own_counts[name], 1):
                    raise ValueError(f"The goal {one.goal} is already in the list. Move its bound instead.")
                if one.goal.compares_ratios and not (self.has_scores and self.decides_by_one_rule):
                    raise ValueError(
                        f"The goal {one.goal} compares ratios, which is for one rule of scores: fit a GoalClassifier "
                        "with decision='fixed'."
                    )
                self.few.check(one.goal)
                if setting.defer is None and uses_deferral(one.goal):
                    way = _WITH_DEFERRAL if self.has_scores else "This model decides every row."
                    raise ValueError(f"The goal {one.goal} uses deferred rows, but no row is deferred. {way}")

    def reach(self, goal: Goal) -> Bounds:
        """Return the range in which the bound of a goal can move; that of amounts follows from the selection rows."""
        low, high = ends = reach(goal)
        if math.isfinite(low) and math.isfinite(high):
            return ends
        if not goal.has_amounts:
            return Bounds(max(low, -_BEYOND), min(high, _BEYOND))
        name = goal_key(goal)
        if name not in self._reaches:
            tables = self.parts.selection_data.answers.tables
            self._reaches[name] = goal_range(goal.with_bound(0.0), Views(tables, self.classes))
        return self._reaches[name]  # type: ignore[no-any-return]

    def describe_goal(self, goal: Goal) -> dict[str, Any]:
        """Return the two sides of a goal as texts, and the range in which its bound can move."""
        low, high = self.reach(goal)
        words = {"left": str(goal.left), "sense": goal.sense, "sign": goal.comparison, "right": str(goal.right)}
        return words | {"low": number(low), "high": number(high)}

    def _describe(self, result: SettingResult) -> dict[str, Any]:
        solution, state = result.solution, result.state
        heaviest = int(np.bincount(solution.models, solution.mixture).argmax())
        answers = {name: rows.answers(solution) for name, rows in state.held_out.items()}
        goals = self._goals(result, answers)
        margins = describe_margins(result.setting, result.problem, solution, goals, is_too_much=result.is_too_much)
        return {
            "kind": "answer",
            "setting": result.setting.as_words(),
            "objective": str(result.problem.objective),
            "value": number(solution.value),
            "lower": number(solution.lower),
            "note": "" if result.is_last else why_not_least(result, self.parts.estimator),
            "is_last": result.is_last,
            "goals": goals,
            "margins": margins,
            "losses": self._losses(result),
            "members": self._members(result),
            "groups": list(state.groups),
            "panels": {"model": heaviest, "groups": state.panels(self.parts, heaviest)},
            "rates": self._group_rates(result, answers),
        }

    def _goals(self, result: SettingResult, answers: Mapping[str, RowAnswers]) -> list[dict[str, Any]]:
        """Return the value of each goal on the selection rows and on held-out rows, with its price."""
        rates, prices = result.state.program.rates(result.solution), iter(result.prices.tolist())
        verdicts = self.verdicts(result.setting, answers, quick=True)
        goals = []
        for one, verdict in zip(result.setting.goals, verdicts, strict=True):
            words = {"text": str(one.goal), "bound": one.goal.bound, "on": one.on, **self.describe_goal(one.goal)}
            price, is_told = next(prices, None) if one.on else None, not self.few.why(one.goal)
            words["price"] = number(price) if price is not None and is_told else None
            is_costly = is_priced(float(price or 0.0), self.reach(one.goal), result.problem.objective)
            words["is_free"] = price is not None and is_told and not is_costly
            words["choice"] = standing(one.goal, rates) if is_told else {"note": HIDDEN}
            goals.append(words | {"held_out": verdict})
        return goals

    def verdicts(self, setting: Setting, rows: Mapping[str, RowAnswers], *, quick: bool) -> list[dict[str, Any] | None]:
        """Return the verdict of held-out rows on each goal, in expectation over the draws; None without such rows.

        A goal that a run fits with a margin is judged by the bound in its goals file, as in the report.
        """
        views = self._views(defers=setting.defer is not None)
        goals = [self._original_goal(one.goal) for one in setting.goals]
        if views is None:
            return [None] * len(goals)
        reasons = [self._why_no_verdict(goal, views) for goal in goals]
        if any(one.are_drawn for one in rows.values()):
            pairs = [any(isinstance(name, Pairs) for name in goal.counted_datasets) for goal in goals]
            reasons = [why or (_PAIRED if is_paired else "") for why, is_paired in zip(reasons, pairs, strict=True)]
        verdicts: list[Any] = [{"verdict": "not asked", "note": why} if why else None for why in reasons]
        codes: dict[str, Any] = {name: one.answers for name, one in rows.items()}
        predictions = PreparedPredictions(views, codes, any(one.are_drawn for one in rows.values()))
        for on in (True, False):  # those that count are right together; they do not pay for those that are off
            places = [place for place, one in enumerate(setting.goals) if one.on is on and verdicts[place] is None]
            goals_to_audit = add_confidence([goals[place] for place in places], self.parts.confidence)
            for place, audit in zip(places, audit_predictions(goals_to_audit, predictions, quick=quick), strict=True):
                verdicts[place] = verdict_of(audit)
        for one, goal, words in zip(setting.goals, goals, verdicts, strict=True):
            if goal.bound != one.goal.bound and words["note"] != HIDDEN:
                words["note"] = f"{words['note']} (of {goal.bound:g}, as the goals file asks)".strip()
        return verdicts

    def goals_of_file(self, setting: Setting) -> tuple[Goal, ...]:
        """Return the goals that count with the bounds of the goals file, without the margin that fitting adds."""
        return tuple(map(self._original_goal, setting.active))

    def _original_goal(self, goal: Goal) -> Goal:
        return goal.with_bound(self.parts.original_bounds.get(str(goal), goal.bound))

    def _why_no_verdict(self, goal: Goal, views: Views) -> str:
        """Return why the held-out rows have no verdict on a goal, or why it is hidden; an empty text otherwise."""
        if self.few.why(goal):
            return HIDDEN
        name = goal_key(goal), views.classes.deferred is None
        if name not in self._refusals:
            if len(self._refusals) > _MOST_CHECKED:
                self._refusals.clear()
                self._held_out_views.clear()  # they store the rows of every goal so far
            nobody = {one: np.zeros(table.n_samples) for one, table in views.tables.items()}
            try:
                goals = add_confidence(goal, self.parts.confidence)
                (audit,) = audit_predictions(goals, PreparedPredictions(views, nobody), quick=True)
                self._refusals[name] = "" if audit.has_estimate else f"{audit.note}."
            except BadColumn:
                self._refusals[name] = UNREADABLE
            except (ValueError, KeyError) as error:
                self._refusals[name] = str(error)
        return self._refusals[name]

    def _losses(self, result: SettingResult) -> dict[str, Any]:
        """Return the mean loss and the loss of the tail of the mixture and of plain training, on both sets of rows."""
        alpha, state, losses = result.setting.alpha, result.state, {}
        for name, rows in {"choice": "selection", "held_out": "held_out"}.items():
            if rows == "held_out" and self.parts.held_out is None:
                continue
            # the solver returned the tail's loss of the selection rows
            is_known = rows == "selection" and alpha is not None and not result.is_last
            mean, tail = getattr(state, rows)[TRAIN].loss(result.solution, None if is_known else alpha)
            words = {"mean": mean, "plain_mean": state.plain_mean(rows)}
            if alpha is not None:  # plain training is one model, which errs or not, so that its mean decides
                words |= {"tail": result.solution.value if is_known else tail}
                words |= {"plain_tail": min(1.0, state.plain_mean(rows) / alpha)}
            losses[name] = {word: number(value) for word, value in words.items()}
        return losses

    def _group_rates(self, result: SettingResult, answers: Mapping[str, RowAnswers]) -> dict[str, Any]:
        if self.parts.held_out is None:
            shares = result.state.selection[TRAIN].shares(result.solution)
            return {"rows": "choice", "groups": self.rates.of_shares(*shares)}
        own = answers[TRAIN]
        if own.are_drawn:
            return {"rows": "held_out", "groups": self.rates.of_shares(*own.shares, held_out=True)}
        defers = result.setting.defer is not None
        return {"rows": "held_out", "groups": self.rates.of_decisions(np.asarray(own.answers), defers=defers)}

    def _members(self, result: SettingResult) -> list[dict[str, Any]]:
        """Return the models or rules that carry weight, the heaviest first."""
        solution, names = result.solution, make_unique(self.parts.names)
        members = []
        for place in np.argsort(-solution.mixture, kind="stable")[:_MOST_MEMBERS].tolist():
            share = float(solution.mixture[place])
            if share <= 0:
                break
            words: dict[str, Any] = {"share": number(share), "model": names[int(solution.models[place])]}
            if solution.thresholds is not None:
                levels = [threshold(one) for one in solution.thresholds[place].tolist()]
                words["thresholds"] = levels[: len(result.state.groups)]
                if len(levels) > len(result.state.groups):
                    words["lower"] = levels[len(result.state.groups) :]
            members.append(words)
        return members


def start_of(parts: SessionParts) -> Setting:
    """Return the setting that the model was fitted for."""
    estimator = parts.estimator
    by = estimator.groups_.by if isinstance(parts.selection_data, ScoreTable) else ()
    goals = tuple(SettingGoal(goal) for goal in aimed_goals(estimator))
    cost = None if estimator.deferral is None else estimator.deferral.cost
    confidence = None if why_no_margins(estimator) else getattr(estimator, "confidence", None)
    level = confidence.confidence if isinstance(confidence, Proof) else confidence
    return Setting(tail_of(estimator.objective_), getattr(estimator, "budget", None), goals, tuple(by), cost, level)
