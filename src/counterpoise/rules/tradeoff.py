"""The price of a goal: the exact frontier between a mixture's risk and the bound of one goal.

For each bound the least risk is a linear program; along the bounds each starts from the solution and the cuts of the
one before. As a function of the bound of a linear goal the least risk is convex and falls as the bound is loosened,
because bounds shift the right side of a linear program. A budget of mean loss is counted, as where the mixture was
chosen, from the least that is possible with the goal at each bound: then the risk need not fall, because a looser bound
lowers that least and with it what the budget allows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.checks import as_numbers, check_count, check_losses, check_positive
from counterpoise._base.text import text_table
from counterpoise._base.types import ArrayLike, FloatArray, IntArray
from counterpoise.goals import Goal, InfeasibleGoals, Rate, as_goals, positive_rate
from counterpoise.rules.choosing import (
    Matrix,
    ModelFamily,
    Problem,
    Selection,
    as_problem,
    build_model_program,
    select,
    solved,
)
from counterpoise.rules.class_scores.choosing import ClassPath
from counterpoise.rules.families import ClassRules
from counterpoise.rules.goal_rows import GoalRows, check_range, goal_rows, own_bound
from counterpoise.rules.program import Objective, Program, mean_objective, with_budget
from counterpoise.rules.scores.family import RulePath
from counterpoise.rules.scores.table import rank
from counterpoise.solvers import bounds_path, minimize_risk
from counterpoise.solvers.linear_program import InfeasibleRows, MixtureSolution
from counterpoise.theory.risks import CVaR, Risk, RiskRows

_ROW = positive_rate() <= 0.0  # stands for a row that was given as such: what it says is never asked
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
        label = "bound" if self.goal is None else f"bound b in {self.goal.left} {self.goal.sense} b"
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
        A classifier that mixes models, whose kept predictions and other goals are used and no model asked; or losses.
        Each point is what its ``rebalance`` with that bound comes to: a budget is above the least mean loss there.
    goal : goal or its text, or array of shape (n_models,) where losses are given
        The goal whose bound varies: on the datasets of the model. One of the model's goals that differs in its bound
        alone is replaced. With losses: the row of ``row @ mixture <= bound``.
    bounds : array of shape (n_bounds,), optional
        Numbers on the right side of the goal, in any order. Default: ``n_points`` from the tightest that any mixture
        meets to the loosest that still costs something; beyond, all is as without the goal.
    alpha : float in (0, 1], optional
        Short for ``objective=CVaR(alpha)``. Default: the objective of the model; 0.1 for losses.
    objective : risk, rate or the text of one, optional
        What is made as small as possible for each bound.
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
    >>> print(tradeoff(losses, [0, 1], [0.0, 0.25, 0.5, 0.75], alpha=0.5))
         bound       value       lower  multiplier    n_models
        0.0000      1.0000      1.0000      1.0000           1
        0.2500      0.7500      0.7500      1.0000           2
        0.5000      0.5000      0.5000      0.0000           2
        0.7500      0.5000      0.5000      0.0000           2
    """
    tol, n_points = check_positive(tol, "tol"), check_count(n_points, "n_points")
    if hasattr(model, "rules_"):
        return _of_rules(model, goal, bounds, model.problem(alpha, objective), n_points, tol)
    if not hasattr(model, "selection_") and hasattr(model, "fit"):
        raise TypeError(
            f"model must be a fitted classifier that mixes models, or their losses; got {type(model).__name__}, which "
            "is not fitted or mixes none."
        )
    selection, problem, limits = (_of_models if hasattr(model, "selection_") else _of_losses)(
        model, goal, alpha, objective
    )
    levels = _default_bounds(selection, problem, limits, n_points) if bounds is None else _check_bounds(bounds)
    shown = None if limits.goals[0] is _ROW else limits.goals[0]
    return Tradeoff(_points(selection, problem, limits, levels, tol), shown, problem.objective)


# Rows, what is asked on them, and what must hold: the goal whose bound varies first.
_Posed = tuple[Selection, Problem, GoalRows]


def _of_models(model: Any, goal: Any, alpha: float | None, objective: Any) -> _Posed:
    """Return the question on what a classifier kept of its models."""
    problem, kept = model.problem(alpha, objective), model.family_.selection_data
    is_asked = objective is not None or not isinstance(model.objective_, CVaR)  # else the selection holds for it
    limits = goal_rows(kept.answers, _goals_of_model(model, goal))
    assert limits is not None  # noqa: S101 - there is a goal
    return select(kept, problem) if is_asked else model.selection_, problem, limits


def _of_losses(model: Any, goal: Any, alpha: float | None, objective: Any) -> _Posed:
    """Return the question on losses of models and a row of numbers for them."""
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
    limits = GoalRows((_ROW,), row[None], np.zeros(1), np.zeros((1, n_models)), np.ones(1), (None,))
    return Selection(losses, None, None, risk=risk), problem, limits


