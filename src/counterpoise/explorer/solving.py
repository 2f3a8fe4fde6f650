"""The best mixture for one setting after another, each solved from where the last ones ended.

Only starting points are kept from one setting to the next, never results: every result has a lower bound of its own.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.explorer.setting import Recent
from counterpoise.goals import Goal, InfeasibleGoals, Rate, Ratio
from counterpoise.goals.binding import Tally, Views, tally_rates
from counterpoise.goals.terms import Dataset, Linear
from counterpoise.rules.choosing import (
    FIXED,
    ModelFamily,
    PoolPredictions,
    Problem,
    RepeatedLosses,
    Selection,
    choose_mixture,
    select,
)
from counterpoise.rules.families import choose_rules
from counterpoise.rules.goal_rows import Answers, GoalConstraints, TalliedGoals
from counterpoise.rules.margins import Margins
from counterpoise.rules.program import (
    Choice,
    NoMixture,
    Objective,
    Program,
    build_objective,
    mean_objective,
    with_budget,
)
from counterpoise.rules.scores.best_rule import FIRST, RuleSearch, best_fixed
from counterpoise.rules.scores.candidates import CutPath, follow_cuts, with_margins
from counterpoise.rules.scores.conflicts import excess_of
from counterpoise.rules.scores.cuts import CutRules, Rule
from counterpoise.rules.scores.family import CutFamily
from counterpoise.rules.scores.fixed import deciding_rules
from counterpoise.rules.scores.sums import RuleLimits
from counterpoise.rules.scores.table import RankedScores
from counterpoise.solvers.linear_program import CuttingPlanes, InfeasibleRows
from counterpoise.theory.confidence import Bounds
from counterpoise.theory.risks import CVaR, Risk

DRAGGED, RELEASED = 3e-3, 1e-4  # gaps, as parts of ``scale_of``, that do while a value moves, and when it rests
_NO_PRICE = 1e-6  # part of the objective's scale that a goal costs over its whole range: far below the gaps above
_MOST_PATHS = 8  # sets of goals whose rules with margins are kept
_MOST_COUNTS = 100  # sets of rows that are counted before all are forgotten


class Unmet(Exception):  # noqa: N818 - a state, not an error
    """The search has no mixture that meets the goals; ``MixtureProgram.explain`` finds which of them conflict."""


class Missed(Unmet):
    """A coarse search has no rule that meets the goals, and an exact one may have."""


@contextmanager
def unmet() -> Iterator[None]:
    """Raise ``Unmet`` where the library has no mixture inside the goals."""
    try:
        yield
    except (NoMixture, InfeasibleGoals) as error:
        raise Unmet from error


def scale_of(objective: Risk | Rate | Ratio) -> float:
    """Return the scale of gaps: 1 for a risk, as losses are from 0 to 1, and for a rate the size of its terms.

    Examples
    --------
    >>> from counterpoise.explorer.solving import scale_of
    >>> from counterpoise.goals import error_rate
    >>> from counterpoise.theory.risks import CVaR
    >>> scale_of(CVaR(0.1)), scale_of(5000 * error_rate("train"))
    (1.0, 5000.0)
    """
    return objective.size if isinstance(objective, Rate) and objective.size > 0 else 1.0


def tail_of(objective: Risk | Rate | Ratio) -> float | None:
    """Return the fraction alpha whose mean loss is the objective; None where the objective is not of a tail."""
    return objective.tail_fraction if isinstance(objective, Risk) else None


def is_priced(price: float, ends: Bounds, objective: Risk | Rate | Ratio) -> bool:
    """Return whether a goal costs anything: its price times the range of its bound, against the objective's scale."""
    low, high = ends
    return price * (high - low) > _NO_PRICE * scale_of(objective)


class BestMixture(NamedTuple):
    """A mixture and its certificate."""

    models: IntArray  # the model of each member
    # (n_members, n_groups) where members are rules, those below which nobody is deferred behind them where rows may be
    thresholds: FloatArray | None  # None where members are the models
    mixture: FloatArray
    value: float
    lower: float
    prices: FloatArray  # of the goals
    cuts: IntArray | None = None  # of rules, (n_members, n_groups): what they are among all cuts
    cost: float = 0.0  # of deciding by few members, or by one without draws
    risk: Risk | None = None  # as it is bound to the rows, where it is no CVaR, worst group or rate
    margins: Margins | None = None  # of one rule that was chosen with them
    plain: "BestMixture | None" = None  # the best rule without margins, where this one has them
    defers: bool = False  # whether rules have lower thresholds too

    @property
    def choice(self) -> Choice:
        """Return the mixture in the form that the library's classifiers use."""
        rules = None if self.cuts is None else CutRules(self.models, self.cuts)
        return Choice(self.mixture, self.value, self.lower, self.prices, rules, self.cost, self.risk)


