"""Majorization-minimization on ramps: never worse, never outside the constraints, with bounds around the optimum."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import least_majorized_value
from scipy.optimize import linprog

from counterpoise.solvers.ramp import KernelMachine, LinearMachine, RampOptions, RampProblem, best_mean, minimize_ramp

TOL = 1e-3


class Case(NamedTuple):
    """A problem as plain arrays, and a point that meets its constraints."""

    X: np.ndarray
    weights: np.ndarray
    constants: np.ndarray
    regularization: float
    start: np.ndarray

    @property
    def problem(self) -> RampProblem:
        return RampProblem(LinearMachine(self.X), sp.csr_array(self.weights), self.constants, self.regularization)

    def value(self, point: np.ndarray) -> Any:
        """Return objective and excesses at a point, by their definition."""
        probabilities = np.clip(0.5 + self.X @ point[:-1] - point[-1], 0, 1)
        values = self.constants + self.weights @ probabilities
        return values[0] + self.regularization / 2 * point[:-1] @ point[:-1], values[1:]


def random_case(seed: int) -> Case:
    """Return noisy rows, an error rate to minimize, and constraints on some rows, some of them tight at the start."""
    rng = np.random.default_rng(seed)
    n_rows, n_columns, n_constraints = int(rng.integers(8, 50)), int(rng.integers(1, 5)), int(rng.integers(0, 5))
    X = rng.normal(size=(n_rows, n_columns))
    positive = X[:, 0] + rng.normal(size=n_rows) > rng.normal()
    members = rng.random((n_constraints, n_rows)) < rng.uniform(0.2, 1.0)
    signs = np.where(rng.random((n_constraints, n_rows)) < rng.choice([0.0, 0.5]), -1.0, 1.0)
    rates = members * signs * rng.choice([-1.0, 1.0], size=(n_constraints, 1)) / np.maximum(members.sum(1), 1)[:, None]
    weights = np.vstack([np.where(positive, -1.0, 1.0) / n_rows, rates])
    start = rng.normal(size=n_columns + 1) * rng.choice([0.0, 0.3, 3.0])
    spare = rng.exponential(0.1, size=n_constraints) * (rng.random(n_constraints) < 0.7)
    reached = rates @ np.clip(0.5 + X @ start[:-1] - start[-1], 0, 1)
    constants = np.concatenate([[positive.mean()], -reached - spare])
    return Case(X, weights, constants, float(rng.choice([1e-3, 1e-2, 0.1])), start)


@pytest.mark.slow
@given(st.integers(0, 10**6))
@example(105)  # where a price on what is exceeded buys a little of it
def test_every_step_stays_inside_the_constraints_and_never_raises_the_objective(seed):
    case = random_case(seed)
    found = minimize_ramp(case.problem, case.start, RampOptions(tol=TOL))
    first, _ = case.value(case.start)
    values = [first, *(step.value for step in found.history)]
    assert (np.diff(values) <= 1e-9).all()
    assert max(step.violation for step in found.history) <= 1e-6
    value, excess = case.value(found.state.point)
    assert value == pytest.approx(found.state.value, abs=1e-9)
    assert np.maximum(excess, 0.0).sum() <= 2e-9  # the result is inside, but for rounding


@given(st.integers(0, 10**6))
@settings(max_examples=15)
def test_the_bounds_of_a_convex_program_bracket_its_optimum(seed):
    case = random_case(seed)
    step = minimize_ramp(case.problem, case.start, RampOptions(tol=TOL, max_majorizations=1)).history[0]
    scores = case.X @ case.start[:-1] - case.start[-1]
    least = least_majorized_value(case.X, case.weights, case.constants, case.regularization, scores)
    assert step.lower - 1e-6 <= least <= step.lower + step.gap + 1e-6
    assert step.value <= step.lower + step.gap + 1e-9  # ramps lie below their bounds


@pytest.mark.slow
@given(st.integers(0, 10**6))
@settings(max_examples=15)
def test_the_last_convex_program_is_solved_to_the_tolerance(seed):
    case = random_case(seed)
    found = minimize_ramp(case.problem, case.start, RampOptions(tol=TOL, max_majorizations=60))
    assert len(found.history) < 60
    assert found.history[-1].gap <= TOL + 1e-9


@given(st.integers(0, 10**6))
@settings(max_examples=10)
def test_rows_and_their_gram_matrix_agree(seed):
    case = random_case(seed)
    plan = RampOptions(tol=1e-2, max_majorizations=2)
    linear = minimize_ramp(case.problem, np.zeros(case.start.size), plan)
    gram = KernelMachine(case.X @ case.X.T)
    kernel = RampProblem(gram, case.problem.weights, case.constants, case.regularization)
    other = minimize_ramp(kernel, np.zeros(len(case.X) + 1), plan)
    # Both bracket the same first convex program.
    one, two = linear.history[0], other.history[0]
    assert one.lower <= two.lower + two.gap + 1e-6
    assert two.lower <= one.lower + one.gap + 1e-6


@given(st.integers(0, 10**6))
def test_the_best_mean_is_the_optimum_of_its_linear_program(seed):
    rng = np.random.default_rng(seed)
    n_points, n_constraints, radius = int(rng.integers(1, 8)), int(rng.integers(1, 4)), 100.0
    values = rng.normal(size=(n_points, 1 + n_constraints))
    shares = best_mean(values, radius=radius)
    cost = np.append(values[:, 0], np.full(n_constraints, radius))
    limits = np.column_stack([values[:, 1:].T, -np.eye(n_constraints)])
    total = np.append(np.ones(n_points), np.zeros(n_constraints))[None]
    least = linprog(cost, A_ub=limits, b_ub=np.zeros(n_constraints), A_eq=total, b_eq=[1.0], method="highs-ipm").fun
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(1)
    mean = shares @ values
    assert mean[0] + radius * np.maximum(mean[1:], 0).sum() == pytest.approx(least, abs=1e-6)


@given(st.integers(0, 10**6))
def test_with_an_infinite_price_the_best_mean_exceeds_no_more_than_the_first_point(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(int(rng.integers(1, 8)), int(rng.integers(2, 5))))
    room = np.maximum(values[0, 1:], 0)
    shares = best_mean(values, radius=np.inf)
    total = np.ones((1, len(values)))
    least = linprog(values[:, 0], A_ub=values[:, 1:].T, b_ub=room, A_eq=total, b_eq=[1.0], method="highs-ipm").fun
    mean = shares @ values
    assert mean[0] == pytest.approx(least, abs=1e-6)
    assert (mean[1:] <= room + 1e-9).all()


def test_a_start_outside_the_constraints_never_gets_further_out():
    """Some starts are local minima of the violation; most are not."""
    gains = []
    for case in filter(lambda case: len(case.constants) > 1, map(random_case, range(12))):
        _, excess = case.value(case.start)
        outside = case._replace(constants=case.constants + np.append(0.0, 0.2 - excess))  # all exceeded by 0.2
        found = minimize_ramp(outside.problem, case.start, RampOptions(tol=TOL, focus=0.0, radius=1.0))
        steps = [0.2 * excess.size, *(step.violation for step in found.history)]
        assert (np.diff(steps) <= 1e-9).all()
        gains.append(steps[0] - steps[-1])
    assert np.median(gains) > 0.1
