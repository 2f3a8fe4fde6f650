"""The best mixture for one setting after another, each solved from where the last ones ended.

Only starting points are kept from one setting to the next, never results: every result has a lower bound of its own.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.explorer.setting import Recent, goal_key
from counterpoise.goals import Goal, InfeasibleGoals, Rate, Ratio
from counterpoise.goals.binding import Tally, Views, tally_rates
from counterpoise.goals.terms import Dataset, Linear
from counterpoise.rules.choosing import (
    ModelFamily,
    PoolPredictions,
    Problem,
    RepeatedLosses,
    Selection,
    choose_mixture,
    select,
    value_of,
)
from counterpoise.rules.goal_rows import Answers, GoalConstraints, TalliedGoals
from counterpoise.rules.margins import Margins, describe_margins
from counterpoise.rules.program import (
    EXACT,
    Choice,
    NoMixture,
    Objective,
    Program,
    build_objective,
    mean_objective,
    with_budget,
)
from counterpoise.rules.scores.candidates import CutPath, follow_cuts
from counterpoise.rules.scores.conflicts import excess_of
from counterpoise.rules.scores.cuts import CutRules, Rule
from counterpoise.rules.scores.family import CutFamily
from counterpoise.rules.scores.fixed import deciding_rules
from counterpoise.rules.scores.grid import GridFamily
from counterpoise.rules.scores.sums import RuleLimits
from counterpoise.rules.scores.table import RankedScores
from counterpoise.solvers.linear_program import CuttingPlanes, InfeasibleRows
from counterpoise.theory.confidence import Bounds
from counterpoise.theory.risks import Mean, Risk

DRAGGED, RELEASED = 3e-3, 1e-4  # gaps, as parts of ``scale_of``, that do while a value moves, and when it rests
_NO_PRICE = 1e-6  # part of the objective's scale that a goal costs over its whole range: far below the gaps above
_MOST_BOUND = 4  # sets of goals whose rows are kept: those of scores have an entry for each cut
_MOST_PATHS = 8  # sets of goals whose rules with margins are kept
_MOST_COUNTS = 100  # sets of rows that are counted before all are forgotten


class Unmet(Exception):  # noqa: N818 - a state, not an error
    """The search has no mixture that meets the goals; ``MixtureProgram.explain`` finds which of them conflict."""


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


class GoalRowCache:
    """Goals as rows of a program, stored for a few sets of goals: another bound changes only the right sides."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._begin()

    def _begin(self) -> None:
        self.views: Views = self._answers.views()
        self._tally = self._answers.counter(self.views)
        self._counted_rows: set[tuple[Dataset, int]] = set()
        self._rows_by_goals = Recent(_MOST_BOUND)

    def rows(self, goals: tuple[Goal, ...]) -> GoalConstraints | None:
        """Return goals as rows; None where there are none."""
        if not goals:
            return None
        if len(self._counted_rows) > _MOST_COUNTS:
            self._begin()
        if any(goal.confidence is not None for goal in goals):  # their margins depend on all bounds together
            return TalliedGoals.of(goals, self.views).rows(self.count)
        name = tuple(goal_key(goal) for goal in goals)
        if name not in self._rows_by_goals:
            self._rows_by_goals[name] = TalliedGoals.of(goals, self.views).rows(self.count)
        rows: GoalConstraints = self._rows_by_goals[name]
        for place, goal in enumerate(goals):
            if rows.goals[place].bound != goal.bound:
                rows = rows.with_bound(place, goal.bound)
        return rows

    def rows_moved_by(self, goals: tuple[Goal, ...], place: int) -> GoalConstraints | None:
        """Return the rows if another bound of a goal moves the right sides of its own by as much, and nothing else."""
        rows = self.rows(goals)
        if rows is None:
            return None
        own = rows.rows_of(place)
        is_moved = not rows.row_slopes[own].any() and all(rows.shares[row] is None for row in own)
        return rows if is_moved else None

    def count(self, rows: Dataset, place: int) -> FloatArray:
        """Return the weight of the rows for which each model, or cut, decides a class."""
        self._counted_rows.add((rows, place))
        return self._tally(rows, place)


