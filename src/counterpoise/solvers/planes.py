"""A convex function known by its cuts: affine functions that are nowhere above it, on the simplex or in a box.

Their largest is a model from below. Level bundle methods ask it two questions: its least value (a linear program,
started hot from the last one) and the point nearest to a centre at which it is below a level (a quadratic program, by a
dual active-set method). HiGHS and DAQP answer both faster than anything else that was measured at these sizes.
"""

from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import BoolArray, FloatArray
from counterpoise.solvers._simplex_quadratic import EQUALITY
from counterpoise.solvers.linear_program import empty_program, found_by_highs
from counterpoise.solvers.result import FEASIBLE, InfeasibleRows, constraint_scale

# Between the two objectives of a linear program that was solved, before it is solved anew: the cuts are of functions
# with values of about 1, whatever their units were.
_MISMATCH = 1e-7
_SPARE = 32  # rows beside the doubled ones
_FREE = 1e30  # what daqp takes for no bound


class ModelMinimum(NamedTuple):
    """A minimizer of the model, and multipliers that prove the lower bound."""

    point: FloatArray
    shares: FloatArray  # on cuts, on the simplex
    multipliers: FloatArray  # of the rows, >= 0
    lower: float


class Simplex(NamedTuple):
    """The mixtures: non-negative, of sum 1."""

    size: int

    @property
    def equalities(self) -> FloatArray:
        """Return the left sides of equations; their right sides are 1."""
        return np.ones((1, self.size))

    @property
    def most(self) -> float:
        """Return what no entry is above, beyond what the equations say."""
        return np.inf

    def clean(self, point: FloatArray) -> FloatArray:
        """Return the point inside to the last bit."""
        mixture = np.maximum(point, 0.0)
        return np.asarray(mixture / mixture.sum())

    def least(self, slope: FloatArray) -> float:
        """Return the least value of a linear function: that at one of the corners."""
        return float(slope.min())


class Box(NamedTuple):
    """Multipliers: each from 0 to ``most``."""

    size: int
    most: float

    @property
    def equalities(self) -> FloatArray:
        """Return none."""
        return np.empty((0, self.size))

    def clean(self, point: FloatArray) -> FloatArray:
        """Return the point inside to the last bit."""
        return np.clip(point, 0.0, self.most)

    def least(self, slope: FloatArray) -> float:
        """Return the least value of a linear function: that at one of the corners."""
        return self.most * float(np.minimum(slope, 0.0).sum())


