"""The choice of a mixture of models: the selection rows, the problem, and its solution.

A randomized classifier draws one model for each person from its mixture. Every loss and every rate is then linear in
the mixture. So with the models' losses and predictions at hand, finding the best mixture for any alpha and any goals is
a small optimisation, and nothing is trained.

The best mixture of at most k models is a combinatorial problem. Three candidates are tried: dropping the models with
the smallest shares, half of the surplus at a time, and solving again after each step; a corner of the linearised
problem, which has at most one model more than there are goals, filled up with the models of the largest shares; and the
best single model.
"""

from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.checks import check_alpha, check_confidence, check_number
from counterpoise._base.extras import require_boosting
from counterpoise._base.text import Advice, AdvisedValue, did_you_mean
from counterpoise._base.types import AnyArray, BoolArray, ByteArray, FloatArray, IntArray
from counterpoise.goals import Goal, InfeasibleGoals, Rate, Ratio, Table
from counterpoise.goals.bound_goals import refuse_compared, validate_goals
from counterpoise.goals.parsing import OWN_WORDS, as_rate_or_ratio, refuse_deferral
from counterpoise.goals.rates import ALIASES, METRICS, RATIOS
from counterpoise.goals.tables import group_codes
from counterpoise.metrics import cvar_loss
from counterpoise.rules.fewest_draws import with_fewest_draws
from counterpoise.rules.goal_rows import TRAIN, Answers, GoalConstraints, LinearRate, goal_rows, linear_rate, mean_limit
from counterpoise.rules.options import Deferral, Groups, Proof
from counterpoise.rules.program import (
    TOL,
    Choice,
    NoMixture,
    Objective,
    Optimum,
    Program,
    build_program,
    drop_slivers,
    excess_of,
    refuse_ratio,
    solve_master,
    with_budget,
)
from counterpoise.solvers import solve_weights_lp
from counterpoise.solvers.bundle import LevelBundle, SolveLimits
from counterpoise.solvers.linear_program import FEASIBLE, CuttingPlanes, InfeasibleRows, MixtureSolution
from counterpoise.solvers.mixture import suits_highs
from counterpoise.solvers.tail import TailCut, TailOracle
from counterpoise.theory.risk_text import is_nearly_risk_text, is_risk_text, parse_risk
from counterpoise.theory.risks import CVaR, Mean, Risk, RiskRows, WorstGroup

_MOST_CUTS = 60  # that are stored for other settings
_ROUNDING = 1e-12  # part of a sum of weights that is lost in adding them up


class Selection(NamedTuple):
    """The selection rows: the losses of the models there, the weights of the rows, and the goals."""

    losses: ByteArray  # (n_samples, n_models), zero-one
    sample_weight: FloatArray | None
    groups: IntArray | None  # group code of each row where the worst group counts, else None
    goals: GoalConstraints | None = None
    rate: LinearRate | None = None  # the objective, where it is no risk of the losses
    risk: Risk | None = None  # the objective bound to the rows, where it is a risk other than CVaR or the worst group

    def first(self, n_models: int) -> "Selection":
        """Return the same rows with the losses of the first models only."""
        goals = None if self.goals is None else self.goals.only(np.arange(n_models))
        rate = None if self.rate is None else self.rate._replace(row=self.rate.row[:n_models])
        return self._replace(losses=self.losses[:, :n_models], goals=goals, rate=rate)


