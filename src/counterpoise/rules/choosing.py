"""The choice of a mixture: what it is chosen on, what is asked of it, and which one that leads to.

A randomized classifier draws one model for each person from its mixture. Every loss and every rate is then linear in
the mixture, so with the models' losses and rates at hand the best mixture for any alpha and any goals is a small
optimization and trains nothing.

To find the best mixture of at most k models is a combinatorial problem, for which three candidates are tried: models
are dropped by their share of the mixture, half of the surplus at a time, each time solving anew; a corner of the
linearized problem, which has at most one model more than there are goals, filled up with the models of the largest
shares; and the best single model.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.checks import check_alpha, check_number
from counterpoise._base.text import did_you_mean
from counterpoise._base.types import AnyArray, BoolArray, ByteArray, FloatArray, IntArray
from counterpoise.goals import Goal, InfeasibleGoals, Rate, Ratio, Table, as_objective
from counterpoise.goals.bound import asked_goals
from counterpoise.goals.rates import METRICS, RATIOS
from counterpoise.goals.tables import group_codes
from counterpoise.goals.text import OWN_WORDS, refuse_deferral
from counterpoise.metrics import cvar_loss
from counterpoise.rules.goal_rows import TRAIN, Answers, GoalRows, LinearRate, goal_rows, linear_rate, mean_limit
from counterpoise.rules.options import Deferral, Groups
from counterpoise.solvers import minimize_risk, solve_weights_lp
from counterpoise.solvers.linear_program import FEASIBLE, InfeasibleRows, MixtureSolution
from counterpoise.theory.risk_text import is_nearly_risk_text, is_risk_text, parse_risk
from counterpoise.theory.risks import CVaR, Mean, Risk, RiskRows, WorstGroup

_SHARE = 1e-10  # of the mixture, below which a model is never drawn in practice: rounding of the solver
_ROUNDING = 1e-12  # part of a sum of weights that is lost in adding them up


class Selection(NamedTuple):
    """The rows on which the mixture is chosen: the models' losses there, what the rows weigh, and what must hold."""

    losses: ByteArray  # (n_samples, n_models), zero-one
    sample_weight: FloatArray | None
    groups: IntArray | None  # group code of each row where the worst group counts, else None
    goals: GoalRows | None = None
    rate: LinearRate | None = None  # what is minimized instead of a risk of the losses
    risk: Risk | None = None  # what is minimized, bound to the rows, where it is neither a CVaR nor the worst group

    def first(self, n_models: int) -> "Selection":
        """Return the same rows with the losses of the first models only."""
        goals = None if self.goals is None else self.goals.only(np.arange(n_models))
        rate = None if self.rate is None else self.rate._replace(row=self.rate.row[:n_models])
        return self._replace(losses=self.losses[:, :n_models], goals=goals, rate=rate)


class Choice(NamedTuple):
    """A mixture, and the risk it has on the rows where it was chosen."""

    mixture: FloatArray
    value: float
    gap: float  # no mixture has a risk below value - gap; not a number where none was sought
    multipliers: FloatArray  # of the goals: what the risk would gain for each unit of a bound
    cost: float = 0.0  # of a limit on the number of models: how much more risk than without it


