"""Maximization of a concave function of multipliers by cutting planes, from inexact answers.

Algorithm 2 of Goh, Cotter, Gupta and Friedlander (2016)::

    max over multipliers in [0, radius]**m of F(multipliers),

where an oracle, asked for an accuracy, answers with bounds on F at a point and a cut: a linear function that is nowhere
below F. The least of the cuts is a concave model above F. Its maximum bounds F's from above, the best answer does from
below.

Three ways to choose the next point. ``"maximum"``: where the model is highest (the paper's Definition 1; simple, and
unstable from a few multipliers on). ``"center-of-mass"``: that of what lies between the model and the best lower bound,
exact for one multiplier (Definition 2). ``"level"``: the point nearest to the best one at which the model is above a
level between the bounds (Lemarechal, Nemirovskii and Nesterov 1995), which the paper does not have: its steps are as
short as the model allows, so that dozens of multipliers need few answers. All ask the oracle for half the distance of
their level from the best lower bound: then an answer either lifts that bound or cuts the point off.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from counterpoise._base.checks import check_choice, check_count, check_positive, check_vector
from counterpoise._base.types import ArrayLike, FloatArray
from counterpoise.solvers.planes import Box, CuttingPlanes, ModelMinimum
from counterpoise.solvers.result import power_of_two

_LEVEL = 0.5  # where the level lies between the bounds
_FIRST = 100.0  # times the tolerance: the accuracy of the first answer, when nothing is known yet
_MAX_ITER = 1000
_MAX_MISSES = 3  # an oracle that has reached its limits will not do better the next time, and is slow in it
_ROUNDING = 1e-9  # part of an accuracy that does not make a miss


class OracleAnswer(NamedTuple):
    """What is known of a concave function at a point: ``lower <= F <= upper``, and a cut above F everywhere.

    The cut is ``upper + slope @ (multipliers - point)``.
    """

    lower: float
    upper: float
    slope: FloatArray


Oracle = Callable[[FloatArray, float], OracleAnswer]


class MultiplierSolution(NamedTuple):
    """The best multipliers found, and bounds on the greatest value."""

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
    oracle: Oracle,
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
        Where to ask first; by default at zero.
    cuts : pair of arrays of shape (n_cuts,) and (n_cuts, n_multipliers), optional
        Offsets and slopes of linear functions ``offset + slope @ multipliers`` that are known to be nowhere below F.
    chooser : {"auto", "center-of-mass", "level", "maximum"}, default="auto"
        How the next point is chosen; "auto" is "center-of-mass" for one multiplier and "level" for more.
    max_iter : int, default=1000
        Stop after so many answers, whatever the gap; and after three that are less accurate than was asked for.

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
    >>> found = maximize_concave(oracle, 1, radius=10.0, tol=1e-6)
    >>> found.multipliers.round(2).tolist(), found.gap <= 1e-6
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
    answer = _checked(oracle(point, accuracy), size)
    model = _Model(size, radius, _unit(answer))
    for offset, slope in zip(*cuts, strict=True) if cuts is not None else ():
        model.planes.add(-slope / model.unit, -float(offset) / model.unit)
    while True:
        model.add(point, answer)
        n_misses += answer.upper - answer.lower > (1 + _ROUNDING) * accuracy
        top = model.planes.minimize()
        gap = model.unit * (-top.lower - model.lower)
        if gap <= tol or len(model.points) >= limit or n_misses >= _MAX_MISSES:
            return model.solution(top)
        point, level = _CHOOSERS[chooser](model, top)
        accuracy = max(model.unit * (level - model.lower) / 2, tol / 4)
        answer = _checked(oracle(point, accuracy), size)


def _unit(answer: OracleAnswer) -> float:
    """Return what the model is in parts of, so that a solver's tolerances mean the same for functions of any size."""
    return power_of_two(max(abs(answer.upper), float(np.abs(answer.slope).max())))


def _checked(answer: OracleAnswer, size: int) -> OracleAnswer:
    slope = check_vector(answer.slope, "slope", size, "one entry for each multiplier")
    if not -np.inf < answer.lower <= answer.upper < np.inf:
        raise ValueError(
            "oracle must return finite bounds with lower <= upper; "
            f"got lower {float(answer.lower)!r} and upper {float(answer.upper)!r}."
        )
    return OracleAnswer(float(answer.lower), float(answer.upper), slope)


class _Model:
    """What the answers so far say: cuts below the convex ``-F``, and the best lower bound of F, in parts of a unit."""

    def __init__(self, size: int, radius: float, unit: float) -> None:
        self.unit = unit
        self.planes = CuttingPlanes(Box(size, radius), np.empty((0, size)), np.empty(0))
        self.points: list[FloatArray] = []
        self.lower, self.best = -np.inf, 0

    def add(self, point: FloatArray, answer: OracleAnswer) -> None:
        """Take in an answer at a point."""
        lower, upper, slope = answer.lower / self.unit, answer.upper / self.unit, answer.slope / self.unit
        if lower > self.lower:
            self.lower, self.best = lower, len(self.points)
        self.points.append(point.copy())
        self.planes.add(-slope, float(slope @ point) - upper)

    def solution(self, top: ModelMinimum) -> MultiplierSolution:
        """Return the best point with the bounds."""
        upper = self.unit * max(-top.lower, self.lower)  # equal but for rounding where the model is exact
        lower, best = self.unit * self.lower, self.best
        return MultiplierSolution(self.points[best], lower, upper, best, top.shares, len(self.points))


def _at_maximum(_model: _Model, top: ModelMinimum) -> tuple[FloatArray, float]:
    return top.point, -top.lower


def _at_level(model: _Model, top: ModelMinimum) -> tuple[FloatArray, float]:
    """Return the point nearest to the best one where the model is at least the level."""
    level = model.lower + _LEVEL * (-top.lower - model.lower)
    projected = model.planes.project(model.points[model.best], -level)
    return top.point if projected is None else projected, level  # rounding near the end: the top always will do


def _at_center_of_mass(model: _Model, top: ModelMinimum) -> tuple[FloatArray, float]:
    """Return the centre of mass of what lies between the model and the best lower bound, for one multiplier."""
    slopes, offsets, radius = -model.planes.slopes[:, 0], -model.planes.offsets, model.planes.domain.most
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


_CHOOSERS: dict[str, Callable[[_Model, ModelMinimum], tuple[FloatArray, float]]] = {
    "maximum": _at_maximum,
    "level": _at_level,
    "center-of-mass": _at_center_of_mass,
}