class Matrix(NamedTuple):
    """Losses of all models on some rows, with the weights of the rows."""

    values: AnyArray  # (n_rows, n_models)
    sample_weight: FloatArray | None = None

    def minimize(self, risk: Risk, limits: dict[str, Any], tol: float) -> MixtureSolution:
        """Return the mixture with the least risk within limits, or raise ``InfeasibleRows``."""
        return solve_master(self.values, risk, self.sample_weight, limits, tol)

    def cut(self, risk: Risk, mixture: FloatArray) -> FloatArray:
        """Return ``slope``: ``slope @ x`` is the risk of a mixture, and of no other one more than its risk."""
        used = np.flatnonzero(mixture)
        expected = self.values[:, used] @ mixture[used]
        weights = risk.subgradient(expected, self.sample_weight)
        counted = np.flatnonzero(weights)  # those of a tail are few
        offset = 0.0 if risk.is_worst_case else risk.value(expected, self.sample_weight) - float(weights @ expected)
        # On the simplex a constant is part of every entry.
        return np.asarray(weights[counted] @ self.values[counted] + offset)

    def cuts(self, risk: Risk) -> list[FloatArray]:  # noqa: ARG002 - as below
        """Return the cuts that are known: none."""
        return []


class RepeatedLosses:
    """Losses of all models that are minimised again and again: each time from the mixture and the cuts of those before.

    Cuts of a larger tail are cuts of a smaller one too. Close it to let its threads go.
    """

    def __init__(self, values: AnyArray, sample_weight: FloatArray | None = None) -> None:
        self.values, self.sample_weight = values, sample_weight
        self._start: FloatArray | None = None
        self._cuts: list[tuple[float, TailCut]] = []  # each with its alpha
        self._oracle: TailOracle | None = None

    def minimize(self, risk: Risk, limits: dict[str, Any], tol: float) -> MixtureSolution:
        """Return the mixture with the least risk within limits, or raise ``InfeasibleRows``."""
        alpha = risk.tail_fraction
        if alpha is None:
            solution = solve_master(self.values, risk, self.sample_weight, limits, tol, start=self._start)
        else:
            solution = self._minimize_tail(alpha, limits, tol)
        self._start = solution.mixture
        return solution

    def _minimize_tail(self, alpha: float, limits: dict[str, Any], tol: float) -> MixtureSolution:
        if self._oracle is None:
            self._oracle = TailOracle.of(self.values, self.sample_weight, alpha)
        self._oracle.alpha, n_models = alpha, self.values.shape[1]
        rows, bounds = limits.get("rows", np.empty((0, n_models))), limits.get("bounds", np.empty(0))
        planes = CuttingPlanes(n_models, rows, bounds, limits.get("row_scale"))
        bundle = LevelBundle(self._oracle, planes, SolveLimits(tol))
        bundle.carry([cut for level, cut in self._cuts if level >= alpha])
        solution = bundle.solve(self._start)
        levels = {id(cut): level for level, cut in self._cuts}
        used = [(levels.get(id(cut), alpha), cut) for cut in bundle.cuts]
        known = {id(cut) for cut in bundle.cuts}
        self._cuts = [*used, *(pair for pair in self._cuts if id(pair[1]) not in known)][:_MOST_CUTS]
        return solution

    def cut(self, risk: Risk, mixture: FloatArray) -> FloatArray:
        """Return ``slope``: ``slope @ x`` is the risk of a mixture, and of no other one more than its risk."""
        if self._oracle is None or risk.tail_fraction is None:
            return Matrix(self.values, self.sample_weight).cut(risk, mixture)
        self._oracle.alpha = risk.tail_fraction
        return self._oracle.cut(mixture).slope

    def cuts(self, risk: Risk) -> list[FloatArray]:
        """Return the slopes of the cuts that earlier solves ended with."""
        alpha = risk.tail_fraction
        return [] if alpha is None else [cut.slope for level, cut in self._cuts if level >= alpha]

    def close(self) -> None:
        """Let the threads go."""
        if self._oracle is not None:
            self._oracle.parts.close()


