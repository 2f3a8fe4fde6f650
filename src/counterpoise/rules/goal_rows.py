"""Goals as rows of the mixture's linear program.

Every rate of a randomized classifier is linear in its mixture, so a goal on any dataset is a row of
``rows @ mixture <= bounds`` with an entry for each model: the goal's signed weights times the model's predictions. A
goal on a difference, or on every group or class, is several rows with one bound and one price.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.goals import Dataset, Goal, InfeasibleGoals, Ratio, as_objective, error_rate
from counterpoise.goals.advice import Bounds, Constraints, explain
from counterpoise.goals.binding import BoundRates, Tally, Views, asked_by, bind_rates, tally_rates
from counterpoise.goals.bound import WrittenOut, risk_of_each
from counterpoise.goals.infeasible import bound_step
from counterpoise.goals.population import AnyShare, can_certify, certified_bound, needed_bound, standing
from counterpoise.rules.answers import TRAIN, Answers
from counterpoise.solvers.linear_program import FEASIBLE, InfeasibleRows, constraint_scale, solve_linear_program

_LEAST_REACH = 1e-7  # part of its row's largest entry to which a ratio's scale falls: beyond, rounding would bind


class LinearRate(NamedTuple):
    """A rate of a randomized classifier: ``constant + row @ mixture``."""

    constant: float
    row: FloatArray


def linear_rate(answers: Answers, objective: Any) -> LinearRate:
    """Return a rate, or its text, as a linear function of the mixture."""
    views, asked = answers.views(), as_objective(objective)
    with asked_by(asked):
        rate = asked.resolved(views)
    return LinearRate(rate.constant, tally_rates([rate], views, answers.counter(views), [asked])[0])


class GoalRows(NamedTuple):
    """Goals as ``rows @ mixture <= bounds``, and how rows and bounds change with each goal's own bound.

    They are affine in the bound that the rows must meet, which is the goal's own unless it carries a confidence.
    """

    goals: tuple[Goal, ...]
    rows: FloatArray  # (n_rows, n_models)
    bounds: FloatArray  # (n_rows,)
    row_slopes: FloatArray  # zero but for ratios, whose bound multiplies the denominator
    bound_slopes: FloatArray
    shares: tuple[AnyShare | None, ...]  # that decide about a goal with a confidence; None: its margin is fixed
    sizes: FloatArray | None = None  # of the terms that the entries of each row are sums and differences of
    owners: IntArray | None = None  # the place of the goal that each row belongs to; None: each has one

    @property
    def places(self) -> IntArray:
        """Return the place of the goal that each row belongs to."""
        return np.arange(len(self.goals)) if self.owners is None else self.owners

    def rows_of(self, place: int) -> IntArray:
        """Return the rows of a goal."""
        return np.flatnonzero(self.places == place)

    @property
    def goal_sizes(self) -> FloatArray:
        """Return for each row how large what its goal limits can be: 1 for shares, for a cost its largest amount."""
        return np.array([self.goals[place].scale for place in self.places.tolist()])

    def prices(self, multipliers: FloatArray) -> FloatArray:
        """Return the price of each goal: the sum of the multipliers of its rows."""
        return np.bincount(self.places, multipliers, len(self.goals)).astype(np.float64)

    @property
    def scale(self) -> FloatArray:
        """Return what rows and bounds are divided by where it is asked whether they hold.

        A ratio is multiplied through by its denominator, and where other goals keep that small, so is what counts.
        """
        scale = constraint_scale(np.abs(self.rows).max(axis=1), self.bounds, self.sizes)
        for row in np.flatnonzero(self.row_slopes.any(axis=1)).tolist():
            scale[row] = min(scale[row], max(self._reach(row), _LEAST_REACH * scale[row]))
        return scale

    def as_limits(self) -> dict[str, Any]:
        """Return the goals as arguments of a solver."""
        return {"rows": self.rows, "bounds": self.bounds, "row_scale": self.scale}

    def _reach(self, row: int) -> float:
        """Return how large a ratio's denominator can be where the other rows hold."""
        divisor, n_models = self.divisor(row), self.rows.shape[1]
        most, others = float(divisor.max()), np.delete(np.arange(len(self.bounds)), row)
        if not others.size or not most > 0:
            return most
        scale = constraint_scale(np.abs(self.rows[others]).max(axis=1), self.bounds[others])
        found = solve_linear_program(
            -divisor / most,
            np.vstack([self.rows[others] / scale[:, None], np.ones(n_models)]),
            (np.append(np.full(others.size, -np.inf), 1.0), np.append(self.bounds[others] / scale + FEASIBLE, 1.0)),
            lower=np.zeros(n_models),
            upper=np.full(n_models, np.inf),
        )
        return most if found is None else float(divisor @ found.point)  # None: the others cannot hold

    def divisor(self, row: int) -> FloatArray:
        """Return the denominator of a row's ratio for each model; 1 for a rate."""
        sign = -1.0 if self.goals[self.places[row]].sense == "<=" else 1.0
        return np.asarray(sign * (self.row_slopes[row] - self.bound_slopes[row]))

    def only(self, models: AnyArray) -> Self:
        """Return the same goals on some of the models."""
        return self._replace(rows=self.rows[:, models], row_slopes=self.row_slopes[:, models])

    def some(self, places: Sequence[int]) -> Self | None:
        """Return some of the goals, by their places in rising order; None where that is none."""
        if not places:
            return None
        rows = np.flatnonzero(np.isin(self.places, places))
        parts = {name: getattr(self, name)[rows] for name in ("rows", "bounds", "row_slopes", "bound_slopes")}
        return self._replace(
            goals=tuple(self.goals[place] for place in places),
            shares=tuple(self.shares[row] for row in rows),
            sizes=None if self.sizes is None else self.sizes[rows],
            owners=np.searchsorted(places, self.places[rows]),
            **parts,
        )

    def missed(self) -> FloatArray:
        """Return by how much each model alone misses each row, nothing where it is rounding."""
        excess = self.rows - self.bounds[:, None]
        return np.where(excess > FEASIBLE * self.scale[:, None], excess, 0.0)

    def beside(self, other: Self) -> Self:
        """Return the same goals on these models and then on others."""
        rows, slopes = (np.hstack(pair) for pair in ((self.rows, other.rows), (self.row_slopes, other.row_slopes)))
        return self._replace(rows=rows, row_slopes=slopes)

    def joined(self, other: Self) -> Self:
        """Return these goals and then others."""
        both = (self, other)
        return self._replace(
            goals=(*self.goals, *other.goals),
            rows=np.concatenate([one.rows for one in both]),
            bounds=np.concatenate([one.bounds for one in both]),
            row_slopes=np.concatenate([one.row_slopes for one in both]),
            bound_slopes=np.concatenate([one.bound_slopes for one in both]),
            shares=(*self.shares, *other.shares),
            sizes=np.concatenate([np.abs(one.rows).max(axis=1) if one.sizes is None else one.sizes for one in both]),
            owners=np.concatenate([self.places, other.places + len(self.goals)]),
        )

    def with_bound(self, place: int, bound: float) -> Self:
        """Return the same rows with another number on the right side of one goal."""
        goals = (*self.goals[:place], self.goals[place].with_bound(bound), *self.goals[place + 1 :])
        own = self.rows_of(place)
        rows, bounds = self.rows.copy() if self.row_slopes[own].any() else self.rows, self.bounds.copy()
        for row in own:
            step = self.needed(row, bound) - self.needed(row, self.goals[place].bound)
            if rows is not self.rows:
                rows[row] += step * self.row_slopes[row]
            bounds[row] += step * self.bound_slopes[row]
        return self._replace(goals=goals, rows=rows, bounds=bounds)

    def needed(self, row: int, bound: float) -> float:
        """Return what a row must meet if its goal had another bound, but for a margin that is always the same."""
        share, (goal, risk) = self.shares[row], self._goal(row)
        return bound if share is None else needed_bound(goal.with_bound(bound), share, risk)

    def own_bound(self, row: int, needed: float) -> float:
        """Return the tightest bound of a row's goal for which ``needed`` is enough."""
        share, (goal, risk) = self.shares[row], self._goal(row)
        return needed if share is None else certified_bound(goal, share, needed, risk)

    def can_show(self, place: int, bound: float) -> bool:
        """Tell whether the rows are enough to certify the goal with another bound, were all of them to keep it."""
        for row in self.rows_of(place):
            share, (goal, risk) = self.shares[row], self._goal(row)
            if share is not None and not can_certify(goal.with_bound(bound), share, risk):
                return False
        return True

    def _goal(self, row: int) -> tuple[Goal, float]:
        """Return the goal that a row belongs to and its risk."""
        place = int(self.places[row])
        return self.goals[place], risk_of_each(self.goals)[place]

    def constraints(self, bounds: Bounds) -> Constraints:
        """Return the goals as constraints on the mixture, with other numbers on the right sides of some."""
        other = self
        for place, bound in bounds.items():
            other = other.with_bound(place, bound)
        return Constraints(other.rows, other.bounds, other.scale, "simplex", other.places)

    def nearest(self) -> Self:
        """Return the same goals with bounds that a mixture of least total violation keeps, in parts of their scales."""
        scale, (n_rows, n_models) = self.scale, self.rows.shape
        matrix, limits = self.rows / scale[:, None], self.bounds / scale
        total = np.append(np.ones(n_models), np.zeros(n_rows))
        found = solve_linear_program(
            1.0 - total,
            np.vstack([np.hstack([matrix, -np.eye(n_rows)]), total]),
            (np.append(np.full(n_rows, -np.inf), 1.0), np.append(limits, 1.0)),
            lower=np.zeros(n_models + n_rows),
            upper=np.full(n_models + n_rows, np.inf),
        )
        assert found is not None  # noqa: S101 - any mixture will do
        return self._replace(bounds=np.maximum(self.bounds, self.rows @ found.point[:n_models]))

    def infeasible(self, error: InfeasibleRows) -> InfeasibleGoals:
        """Return which goals conflict on every mixture, given the proof that some do."""
        found = explain(self)
        if found is None:  # by rounding of one solver against the other: the multipliers tell as much
            return InfeasibleGoals([self.goals[place] for place in self.conflicting(error)], error.violation)
        return found

    def conflicting(self, error: InfeasibleRows) -> list[int]:
        """Return the places of the goals that take part in the proof that no mixture meets all."""
        return list(np.unique(self.places[error.rows]).tolist())


