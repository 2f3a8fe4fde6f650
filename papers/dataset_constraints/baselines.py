"""What Goh et al. (2016) compare with: the covariance constraint of Zafar et al. (2015), and shifting the bias."""

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from counterpoise.goals import Table, bind, bind_objective, error_rate
from counterpoise.solvers import OracleAnswer, maximize_concave
from counterpoise.solvers.ramp import LinearMachine, RampOptions, RampProblem, best_mean, minimize_ramp
from counterpoise.solvers.svm import solve_svm
from papers.arrays import AnyArray, ArrayLike, BoolArray, FloatArray

Probabilities: TypeAlias = Callable[[Any], AnyArray]  # from rows to the probabilities of positive predictions

_HALF = 0.5
_ROOM = 0.75  # what the hinges of the pseudo-row may reach: 1/2 + 1/4
# The rate 1/2 of all hinges at zero coefficients, over the room of 1/4 that the constraints have there: at the optimum
# no multiplier is larger.
_RADIUS = 2.0
_RAMP_RADIUS = 4.0  # by the same reason: bounds of ramps are at most 1 there
# The column of the bias, which is regularized a million times less than the others: about 1e-10 of the mean hinge, far
# below the tolerance. It must be a column, because the pseudo-row has no bias.
_CONSTANT = 1000.0
_MET = 1e-12  # a goal missed by less is met: sums over rows are not exact


class LinearScores(NamedTuple):
    """A linear classifier: positive where the score is above zero."""

    coefficients: FloatArray
    bias: float

    def __call__(self, X: Any) -> FloatArray:
        """Return the score of each row."""
        return np.asarray(X @ self.coefficients - self.bias)

    def above(self, threshold: float) -> Probabilities:
        """Return the decisions: 1 where the score is above the threshold, else 0."""
        return lambda X: np.asarray(self(X) > threshold, dtype=np.float64)


def plain_svm(
    X: Any, positive: BoolArray, *, regularization: float, fit_bias: bool = True, tol: float = 1e-3
) -> LinearScores:
    """Return the support vector machine without any goal; rows count alike, and a bias is not regularized."""
    share = 1.0 / len(positive)
    found = solve_svm(X, share * positive, share * ~positive, regularization, fit_bias=fit_bias, tol=tol)
    return LinearScores(found.coefficients, found.bias)


def mean_difference(X: Any, group: BoolArray) -> FloatArray:
    """Return the mean of the rows in the group less that of the others: the x-bar of equation (8)."""
    inside, outside = (np.asarray(X[rows].mean(axis=0), dtype=np.float64).ravel() for rows in (group, ~group))
    return inside - outside