_MEAN = Objective(None, Mean())  # of the rules of a grid, which knows their losses
_EDGE = 1e-9  # gap at which the search for a tightest bound ends, relative to the size of the goal's terms
_MOST_COARSE, _MOST_FINE = 250, 700  # cuts of a grid, from which it begins anew
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
        self.selection_data, self.goal_rows = selection_data, GoalRowCache(selection_data.answers)
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
        rows = self.goal_rows.rows(goals)
        try:
            if rows is not None:
                CuttingPlanes(self.selection_data.losses.shape[1], *rows.as_limits().values())
        except InfeasibleRows:
            return False
        return True

    def least_excess(self, goals: tuple[Goal, ...], place: int) -> float | None:
        """Return the least that a goal can be missed by where all others are met."""
        rows = self.goal_rows.rows_moved_by(goals, place)
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
        goal_rows, mixture = self.goal_rows, solution.mixture
        return MixtureRates(goal_rows.views, lambda rows, place: (goal_rows.count(rows, place) @ mixture)[None])

    def _selection(self, problem: Problem) -> Selection:
        if tail_of(problem.objective) is None:
            return select(self.selection_data, problem)
        return Selection(
            self.selection_data.losses, self.selection_data.sample_weight, None, self.goal_rows.rows(problem.goals)
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
    """Mixtures of all rules of scores within groups: from a grid for one score, by column generation for several."""

    def __init__(self, ranked: RankedScores, *, keeps_default_threshold: bool, decision: str = "sticky") -> None:
        self.ranked, self.keeps_default_threshold, self.decision = ranked, keeps_default_threshold, decision
        self.goal_rows = GoalRowCache(ranked.answers())
        self.family = CutFamily(ranked)
        self._grid = GridFamily(ranked) if ranked.cuts.n_models == 1 and not ranked.cuts.defers else None
        # grids of cuts to begin with: a coarse one while values move, a fine one where they rest
        self._coarse: IntArray | None = None
        self._fine: IntArray | None = None
        self._usual = ranked.usual_rules()
        self._start = self._edges = self._usual  # rules to begin with, inside of the goals and at their edges
        self._tail_losses: Any = None
        self._mean = mean_objective(self.family)
        self._least: tuple[Any, float] | None = None  # mean loss under goals, for a budget
        self._paths = Recent(_MOST_PATHS)  # rules with margins, by problem

    def solve(self, problem: Problem, tol: float) -> BestMixture:
        """Return the best mixture, or raise ``Unmet``."""
        with unmet():
            limits = self._within_budget(problem)
            if self._is_tail(problem) and self._grid is not None:
                return self._from_grid(limits, problem, tol)
            return self._generate(limits, problem, tol)

    def explain(self, problem: Problem) -> BestMixture:
        """Return the best mixture if there is one after all, or raise ``InfeasibleGoals``."""
        limits, _ = with_budget(self.family, self._limits(problem), problem.budget, self._start)
        solution = self._generate(limits, problem, RELEASED, explains=True)
        if self._grid is not None and solution.cuts is not None:
            self._learn(solution.cuts, np.union1d(self._grid.start(), solution.cuts), RELEASED)
        return solution

    def can_hold(self, goals: tuple[Goal, ...]) -> bool:
        """Return whether some mixture meets goals."""
        limits = RuleLimits(self.ranked.cuts, self.goal_rows.rows(goals))
        try:
            if self._grid is not None:
                Program(self._grid, _MEAN, limits).solve(np.inf, self._coarse)
            else:
                Program(self.family, self._mean, limits).solve(1.0, self._start)
        except NoMixture:
            return False
        return True

    def least_excess(self, goals: tuple[Goal, ...], place: int) -> float | None:
        """Return the least that a goal can be missed by where all others are met."""
        rows = self.goal_rows.rows_moved_by(goals, place)
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
        rule, safe = path.safe_rule(confidence)
        if tail_of(problem.objective) == 1.0 and problem.outlier_fraction == 0:  # without a pass over the rows
            value = float(self.family.mean_losses().of(rule)[0, 0])
        else:
            value = value_of(self.ranked.predictions_of(rule), problem, np.ones(1))
        choice = plain.choice._replace(rules=rule, value=value, is_usual=False)
        solution = self._as_solution(choice, self.ranked.as_rules(choice.rules))
        rates: Any = self.rates(solution)  # which have the interface of predictions
        margins = describe_margins(safe, [goal.evaluate_where_possible(rates) for goal in problem.goals])
        return solution._replace(margins=margins, plain=plain)

    def own_solution(self, model: Any) -> BestMixture:
        """Return the mixture of rules that a fitted model has."""
        rules, value = self.ranked.as_cuts(model.rules_), float(model.value_)
        choice = Choice(model.mixture_, value, value - float(model.gap_), _prices(model), rules)
        return self._as_solution(choice, model.rules_)

    def rates(self, solution: BestMixture) -> MixtureRates:
        """Return the rates of a mixture on the selection rows, in expectation over its draws."""
        goal_rows, mixture, cuts = self.goal_rows, solution.mixture, solution.cuts
        assert cuts is not None  # noqa: S101 - of rules
        nobody = int(self.ranked.cuts.starts[0, 0])

        def count(rows: Dataset, place: int) -> FloatArray:
            counts = goal_rows.count(rows, place)
            by_rule = counts[nobody] + (counts[cuts] - counts[nobody]).sum(axis=1)
            return np.asarray((by_rule @ mixture)[None])

        return MixtureRates(goal_rows.views, count)

    def _is_tail(self, problem: Problem) -> bool:
        return tail_of(problem.objective) is not None and problem.max_models is None

    def _limits(self, problem: Problem) -> RuleLimits:
        return RuleLimits(self.ranked.cuts, self.goal_rows.rows(problem.goals))

    def _within_budget(self, problem: Problem) -> RuleLimits:
        """Return the limits with a budget above the least mean loss under the goals, which is stored."""
        limits = self._limits(problem)
        if problem.budget is None:
            return limits
        if self._least is None or self._least[0] != problem.goals:
            if self._grid is None:
                least = Program(self.family, self._mean, limits).solve(EXACT, self._start)
            else:
                least = Program(self._grid, _MEAN, limits).solve(EXACT, self._fine)
                self._fine = least.rules
            self._least = (problem.goals, least.solution.value)
        return self.family.add_budget(limits, self._least[1] + problem.budget)

    def _from_grid(self, limits: RuleLimits, problem: Problem, tol: float) -> BestMixture:
        assert isinstance(problem.objective, Risk)  # noqa: S101 - a tail
        start = self._fine if tol <= RELEASED else self._coarse
        grid, best = Program(self._grid, Objective(None, problem.objective), limits).solve(tol, start)
        self._learn(best.rules.cuts, grid, tol)
        rows = np.zeros(0) if limits.goals is None else best.multipliers[: limits.goals.bounds.size]
        prices = rows if limits.goals is None else limits.goals.prices(rows)
        choice = Choice(best.mixture, best.value, best.lower, prices, best.rules)
        return self._finish(choice, problem._replace(explains=False), tol)

    def _generate(self, limits: RuleLimits, problem: Problem, tol: float, *, explains: bool = False) -> BestMixture:
        objective = problem.objective
        if not self._is_tail(problem) or problem.alpha == 1.0:
            program_objective = build_objective(self.family, objective)
        else:  # the losses by row do not depend on the tail, so they are kept
            assert isinstance(objective, Risk)  # noqa: S101 - a tail
            if self._tail_losses is None or self._tail_losses.sample_weight.size > 20 * _MOST_FINE:
                self._tail_losses = self.family.row_losses(objective)
            program_objective = Objective(self._tail_losses, objective)
        program = Program(self.family, program_objective, limits)
        optimum = program.solve(tol * scale_of(objective), self._start, explains=explains)
        rules_used = optimum.rules.only(optimum.solution.mixture > 0)
        self._start = self._usual.join(rules_used).only(slice(_MOST_RULES))
        return self._finish(self.family.choice(program, optimum), problem._replace(explains=explains), tol)

    def _learn(self, cuts: IntArray, grid: IntArray, tol: float) -> None:
        """Store the grid, unless it has grown large, and the cuts in use as the start of the next solve."""
        assert self._grid is not None  # noqa: S101 - there is one
        own = np.union1d(self._grid.start(), cuts)
        if tol <= RELEASED:
            self._fine, self._coarse = grid if grid.size <= _MOST_FINE else own, own
        else:
            self._coarse = grid if grid.size <= _MOST_COARSE else own

    def _finish(self, choice: Choice, problem: Problem, tol: float) -> BestMixture:
        """Return the choice that the library makes from the best mixture; under goals only where the user stops."""
        if tol <= RELEASED or not problem.goals:
            own = problem._replace(decision=self.decision, keeps_default_threshold=self.keeps_default_threshold)
            choice = deciding_rules(self.ranked, own, choice)
        return self._as_solution(choice, self.ranked.as_rules(choice.rules, are_usual=choice.is_usual))

    def _as_solution(self, choice: Choice, rules: Sequence[Rule]) -> BestMixture:
        levels, defers = [rule.levels for rule in rules], self.ranked.cuts.defers
        thresholds = np.array([[*upper, *lower] if defers else upper for upper, lower in levels])
        values = choice.mixture, choice.value, choice.lower, choice.multipliers
        return BestMixture(choice.rules.models, thresholds, *values, choice.rules.cuts, choice.cost, choice.risk)


MixtureProgram: TypeAlias = ModelProgram | RulesProgram  # what solves the settings of a session
