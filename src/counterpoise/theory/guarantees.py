"""The papers' schedules and bounds as functions.

Zhai et al. 2021 assume an *unfair learner* with guarantee ``g``: for any sample weights it returns a model whose
weighted zero-one loss is at most ``g``. Their theorems then bound the CVaR of the ensemble by ``g + delta``.

Blanchet et al. calibrate the radius of DRO-Boosting; Maurer and Pontil 2009 bound an expected loss by the mean and the
variance of a sample; Goh et al. 2016 bound the rates of a constrained classifier on new rows.
"""

import math
from typing import NamedTuple

import numpy as np

from counterpoise._base.checks import (
    as_numbers,
    check_alpha,
    check_confidence,
    check_count,
    check_loss_vector,
    check_number,
    check_positive,
    value_range,
)
from counterpoise._base.types import ArrayLike, FloatArray

_ROUNDING = 1e-12  # of a loss that is one over a whole number
_MATRIX = 2  # dimensions
_PROFILE_STEPS, _PROFILE_HALVINGS = 200, 60  # Newton's method takes about ten steps where the profile is finite
_PROFILE_DONE = 1e-20  # what another step of Newton's method would gain: the mean gradient is 0 to its root
_PROFILE_NOISE = 1e-14  # rounding of a mean of logarithms

__all__ = [
    "ProfileLikelihood",
    "calibrated_radius",
    "cvar_generalization_bound",
    "cvar_upper_bound",
    "empirical_bernstein_bound",
    "hedge_bound",
    "hedge_delta",
    "hedge_eta",
    "hedge_rounds",
    "mixture_size_bound",
    "profile_likelihood",
    "rate_generalization_bound",
    "regularized_lpboost_beta",
    "regularized_lpboost_delta",
    "regularized_lpboost_rounds",
    "vadaboost_rounds_ratio",
]


def hedge_eta(n_samples: float, n_rounds: int) -> float:
    """Return the step size of Theorem 5, ``sqrt(8 log n / T)``.

    Parameters
    ----------
    n_samples : float >= 1
        Number of samples; with sample weights, the total weight over the least positive one.
    n_rounds : int >= 1
        Number of base models.

    Returns
    -------
    float

    Examples
    --------
    >>> from counterpoise.theory.guarantees import hedge_eta
    >>> round(hedge_eta(45_000, 100), 3)
    0.926
    """
    return math.sqrt(8 * math.log(_check_samples(n_samples)) / check_count(n_rounds, "n_rounds"))


def hedge_delta(n_samples: float, n_rounds: int) -> float:
    """Return by how much AdaBoost + Average may exceed the learner's guarantee after so many rounds (eq. 21).

    Parameters
    ----------
    n_samples, n_rounds
        As for ``hedge_eta``.

    Returns
    -------
    float

    Examples
    --------
    >>> from counterpoise.theory.guarantees import hedge_delta
    >>> round(hedge_delta(50_000, 541), 3)
    0.1
    """
    return math.sqrt(math.log(_check_samples(n_samples)) / (2 * check_count(n_rounds, "n_rounds")))


