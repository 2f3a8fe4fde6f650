"""The papers' schedules and bounds as functions.

Zhai et al. 2021 assume an *unfair learner* with guarantee ``g``: for any sample weights it returns a model whose
weighted zero-one loss is at most ``g``. Their theorems then bound the CVaR of the ensemble by ``g + delta``.
"""

import math

from counterpoise._checks import check_alpha, check_count, check_positive

__all__ = [
    "hedge_bound",
    "hedge_delta",
    "hedge_eta",
    "hedge_rounds",
    "regularized_lpboost_beta",
    "regularized_lpboost_delta",
    "regularized_lpboost_rounds",
]


def hedge_eta(n_samples: float, n_rounds: int) -> float:
    """Return the step size of Theorem 5, ``sqrt(8 log n / T)``.

    Parameters
    ----------
    n_samples : float >= 1
        Number of samples; with sample weights, the total weight over the least positive one.
    n_rounds : int >= 1
        Number of base models.

    Examples
    --------
    >>> from counterpoise.guarantees import hedge_eta
    >>> round(hedge_eta(45_000, 100), 3)
    0.926
    """
    return math.sqrt(8 * math.log(_check_samples(n_samples)) / check_count(n_rounds, "n_rounds"))


def hedge_delta(n_samples: float, n_rounds: int) -> float:
    """Return by how much AdaBoost + Average may exceed the learner's guarantee after so many rounds (eq. 21).

    Examples
    --------
    >>> from counterpoise.guarantees import hedge_delta
    >>> round(hedge_delta(50_000, 541), 3)
    0.1
    """
    return math.sqrt(math.log(_check_samples(n_samples)) / (2 * check_count(n_rounds, "n_rounds")))


def hedge_rounds(n_samples: float, delta: float) -> int:
    """Return the number of rounds after which AdaBoost + Average is within ``delta`` of the learner's guarantee.

    Examples
    --------
    >>> from counterpoise.guarantees import hedge_rounds
    >>> hedge_rounds(50_000, delta=0.1)
    541
    """
    return math.ceil(math.log(_check_samples(n_samples)) / (2 * check_positive(delta, "delta") ** 2))


def hedge_bound(worst_weighted_loss: float, n_samples: float, n_rounds: int, eta: float | None = None) -> float:
    """Return the bound of Theorem 5 on the training CVaR, at every alpha, of the average of the base models.

    Parameters
    ----------
    worst_weighted_loss : float
        The learner's guarantee ``g``: the largest weighted loss of a base model under its own weights. The proof needs
        only their average, which may be given instead for a sharper bound.
    n_samples, n_rounds
        As for ``hedge_eta``.
    eta : float, optional
        The step size used; default is the one of the theorem.

    Returns
    -------
    float
        ``g + log(n) / (eta T) + eta / 8``, which is ``g + sqrt(log(n) / (2 T))`` at the theorem's step size.

    Examples
    --------
    >>> from counterpoise.guarantees import hedge_bound
    >>> round(hedge_bound(0.2, 50_000, 541), 3)
    0.3
    """
    log_n = math.log(_check_samples(n_samples))
    step = hedge_eta(n_samples, n_rounds) if eta is None else check_positive(eta, "eta")
    if log_n == 0:
        return worst_weighted_loss
    return worst_weighted_loss + log_n / (step * check_count(n_rounds, "n_rounds")) + step / 8


def regularized_lpboost_beta(alpha: float, delta: float) -> float:
    """Return the regularization of Theorem 4, ``max(2 / delta * log(1 / alpha), 1 / 2)``.

    Examples
    --------
    >>> from counterpoise.guarantees import regularized_lpboost_beta
    >>> round(regularized_lpboost_beta(alpha=0.1, delta=0.05), 1)
    92.1
    """
    return max(2 / check_positive(delta, "delta") * math.log(1 / check_alpha(alpha)), 0.5)


def regularized_lpboost_rounds(alpha: float, delta: float) -> int:
    """Return the number of rounds of Theorem 4, ``max(32 / delta^2 * log(1 / alpha), 8 / delta)``.

    Examples
    --------
    >>> from counterpoise.guarantees import regularized_lpboost_rounds
    >>> regularized_lpboost_rounds(alpha=0.1, delta=0.5)
    295
    """
    delta = check_positive(delta, "delta")
    return math.ceil(max(32 / delta**2 * math.log(1 / check_alpha(alpha)), 8 / delta))


def regularized_lpboost_delta(alpha: float, n_rounds: int) -> float:
    """Return by how much Regularized LPBoost may exceed the learner's guarantee after so many rounds (Theorem 4).

    Examples
    --------
    >>> from counterpoise.guarantees import regularized_lpboost_delta
    >>> round(regularized_lpboost_delta(alpha=0.1, n_rounds=295), 2)
    0.5
    """
    n_rounds = check_count(n_rounds, "n_rounds")
    return max(math.sqrt(32 * math.log(1 / check_alpha(alpha)) / n_rounds), 8 / n_rounds)


def _check_samples(n_samples: float) -> float:
    n_samples = check_positive(n_samples, "n_samples")
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1; got {n_samples!r}.")
    return n_samples