def mean_limit(means: FloatArray, most: float) -> GoalRows:
    """Return a limit on the mean loss, given that of each model, as a goal beside others."""
    goal = error_rate(Dataset(TRAIN)) <= most
    row = means[None]
    return GoalRows((goal,), row, np.array([goal.bound]), np.zeros_like(row), np.ones(1), (None,))


class TalliedGoals(NamedTuple):
    """Goals written out for the rows of some tables, ready to be counted for any models."""

    limits: WrittenOut
    views: Views
    asked: tuple[Goal, ...]  # with the margins of those that carry a confidence
    shares: tuple[AnyShare | None, ...]

    @classmethod
    def of(cls, goals: tuple[Goal, ...], views: Views) -> Self:
        """Write goals out."""
        limits = WrittenOut.of(goals, views)
        shares = (None if part.confidence is None else standing(part, views, None).share() for part in limits.parts)
        return cls(limits, views, limits.asked, tuple(shares))

    def rows(self, count: Tally) -> GoalRows:
        """Return the goals as rows of the linear program of the models that are counted."""
        asked = self.asked
        rows, bounds = _tallied(asked, self.views, count, self.limits.names)
        row_slopes = np.zeros_like(rows)
        bound_slopes = np.array([1.0 if part.sense == "<=" else -1.0 for part in asked])
        ratios = [place for place, part in enumerate(asked) if isinstance(part.left, Ratio)]
        if ratios:  # affine in their bound: two points tell the slope
            steps = np.array([bound_step(asked[place]) for place in ratios])
            moved = [
                asked[place].with_bound(asked[place].bound + step) for place, step in zip(ratios, steps, strict=True)
            ]
            moved_rows, moved_bounds = _tallied(moved, self.views, count)
            row_slopes[ratios] = (moved_rows - rows[ratios]) / steps[:, None]
            bound_slopes[ratios] = (moved_bounds - bounds[ratios]) / steps
        sizes = np.array([part.linear.size for part in asked])
        goals = self.limits.goals
        owners = self.limits.owners if len(asked) > len(goals) else None
        return GoalRows(goals, rows, bounds, row_slopes, bound_slopes, self.shares, sizes, owners)

    def row_costs(self, row_prices: FloatArray) -> dict[str, FloatArray]:
        """Return what each answer about each row of each dataset costs, at prices of the rows of the goals."""
        return self.bound().row_weights(row_prices)

    def bound(self) -> BoundRates:
        """Return the rows of the goals as signed weights of the rows of the tables."""
        return bind_rates([part.linear for part in self.asked], self.views, self.limits.names)


