"""The level bundle method: a convex function of a mixture, minimized from its values and slopes alone.

Each round evaluates at the point nearest to the best one where all cuts so far are below a level between the bounds
(Lemarechal, Nemirovskii and Nesterov 1995). The multipliers of the cuts mix what they came from into one cut that
proves the lower bound. Per round it costs one evaluation and two small programs with a variable for each model.
"""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.solvers.planes import CuttingPlanes, ModelMinimum
from counterpoise.solvers.result import MixtureSolution, Progress

_LEVEL = 0.8  # where the level lies between lower and value while the lower bound still rises ...
_LEVEL_STALLED = 0.35  # ... and when it does not: then it is near the optimum, and the point should move
_STALLED = 0.1  # a rise of the lower bound below this part of the gap
MAX_ITER = 2000  # far more than the dozens of rounds that are usual: reached only where rounding prevails
_ROUNDING = 1e-13  # a gap of this part of the function's range is rounding
BENT = 1e-7  # part of the function's range by which a cut may be above it: rounding

Callback = Callable[[Progress], bool | None]


class Limits(NamedTuple):
    """When a solve ends."""

    tol: float
    max_iter: int = MAX_ITER
    callback: Callback | None = None
    spare_cuts: int = 50  # kept beyond two for each model before inactive ones are dropped


class Proof(NamedTuple):
    """A mean of what cuts came from, and the cut that it is by itself."""

    weights: FloatArray  # on the samples
    slope: FloatArray
    offset: float = 0.0  # that is part of every entry of the slope


class Oracle(Protocol):
    """A convex function of a mixture. Its cuts need no offset: on the simplex that is part of every slope."""

    n_models: int
    low: float  # about the least and the largest value, for the scale of things
    high: float

    def cut(self, mixture: FloatArray) -> Any:
        """Return something whose ``slope @ x`` is the function at ``mixture`` and nowhere above it."""

    def value(self, mixture: FloatArray) -> float:
        """Return the function at ``mixture``, as exactly as it can be computed."""

    def proof(self, cuts: list[Any], shares: FloatArray) -> Proof:
        """Return the mean of cuts by shares that sum to 1, its slope computed anew."""

    def close(self) -> None:
        """Let go of what is held."""


AnyOracle = TypeVar("AnyOracle", bound=Oracle)


class LevelBundle(Generic[AnyOracle]):
    """The method on one function, or on one after the other where the cuts of the first are cuts of the next."""

    def __init__(self, oracle: AnyOracle, planes: CuttingPlanes, limits: Limits) -> None:
        self.oracle, self.planes, self.limits = oracle, planes, limits
        # The master sees a function with values in [0, 1], whatever its units.
        self.shift, self.span = oracle.low, (oracle.high - oracle.low) or 1.0
        self.cuts: list[Any] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.oracle.close()

    def put_under(self, rows: FloatArray, bounds: FloatArray, scale: FloatArray | None) -> None:
        """Put other constraints in place of the present ones; the cuts stay."""
        self.planes = CuttingPlanes(self.planes.domain, rows, bounds, scale)
        for cut in self.cuts:
            self.planes.add((cut.slope - self.shift) / self.span)

    def carry(self, cuts: list[Any]) -> None:
        """Begin with cuts that are known already."""
        for cut in cuts:
            self._add(cut)

    def solve(self, start: FloatArray | None) -> MixtureSolution:
        """Alternate between a cut at the point and the point nearest to the best one below the level."""
        point = self._feasible(start)
        best, value, lower = point, np.inf, -np.inf
        for n_iter in range(1, self.limits.max_iter + 1):
            cut = self.oracle.cut(point)
            self._require_convex(cut, point, best, value)
            self._add(cut)
            if cut.slope @ point < value:
                best, value = point, float(cut.slope @ point)
            model = self.planes.minimize()
            last, lower = lower, self._unscaled(model.lower)
            if self._is_done(Progress(n_iter, value, lower)) or n_iter == self.limits.max_iter:
                break
            self._drop_inactive(model)
            part = _LEVEL if lower - last > _STALLED * (value - lower) else _LEVEL_STALLED
            level = self._scaled(lower + part * (value - lower))
            projected = self.planes.project(best, level)
            point = model.point if projected is None else projected
        self._drop_inactive(model, spare=0)
        return self._certified(best, model, n_iter)

    def _feasible(self, start: FloatArray | None) -> FloatArray:
        n_models = self.oracle.n_models
        point = np.full(n_models, 1.0 / n_models) if start is None else start
        projected = self.planes.project(point, np.inf)
        return self.planes.inside if projected is None else projected

    def _scaled(self, value: float) -> float:
        return (value - self.shift) / self.span

    def _unscaled(self, value: float) -> float:
        return self.shift + self.span * value

    def _add(self, cut: Any) -> None:
        self.cuts.append(cut)
        self.planes.add((cut.slope - self.shift) / self.span)

    def _require_convex(self, cut: Any, point: FloatArray, best: FloatArray, value: float) -> None:
        """Refuse a function that has a cut above it: an earlier one at the point, or the new one at the best."""
        height = float(cut.slope @ point)
        earlier = self._unscaled(float((self.planes.slopes @ point).max(initial=-np.inf)))
        above = max(earlier - height, float(cut.slope @ best) - value)
        if above > BENT * max(self.span, abs(height)):
            raise NotConvex(above)

    def _is_done(self, progress: Progress) -> bool:
        stop = self.limits.callback is not None and self.limits.callback(progress)
        return bool(stop) or progress.gap <= max(self.limits.tol, _ROUNDING * self.span)

    def _drop_inactive(self, model: ModelMinimum, spare: int | None = None) -> None:
        """Forget cuts that the master's dual does not use, the newest excepted, once there are many."""
        n_models, n_cuts = self.oracle.n_models, len(self.cuts)
        spare = 2 * n_models + self.limits.spare_cuts if spare is None else spare
        if n_cuts <= spare:
            return
        used = model.shares > 0
        used[n_cuts - min(spare, n_models) :] = True
        self.planes.keep(used)
        self.cuts = [cut for cut, is_used in zip(self.cuts, used, strict=True) if is_used]

    def _certified(self, mixture: FloatArray, model: ModelMinimum, n_iter: int) -> MixtureSolution:
        """Return both players' vectors with the bounds computed from them alone."""
        proof = self.oracle.proof(self.cuts, model.shares[model.shares > 0])
        prices = model.multipliers * self.span
        lower = self.planes.proven(proof.slope, prices)
        value = self.oracle.value(mixture)
        prices = prices / self.planes.row_scale
        return MixtureSolution(mixture, proof.weights, prices, value, lower, n_iter, proof.offset)


class NotConvex(ArithmeticError):  # noqa: N818 - named for what was found
    """A cut lies above the function: it is not convex, or the slope is not its own."""

    def __init__(self, excess: float) -> None:
        self.excess = excess
        super().__init__(f"a cut lies {excess:.4g} above the function")