class ModelFamily(NamedTuple):
    """Models as rules: all are known, so one solve gives the best mixture.

    Limits are ``GoalConstraints`` of the models, or None.
    """

    selection: Selection

    @property
    def mass(self) -> FloatArray:
        """Return the weights of the rows."""
        weight = self.selection.sample_weight
        return np.ones(len(self.selection.losses)) if weight is None else weight

    def start(self, objective: Objective) -> None:
        """Return no rules: all models are known."""

    def optimum(self, program: Program, tol: float, rules: Any) -> Optimum:  # noqa: ARG002 - as the others
        """Return the best mixture of all models, or raise ``NoMixture``."""
        (losses, risk, _), limits = program.objective, as_limits(program.limits)
        try:
            solution = losses.minimize(risk, limits, tol)
        except InfeasibleRows as error:
            raise NoMixture(error, None) from None
        mixture = drop_slivers(solution.mixture)
        if limits and excess_of(mixture, **limits) > max(excess_of(solution.mixture, **limits), FEASIBLE):
            return Optimum(None, solution)  # a goal needs the least of shares
        return Optimum(None, solution._replace(mixture=mixture))

    def explain(self, program: Program, error: NoMixture) -> InfeasibleGoals:
        """Return which goals conflict for every mixture."""
        assert error.proof is not None  # noqa: S101 - there always is one
        return program.limits.infeasible(error.proof)  # type: ignore[no-any-return]

    def choice(self, program: Program, optimum: Optimum) -> Choice:
        """Return the mixture with the prices of the goals."""
        solution, shift = optimum.solution, program.objective.shift
        prices = solution.multipliers if program.limits is None else program.limits.prices(solution.multipliers)
        return Choice(solution.mixture, shift + solution.value, shift + solution.lower, prices)

    def limits(self, goals: tuple[Goal, ...]) -> GoalConstraints | None:  # noqa: ARG002 - those of the selection
        """Return the goals of the selection."""
        return self.selection.goals

    def goals_of(self, limits: GoalConstraints) -> GoalConstraints:
        """Return the goals of limits."""
        return limits

    def at_bound(self, limits: GoalConstraints, goals: tuple[Goal, ...], bound: float) -> GoalConstraints:  # noqa: ARG002 - those of the limits
        """Return limits with another bound of the first goal."""
        return limits.with_bound(0, bound)

    def carry_over(self, rules: None, optimum: Optimum) -> tuple[None, FloatArray]:  # noqa: ARG002 - models are no rules
        """Return no rules to start the next solve with, and the mixture of the models."""
        return None, optimum.solution.mixture

    def excess(self, limits: GoalConstraints, place: int) -> Program:
        """Return the program of the least that a goal can be missed by, in its worst row, with all other goals kept."""
        own, others = limits.rows_of(place), [other for other in range(len(limits.goals)) if other != place]
        losses = Matrix(limits.rows[own] - limits.bounds[own, None])
        return Program(self, Objective(losses, CVaR(1 / own.size)), limits.some(others))

    def matrix(self, losses: Matrix, rules: None) -> AnyArray:  # noqa: ARG002 - models are no rules
        """Return losses of all models."""
        return losses.values

    def join(self, rules: None, more: None) -> None:
        """Return no rules: models are none."""

    def add_budget(self, limits: GoalConstraints | None, most: float) -> GoalConstraints:
        """Return limits with a budget of mean loss."""
        row = mean_limit(self.mean_losses().values[0], most)
        return row if limits is None else limits.join(row)

    def rate_objective(self, objective: Rate) -> Objective:  # noqa: ARG002 - that of the selection
        """Return the rate of the selection as objective: one row of losses, in the units of the rate."""
        rate = self.selection.rate
        assert rate is not None  # noqa: S101 - selected for it
        return Objective(Matrix(rate.row[None]), Mean(), rate.constant)

    def mean_losses(self, groups: IntArray | None = None) -> Matrix:
        """Return the mean loss of every model, or that on every group that weighs anything."""
        losses, mass = self.selection.losses, self.mass
        if groups is None:
            return Matrix(np.average(losses, axis=0, weights=self.selection.sample_weight)[None])
        totals = np.bincount(groups, mass)
        share = np.divide(mass, totals[groups], out=np.zeros(mass.size), where=mass > 0)
        return Matrix(np.column_stack([np.bincount(groups, share * column) for column in losses.T])[totals > 0])

    def row_losses(self, risk: Risk) -> Matrix:  # noqa: ARG002 - the same for all
        """Return the losses of the rows."""
        return Matrix(self.selection.losses, self.selection.sample_weight)

    def bind(self, risk: Risk) -> Risk:
        """Return the risk as it is bound to the rows of the selection."""
        return self.selection.risk or risk

    def group_codes(self, names: tuple[str, ...]) -> IntArray:  # noqa: ARG002 - those of the selection
        """Return the group of each row."""
        assert self.selection.groups is not None  # noqa: S101 - selected for them
        return self.selection.groups


