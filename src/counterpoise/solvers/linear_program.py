"""A linear program written out in full, solved by HiGHS."""

from typing import Any, NamedTuple, TypeVar

import numpy as np

from counterpoise._base.types import FloatArray

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
