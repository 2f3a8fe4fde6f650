"""Compiled loops of the support vector machine, the same for dense rows, sparse rows and rows of a Gram matrix.

A matrix is a tuple of arrays: ``(values,)`` dense, ``(data, columns, ends)`` sparse (CSR), ``(gram, squares)`` a Gram
matrix and its diagonal. Only ``_score_of`` and ``_add_to`` know which it is. ``state`` is what a row is multiplied
with: the coefficients, and for a Gram matrix the scores of all its rows.

``index[k]`` is the row of the matrix that holds the problem's row ``k``: rows without weight are left out by it, and no
copy of the matrix is made.
"""

from collections.abc import Callable
from typing import Any

from numba import float32, float64, int32, int64, types, void
from numba.extending import overload, register_jitable

from counterpoise._base.compiled import kernel, kernel_family
from counterpoise._base.types import AnyArray, FloatArray, IntArray

Matrix = tuple[AnyArray, ...]

_floats = float64[::1]
_ints = int64[::1]
_SPARSE, _GRAM = 3, 2  # lengths of the tuples


def _frozen(kind: Any, ndim: int) -> Any:
    """Return the type of an array that may be read-only, as memory maps are."""
    return types.Array(kind, ndim, "C", readonly=True)


_DENSE = [types.Tuple((_frozen(kind, 2),)) for kind in (float32, float64)]
_CSR = [
    types.Tuple((_frozen(kind, 1), _frozen(place, 1), _frozen(int64, 1)))
    for kind in (float32, float64)
    for place in (int32, int64)
]
_MATRICES = [*_DENSE, *_CSR, types.Tuple((_frozen(float64, 2), _frozen(float64, 1)))]


def _dense_score(matrix: Matrix, row: int, state: FloatArray) -> float:
    values = matrix[0][row]
    n_paired = values.size - values.size % 8
    a = b = c = d = 0.0  # several sums at once: the next addition need not wait for the last
    for j in range(0, n_paired, 8):
        a += values[j] * state[j] + values[j + 1] * state[j + 1]
        b += values[j + 2] * state[j + 2] + values[j + 3] * state[j + 3]
        c += values[j + 4] * state[j + 4] + values[j + 5] * state[j + 5]
        d += values[j + 6] * state[j + 6] + values[j + 7] * state[j + 7]
    for j in range(n_paired, values.size):
        a += values[j] * state[j]
    return (a + b) + (c + d)


def _dense_add(matrix: Matrix, row: int, amount: float, state: FloatArray) -> None:
    values = matrix[0][row]
    for j in range(values.size):
        state[j] += amount * values[j]


def _sparse_score(matrix: Matrix, row: int, state: FloatArray) -> float:
    data, columns, ends = matrix
    total = 0.0
    for place in range(ends[row], ends[row + 1]):
        total += data[place] * state[columns[place]]
    return total


def _sparse_add(matrix: Matrix, row: int, amount: float, state: FloatArray) -> None:
    data, columns, ends = matrix
    for place in range(ends[row], ends[row + 1]):
        state[columns[place]] += amount * data[place]


def _gram_score(matrix: Matrix, row: int, state: FloatArray) -> float:  # noqa: ARG001
    return state[row]  # type: ignore[no-any-return]  # an entry of a float array


def _choose_score(matrix: Any, row: Any, state: Any) -> Callable[..., Any]:  # noqa: ARG001 - numba matches the names
    return {_SPARSE: _sparse_score, _GRAM: _gram_score}.get(len(matrix), _dense_score)


def _choose_add(matrix: Any, row: Any, amount: Any, state: Any) -> Callable[..., Any]:  # noqa: ARG001
    return _sparse_add if len(matrix) == _SPARSE else _dense_add


def _score_of(matrix: Matrix, row: int, state: FloatArray) -> float:
    """Return the product of a row and the state."""
    raise NotImplementedError


def _add_to(matrix: Matrix, row: int, amount: float, state: FloatArray) -> None:
    """Add a multiple of a row to the state."""
    raise NotImplementedError


overload(_score_of, strict=False)(_choose_score)
overload(_add_to, strict=False)(_choose_add)


@kernel_family([void(matrix, _ints, _floats, _floats) for matrix in _MATRICES])
def row_scores(matrix: Matrix, index: IntArray, state: FloatArray, scores: FloatArray) -> None:
    """Set ``scores`` to the products of the rows and the state."""
    for k in range(index.size):
        scores[k] = _score_of(matrix, index[k], state)


@kernel_family([void(matrix, _ints, _floats, _floats) for matrix in _MATRICES])
def row_sum(matrix: Matrix, index: IntArray, weights: FloatArray, state: FloatArray) -> None:
    """Add to the state the weighted sum of the rows."""
    for k in range(index.size):
        if weights[k] != 0.0:
            _add_to(matrix, index[k], weights[k], state)


