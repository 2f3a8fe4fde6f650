"""Mixtures of models with the least CVaR, or the least of another convex risk.

The problem is ``min over mixture of risk(losses @ mixture)``, where ``losses`` has a row for each sample and a column
for each model, and the mixture may have to meet linear constraints. Every solution comes with a lower bound.

Three solvers share it:

- Small CVaR problems are written out as a linear program over the sample weights and solved by HiGHS. That program has
  ``n_models`` rows and bounded variables, so HiGHS solves it many times faster than its dual, which has a slack for
  each sample. Tests compare the other solvers with it.
- Large CVaR problems are solved by the level bundle method (Lemarechal, Nemirovskii and Nesterov 1995). As a function
  of the mixture alone the CVaR is convex and piecewise linear, and one pass over the losses gives its value and a cut.
  Each iteration evaluates at the point nearest to the best one where all cuts so far are below a level between the
  bounds. A few dozen iterations close a gap of 1e-4 at any number of samples. The dual of the small master problem
  mixes the weights of the cuts into one weight vector that proves the lower bound.
- Any other convex risk is minimised by the same method, from its values and subgradients (``minimize_risk``).

Sample weights that are allowed for a large alpha are allowed for a smaller one, because the cap only grows. Cuts thus
stay valid along a path of falling alphas, and each solve of ``cvar_path`` starts from those of the solve before.
"""

from collections.abc import Sequence
from contextlib import closing
from typing import NamedTuple, Protocol

import numpy as np

from counterpoise._base.checks import (
    check_alpha,
    check_alphas,
    check_choice,
    check_count,
    check_losses,
    check_mixture,
    check_positive,
    check_rows,
    check_sample_weight,
    check_vector,
    value_range,
)
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray
from counterpoise.solvers.bundle import BENT, MAX_ITER, Callback, LevelBundle, LowerBoundProof, NotConvex, SolveLimits
from counterpoise.solvers.linear_program import (
    HIGHS_FAILED,
    CuttingPlanes,
    InfeasibleRows,
    MixtureSolution,
    solve_linear_program,
)
from counterpoise.solvers.rows import RealRows, is_zero_one, load_rows, project_capped, worst_mean
from counterpoise.solvers.tail import TailCut, TailOracle

_INF = float("inf")
_SMALL = 4000  # losses in a problem that HiGHS solves at once
_FUNCTIONS = 100  # samples that are few whatever the number of models: rates of groups, not people
_MANY_MODELS = 200  # from here on the master takes long, and HiGHS is faster ...
_FEW_SAMPLES, _FEW_REAL_SAMPLES = 10, 3  # ... with at most so many samples for each model; real losses have no zeros


def solve_weights_lp(
    losses: ArrayLike,
    alpha: float,
    *,
    sample_weight: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    bounds: ArrayLike | None = None,
    row_scale: ArrayLike | None = None,
) -> MixtureSolution:
    """Solve the mixture problem through the linear program over sample weights.

    ``max v - multipliers @ bounds`` subject to ``weights @ losses + multipliers @ rows >= v`` for every model,
    weights in the capped simplex, multipliers non-negative. Its duals are the mixture.

    Parameters and result are those of ``minimize_cvar``.

    Examples
    --------
    >>> from counterpoise.solvers import solve_weights_lp
    >>> solve_weights_lp([[0, 1], [0, 1], [1, 0], [1, 0]], alpha=0.5).mixture.round(3).tolist()
    [0.5, 0.5]
    """
    problem = _check_problem(losses, sample_weight, rows, bounds, row_scale)
    return _solve_in_full(problem, check_alpha(alpha))


class _CheckedProblem(NamedTuple):
    losses: AnyArray
    sample_weight: FloatArray | None
    limits: tuple[FloatArray, FloatArray, FloatArray | None]  # rows, bounds, scale of rows
    suits_highs: bool  # which then is faster than the bundle method