class MixtureRates(NamedTuple):
    """Rates of one mixture, from the counts of each of its members."""

    views: Views
    tally: Tally

    def value(self, rate: Linear) -> float:
        """Return the value of a rate whose classes are known."""
        return float(rate.constant + tally_rates([rate], self.views, self.tally).item())


class CountedGoals:
    """Goals as rows of a program: rows of the tables are counted once, whatever the bounds."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._begin()

    def _begin(self) -> None:
        self.views: Views = self._answers.views()
        self._tally = self._answers.counter(self.views)
        self._counted: set[tuple[Dataset, int]] = set()

    def refresh(self) -> None:
        """Forget what was counted where it is much."""
        if len(self._counted) > _MOST_COUNTS:
            self._begin()

    def rows(self, goals: tuple[Goal, ...]) -> GoalConstraints | None:
        """Return goals as rows; None where there are none."""
        self.refresh()
        return TalliedGoals.of(goals, self.views).rows(self.count) if goals else None

    def rows_moved_by(self, goals: tuple[Goal, ...], place: int) -> GoalConstraints | None:
        """Return the rows if another bound of a goal moves the right sides of its own by as much, and nothing else."""
        rows = None if any(goal.compares_ratios for goal in goals) else self.rows(goals)
        if rows is None:
            return None
        own = rows.rows_of(place)
        is_moved = not rows.row_slopes[own].any() and all(rows.shares[row] is None for row in own)
        return rows if is_moved else None

    def count(self, rows: Dataset, place: int) -> FloatArray:
        """Return the weight of the rows for which each model, or cut, decides a class."""
        self._counted.add((rows, place))
        return self._tally(rows, place)


_EDGE = 1e-9  # gap at which the search for a tightest bound ends, relative to the size of the goal's terms
_MOST_CELLS = 14_000  # of rows that no rule so far separates, from which losses are merged anew
_MOST_RULES = 60  # that a search begins with


def _size_of(rows: GoalConstraints, place: int) -> float:
    """Return how large the terms of a goal can be, which is the scale of its gaps."""
    own = rows.rows_of(place)
    return float(np.abs(rows.rows[own]).max() if rows.sizes is None else rows.sizes[own].max()) or 1.0


def _prices(model: Any) -> FloatArray:
    """Return the prices of a model's goals; none are known where its mixture was not chosen inside the goals."""
    prices = np.asarray(model.multipliers_, dtype=np.float64)
    return prices if prices.size == len(model.goals_) else np.zeros(len(model.goals_))


def _path_name(problem: Problem) -> tuple[Any, ...]:
    """Return what the margins of a problem depend on, beside the rows and the program."""
    return problem.goals, str(problem.objective), problem.budget


class ModelProgram:
    """Mixtures of models, from the bits that mark their errors."""

    def __init__(self, selection_data: PoolPredictions) -> None:
        self.selection_data, self.counted = selection_data, CountedGoals(selection_data.answers)
        self._losses = RepeatedLosses(selection_data.losses, selection_data.sample_weight)

    def solve(self, problem: Problem, tol: float) -> BestMixture:
        """Return the best mixture, or raise ``Unmet``."""
        with unmet():
            selection = self._selection(problem)
            alpha = tail_of(problem.objective)
            if alpha is None or problem.max_models is not None or problem.outlier_fraction > 0:
                return self._as_the_library(selection, problem._replace(explains=False))
            return self._of_tail(selection, problem, tol)

    def explain(self, problem: Problem) -> BestMixture:
        """Return the best mixture if there is one after all, or raise ``InfeasibleGoals``."""
        return self._as_the_library(self._selection(problem), problem)

    def can_hold(self, goals: tuple[Goal, ...]) -> bool:
        """Return whether some mixture meets goals."""
        rows = self.counted.rows(goals)
        try:
            if rows is not None:
                CuttingPlanes(self.selection_data.losses.shape[1], *rows.as_limits().values())
        except InfeasibleRows:
            return False
        return True

    def least_excess(self, goals: tuple[Goal, ...], place: int) -> float | None:
        """Return the least that a goal can be missed by where all others are met."""
        rows = self.counted.rows_moved_by(goals, place)
        if rows is None:
            return None
        selection = Selection(self.selection_data.losses, self.selection_data.sample_weight, None)
        with unmet():
            program = ModelFamily(selection).excess(rows, place)
            return float(program.solve(_EDGE * _size_of(rows, place)).solution.value)

    def own_solution(self, model: Any) -> BestMixture:
        """Return the mixture that a fitted model has."""
        every, value = np.arange(model.mixture_.size), float(model.value_)
        return BestMixture(every, None, model.mixture_, value, value - float(model.gap_), _prices(model))

    def rates(self, solution: BestMixture) -> MixtureRates:
        """Return the rates of a mixture on the selection rows, in expectation over its draws."""
        goal_rows, mixture = self.counted, solution.mixture
        return MixtureRates(goal_rows.views, lambda rows, place: (goal_rows.count(rows, place) @ mixture)[None])

    def _selection(self, problem: Problem) -> Selection:
        if tail_of(problem.objective) is None:
            return select(self.selection_data, problem)
        return Selection(
            self.selection_data.losses, self.selection_data.sample_weight, None, self.counted.rows(problem.goals)
        )

    def _as_the_library(self, selection: Selection, problem: Problem) -> BestMixture:
        best = choose_mixture(selection, problem)
        every = np.arange(best.mixture.size)
        return BestMixture(every, None, best.mixture, best.value, best.lower, best.multipliers, cost=best.cost)

    def _of_tail(self, selection: Selection, problem: Problem, tol: float) -> BestMixture:
        """Return the mixture with the least CVaR, started from earlier settings."""
        assert isinstance(problem.objective, Risk)  # noqa: S101 - a tail
        family = ModelFamily(selection)
        limits, _ = with_budget(family, selection.goals, problem.budget, explains=False)
        program = Program(family, Objective(self._losses, problem.objective), limits)
        choice = family.choice(program, program.solve(tol))
        every, prices = np.arange(choice.mixture.size), choice.multipliers[: len(problem.goals)]
        return BestMixture(every, None, choice.mixture, choice.value, choice.lower, prices)


