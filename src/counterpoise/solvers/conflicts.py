"""Why linear constraints cannot hold: which of them conflict, how little must be given up, and where.

The constraints are ``matrix @ x <= bounds`` with x in the unit box (each prediction between 0 and 1) or on the simplex
(a mixture of models). Everything here is a handful of small linear programs, solved by HiGHS.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from counterpoise._checks import check_choice
from counterpoise._types import ArrayLike, FloatArray, IntArray

__all__ = ["Conflict", "find_conflict", "merge_columns"]

_TOLERANCE = 1e-8  # violations below this, in constraints scaled to size 1, are rounding
_DOMAINS = ("box", "simplex")

Domain = Literal["box", "simplex"]


class Conflict(NamedTuple):
    """Constraints that cannot all hold.

    ``members`` is irreducible: all of its proper subsets can hold.
    """

    members: IntArray  # indices of constraints, ascending
    least_violation: float  # of all constraints together: the least sum of what they are exceeded by
    nearest: FloatArray  # for each constraint the least bound that can hold beside the other members; else its own


def find_conflict(matrix: Any, bounds: ArrayLike, *, domain: Domain = "box") -> Conflict | None:
    """Return why no x in the domain has ``matrix @ x <= bounds``, or None where one has.

    Parameters
    ----------
    matrix : array or sparse array of shape (n_constraints, n_variables)
    bounds : array of shape (n_constraints,)
    domain : {"box", "simplex"}
        Each entry of x between 0 and 1, or all of them non-negative with sum 1.

    Returns
    -------
    Conflict or None

    Examples
    --------
    The first constraint asks for x >= 0.9, the third for x <= 0.2; the second conflicts with neither.

    >>> from counterpoise.solvers.conflicts import find_conflict
    >>> found = find_conflict([[-1.0], [1.0], [1.0]], [-0.9, 0.95, 0.2])
    >>> found.members.tolist(), round(found.least_violation, 6), found.nearest.round(6).tolist()
    ([0, 2], 0.7, [-0.2, 0.95, 0.9])
    """
    check_choice(domain, "domain", _DOMAINS)
    program = _Program(sp.csr_array(matrix), np.asarray(bounds, dtype=np.float64), domain)
    everything = np.arange(program.n_constraints)
    least = program.least_violation(everything)
    if least is None:
        return None
    members = _irreducible(program, everything)
    nearest = program.bounds.copy()
    for member in members:
        nearest[member] = program.least_value(int(member), members[members != member])
    return Conflict(members, least, nearest)


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
    # A column's direction: its entries over the largest of them, rounded so that equal ones meet.
    largest = np.maximum.reduceat(np.append(np.abs(columns.data), 0.0), columns.indptr[:-1]) if columns.nnz else counts
    scale = np.where(counts > 0, largest, 1.0)
    place = np.repeat(np.arange(columns.shape[1]), counts)
    directions = np.zeros((columns.shape[1], 2))
    keys = np.random.default_rng(0).random((columns.shape[0], 2))  # a direction's two random projections name it
    np.add.at(directions, place, (columns.data / scale[place])[:, None] * keys[columns.indices])
    used = counts > 0
    _, group = np.unique(directions[used].round(9), axis=0, return_inverse=True)
    group = group.ravel()
    gather = sp.csr_array(
        (np.ones(group.size), (np.flatnonzero(used), group)), shape=(columns.shape[1], group.max(initial=0) + 1)
    )
    return sp.csr_array(columns @ gather)


class _Program:
    """Constraints scaled so that tolerances mean something, and the linear programs over some of them."""

    def __init__(self, matrix: Any, bounds: FloatArray, domain: Domain) -> None:
        self.matrix = merge_columns(matrix) if domain == "box" else matrix
        self.bounds, self.domain = bounds, domain
        size = np.asarray(abs(self.matrix).sum(axis=1)).ravel()
        self.scale = np.where(size > 0, size, np.maximum(np.abs(bounds), 1.0))
        self.scaled = sp.csr_array(sp.diags_array(1.0 / self.scale) @ self.matrix)

    @property
    def n_constraints(self) -> int:
        return int(self.bounds.size)

    def least_violation(self, members: IntArray) -> float | None:
        """Return the least sum of violations, or None where there need be none."""
        slack = -sp.eye_array(members.size)
        cost = np.concatenate([np.zeros(self.matrix.shape[1]), self.scale[members]])
        found = self._minimum(cost, sp.hstack([self.scaled[members], slack]), self._limits(members))
        return None if found <= self._rounding(members) else found

    def least_value(self, one: int, others: IntArray) -> float:
        """Return the least value of a constraint's left side where the others hold, but for rounding."""
        cost = self.matrix[[one]].toarray().ravel()
        room = self._rounding(others) / self.scale[others]
        return self._minimum(cost, self.scaled[others], self._limits(others) + room)

    def _rounding(self, members: IntArray) -> float:
        """Return the sum of violations that is rounding."""
        return float(_TOLERANCE * self.scale[members].max(initial=1.0))

    def _limits(self, members: IntArray) -> FloatArray:
        return np.asarray(self.bounds[members] / self.scale[members])

    def _minimum(self, cost: FloatArray, rows: Any, limits: FloatArray) -> float:
        from scipy.optimize import linprog  # noqa: PLC0415 - slow to import, and needed in trouble only

        n_variables, n_slacks = self.matrix.shape[1], cost.size - self.matrix.shape[1]
        is_box = self.domain == "box"
        total = None if is_box else np.concatenate([np.ones(n_variables), np.zeros(n_slacks)])[None]
        found = linprog(
            cost,
            A_ub=rows if limits.size else None,
            b_ub=limits if limits.size else None,
            A_eq=total,
            b_eq=None if is_box else [1.0],
            bounds=[(0.0, 1.0 if is_box else None)] * n_variables + [(0.0, None)] * n_slacks,
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10},
        )
        if found.status != 0:
            raise RuntimeError(f"HiGHS stopped on a feasible and bounded linear program: {found.message}")
        return float(found.fun)


def _irreducible(program: _Program, members: IntArray) -> IntArray:
    """Drop one constraint after the other where the rest still conflicts (the deletion filter)."""
    for candidate in members:
        rest = members[members != candidate]
        if program.least_violation(rest) is not None:
            members = rest
    return members