def _check_problem(
    losses: ArrayLike,
    sample_weight: ArrayLike | None,
    rows: ArrayLike | None,
    bounds: ArrayLike | None,
    row_scale: ArrayLike | None,
) -> _CheckedProblem:
    matrix = check_losses(losses)
    limits = check_rows(rows, bounds, matrix.shape[1], row_scale)
    mass = check_sample_weight(sample_weight, len(matrix))
    return _CheckedProblem(matrix, mass, limits, suits_highs(matrix))


def suits_highs(losses: AnyArray) -> bool:
    """Return whether HiGHS solves the whole linear program faster than the bundle method does."""
    n_samples, n_models = losses.shape
    if n_samples <= _FUNCTIONS:
        return True
    if losses.size <= _SMALL or n_models <= _MANY_MODELS or n_samples > _FEW_SAMPLES * n_models:
        return losses.size <= _SMALL
    return n_samples <= _FEW_REAL_SAMPLES * n_models or is_zero_one(losses)


def _solve_in_full(problem: _CheckedProblem, alpha: float) -> MixtureSolution:
    """Return the solution of the linear program over sample weights."""
    matrix = problem.losses.astype(np.float64)
    n_samples, n_models = matrix.shape
    mass = np.ones(n_samples) if problem.sample_weight is None else problem.sample_weight
    caps = mass / (alpha * mass.sum())
    planes = CuttingPlanes(n_models, *problem.limits)  # raises where the rows cannot hold
    low, high = value_range(matrix, "losses")
    span, n_rows = (high - low) or 1.0, len(planes.rows)
    matrix = (matrix - low) / span  # with losses in [0, 1] and rows of size 1 a solver's tolerances mean something
    entries = np.zeros((n_models + 1, n_samples + n_rows + 1))
    entries[:-1, :n_samples], entries[:-1, n_samples:-1], entries[:-1, -1] = matrix.T, planes.rows.T, -1.0
    entries[-1, :n_samples] = 1.0
    solution = solve_linear_program(
        np.concatenate([np.zeros(n_samples), planes.bounds, [-1.0]]),
        entries,
        (np.append(np.zeros(n_models), 1.0), np.append(np.full(n_models, _INF), 1.0)),
        lower=np.append(np.zeros(n_samples + n_rows), -_INF),
        upper=np.concatenate([caps, np.full(n_rows + 1, _INF)]),
    )
    if solution is None:
        raise RuntimeError(HIGHS_FAILED)
    # Both vectors on their simplex to the last bit, then the bounds from them alone.
    mixture = planes.clean(solution.duals[:n_models])
    weights = project_capped(solution.point[:n_samples], caps)
    prices = np.maximum(solution.point[n_samples:-1], 0.0)
    value, lower = worst_mean(matrix @ mixture, caps), planes.proven(weights @ matrix, prices)
    prices = prices / planes.row_scale * span
    return MixtureSolution(mixture, weights, prices, low + span * value, low + span * lower, solution.n_iter)


