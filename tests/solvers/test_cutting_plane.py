"""Cutting planes for multipliers: bounds that bracket a known maximum, from exact and from sloppy answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from counterpoise.solvers import OracleAnswer, maximize_concave, solve_svm

RADIUS = 5.0


def piecewise(seed, size):
    """Return an oracle of the least of some linear functions, and its maximum on the box by a linear program."""
    rng = np.random.default_rng(seed)
    n_pieces = int(rng.integers(1, 30))
    slopes, offsets = rng.normal(size=(n_pieces, size)), rng.normal(size=n_pieces)
    found = linprog(
        np.append(np.zeros(size), -1.0),
        A_ub=np.hstack([-slopes, np.ones((n_pieces, 1))]),
        b_ub=offsets,
        bounds=[(0, RADIUS)] * size + [(None, None)],
    )

    def oracle(point, accuracy):
        heights = offsets + slopes @ point
        # Any piece within the accuracy is a valid sloppy cut: it lies above the function everywhere.
        near = int(rng.choice(np.flatnonzero(heights <= heights.min() + accuracy)))
        return OracleAnswer(heights.min() - rng.uniform(0, 0.01) * accuracy, heights[near], slopes[near])

    return oracle, -found.fun


def quadratic(seed, size):
    """Return an oracle of a strictly concave quadratic, and its maximum on the box by a quasi-Newton method."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, size))
    curvature, peak = root @ root.T / size + 0.1 * np.eye(size), rng.normal(2.0, 2.0, size=size)

    def value(point):
        return -(point - peak) @ curvature @ (point - peak) / 2

    def slope(point):
        return -curvature @ (point - peak)

    found = minimize(
        lambda v: -value(v), np.ones(size), jac=lambda v: -slope(v), bounds=[(0, RADIUS)] * size, tol=1e-13
    )

    def oracle(point, accuracy):
        slack = rng.uniform(0, 1) * accuracy
        return OracleAnswer(value(point) - slack / 2, value(point) + slack / 2, slope(point))

    return oracle, -found.fun


CHOOSERS = [(1, "center-of-mass"), (1, "level"), (1, "maximum"), (2, "level"), (2, "maximum"), (6, "level")]


@pytest.mark.parametrize("family", [piecewise, quadratic])
@pytest.mark.parametrize(("size", "chooser"), CHOOSERS)
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_the_bounds_bracket_the_maximum_and_close(family, size, chooser, seed):
    oracle, greatest = family(seed, size)
    found = maximize_concave(oracle, size, radius=RADIUS, tol=1e-3, chooser=chooser)
    assert found.lower - 1e-7 <= greatest <= found.upper + 1e-7
    assert found.gap <= 1e-3
    assert found.multipliers.min() >= 0
    assert found.multipliers.max() <= RADIUS


def test_the_upper_bound_follows_from_the_shares_of_the_cuts():
    oracle, _ = quadratic(3, 2)
    asked = []

    def recorded(point, accuracy):
        asked.append((point.copy(), oracle(point, accuracy)))
        return asked[-1][1]

    found = maximize_concave(recorded, 2, radius=RADIUS, tol=1e-4)
    offsets = np.array([answer.upper - answer.slope @ point for point, answer in asked])
    mixed = found.shares @ np.array([answer.slope for _, answer in asked])
    assert found.shares.sum() == pytest.approx(1.0)
    assert found.upper == pytest.approx(found.shares @ offsets + RADIUS * np.maximum(mixed, 0).sum(), abs=1e-9)
    assert asked[found.best][1].lower == found.lower
    np.testing.assert_array_equal(asked[found.best][0], found.multipliers)


def test_the_accuracy_asked_for_grows_finer_with_the_gap():
    oracle, _ = quadratic(1, 3)
    accuracies = []

    def recorded(point, accuracy):
        accuracies.append(accuracy)
        return oracle(point, accuracy)

    found = maximize_concave(recorded, 3, radius=RADIUS, tol=1e-5)
    assert found.gap <= 1e-5
    assert max(accuracies) > 100 * accuracies[-1]
    assert min(accuracies) >= 1e-5 / 4


def test_the_level_asks_less_often_than_the_maximum_where_there_are_many_multipliers():
    by_level = maximize_concave(quadratic(0, 15)[0], 15, radius=RADIUS, tol=1e-2, chooser="level")
    by_maximum = maximize_concave(quadratic(0, 15)[0], 15, radius=RADIUS, tol=1e-2, chooser="maximum")
    assert by_level.gap <= 1e-2
    assert by_level.n_iter < by_maximum.n_iter / 2


def test_it_stops_when_the_answers_run_out():
    oracle, greatest = quadratic(2, 2)
    few = maximize_concave(oracle, 2, radius=RADIUS, tol=1e-6, max_iter=3)
    assert few.n_iter == 3
    assert few.lower <= greatest <= few.upper


