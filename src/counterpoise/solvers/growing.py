"""The mixture problem of a pool that grows by a model at a time, as column generation makes it grow.

Samples on which all models so far have the same losses are of one kind: they have the same score in every mixture, so
that a kind stands for them with the sum of their masses. Sixteen trees of depth 5 tell 100,000 samples into a few
thousand kinds, and a solve looks at those alone. A further model splits kinds.

A cut is a set of sample weights, alike within a kind. With another model it is the same weights with one more entry in
its slope: their mean of that model's losses. So the cuts of the solve before serve the next one, which then needs a few
evaluations instead of dozens.
"""

from typing import NamedTuple

import numpy as np

from counterpoise._base.checks import check_alpha, check_positive
from counterpoise._base.types import AnyArray, ByteArray, FloatArray, IntArray
from counterpoise.solvers.bundle import LevelBundle, Limits
from counterpoise.solvers.planes import CuttingPlanes, Simplex
from counterpoise.solvers.result import MixtureSolution
from counterpoise.solvers.rows import is_zero_one
from counterpoise.solvers.tail import Tail, TailOracle

_ROOM = 0.1  # of the newest model in the mixture that a solve starts from
_SPARSE = 4  # codes up to so many times their number are numbered by a table, others by sorting


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


class Kinds(NamedTuple):
    """Samples told apart by the losses of models."""

    of: IntArray  # the kind of each sample
    losses: AnyArray  # (n_kinds, n_models)

    @classmethod
    def alike(cls, n_samples: int) -> "Kinds":
        """Return all samples as one kind, before any model is known."""
        return cls(np.zeros(n_samples, dtype=np.int64), np.empty((1, 0), dtype=np.uint8))

    def split(self, column: AnyArray) -> "tuple[Kinds, IntArray]":
        """Return the kinds with a further model, and of which kind each was a part."""
        levels, places = _levels(column)
        present, of = _numbered(levels.size * self.of + places, levels.size * len(self.losses))
        parents = present // levels.size
        return Kinds(of, np.column_stack([self.losses[parents], levels[present % levels.size]])), parents

    def mass(self, sample_weight: FloatArray | None) -> FloatArray:
        """Return the weight of each kind, or the number of its samples."""
        return np.bincount(self.of, sample_weight, len(self.losses)).astype(np.float64)

    def shared(self, weights: FloatArray, mass: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        """Return weights of samples, given those of kinds: each has its share of its kind's."""
        each = np.divide(weights, mass, out=np.zeros(mass.size), where=mass > 0)[self.of]
        return each if sample_weight is None else each * sample_weight


def _levels(column: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return the different losses, and which of them each sample has."""
    column = np.ascontiguousarray(column)
    if is_zero_one(column):
        return np.arange(2, dtype=np.uint8), column.astype(np.int64)
    levels, places = np.unique(column, return_inverse=True)
    return levels, places


def _numbered(codes: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Return the codes below ``size`` that are there, in ascending order, and each code as its place among them."""
    if size > _SPARSE * codes.size:
        present, places = np.unique(codes, return_inverse=True)
        return present, places
    present = np.flatnonzero(np.bincount(codes, minlength=size))
    place_of = np.empty(size, dtype=np.int64)
    place_of[present] = np.arange(present.size)
    return present, place_of[codes]


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
        self._kinds = Kinds.alike(0)
        self._cuts: list[tuple[Tail, ByteArray]] = []  # with the code of each kind
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
        self._tell_apart(losses, sample_weight)
        mass = self._kinds.mass(sample_weight)
        with LevelBundle(TailOracle.of(self._kinds.losses, mass, self.alpha), planes, Limits(self.tol)) as bundle:
            bundle.carry([bundle.oracle.cut_of(*kept) for kept in self._cuts])
            found = bundle.solve(self._start(n_models))
            self._cuts = [(cut.tail, bundle.oracle.coded(cut)) for cut in bundle.cuts]
        self._mixture = found.mixture
        return found._replace(weights=self._kinds.shared(found.weights, mass, sample_weight))

    def _tell_apart(self, losses: AnyArray, sample_weight: FloatArray | None) -> None:
        """Split kinds by the models since the solve before, and the cuts with them; begin anew for other weights."""
        if not _same(self._weight, sample_weight) or self._kinds.of.size != len(losses):
            self._kinds, self._weight, self._cuts = Kinds.alike(len(losses)), sample_weight, []
        for column in losses.T[self._kinds.losses.shape[1] :]:
            self._kinds, parents = self._kinds.split(column)
            self._cuts = [(tail, codes[parents]) for tail, codes in self._cuts]

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