class RulesProgram:
    """One rule of scores, by a search over cells, or mixtures of all of them, by column generation."""

    def __init__(self, ranked: RankedScores, *, keeps_default_threshold: bool, decision: str = "sticky") -> None:
        self.ranked, self.family = ranked, CutFamily(ranked)
        self._decides: dict[str, Any] = {"keeps_default_threshold": keeps_default_threshold, "decision": decision}
        self._is_fixed = decision == FIXED
        self.counted = CountedGoals(ranked.answers())
        self._search = RuleSearch(ranked, FIRST, self.counted.views)
        self._usual = ranked.usual_rules()
        self._start = self._edges = self._usual  # rules to begin with, inside of the goals and at their edges
        self._tail_losses: Any = None
        self._mean = mean_objective(self.family)
        self._paths = Recent(_MOST_PATHS)  # rules with margins, by problem

    def solve(self, problem: Problem, tol: float) -> BestMixture:
        """Return the best mixture or rule, or raise ``Unmet``; of one rule, a coarse search gives the first answer."""
        problem = problem._replace(**self._decides, explains=False)
        with unmet():
            if not self._is_fixed:
                return self._mix(problem, tol)
            if tol > RELEASED and problem.goals:
                return self._first_rule(problem)
            return self._as_solution(choose_rules(self.ranked, problem))

    def explain(self, problem: Problem) -> BestMixture:
        """Return the best mixture or rule if there is one after all, or raise ``InfeasibleGoals``."""
        problem = problem._replace(**self._decides, explains=True)
        return self._as_solution(choose_rules(self.ranked, problem)) if self._is_fixed else self._mix(problem, RELEASED)

    def can_hold(self, goals: tuple[Goal, ...]) -> bool:
        """Return whether some mixture, or a rule of the coarse search, meets goals."""
        if self._is_fixed:
            return best_fixed(self.ranked, Problem(CVaR(1.0), goals), self._start, FIRST).violation <= 0
        return self._can_mix(goals)

    def _can_mix(self, goals: tuple[Goal, ...]) -> bool:
        try:
            Program(self.family, self._mean, self._limits(goals)).solve(1.0, self._start)
        except NoMixture:
            return False
        return True

    def _first_rule(self, problem: Problem) -> BestMixture:
        """Return the best rule of the coarse search, without a bound, or raise ``Missed`` if another may do."""
        self.counted.refresh()
        if self._search.views is not self.counted.views:
            self._search = RuleSearch(self.ranked, FIRST, self.counted.views)
        best = self._search.best(problem, self._start)
        if best.violation > 0:
            is_linear = not any(goal.compares_ratios for goal in problem.goals)
            raise Unmet if best.is_proven or (is_linear and not self._can_mix(problem.goals)) else Missed
        self._start = best.rule.join(self._start).only(slice(_MOST_RULES))
        return self._as_solution(Choice(np.ones(1), best.value, np.nan, np.empty(0), best.rule))

    def _mix(self, problem: Problem, tol: float) -> BestMixture:
        """Return the best mixture, from the rules of the last ones."""
        limits, explains = self._limits(problem.goals), problem.explains
        limits, _ = with_budget(self.family, limits, problem.budget, self._start, explains=explains)
        program = Program(self.family, self._objective(problem), limits)
        optimum = program.solve(tol * scale_of(problem.objective), self._start, explains=explains)
        rules_used = optimum.rules.only(optimum.solution.mixture > 0)
        self._start = rules_used.join(self._start).only(slice(_MOST_RULES))
        choice = self.family.choice(program, optimum)
        if tol <= RELEASED or not problem.goals:
            choice = deciding_rules(self.ranked, problem, choice)
        return self._as_solution(choice)

    def _objective(self, problem: Problem) -> Objective:
        """Return the objective; the losses by row do not depend on the tail, so they are kept."""
        objective = problem.objective
        alpha = tail_of(objective)
        if alpha is None or alpha == 1.0 or problem.max_models is not None:
            return build_objective(self.family, objective)
        assert isinstance(objective, Risk)  # noqa: S101 - a tail
        if self._tail_losses is None or self._tail_losses.sample_weight.size > _MOST_CELLS:
            self._tail_losses = self.family.row_losses(objective)
        return Objective(self._tail_losses, objective)

    def least_excess(self, goals: tuple[Goal, ...], place: int) -> float | None:
        """Return the least that a goal can be missed by where all others are met."""
        rows = self.counted.rows_moved_by(goals, place)
        if rows is None:
            return None
        with unmet():
            program = excess_of(self.family, RuleLimits(self.ranked.cuts, rows), place)
            rules, solution = program.solve(_EDGE * _size_of(rows, place), self._edges)
        rules_used = rules.only(solution.mixture > 0)
        self._edges = self._usual.join(rules_used).join(self._edges).only(slice(_MOST_RULES))
        return float(solution.value)

    def knows_margins(self, problem: Problem) -> bool:
        """Return whether the rules with margins of a problem are known, so that any confidence is immediate."""
        return _path_name(problem) in self._paths

    def follow_margins(self, problem: Problem, plain: BestMixture) -> CutPath:
        """Return the rules with margins of any size, given the best one without; one pass for every confidence.

        It changes nothing here, so another thread may call it, and ``keep_margins`` stores the result.
        """
        return follow_cuts(self.ranked, problem, plain.choice.rules)

    def keep_margins(self, problem: Problem, path: CutPath) -> None:
        """Store the rules with margins of a problem."""
        self._paths[_path_name(problem)] = path

    def with_margins(self, problem: Problem, plain: BestMixture, confidence: float) -> BestMixture:
        """Return the rule whose goals hold on new rows with a confidence, and its margins."""
        if not self.knows_margins(problem):
            self.keep_margins(problem, self.follow_margins(problem, plain))
        path: CutPath = self._paths[_path_name(problem)]
        choice, margins = with_margins(self.ranked, problem, plain.choice, confidence, path)
        return self._as_solution(choice)._replace(margins=margins, plain=plain)

    def own_solution(self, model: Any) -> BestMixture:
        """Return the mixture of rules that a fitted model has."""
        rules, value = self.ranked.as_cuts(model.rules_), float(model.value_)
        choice = Choice(model.mixture_, value, value - float(model.gap_), _prices(model), rules)
        return self._as_solution(choice, model.rules_)

    def rates(self, solution: BestMixture) -> MixtureRates:
        """Return the rates of a mixture on the selection rows, in expectation over its draws."""
        goal_rows, mixture, cuts = self.counted, solution.mixture, solution.cuts
        assert cuts is not None  # noqa: S101 - of rules
        nobody = int(self.ranked.cuts.starts[0, 0])

        def count(rows: Dataset, place: int) -> FloatArray:
            counts = goal_rows.count(rows, place)
            by_rule = counts[nobody] + (counts[cuts] - counts[nobody]).sum(axis=1)
            return np.asarray((by_rule @ mixture)[None])

        return MixtureRates(goal_rows.views, count)

    def _limits(self, goals: tuple[Goal, ...]) -> RuleLimits:
        return RuleLimits(self.ranked.cuts, self.counted.rows(goals))

    def _as_solution(self, choice: Choice, rules: Sequence[Rule] | None = None) -> BestMixture:
        if rules is None:
            rules = self.ranked.as_rules(choice.rules, are_usual=choice.is_usual)
        levels, defers = [rule.levels for rule in rules], self.ranked.cuts.defers
        thresholds = np.array([[*upper, *lower] if defers else upper for upper, lower in levels])
        values = choice.mixture, choice.value, choice.lower, choice.multipliers
        solution = BestMixture(choice.rules.models, thresholds, *values, choice.rules.cuts, choice.cost, choice.risk)
        return solution._replace(defers=defers)


MixtureProgram: TypeAlias = ModelProgram | RulesProgram  # what solves the settings of a session