class Game(NamedTuple):
    """``min over mixture of shift + risk(losses @ mixture)`` subject to goals."""

    losses: AnyArray
    risk: Risk
    sample_weight: FloatArray | None
    goals: GoalRows | None
    shift: float = 0.0

    def solve(self, minimize: Callable[..., MixtureSolution] = minimize_risk) -> Choice:
        """Return the best mixture, or raise ``InfeasibleGoals``; ``minimize`` takes what ``minimize_risk`` does."""
        goals = self.goals
        limits = {} if goals is None else goals.as_limits()
        try:
            found = minimize(self.losses, self.risk, sample_weight=self.sample_weight, **limits)
        except InfeasibleRows as error:
            assert goals is not None  # noqa: S101 - there are no other rows
            raise goals.infeasible(error) from error
        mixture = cleaned(found.mixture)
        if goals is not None and _excess(mixture, **limits) > max(_excess(found.mixture, **limits), FEASIBLE):
            mixture = found.mixture  # a goal needs the least of shares
        prices = found.multipliers if goals is None else goals.prices(found.multipliers)
        return Choice(mixture, self.shift + found.value, found.gap, prices)

    def value(self, mixture: FloatArray) -> float:
        """Return the risk of a mixture."""
        if self.risk.tail_fraction is not None:
            return self.shift + cvar_loss(self.losses, self.risk.tail_fraction, self.sample_weight, mixture=mixture)
        return self.shift + self.risk.value(self.losses @ mixture, self.sample_weight)

    def single_values(self) -> FloatArray:
        """Return the risk of each model alone."""
        alpha = self.risk.tail_fraction
        if self.losses.dtype == np.uint8 and alpha is not None:  # zero-one: Proposition 1 of Zhai et al. 2021
            errors = np.average(self.losses, axis=0, weights=self.sample_weight)
            return self.shift + np.minimum(errors / alpha, 1.0)
        return np.array([self.value(alone) for alone in np.eye(self.losses.shape[1])])

    def violations(self) -> FloatArray:
        """Return by how much each model alone misses the goals, in total, in parts of the goals' sizes."""
        if self.goals is None:
            return np.zeros(self.losses.shape[1])
        missed = self.goals.missed() / self.goals.goal_sizes[:, None]
        worst = np.zeros((len(self.goals.goals), missed.shape[1]))
        np.maximum.at(worst, self.goals.places, missed)
        return np.asarray(worst.sum(axis=0))

    def only(self, models: IntArray) -> "Game":
        """Return the same problem for some of the models."""
        goals = None if self.goals is None else self.goals.only(models)
        return self._replace(losses=self.losses[:, models], goals=goals)


def group_losses(selection: Selection) -> FloatArray:
    """Return the average loss of every model on every group that weighs anything, shape (n_groups, n_models)."""
    groups = selection.groups
    assert groups is not None  # noqa: S101 - callers checked
    weight = np.ones(groups.size) if selection.sample_weight is None else selection.sample_weight
    totals = np.bincount(groups, weight)
    share = np.divide(weight, totals[groups], out=np.zeros(weight.size), where=weight > 0)
    columns = [np.bincount(groups, share * column) for column in selection.losses.T]
    return np.asarray(np.column_stack(columns)[totals > 0])


def outliers(losses: AnyArray, sample_weight: FloatArray | None, fraction: float) -> BoolArray:
    """Return which samples have the highest losses, up to ``fraction`` of the weight; earlier rows first on ties."""
    weight = np.ones(losses.size) if sample_weight is None else sample_weight
    order = np.argsort(-losses, kind="stable")
    reached = np.cumsum(weight[order])
    is_outlier = np.zeros(losses.size, dtype=np.bool_)
    is_within = reached <= fraction * reached[-1] * (1 + _ROUNDING)
    is_outlier[order[is_within & (reached < reached[-1])]] = True  # some weight is always left
    return is_outlier


def cleaned(mixture: FloatArray) -> FloatArray:
    """Return a mixture without shares that are rounding."""
    mixture = np.where(mixture > _SHARE, mixture, 0.0)
    return np.asarray(mixture / mixture.sum())


def _excess(mixture: FloatArray, rows: FloatArray, bounds: FloatArray, row_scale: FloatArray) -> float:
    """Return the largest part of its scale by which a goal is missed."""
    return float(((rows @ mixture - bounds) / row_scale).max())


CVAR, WORST_GROUP = "cvar", "worst-group"
ALPHA = 0.1  # of mixtures, where neither alpha nor an objective is given
MIXTURES = ("optimal", "average", "first")
FIXED = "fixed"  # decisions by one rule of a score, without draws


