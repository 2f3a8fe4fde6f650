"""Theorem 1 of DRO-Boosting in a simulation: with a known optimum, ``2 n R_n`` follows a chi-square distribution.

``R_n`` is the least empirical-likelihood divergence from the sample of a distribution for which the true optimum is
optimal (eq. 8). Here scores are linear in ``DEGREES`` functions and labels follow the logistic model, so the true
coefficients are the optimum of the logistic loss and the gradient of a sample is ``loss'(y f(x)) y x``.
"""

import numpy as np

from counterpoise.theory.losses import logistic
from papers.arrays import FloatArray

DEGREES, N_SAMPLES, N_REPEATS = 5, 2000, 1000
_MOST_STEPS, _DONE = 60, 1e-12


def coverage(n_repeats: int = N_REPEATS, *, n_samples: int = N_SAMPLES, degrees: int = DEGREES) -> FloatArray:
    """Return ``2 n R_n`` of so many simulated samples, the same in every run.

    Examples
    --------
    >>> from papers.dro_boosting.coverage import coverage
    >>> found = coverage(100, n_samples=500, degrees=2)
    >>> found.shape, bool(abs(found.mean() - 2) < 0.6)
    ((100,), True)
    """
    truth = np.linspace(-1.0, 1.0, degrees)
    found = np.empty(n_repeats)
    for repeat in range(n_repeats):
        rng = np.random.default_rng(repeat)
        x = rng.normal(size=(n_samples, degrees))
        y = np.where(rng.random(n_samples) < 1.0 / (1.0 + np.exp(-x @ truth)), 1.0, -1.0)
        slopes = logistic.slope(y * (x @ truth)) * y
        found[repeat] = 2.0 * n_samples * least_divergence(slopes[:, None] * x)
    return found


def least_divergence(gradients: FloatArray) -> float:
    """Return ``R_n``: the least divergence of weights under which the gradients have mean zero.

    By duality it is ``max over multipliers of mean log(1 + gradients @ multipliers)`` (Owen), which is concave; halved
    steps of Newton's method keep every logarithm defined. Infinite where zero is outside the gradients' convex hull.

    Examples
    --------
    >>> import numpy as np
    >>> from papers.dro_boosting.coverage import least_divergence
    >>> round(least_divergence(np.array([[-1.0], [3.0]])), 6)  # the weights are 3/4 and 1/4
    0.143841
    """
    multipliers = np.zeros(gradients.shape[1])
    value = 0.0
    for _ in range(_MOST_STEPS):
        scaled = gradients / (1.0 + gradients @ multipliers)[:, None]
        ahead = scaled.mean(axis=0)
        curvature = scaled.T @ scaled / len(scaled)
        step = np.linalg.solve(curvature, ahead)
        gain = float(ahead @ step)
        if gain < _DONE:
            return value
        while True:
            moved = 1.0 + gradients @ (multipliers + step)
            if moved.min() > 0.0 and np.log(moved).mean() > value:
                break
            step = step / 2
        multipliers, value = multipliers + step, float(np.log(moved).mean())
    return np.inf
