"""Why linear constraints cannot hold: which of them conflict, how little must be given up, and where.

The constraints are ``matrix @ x <= bounds`` with x in the unit box (each prediction between 0 and 1) or on the simplex
(a mixture of models). Everything here is a handful of small linear programs, solved by HiGHS.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from counterpoise._base.checks import check_choice
from counterpoise._base.types import ArrayLike, FloatArray, IntArray
from counterpoise.solvers.linear_program import FEASIBLE, HIGHS_FAILED, constraint_scale, solve_linear_program

__all__ = ["Conflict", "can_hold", "find_conflict", "least_point", "least_relaxation", "merge_columns"]

_DOMAINS = ("box", "simplex")

Domain = Literal["box", "simplex"]


class Conflict(NamedTuple):
    """Constraints that cannot all hold.

    ``members`` is irreducible: without the constraints of any one owner the others can hold.
    """

    members: IntArray  # indices of constraints, ascending
    least_violation: float  # the least sum over owners of the most that their constraints are exceeded by


def can_hold(matrix: Any, bounds: ArrayLike, *, scale: ArrayLike | None = None, domain: Domain = "box") -> bool:
    """Return whether some x in the domain has ``matrix @ x <= bounds``, up to ``FEASIBLE``; arguments as below."""
    program = _ConflictProgram(matrix, bounds, scale, domain)
    return program.holding(np.arange(program.n_constraints)) is not None


def find_conflict(
    matrix: Any,
    bounds: ArrayLike,
    *,
    scale: ArrayLike | None = None,
    domain: Domain = "box",
    owners: ArrayLike | None = None,
) -> Conflict | None:
    """Return why no x in the domain has ``matrix @ x <= bounds``, or None where one has.

    Parameters
    ----------
    matrix : array or sparse array of shape (n_constraints, n_variables)
    bounds : array of shape (n_constraints,)
    scale : array of shape (n_constraints,), optional
        What each constraint is divided by: up to ``FEASIBLE`` of it may be missed. Default: how large its left side can
        be.
    domain : {"box", "simplex"}
        Each entry of x between 0 and 1, or all of them non-negative with sum 1.
    owners : array of int of shape (n_constraints,), optional
        Constraints of one owner stay or leave together. Default: each its own.

    Returns
    -------
    Conflict or None

    Examples
    --------
    The first constraint asks for x >= 0.9, the third for x <= 0.2; the second conflicts with neither.

    >>> from counterpoise.solvers.conflicts import find_conflict
    >>> solution = find_conflict([[-1.0], [1.0], [1.0]], [-0.9, 0.95, 0.2])
    >>> solution.members.tolist(), round(solution.least_violation, 6)
    ([0, 2], 0.7)
    """
    program = _ConflictProgram(matrix, bounds, scale, domain)
    everything = np.arange(program.n_constraints)
    if program.holding(everything) is not None:
        return None
    members, owner_of = everything, everything if owners is None else np.asarray(owners)
    for owner in np.unique(owner_of):  # drop one after the other where the rest still conflicts (the deletion filter)
        rest = members[owner_of[members] != owner]
        if program.holding(rest) is None:
            members = rest
    return Conflict(members, program.least_violation(members, owner_of[members]))


def least_relaxation(
    matrix: Any,
    bounds: ArrayLike,
    place: int,
    slope: tuple[ArrayLike, float],
    *,
    scale: ArrayLike | None = None,
    domain: Domain = "box",
) -> float | None:
    """Return by how little one constraint must be relaxed to hold beside all others, or None where that is no help.

    Relaxed by ``amount`` it reads ``(matrix[place] - amount * slope[0]) @ x <= bounds[place] + amount * slope[1]``,
    where ``slope[0] @ x + slope[1]`` is not negative in the domain: the least ratio of two linear functions, which is
    a linear program by itself after Charnes and Cooper (1962). It may be negative, where the constraint has room.

    Examples
    --------
    x >= 0.9 and x <= 0.2 conflict; the first can hold as x >= 0.2.

    >>> from counterpoise.solvers.conflicts import least_relaxation
    >>> round(least_relaxation([[-1.0], [1.0]], [-0.9, 0.2], 0, ([0.0], 1.0)), 6)
    0.7
    """
    program = _ConflictProgram(matrix, bounds, scale, domain, np.asarray(slope[0], dtype=np.float64)[None])
    others = np.delete(np.arange(program.n_constraints), place)
    inside = program.holding(others)
    if inside is None:
        return None
    limits = np.maximum(program.limits[others], program.unit_rows[others] @ inside)  # that they hold but for rounding
    # In the variables x / divisor and 1 / divisor the ratio, its limits and the domain are linear.
    cost = np.append(_dense(program.matrix[[place]]), -program.bounds[place])
    rows = _beside(program.unit_rows[others], -limits[:, None])
    divisor = np.append(_dense(program.extra), float(slope[1]))
    cost_unit, unit = _largest(cost), _largest(divisor)  # so that a solver's tolerances mean something
    solution = program.solve(cost / cost_unit, rows, np.zeros(others.size), divisor / unit)
    return None if solution is None else float(cost / cost_unit @ solution) * (cost_unit / unit)


def least_point(
    matrix: Any,
    bounds: ArrayLike,
    prices: ArrayLike,
    extra: FloatArray,
    *,
    scale: ArrayLike | None = None,
    domain: Domain = "box",
) -> FloatArray:
    """Return ``matrix @ x`` and then ``extra @ x`` at an x where ``prices @ max(matrix @ x - bounds, 0)`` is least.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.solvers.conflicts import least_point
    >>> least_point([[-1.0], [1.0]], [-0.9, 0.2], [1.0, 2.0], np.array([[5.0]])).round(6).tolist()
    [-0.2, 0.2, 1.0]
    """
    program = _ConflictProgram(matrix, bounds, scale, domain, extra)
    point = program.least_point(np.arange(program.n_constraints), np.asarray(prices, dtype=np.float64))
    return np.concatenate([program.matrix @ point, program.extra @ point])


def merge_columns(matrix: Any) -> Any:
    """Return a matrix with fewer columns whose products with the unit box are the same set.

    Columns that are positive multiples of each other act as one, their sum: rows of data that count alike in every
    constraint share a column, so a million rows often become a few dozen columns.

    Examples
    --------
    >>> from counterpoise.solvers.conflicts import merge_columns
    >>> merge_columns([[1.0, 2.0, 0.0, -1.0], [1.0, 2.0, 0.0, 0.5]]).toarray().tolist()
    [[-1.0, 3.0], [0.5, 3.0]]
    """
    columns = sp.csc_array(matrix)
    columns.eliminate_zeros()
    counts = np.diff(columns.indptr)
    # Each row in parts of its largest entry, as rows may differ in their units: what is small beside another row must
    # not be rounded away.
    entries, heights = np.abs(columns.data), np.zeros(columns.shape[0])
    np.maximum.at(heights, columns.indices, entries)
    entries = columns.data / heights[columns.indices]
    # A column's direction: its entries over the largest of them, rounded so that equal ones meet.
    largest = np.maximum.reduceat(np.append(np.abs(entries), 0.0), columns.indptr[:-1]) if columns.nnz else counts
    scale = np.where(counts > 0, largest, 1.0)
    place = np.repeat(np.arange(columns.shape[1]), counts)
    directions = np.zeros((columns.shape[1], 2))
    keys = np.random.default_rng(0).random((columns.shape[0], 2))  # a direction's two random projections name it
    np.add.at(directions, place, (entries / scale[place])[:, None] * keys[columns.indices])
    is_used = counts > 0
    _, group = np.unique(directions[is_used].round(9), axis=0, return_inverse=True)
    group = group.ravel()
    gather = sp.csr_array(
        (np.ones(group.size), (np.flatnonzero(is_used), group)), shape=(columns.shape[1], group.max(initial=0) + 1)
    )
    return sp.csr_array(columns @ gather)


class _ConflictProgram:
    """Constraints scaled so that ``FEASIBLE`` means the same for all, and the linear programs over some of them.

    ``extra`` are more rows over the same variables, which limit nothing by themselves.
    """

    def __init__(
        self, matrix: Any, bounds: ArrayLike, scale: ArrayLike | None, domain: Domain, extra: FloatArray | None = None
    ) -> None:
        self.domain = check_choice(domain, "domain", _DOMAINS)
        self.bounds = np.asarray(bounds, dtype=np.float64)
        self.n_constraints = self.bounds.size
        parts: list[Any] = [matrix, extra]
        if domain == "simplex":
            parts = [one.toarray() if sp.issparse(one) else one for one in parts]
        if domain == "box":  # of many variables, most of them alike
            rows = merge_columns(sp.vstack([sp.csr_array(one) for one in parts if one is not None]))
        else:  # of few, which dense arrays are faster for
            rows = np.vstack([np.asarray(one, dtype=np.float64) for one in parts if one is not None])
        self.n_variables = rows.shape[1]
        self.matrix, self.extra = rows[: self.bounds.size], rows[self.bounds.size :]
        reach = abs(self.matrix).sum(axis=1) if domain == "box" else np.abs(self.matrix).max(axis=1)
        own = constraint_scale(np.asarray(reach).ravel(), self.bounds)
        self.scale = own if scale is None else np.asarray(scale, dtype=np.float64)
        is_sparse, inverse = sp.issparse(rows), 1.0 / self.scale
        self.unit_rows = sp.diags_array(inverse).tocsr() @ self.matrix if is_sparse else inverse[:, None] * self.matrix
        self.limits = self.bounds / self.scale

    def holding(self, members: IntArray) -> FloatArray | None:
        """Return a point at which the largest violation of the members is least, or None if it is not rounding."""
        if not members.size:
            return self._clean(np.ones(self.n_variables))
        slack = np.full((members.size, 1), -1.0)
        cost = np.append(np.zeros(self.n_variables), 1.0)
        point = self.solve(cost, _beside(self.unit_rows[members], slack), self.limits[members])[:-1]
        point = self._clean(point)
        excess = self.unit_rows[members] @ point - self.limits[members]
        return point if excess.max() <= FEASIBLE else None

    def least_point(self, members: IntArray, prices: FloatArray) -> FloatArray:
        """Return a point where the priced sum of what the members are exceeded by is least."""
        slack = -np.eye(members.size)
        worth = self.scale[members] * prices
        cost = np.concatenate([np.zeros(self.n_variables), worth / _largest(worth)])
        solution = self.solve(cost, _beside(self.unit_rows[members], slack), self.limits[members])
        return self._clean(solution[: self.n_variables])

    def least_violation(self, members: IntArray, owners: IntArray) -> float:
        """Return the least sum over owners of the most that their constraints are exceeded by."""
        names, places = np.unique(owners, return_inverse=True)
        sizes = np.zeros(names.size)
        np.maximum.at(sizes, places, self.scale[members])
        slack = np.zeros((members.size, names.size))
        slack[np.arange(members.size), places] = -sizes[places] / self.scale[members]
        cost = np.concatenate([np.zeros(self.n_variables), sizes / _largest(sizes)])
        solution = self.solve(cost, _beside(self.unit_rows[members], slack), self.limits[members])
        excess = self.matrix[members] @ self._clean(solution[: self.n_variables]) - self.bounds[members]
        most = np.zeros(names.size)
        np.maximum.at(most, places, excess)
        return float(most.sum())

    def _clean(self, point: FloatArray) -> FloatArray:
        if self.domain == "box":
            return np.clip(point, 0.0, 1.0)
        point = np.maximum(point, 0.0)
        return np.asarray(point / point.sum())

    def solve(self, cost: FloatArray, rows: Any, limits: FloatArray, divisor: FloatArray | None = None) -> Any:
        """Return the minimizer of ``cost @ x`` under ``rows @ x <= limits``, the first variables in the domain.

        With a divisor the last variable is what the domain is multiplied by, and ``divisor @ x = 1``; None where no
        point of the domain has a divisor above zero.
        """
        n_variables, upper = self.n_variables, np.full(cost.size, np.inf)
        parts, ends, totals = [rows], [limits], list[float]()  # rows that are at most their ends, or equal their totals
        if self.domain == "simplex":
            total = np.append(np.ones(n_variables), np.zeros(cost.size - n_variables))
            if divisor is not None:
                total[-1] = -1.0
            parts, totals = [*parts, total[None]], [0.0 if divisor is not None else 1.0]
        elif divisor is None:
            upper[:n_variables] = 1.0
        else:
            parts.append(sp.hstack([sp.eye_array(n_variables), -np.ones((n_variables, 1))]))
            ends.append(np.zeros(n_variables))
        if divisor is not None:
            parts, totals = [*parts, divisor[None]], [*totals, 1.0]
        most = np.concatenate([*ends, totals])
        least = np.append(np.full(most.size - len(totals), -np.inf), totals)
        parts = [part for part in parts if part.shape[0]]
        matrix = sp.vstack([sp.csr_array(part) for part in parts]) if sp.issparse(rows) else np.vstack(parts)
        solution = solve_linear_program(cost, matrix, (least, most), lower=np.zeros(cost.size), upper=upper)
        if solution is None and divisor is None:
            raise RuntimeError(HIGHS_FAILED)
        return None if solution is None else solution.point


def _beside(rows: Any, more: FloatArray) -> Any:
    """Return rows with further columns, sparse where they are."""
    return sp.hstack([rows, sp.csr_array(more)]) if sp.issparse(rows) else np.hstack([rows, more])


def _dense(rows: Any) -> FloatArray:
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64).ravel()


def _largest(values: FloatArray) -> float:
    """Return the largest size of some numbers; 1 where all are zero."""
    return float(np.abs(values).max(initial=0.0)) or 1.0
