"""The price of a goal: the exact frontier between a mixture's risk and the bound of one goal.

For each bound the least risk is a linear program; along the bounds each starts from the solution and the cuts of the
one before. As a function of the bound of a linear goal the least risk is convex and falls as the bound is loosened,
because bounds shift the right side of a linear program. A budget of mean loss is counted, as where the mixture was
chosen, from the least that is possible with the goal at each bound: then the risk need not fall, because a looser bound
lowers that least and with it what the budget allows.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.checks import as_numbers, check_count, check_losses, check_positive
from counterpoise._base.text import text_table
from counterpoise._base.types import ArrayLike, FloatArray, IntArray
from counterpoise.goals import Goal, Rate, as_goals, positive_rate
from counterpoise.rules.choosing import (
    Problem,
    RepeatedLosses,
    Selection,
    as_problem,
    build_model_program,
    select,
    with_repeated_losses,
)
from counterpoise.rules.class_scores.family import ClassFamily
from counterpoise.rules.families import ClassRules
from counterpoise.rules.goal_rows import GoalConstraints, check_range, goal_rows, own_bound
from counterpoise.rules.program import NoMixture, Program, build_program, mean_objective, refuse_ratio, with_budget
from counterpoise.rules.scores.family import CutFamily
from counterpoise.rules.scores.table import rank
from counterpoise.theory.risks import CVaR, Risk, RiskRows

_ROW = positive_rate() <= 0.0  # stands for a row of numbers; its text is never used
_SHOWN = 1e-9  # shares of the mixture above this count as carrying weight


class TradeoffPoint(NamedTuple):
    """The least risk under one bound, with its certificate; not numbers where no mixture meets the bound."""

    bound: float
    value: float  # risk of the mixture: an upper bound of the least risk
    lower: float  # proven: no mixture within the bound has less
    multiplier: float  # price: how fast the risk falls as the bound is loosened; of a ratio, its multiplied form
    n_models: int  # that carry weight
    mixture: FloatArray | None

    @property
    def gap(self) -> float:
        """Return ``value - lower``."""
        return self.value - self.lower


@dataclass(frozen=True)
class Tradeoff:
    """Points of the frontier in the order of the bounds given; ``print`` shows a table, ``plot`` draws it."""

    points: tuple[TradeoffPoint, ...]
    goal: Goal | None
    objective: Risk | Rate
    rules: tuple[Any, ...] | None = None  # of scores, which the mixtures are over

    @property
    def alpha(self) -> float | None:
        """Return the tail fraction, where a tail is what counts."""
        return self.objective.alpha if isinstance(self.objective, CVaR) else None

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[TradeoffPoint]:
        return iter(self.points)

    def __getitem__(self, place: int) -> TradeoffPoint:
        return self.points[place]

    @property
    def bounds(self) -> FloatArray:
        """Return the bounds."""
        return np.array([point.bound for point in self])

    @property
    def values(self) -> FloatArray:
        """Return the least risk for each bound, not a number where none is possible."""
        return np.array([point.value for point in self])

    def __str__(self) -> str:
        names = ("bound", "value", "lower", "multiplier", "n_models")
        lines = [(*(f"{getattr(point, name):.4f}" for name in names[:-1]), str(point.n_models)) for point in self]
        return text_table([names, *lines], ">" * len(names), least=10)

    def plot(self, ax: Any = None, **kwargs: Any) -> Any:
        """Draw the frontier with matplotlib, and return the axes; ``kwargs`` go to matplotlib's ``plot``."""
        if ax is None:
            from matplotlib.figure import Figure  # noqa: PLC0415 - heavy, and optional

            ax = Figure(figsize=(6, 4), layout="constrained").subplots()
        ax.plot(self.bounds, self.values, **{"marker": ".", "color": "tab:blue"} | kwargs)
        label = "bound" if self.goal is None else f"bound b in {self.goal.left} {self.goal.comparison} b"
        ax.set_xlabel(label, parse_math=False)  # a group's name may hold dollar signs
        ax.set_ylabel(f"least {self.objective}" if self.alpha is None else f"least risk (alpha = {self.alpha:g})")
        ax.grid(visible=True, alpha=0.3)
        return ax