def _of_rules(model: Any, goal: Any, bounds: ArrayLike | None, problem: Problem, n_points: int, tol: float) -> Tradeoff:
    """Return the frontier over all rules of scores, or over rules of class probabilities, as far as they are found."""
    kept, goals = model.family_.selection_data, _goals_of_model(model, goal)
    ranked = None if isinstance(model.family_, ClassRules) else rank(kept, model.groups_)
    path: Any
    if ranked is not None:
        path = RulePath(ranked, problem, goals, tol)
        own = path.rows.rows_of(0)
    elif bounds is None:
        raise ValueError("Of more than two classes it is not known beforehand which bounds can be met: pass bounds.")
    else:
        path = ClassPath(kept.known(model.groups_, model.calibrations_), problem, goals, tol)
        own = np.flatnonzero(path.program.limits.goals.template.places == 0)
    levels = path.default_bounds(n_points) if bounds is None else _check_bounds(bounds)
    found, rules = path.solve(levels)
    points = tuple(
        _point(float(level), one, path.program.objective.shift, own) for level, one in zip(levels, found, strict=True)
    )
    return Tradeoff(
        points, path.goals[0], problem.objective, tuple(rules if ranked is None else ranked.as_rules(rules))
    )


def _at(selection: Selection, problem: Problem, limits: GoalRows, bound: float) -> GoalRows | None:
    """Return what must hold for another bound of the first goal, or None where it cannot, or rows never show it."""
    if not limits.can_show(0, bound):
        return None
    try:
        return with_budget(ModelFamily(selection), limits.with_bound(0, bound), problem.budget)[0]  # type: ignore[no-any-return]
    except InfeasibleGoals:
        return None


def _points(
    selection: Selection, problem: Problem, limits: GoalRows, levels: FloatArray, tol: float
) -> tuple[TradeoffPoint, ...]:
    objective = build_model_program(selection, problem).objective
    order = np.argsort(levels, kind="stable")  # neighbours start from each other
    sets = {number: _at(selection, problem, limits, float(levels[number])) for number in order.tolist()}
    possible = {number: one for number, one in sets.items() if one is not None}
    scale = next((one.scale for one in possible.values()), None)
    given: dict[str, Any] = {"sample_weight": objective.losses.sample_weight, "row_scale": scale, "tol": tol}
    solutions = _path(objective, [(one.rows, one.bounds) for one in possible.values()], given)
    found = dict(zip(possible, solutions, strict=True))
    own = limits.rows_of(0)
    return tuple(_point(float(level), found.get(number), objective.shift, own) for number, level in enumerate(levels))


def _path(
    objective: Objective, sets: list[tuple[FloatArray, FloatArray]], given: dict[str, Any]
) -> list[MixtureSolution | None]:
    """Return the best mixture under each set of constraints, each from the one before; None where there is none."""
    losses, risk = objective.losses.values, objective.risk
    if risk.tail_fraction is not None:
        return bounds_path(losses, risk.tail_fraction, sets, **given)
    solutions: list[MixtureSolution | None] = []
    start = None
    for rows, bounds in sets:
        try:
            solution = minimize_risk(losses, risk, rows=rows, bounds=bounds, start=start, **given)
        except InfeasibleRows:
            solutions.append(None)
        else:
            solutions.append(solution)
            start = solution.mixture
    return solutions


def _no_groups(names: tuple[str, ...]) -> IntArray:
    raise ValueError(f"The groups of {', '.join(names) or 'the rows'} are known of a fitted mixture, not of losses.")


def _point(bound: float, found: MixtureSolution | None, shift: float, own: IntArray) -> TradeoffPoint:
    if found is None:
        return TradeoffPoint(bound, np.nan, np.nan, np.nan, 0, None)
    count, price = int((found.mixture > _SHOWN).sum()), float(found.multipliers[own].sum())
    return TradeoffPoint(bound, shift + found.value, shift + found.lower, price, count, found.mixture)


def _goals_of_model(model: Any, goal: Any) -> tuple[Goal, ...]:
    """Return the goal and then the model's other goals."""
    listed = as_goals(goal)
    if len(listed) != 1:
        raise ValueError(f"A frontier is for one goal; got {len(listed)}.")
    return (listed[0], *(other for other in model.goals_ if other.with_bound(listed[0].bound) != listed[0]))


def _check_bounds(bounds: ArrayLike) -> FloatArray:
    levels = as_numbers(bounds, "bounds").astype(np.float64)
    if levels.ndim != 1 or levels.size == 0 or not np.isfinite(levels).all():
        raise ValueError(f"bounds must be a non-empty one-dimensional array of finite numbers; got {bounds!r}.")
    return levels


def _default_bounds(selection: Selection, problem: Problem, limits: GoalRows, n_points: int) -> FloatArray:
    """Return bounds from the tightest possible to where the goal costs nothing."""
    check_range(limits)
    own = limits.rows_of(0)
    excess = limits.rows[own] - limits.bounds[own, None]  # the largest of which is how far the goal is missed
    others = selection._replace(goals=limits.some(range(1, len(limits.goals))))
    program = build_model_program(others, problem)
    tightest = solved(program._replace(objective=Objective(Matrix(excess), CVaR(1.0 / own.size)))).value
    within, _ = with_budget(program.family, program.limits, problem.budget)
    free = [solved(program._replace(limits=within)).mixture]
    if problem.budget is not None:
        free.append(solved(Program(program.family, mean_objective(program.family), program.limits)).mixture)
    loosest = max(tightest, *(float((excess @ mixture).max()) for mixture in free))
    return np.linspace(own_bound(limits, tightest), own_bound(limits, loosest), n_points)