def as_limits(goals: GoalConstraints | None) -> dict[str, Any]:
    """Return goals as arguments of a solver; none where there are none."""
    return {} if goals is None else goals.as_limits()


def value_of_mixture(objective: Objective, mixture: FloatArray) -> float:
    """Return the value of an objective for a mixture of models."""
    losses, weight, risk, shift = objective.losses.values, objective.losses.sample_weight, *objective[1:]
    if weight is not None and weight.min() < 0:  # masses of labels known in part: there are no tails of these
        return shift + float(weight @ (losses @ mixture) / weight.sum())
    if risk.tail_fraction is not None:
        return shift + cvar_loss(losses, risk.tail_fraction, weight, mixture=mixture)
    return shift + risk.value(losses @ mixture, weight)


def single_values(objective: Objective) -> FloatArray:
    """Return the value of each model alone."""
    (losses, weight), risk, shift = objective
    alpha = risk.tail_fraction
    if losses.dtype == np.uint8 and alpha is not None:  # zero-one: Proposition 1 of Zhai et al. 2021
        errors = np.average(losses, axis=0, weights=weight)
        return shift + np.minimum(errors / alpha, 1.0)
    return np.array([value_of_mixture(objective, alone) for alone in np.eye(losses.shape[1])])


def violations(goals: GoalConstraints | None, n_models: int) -> FloatArray:
    """Return by how much each model alone misses the goals, in total, in parts of the goals' sizes."""
    if goals is None:
        return np.zeros(n_models)
    excess = goals.violations() / goals.goal_sizes[:, None]
    worst = np.zeros((len(goals.goals), n_models))
    np.maximum.at(worst, goals.places, excess)
    return np.asarray(worst.sum(axis=0))


def outliers(losses: AnyArray, sample_weight: FloatArray | None, fraction: float) -> BoolArray:
    """Return which samples have the highest losses, up to ``fraction`` of the weight; earlier rows first on ties."""
    weight = np.ones(losses.size) if sample_weight is None else sample_weight
    order = np.argsort(-losses, kind="stable")
    reached = np.cumsum(weight[order])
    is_outlier = np.zeros(losses.size, dtype=np.bool_)
    is_within = reached <= fraction * reached[-1] * (1 + _ROUNDING)
    is_outlier[order[is_within & (reached < reached[-1])]] = True  # some weight is always left
    return is_outlier


CVAR, WORST_GROUP = "cvar", "worst-group"
ALPHA = 0.1  # of mixtures, where neither alpha nor an objective is given
MIXTURES = ("optimal", "average", "first")
FIXED = "fixed"  # decisions by one rule of a score, without draws