def goal_rows(answers: Answers, goals: tuple[Goal, ...]) -> GoalRows | None:
    """Return the goals as rows of the linear program, or None where there are none."""
    if not goals:
        return None
    views = answers.views()
    return TalliedGoals.of(goals, views).rows(answers.counter(views))


def _tallied(
    asked: Sequence[Goal], views: Views, count: Tally, names: Sequence[Goal] | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return goals as rows and bounds; ``names`` are what an error calls them."""
    linear = [goal.linear for goal in asked]
    return tally_rates(linear, views, count, names), -np.array([rate.constant for rate in linear])


def own_bound(limits: GoalRows, excess: float) -> float:
    """Return the first goal's bound at which the right sides of its rows are larger by so much."""
    found = []
    for row in limits.rows_of(0):
        needed = limits.needed(row, limits.goals[0].bound)
        found.append(limits.own_bound(row, needed + excess / float(limits.bound_slopes[row])))
    return max(found) if limits.goals[0].sense == "<=" else min(found)


def check_range(limits: GoalRows) -> None:
    """Refuse a first goal of which it is not known beforehand what values it can take."""
    if limits.row_slopes[limits.rows_of(0)].any():
        raise ValueError("The goal is on a ratio, whose range under a mixture is not known beforehand: pass bounds.")
