"""Theorem 1 of Goh et al. (2016), Appendix C: what its bound comes to where Figure 2 is measured."""

from counterpoise.theory.guarantees import rate_generalization_bound

N_TRAIN, N_RATED, FAILS = 32_561, 4, 0.05  # of a9a; rates are taken of positives, negatives, women and men
NORM = 14**0.5  # the largest of a row: 14 indicators
_MANY = 10.0


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


def theorem_1(risen: float) -> str:
    """Return the section, given by how much an expected error is higher on test rows at most."""
    bounds = ", ".join(
        f"{bound:,.0f} at {name}" if bound > _MANY else f"{bound:.2f} at {name}"
        for name, bound in least_bounds().items()
    )
    return _SECTION.format(bounds=bounds, risen=risen, confidence=1.0 - FAILS)


_SECTION = """### Theorem 1: how much higher a rate may be on new rows

Its E over the square root of the number of training rows, by `rate_generalization_bound`, is a bound on that. At
confidence {confidence:g}, and with multipliers of 0, so without any goal, it is, by regularization: {bounds}.
Above 1 it says nothing, as at both regularizations of the tables. By how much the expected error of the randomized
classifiers is in fact higher on test rows, at the kappa where it is most: {risen:.4f}."""