def zafar_svm(
    X: Any,
    positive: BoolArray,
    group: BoolArray,
    *,
    c: float,
    regularization: float,
    fit_bias: bool = True,
    tol: float = 1e-3,
) -> LinearScores:
    """Return the support vector machine whose mean scores in the group and outside it differ by at most ``c``.

    ``min of regularization / 2 * |w|**2 + mean hinge  subject to  -c <= <w, x-bar> <= c``, as Appendix D has it: with
    the pseudo-row ``x-bar / (4 c)``, whose score is z, the two sides are ``max(0, 1/2 + z) <= 3/4`` and
    ``max(0, 1/2 - z) <= 3/4``. For given multipliers of these it is one more row of a weighted support vector machine.
    The bias, which that row must not have, is a column of 1000, so regularized a million times less than a coefficient.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_rows, n_columns)
    positive, group : bool arrays of shape (n_rows,)
        The rows labelled positive, and those of one of the two groups.
    c : float > 0
        The largest covariance, in units of the scores; margins lie at -1/2 and 1/2.
    regularization : float > 0
    fit_bias : bool, default=True
    tol : float, default=1e-3
        Gap to the optimum, in units of the mean hinge.

    Returns
    -------
    LinearScores

    Examples
    --------
    >>> import numpy as np
    >>> from papers.dataset_constraints.baselines import mean_difference, zafar_svm
    >>> X = np.array([[1.0, 1.0], [0.5, 1.0], [-1.0, 0.0], [-0.5, 0.0]])
    >>> positive, group = np.array([True, True, False, False]), np.array([True, True, False, False])
    >>> found = zafar_svm(X, positive, group, c=0.1, regularization=0.01)
    >>> bool(abs(found.coefficients @ mean_difference(X, group)) <= 0.1)
    True
    """
    if not c > 0:
        raise ValueError(f"c must be above 0; got {c!r}.")
    pseudo = mean_difference(X, group) / (4.0 * c)
    rows = _with_constant(X, pseudo, _CONSTANT if fit_bias else 0.0)
    share, n_columns = 1.0 / len(positive), rows.shape[1]
    up, down = np.append(share * positive, 0.0), np.append(share * ~positive, 0.0)
    points, values = [np.zeros(n_columns)], [np.array([_HALF, _HALF - _ROOM, _HALF - _ROOM])]
    last = None

    def answer(multipliers: FloatArray, accuracy: float) -> OracleAnswer:
        nonlocal last
        down[-1], up[-1] = multipliers
        last = solve_svm(rows, up, down, regularization, fit_bias=False, tol=accuracy, start=last)
        score = float(pseudo @ last.coefficients[:-1])
        hinges = np.maximum(0.0, _HALF + np.array([score, -score]))
        points.append(last.coefficients)
        values.append(np.append(last.value - multipliers @ hinges, hinges - _ROOM))
        allowed = _ROOM * float(multipliers.sum())
        return OracleAnswer(last.lower - allowed, last.value - allowed, hinges - _ROOM)

    maximize_concave(answer, 2, radius=_RADIUS, tol=tol, chooser="level")
    # A mean of points has no larger hinges than they have on average, so it keeps the constraint; zero is among them.
    best = best_mean(np.array(values), radius=_RADIUS) @ np.array(points)
    return LinearScores(best[:-1], -_CONSTANT * float(best[-1]) if fit_bias else 0.0)


def zafar_ramp(
    X: Any, positive: BoolArray, group: BoolArray, *, c: float, regularization: float, tol: float = 1e-3
) -> LinearScores:
    """Return the classifier of little ramp loss whose mean scores in the group and outside it differ by at most ``c``.

    The last form of Appendix D: the pseudo-row of ``zafar_svm`` is an egregious example, ``1/4 <= ramp(z) <= 3/4``.
    That is the same bound; what differs is the loss, to which rows far on the wrong side no longer matter. From the
    point of ``zafar_svm`` on no step raises it.

    Parameters and result are those of ``zafar_svm``; ``tol`` is the gain of a majorization at which it ends.

    Examples
    --------
    >>> import numpy as np
    >>> from papers.dataset_constraints.baselines import mean_difference, zafar_ramp
    >>> X = np.array([[1.0, 1.0], [0.5, 1.0], [-1.0, 0.0], [-0.5, 0.0]])
    >>> positive, group = np.array([True, True, False, False]), np.array([True, True, False, False])
    >>> found = zafar_ramp(X, positive, group, c=0.1, regularization=0.01)
    >>> bool(abs(found.coefficients @ mean_difference(X, group)) <= 0.1)
    True
    """
    first = zafar_svm(X, positive, group, c=c, regularization=regularization, tol=tol)
    rows = _with_constant(X, mean_difference(X, group) / (4.0 * c))
    share, pseudo = 1.0 / len(positive), np.append(np.zeros(len(positive)), 1.0)
    weights = np.vstack([np.append(np.where(positive, -share, share), 0.0), pseudo, -pseudo])
    constants = np.array([positive.mean(), -_ROOM, 1.0 - _ROOM])
    problem = RampProblem(LinearMachine(rows, fit_bias=False), sp.csr_array(weights), constants, regularization)
    start = np.concatenate([first.coefficients, [-first.bias / _CONSTANT, 0.0]])
    point = minimize_ramp(problem, start, RampOptions(tol=tol, radius=_RAMP_RADIUS)).state.point
    return LinearScores(point[:-2], -_CONSTANT * float(point[-2]))


