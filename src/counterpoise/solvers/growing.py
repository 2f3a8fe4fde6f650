"""The mixture problem of a pool that grows by a model at a time, as column generation makes it grow.

A cut is a set of sample weights. With another model it is the same weights with one more entry in its slope: their mean
of that model's losses. So the cuts of the solve before serve the next one, which then needs a few evaluations instead
of dozens.
"""

import numpy as np

from counterpoise._base.checks import check_alpha, check_positive
from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.solvers.bundle import LevelBundle, Limits
from counterpoise.solvers.planes import CuttingPlanes, Simplex
from counterpoise.solvers.result import MixtureSolution
from counterpoise.solvers.tail import Cut, TailOracle

_MAX_ITER = 2000
_ROOM = 0.1  # of the newest model in the mixture that a solve starts from


def minimize_linear(
    values: FloatArray, rows: FloatArray, bounds: FloatArray, *, row_scale: FloatArray | None = None
) -> MixtureSolution:
    """Return the mixture with the least mean of values, one for each model, under linear constraints.

    Arguments, result and errors are those of ``minimize_cvar`` with one sample, unchecked.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.solvers.growing import minimize_linear
    >>> found = minimize_linear(np.array([0.1, 0.5]), np.array([[1.0, 0.0]]), np.array([0.75]))
    >>> found.mixture.tolist(), round(found.value, 6), found.multipliers.round(6).tolist(), found.gap < 1e-9
    ([0.75, 0.25], 0.2, [0.4], True)
    """
    planes = CuttingPlanes(Simplex(values.size), rows, bounds, row_scale)
    low, span = float(values.min()), float(np.ptp(values)) or 1.0
    planes.add((values - low) / span)
    found = planes.minimize()
    prices = found.multipliers * span
    value, lower = float(values @ found.point), planes.proven(values, prices)
    return MixtureSolution(found.point, np.ones(1), prices / planes.row_scale, value, lower, 1)


class GrowingMixture:
    """``min over mixture of CVaR_alpha(losses @ mixture)`` under linear constraints, solved again as models are added.

    Parameters
    ----------
    alpha : float in (0, 1]
        Tail fraction.
    tol : float, default=1e-4
        The gap at which a solve ends.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.solvers.growing import GrowingMixture
    >>> losses, mixture = np.array([[0, 1], [0, 1], [1, 0], [1, 0]], dtype=np.uint8), GrowingMixture(0.5)
    >>> no_rows, no_bounds = np.empty((0, 2)), np.empty(0)
    >>> first = mixture.solve(losses[:, :1], no_rows[:, :1], no_bounds)
    >>> both = mixture.solve(losses, no_rows, no_bounds)
    >>> round(first.value, 3), round(both.value, 3)
    (1.0, 0.5)
    """

    def __init__(self, alpha: float, *, tol: float = 1e-4) -> None:
        self.alpha, self.tol = check_alpha(alpha), check_positive(tol, "tol")
        self._oracle: TailOracle | None = None
        self._cuts: list[Cut] = []
        self._weight: FloatArray | None = None
        self._mixture = np.empty(0)

    def solve(
        self,
        losses: AnyArray,
        rows: FloatArray,
        bounds: FloatArray,
        *,
        row_scale: FloatArray | None = None,
        sample_weight: FloatArray | None = None,
    ) -> MixtureSolution:
        """Return the best mixture; arguments, result and errors are those of ``minimize_cvar``, unchecked.

        The losses are those of the solve before, with further columns, on the same samples.
        """
        n_models = losses.shape[1]
        planes = CuttingPlanes(Simplex(n_models), rows, bounds, row_scale)
        oracle = self._oracle_of(losses, sample_weight)
        bundle = LevelBundle(oracle, planes, Limits(self.tol, _MAX_ITER))
        if self._cuts:
            n_known = self._cuts[0].slope.size
            bundle.carry(oracle.widened(self._cuts, losses[:, n_known:].astype(np.float64)))
        found = bundle.solve(self._start(n_models))
        self._cuts, self._mixture = bundle.cuts, found.mixture
        return found

    def _oracle_of(self, losses: AnyArray, sample_weight: FloatArray | None) -> TailOracle:
        """Return the oracle of the solve before with the models since; a new one where the samples weigh otherwise."""
        known = self._oracle
        if known is not None and _same(self._weight, sample_weight) and known.widen(losses[:, known.n_models :]):
            return known
        if known is not None:
            known.close()
        self._oracle, self._weight, self._cuts = TailOracle(losses, sample_weight, self.alpha), sample_weight, []
        return self._oracle

    def _start(self, n_models: int) -> FloatArray | None:
        n_more = n_models - self._mixture.size
        if not self._mixture.size or n_more < 0:
            return None
        fresh = np.full(n_more, _ROOM / max(n_more, 1))
        return np.append(self._mixture * (1 - fresh.sum()), fresh)


def _same(one: FloatArray | None, other: FloatArray | None) -> bool:
    if one is None or other is None:
        return one is other
    return one is other or np.array_equal(one, other)