def hedge_rounds(n_samples: float, delta: float) -> int:
    """Return the number of rounds after which AdaBoost + Average is within ``delta`` of the learner's guarantee.

    Parameters
    ----------
    n_samples : float >= 1
        As for ``hedge_eta``.
    delta : float > 0
        The excess over the guarantee that is allowed.

    Returns
    -------
    int

    Examples
    --------
    >>> from counterpoise.theory.guarantees import hedge_rounds
    >>> hedge_rounds(50_000, delta=0.1)
    541
    """
    return max(1, _rounds(math.log(_check_samples(n_samples)) / 2, check_positive(delta, "delta")))


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
    >>> from counterpoise.theory.guarantees import hedge_bound
    >>> round(hedge_bound(0.2, 50_000, 541), 3)
    0.3
    """
    log_n = math.log(_check_samples(n_samples))
    loss = check_number(worst_weighted_loss, "worst_weighted_loss", "[0, inf)")
    step = hedge_eta(n_samples, n_rounds) if eta is None else check_positive(eta, "eta")
    if log_n == 0:
        return loss
    return loss + log_n / (step * check_count(n_rounds, "n_rounds")) + step / 8


def regularized_lpboost_beta(alpha: float, delta: float) -> float:
    """Return the regularization of Theorem 4, ``max(2 / delta * log(1 / alpha), 1 / 2)``.

    Parameters
    ----------
    alpha : float in (0, 1]
        The tail fraction.
    delta : float > 0
        The excess over the learner's guarantee that is allowed.

    Returns
    -------
    float

    Examples
    --------
    >>> from counterpoise.theory.guarantees import regularized_lpboost_beta
    >>> round(regularized_lpboost_beta(alpha=0.1, delta=0.05), 1)
    92.1
    """
    return max(2 / check_positive(delta, "delta") * math.log(1 / check_alpha(alpha)), 0.5)


def regularized_lpboost_rounds(alpha: float, delta: float) -> int:
    """Return the number of rounds of Theorem 4, ``max(32 / delta^2 * log(1 / alpha), 8 / delta)``.

    Parameters
    ----------
    alpha, delta
        As for ``regularized_lpboost_beta``.

    Returns
    -------
    int

    Examples
    --------
    >>> from counterpoise.theory.guarantees import regularized_lpboost_rounds
    >>> regularized_lpboost_rounds(alpha=0.1, delta=0.5)
    295
    """
    delta = check_positive(delta, "delta")
    return max(_rounds(32 * math.log(1 / check_alpha(alpha)), delta), math.ceil(8 / delta))


def regularized_lpboost_delta(alpha: float, n_rounds: int) -> float:
    """Return by how much Regularized LPBoost may exceed the learner's guarantee after so many rounds (Theorem 4).

    Parameters
    ----------
    alpha : float in (0, 1]
        The tail fraction.
    n_rounds : int >= 1
        Number of base models.

    Returns
    -------
    float

    Examples
    --------
    >>> from counterpoise.theory.guarantees import regularized_lpboost_delta
    >>> round(regularized_lpboost_delta(alpha=0.1, n_rounds=295), 2)
    0.5
    """
    n_rounds = check_count(n_rounds, "n_rounds")
    return max(math.sqrt(32 * math.log(1 / check_alpha(alpha)) / n_rounds), 8 / n_rounds)


def calibrated_radius(n_samples: float, confidence: float, degrees_of_freedom: float) -> float:
    """Return the radius of DRO-Boosting's Theorem 1: the chi-square quantile over ``2 n``.

    With probability ``confidence``, as n grows, the ball of that radius holds a distribution for which the true best
    ensemble is optimal. That is proven for a fixed class of finite dimension whose best member is a stationary point of
    the loss. Trees that are chosen from the samples, and mixtures at the edge of the simplex, are not of this kind: for
    them the radius is a heuristic.

    Parameters
    ----------
    n_samples : float >= 1
        Number of samples.
    confidence : float in (0, 1)
        Probability wanted.
    degrees_of_freedom : float > 0
        Dimension of the space of ensembles.

    Returns
    -------
    float

    Examples
    --------
    The paper's experiment, 3,000 samples and trees of about 30 leaves:

    >>> from counterpoise.theory.guarantees import calibrated_radius
    >>> round(calibrated_radius(3000, confidence=0.9, degrees_of_freedom=30), 5)
    0.00671
    """
    from scipy.special import gammaincinv  # noqa: PLC0415 - heavy

    half = check_positive(degrees_of_freedom, "degrees_of_freedom") / 2
    # The chi-square quantile is twice that of a gamma distribution with half the degrees of freedom.
    return float(gammaincinv(half, check_confidence(confidence))) / _check_samples(n_samples)


class ProfileLikelihood(NamedTuple):
    """The least divergence of weights under which a score is optimal, and those weights."""

    value: float  # R_N; infinite where no weights above zero make the score optimal
    weights: FloatArray  # on the samples, on the simplex; NaN where the value is infinite
    multipliers: FloatArray  # of the mean gradients, which prove the value; NaN where it is infinite

    def is_within(self, radius: float) -> bool:
        """Return whether the ball of that radius holds a distribution for which the score is optimal (eq. 9)."""
        return self.value <= check_number(radius, "radius", "[0, inf]")


def profile_likelihood(gradients: ArrayLike) -> ProfileLikelihood:
    """Return the profile function ``R_N`` of DRO-Boosting (eq. 8) of a score, from the gradients of its losses.

    ``R_N`` is the least ``-mean log(n weights)`` over weights on the simplex under which the mean gradient is zero. A
    score is optimal for some distribution in the ball of a radius exactly where its ``R_N`` is at most that radius
    (eq. 9), and ``2 n R_N`` of the true optimum tends to a chi-square distribution (Theorem 1), from which
    ``calibrated_radius`` follows.

    By duality it is ``max over multipliers of mean log(1 + gradients @ multipliers)`` (Owen), which is concave; halved
    steps of Newton's method keep every logarithm defined.

    Parameters
    ----------
    gradients : array of shape (n_samples, n_functions)
        Of the loss of each sample, by the coefficients of the score: for ``f(x) = sum of coefficients * f_t(x)`` and a
        margin loss they are ``loss.slope(y * f(x)) * y * f_t(x)``.

    Returns
    -------
    ProfileLikelihood
        ``value``, ``weights``, ``multipliers`` and ``is_within(radius)``.

    Examples
    --------
    The weights of two samples are 3/4 and 1/4 where the gradients -1 and 3 cancel out:

    >>> from counterpoise.theory.guarantees import profile_likelihood
    >>> profile = profile_likelihood([[-1.0], [3.0]])
    >>> round(profile.value, 4), profile.weights.round(4).tolist()
    (0.1438, [0.75, 0.25])
    >>> profile.is_within(0.1), profile.is_within(0.2)
    (False, True)
    """
    matrix = np.asarray(as_numbers(gradients, "gradients"), dtype=np.float64)
    if matrix.ndim != _MATRIX or matrix.size == 0:
        raise ValueError(f"gradients must have shape (n_samples, n_functions), none of them 0; got {matrix.shape}.")
    value_range(matrix, "gradients")
    n_samples, n_functions = matrix.shape
    multipliers, value = np.zeros(n_functions), 0.0
    for _ in range(_PROFILE_STEPS):
        scaled = matrix / (1.0 + matrix @ multipliers)[:, None]
        ahead = scaled.mean(axis=0)
        step = np.linalg.lstsq(scaled.T @ scaled / n_samples, ahead, rcond=None)[0]
        if float(ahead @ step) < _PROFILE_DONE:
            return ProfileLikelihood(value, 1.0 / (1.0 + matrix @ multipliers) / n_samples, multipliers)
        for _ in range(_PROFILE_HALVINGS):
            moved = 1.0 + matrix @ (multipliers + step)
            if moved.min() > 0.0 and np.log(moved).mean() >= value - _PROFILE_NOISE:
                break
            step = step / 2
        multipliers, value = multipliers + step, float(np.log(moved).mean())
    return ProfileLikelihood(math.inf, np.full(n_samples, np.nan), np.full(n_functions, np.nan))


def vadaboost_rounds_ratio(error: float) -> float:
    """Return how many rounds of VadaBoost at penalty 0 reach the cost of one of AdaBoost, the ratio of Theorem 5.

    It holds where all models have the same weighted error.

    Parameters
    ----------
    error : float in (0, 0.5)
        Weighted error of every model.

    Returns
    -------
    float
        ``log(4 e (1 - e)) / log(2 e (1 - e) + sqrt(e (1 - e)))``, between 4/3 and 2.

    Examples
    --------
    >>> from counterpoise.theory.guarantees import vadaboost_rounds_ratio
    >>> [round(vadaboost_rounds_ratio(error), 2) for error in (1e-9, 0.1, 0.4, 0.499)]
    [1.87, 1.39, 1.34, 1.33]
    """
    share = check_number(error, "error", "(0, 0.5)", "that of models better than chance")
    product = share * (1 - share)
    return math.log(4 * product) / math.log(2 * product + math.sqrt(product))


def mixture_size_bound(alpha: float, value: float) -> int:
    """Return how many models a mixture needs at least for a tail loss of ``value``, on the pools where it needs most.

    On 1/alpha blocks of equally many samples with as many models, each wrong on a block of its own, a mixture of T
    models has a block of which a share of 1/T or more is wrong in expectation: its CVaR is at least 1/T, and that of
    all models in equal shares is alpha. So a tail near the best one can need some 1/alpha models, while Theorem 4 of
    Zhai et al. 2021 says that ``log(1 / alpha)`` times a constant are enough to be within a fixed ``delta``.

    Parameters
    ----------
    alpha : float in (0, 1]
        The tail fraction.
    value : float
        The tail loss to be reached; alpha, the best there, or more.

    Returns
    -------
    int

    Examples
    --------
    >>> from counterpoise.theory.guarantees import mixture_size_bound
    >>> mixture_size_bound(0.01, value=0.02), mixture_size_bound(0.01, value=0.25)
    (50, 4)
    """
    level = check_alpha(alpha)
    if check_positive(value, "value") < level:
        raise ValueError(f"value must be at least alpha, {level!r}, the best tail of these pools; got {value!r}.")
    return math.ceil((1 - _ROUNDING) / value)


def cvar_upper_bound(losses: ArrayLike, alpha: float, *, delta: float) -> float:
    """Return an upper bound on the tail loss of new rows that holds with probability ``1 - delta``, whatever n.

    With ``eps = sqrt(log(1 / delta) / (2 n))`` the true distribution is nowhere more than eps below that of the sample
    (Dvoretzky, Kiefer and Wolfowitz, with Massart's constant), so that the tail is largest where a share eps of
    the rows with the smallest losses had a loss of 1 (Thomas and Learned-Miller 2019)::

        eps / alpha + (1 - eps / alpha) * CVaR of the sample at alpha - eps

    It holds for all alpha at once, for one classifier that was fixed before the rows were seen.

    Parameters
    ----------
    losses : array of shape (n_samples,)
        Independent, in [0, 1]: of a mixture the expected ones, before the draw.
    alpha : float in (0, 1]
        The tail fraction.
    delta : float in (0, 0.5]
        Probability that the bound fails.

    Returns
    -------
    float
        At most 1.

    Examples
    --------
    >>> from counterpoise.theory.guarantees import cvar_upper_bound
    >>> round(cvar_upper_bound([0.0, 0.0, 0.1, 0.3] * 500, alpha=0.25, delta=0.05), 3)
    0.377
    """
    vector, level = _check_unit_losses(losses), check_alpha(alpha)
    share = check_number(delta, "delta", "(0, 0.5]", "for more the bound is not proven")
    moved = min(math.sqrt(math.log(1 / share) / (2 * vector.size)), level)
    largest = np.sort(vector)[::-1]
    counted = np.diff(np.minimum(np.arange(largest.size + 1) / largest.size, level - moved))
    return min(float(moved + counted @ largest) / level, 1.0)


def cvar_generalization_bound(n_samples: float, n_models: int, alpha: float, *, delta: float) -> float:
    """Return by how much the tail loss of a mixture may be higher on new rows, for all mixtures of the models at once.

    With probability ``1 - delta`` over n rows that none of the models was trained on, the CVaR of every mixture of K
    models with losses in [0, 1] exceeds that on the rows by at most ::

        (sqrt(2 log K / n) + sqrt(1 / n) + sqrt(log(1 / delta) / (2 n))) / alpha

    The CVaR is the least ``t + E max(loss - t, 0) / alpha``; the Rademacher complexity of these functions is that of
    the models and of t, as mixing does not raise it. Zhai et al. 2021 leave such a bound open; it does not grow with
    the number of rounds but by its logarithm.

    Parameters
    ----------
    n_samples : float >= 1
        Number of rows on which the mixture was chosen.
    n_models : int >= 1
        Number of models it was chosen from.
    alpha : float in (0, 1]
        The tail fraction.
    delta : float in (0, 1)
        Probability that the bound fails.

    Returns
    -------
    float
        Above 1 it says nothing.

    Examples
    --------
    >>> from counterpoise.theory.guarantees import cvar_generalization_bound
    >>> [round(cvar_generalization_bound(n, 100, 0.1, delta=0.05), 3) for n in (10_000, 1_000_000)]
    [0.526, 0.053]
    """
    n, level, share = _check_samples(n_samples), check_alpha(alpha), check_confidence(delta, "delta")
    models = math.sqrt(2 * math.log(check_count(n_models, "n_models")))
    return (models + 1.0 + math.sqrt(math.log(1 / share) / 2)) / (level * math.sqrt(n))


def empirical_bernstein_bound(losses: ArrayLike, *, delta: float, complexity: float | None = None) -> float:
    """Return an upper bound on the expected loss that holds with probability ``1 - delta``.

    With ``V`` the sample variance (over n - 1) of the losses, it is for one function that was fixed before the samples
    were seen (Maurer and Pontil 2009, Theorem 4)::

        mean + sqrt(2 V log(2 / delta) / n) + 7 log(2 / delta) / (3 (n - 1))

    and for all functions of a class at once, eq. (2) of Shivaswamy and Jebara 2011::

        mean + sqrt(18 V log(M / delta) / n) + 15 log(M / delta) / (n - 1)

    Parameters
    ----------
    losses : array of shape (n_samples,)
        Independent, in [0, 1]; at least two.
    delta : float in (0, 1)
        Probability that the bound fails.
    complexity : float >= 1, optional
        M(n), which measures the class (Maurer and Pontil: ten times its growth function at 2 n). Default: one function.

    Returns
    -------
    float
        May exceed 1, and then says nothing.

    Examples
    --------
    >>> from counterpoise.theory.guarantees import empirical_bernstein_bound
    >>> losses = [0, 0, 0, 0, 1] * 200
    >>> round(empirical_bernstein_bound(losses, delta=0.05), 4)
    0.243
    >>> round(empirical_bernstein_bound(losses, delta=0.05, complexity=100), 4)
    0.4622
    """
    vector = _check_unit_losses(losses)
    n = vector.size
    if n < 2:  # noqa: PLR2004 - a variance needs two
        raise ValueError("losses must hold at least two samples, or they have no variance; got one.")
    mean, variance = float(vector.mean()), float(vector.var(ddof=1))
    share = check_confidence(delta, "delta")
    if complexity is None:
        size = math.log(2 / share)
        return mean + math.sqrt(2 * variance * size / n) + 7 * size / (3 * (n - 1))
    size = math.log(check_number(complexity, "complexity", "[1, inf)", "the size of a class of functions") / share)
    return mean + math.sqrt(18 * variance * size / n) + 15 * size / (n - 1)


def rate_generalization_bound(
    n_samples: float, *, norm: float, regularization: float, coefficient_sum: float, n_datasets: int, delta: float
) -> float:
    """Return by how much a rate of a constrained classifier may be higher on new rows: ``E / sqrt(n)``.

    Theorem 1 in Appendix C of Goh, Cotter, Gupta and Friedlander 2016. With probability ``1 - delta`` over the training
    rows, the expected positive and negative rates of the randomized classifier exceed the ramp rates on all datasets by
    at most ``E / sqrt(n)``, n the size of the dataset, with ::

        E = 1 + 4 norm**2 coefficient_sum / regularization + sqrt(8 log(4 n_datasets / delta))

    It holds for exact solutions of the convex programs in which no multiplier exceeds a V that was fixed before the
    rows were seen, with the bias of least size. ``ConstrainedClassifier(max_multiplier=V)`` solves these to within its
    tolerance, with any of the best biases, and keeps the goals where V is too small to: for its classifier the figure
    is a guide and no proof. At its defaults, V = 1000 and a regularization of 1/n, it is above 1 for rows of norm 1,
    however many, and says nothing. To say something it needs a V near the multipliers that the goals have, and more
    regularization.

    Parameters
    ----------
    n_samples : float >= 1
        Size of the dataset that the rate is taken on.
    norm : float > 0
        The largest norm of a row, in any dataset.
    regularization : float > 0
        Of the coefficients.
    coefficient_sum : float > 0
        Coefficients of all positive and negative rates, without signs: those of the objective, plus V times those of
        the constraints, where V is the largest multiplier allowed.
    n_datasets : int >= 1
        Number of datasets.
    delta : float in (0, 1)
        Probability that the bound fails.

    Returns
    -------
    float
        Often above 1, and then it says nothing: it counts on no more than the norms of rows and coefficients.

    Examples
    --------
    An error rate subject to a bound on another rate, with multipliers up to 1, and up to 1000:

    >>> from counterpoise.theory.guarantees import rate_generalization_bound
    >>> settings = dict(norm=1.0, regularization=0.1, n_datasets=2, delta=0.05)
    >>> [round(rate_generalization_bound(n, coefficient_sum=1 + 1 * 1, **settings), 3) for n in (10_000, 1_000_000)]
    [0.874, 0.087]
    >>> round(rate_generalization_bound(1_000_000, coefficient_sum=1 + 1000 * 1, **settings), 1)
    40.0
    """
    share = check_confidence(delta, "delta")
    slope = math.prod([check_positive(norm, "norm"), norm, check_positive(coefficient_sum, "coefficient_sum")])
    spread = math.sqrt(8 * math.log(4 * check_count(n_datasets, "n_datasets") / share))
    total = 1 + 4 * slope / check_positive(regularization, "regularization") + spread
    return total / math.sqrt(_check_samples(n_samples))


def _rounds(factor: float, delta: float) -> int:
    """Return ``factor / delta**2``, rounded up."""
    needed = max(factor, 1.0) / delta / delta  # whose square may be 0 in floats
    if math.isinf(needed):
        raise ValueError(f"delta must be at least 1e-150, for which a number of rounds can be written; got {delta!r}.")
    return math.ceil(factor / delta / delta)


def _check_unit_losses(losses: ArrayLike) -> FloatArray:
    vector = check_loss_vector(losses)
    low, high = float(vector.min()), float(vector.max())
    if low < 0 or high > 1:
        raise ValueError(f"losses must lie in [0, 1] for this bound; got some from {low!r} to {high!r}. Scale them.")
    return vector


def _check_samples(n_samples: float) -> float:
    return check_number(n_samples, "n_samples", "[1, inf)")
