"""Level bundle methods: minimise a convex function, or maximise a concave one, from its cuts.

``LevelBundle`` minimises a convex function of a mixture from its values and slopes alone. Each iteration evaluates at
the point nearest to the best one where all cuts so far are below a level between the bounds (Lemarechal, Nemirovskii
and Nesterov 1995). The multipliers of the cuts mix what they came from into one cut that proves the lower bound. An
iteration costs one evaluation and two small programs with a variable for each model.

``maximize_concave`` is Algorithm 2 of Goh, Cotter, Gupta and Friedlander (2016)::

    max over multipliers in [0, radius]**m of F(multipliers)

An oracle takes an accuracy and returns bounds on F at a point, with a cut: a linear function that is nowhere below F.
The least of the cuts is a concave model above F. Its maximum bounds that of F from above, and the best answer of the
oracle bounds it from below.

There are three ways to choose the next point. ``"maximum"`` takes the point where the model is highest (the paper's
Definition 1; simple, and unstable with more than a few multipliers). ``"center-of-mass"`` takes that of the region
between the model and the best lower bound, exact for one multiplier (Definition 2). ``"level"`` takes the point nearest
to the best one at which the model is above a level between the bounds. The paper does not have it. Its steps are as
short as the model allows, so that dozens of multipliers need few answers. All ask the oracle for half the distance of
their level from the best lower bound: an answer then either raises that bound or cuts the point off.
"""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from counterpoise._base.budget import check_budget
from counterpoise._base.checks import check_choice, check_count, check_positive, check_vector
from counterpoise._base.types import ArrayLike, FloatArray
from counterpoise.solvers.linear_program import CuttingPlanes, MixtureSolution, ModelMinimum, Progress, power_of_two

_LEVEL = 0.8  # where the level lies between lower and value while the lower bound still rises ...
_LEVEL_STALLED = 0.35  # ... and when it does not: then it is near the optimum, and the point should move
_STALLED = 0.1  # a rise of the lower bound below this part of the gap
MAX_ITER = 2000  # far more than the dozens of rounds that are usual: reached only where rounding prevails
_ROUNDING = 1e-13  # a gap of this part of the function's range is rounding
BENT = 1e-7  # part of the function's range by which a cut may be above it: rounding

Callback = Callable[[Progress], bool | None]


class SolveLimits(NamedTuple):
    """When a solve ends."""

    tol: float
    max_iter: int = MAX_ITER
    callback: Callback | None = None
    spare_cuts: int = 50  # kept beyond two for each model before inactive ones are dropped


class LowerBoundProof(NamedTuple):
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

    def proof(self, cuts: list[Any], shares: FloatArray) -> LowerBoundProof:
        """Return the mean of cuts by shares that sum to 1, its slope computed anew."""


AnyOracle = TypeVar("AnyOracle", bound=Oracle)


class LevelBundle(Generic[AnyOracle]):
    """The method on one function, or on one after the other where the cuts of the first are cuts of the next."""

    def __init__(self, oracle: AnyOracle, planes: CuttingPlanes, limits: SolveLimits) -> None:
        self.oracle, self.planes, self.limits = oracle, planes, limits
        # The master sees a function with values in [0, 1], whatever its units.
        self.shift, self.span = oracle.low, (oracle.high - oracle.low) or 1.0
        self.cuts: list[Any] = []

    def carry(self, cuts: list[Any]) -> None:
        """Take in cuts that are known already."""
        for cut in cuts:
            self.cuts.append(cut)
            self.planes.add((cut.slope - self.shift) / self.span)

    def solve(self, start: FloatArray | None) -> MixtureSolution:
        """Alternate between a cut at the point and the point nearest to the best one below the level."""
        n_models, limits = self.oracle.n_models, self.limits
        begin = self.planes.project(np.full(n_models, 1.0 / n_models) if start is None else start, np.inf)
        point = self.planes.inside if begin is None else begin
        best, value, lower = point, np.inf, -np.inf
        for n_iter in range(1, limits.max_iter + 1):
            cut = self.oracle.cut(point)
            height = float(cut.slope @ point)
            # Refuse a function that has a cut above it: an earlier one at the point, or the new one at the best.
            earlier = self.shift + self.span * float((self.planes.slopes @ point).max(initial=-np.inf))
            above = max(earlier - height, float(cut.slope @ best) - value)
            if above > BENT * max(self.span, abs(height)):
                raise NotConvex(above)
            self.carry([cut])
            if height < value:
                best, value = point, height
            model = self.planes.minimize()
            last, lower = lower, self.shift + self.span * model.lower
            stop = limits.callback is not None and limits.callback(Progress(n_iter, value, lower))
            if stop or value - lower <= max(limits.tol, _ROUNDING * self.span) or n_iter == limits.max_iter:
                break
            self._drop_inactive(model, 2 * n_models + limits.spare_cuts)
            part = _LEVEL if lower - last > _STALLED * (value - lower) else _LEVEL_STALLED
            nearest = self.planes.project(best, (lower + part * (value - lower) - self.shift) / self.span)
            point = model.point if nearest is None else nearest
        self._drop_inactive(model, 0)
        # Both players' vectors, with the bounds computed from them alone: the cut at the best point gave its value.
        proof = self.oracle.proof(self.cuts, model.shares[model.shares > 0])
        prices = model.multipliers * self.span
        lower = self.planes.proven(proof.slope, prices)
        prices = prices / self.planes.row_scale
        return MixtureSolution(best, proof.weights, prices, value, lower, n_iter, proof.offset)

    def _drop_inactive(self, model: ModelMinimum, spare: int) -> None:
        """Forget cuts that the master's dual does not use, the newest excepted, once there are many."""
        n_models, n_cuts = self.oracle.n_models, len(self.cuts)
        if n_cuts <= spare:
            return
        is_active = model.shares > 0
        is_active[n_cuts - min(spare, n_models) :] = True
        self.planes.keep(is_active)
        self.cuts = [cut for cut, is_needed in zip(self.cuts, is_active, strict=True) if is_needed]


