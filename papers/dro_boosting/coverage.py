"""Theorem 1 of DRO-Boosting in a simulation: with a known optimum, ``2 n R_n`` follows a chi-square distribution.

``R_n`` is the least empirical-likelihood divergence from the sample of a distribution for which the true optimum is
optimal (eq. 8). Here scores are linear in ``DEGREES`` functions and labels follow the logistic model, so the true
coefficients are the optimum of the logistic loss and the gradient of a sample is ``loss'(y f(x)) y x``.
"""

import numpy as np

from counterpoise.theory.guarantees import profile_likelihood
from counterpoise.theory.losses import logistic
from papers.arrays import FloatArray

DEGREES, N_SAMPLES, N_REPEATS = 5, 2000, 1000


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
        found[repeat] = 2.0 * n_samples * profile_likelihood(slopes[:, None] * x).value
    return found