def tradeoff(
    model: Any,
    goal: Any,
    bounds: ArrayLike | None = None,
    *,
    alpha: float | None = None,
    objective: Any = None,
    n_points: int = 50,
    tol: float = 1e-6,
) -> Tradeoff:
    """Return the least risk for each of many bounds of a goal.

    Parameters
    ----------
    model : fitted mixture, or array of shape (n_samples, n_models)
        A classifier that mixes models, whose stored predictions and other goals are used, so that no model predicts; or
        losses. Each point is the result of its ``rebalance`` with that bound: a budget is above the least mean loss
        there.
    goal : goal or its text, or array of shape (n_models,) where losses are given
        The goal whose bound varies: on the datasets of the model. One of the model's goals that differs in its bound
        alone is replaced. With losses: the row of ``row @ mixture <= bound``.
    bounds : array of shape (n_bounds,), optional
        Numbers on the right side of the goal, in any order. Default: ``n_points`` from the tightest that any mixture
        meets to the loosest that still costs something; beyond, all is as without the goal.
    alpha : float in (0, 1], optional
        Short for ``objective=CVaR(alpha)``. Default: the objective of the model; 0.1 for losses.
    objective : risk, rate or the text of one, optional
        What to minimise for each bound.
    n_points : int, default=50
        Number of bounds where none are given.
    tol : float, default=1e-6
        Largest gap between a value and its proven lower bound.

    Returns
    -------
    Tradeoff
        A tuple of ``TradeoffPoint`` in the order of the bounds, with a ``plot``.

    Examples
    --------
    At most a part of the decisions may come from the second of two models that fail on different halves:

    >>> from counterpoise import tradeoff
    >>> losses = [[0, 1], [0, 1], [1, 0], [1, 0]]
    >>> print(tradeoff(losses, [0, 1], [0.0, 0.25, 0.4, 0.75], alpha=0.5))
         bound       value       lower  multiplier    n_models
        0.0000      1.0000      1.0000      1.0000           1
        0.2500      0.7500      0.7500      1.0000           2
        0.4000      0.6000      0.6000      1.0000           2
        0.7500      0.5000      0.5000      0.0000           2
    """
    tol, n_points = check_positive(tol, "tol"), check_count(n_points, "n_points")
    if not hasattr(model, "selection_") and hasattr(model, "fit"):
        raise TypeError(
            "model must be a fitted classifier that mixes models, or the losses of models; got "
            f"{type(model).__name__}, which is not fitted or does not mix models."
        )
    path = (_path_of_model if hasattr(model, "selection_") else _path_of_losses)(model, goal, alpha, objective, tol)
    with closing(path):
        levels = path.default_bounds(n_points) if bounds is None else _check_bounds(bounds)
        points, rules = path.solve(levels)
    if hasattr(model, "rules_"):
        is_cut = not isinstance(model.family_, ClassRules)
        rules = tuple(path.program.family.ranked.as_rules(rules) if is_cut and rules is not None else rules or ())
    shown_goal = None if path.goals[0] is _ROW else path.goals[0]
    return Tradeoff(points, shown_goal, refuse_ratio(path.problem.objective), rules)


class BoundPath:
    """The best mixture for each of many bounds of the first goal, each solve started from the one before.

    A budget is counted anew for each bound.
    """

    def __init__(self, program: Program, problem: Problem, goals: tuple[Goal, ...], tol: float) -> None:
        self.program, self.problem, self.goals, self.tol = program, problem, goals, tol
        self.rows: GoalConstraints = program.family.goals_of(program.limits)

    def default_bounds(self, n_points: int) -> FloatArray:
        """Return bounds from the tightest possible to where the goal costs nothing."""
        check_range(self.rows)
        family, budget = self.program.family, self.problem.budget
        excess = family.excess(self.program.limits, 0)
        tightest = excess.solve(self.tol, explains=True)
        least, start = tightest.solution.value, tightest.rules
        limits, start = with_budget(family, excess.limits, budget, start)
        free = [self.program._replace(limits=limits).solve(self.tol, start)]
        if budget is not None:
            free.append(Program(family, mean_objective(family), excess.limits).solve(self.tol, start))
        excesses = [family.matrix(excess.objective.losses, one.rules) @ one.solution.mixture for one in free]
        most = max(least, *(float(one.max()) for one in excesses))
        return np.linspace(own_bound(self.rows, least), own_bound(self.rows, most), n_points)

    def solve(self, levels: FloatArray) -> tuple[tuple[TradeoffPoint, ...], Any]:
        """Return the point of each bound, and the rules that their mixtures share."""
        family, budget, own = self.program.family, self.problem.budget, self.rows.rows_of(0)
        rules, points = None, dict[int, TradeoffPoint]()
        tightest_first = np.argsort(-levels if self.goals[0].sense == ">=" else levels, kind="stable")
        for place in tightest_first.tolist():  # whose rules serve every looser bound
            level = float(levels[place])
            points[place] = TradeoffPoint(level, np.nan, np.nan, np.nan, 0, None)
            if not self.rows.can_show(0, level):
                continue
            limits = family.at_bound(self.program.limits, self.goals, level)
            try:
                limits, start = with_budget(family, limits, budget, rules, explains=False)
                optimum = self.program._replace(limits=limits).solve(self.tol, start)
            except NoMixture:
                continue
            solution, shift = optimum.solution, self.program.objective.shift
            rules, mixture = family.carry_over(rules, optimum)
            n_models, price = int((mixture > _SHOWN).sum()), float(solution.multipliers[own].sum())
            values = shift + solution.value, shift + solution.lower
            points[place] = TradeoffPoint(level, *values, price, n_models, mixture)
        size = max((len(point.mixture) for point in points.values() if point.mixture is not None), default=0)
        return tuple(_pad_mixture(points[place], size) for place in range(levels.size)), rules

    def close(self) -> None:
        """Let the threads go."""
        if isinstance(self.program.objective.losses, RepeatedLosses):
            self.program.objective.losses.close()