def minimize_cvar(
    losses: ArrayLike,
    alpha: float,
    *,
    sample_weight: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    bounds: ArrayLike | None = None,
    row_scale: ArrayLike | None = None,
    tol: float = 1e-4,
    start: ArrayLike | None = None,
    callback: Callback | None = None,
    max_iter: int = MAX_ITER,
    method: str = "auto",
) -> MixtureSolution:
    """Find the mixture of models with the least CVaR.

    Solves ``min over mixture of CVaR_alpha(losses @ mixture)`` subject to ``rows @ mixture <= bounds``, where
    mixtures are non-negative and sum to 1.

    Parameters
    ----------
    losses : array of shape (n_samples, n_models)
        Loss of each model on each sample. Zero-one losses of any dtype are packed to bits and are by far the
        fastest; other values must be finite.
    alpha : float in (0, 1]
        Tail fraction. 1 is the average; at most 1/n_samples is the worst sample.
    sample_weight : array of shape (n_samples,), optional
        Non-negative; only their ratios matter.
    rows, bounds : arrays of shape (n_rows, n_models) and (n_rows,), optional
        Linear constraints on the mixture. They hold to 1e-9 of their scale.
    row_scale : array of shape (n_rows,), optional
        Positive. Default: the largest entry of each row. Name a larger one where the entries are differences of equal
        things, so that what rounding leaves of them binds nothing.
    tol : float, default=1e-4
        Stop when ``value - lower`` is at most this, in units of the losses.
    start : array of shape (n_models,), optional
        A mixture to begin at; projected on the constraints if it violates them.
    callback : callable, optional
        Called with a ``Progress`` after every iteration of the bundle method; a true result stops it.
    max_iter : int, default=2000
        Stop after so many iterations, whatever the gap.
    method : {"auto", "bundle", "highs"}, default="auto"
        ``"highs"`` solves the whole linear program; ``"auto"`` does so for very small problems and for hundreds of
        models on few samples, where it is faster.

    Returns
    -------
    MixtureSolution
        ``mixture``, ``weights`` (worst-case weights of the samples, at most ``cap`` = 1/(alpha n) each),
        ``multipliers`` of the rows, ``value``, ``lower``, ``gap`` and ``n_iter``. The solver never warns: compare
        ``gap`` with what you need.

    Raises
    ------
    InfeasibleRows
        If no mixture satisfies the constraints; the error carries multipliers that prove it.

    Examples
    --------
    Two models that fail on different halves: alone each has a worst-half loss of 1, mixed only 0.5.

    >>> from counterpoise.solvers import minimize_cvar
    >>> solution = minimize_cvar([[0, 1], [0, 1], [1, 0], [1, 0]], alpha=0.5)
    >>> solution.mixture.round(3).tolist(), round(solution.value, 3), solution.gap < 1e-4
    ([0.5, 0.5], 0.5, True)

    At most a quarter of the decisions may come from the second model:

    >>> solution = minimize_cvar([[0, 1], [0, 1], [1, 0], [1, 0]], 0.5, rows=[[0, 1]], bounds=[0.25])
    >>> solution.mixture.round(3).tolist(), round(solution.value, 3)
    ([0.75, 0.25], 0.75)
    """
    alpha, tol = check_alpha(alpha), check_positive(tol, "tol")
    ends = SolveLimits(tol, check_count(max_iter, "max_iter"), callback)
    problem = _check_problem(losses, sample_weight, rows, bounds, row_scale)
    start = None if start is None else check_mixture(start, problem.losses.shape[1], "start")
    check_choice(method, "method", ("auto", "bundle", "highs"))
    return _solve_tail(
        problem, alpha, start, ends, in_full=problem.suits_highs if method == "auto" else method == "highs"
    )


def _solve_tail(
    problem: _CheckedProblem, alpha: float, start: FloatArray | None, ends: SolveLimits, *, in_full: bool
) -> MixtureSolution:
    """Return the mixture with the least CVaR, by the linear program in full or by the bundle method."""
    if in_full:
        return _solve_in_full(problem, alpha)
    if alpha == 1.0:
        return _solve_mean(problem)
    oracle = TailOracle.of(problem.losses, problem.sample_weight, alpha)
    with closing(oracle.parts):
        return LevelBundle(oracle, CuttingPlanes(oracle.n_models, *problem.limits), ends).solve(start)


def _solve_mean(problem: _CheckedProblem) -> MixtureSolution:
    """Return the mixture with the least mean loss: a linear program of one number for each model."""
    n_samples = len(problem.losses)
    mass = np.ones(n_samples) if problem.sample_weight is None else problem.sample_weight
    weights = mass / mass.sum()
    means = RealRows(problem.losses).columns(weights)
    mean = problem._replace(losses=means[None], sample_weight=None)
    return _solve_in_full(mean, 1.0)._replace(weights=weights)


