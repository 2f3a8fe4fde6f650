"""Linear programs solved by HiGHS, cutting planes over them, and the solutions that solvers return.

``MixtureSolution`` is what the mixture solvers return, and ``InfeasibleRows`` the error for constraints that no mixture
meets. ``solve_linear_program`` hands a program written out in full to HiGHS. ``minimize_on_simplex`` solves the small
convex quadratic program that Newton's method for a mixture needs in every step.

``CuttingPlanes`` is a model of a convex function, on the simplex or in a box: the largest of its cuts, which are affine
functions that are nowhere above it. Level bundle methods need two things from the model: its least value (a linear
program, started hot from the last one), and the point nearest to a centre at which it is below a level (a quadratic
program, by a dual active-set method). HiGHS and DAQP were the fastest solvers measured at these sizes.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.budget import check_budget
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


class Progress(NamedTuple):
    """What a callback gets after each iteration."""

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
        bound = float(multipliers @ bounds)
        self.violation = least - bound
        names = ", ".join(f"{row} (multiplier {multipliers[row]:.4g})" for row in self.rows)
        super().__init__(
            f"No mixture satisfies rows @ mixture <= bounds: row {names} together allow at most {bound:.10g}, but "
            f"every model has at least {least:.10g}. Relax one of these bounds."
        )


_FEASIBILITY = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_OPTIONS = {"output_flag": False, "threads": 1, **_FEASIBILITY}


class LinearSolution(NamedTuple):
    """An optimal point and the duals of the rows."""

    point: FloatArray
    duals: FloatArray
    n_iter: int


# The message where HiGHS finds no solution of a program that is known to have one.
HIGHS_FAILED = "HiGHS found no solution of a bounded and feasible linear program; please report this."


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
    import highspy  # noqa: PLC0415 - compiled, and needed in few places

    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = matrix.shape
    model.col_cost_, model.col_lower_, model.col_upper_ = cost, lower, upper
    model.row_lower_, model.row_upper_ = within
    entries = model.a_matrix_
    entries.format_ = highspy.MatrixFormat.kRowwise
    if isinstance(matrix, np.ndarray):  # in a quarter of the time that a sparse array takes to be made
        rows, columns = np.nonzero(matrix)
        starts = np.zeros(len(matrix) + 1, dtype=np.int32)
        np.cumsum(np.count_nonzero(matrix, axis=1), out=starts[1:])
        entries.start_, entries.index_, entries.value_ = starts, columns.astype(np.int32), matrix[rows, columns]
    else:
        import scipy.sparse as sp  # noqa: PLC0415 - slow to import

        by_row = sp.csr_array(matrix)
        entries.start_, entries.index_, entries.value_ = by_row.indptr, by_row.indices, by_row.data
    check_budget()
    for presolve in ("choose", "off"):  # where constraints leave a point, presolve may call that unbounded
        lp = _empty_program(presolve)
        lp.passModel(model)
        lp.run()
        solution = lp.getSolution()
        if lp.getModelStatus() == highspy.HighsModelStatus.kOptimal and solution.dual_valid:
            n_iter = int(lp.getInfo().simplex_iteration_count)
            return LinearSolution(np.array(solution.col_value), np.array(solution.row_dual), n_iter)
    return None


def _empty_program(presolve: str) -> Any:
    """Return HiGHS without a program yet, set as all linear programs here are solved."""
    import highspy  # noqa: PLC0415 - as above

    lp = highspy.Highs()
    for option, setting in {**_OPTIONS, "presolve": presolve}.items():
        lp.setOptionValue(option, setting)
    return lp


EQUALITY = 5  # daqp's mark for an equality


def minimize_on_simplex(hessian: FloatArray, cost: FloatArray) -> FloatArray | None:
    """Return the minimizer of ``x @ hessian @ x / 2 + cost @ x`` over the simplex, or None where rounding prevails."""
    import daqp  # noqa: PLC0415 - compiled, and needed here alone

    size = cost.size
    upper, lower, sense = np.ones(size + 1), np.append(np.zeros(size), 1.0), np.zeros(size + 1, dtype=np.int32)
    sense[size] = EQUALITY
    limits = {"primal_tol": 1e-11, "iter_limit": 50 * size}
    target, _, status, _ = daqp.solve(hessian, cost, np.ones((1, size)), upper, lower, sense, **limits)
    if status <= 0 or not target.sum() > 0:
        return None
    target = np.maximum(target, 0.0)
    return np.asarray(target / target.sum())


# Between the two objectives of a linear program that was solved, before it is solved anew: the cuts are of functions
# with values of about 1, whatever their units were.
_MISMATCH = 1e-7
_SPARE = 32  # rows beside the doubled ones
# Entries of a row, in parts of its largest, that are rounding: a small scale blows them up, to a ray without an end.
_ROUNDING = 1e-15
_FREE = 1e30  # what daqp takes for no bound


class ModelMinimum(NamedTuple):
    """A minimizer of the model, and multipliers that prove the lower bound."""

    point: FloatArray
    shares: FloatArray  # on cuts, on the simplex
    multipliers: FloatArray  # of the rows, >= 0
    lower: float


class CuttingPlanes:
    """Cuts ``offset + slope @ x <= v`` and rows ``rows @ x <= bounds`` in a domain.

    The domain is the simplex, of mixtures that are non-negative and sum to 1, or where ``most`` is given the box of
    multipliers from 0 to ``most``. Rows and bounds are kept scaled. Bounds that no point meets but for rounding are
    those that one does meet: nothing that follows needs a tolerance of its own.
    """

    def __init__(
        self,
        size: int,
        rows: FloatArray,
        bounds: FloatArray,
        scale: FloatArray | None = None,
        *,
        most: float | None = None,
    ) -> None:
        self.size, self.most = size, most
        self.row_scale = constraint_scale(np.abs(rows).max(axis=1, initial=0.0), bounds) if scale is None else scale
        size_of = _ROUNDING * np.abs(rows).max(axis=1, initial=0.0)  # of what is left where equal numbers cancel
        rows = np.where(np.abs(rows) <= size_of[:, None], 0.0, rows)
        bounds = np.where(np.abs(bounds) <= size_of, 0.0, bounds)
        self.rows, self.bounds = rows / self.row_scale[:, None], bounds / self.row_scale
        # One matrix, grown by doubling: the equation of the simplex, the rows, then the cuts.
        self._n_equal = int(most is None)
        self._matrix = np.vstack([np.ones((self._n_equal, size)), self.rows])
        self._first = len(self._matrix)
        self.offsets, self.slopes = np.empty(0), np.empty((0, size))  # of the cuts
        self._duals = np.zeros(size + self._first)  # of the last projection, where the next one starts
        self._lp = _empty_program("off")  # presolve forgets the basis, and the hot start with it
        self._lp.addVars(size, np.zeros(size), np.full(size, np.inf if most is None else most))
        self._lp.addVar(-np.inf, np.inf)
        self._lp.changeColCost(size, 1.0)
        self._columns = np.arange(size + 1, dtype=np.int32)
        if most is None:
            self._lp.addRow(1.0, 1.0, size, self._columns[:-1], np.ones(size))
        self.inside = self.clean(np.full(size, 1.0 / size))  # a point that satisfies the rows
        if not len(rows):
            return
        # Minimize the largest violation; its multipliers prove infeasibility where it is more than rounding.
        for row, bound in zip(self.rows, self.bounds.tolist(), strict=True):
            self._lp.addRow(-np.inf, bound, size + 1, self._columns, np.append(row, -1.0))
        check_budget()
        self._lp.run()
        solution = self._lp.getSolution()
        self.inside = self.clean(np.array(solution.col_value)[:-1])
        if (self.rows @ self.inside - self.bounds).max() > FEASIBLE:
            duals = np.maximum(-np.array(solution.row_dual)[self._n_equal :], 0.0)
            multipliers = np.where(duals > FEASIBLE, duals, 0.0) / self.row_scale
            raise InfeasibleRows(rows, bounds, multipliers / multipliers.sum())
        self.bounds = np.maximum(self.bounds, self.rows @ self.inside)
        for row, bound in enumerate(self.bounds.tolist(), start=self._n_equal):
            self._lp.changeRowBounds(row, -np.inf, bound)
            self._lp.changeCoeff(row, size, 0.0)  # from here on the last variable is the model's value alone

    def clean(self, point: FloatArray) -> FloatArray:
        """Return a point inside of the domain to the last bit."""
        if self.most is not None:
            return np.clip(point, 0.0, self.most)
        mixture = np.maximum(point, 0.0)
        return np.asarray(mixture / mixture.sum())

    def add(self, slope: FloatArray, offset: float = 0.0) -> None:
        """Add the cut ``offset + slope @ x``."""
        place = self._first + self.offsets.size
        if place == len(self._matrix):
            self._matrix = np.vstack([self._matrix, np.empty((place + _SPARE, self.size))])
        self._matrix[place] = slope
        self.offsets, self._duals = np.append(self.offsets, offset), np.append(self._duals, 0.0)
        self.slopes = self._matrix[self._first : place + 1]
        self._lp.addRow(-np.inf, -offset, self.size + 1, self._columns, np.append(slope, -1.0))

    def keep(self, is_kept: BoolArray) -> None:
        """Drop all cuts but the chosen ones."""
        self._duals = self._duals[np.append(np.ones(self.size + self._first, dtype=np.bool_), is_kept)]
        slopes, self.offsets = self.slopes[is_kept], self.offsets[is_kept]
        self.slopes = self.slopes[: len(slopes)]
        self.slopes[:] = slopes
        places = np.flatnonzero(~is_kept) + self._first
        self._lp.deleteRows(len(places), places.astype(np.int32))

    def minimize(self) -> ModelMinimum:
        """Return the least value of the model and what proves it."""
        minimum = None
        for is_again in (False, True):
            if is_again:
                self._lp.clearSolver()  # hot starts have ended on wrong objectives (HiGHS issue 3294)
            self._lp.run()
            solution = self._lp.getSolution()
            if not solution.value_valid or not solution.dual_valid:
                continue
            point = self.clean(np.array(solution.col_value)[:-1])
            duals = np.maximum(-np.array(solution.row_dual), 0.0)[self._n_equal :]
            multipliers, shares = np.split(duals, [len(self.rows)])
            if not shares.sum() > 0 or (self.rows @ point - self.bounds).max(initial=0.0) > FEASIBLE / 2:
                continue
            multipliers, shares = multipliers / shares.sum(), shares / shares.sum()
            lower = float(shares @ self.offsets) + self.proven(shares @ self.slopes, multipliers)
            minimum = ModelMinimum(point, shares, multipliers, lower)
            if shares @ (self.offsets + self.slopes @ point) - lower <= _MISMATCH * max(1.0, abs(lower)):
                break
        if minimum is None:
            raise RuntimeError(HIGHS_FAILED)
        return minimum

    def project(self, centre: FloatArray, level: float) -> FloatArray | None:
        """Return the feasible point nearest to ``centre`` with all cuts at most ``level``, or None."""
        import daqp  # noqa: PLC0415 - compiled, and needed here alone

        size, n_cuts, n_equal = self.size, self.offsets.size, self._n_equal
        matrix = self._matrix[: self._first + n_cuts]
        # In terms of the step from the centre its length is all that counts: without Hessian and cost daqp has
        # nothing to factorize.
        limits = np.concatenate([np.ones(n_equal), self.bounds, min(level, _FREE) - self.offsets]) - matrix @ centre
        upper = np.concatenate([np.minimum((np.inf if self.most is None else self.most) - centre, _FREE), limits])
        lower = np.concatenate([-centre, limits[:n_equal], np.full(len(self.rows) + n_cuts, -_FREE)])
        sense = np.zeros(upper.size, dtype=np.int32)
        sense[size : size + n_equal] = EQUALITY
        limit, start = 20 * upper.size, self._duals
        step, _, status, details = daqp.solve(
            None, None, matrix, upper, lower, sense, primal_tol=1e-10, iter_limit=limit, dual_start=start
        )
        if status <= 0:
            self._duals = np.zeros(upper.size)
            return None
        self._duals = np.array(details["lam"])
        point = self.clean(centre + step)
        return point if (self.rows @ point - self.bounds).max(initial=0.0) <= FEASIBLE / 2 else None

    def proven(self, slope: FloatArray, multipliers: FloatArray) -> float:
        """Return what ``slope`` and the multipliers of the rows prove: ``slope @ x`` is not below it where rows hold.

        There ``slope @ x >= (slope + multipliers @ rows) @ x - multipliers @ bounds``, a linear function.
        """
        slope = slope + multipliers @ self.rows  # least at a corner of the domain
        least = float(slope.min()) if self.most is None else self.most * float(np.minimum(slope, 0.0).sum())
        return least - float(multipliers @ self.bounds)