class PoolPredictions(NamedTuple):
    """The losses of models on the selection rows, and their predictions on all datasets."""

    losses: ByteArray
    sample_weight: FloatArray | None
    groups: IntArray | None
    answers: Answers
    persons: IntArray | None = None  # the person that each labelled row is of, by number, where some have several

    @property
    def has_fold_scores(self) -> bool:
        """Return whether models of folds predicted, and others decide, as rules of scores may do."""
        return False

    @property
    def test_rows(self) -> None:
        """Return no rows that were kept for a proof: any may be, as the deciding models predicted all."""

    def with_tables(self, tables: Mapping[str, Table]) -> "PoolPredictions":
        """Return the same predictions with other tables for the same rows."""
        sizes = {TRAIN: len(self.losses)} | self.answers.sizes  # without goals the answers may be empty
        return self._replace(answers=self.answers.with_tables(tables, sizes))

    def only(self, places: Mapping[str, IntArray]) -> "PoolPredictions":
        """Return the predictions for some of the rows of each dataset."""
        rows = places[TRAIN]
        own = {name: getattr(self, name) for name in ("sample_weight", "groups", "persons")}
        own = {name: None if part is None else part[rows] for name, part in own.items()}
        return self._replace(losses=self.losses[rows], answers=self.answers.only(places), **own)

    def check_loaded(self) -> None:
        """Check the values that were read from a file."""
        n_samples, n_models = self.losses.shape
        rows = [part for part in (self.sample_weight, self.groups, self.persons) if part is not None]
        if any(part.shape != (n_samples,) for part in rows) or self.answers.pool_sizes - {n_models}:
            raise ValueError("the losses, weights, groups and answers are of different sizes")


class Problem(NamedTuple):
    """An objective and goals, with the limits on the mixture; fields with a default have the names of parameters."""

    objective: Risk | Rate | Ratio
    goals: tuple[Goal, ...]
    mixture: str = "optimal"  # or the average of all models, or the first alone (ERM)
    outlier_fraction: float = 0.0
    max_models: int | None = None
    budget: float | None = None  # of mean loss above the least that is possible under the goals
    deferral: Deferral | None = None  # None: every row is decided
    by: Groups = Groups(())  # columns that rules of scores use
    decision: str = "sticky"  # "fixed": by one rule
    keeps_default_threshold: bool = False  # without goals, deferral or a tail: each model keeps its own
    confidence: float | Proof | None = None  # with which goals hold together on new rows; None: no margins
    tol: float = TOL  # the gap that is good enough
    fewest_draws: bool = False  # whether to look for a mixture of models that draws for fewer rows at no more risk
    explains: bool = True  # else NoMixture is raised in place of InfeasibleGoals, whose bounds take a while to find

    @property
    def alpha(self) -> float | None:
        """Return the tail fraction, where a tail is what counts."""
        return self.objective.alpha if isinstance(self.objective, CVaR) else None


def rate_of(objective: Risk | Rate | Ratio) -> list[Rate | Ratio]:
    """Return an objective that counts decisions in a list; an empty one for a risk."""
    return [objective] if isinstance(objective, Rate | Ratio) else []


def as_problem(
    alpha: float | None, objective: Any, goals: Any, *, default_alpha: float | None = ALPHA, **limits: Any
) -> Problem:
    """Return a checked problem.

    Without an objective it is the CVaR at alpha, and without both at ``default_alpha``; both together are refused.
    """
    problem = Problem(_risk_or_rate(alpha, objective, default_alpha), validate_goals(goals), **limits)
    if problem.confidence is not None and not isinstance(problem.confidence, Proof):
        check_confidence(problem.confidence)
    if problem.budget is not None:
        check_number(problem.budget, "budget", "[0, 1]", "mean loss above the least possible")
    if problem.deferral is not None and not isinstance(problem.deferral, Deferral):
        raise TypeError(
            "deferral must be None, or Deferral(cost) with the loss of a row that a person decides about, as in "
            f"Deferral(0.2); got {problem.deferral!r}."
        )
    if problem.deferral is None:
        refuse_deferral([*problem.goals, *rate_of(problem.objective)])
    is_other = isinstance(problem.objective, Risk) and not isinstance(problem.objective, (CVaR, WorstGroup))
    if problem.outlier_fraction > 0 and is_other:
        raise ValueError(f"outlier_fraction is for a CVaR; with objective={problem.objective!r} it must be 0.")
    return problem