def cvar_path(
    losses: ArrayLike,
    alphas: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    bounds: ArrayLike | None = None,
    row_scale: ArrayLike | None = None,
    tol: float = 1e-4,
    callback: Callback | None = None,
    max_iter: int = MAX_ITER,
) -> list[MixtureSolution]:
    """Find the mixture with the least CVaR for each of many alphas.

    Solves from the largest alpha down, each solve starting from the mixture and the cuts of the one before.

    Parameters
    ----------
    losses, sample_weight, rows, bounds, row_scale, tol, callback, max_iter
        As for ``minimize_cvar``; the last three apply to each alpha.
    alphas : array of shape (n_alphas,)
        Tail fractions in (0, 1], in any order.

    Returns
    -------
    list of MixtureSolution
        One for each alpha, in the order given.

    Examples
    --------
    >>> from counterpoise.solvers import cvar_path
    >>> path = cvar_path([[0, 1], [0, 1], [1, 0], [0, 0]], [0.25, 0.5, 1.0])
    >>> [round(solution.value, 3) for solution in path]
    [0.5, 0.5, 0.25]
    """
    levels, tol = check_alphas(alphas), check_positive(tol, "tol")
    ends = SolveLimits(tol, check_count(max_iter, "max_iter"), callback)
    problem = _check_problem(losses, sample_weight, rows, bounds, row_scale)
    if problem.suits_highs:
        return [_solve_in_full(problem, float(level)) for level in levels]
    solutions: dict[int, MixtureSolution] = {}
    start, planes = None, CuttingPlanes(problem.losses.shape[1], *problem.limits)
    oracle = TailOracle.of(problem.losses, problem.sample_weight, 1.0)
    with closing(oracle.parts):
        bundle = LevelBundle(oracle, planes, ends)
        for place in np.argsort(-levels, kind="stable").tolist():
            oracle.alpha = float(levels[place])
            solutions[place] = bundle.solve(start)
            start = solutions[place].mixture
    return [solutions[place] for place in range(levels.size)]


def bounds_path(
    losses: ArrayLike,
    alpha: float,
    limits: Sequence[tuple[ArrayLike, ArrayLike]],
    *,
    sample_weight: ArrayLike | None = None,
    row_scale: ArrayLike | None = None,
    tol: float = 1e-4,
    max_iter: int = MAX_ITER,
) -> list[MixtureSolution | None]:
    """Find the mixture with the least CVaR under each of many sets of linear constraints.

    Cuts bound the CVaR whatever the constraints, so each solve starts from the cuts and the mixture of the one before.

    Parameters
    ----------
    losses, alpha, sample_weight, row_scale, tol, max_iter
        As for ``minimize_cvar``; the last three apply to each set, which with a ``row_scale`` has as many rows.
    limits : sequence of pairs (rows, bounds)
        Solved in the order given: neighbours should be alike.

    Returns
    -------
    list of MixtureSolution or None
        One for each set; None where no mixture satisfies it.

    Examples
    --------
    >>> from counterpoise.solvers import bounds_path
    >>> path = bounds_path([[0, 1], [0, 1], [1, 0], [1, 0]], 0.5, [([[1, 0]], [bound]) for bound in (-1, 0, 0.25, 1)])
    >>> [None if solution is None else round(solution.value, 3) for solution in path]
    [None, 1.0, 0.75, 0.5]
    """
    alpha, tol, max_iter = check_alpha(alpha), check_positive(tol, "tol"), check_count(max_iter, "max_iter")
    problem = _check_problem(losses, sample_weight, None, None, None)
    n_models = problem.losses.shape[1]
    sets = [check_rows(rows, bounds, n_models, row_scale) for rows, bounds in limits]
    solutions: list[MixtureSolution | None] = []
    start, cuts, ends = None, list[TailCut](), SolveLimits(tol, max_iter)
    oracle = TailOracle.of(problem.losses, problem.sample_weight, alpha)
    with closing(oracle.parts):
        for one in sets:
            try:
                if problem.suits_highs:
                    solution = _solve_in_full(problem._replace(limits=one), alpha)
                else:
                    bundle = LevelBundle(oracle, CuttingPlanes(n_models, *one), ends)
                    bundle.carry(cuts)
                    solution, cuts = bundle.solve(start), bundle.cuts
            except InfeasibleRows:
                solutions.append(None)
            else:
                solutions.append(solution)
                start = solution.mixture
    return solutions