class CuttingPlanes:
    """Cuts ``offset + slope @ x <= v`` and rows ``rows @ x <= bounds`` in a domain.

    Rows and bounds are kept scaled. Bounds that no point meets but for rounding are those that one does meet: nothing
    that follows needs a tolerance of its own.
    """

    def __init__(
        self, domain: Simplex | Box, rows: FloatArray, bounds: FloatArray, scale: FloatArray | None = None
    ) -> None:
        self.domain = domain
        self.row_scale = constraint_scale(np.abs(rows).max(axis=1, initial=0.0), bounds) if scale is None else scale
        self.rows, self.bounds = rows / self.row_scale[:, None], bounds / self.row_scale
        # One matrix, grown by doubling: the equations, the rows, then the cuts.
        self._matrix = np.vstack([domain.equalities, self.rows])
        self._first = len(self._matrix)
        self.offsets = np.empty(0)
        self._duals = np.zeros(domain.size + self._first)  # of the last projection, where the next one starts
        self._lp = self._new_lp()
        self.inside = domain.clean(np.full(domain.size, 1.0 / domain.size))  # a point that satisfies the rows
        if len(rows):
            self._require_feasible_rows(rows, bounds)

    def add(self, slope: FloatArray, offset: float = 0.0) -> None:
        """Add the cut ``offset + slope @ x``."""
        place = self._first + self.offsets.size
        if place == len(self._matrix):
            self._matrix = np.vstack([self._matrix, np.empty((place + _SPARE, self.domain.size))])
        self._matrix[place] = slope
        self.offsets = np.append(self.offsets, offset)
        self._add_row(slope, -1.0, -offset)

    @property
    def slopes(self) -> FloatArray:
        """Return the slopes of the cuts, one a row."""
        return self._matrix[self._first : self._first + self.offsets.size]

    def keep(self, chosen: BoolArray) -> None:
        """Drop all cuts but the chosen ones."""
        first = self.domain.size + self._first
        self._duals = np.concatenate([self._duals[:first], self._cut_duals(first)[chosen]])
        kept, self.offsets = self.slopes[chosen], self.offsets[chosen]
        self.slopes[:] = kept
        gone = np.flatnonzero(~chosen) + self._first
        self._lp.deleteRows(len(gone), gone.astype(np.int32))

    def minimize(self) -> ModelMinimum:
        """Return the least value of the model and what proves it."""
        found = self._solve()
        if found is None or self._misses(found):
            self._lp.clearSolver()  # hot starts have ended on wrong objectives (HiGHS issue 3294)
            found = self._solve() or found
        return found_by_highs(found)

    def project(self, centre: FloatArray, level: float) -> FloatArray | None:
        """Return the feasible point nearest to ``centre`` with all cuts at most ``level``, or None."""
        import daqp  # noqa: PLC0415 - compiled, and needed here alone

        size, n_cuts = self.domain.size, self.offsets.size
        matrix, n_equal = self._matrix[: self._first + n_cuts], self._first - len(self.rows)
        # In terms of the step from the centre its length is all that counts: without Hessian and cost daqp has
        # nothing to factorize.
        limits = np.concatenate([np.ones(n_equal), self.bounds, min(level, _FREE) - self.offsets]) - matrix @ centre
        upper = np.concatenate([np.minimum(self.domain.most - centre, _FREE), limits])
        lower = np.concatenate([-centre, limits[:n_equal], np.full(len(self.rows) + n_cuts, -_FREE)])
        sense = np.zeros(upper.size, dtype=np.int32)
        sense[size : size + n_equal] = EQUALITY
        first = size + self._first
        start = np.concatenate([self._duals[:first], self._cut_duals(first)])
        step, _, status, found = daqp.solve(
            None, None, matrix, upper, lower, sense, primal_tol=1e-10, iter_limit=20 * upper.size, dual_start=start
        )
        if status <= 0:
            self._duals = np.zeros(first)
            return None
        self._duals = np.array(found["lam"])
        return self._feasible(centre + step)

    def proven(self, slope: FloatArray, multipliers: FloatArray) -> float:
        """Return what ``slope`` and the multipliers of the rows prove: ``slope @ x`` is not below it where rows hold.

        There ``slope @ x >= (slope + multipliers @ rows) @ x - multipliers @ bounds``, a linear function.
        """
        return self.domain.least(slope + multipliers @ self.rows) - float(multipliers @ self.bounds)

    def _misses(self, found: ModelMinimum) -> bool:
        height = found.shares @ (self.offsets + self.slopes @ found.point)
        return bool(height - found.lower > _MISMATCH * max(1.0, abs(found.lower)))

    def _cut_duals(self, first: int) -> FloatArray:
        """Return the last duals of the cuts, zero for those added since."""
        known = self._duals[first:]
        return np.concatenate([known, np.zeros(self.offsets.size - known.size)])

    def _feasible(self, point: FloatArray) -> FloatArray | None:
        """Return the point in the domain to the last bit, or None where it then violates a row."""
        cleaned = self.domain.clean(point)
        return cleaned if self._violation(cleaned) <= FEASIBLE / 2 else None

    def _violation(self, point: FloatArray) -> float:
        return float((self.rows @ point - self.bounds).max(initial=0.0))

    def _new_lp(self) -> Any:
        lp, size = empty_program("off"), self.domain.size  # presolve forgets the basis, and the hot start with it
        lp.addVars(size, np.zeros(size), np.full(size, self.domain.most))
        lp.addVar(-np.inf, np.inf)
        lp.changeColCost(size, 1.0)
        self._columns = np.arange(size + 1, dtype=np.int32)
        for equation in self.domain.equalities:
            lp.addRow(1.0, 1.0, size, self._columns[:-1], equation)
        return lp

    def _add_row(self, entries: FloatArray, last: float, bound: float) -> None:
        values = np.append(entries, last)
        self._lp.addRow(-np.inf, bound, values.size, self._columns, values)

    def _solve(self) -> ModelMinimum | None:
        self._lp.run()
        solution = self._lp.getSolution()
        if not solution.value_valid or not solution.dual_valid:
            return None
        point = self._feasible(np.array(solution.col_value)[:-1])
        duals = np.maximum(-np.array(solution.row_dual), 0.0)[self._first - len(self.rows) :]
        multipliers, shares = np.split(duals, [len(self.rows)])
        if point is None or not shares.sum() > 0:
            return None
        multipliers, shares = multipliers / shares.sum(), shares / shares.sum()
        lower = float(shares @ self.offsets) + self.proven(shares @ self.slopes, multipliers)
        return ModelMinimum(point, shares, multipliers, lower)

    def _require_feasible_rows(self, rows: FloatArray, bounds: FloatArray) -> None:
        """Minimize the largest violation; its multipliers prove infeasibility where it is more than rounding."""
        for row, bound in zip(self.rows, self.bounds.tolist(), strict=True):
            self._add_row(row, -1.0, bound)
        self._lp.run()
        solution, last, n_equal = self._lp.getSolution(), self.domain.size, self._first - len(rows)
        self.inside = self.domain.clean(np.array(solution.col_value)[:last])
        if self._violation(self.inside) > FEASIBLE:
            duals = np.maximum(-np.array(solution.row_dual)[n_equal:], 0.0)
            multipliers = np.where(duals > FEASIBLE, duals, 0.0) / self.row_scale
            raise InfeasibleRows(rows, bounds, multipliers / multipliers.sum())
        self.bounds = np.maximum(self.bounds, self.rows @ self.inside)
        for row, bound in enumerate(self.bounds.tolist(), start=n_equal):
            self._lp.changeRowBounds(row, -np.inf, bound)
            self._lp.changeCoeff(row, last, 0.0)  # from here on the last variable is the model's value alone
