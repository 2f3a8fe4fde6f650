"""Conflicts among linear constraints: irreducible, with the least violation and the nearest bounds."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from counterpoise.solvers import minimize_cvar
from counterpoise.solvers.conflicts import find_conflict, least_point, least_relaxation, merge_columns


def holds(matrix, bounds, domain, members):
    """Return whether the members can hold together, by a linear program of its own."""
    members, n = list(members), matrix.shape[1]
    limits, total = ((0, 1), {}) if domain == "box" else ((0, None), {"A_eq": [[1.0] * n + [0.0]], "b_eq": [1.0]})
    margin = linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=np.column_stack([matrix[members], -np.ones(len(members))]) if members else None,
        b_ub=bounds[members] if members else None,
        bounds=[limits] * n + [(None, None) if members else (0, 0)],
        **total,
    )
    return margin.fun <= 1e-7


@st.composite
def constraints(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m, n = draw(st.integers(1, 5)), draw(st.integers(1, 7))
    matrix = rng.choice([-1.0, 0.0, 0.5, 1.0], size=(m, n))
    return matrix, np.round(rng.normal(scale=0.7, size=m), 2), draw(st.sampled_from(["box", "simplex"]))


@given(constraints())
def test_a_conflict_is_found_where_there_is_one_and_cannot_be_made_smaller(problem):
    matrix, bounds, domain = problem
    found = find_conflict(matrix, bounds, domain=domain)
    assert (found is None) == holds(matrix, bounds, domain, range(len(bounds)))
    if found is not None:
        assert not holds(matrix, bounds, domain, found.members)
        for subset in combinations(found.members, len(found.members) - 1):
            assert holds(matrix, bounds, domain, subset)


@given(constraints())
def test_the_least_relaxation_is_enough_beside_all_others_and_no_less_is(problem):
    matrix, bounds, domain = problem
    conflict = find_conflict(matrix, bounds, domain=domain)
    everything = range(len(bounds))
    for place in everything:
        amount = least_relaxation(matrix, bounds, place, (np.zeros(matrix.shape[1]), 1.0), domain=domain)
        others = [other for other in everything if other != place]
        assert (amount is None) == (not holds(matrix, bounds, domain, others))
        if amount is not None:
            relaxed = bounds.copy()
            relaxed[place] += amount
            assert holds(matrix, relaxed, domain, everything)
            relaxed[place] -= 1e-3
            assert not holds(matrix, relaxed, domain, everything)
            assert conflict is None or amount > 0


@given(constraints(), st.integers(0, 2**32 - 1), st.sampled_from([1.0, 1e-3, 1e-6]))
def test_the_least_relaxation_of_a_ratio_is_exact_however_small_its_denominator(problem, seed, size):
    """Against bisection over plain linear programs whose rows are scaled up by what the denominator is small by."""
    matrix, bounds, domain = problem
    if domain == "box":
        return
    rng = np.random.default_rng(seed)
    divisor = size * rng.uniform(0.2, 1.0, matrix.shape[1])
    ratio = divisor * rng.uniform(0.5, 1.0, matrix.shape[1])  # ratio / divisor <= 0, multiplied through
    amount = least_relaxation(
        np.vstack([matrix, ratio]), np.append(bounds, 0.0), len(bounds), (divisor, 0.0), domain="simplex"
    )
    if amount is None:
        assert not holds(matrix, bounds, domain, range(len(bounds)))
        return
    for step, is_possible in ((1e-4, True), (-1e-4, False)):
        rows = np.vstack([matrix, (ratio - (amount + step) * divisor) / size])
        assert holds(rows, np.append(bounds, 0.0), domain, range(len(rows))) == is_possible


@given(constraints())
def test_the_least_point_has_the_least_priced_sum_of_violations(problem):
    matrix, bounds, domain = problem
    prices, n = np.arange(1.0, len(bounds) + 1), matrix.shape[1]
    values = least_point(matrix, bounds, prices, np.ones((1, n)), domain=domain)
    limits, total = ((0, 1), {}) if domain == "box" else ((0, None), {"A_eq": [[1.0] * n + [0.0] * len(bounds)]})
    best = linprog(
        np.append(np.zeros(n), prices),
        A_ub=np.hstack([matrix, -np.eye(len(bounds))]),
        b_ub=bounds,
        bounds=[limits] * n + [(0, None)] * len(bounds),
        **(total | {"b_eq": [1.0]} if total else {}),
    )
    assert prices @ np.maximum(values[:-1] - bounds, 0.0) == pytest.approx(best.fun, abs=1e-7)
    assert domain == "box" or values[-1] == pytest.approx(1.0)


@given(constraints(), st.integers(0, 2**32 - 1))
def test_repeated_rows_of_data_change_nothing(problem, seed):
    matrix, bounds, _ = problem
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(3), size=matrix.shape[1])
    spread = np.concatenate([matrix * shares[:, part] for part in range(3)], axis=1)
    assert merge_columns(spread).shape[1] <= matrix.shape[1]
    one, other = find_conflict(matrix, bounds), find_conflict(spread, bounds)
    assert (one is None) == (other is None)
    if one is not None:
        assert one.members.tolist() == other.members.tolist()
        assert one.least_violation == pytest.approx(other.least_violation, abs=1e-7)


def test_three_constraints_that_only_conflict_together():
    matrix = np.array([[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    found = find_conflict(matrix, np.array([-1.5, 0.6, 0.6, 2.0]))
    assert found.members.tolist() == [0, 1, 2]
    assert found.least_violation == pytest.approx(0.3)


def test_the_least_violation_is_that_of_the_conflict_alone():
    found = find_conflict([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], [0.2, -0.9, -5.0])  # two conflicts of their own
    assert found.members.tolist() == [2]
    assert found.least_violation == pytest.approx(5.0)


def test_an_unknown_domain_is_refused():
    with pytest.raises(ValueError, match="domain must be"):
        find_conflict([[1.0]], [0.0], domain="sphere")


def test_a_constraint_that_holds_but_for_rounding_does_not_stop_the_search():
    matrix, bounds = [[-1.0], [1.0]], [-1.0 - 5e-10, 0.0]  # x >= 1 and a little more; x <= 0
    assert find_conflict(matrix, bounds).members.tolist() == [0, 1]
    assert least_relaxation(matrix, bounds, 1, ([0.0], 1.0)) == pytest.approx(1.0, abs=1e-7)


@pytest.mark.parametrize("excess", [-1e-3, -1e-9, -1e-16, 0.0, 1e-16, 9e-10])
def test_what_one_solver_holds_for_rounding_the_others_do_too(excess):
    """The master, the program over weights, the bundle and the search for conflicts decide alike."""
    rows, bounds = np.array([[1.0, 1.0, 1.0], [1e-12, 2e-12, 3e-12]]), np.array([1.0 - excess, 1e-12])
    assert find_conflict(rows, bounds, domain="simplex") is None
    for method in ("highs", "bundle"):
        found = minimize_cvar(np.eye(3), 1.0, rows=rows, bounds=bounds, method=method)
        assert found.mixture == pytest.approx([1.0, 0.0, 0.0], abs=1e-6)
        assert abs(found.gap) <= 1e-4


def test_entries_that_are_rounding_beside_the_scale_bind_nothing():
    rows, scale = np.array([[1.1e-16, 0.0, -1.1e-16]]), np.array([1e-4])
    assert find_conflict(rows, [0.0], scale=scale, domain="simplex") is None
    for method in ("highs", "bundle"):
        given = {"rows": rows, "bounds": [-1e-16], "row_scale": scale, "method": method}
        assert minimize_cvar([[0.0, 1.0, 1.0]], 1.0, **given).mixture == pytest.approx([1.0, 0.0, 0.0], abs=1e-3)


@pytest.mark.parametrize("power", [-900, -40, 60, 900])
def test_the_units_of_constraints_do_not_matter(power):
    unit = 2.0**power
    assert least_relaxation([[-unit], [1.0]], [-0.9 * unit, 0.2], 0, ([0.0], unit)) == pytest.approx(0.7)
    values = least_point([[-unit], [1.0]], [-0.9 * unit, 0.2], [1.0 / unit, 2.0], np.array([[5.0]]))
    assert values[2] == pytest.approx(1.0)  # of an x of 0.2
    # Columns that differ only in a row of small numbers stay apart beside one of large numbers.
    assert merge_columns([[unit, unit], [1.0, 2.0]]).shape[1] == 2
