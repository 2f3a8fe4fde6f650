"""Linear programs solved by HiGHS, cutting planes over them, and the solutions that solvers return.

What the mixture solvers return, and the error for constraints that no mixture meets.

A linear program written out in full, solved by HiGHS.

A small convex quadratic program over the simplex, as Newton's method for a mixture asks for in every step.

A convex function known by its cuts: affine functions that are nowhere above it, on the simplex or in a box.

Their largest is a model from below. Level bundle methods ask it two questions: its least value (a linear program,
started hot from the last one) and the point nearest to a centre at which it is below a level (a quadratic program, by a
dual active-set method). HiGHS and DAQP answer both faster than anything else that was measured at these sizes.
"""

import math
from typing import Any, NamedTuple, TypeVar

import numpy as np

from counterpoise._base.types import BoolArray, FloatArray

# Constraints hold up to this part of their scale: what is less is rounding, for every solver, search and certificate.
FEASIBLE = 1e-9
# Part of the size of its terms below which the scale of a constraint does not fall: where the terms cancel in every
# model, what is left is their rounding, about 1e-16 of them, and must stay far below ``FEASIBLE``.
_LEAST_SCALE = 1e-4
_FAR = 1e-6  # part of a bound that may set the scale: one that is a million times larger than the row never binds


def constraint_scale(entries: FloatArray, bounds: FloatArray, sizes: FloatArray | None = None) -> FloatArray:
    """Return what ``row @ x <= bound`` is divided by, so that ``FEASIBLE`` means the same for all constraints.

    Parameters
    ----------
    entries : array of shape (n_rows,)
        How large the left side of each constraint can be.
    bounds : array of shape (n_rows,)
    sizes : array of shape (n_rows,), optional
        How large the terms are whose sum or difference each row is. Default: as large as the row.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.solvers.linear_program import constraint_scale
    >>> constraint_scale(np.array([0.3, 1e-16]), np.array([0.2, 0.0]), sizes=np.array([1.0, 2.0]))
    array([3.e-01, 2.e-04])
    """
    scale = np.maximum(entries, np.abs(bounds) * _FAR)
    if sizes is not None:
        scale = np.maximum(scale, _LEAST_SCALE * sizes)
    return np.asarray(np.where(scale > 0, scale, 1.0))


def power_of_two(size: float) -> float:
    """Return the power of two that a size is of, 1 where it is 0: what is divided by it keeps every digit.

    Examples
    --------
    >>> from counterpoise.solvers.linear_program import power_of_two
    >>> power_of_two(7.0), power_of_two(0.3), power_of_two(0.0)
    (4.0, 0.25, 1.0)
    """
    return math.ldexp(1.0, math.frexp(size)[1] - 1) if size > 0 else 1.0


class MixtureSolution(NamedTuple):
    """Both players' strategies and the bounds that they prove on the value.

    ``value`` and ``lower`` are computed from the vectors beside them, not taken from a solver:
    whatever went wrong on the way, the optimum lies between the two.
    """

    mixture: FloatArray  # on models, on the simplex
    weights: FloatArray  # on samples; for a CVaR on the simplex, entries <= cap
    multipliers: FloatArray  # of the constraint rows, >= 0
    value: float  # risk of losses @ mixture: an upper bound
    lower: float  # offset + min over models of weights @ losses (+ multipliers @ rows) - multipliers @ bounds
    n_iter: int
    offset: float = 0.0  # the risk is nowhere below offset + weights @ losses @ mixture; 0 for a CVaR

    @property
    def gap(self) -> float:
        """Return ``value - lower``: the optimum is at most this far below ``value``."""
        return self.value - self.lower

    def in_units(self, shift: float, span: float) -> "MixtureSolution":
        """Return the solution for losses ``shift + span * losses``."""
        value, lower = shift + span * self.value, shift + span * self.lower  # of a CVaR, which moves with the losses
        return self._replace(multipliers=self.multipliers * span, value=value, lower=lower)


