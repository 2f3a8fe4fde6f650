"""Losses of the margin: values, slopes and their relations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoise import losses
from counterpoise.theory.losses import LOSSES

MARGINS = st.floats(-20, 20)
KINKS = {"zero-one": [0.0], "hinge": [0.5], "ramp": [-0.5, 0.5]}
each_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


@each_loss
@given(margin=MARGINS)
def test_the_slope_is_the_derivative(loss, margin):
    if min((abs(margin - kink) for kink in KINKS.get(loss.name, [])), default=1) < 1e-3:
        return
    step = 1e-6
    rise = (loss.value(margin + step) - loss.value(margin - step)) / (2 * step)
    assert loss.slope(margin) == pytest.approx(rise, rel=1e-5, abs=1e-6)


@each_loss
@given(first=MARGINS, second=MARGINS, share=st.floats(0, 1))
def test_the_convex_ones_lie_below_their_chords(loss, first, second, share):
    between = loss.value(share * first + (1 - share) * second)
    chord = share * loss.value(first) + (1 - share) * loss.value(second)
    assert not loss.is_convex or between <= chord * (1 + 1e-12) + 1e-12


@given(margin=MARGINS)
def test_surrogates_bound_what_they_stand_for(margin):
    wrong = losses.zero_one.value(margin)
    assert losses.exponential.value(margin) >= wrong
    assert losses.squared.value(margin) >= wrong
    assert losses.logistic.value(margin) / np.log(2) >= wrong
    assert losses.hinge.value(margin) >= losses.ramp.value(margin) >= wrong / 2


def test_values_at_a_few_margins():
    expected = {
        "zero-one": [1, 1, 0],
        "hinge": [1.5, 0.5, 0],
        "ramp": [1, 0.5, 0],
        "logistic": np.log1p(np.exp([1.0, 0.0, -1.0])),
        "exponential": np.exp([1.0, 0.0, -1.0]),
        "squared": [4, 1, 0],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(LOSSES[name].value([-1.0, 0.0, 1.0]), values)


@each_loss
def test_extreme_margins_give_finite_numbers(loss):
    margins = np.array([-1e100, -800.0, 800.0, 1e100])
    assert np.isfinite(loss.value(margins)).all()
    assert np.isfinite(loss.slope(margins)).all()