def _pad_mixture(point: TradeoffPoint, size: int) -> TradeoffPoint:
    """Return a point whose mixture has a share for each rule."""
    if point.mixture is None:
        return point
    return point._replace(mixture=np.append(point.mixture, np.zeros(size - point.mixture.size)))


def _path_of_model(model: Any, goal: Any, alpha: float | None, objective: Any, tol: float) -> BoundPath:
    """Return the path over all rules that a fitted classifier can mix."""
    problem, data, goals = model.problem(alpha, objective), model.family_.selection_data, _goals_of_model(model, goal)
    family: Any
    if not hasattr(model, "rules_"):
        is_new = objective is not None or not isinstance(model.objective_, CVaR)  # else the selection holds for it
        selection = select(data, problem) if is_new else model.selection_
        return _path_of_selection(selection, problem, goal_rows(data.answers, goals), goals, tol)
    if isinstance(model.family_, ClassRules):
        family = ClassFamily(data.calibrated_scores(model.groups_, model.calibrations_))
    else:
        family = CutFamily(rank(data, model.groups_))
    program = build_program(family, problem.objective, family.limits(goals))
    return BoundPath(program, problem, goals, tol)


def _path_of_losses(model: Any, goal: Any, alpha: float | None, objective: Any, tol: float) -> BoundPath:
    """Return the path of losses of models and a row of numbers for them."""
    problem = as_problem(alpha, objective, ())
    if not isinstance(problem.objective, Risk):
        message = f"objective must be a risk where losses are given; got {problem.objective}."
        raise ValueError(message)  # noqa: TRY004 - a rate is an objective, but not of losses
    losses = check_losses(model)
    risk, n_models = problem.objective.bind(RiskRows(len(losses), losses.shape[1], _no_groups)), losses.shape[1]
    row = as_numbers(goal, "goal").astype(np.float64)
    if row.shape != (n_models,):
        raise ValueError(
            f"With losses, goal must be the row of row @ mixture <= bound, of shape ({n_models},); got shape "
            f"{row.shape}."
        )
    limits = GoalConstraints((_ROW,), row[None], np.zeros(1), np.zeros((1, n_models)), np.ones(1), (None,))
    return _path_of_selection(Selection(losses, None, None, risk=risk), problem, limits, (_ROW,), tol)


def _path_of_selection(
    selection: Selection, problem: Problem, limits: GoalConstraints | None, goals: tuple[Goal, ...], tol: float
) -> BoundPath:
    """Return the path over mixtures of models."""
    program = build_model_program(selection._replace(goals=limits), problem)
    return BoundPath(with_repeated_losses(program), problem, goals, tol)


def _no_groups(names: tuple[str, ...]) -> IntArray:
    raise ValueError(f"Losses have no groups of {', '.join(names) or 'the rows'}. Pass a fitted mixture instead.")


def _goals_of_model(model: Any, goal: Any) -> tuple[Goal, ...]:
    """Return the goal and then the model's other goals."""
    goals = as_goals(goal)
    if len(goals) != 1:
        raise ValueError(f"A frontier needs exactly one goal; got {len(goals)}.")
    return (goals[0], *(other for other in model.goals_ if other.with_bound(goals[0].bound) != goals[0]))


def _check_bounds(bounds: ArrayLike) -> FloatArray:
    levels = as_numbers(bounds, "bounds").astype(np.float64)
    if levels.ndim != 1 or levels.size == 0 or not np.isfinite(levels).all():
        raise ValueError(f"bounds must be a non-empty one-dimensional array of finite numbers; got {bounds!r}.")
    return levels