class PoolPredictions(NamedTuple):
    """What a mixture is chosen on: losses of the models on labelled rows, and their answers on all datasets."""

    losses: ByteArray
    sample_weight: FloatArray | None
    groups: IntArray | None
    answers: Answers

    def with_tables(self, tables: Mapping[str, Table]) -> "PoolPredictions":
        """Return the same evidence with other tables for the same rows."""
        sizes = {TRAIN: len(self.losses)} | self.answers.sizes  # answers may not have been kept where nothing is asked
        return self._replace(answers=self.answers.with_tables(tables, sizes))

    def check_loaded(self) -> None:
        """Check what came from a file."""
        n_samples, n_models = self.losses.shape
        rows = [part for part in (self.sample_weight, self.groups) if part is not None]
        if any(part.shape != (n_samples,) for part in rows) or self.answers.pool_sizes - {n_models}:
            raise ValueError("the losses, weights, groups and answers are of different sizes")


class Problem(NamedTuple):
    """What is asked of a mixture; fields with a default are named as the parameters of classifiers that set them."""

    objective: Risk | Rate
    goals: tuple[Goal, ...]
    mixture: str = "optimal"  # or the average of all models, or the first alone (ERM)
    outlier_fraction: float = 0.0
    max_models: int | None = None
    budget: float | None = None  # of mean loss above the least that is possible under the goals
    deferral: Deferral | None = None  # of rows that a person decides about; None: there are none
    by: Groups = Groups(())  # columns that rules of scores look at
    decision: str = "sticky"  # "fixed" asks for one rule
    keeps_default_threshold: bool = False  # without goals, deferral or a tail: each model keeps its own

    @property
    def alpha(self) -> float | None:
        """Return the tail fraction, where a tail is what counts."""
        return self.objective.alpha if isinstance(self.objective, CVaR) else None


def as_problem(
    alpha: float | None, objective: Any, goals: Any, *, default_alpha: float | None = ALPHA, **limits: Any
) -> Problem:
    """Return what is asked of a mixture, after checking it.

    Without an objective it is the CVaR at alpha, and without both at ``default_alpha``; both together are refused.
    """
    problem = Problem(_risk_or_rate(alpha, objective, default_alpha), asked_goals(goals), **limits)
    if problem.budget is not None:
        check_number(problem.budget, "budget", "[0, 1]", "mean loss above the least possible")
    if problem.deferral is not None and not isinstance(problem.deferral, Deferral):
        raise TypeError(
            "deferral must be None, or Deferral(cost) with the loss of a row that a person decides about, as in "
            f"Deferral(0.2); got {problem.deferral!r}."
        )
    if problem.deferral is None:
        refuse_deferral([*problem.goals, *([problem.objective] if isinstance(problem.objective, Rate) else [])])
    is_other = isinstance(problem.objective, Risk) and not isinstance(problem.objective, (CVaR, WorstGroup))
    if problem.outlier_fraction > 0 and is_other:
        raise ValueError(f"outlier_fraction is for a CVaR; with objective={problem.objective!r} it must be 0.")
    return problem


def _risk_or_rate(alpha: float | None, objective: Any, default_alpha: float | None) -> Risk | Rate:
    if objective is None or (isinstance(objective, str) and objective == CVAR):
        return CVaR(check_alpha(default_alpha if alpha is None else alpha))
    if alpha is not None:
        raise ValueError(
            f"alpha={alpha!r} is short for objective=CVaR({alpha!r}), the loss of the worst-off part of the rows, and "
            f"objective={objective!r} is minimised in its place: pass one of them."
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
            "objective must be a risk such as CVaR(0.1), a rate such as error_rate(train), or the text of one; got "
            f"{objective!r}{hint}."
        )
    try:
        return as_objective(objective)
    except ValueError:
        if isinstance(objective, str) and is_nearly_risk_text(objective, [*METRICS, *RATIOS, *OWN_WORDS]):
            return parse_risk(objective)  # which says what is wrong with it
        raise