class Progress(NamedTuple):
    """What a callback is told after each iteration."""

    n_iter: int
    value: float
    lower: float

    @property
    def gap(self) -> float:
        """Return ``value - lower``."""
        return self.value - self.lower


class InfeasibleRows(ValueError):  # noqa: N818 - named for the state it reports, as InfeasibleGoals is
    """No mixture satisfies ``rows @ mixture <= bounds``.

    The multipliers prove it: every model, hence every mixture, has ``multipliers @ rows @ mixture``
    above ``multipliers @ bounds``.

    Attributes
    ----------
    rows : array of shape (n_conflicting,)
        Indices of the rows that conflict.
    multipliers : array of shape (n_rows,)
        Non-negative, summing to 1, zero on rows that play no part.
    violation : float
        The proof's margin: at least this weighted amount is violated by every mixture.
    """

    __module__ = "counterpoise.solvers"

    def __init__(self, rows: FloatArray, bounds: FloatArray, multipliers: FloatArray) -> None:
        self.multipliers = multipliers
        self.rows = np.flatnonzero(multipliers)
        least = float((multipliers @ rows).min())
        allowed = float(multipliers @ bounds)
        self.violation = least - allowed
        named = ", ".join(f"{row} (multiplier {multipliers[row]:.4g})" for row in self.rows)
        super().__init__(
            f"No mixture satisfies rows @ mixture <= bounds: row {named} together ask for at most "
            f"{allowed:.10g}, but every model has at least {least:.10g}. Relax one of these bounds."
        )


Found = TypeVar("Found")

_OPTIONS = {
    "output_flag": False,
    "threads": 1,
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}


class LinearSolution(NamedTuple):
    """An optimal point and the duals of the rows."""

    point: FloatArray
    duals: FloatArray
    n_iter: int


def found_by_highs(found: Found | None) -> Found:
    """Return the solution of a program that is known to have one: where it is None, HiGHS has failed."""
    if found is None:
        raise RuntimeError("HiGHS found no solution of a bounded and feasible linear program; please report this.")
    return found


def solve_linear_program(
    cost: FloatArray, matrix: Any, within: tuple[FloatArray, FloatArray], *, lower: FloatArray, upper: FloatArray
) -> LinearSolution | None:
    """Return the minimizer of ``cost @ x`` with x from ``lower`` to ``upper`` and ``matrix @ x`` within two vectors.

    None where HiGHS finds none: the program has no solution, or a feasible set with next to no room.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.solvers.linear_program import solve_linear_program
    >>> one, free = np.ones(1), np.full(2, np.inf)
    >>> solve_linear_program(np.array([2.0, 1.0]), np.ones((1, 2)), (one, one), lower=np.zeros(2), upper=free).point
    array([0., 1.])
    """
    model = _model(cost, matrix, within, lower, upper)
    for presolve in ("choose", "off"):  # where constraints leave a point, presolve may call that unbounded
        found = _run(_program(model, presolve))
        if found is not None:
            return found
    return None


class HotProgram:
    """A linear program that is solved again with other costs and right sides, each time from where it ended last.

    Arguments as for ``solve_linear_program``. A hot start may end on a wrong objective (HiGHS issue 3294): compute
    bounds from what is returned, and call ``forget`` before another try where they are too far apart.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.solvers.linear_program import HotProgram
    >>> free, one = np.full(2, np.inf), np.ones(1)
    >>> program = HotProgram(np.array([2.0, 1.0]), np.ones((1, 2)), (one, one), lower=np.zeros(2), upper=free)
    >>> program.solve(np.array([1.0, 2.0]), (one, 3 * one)).point
    array([1., 0.])
    """

    def __init__(
        self,
        cost: FloatArray,
        matrix: Any,
        within: tuple[FloatArray, FloatArray],
        *,
        lower: FloatArray,
        upper: FloatArray,
    ) -> None:
        self._lp = _program(_model(cost, matrix, within, lower, upper), "off")
        self._columns, self._rows = (np.arange(size, dtype=np.int32) for size in (cost.size, within[0].size))

    def solve(self, cost: FloatArray, within: tuple[FloatArray, FloatArray]) -> LinearSolution | None:
        """Return the minimizer for other costs and vectors that the rows are within; None as above."""
        self._lp.changeColsCost(cost.size, self._columns, cost)
        self._lp.changeRowsBounds(self._rows.size, self._rows, *within)
        return _run(self._lp)

    @property
    def is_infeasible(self) -> bool:
        """Tell whether the last solve proved that there is no solution."""
        import highspy  # noqa: PLC0415 - as above

        return bool(self._lp.getModelStatus() == highspy.HighsModelStatus.kInfeasible)

    def forget(self) -> None:
        """Begin anew at the next solve."""
        self._lp.clearSolver()