@pytest.mark.parametrize("chooser", ["level", "maximum"])
def test_it_ends_with_the_gap_that_an_oracle_at_its_limit_leaves(chooser):
    exact, greatest = quadratic(4, 2)
    accuracies = []

    def limited(point, accuracy):
        accuracies.append(accuracy)
        answer = exact(point, 0.0)
        return answer._replace(lower=answer.lower - 0.05, upper=answer.upper + 0.05)

    found = maximize_concave(limited, 2, radius=RADIUS, tol=1e-6, chooser=chooser)
    assert sum(accuracy < 0.1 for accuracy in accuracies) == 3
    assert found.n_iter == len(accuracies) < 50
    assert found.lower <= greatest <= found.upper
    assert found.gap > 0.05


def test_a_rate_constraint_on_a_support_vector_machine_holds_at_the_multiplier_found():
    """Least hinge errors subject to a hinge bound on the positive rate: the Lagrangian's maximum is the least value."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    positive = X[:, 0] + rng.normal(size=400) > 0
    up, down, allowed = positive / 400, ~positive / 400, 0.3
    solutions = []

    def oracle(point, accuracy):
        found = solve_svm(X, up, down + point[0] / 400, 0.01, tol=accuracy, start=solutions[-1] if solutions else None)
        solutions.append(found)
        rate = np.maximum(0, 0.5 + X @ found.coefficients - found.bias).mean()
        offset = point[0] * allowed
        return OracleAnswer(found.lower - offset, found.value - offset, np.array([rate - allowed]))

    found = maximize_concave(oracle, 1, radius=20.0, tol=1e-5)
    mixed = sum(share * one.coefficients for share, one in zip(found.shares, solutions, strict=True))
    bias = sum(share * one.bias for share, one in zip(found.shares, solutions, strict=True))
    scores = X @ mixed - bias
    value = 0.005 * mixed @ mixed + up @ np.maximum(0, 0.5 - scores) + down @ np.maximum(0, 0.5 + scores)
    assert 0 < found.multipliers[0] < 20
    assert np.maximum(0, 0.5 + scores).mean() <= allowed + 1e-6
    assert found.lower <= value + 1e-9
    assert value <= found.upper + 1e-6


def constant(lower, upper, slope=(0.0,)):
    return lambda _point, _accuracy: OracleAnswer(lower, upper, np.array(slope))


BAD = {
    "bounds": (
        lambda: maximize_concave(constant(1.0, 0.0), 1, radius=1.0),
        "lower <= upper; got lower 1.0 and upper 0.0",
    ),
    "NaN": (lambda: maximize_concave(constant(np.nan, 0.0), 1, radius=1.0), "oracle must return finite bounds"),
    "slope": (lambda: maximize_concave(constant(0, 0, (1.0, 2.0)), 1, radius=1.0), r"slope must have shape \(1,\)"),
    "radius": (lambda: maximize_concave(constant(0, 0), 1, radius=0), "radius must be finite and above 0; got 0"),
    "center-of-mass": (
        lambda: maximize_concave(constant(0, 0), 2, radius=1.0, chooser="center-of-mass"),
        "exact for one multiplier only; got 2",
    ),
    "chooser": (
        lambda: maximize_concave(constant(0, 0), 2, radius=1.0, chooser="best"),
        "chooser must be one of 'auto'",
    ),
    "start": (lambda: maximize_concave(constant(0, 0), 2, radius=1.0, start=[1.0]), r"start must have shape \(2,\)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_sentence(case):
    call, text = BAD[case]
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("size", [1, 3])
def test_known_cuts_bound_the_maximum_from_the_start(size):
    rng = np.random.default_rng(size)
    slopes, offsets = rng.normal(size=(20, size)), rng.normal(size=20)

    def oracle(point, _accuracy):
        heights = offsets + slopes @ point
        return OracleAnswer(heights.min(), heights.min(), slopes[heights.argmin()])

    plain = maximize_concave(oracle, size, radius=RADIUS, tol=1e-6)
    again = maximize_concave(oracle, size, radius=RADIUS, tol=1e-6, cuts=(offsets, slopes))
    assert again.upper == pytest.approx(plain.upper, abs=1e-6)
    assert again.gap <= 1e-6
    assert again.n_iter <= plain.n_iter
    assert again.shares.size == len(offsets) + again.n_iter


@pytest.mark.parametrize("power", [-900, -40, -20, 100, 900])
@pytest.mark.parametrize("size", [1, 2])
def test_the_unit_of_the_function_does_not_matter(power, size):
    def maximum(unit):
        def oracle(point, _accuracy):
            value = -unit * float(((point - 2.0) ** 2).sum())
            return OracleAnswer(value, value, -2.0 * unit * (point - 2.0))

        return maximize_concave(oracle, size, radius=10.0, tol=1e-6 * unit)

    one, other = maximum(1.0), maximum(2.0**power)
    np.testing.assert_array_equal(one.multipliers, other.multipliers)
    assert other.gap == one.gap * 2.0**power