@kernel_family([void(matrix, _ints, _floats, float64[:, ::1]) for matrix in _CSR])
def sparse_products(matrix: Matrix, index: IntArray, weights: FloatArray, products: FloatArray) -> None:
    """Add to ``products`` the weighted products of the columns with each other."""
    data, columns, ends = matrix
    for k in range(index.size):
        for place in range(ends[index[k]], ends[index[k] + 1]):
            entry = weights[k] * data[place]
            for other in range(ends[index[k]], ends[index[k] + 1]):
                products[columns[place], columns[other]] += entry * data[other]


@register_jitable  # type: ignore[untyped-decorator]
def _reply(centre: float, score: float, stiffness: float, up: float, down: float) -> float:
    """Return the best dual of one row: the exact maximum of a concave piecewise quadratic.

    It is ``-abs(dual - (up - down)) / 2 - dual * score - (dual - centre)**2 / (2 * stiffness)`` on [-down, up].
    """
    below_kink = centre + stiffness * (0.5 - score)
    above_kink = centre - stiffness * (0.5 + score)
    return min(max(min(below_kink, max(above_kink, up - down)), -down), up)


@register_jitable  # type: ignore[untyped-decorator]
def _room(dual: float, score: float, up: float, down: float) -> float:
    """Return by how much the score may change before a dual at a corner of its function leaves it."""
    if dual == up:
        return -0.5 - score if down > 0.0 else 0.5 - score
    if dual == -down:
        return score - 0.5 if up > 0.0 else score + 0.5
    if dual == up - down:
        return 0.5 - abs(score)
    return -1.0


@kernel(types.Tuple((int64, float64))(_floats, _floats, _floats, _floats, float64, _floats, _ints))
def replies(
    centre: FloatArray,
    scores: FloatArray,
    up: FloatArray,
    down: FloatArray,
    softness: float,
    duals: FloatArray,
    free: IntArray,
) -> tuple[int, float]:
    """Set ``duals`` to the best ones at the scores and ``free`` to the rows whose dual moves with the score.

    Returns how many are free, and the sum of the hinges.
    """
    n_free, hinges = 0, 0.0
    for k in range(scores.size):
        dual = _reply(centre[k], scores[k], (up[k] + down[k]) / softness, up[k], down[k])
        duals[k] = dual
        hinges += up[k] * max(0.0, 0.5 - scores[k]) + down[k] * max(0.0, 0.5 + scores[k])
        if -down[k] < dual < up[k] and dual != up[k] - down[k]:
            free[n_free] = k
            n_free += 1
    return n_free, hinges


@kernel(types.UniTuple(float64, 2)(_floats, _floats, _floats, float64, _floats, _floats, float64))
def smoothed_hinges(
    centre: FloatArray,
    scores: FloatArray,
    change: FloatArray,
    step: float,
    up: FloatArray,
    down: FloatArray,
    softness: float,
) -> tuple[float, float]:
    """Return the smoothed hinges at ``scores + step * change``, and their slope along ``change``."""
    value = slope = 0.0
    for k in range(scores.size):
        score, total = scores[k] + step * change[k], up[k] + down[k]
        dual = _reply(centre[k], score, total / softness, up[k], down[k])
        distance = dual - centre[k]
        value += (total - abs(dual - (up[k] - down[k]))) / 2 - dual * score - softness / 2 * distance * distance / total
        slope -= change[k] * dual
    return value, slope


@kernel_family(
    [
        types.Tuple((int64, float64, float64))(
            matrix, _ints, _ints, _floats, _floats, _floats, _floats, _floats, float64, float64, float64, float64
        )
        for matrix in _MATRICES
    ]
)
def sweep(
    matrix: Matrix,
    index: IntArray,
    order: IntArray,
    up: FloatArray,
    down: FloatArray,
    stiffness: FloatArray,
    duals: FloatArray,
    state: FloatArray,
    bias: float,
    state_pace: float,
    bias_pace: float,
    room: float,
) -> tuple[int, float, float]:
    """Take one exact step on each dual in turn, and keep in front of ``order`` the rows that may soon move again.

    Returns how many those are, the bias, and the most that a step changed its own row's score.
    """
    n_active, largest = 0, 0.0
    for turn in range(order.size):
        k = order[turn]
        score = _score_of(matrix, index[k], state) - bias
        dual = _reply(duals[k], score, stiffness[k], up[k], down[k])
        change = dual - duals[k]
        if change != 0.0:
            largest = max(largest, abs(change) / stiffness[k])
            duals[k] = dual
            bias -= change * bias_pace
            _add_to(matrix, index[k], change * state_pace, state)
        if change != 0.0 or _room(dual, score, up[k], down[k]) <= room:
            order[n_active] = k
            n_active += 1
    return n_active, bias, largest
