"""The solver that Goh et al. (2016) describe, as a reference: Algorithms 2 and 3, with SDCA inside.

``cutting_plane`` is Algorithm 2: cutting planes over the multipliers of the constraints, each the greatest point of the
model (Definition 1). For given multipliers ``svm_optimizer`` is Algorithm 3: cutting planes over the bias, each at the
centre of mass of what the model leaves (Definition 4). For a given bias ``sdca`` is stochastic dual coordinate ascent
(Shalev-Shwartz and Zhang 2013) on (19). ``beside_sdca`` compares the library's solvers with these.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.optimize import linprog

from papers.arrays import FloatArray

_HALF = 0.5
_EPOCHS = 50  # between two looks at the duality gap
_MOST_LOOKS = 4000
_MOST_CUTS = 300


class HingeProgram(NamedTuple):
    """Problem 3: ``rising[j]`` and ``falling[j]`` weigh the hinges of each row in rate j, 0 being the objective."""

    X: FloatArray
    rising: FloatArray  # (1 + m, n): of max(0, 1/2 + score)
    falling: FloatArray  # of max(0, 1/2 - score)
    bounds: FloatArray  # (m,)
    regularization: float

    def hinges(self, scores: FloatArray) -> FloatArray:
        """Return the value of each rate."""
        return np.asarray(self.rising @ np.maximum(0, 0.5 + scores) + self.falling @ np.maximum(0, 0.5 - scores))


class Inner(NamedTuple):
    """A solution for given multipliers: coefficients, bias, and bounds on the least value."""

    w: FloatArray
    b: float
    lower: float
    upper: float


@njit(cache=True)  # type: ignore[untyped-decorator,unused-ignore]
def _epochs(X, alpha, beta, shift, regularization, xi, w, order):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    """Go over the rows in some order: each dual variable moves to its best place, and w with it."""
    for i in order:
        square = X[i] @ X[i] / regularization
        score = X[i] @ w - shift
        # The dual along xi_i: score - square * step must lie in the subdifferential of the conjugate.
        edge = alpha[i] - beta[i]  # where the conjugate has its kink; slope -1/2 below it and 1/2 above
        if square == 0.0:
            new = alpha[i] if score > _HALF else (-beta[i] if score < -_HALF else edge)
        else:
            high, low = xi[i] + (score - _HALF) / square, xi[i] + (score + _HALF) / square
            new = min(max(edge, high), low)
        new = min(max(new, -beta[i]), alpha[i])
        w -= (new - xi[i]) / regularization * X[i]
        xi[i] = new


def sdca(program: HingeProgram, v: FloatArray, b: float, xi: FloatArray, accuracy: float) -> tuple[Inner, float]:
    """Return the solution for given multipliers and bias, and the slope of its dual value in the bias."""
    shares = np.append(1.0, v)
    alpha, beta = shares @ program.rising, shares @ program.falling
    np.clip(xi, -beta, alpha, out=xi)  # where the last call left them
    w = -(xi @ program.X) / program.regularization
    rng, constant = np.random.default_rng(0), float(v @ program.bounds)
    for _ in range(_MOST_LOOKS):
        for _ in range(_EPOCHS):
            _epochs(program.X, alpha, beta, b, program.regularization, xi, w, rng.permutation(len(xi)))
        ridge = program.regularization / 2 * float(w @ w)
        upper = float(shares @ program.hinges(program.X @ w - b)) + ridge - constant
        conjugate = np.abs(xi - alpha + beta) / 2 - (alpha + beta) / 2
        lower = -float(conjugate.sum()) - ridge - b * float(xi.sum()) - constant
        if upper - lower <= accuracy:
            break
    return Inner(w.copy(), b, lower, upper), -float(xi.sum())


def svm_optimizer(program: HingeProgram, v: FloatArray, accuracy: float, *, reach: float) -> Inner:
    """Algorithm 3: the best bias in ``[-reach, reach]`` and the coefficients for given multipliers."""
    xi, cuts, best = np.zeros(len(program.X)), list[tuple[float, float]](), None
    low, high = -reach, reach
    place, asked = 0.0, 1.0
    for _ in range(_MOST_CUTS):
        inner, slope = sdca(program, v, place, xi, asked)
        cuts.append((inner.lower - slope * place, slope))  # offset and slope of a line below the least value
        best = inner if best is None or inner.upper < best.upper else best
        offsets, slopes = np.array(cuts).T
        place, height, lower = _center_of_mass(offsets, slopes, best.upper, low, high)
        if best.upper - lower <= accuracy:
            break
        asked = max((best.upper - height) / 2, accuracy / 8)
    assert best is not None  # noqa: S101 - there was a round
    return best._replace(lower=lower)


def _center_of_mass(
    offsets: FloatArray, slopes: FloatArray, top: float, low: float, high: float
) -> tuple[float, float, float]:
    """Return the centre of mass of what lies between the greatest of some lines and a height, and the least of them."""
    i, j = np.triu_indices(len(slopes), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        edges = np.concatenate([(offsets[j] - offsets[i]) / (slopes[i] - slopes[j]), (top - offsets) / slopes])
    edges = np.unique(np.append(edges[np.isfinite(edges) & (edges > low) & (edges < high)], [low, high]))
    values = (offsets[:, None] + np.outer(slopes, edges)).max(axis=0)
    least = int(values.argmin())
    room = np.maximum(top - values, 0.0)
    widths, left, right = np.diff(edges), room[:-1], room[1:]
    area = float((widths * (left + right)).sum()) / 2
    if not area > 0.0:
        return float(edges[least]), float(values[least]), float(values[least])
    along = widths * (edges[:-1] * (2 * left + right) + edges[1:] * (left + 2 * right)) / 6
    down = widths * (left**2 + left * right + right**2) / 6
    return float(along.sum()) / area, top - float(down.sum()) / area, float(values[least])


def cutting_plane(program: HingeProgram, *, largest: float, reach: float, accuracy: float) -> tuple[FloatArray, float]:
    """Algorithm 2 with Definition 1: multipliers in ``[0, largest]`` of the greatest dual value, and a bound on it."""
    m = len(program.bounds)
    v, cuts, lower, asked = np.zeros(m), list[FloatArray](), -math.inf, 1.0
    best = v
    for _ in range(_MOST_CUTS):
        inner = svm_optimizer(program, v, asked, reach=reach)
        slope = program.hinges(program.X @ inner.w - inner.b)[1:] - program.bounds
        if inner.lower > lower:
            lower, best = inner.lower, v
        cuts.append(np.append(slope, inner.upper - slope @ v))
        lines = np.array(cuts)
        solution = linprog(  # the greatest height below all cuts
            np.append(np.zeros(m), -1.0),
            np.hstack([-lines[:, :m], np.ones((len(lines), 1))]),
            lines[:, m],
            bounds=[(0, largest)] * m + [(None, None)],
        )
        v, upper = solution.x[:m], -solution.fun
        if upper - lower <= accuracy:
            break
        asked = max((upper - lower) / 2, accuracy / 4)
    return best, lower
