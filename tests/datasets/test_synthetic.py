"""Breiman's generators: the moments of the formulas, the known best errors, and seeds."""

import numpy as np
import pytest
from scipy.stats import norm

from counterpoise.datasets import ringnorm, twonorm, waveform

GENERATORS = {
    "twonorm": twonorm,
    "ringnorm": ringnorm,
    "waveform": waveform,
    "two waves": lambda n_samples, *, random_state: waveform(n_samples, n_classes=2, random_state=random_state),
}
N = 100_000


def best_error(scores, y):
    """Error of the classifier that says 1 where the log likelihood ratio, up to a constant, is above zero."""
    return float(((scores > 0) != y).mean())


@pytest.mark.parametrize("name", GENERATORS)
def test_a_seed_repeats_the_draw(name):
    draw = GENERATORS[name]
    X, y = draw(50, random_state=1)
    again_X, again_y = draw(50, random_state=1)
    np.testing.assert_array_equal(X, again_X)
    np.testing.assert_array_equal(y, again_y)
    assert not np.array_equal(X, draw(50, random_state=2)[0])


@pytest.mark.parametrize("name", GENERATORS)
def test_classes_are_equally_likely(name):
    _, y = GENERATORS[name](N, random_state=0)
    n_classes = 3 if name == "waveform" else 2
    np.testing.assert_allclose(np.bincount(y) / N, np.full(n_classes, 1 / n_classes), atol=0.006)


def test_twonorm_has_its_moments():
    X, y = twonorm(N, random_state=0)
    np.testing.assert_allclose(X[y == 0].mean(axis=0), 2 / np.sqrt(20), atol=0.02)
    np.testing.assert_allclose(X[y == 1].mean(axis=0), -2 / np.sqrt(20), atol=0.02)
    np.testing.assert_allclose(np.cov(X[y == 0].T), np.eye(20), atol=0.03)


def test_twonorm_has_its_best_error():
    X, y = twonorm(N, random_state=0)
    assert best_error(-X.sum(axis=1), y) == pytest.approx(norm.cdf(-2), abs=0.002)


def test_ringnorm_has_its_moments():
    X, y = ringnorm(N, random_state=0)
    np.testing.assert_allclose(X[y == 0].mean(axis=0), 0.0, atol=0.04)
    np.testing.assert_allclose(X[y == 1].mean(axis=0), 1 / np.sqrt(20), atol=0.02)
    np.testing.assert_allclose(np.cov(X[y == 0].T), 4 * np.eye(20), atol=0.1)
    np.testing.assert_allclose(np.cov(X[y == 1].T), np.eye(20), atol=0.03)


def test_ringnorm_has_its_best_error():
    X, y = ringnorm(N, random_state=0)
    inner = -0.5 * ((X - 1 / np.sqrt(20)) ** 2).sum(axis=1)
    outer = -0.5 * (X**2).sum(axis=1) / 4 - 20 * np.log(2)
    assert best_error(inner - outer, y) == pytest.approx(0.0148, abs=0.0015)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_waveform_averages_its_two_waves(n_classes):
    X, y = waveform(N, n_classes=n_classes, random_state=0)
    place = np.arange(1, 22)
    h1, h2, h3 = (np.maximum(6 - np.abs(place - peak), 0) for peak in (11, 15, 7))
    for label, (first, second) in enumerate([(h1, h2), (h1, h3), (h2, h3)][:n_classes]):
        rows = X[y == label]
        np.testing.assert_allclose(rows.mean(axis=0), (first + second) / 2, atol=0.05)
        # u has variance 1/12, the noise 1.
        np.testing.assert_allclose(rows.var(axis=0), 1 + (first - second) ** 2 / 12, rtol=0.05)


BAD = {
    "no rows": (lambda: twonorm(0, random_state=0), ValueError, "n_samples must be at least 1; got 0"),
    "half a row": (lambda: ringnorm(1.5, random_state=0), TypeError, "n_samples must be a whole number.*got 1.5"),
    "classes": (lambda: waveform(9, n_classes=4, random_state=0), ValueError, "n_classes must be 2 or 3.*got 4"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_sentence(case):
    call, error, text = BAD[case]
    with pytest.raises(error, match=text):
        call()