class NotConvex(ArithmeticError):  # noqa: N818 - a state, not an error
    """A cut lies above the function: it is not convex, or the slope is not its own."""

    def __init__(self, excess: float) -> None:
        self.excess = excess
        super().__init__(f"a cut lies {excess:.4g} above the function")


_CONCAVE_LEVEL = 0.5  # where the level lies between the bounds
_FIRST = 100.0  # times the tolerance: the accuracy of the first answer, when nothing is known yet
_MAX_ITER = 1000
_MAX_MISSES = 3  # an oracle that has reached its limits will not do better the next time, and is slow in it
_MULTIPLIER_ROUNDING = 1e-9  # part of an accuracy that does not make a miss


class OracleAnswer(NamedTuple):
    """What is known of a concave function at a point: ``lower <= F <= upper``, and a cut above F everywhere.

    The cut is ``upper + slope @ (multipliers - point)``.
    """

    lower: float
    upper: float
    slope: FloatArray


MultiplierOracle = Callable[[FloatArray, float], OracleAnswer]


class MultiplierSolution(NamedTuple):
    """The best known multipliers, and bounds on the greatest value."""

    multipliers: FloatArray  # where ``lower`` was reached
    lower: float
    upper: float  # the maximum of the model
    best: int  # the place of the answer that reached ``lower``, counted from 0
    shares: FloatArray  # of the cuts in the proof of ``upper``, those given first: non-negative, summing to 1
    n_iter: int

    @property
    def gap(self) -> float:
        """Return ``upper - lower``."""
        return self.upper - self.lower