def select(evidence: PoolPredictions, problem: Problem) -> Selection:
    """Return the rows with what is asked of mixtures on them."""
    losses, sample_weight, groups, answers = evidence
    is_mean = isinstance(problem.objective, Rate | WorstGroup) or problem.objective.tail_fraction == 1.0
    if not answers.tells_tails and not is_mean:
        raise ValueError(
            f"Of rows in shards only the means of groups are kept, which do not tell {problem.objective!r}: pass X and "
            "y to choose on, or fit again."
        )
    table = answers.tables[TRAIN]
    asked = Selection(losses, sample_weight, None, goal_rows(answers, problem.goals))
    if isinstance(problem.objective, Rate):
        return asked._replace(rate=linear_rate(answers, problem.objective))
    if isinstance(problem.objective, WorstGroup):  # solved from the groups' losses alone
        return asked._replace(groups=groups_by(problem.objective.names, table, groups))
    if problem.objective.tail_fraction is not None:
        return asked
    rows = RiskRows(row_count(asked), losses.shape[1], lambda names: groups_by(names, table, groups))
    return asked._replace(risk=problem.objective.bind(rows))


def row_count(selection: Selection) -> float:
    """Return as how many rows of equal weight those of a selection count."""
    weight = selection.sample_weight
    return float(len(selection.losses) if weight is None else weight.sum() ** 2 / (weight**2).sum())


def groups_by(names: tuple[str, ...], table: Table, groups: IntArray | None) -> IntArray:
    """Return the group of every row by some columns, or by all that were given as groups."""
    for name in names:
        if name not in table.columns:
            known = ", ".join(table.columns) or "no columns"
            raise ValueError(f"An objective uses the column {name!r}; got {known}.{did_you_mean(name, table.columns)}")
    if names:
        return group_codes(Table(np.empty((table.n_samples, 0)), None, {name: table.column(name) for name in names}))[0]
    if groups is None:
        raise ValueError("WorstGroup needs sensitive_features: the groups of the rows.")
    return groups


def within_budget(selection: Selection, problem: Problem) -> Selection:
    """Return the same with one more goal where there is a budget: on the mean loss, above the least under the rest."""
    if problem.budget is None:
        return selection
    game = least_mean(selection)
    row = mean_limit(game.losses[0], game.solve().value + problem.budget)
    return selection._replace(goals=row if selection.goals is None else selection.goals.joined(row))


def least_mean(selection: Selection) -> Game:
    """Return the problem of the least mean loss under the goals, from which a budget is counted."""
    means = np.average(selection.losses, axis=0, weights=selection.sample_weight)
    return Game(means[None], Mean(), None, selection.goals)


def without_budget(choice: Choice, problem: Problem) -> Choice:
    """Return the choice with the multipliers of the goals alone."""
    return choice._replace(multipliers=choice.multipliers[: len(problem.goals)])


def build_game(selection: Selection, problem: Problem) -> Game:
    """Return the problem whose solution is the best mixture of all models."""
    losses, weight, goals = selection.losses, selection.sample_weight, selection.goals
    if selection.rate is not None:  # one row of losses, in the units of the rate
        return Game(selection.rate.row[None], Mean(), None, goals, selection.rate.constant)
    if selection.groups is not None:  # a tail of one group is the worst group
        by_group = group_losses(selection)
        return Game(by_group, CVaR(1 / len(by_group)), None, goals)
    if problem.outlier_fraction > 0:  # the rows with the highest average loss are left out (DORO, Zhai et al. 2021b)
        keep = ~outliers(losses.mean(axis=1), weight, problem.outlier_fraction)
        losses, weight = losses[keep], None if weight is None else weight[keep]
    risk = selection.risk or problem.objective
    assert isinstance(risk, Risk)  # noqa: S101 - a rate has its row
    return Game(losses, risk, weight, goals)


def value_of(evidence: PoolPredictions, problem: Problem, mixture: FloatArray) -> float:
    """Return the value of the objective for a mixture."""
    return build_game(select(evidence, problem), problem).value(mixture)


def check_one_rule(objective: Risk | Rate) -> None:
    """Refuse an objective that one rule cannot lower: it sees only how often the rule errs, not about whom."""
    if isinstance(objective, Rate | WorstGroup) or objective.tail_fraction == 1.0:
        return
    raise ValueError(
        f"decision='fixed' decides by one rule, which is right or wrong about each row: {objective!r} of its losses "
        "follows from its error alone, and no other rule of the same error has less. Set decision='sticky', which "
        "mixes rules, or alpha=1.0 for the least error."
    )


