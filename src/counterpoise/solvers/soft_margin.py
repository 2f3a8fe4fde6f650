"""Votes for given models by a linear or a quadratic program over their margins.

Raetsch, Onoda and Mueller, "Soft margins for AdaBoost", Machine Learning 42, 2001: keep AdaBoost's models, and choose
their votes again so that most samples have a large margin and a few may have a small one. With the margin
``y_i G_t(x_i)`` of model t on sample i in ``margins``, and sample weights q that sum to 1::

    RLP   max over votes, edge, slacks of  edge - C q @ slacks
          subject to  margins @ votes >= edge - slacks,  slacks >= 0,  votes >= 0,  sum of votes = 1
    RQP   min over votes, slacks of  votes @ votes / 2 + C q @ slacks
          subject to  margins @ votes >= 1 - slacks,  slacks >= 0,  votes >= 0

C weighs the *mean* slack, so that it means the same at any number of samples, and repeating a sample is doubling its
weight; the paper's C, on the sum, is ours over n. The edge is free, where the paper asks for ``edge >= 0``: the two
differ only where no votes have a soft margin above zero.

RLP at C is minus the least CVaR of ``-margins @ votes`` at alpha = 1/C, the problem of ``minimize_cvar``. That solver
is made for very many samples. Here there are a few thousand samples and hundreds of models, of which most may be
needed, and an interior point method takes 5 to 20 steps for either program, whatever their number. Measured on margins
of AdaBoost, one thread, at the costs that "auto" tries: ``cvar_path`` took 4 to 10 times as long at 400 to 900 samples
and 20 to 200 different models, 0.8 to 3 times at 5,000 and 90 to 280, and a third at 30,000 and 95. For RQP Clarabel
took 3 to 35 times as long and daqp, with a variable for each slack, 8 to 300 times.

``DistinctMargins`` merges the rows and columns that are equal: AdaBoost finds the same stump again and again.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from counterpoise._base.checks import as_numbers, check_count, check_positive, check_sample_weight, value_range
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray, IntArray
from counterpoise.solvers._interior_point import (
    MarginProgram,
    PathPoint,
    follow_path,
    one_thread,
    start_on_simplex,
    start_with_ridge,
)
from counterpoise.solvers.rows import project_capped, worst_mean, worst_weights

_MATRIX = 2  # dimensions
_NO_WEIGHT = 1e-100  # part of all sample weight below which a sample counts as having none: quotients stay finite


class DistinctMargins(NamedTuple):
    """The margins, and what is left of them where equal models and equal samples count as one.

    AdaBoost finds the same stump again and again, and stumps separate few samples.
    """

    margins: FloatArray
    shares: FloatArray  # of the samples, on the simplex
    distinct: FloatArray  # margins of the distinct models on the distinct samples of weight above zero
    masses: FloatArray  # of the distinct samples
    live: IntArray  # samples of weight above zero ...
    rows: IntArray  # ... and which of the distinct ones each is
    columns: IntArray  # which of the distinct models each is

    def spread(self, multipliers: FloatArray) -> FloatArray:
        """Return multipliers of all samples: equal samples share in proportion to their weights."""
        each = np.zeros(self.shares.size)
        each[self.live] = multipliers[self.rows] * self.shares[self.live] / self.masses[self.rows]
        return each


def distinct_margins(margins: ArrayLike, sample_weight: ArrayLike | None) -> DistinctMargins:
    """Return margins after a check, with equal models and equal samples merged."""
    matrix = as_numbers(margins, "margins")
    if matrix.ndim != _MATRIX or matrix.size == 0:
        raise ValueError(
            "margins must have shape (n_samples, n_models), with at least one sample and one model; "
            f"got shape {matrix.shape}."
        )
    value_range(matrix, "margins")
    mass = check_sample_weight(sample_weight, len(matrix))
    mass = np.ones(len(matrix)) if mass is None else mass
    shares = mass / mass.sum()
    shares[shares < _NO_WEIGHT] = 0.0
    live = np.flatnonzero(shares)
    live_margins = matrix[live]
    first_column, columns = _distinct(live_margins.T)
    live_margins = live_margins[:, first_column]
    first_row, rows = _distinct(live_margins)
    distinct = live_margins[first_row].astype(np.float64)
    masses = np.bincount(rows, weights=shares[live]).astype(np.float64)
    return DistinctMargins(matrix.astype(np.float64), shares, distinct, masses, live, rows, columns)


def _distinct(rows: AnyArray) -> tuple[IntArray, IntArray]:
    """Return where each distinct row comes first, and which of them each row is."""
    numbers: dict[bytes, int] = {}
    places = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in rows])
    return np.unique(places, return_index=True)[1], places


_UNREACHED = 2.0  # weights sum to 1: a cap above that never binds
_MAX_ITER = 200


class SoftMarginSolution(NamedTuple):
    """Votes and the weights that bound every other choice; ``value`` and ``upper`` are computed from these alone."""

    votes: FloatArray  # on models, on the simplex
    weights: FloatArray  # on samples, on the simplex, entries <= C q
    value: float  # the soft margin of the votes: the best is no smaller
    upper: float  # max over models of weights @ margins: the best is no larger
    n_iter: int

    @property
    def gap(self) -> float:
        """Return ``upper - value``: the best soft margin is at most this far above ``value``."""
        return self.upper - self.value


class HingeSolution(NamedTuple):
    """Votes and multipliers that bound every other choice; ``value`` and ``lower`` are computed from these alone."""

    votes: FloatArray  # on models, >= 0
    multipliers: FloatArray  # of the samples' constraints, in [0, C q]
    value: float  # of the program at the votes: the least is no larger
    lower: float  # sum of multipliers - |max(0, multipliers @ margins)|^2 / 2: the least is no smaller
    n_iter: int

    @property
    def gap(self) -> float:
        """Return ``value - lower`` as a part of ``value``, which is above zero."""
        return (self.value - self.lower) / self.value


def maximize_soft_margin(
    margins: ArrayLike,
    C: float,
    *,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-4,
    max_iter: int = _MAX_ITER,
) -> SoftMarginSolution:
    """Find the votes with the largest soft margin: the program RLP.

    Solves ``max over votes, edge of edge - C * mean(max(0, edge - margins @ votes))`` over votes that are non-negative
    and sum to 1. This is the mean of the smallest 1/C of the margins.

    Parameters
    ----------
    margins : array of shape (n_samples, n_models)
        Margin of each model on each sample: +1 where it is right and -1 where it is wrong, or any finite numbers.
    C : float, at least 1
        Cost of slack. 1 counts all margins and gives the one best model; from ``n_samples`` on only the smallest
        margin counts. Below 1 there is no solution: raising the edge would always pay.
    sample_weight : array of shape (n_samples,), optional
        Non-negative; only their ratios matter.
    tol : float, default=1e-4
        Stop when ``upper - value`` is at most this, in units of the margins.
    max_iter : int, default=200
        Stop after so many iterations, whatever the gap.

    Returns
    -------
    SoftMarginSolution
        ``votes``, ``weights``, ``value``, ``upper``, ``gap``, ``n_iter``. Of equal columns only the first gets votes.
        Where many votes are equally good these are central ones, not a corner. The solver never warns: compare ``gap``
        with what you need.

    Examples
    --------
    Three models, each wrong on a sample of its own: together none is.

    >>> from counterpoise.solvers import maximize_soft_margin
    >>> solution = maximize_soft_margin([[-1, 1, 1], [1, -1, 1], [1, 1, -1]], C=3)
    >>> solution.votes.round(3).tolist(), round(solution.value, 3)
    ([0.333, 0.333, 0.333], 0.333)
    """
    return soft_margin_path(margins, [C], sample_weight=sample_weight, tol=tol, max_iter=max_iter)[0]


def soft_margin_path(
    margins: ArrayLike,
    Cs: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-4,
    max_iter: int = _MAX_ITER,
) -> list[SoftMarginSolution]:
    """Find the votes with the largest soft margin for many C, from the smallest up, each from the one before.

    Parameters are those of ``maximize_soft_margin``, with ``Cs`` of shape (n_Cs,) in any order.

    Returns
    -------
    list of SoftMarginSolution
        One for each C, in the order given.

    Examples
    --------
    >>> from counterpoise.solvers import soft_margin_path
    >>> [round(solution.value, 3) for solution in soft_margin_path([[1, 1], [1, 0], [0, 1], [1, 1]], [1, 2, 4])]
    [0.75, 0.5, 0.5]
    """
    costs, tol, max_iter = _check_costs(Cs), check_positive(tol, "tol"), check_count(max_iter, "max_iter")
    check_edge_cost(float(costs.min()))
    problem = distinct_margins(margins, sample_weight)
    return _along(costs, lambda C, near: _LinearSearch(problem, C, tol).solve(near, max_iter))


def minimize_hinge(
    margins: ArrayLike,
    C: float,
    *,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-4,
    max_iter: int = _MAX_ITER,
) -> HingeSolution:
    """Find the votes of the least norm and hinge loss: the program RQP.

    Solves ``min over votes >= 0 of |votes|^2 / 2 + C * mean(max(0, 1 - margins @ votes))``, a linear support vector
    machine without intercept and with non-negative coefficients.

    Parameters
    ----------
    margins, sample_weight, max_iter
        As for ``maximize_soft_margin``.
    C : float > 0
        Weight of the mean hinge loss.
    tol : float, default=1e-4
        Stop when the gap is at most this part of the value.

    Returns
    -------
    HingeSolution
        ``votes``, ``multipliers``, ``value``, ``lower``, ``gap`` (relative), ``n_iter``.

    Examples
    --------
    >>> from counterpoise.solvers import minimize_hinge
    >>> solution = minimize_hinge([[-1, 1, 1], [1, -1, 1], [1, 1, -1]], C=100, tol=1e-6)
    >>> solution.votes.round(3).tolist(), round(solution.value, 3)
    ([1.0, 1.0, 1.0], 1.5)
    """
    return hinge_path(margins, [C], sample_weight=sample_weight, tol=tol, max_iter=max_iter)[0]


def hinge_path(
    margins: ArrayLike,
    Cs: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-4,
    max_iter: int = _MAX_ITER,
) -> list[HingeSolution]:
    """Find the votes of the least norm and hinge loss for many C, from the smallest up, each from the one before.

    Parameters are those of ``minimize_hinge``, with ``Cs`` of shape (n_Cs,) in any order.

    Returns
    -------
    list of HingeSolution
        One for each C, in the order given.

    Examples
    --------
    >>> from counterpoise.solvers import hinge_path
    >>> [round(solution.value, 3) for solution in hinge_path([[1, 1], [1, -1], [-1, 1], [1, 1]], [1, 2, 4])]
    [0.75, 1.25, 2.25]
    """
    costs, tol, max_iter = _check_costs(Cs), check_positive(tol, "tol"), check_count(max_iter, "max_iter")
    problem = distinct_margins(margins, sample_weight)
    return _along(costs, lambda C, near: _QuadraticSearch(problem, C, tol).solve(near, max_iter))


_Near = tuple[FloatArray, FloatArray]  # votes and multipliers of the distinct models and samples
_Solution = TypeVar("_Solution", SoftMarginSolution, HingeSolution)


def check_edge_cost(C: float) -> None:
    """Check that C is at least 1, without which the linear program has no solution."""
    if C < 1:
        raise ValueError(
            f"C must be at least 1 for the largest soft margin; got {C!r}. Below 1 there is none: raising the edge "
            "would gain more than all slacks cost."
        )


def _check_costs(Cs: ArrayLike) -> FloatArray:
    costs = as_numbers(Cs, "C")
    if costs.ndim != 1 or costs.size == 0:
        raise ValueError(f"Cs must be a non-empty one-dimensional array of numbers above 0; got shape {costs.shape}.")
    return np.array([check_positive(C, "C") for C in costs.tolist()])


def _along(costs: FloatArray, solve: Callable[[float, _Near | None], tuple[_Solution, _Near]]) -> list[_Solution]:
    """Solve from the smallest C up: the multipliers of one are allowed for the next."""
    solutions: dict[int, _Solution] = {}
    near = None
    with one_thread():
        for place in np.argsort(costs, kind="stable").tolist():
            solutions[place], near = solve(float(costs[place]), near)
    return [solutions[place] for place in range(costs.size)]


class _LinearSearch:
    """RLP at one C on the distinct margins, mapped to [-1, 1]; keeps the best votes and the best weights so far."""

    def __init__(self, problem: DistinctMargins, C: float, tol: float) -> None:
        self.problem, self.C = problem, C
        low, high = float(problem.distinct.min()), float(problem.distinct.max())
        self.shift, self.span, self.tol = (low + high) / 2, (high - low) / 2 or 1.0, tol
        self.margins = (problem.distinct - self.shift) / self.span
        self.caps = C * problem.masses
        self.value, self.upper = -np.inf, np.inf

    def solve(self, near: _Near | None, max_iter: int) -> tuple[SoftMarginSolution, _Near]:
        n_models, n_iter = self.margins.shape[1], 0
        if n_models == 1 or self.C == 1:  # nothing to choose on one side
            self.weights = worst_weights(-self.margins[:, 0], self.caps) if n_models == 1 else self.problem.masses
            self.votes = np.eye(n_models)[(self.weights @ self.margins).argmax()]
        else:
            caps = np.minimum(self.caps, _UNREACHED)
            program = MarginProgram(self.margins, caps, np.zeros(n_models), 0.0, on_simplex=True)
            start = start_on_simplex(program, 1 / self.C, near)
            n_iter = follow_path(program, start, is_done=self._is_done, max_iter=max_iter)
            # Set to zero the votes that tend there, where the tolerance allows it. Not where the soft margin is not
            # above zero: models that contradict each other are then as good as any, and if only they were left their
            # votes would cancel, where it is the other, small votes that decide.
            fewer = np.where(self.is_out, 0.0, self.votes)
            if fewer.any() and self._soft_margin(fewer) >= max(self.upper - self.tol, self.tol):
                self.votes = fewer
        # Both vectors for all models and samples, with the bounds computed from them alone.
        problem = self.problem
        votes = np.zeros(problem.columns.size)
        votes[np.unique(problem.columns, return_index=True)[1]] = self.votes / self.votes.sum()
        weights = problem.spread(project_capped(self.weights, self.caps))
        value = -worst_mean(-(problem.margins @ votes), self.C * problem.shares)
        solution = SoftMarginSolution(votes, weights, value, float((weights @ problem.margins).max()), n_iter)
        return solution, (self.votes, self.weights)

    def _is_done(self, point: PathPoint) -> bool:
        value = self._soft_margin(point.votes)
        upper = self.shift + self.span * float((point.multipliers @ self.margins).max())
        if value > self.value:
            self.votes, self.value = point.votes, value
            self.is_out = point.votes < point.prices  # one of the two tends to 0
        if upper < self.upper:
            self.weights, self.upper = point.multipliers, upper
        return self.upper - self.value <= self.tol

    def _soft_margin(self, votes: FloatArray) -> float:
        return self.shift - self.span * worst_mean(self.margins @ (votes / -votes.sum()), self.caps)


class _QuadraticSearch:
    """RQP at one C on the distinct margins, mapped to [-1, 1]; keeps the best votes and the best multipliers so far.

    A vote on k equal models costs least where they share it: its ridge is 1/k.
    """

    def __init__(self, problem: DistinctMargins, C: float, tol: float) -> None:
        self.problem, self.C, self.tol = problem, C, tol
        self.counts = np.bincount(problem.columns).astype(np.float64)
        self.scale = float(np.abs(problem.distinct).max()) or 1.0
        self.margins, self.ridge = problem.distinct / self.scale, 1.0 / (self.counts * self.scale**2)
        self.caps = C * problem.masses
        self.value, self.lower = np.inf, -np.inf

    def _is_done(self, point: PathPoint) -> bool:
        reply = np.maximum(point.multipliers @ self.margins, 0.0) / self.ridge  # the best votes against them
        lower = float(point.multipliers.sum() - reply @ (self.ridge * reply) / 2)
        if lower > self.lower:
            self.multipliers, self.lower = point.multipliers, lower
        for votes in (reply, point.votes):
            value = self._cost(votes)
            if value < self.value:
                self.votes, self.value, self.is_out = votes, value, reply == 0  # where votes tend to 0
        return self._is_close(self.value)

    def _is_close(self, value: float) -> bool:
        return value - self.lower <= self.tol * value

    def _cost(self, votes: FloatArray) -> float:
        return float(votes @ (self.ridge * votes) / 2 + self.caps @ np.maximum(0.0, 1.0 - self.margins @ votes))

    def solve(self, near: _Near | None, max_iter: int) -> tuple[HingeSolution, _Near]:
        program = MarginProgram(self.margins, self.caps, self.ridge, 1.0, on_simplex=False)
        start = start_with_ridge(program, None if near is None else near[1])
        n_iter = follow_path(program, start, is_done=self._is_done, max_iter=max_iter)
        fewer = np.where(self.is_out, 0.0, self.votes)
        self.votes = fewer if self._is_close(self._cost(fewer)) else self.votes
        # Both vectors for all models and samples, with the bounds computed from them alone.
        problem, caps = self.problem, self.C * self.problem.shares
        votes = (self.votes / (self.counts * self.scale))[problem.columns]
        multipliers = np.minimum(problem.spread(self.multipliers), caps)
        reply = np.maximum(multipliers @ problem.margins, 0.0)
        value = votes @ votes / 2 + caps @ np.maximum(0.0, 1.0 - problem.margins @ votes)
        lower = multipliers.sum() - reply @ reply / 2
        return HingeSolution(votes, multipliers, float(value), float(lower), n_iter), (self.votes, self.multipliers)
