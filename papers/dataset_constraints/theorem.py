"""Theorem 1 of Goh et al. (2016), Appendix C: what its bound comes to where Figure 2 is measured."""

from counterpoise.theory.guarantees import rate_generalization_bound

N_TRAIN, N_RATED, FAILS = 32_561, 4, 0.05  # of a9a; rates are taken of positives, negatives, women and men
NORM = 14**0.5  # the largest of a row: 14 indicators


def least_bounds() -> dict[str, float]:
    """Return the least that the theorem can allow a rate to be higher on new rows, by regularization.

    That is with a V of 0, so of no constraint at all: the objective's rates alone have coefficients, which sum to 1.

    Examples
    --------
    >>> from papers.dataset_constraints.theorem import least_bounds
    >>> round(least_bounds()["0.001"])
    310
    """
    return {
        name: rate_generalization_bound(
            N_TRAIN, norm=NORM, regularization=strength, coefficient_sum=1.0, n_datasets=N_RATED, delta=FAILS
        )
        for name, strength in {"1/n": 1.0 / N_TRAIN, "0.001": 1e-3, "1": 1.0}.items()
    }