def _with_constant(X: Any, pseudo: FloatArray, height: float = _CONSTANT) -> Any:
    """Return the rows with a constant column in place of a bias, then the pseudo-row, which has none."""
    constant = np.append(np.full(X.shape[0], height), 0.0)[:, None]
    if sp.issparse(X):
        return sp.csr_array(sp.hstack([sp.vstack([X, sp.csr_array(pseudo[None])]), sp.csr_array(constant)]))
    return np.hstack([np.vstack([X, pseudo]), constant])


def exponentiated_gradient(X: Any, positive: BoolArray, group: BoolArray, *, ratio: float) -> Probabilities:
    """Return fairlearn's reduction to demographic parity within a ratio, over logistic regression; fairlearn is needed.

    Returns a function from rows to the probabilities with which its mixture of models predicts positive. It bounds each
    group's rate against that of all rows, by the ratio and by one over it.
    """
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - heavy, and only here

    fairlearn = import_module("fairlearn.reductions")  # an optional package, without types
    parity = fairlearn.DemographicParity(ratio_bound=ratio)
    model = fairlearn.ExponentiatedGradient(LogisticRegression(max_iter=1000), parity)
    return reduced(model, _dense(X), positive.astype(np.int64), group)


def reduced(model: Any, X: AnyArray, y: AnyArray, group: AnyArray) -> Probabilities:
    """Fit one of fairlearn's reductions, and return the chances with which its mixture of models predicts positive."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own use of pandas
        model.fit(X, y, sensitive_features=group)

    def probabilities(rows: Any) -> FloatArray:
        dense, total = _dense(rows), np.zeros(rows.shape[0])
        for place in np.flatnonzero(model.weights_ > 0):
            total += model.weights_.iloc[place] * model.predictors_[model.weights_.index[place]].predict(dense)
        return total

    return probabilities


def _dense(X: Any) -> AnyArray:
    return np.asarray(X.toarray() if sp.issparse(X) else X)


def shift_bias(scores: ArrayLike, table: Table, goals: Any, *, objective: Any = None) -> float:
    """Return the threshold of least objective at which the goals hold.

    Every threshold that tells some scores apart is tried, with running sums in the order of the scores.

    Parameters
    ----------
    scores : array of shape (n_rows,)
        Rows whose score is above the threshold are predicted positive.
    table : Table
        The dataset ``train`` that goals and objective refer to.
    goals : goals or their texts
    objective : rate or its text, optional
        Default: ``error_rate(train)``.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        Where the goals hold at none.

    Examples
    --------
    >>> from papers.dataset_constraints.baselines import shift_bias
    >>> from counterpoise.goals import Table
    >>> shift_bias([0.1, 0.4, 0.6, 0.9], Table(None, y=[0, 1, 0, 1]), "recall(train) >= 0.9")
    0.25
    """
    scores = np.asarray(scores, dtype=np.float64)
    bound, minimized = bind(goals, table), bind_objective(error_rate() if objective is None else objective, table)
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    excess = _running(bound.weights["train"], order) - bound.bounds[:, None]
    cost = _running(minimized.weights["train"], order)[0]
    is_cut = np.concatenate([[True], ranked[:-1] > ranked[1:], [True]])  # equal scores are decided alike
    allowed = np.flatnonzero(is_cut & (excess <= _MET).all(axis=0))
    if not allowed.size:
        raise ValueError(f"No threshold on these scores meets {' and '.join(map(str, bound.goals))}.")
    place = int(allowed[cost[allowed].argmin()])
    edges = np.concatenate([[ranked[0] + 1.0], ranked, [ranked[-1] - 1.0]])
    return float((edges[place] + edges[place + 1]) / 2.0)


def _running(weights: Any, order: AnyArray) -> FloatArray:
    """Return the value of each rate, its constant left out, with the first 0, 1, ... rows in the order positive."""
    sums = np.cumsum(weights.toarray()[:, order], axis=1)
    return np.hstack([np.zeros((sums.shape[0], 1)), sums])