def _model(
    cost: FloatArray, matrix: Any, within: tuple[FloatArray, FloatArray], lower: FloatArray, upper: FloatArray
) -> Any:
    import highspy  # noqa: PLC0415 - compiled, and needed here alone

    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = matrix.shape
    model.col_cost_, model.col_lower_, model.col_upper_ = cost, lower, upper
    model.row_lower_, model.row_upper_ = within
    entries = model.a_matrix_
    entries.format_ = highspy.MatrixFormat.kRowwise
    entries.start_, entries.index_, entries.value_ = _by_row(matrix)
    return model


def _by_row(matrix: Any) -> tuple[Any, Any, Any]:
    """Return where each row begins, and the columns and values of the entries that are not 0."""
    if isinstance(matrix, np.ndarray):  # in a quarter of the time that a sparse array takes to be made
        rows, columns = np.nonzero(matrix)
        starts = np.zeros(len(matrix) + 1, dtype=np.int32)
        np.cumsum(np.count_nonzero(matrix, axis=1), out=starts[1:])
        return starts, columns.astype(np.int32), matrix[rows, columns]
    import scipy.sparse as sp  # noqa: PLC0415 - slow to import

    by_row = sp.csr_array(matrix)
    return by_row.indptr, by_row.indices, by_row.data


def _program(model: Any, presolve: str) -> Any:
    lp = empty_program(presolve)
    lp.passModel(model)
    return lp


def empty_program(presolve: str) -> Any:
    """Return HiGHS without a program yet, set as all linear programs here are solved."""
    import highspy  # noqa: PLC0415 - as above

    lp = highspy.Highs()
    for option, setting in {**_OPTIONS, "presolve": presolve}.items():
        lp.setOptionValue(option, setting)
    return lp


def _run(lp: Any) -> LinearSolution | None:
    import highspy  # noqa: PLC0415 - as above

    lp.run()
    solution = lp.getSolution()
    if lp.getModelStatus() != highspy.HighsModelStatus.kOptimal or not solution.dual_valid:
        return None
    n_iter = int(lp.getInfo().simplex_iteration_count)
    return LinearSolution(np.array(solution.col_value), np.array(solution.row_dual), n_iter)


EQUALITY = 5  # daqp's mark for an equality


def minimize_on_simplex(hessian: FloatArray, cost: FloatArray) -> FloatArray | None:
    """Return the minimizer of ``x @ hessian @ x / 2 + cost @ x`` over the simplex, or None where rounding prevails."""
    import daqp  # noqa: PLC0415 - compiled, and needed here alone

    size = cost.size
    target, _, status, _ = daqp.solve(
        hessian,
        cost,
        np.ones((1, size)),
        np.append(np.ones(size), 1.0),
        np.append(np.zeros(size), 1.0),
        np.append(np.zeros(size, dtype=np.int32), np.int32(EQUALITY)),
        primal_tol=1e-11,
        iter_limit=50 * size,
    )
    if status <= 0 or not target.sum() > 0:
        return None
    target = np.maximum(target, 0.0)
    return np.asarray(target / target.sum())


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
