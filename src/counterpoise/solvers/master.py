"""The small problem of the bundle method: cuts and constraints on the mixture alone.

It answers two questions about the model ``max over cuts of slope @ mixture`` on the feasible mixtures: its
least value (a linear program, started hot from the last one) and the point nearest to a centre at which it is
below a level (a quadratic program, by a dual active-set method).
"""

from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import BoolArray, FloatArray
from counterpoise.solvers.result import FEASIBLE, InfeasibleRows, constraint_scale

_MISMATCH = 1e-7  # of the two objectives of a linear program that was solved
_SPARE = 32  # rows beside the doubled ones
_FREE = 1e30  # what daqp takes for no bound
_EQUALITY = 5  # daqp's mark for an equality


class ModelMinimum(NamedTuple):
    """A minimizer of the cutting-plane model, and multipliers that prove the lower bound."""

    mixture: FloatArray
    shares: FloatArray  # on cuts, on the simplex
    multipliers: FloatArray  # of the rows, >= 0
    lower: float


class Master:
    """Cuts ``slope @ mixture <= v`` and rows ``rows @ mixture <= bounds`` on the simplex.

    Rows and bounds are kept scaled. Bounds that no mixture meets but for rounding are those that it does meet: nothing
    that follows needs a tolerance of its own.
    """

    def __init__(self, n_models: int, rows: FloatArray, bounds: FloatArray, scale: FloatArray | None = None) -> None:
        self.n_models = n_models
        self.row_scale = constraint_scale(np.abs(rows).max(axis=1, initial=0.0), bounds) if scale is None else scale
        self.rows, self.bounds = rows / self.row_scale[:, None], bounds / self.row_scale
        # One matrix, grown by doubling: the equality, the rows, then the cuts.
        self._matrix = np.vstack([np.ones((1, n_models)), self.rows])
        self.n_cuts = 0
        self._duals = np.zeros(n_models + len(self._matrix))  # of the last projection, where the next one starts
        self._lp = self._new_lp()
        self.inside = np.full(n_models, 1.0 / n_models)  # a mixture that satisfies the rows
        if len(rows):
            self._require_feasible_rows(rows, bounds)

    def add(self, slope: FloatArray) -> None:
        """Add the cut ``slope @ mixture``."""
        place = 1 + len(self.rows) + self.n_cuts
        if place == len(self._matrix):
            self._matrix = np.vstack([self._matrix, np.empty_like(self._matrix), np.empty((_SPARE, self.n_models))])
        self._matrix[place] = slope
        self.n_cuts += 1
        self._add_row(slope, -1.0, 0.0)

    @property
    def slopes(self) -> FloatArray:
        """Return the slopes of the cuts, one a row."""
        first = 1 + len(self.rows)
        return self._matrix[first : first + self.n_cuts]

    def keep(self, chosen: BoolArray) -> None:
        """Drop all cuts but the chosen ones."""
        first = self.n_models + 1 + len(self.rows)
        self._duals = np.concatenate([self._duals[:first], self._cut_duals(first)[chosen]])
        kept = self.slopes[chosen]
        self.n_cuts = len(kept)
        self.slopes[:] = kept
        gone = np.flatnonzero(~chosen) + 1 + len(self.rows)
        self._lp.deleteRows(len(gone), gone.astype(np.int32))

    def minimize(self) -> ModelMinimum:
        """Return the least value of the model and what proves it."""
        found = self._solve()
        if found is None or found.mixture @ self.slopes.T @ found.shares - found.lower > _MISMATCH:
            self._lp.clearSolver()  # hot starts have ended on wrong objectives (HiGHS issue 3294)
            found = self._solve() or found
        if found is None:
            raise RuntimeError("HiGHS found no solution of a bounded and feasible linear program; please report this.")
        return found

    def project(self, centre: FloatArray, level: float) -> FloatArray | None:
        """Return the feasible mixture nearest to ``centre`` with all cuts at most ``level``, or None."""
        import daqp  # noqa: PLC0415 - compiled, and needed here alone

        n_models, n_rows, n_cuts = self.n_models, len(self.rows), self.n_cuts
        matrix = self._matrix[: 1 + n_rows + n_cuts]
        # In terms of the step from the centre its length is all that counts: without Hessian and cost daqp has
        # nothing to factorize.
        limits = np.concatenate([[1.0], self.bounds, np.full(n_cuts, min(level, _FREE))]) - matrix @ centre
        upper = np.concatenate([np.full(n_models, _FREE), limits])
        lower = np.concatenate([-centre, limits[:1], np.full(n_rows + n_cuts, -_FREE)])
        sense = np.zeros(upper.size, dtype=np.int32)
        sense[n_models] = _EQUALITY
        first = n_models + 1 + n_rows
        start = np.concatenate([self._duals[:first], self._cut_duals(first)])
        step, _, status, found = daqp.solve(
            None, None, matrix, upper, lower, sense, primal_tol=1e-10, iter_limit=20 * upper.size, dual_start=start
        )
        if status <= 0:
            self._duals = np.zeros(first)
            return None
        self._duals = np.array(found["lam"])
        return self._cleaned(centre + step)

    def _cut_duals(self, first: int) -> FloatArray:
        """Return the last duals of the cuts, zero for those added since."""
        known = self._duals[first:]
        return np.concatenate([known, np.zeros(self.n_cuts - known.size)])

    def _cleaned(self, point: FloatArray) -> FloatArray | None:
        """Return the point on the simplex to the last bit, or None where it then violates a row."""
        mixture = np.maximum(point, 0.0)
        mixture /= mixture.sum()
        return mixture if self._violation(mixture) <= FEASIBLE / 2 else None

    def _violation(self, mixture: FloatArray) -> float:
        return float((self.rows @ mixture - self.bounds).max(initial=0.0))

    def _new_lp(self) -> Any:
        import highspy  # noqa: PLC0415 - compiled, and needed here alone

        lp = highspy.Highs()
        for option, setting in _HIGHS_OPTIONS.items():
            lp.setOptionValue(option, setting)
        n_models = self.n_models
        lp.addVars(n_models, np.zeros(n_models), np.full(n_models, np.inf))
        lp.addVar(-np.inf, np.inf)
        lp.changeColCost(n_models, 1.0)
        self._columns = np.arange(n_models + 1, dtype=np.int32)
        lp.addRow(1.0, 1.0, n_models, self._columns[:-1], np.ones(n_models))
        return lp

    def _add_row(self, entries: FloatArray, last: float, bound: float) -> None:
        values = np.append(entries, last)
        self._lp.addRow(-np.inf, bound, values.size, self._columns, values)

    def _solve(self) -> ModelMinimum | None:
        self._lp.run()
        solution = self._lp.getSolution()
        if not solution.value_valid or not solution.dual_valid:
            return None
        mixture = self._cleaned(np.array(solution.col_value)[:-1])
        duals = np.maximum(-np.array(solution.row_dual)[1:], 0.0)
        multipliers, shares = np.split(duals, [len(self.rows)])
        if mixture is None or not shares.sum() > 0:
            return None
        multipliers, shares = multipliers / shares.sum(), shares / shares.sum()
        lower = lower_bound(shares @ self.slopes, multipliers, self.rows, self.bounds)
        return ModelMinimum(mixture, shares, multipliers, lower)

    def _require_feasible_rows(self, rows: FloatArray, bounds: FloatArray) -> None:
        """Minimize the largest violation; its multipliers prove infeasibility where it is more than rounding."""
        for row, bound in zip(self.rows, self.bounds.tolist(), strict=True):
            self._add_row(row, -1.0, bound)
        self._lp.run()
        solution, last = self._lp.getSolution(), self.n_models
        point = np.maximum(np.array(solution.col_value)[:last], 0.0)
        self.inside = point / point.sum()
        if self._violation(self.inside) > FEASIBLE:
            duals = np.maximum(-np.array(solution.row_dual)[1:], 0.0)
            multipliers = np.where(duals > FEASIBLE, duals, 0.0) / self.row_scale
            raise InfeasibleRows(rows, bounds, multipliers / multipliers.sum())
        self.bounds = np.maximum(self.bounds, self.rows @ self.inside)
        for row, bound in enumerate(self.bounds.tolist(), start=1):
            self._lp.changeRowBounds(row, -np.inf, bound)
            self._lp.changeCoeff(row, last, 0.0)  # from here on the last variable is the model's value alone


_HIGHS_OPTIONS = {
    "output_flag": False,
    "threads": 1,
    "presolve": "off",  # it forgets the basis, and the hot start with it
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}


def lower_bound(slope: FloatArray, multipliers: FloatArray, rows: FloatArray, bounds: FloatArray) -> float:
    """Return what ``slope`` and the multipliers of the rows prove: no feasible mixture is below it.

    For every feasible mixture ``slope @ mixture >= (slope + multipliers @ rows) @ mixture - multipliers @ bounds``,
    and a linear function on the simplex is least at one of its corners.
    """
    return float((slope + multipliers @ rows).min() - multipliers @ bounds)