_LEAST_SPAN = 1e-4  # part of the values: what is less of a range may be their rounding


class ConvexRisk(Protocol):
    """The interface of a risk; ``theory.risks`` has many, and a base class for more."""

    def value(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the risk of the losses: one convex function of them."""

    def subgradient(self, losses: ArrayLike, sample_weight: ArrayLike | None = None) -> FloatArray:
        """Return a slope: ``value(losses) + subgradient @ (others - losses)`` is at most ``value(others)``."""


def minimize_risk(
    losses: ArrayLike,
    risk: ConvexRisk,
    *,
    sample_weight: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    bounds: ArrayLike | None = None,
    row_scale: ArrayLike | None = None,
    tol: float = 1e-4,
    start: ArrayLike | None = None,
    callback: Callback | None = None,
    max_iter: int = MAX_ITER,
) -> MixtureSolution:
    """Find the mixture of models with the least risk.

    Solves ``min over mixture of risk(losses @ mixture)`` subject to ``rows @ mixture <= bounds``, where mixtures are
    non-negative and sum to 1. A risk with a ``tail_fraction`` is a CVaR, and is solved by ``minimize_cvar``.

    Parameters
    ----------
    losses : array of shape (n_samples, n_models)
        Loss of each model on each sample, of any finite value.
    risk : object with methods ``value`` and ``subgradient``
        Convex in the losses, such as those of ``theory.risks``.
    sample_weight, rows, bounds, row_scale, tol, start, callback, max_iter
        As for ``minimize_cvar``; ``tol`` is in units of the risk.

    Returns
    -------
    MixtureSolution
        ``weights`` is a mean of subgradients. They prove ``lower``, together with their mean ``offset``: for every
        mixture the risk is at least ``weights @ losses @ mixture + offset``. For risks that are the mean loss under
        the worst of a set of weights the offset is 0, and ``weights`` is in that set.

    Raises
    ------
    InfeasibleRows
        If no mixture satisfies the constraints.
    ValueError
        If the risk turns out not to be convex, or its subgradient to be none.

    Examples
    --------
    Two models that fail on different rows, the first on rows that cost more. The average has the second only, a ball
    around the rows' own weights hedges:

    >>> from counterpoise.solvers import minimize_risk
    >>> from counterpoise.theory.risks import KL, Mean
    >>> losses = [[0, 1], [0, 1], [3, 0], [0, 0]]
    >>> minimize_risk(losses, Mean()).mixture.round(2).tolist()
    [0.0, 1.0]
    >>> minimize_risk(losses, 0.5 * Mean() + 0.5 * KL(0.3)).mixture.round(2).tolist()
    [0.21, 0.79]
    """
    if isinstance(risk, type) or not all(callable(getattr(risk, name, None)) for name in ("value", "subgradient")):
        raise ValueError(f"risk must have methods value and subgradient, as CVaR(0.1) and Mean() have; got {risk!r}.")
    problem = _check_problem(losses, sample_weight, rows, bounds, row_scale)
    start = None if start is None else check_mixture(start, problem.losses.shape[1], "start")
    ends = SolveLimits(check_positive(tol, "tol"), check_count(max_iter, "max_iter"), callback)
    fraction = getattr(risk, "tail_fraction", None)
    if fraction is not None:
        return _solve_tail(problem, check_alpha(fraction), start, ends, in_full=problem.suits_highs)
    planes = CuttingPlanes(problem.losses.shape[1], *problem.limits)
    oracle = RiskOracle(problem.losses, problem.sample_weight, risk)
    try:
        solution = LevelBundle(oracle, planes, ends).solve(start)
        oracle.require_proof(solution)
    except NotConvex as error:
        raise ValueError(
            f"risk must be convex in the losses, and its subgradient a slope that is nowhere above it; got {risk!r}, "
            f"whose value is {error.excess:.4g} below such a slope at another mixture. Check its two methods."
        ) from None
    return solution


class RiskCut(NamedTuple):
    """A slope of the risk at some mixture; what it came from is computed again where it is needed."""

    slope: FloatArray
    mixture: FloatArray


class RiskOracle:
    """Evaluates ``risk(losses @ mixture)`` for any mixture, with a cut that touches it there."""

    def __init__(self, losses: AnyArray, sample_weight: FloatArray | None, risk: ConvexRisk) -> None:
        self.rows, self.risk, self.sample_weight = load_rows(losses), risk, sample_weight
        self.n_models = losses.shape[1]
        # About the least and the largest value: of models that are equal at one mixture, more than rounding.
        if getattr(risk, "is_worst_case", False):  # a mean loss, or a few of them
            low, high = self.rows.low, self.rows.high
        else:
            corners = np.eye(self.n_models)[[0, -1]]
            slopes = [self.cut(mixture).slope for mixture in (*corners, np.full(self.n_models, 1.0 / self.n_models))]
            low, high = float(np.min(slopes)), float(np.max(slopes))
        self.low, self.high = low, max(high, low + _LEAST_SPAN * max(abs(low), abs(high)))

    def cut(self, mixture: FloatArray) -> RiskCut:
        """Return the slope at ``mixture``."""
        weights, offset = self._supporting(mixture)
        return RiskCut(self.rows.columns(weights) + offset, mixture)

    def value(self, mixture: FloatArray) -> float:
        """Return the risk."""
        return self._checked_value(self._scores(mixture))

    def proof(self, cuts: list[RiskCut], shares: FloatArray) -> LowerBoundProof:
        """Return the mean subgradient, and the cut that it is by itself."""
        weights, offset = np.zeros(self.rows.n_rows), 0.0
        for cut, share in zip(cuts, shares.tolist(), strict=True):
            one = self._supporting(cut.mixture)
            weights, offset = weights + share * one[0], offset + share * one[1]
        return LowerBoundProof(weights, self.rows.columns(weights) + offset, offset)

    def require_proof(self, solution: MixtureSolution) -> None:
        """Look at a few mixtures more: a slope that is none may have ended the search before any other was seen."""
        slope = self.rows.columns(solution.weights)
        corners = np.eye(self.n_models)[[0, int(slope.argmin())]]
        others = (solution.mixture, *corners, *np.random.default_rng(0).dirichlet(np.full(self.n_models, 0.5), size=1))
        for mixture in others:
            value = self.value(mixture)
            above = solution.offset + float(slope @ mixture) - value
            if above > BENT * max(self.high - self.low, abs(value)):
                raise NotConvex(above)

    def _supporting(self, mixture: FloatArray) -> tuple[FloatArray, float]:
        """Return weights w and an offset with ``w @ losses + offset`` equal to the risk here, and nowhere above it."""
        scores = self._scores(mixture)
        slopes = self.risk.subgradient(scores, self.sample_weight)
        weights = check_vector(slopes, "subgradient", scores.size, "one slope for each sample")
        if getattr(self.risk, "is_worst_case", False):  # then the mean loss under the weights is the risk
            return weights, 0.0
        return weights, self._checked_value(scores) - float(weights @ scores)

    def _checked_value(self, scores: FloatArray) -> float:
        value = float(self.risk.value(scores, self.sample_weight))
        if not np.isfinite(value):
            raise ValueError(f"risk must have a finite value for finite losses; got {value!r} from {self.risk!r}.")
        return value

    def _scores(self, mixture: FloatArray) -> FloatArray:
        scores = np.empty(self.rows.n_rows)
        self.rows.scores(mixture, scores)
        return scores
