"""The mixture with the least risk, for any convex risk: the level bundle method on its values and subgradients."""

from typing import NamedTuple, Protocol

import numpy as np

from counterpoise._base.checks import (
    check_count,
    check_losses,
    check_mixture,
    check_positive,
    check_row_scale,
    check_rows,
    check_sample_weight,
    check_vector,
)
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray
from counterpoise.solvers.bundle import BENT, MAX_ITER, Callback, LevelBundle, Limits, NotConvex, Proof
from counterpoise.solvers.mixture import minimize_cvar
from counterpoise.solvers.planes import CuttingPlanes, Simplex
from counterpoise.solvers.result import MixtureSolution
from counterpoise.solvers.rows import load_rows

_LEAST_SPAN = 1e-4  # part of the values: what is less of a range may be their rounding


class ConvexRisk(Protocol):
    """What the solver asks of a risk; ``theory.risks`` has many, and a base class for more."""

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
    non-negative and sum to 1. A risk that says by ``tail_fraction`` that it is a CVaR is solved by ``minimize_cvar``.

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
    fraction = getattr(risk, "tail_fraction", None)
    if fraction is not None:
        return minimize_cvar(
            losses,
            fraction,
            sample_weight=sample_weight,
            rows=rows,
            bounds=bounds,
            row_scale=row_scale,
            tol=tol,
            start=start,
            callback=callback,
            max_iter=max_iter,
        )
    matrix = check_losses(losses)
    n_samples, n_models = matrix.shape
    limits = check_rows(rows, bounds, n_models)
    planes = CuttingPlanes(Simplex(n_models), *limits, check_row_scale(row_scale, len(limits[1])))
    start = None if start is None else check_mixture(start, n_models, "start")
    oracle = RiskOracle(matrix, check_sample_weight(sample_weight, n_samples), risk)
    ends = Limits(check_positive(tol, "tol"), check_count(max_iter, "max_iter"), callback)
    try:
        found = LevelBundle(oracle, planes, ends).solve(start)
        oracle.require_proof(found)
    except NotConvex as error:
        raise ValueError(
            f"risk must be convex in the losses, and its subgradient a slope that is nowhere above it; got {risk!r}, "
            f"whose value is {error.excess:.4g} below such a slope at another mixture. Check its two methods."
        ) from None
    return found


class RiskCut(NamedTuple):
    """A slope of the risk at some mixture; what it came from is computed again where it is needed."""

    slope: FloatArray
    mixture: FloatArray


class RiskOracle:
    """Evaluates ``risk(losses @ mixture)`` for any mixture, with a cut that touches it there."""

    def __init__(self, losses: AnyArray, sample_weight: FloatArray | None, risk: ConvexRisk) -> None:
        self.rows, self.risk, self.sample_weight = load_rows(losses), risk, sample_weight
        self.n_models = losses.shape[1]
        self.low, self.high = self._range()

    def _range(self) -> tuple[float, float]:
        """Return about the least and the largest value: of models that are equal at one mixture, more than rounding."""
        if getattr(self.risk, "is_worst_case", False):  # a mean loss, or a few of them
            low, high = self.rows.low, self.rows.high
        else:
            corners = np.eye(self.n_models)[[0, -1]]
            slopes = [self.cut(mixture).slope for mixture in (*corners, np.full(self.n_models, 1.0 / self.n_models))]
            low, high = float(np.min(slopes)), float(np.max(slopes))
        return low, max(high, low + _LEAST_SPAN * max(abs(low), abs(high)))

    def cut(self, mixture: FloatArray) -> RiskCut:
        """Return the slope at ``mixture``."""
        weights, offset = self._supporting(mixture)
        return RiskCut(self.rows.columns(weights) + offset, mixture)

    def value(self, mixture: FloatArray) -> float:
        """Return the risk."""
        return self._checked_value(self._scores(mixture))

    def proof(self, cuts: list[RiskCut], shares: FloatArray) -> Proof:
        """Return the mean subgradient, and the cut that it is by itself."""
        weights, offset = np.zeros(self.rows.n_rows), 0.0
        for cut, share in zip(cuts, shares.tolist(), strict=True):
            one = self._supporting(cut.mixture)
            weights, offset = weights + share * one[0], offset + share * one[1]
        return Proof(weights, self.rows.columns(weights) + offset, offset)

    def require_proof(self, found: MixtureSolution) -> None:
        """Look at a few mixtures more: a slope that is none may have ended the search before any other was seen."""
        slope = self.rows.columns(found.weights)
        corners = np.eye(self.n_models)[[0, int(slope.argmin())]]
        others = (found.mixture, *corners, *np.random.default_rng(0).dirichlet(np.full(self.n_models, 0.5), size=1))
        for mixture in others:
            value = self.value(mixture)
            above = found.offset + float(slope @ mixture) - value
            if above > BENT * max(self.high - self.low, abs(value)):
                raise NotConvex(above)

    def close(self) -> None:
        """Hold nothing."""

    def _supporting(self, mixture: FloatArray) -> tuple[FloatArray, float]:
        """Return weights w and an offset with ``w @ losses + offset`` equal to the risk here, and nowhere above it."""
        scores = self._scores(mixture)
        given = self.risk.subgradient(scores, self.sample_weight)
        weights = check_vector(given, "subgradient", scores.size, "one slope for each sample")
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