def _risk_or_rate(alpha: float | None, objective: Any, default_alpha: float | None) -> Risk | Rate | Ratio:
    if objective is None or (isinstance(objective, str) and objective == CVAR):
        return CVaR(check_alpha(default_alpha if alpha is None else alpha))
    if alpha is not None:
        raise ValueError(
            f"alpha={alpha!r} is short for objective=CVaR({alpha!r}), and you also passed objective={objective!r}. "
            "Pass one of them."
        )
    if isinstance(objective, Risk):
        return objective
    if isinstance(objective, str) and objective == WORST_GROUP:
        return WorstGroup()
    if isinstance(objective, str) and is_risk_text(objective):
        return parse_risk(objective)
    if isinstance(objective, type) or not (isinstance(objective, (str, Rate, Ratio))):
        hint = ": add parentheses" if isinstance(objective, type) else ""
        raise TypeError(
            "objective must be a risk such as CVaR(0.1), a rate such as error_rate(), or the text of one; got "
            f"{objective!r}{hint}."
        )
    try:
        return as_rate_or_ratio(objective)
    except ValueError:
        if isinstance(objective, str) and is_nearly_risk_text(objective, [*METRICS, *RATIOS, *OWN_WORDS, *ALIASES]):
            return parse_risk(objective)  # which raises an error with the reason
        raise


def select(predictions: PoolPredictions, problem: Problem) -> Selection:
    """Return the selection rows with the goals and the objective of a problem."""
    losses, sample_weight, groups, answers = predictions[:4]
    objective = refuse_ratio(problem.objective)
    table = answers.tables[TRAIN]
    selection = Selection(losses, sample_weight, None, goal_rows(answers, problem.goals))
    if isinstance(objective, Rate):
        return selection._replace(rate=linear_rate(answers, objective))
    if isinstance(objective, WorstGroup):  # solved from the groups' losses alone
        return selection._replace(groups=groups_by(objective.names, table, groups))
    if objective.tail_fraction is not None:
        return selection
    if table.row_numbers is not None:
        raise ValueError(
            f"A model fitted over Dask keeps counts of rows, which are not enough for {problem.objective!r}. Pass X "
            "and y to choose on."
        )
    rows = RiskRows(row_count(selection), losses.shape[1], lambda names: groups_by(names, table, groups))
    return selection._replace(risk=objective.bind(rows))


def row_count(selection: Selection) -> float:
    """Return the effective number of selection rows: as many rows of equal weight."""
    weight = selection.sample_weight
    return float(len(selection.losses) if weight is None else weight.sum() ** 2 / (weight**2).sum())


def groups_by(names: tuple[str, ...], table: Table, groups: IntArray | None) -> IntArray:
    """Return the group of every row by some columns, or by all sensitive features."""
    for name in names:
        if name not in table.columns:
            known = ", ".join(table.columns) or "no columns"
            raise ValueError(f"An objective uses the column {name!r}; got {known}.{did_you_mean(name, table.columns)}")
    if names:
        return group_codes(Table(np.empty((table.n_samples, 0)), None, {name: table.column(name) for name in names}))[0]
    if groups is None:
        raise ValueError("WorstGroup needs sensitive_features: the groups of the rows.")
    return groups


def build_model_program(selection: Selection, problem: Problem) -> Program:
    """Return the program over all mixtures of models, without a budget."""
    program = build_program(ModelFamily(selection), problem.objective, selection.goals)
    if problem.outlier_fraction == 0 or not isinstance(problem.objective, CVaR):
        return program
    losses, weight = selection.losses, selection.sample_weight
    # The rows with the highest average loss are left out (DORO, Zhai et al. 2021b).
    keep = ~outliers(losses.mean(axis=1), weight, problem.outlier_fraction)
    some = Matrix(losses[keep], None if weight is None else weight[keep])
    return program._replace(objective=Objective(some, problem.objective))