def maximize_concave(
    oracle: MultiplierOracle,
    n_multipliers: int,
    *,
    radius: float,
    tol: float = 1e-4,
    start: ArrayLike | None = None,
    cuts: tuple[FloatArray, FloatArray] | None = None,
    chooser: str = "auto",
    max_iter: int = _MAX_ITER,
) -> MultiplierSolution:
    """Maximize a concave function over multipliers in [0, radius].

    Parameters
    ----------
    oracle : callable
        ``oracle(multipliers, accuracy)`` returns an ``OracleAnswer`` whose bounds should be at most ``accuracy`` apart.
    n_multipliers : int
        How many there are.
    radius : float > 0
        The largest multiplier allowed.
    tol : float, default=1e-4
        Stop when ``upper - lower`` is at most this, in units of the function.
    start : array of shape (n_multipliers,), optional
        The first point; by default zero.
    cuts : pair of arrays of shape (n_cuts,) and (n_cuts, n_multipliers), optional
        Offsets and slopes of linear functions ``offset + slope @ multipliers`` that are known to be nowhere below F.
    chooser : {"auto", "center-of-mass", "level", "maximum"}, default="auto"
        How the next point is chosen; "auto" is "center-of-mass" for one multiplier and "level" for more.
    max_iter : int, default=1000
        Stop after so many answers, whatever the gap; and after three that are less accurate than requested.

    Returns
    -------
    MultiplierSolution
        ``multipliers``, ``lower``, ``upper``, ``gap``, ``best``, ``shares``, ``n_iter``.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.solvers import OracleAnswer, maximize_concave
    >>> def oracle(v, accuracy):
    ...     value = -float((v[0] - 2) ** 2)
    ...     return OracleAnswer(value, value, np.array([-2 * (v[0] - 2)]))
    >>> solution = maximize_concave(oracle, 1, radius=10.0, tol=1e-6)
    >>> solution.multipliers.round(2).tolist(), solution.gap <= 1e-6
    ([2.0], True)
    """
    size, tol = check_count(n_multipliers, "n_multipliers"), check_positive(tol, "tol")
    radius, limit = check_positive(radius, "radius"), check_count(max_iter, "max_iter")
    chooser = check_choice(chooser, "chooser", ("auto", "center-of-mass", "level", "maximum"))
    if chooser == "auto":
        chooser = "center-of-mass" if size == 1 else "level"
    if chooser == "center-of-mass" and size > 1:
        raise ValueError(
            f"chooser='center-of-mass' is exact for one multiplier only; got {size}. Use 'level' or 'maximum'."
        )
    point = np.zeros(size) if start is None else check_vector(start, "start", size, "one for each multiplier")
    point, accuracy, n_misses = np.clip(point, 0.0, radius), _FIRST * tol, 0
    answer = _check_answer(oracle(point, accuracy), size)
    # In parts of a unit a solver's tolerances mean the same for functions of any size.
    model = _Model(size, radius, power_of_two(max(abs(answer.upper), float(np.abs(answer.slope).max()))))
    for offset, slope in zip(*cuts, strict=True) if cuts is not None else ():
        model.planes.add(-slope / model.unit, -float(offset) / model.unit)
    while True:
        check_budget()
        model.add(point, answer)
        n_misses += answer.upper - answer.lower > (1 + _MULTIPLIER_ROUNDING) * accuracy
        top = model.planes.minimize()
        gap = model.unit * (-top.lower - model.lower)
        if gap <= tol or len(model.points) >= limit or n_misses >= _MAX_MISSES:
            upper = max(-top.lower, model.lower)  # equal but for rounding where the model is exact
            bounds = model.unit * model.lower, model.unit * upper
            return MultiplierSolution(model.points[model.best], *bounds, model.best, top.shares, len(model.points))
        if chooser == "center-of-mass":
            point, level = _at_center_of_mass(model, top)
        elif chooser == "maximum":
            point, level = top.point, -top.lower
        else:  # the point nearest to the best one where the model is at least the level
            level = model.lower + _CONCAVE_LEVEL * (-top.lower - model.lower)
            nearest = model.planes.project(model.points[model.best], -level)
            point = top.point if nearest is None else nearest  # rounding near the end: the top always will do
        accuracy = max(model.unit * (level - model.lower) / 2, tol / 4)
        answer = _check_answer(oracle(point, accuracy), size)


def _check_answer(answer: OracleAnswer, size: int) -> OracleAnswer:
    slope = check_vector(answer.slope, "slope", size, "one entry for each multiplier")
    if not -np.inf < answer.lower <= answer.upper < np.inf:
        raise ValueError(
            "oracle must return finite bounds with lower <= upper; "
            f"got lower {float(answer.lower)!r} and upper {float(answer.upper)!r}."
        )
    return OracleAnswer(float(answer.lower), float(answer.upper), slope)


class _Model:
    """The answers so far: cuts below the convex ``-F``, and the best lower bound of F, in parts of a unit."""

    def __init__(self, size: int, radius: float, unit: float) -> None:
        self.radius, self.unit = radius, unit
        self.planes = CuttingPlanes(size, np.empty((0, size)), np.empty(0), most=radius)
        self.points: list[FloatArray] = []
        self.lower, self.best = -np.inf, 0

    def add(self, point: FloatArray, answer: OracleAnswer) -> None:
        """Take in an answer at a point."""
        lower, upper, slope = answer.lower / self.unit, answer.upper / self.unit, answer.slope / self.unit
        if lower > self.lower:
            self.lower, self.best = lower, len(self.points)
        self.points.append(point.copy())
        self.planes.add(-slope, float(slope @ point) - upper)


def _at_center_of_mass(model: _Model, top: ModelMinimum) -> tuple[FloatArray, float]:
    """Return the centre of mass of what lies between the model and the best lower bound, for one multiplier."""
    slopes, offsets, radius = -model.planes.slopes[:, 0], -model.planes.offsets, model.radius
    steeper = np.subtract.outer(slopes, slopes)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = np.subtract.outer(offsets, offsets) / -steeper
        floor_crossings = (model.lower - offsets) / slopes
    places = np.concatenate([[0.0, radius], crossings[steeper > 0], floor_crossings[slopes != 0]])
    places = np.unique(places[(places >= 0) & (places <= radius)])
    heights = np.maximum((offsets + np.outer(places, slopes)).min(axis=1) - model.lower, 0.0)
    # Trapezoids between neighbouring places: areas, and their first moments along both axes.
    widths, left, right = np.diff(places), heights[:-1], heights[1:]
    area = float((widths * (left + right)).sum() / 2)
    if not area > 0:
        return top.point, -top.lower
    along = widths * (places[:-1] * (2 * left + right) + places[1:] * (left + 2 * right)) / 6
    upward = widths * (left**2 + left * right + right**2) / 6
    return np.array([along.sum() / area]), model.lower + float(upward.sum()) / area
