"""Conflicts among linear constraints: irreducible, with the least violation and the nearest bounds."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from counterpoise.solvers.conflicts import find_conflict, merge_columns


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
    m, n = draw(st.integers(1, 6)), draw(st.integers(1, 8))
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
def test_the_nearest_bound_is_the_least_that_resolves_the_conflict(problem):
    matrix, bounds, domain = problem
    found = find_conflict(matrix, bounds, domain=domain)
    if found is None:
        return
    assert found.least_violation > 0
    for member in found.members:
        relaxed = bounds.copy()
        relaxed[member] = found.nearest[member]
        assert holds(matrix, relaxed, domain, found.members)
        relaxed[member] -= 1e-3
        assert not holds(matrix, relaxed, domain, found.members)
        assert found.nearest[member] - bounds[member] >= -1e-7
    others = np.setdiff1d(np.arange(len(bounds)), found.members)
    assert np.array_equal(found.nearest[others], bounds[others])


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
    assert found.nearest == pytest.approx([-1.2, 0.9, 0.9, 2.0])


def test_an_unknown_domain_is_refused():
    with pytest.raises(ValueError, match="domain must be"):
        find_conflict([[1.0]], [0.0], domain="sphere")


def test_a_constraint_that_holds_but_for_rounding_does_not_stop_the_search():
    found = find_conflict([[-1.0], [1.0]], [-1.0 - 5e-9, 0.0])  # x >= 1 and a little more; x <= 0
    assert found.members.tolist() == [0, 1]
    assert found.nearest == pytest.approx([0.0, 1.0], abs=1e-7)