def value_of(predictions: PoolPredictions, problem: Problem, mixture: FloatArray) -> float:
    """Return the value of the objective for a mixture."""
    return value_of_mixture(build_model_program(select(predictions, problem), problem).objective, mixture)


def refuse_in_mixtures(problem: Problem) -> None:
    """Refuse goals that compare ratios where a mixture decides: they are not linear in it."""
    if problem.decision != FIXED:
        refuse_compared(problem.goals, "A mixture", "take one rule, by decision='fixed' of GoalClassifier")


def check_one_rule(objective: Risk | Rate | Ratio) -> None:
    """Raise an error for an objective that follows from the error of one rule alone, and only a mixture can lower."""
    if isinstance(objective, Rate | Ratio | WorstGroup) or objective.tail_fraction == 1.0:
        return
    raise ValueError(
        Advice(
            f"decision='fixed' decides by one rule, and the {objective!r} of one rule depends on its error alone, so "
            "there is no tail to improve. Set ",
            AdvisedValue("decision", "sticky"),
            ", which mixes rules, or ",
            AdvisedValue("alpha", 1.0),
            ", which minimises the error.",
        )
    )


def check_tail_solver(objective: Risk | Rate | Ratio) -> None:
    """Refuse to mix rules for a tail or another risk where the packages that solve such programs are not installed."""
    if isinstance(objective, Rate | Ratio | WorstGroup) or objective.tail_fraction == 1.0:
        return
    require_boosting(f"A mixture for {objective!r}")


def choose_nearest(selection: Selection, problem: Problem) -> Choice:
    """Choose the mixture that misses the goals least, of those the one with the least risk; no budget limits it."""
    assert selection.goals is not None  # noqa: S101 - they cannot be met
    program = build_model_program(selection._replace(goals=selection.goals.nearest()), problem)
    return solve_program(program)


def choose_or_nearest(selection: Selection, problem: Problem) -> Choice:
    """Choose the mixture, or the one that misses the goals least where none meets them."""
    try:
        return choose_mixture(selection, problem._replace(explains=False))
    except (InfeasibleGoals, NoMixture):
        return choose_nearest(selection, problem)


def choose_mixture(selection: Selection, problem: Problem, losses: Any = None) -> Choice:
    """Choose the mixture, or raise ``InfeasibleGoals``, or ``NoMixture``, where none meets the goals.

    ``losses`` are those that a tail is minimised over, where the selection does not hold them.
    """
    program = build_model_program(selection, problem)
    if problem.mixture != "optimal":  # a named mixture has no budget
        value = partial(value_of_mixture, program.objective)
        return choice_by_name(problem, selection.losses.shape[1], value)
    limits, _ = with_budget(program.family, program.limits, problem.budget, explains=problem.explains)
    program = program._replace(limits=limits)
    if losses is not None:
        assert isinstance(problem.objective, Risk)  # noqa: S101 - a tail
        program = program._replace(objective=Objective(losses, problem.objective))
        choice = solve_program(program, explains=problem.explains)
    elif problem.max_models is None and problem.fewest_draws:
        choice = _choose_fewest_draws(program, problem.tol, explains=problem.explains)
    elif problem.max_models is None:
        choice = solve_program(program, problem.tol, explains=problem.explains)
    else:
        choice = choose_few(program, problem.max_models)
    return choice._replace(multipliers=choice.multipliers[: len(problem.goals)])  # without that of a budget


def _choose_fewest_draws(program: Program, tol: float, *, explains: bool) -> Choice:
    """Return a best mixture of models that leaves few rows to a draw, or raise as ``solve_program`` does."""
    program = with_repeated_losses(program)
    losses = program.objective.losses
    with closing(losses) if isinstance(losses, RepeatedLosses) else nullcontext():
        return with_fewest_draws(program, solve_program(program, tol, explains=explains))