def choose_nearest(selection: Selection, problem: Problem) -> Choice:
    """Choose the mixture that misses the goals least, of those the one with the least risk; no budget limits it."""
    assert selection.goals is not None  # noqa: S101 - they cannot be met
    return build_game(selection._replace(goals=selection.goals.nearest()), problem).solve()


def choose_or_nearest(selection: Selection, problem: Problem) -> Choice:
    """Choose the mixture, or that which misses the goals least where none meets them."""
    try:
        return choose_mixture(selection, problem)
    except InfeasibleGoals:
        return choose_nearest(selection, problem)


def choose_mixture(selection: Selection, problem: Problem) -> Choice:
    """Choose the mixture, or raise ``InfeasibleGoals`` where none meets the goals."""
    if problem.mixture != "optimal":  # which is free to keep no budget
        return choice_by_name(problem, selection.losses.shape[1], build_game(selection, problem).value)
    game = build_game(within_budget(selection, problem), problem)
    found = game.solve() if problem.max_models is None else choose_few(game, problem.max_models)
    return without_budget(found, problem)


def choice_by_name(problem: Problem, n_models: int, value: Callable[[FloatArray], float]) -> Choice:
    """Return the mixture that a problem names in the place of the best: the average of all models, or the first."""
    mixture = np.full(n_models, 1 / n_models) if problem.mixture == "average" else np.eye(1, n_models)[0]
    return Choice(mixture, value(mixture), np.nan, np.zeros(0))


def choose_few(game: Game, max_models: int) -> Choice:
    """Return a mixture of at most ``max_models`` models, with its cost: how much more risk it has than the best of all.

    The gap of the choice is against the best mixture of all models.
    """
    best = game.solve()
    if np.count_nonzero(best.mixture) <= max_models:
        return best
    tried = (_dropped(game, best, max_models), _filled_corner(game, best, max_models), _single(game))
    found = [choice for choice in tried if choice is not None]
    if not found:
        n_goals = 0 if game.goals is None else len(game.goals.goals)
        raise ValueError(
            f"No mixture of at most {max_models} models was found that meets the goals; the best of all mixes "
            f"{np.count_nonzero(best.mixture)}. Allow more models: {n_goals + 1} are enough for {n_goals} goals."
        )
    chosen = min(found, key=lambda choice: choice.value)
    cost = max(chosen.value - best.value, 0.0)
    return chosen._replace(gap=chosen.value - (best.value - best.gap), cost=cost)


def _dropped(game: Game, best: Choice, max_models: int) -> Choice | None:
    choice: Choice | None = best
    while choice is not None and np.count_nonzero(choice.mixture) > max_models:
        by_share = np.argsort(-choice.mixture, kind="stable")
        n_kept = int(np.count_nonzero(choice.mixture))
        n_kept -= max(1, (n_kept - max_models) // 2)
        choice = _solved(game, np.sort(by_share[:n_kept]))
    return choice


def _filled_corner(game: Game, best: Choice, max_models: int) -> Choice | None:
    if game.goals is None:
        return None
    cost = game.single_values()[None]
    corner = solve_weights_lp(cost, 1.0, **game.goals.as_limits()).mixture > 0
    by_share = np.argsort(-(best.mixture + corner), kind="stable")  # those of the corner first
    return _solved(game, np.sort(by_share[:max_models])) if corner.sum() <= max_models else None


def _single(game: Game) -> Choice | None:
    meets = game.violations() == 0
    if not meets.any():
        return None
    values = np.where(meets, game.single_values(), np.inf)
    return _solved(game, np.array([values.argmin()]))


def _solved(game: Game, models: IntArray) -> Choice | None:
    """Return the best mixture of some models, as one of all; None where they cannot meet the goals."""
    try:
        found = game.only(models).solve()
    except InfeasibleGoals:
        return None
    mixture = np.zeros(game.losses.shape[1])
    mixture[models] = found.mixture
    return found._replace(mixture=mixture)