def with_repeated_losses(program: Program) -> Program:
    """Return the program with losses that are minimised again and again, unless they are so few that HiGHS is as fast.

    Close these losses at the end.
    """
    losses = program.objective.losses
    if suits_highs(losses.values):
        return program
    return program._replace(objective=program.objective._replace(losses=RepeatedLosses(*losses)))


def solve_program(program: Program, tol: float = TOL, *, explains: bool = True) -> Choice:
    """Return the best mixture of models, or raise ``InfeasibleGoals``; ``NoMixture`` unless it explains."""
    return program.family.choice(program, program.solve(tol, explains=explains))  # type: ignore[no-any-return]


def choice_by_name(problem: Problem, n_models: int, value: Callable[[FloatArray], float]) -> Choice:
    """Return the mixture that a problem names: the average of all models, or the first model alone."""
    mixture = np.full(n_models, 1 / n_models) if problem.mixture == "average" else np.eye(1, n_models)[0]
    return Choice(mixture, value(mixture), np.nan, np.zeros(0))


def choose_few(program: Program, max_models: int) -> Choice:
    """Return a mixture of at most ``max_models`` models, with its cost: its risk above that of the best mixture.

    The lower bound of the choice is of the best mixture of all models.
    """
    best = solve_program(program)
    if np.count_nonzero(best.mixture) <= max_models:
        return best
    candidates = [make(program, best, max_models) for make in (_drop_models, _fill_corner, _choose_single)]
    few = [choice for choice in candidates if choice is not None]
    if not few:
        n_goals = 0 if program.limits is None else len(program.limits.goals)
        raise ValueError(
            f"The search found no mixture of at most {max_models} models that meets the goals; the best mixture uses "
            f"{np.count_nonzero(best.mixture)}. Allow more models: {n_goals + 1} are enough for {n_goals} goals."
        )
    best_few = min(few, key=lambda choice: choice.value)
    return best_few._replace(lower=best.lower, cost=max(best_few.value - best.value, 0.0))


def _drop_models(program: Program, best: Choice, max_models: int) -> Choice | None:
    choice: Choice | None = best
    while choice is not None and np.count_nonzero(choice.mixture) > max_models:
        by_share = np.argsort(-choice.mixture, kind="stable")
        n_left = int(np.count_nonzero(choice.mixture))
        n_left -= max(1, (n_left - max_models) // 2)
        choice = _choose_among(program, np.sort(by_share[:n_left]))
    return choice


def _fill_corner(program: Program, best: Choice, max_models: int) -> Choice | None:
    if program.limits is None:
        return None
    cost = single_values(program.objective)[None]
    corner = solve_weights_lp(cost, 1.0, **program.limits.as_limits()).mixture > 0
    by_share = np.argsort(-(best.mixture + corner), kind="stable")  # those of the corner first
    return _choose_among(program, np.sort(by_share[:max_models])) if corner.sum() <= max_models else None


def _choose_single(program: Program, best: Choice, max_models: int) -> Choice | None:  # noqa: ARG001 - as the others
    values = single_values(program.objective)
    meets = violations(program.limits, values.size) == 0
    if not meets.any():
        return None
    return _choose_among(program, np.array([np.where(meets, values, np.inf).argmin()]))


def _choose_among(program: Program, models: IntArray) -> Choice | None:
    """Return the best mixture of some models, as one of all; None where they cannot meet the goals."""
    losses, weight = program.objective.losses
    limits = None if program.limits is None else program.limits.only(models)
    objective = program.objective._replace(losses=Matrix(losses[:, models], weight))
    try:
        choice = solve_program(program._replace(objective=objective, limits=limits), explains=False)
    except NoMixture:
        return None
    mixture = np.zeros(losses.shape[1])
    mixture[models] = choice.mixture
    return choice._replace(mixture=mixture)
