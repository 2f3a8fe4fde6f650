"""The threshold on scores, beside a search through all thresholds; trainings under tighter constraints."""

from fractions import Fraction

import numpy as np
import pytest

from counterpoise.solvers.ramp import (
    LinearMachine,
    RampOptions,
    RampProblem,
    Sweep,
    decide,
    decide_by_sign,
    minimize_ramp,
)


def whole_problem(rng, n_rows, n_constraints):
    """Return a problem whose weights and constants are whole numbers, so that sums are exact."""
    weights = rng.integers(-2, 3, size=(1 + n_constraints, n_rows)).astype(float)
    constants = rng.integers(-4, 3, size=1 + n_constraints).astype(float)
    return RampProblem(LinearMachine(np.eye(n_rows)), weights, constants, 1.0)


def every_cut(problem, scores):
    """Return objective, constraints and decisions of every threshold, by exact sums one by one."""
    weights = [[Fraction(entry) for entry in row] for row in problem.weights.toarray().tolist()]
    counts = np.abs(problem.weights.toarray()).sum(axis=0) > 0
    for threshold in [-np.inf, *sorted(set(scores.tolist()))]:
        above = scores > threshold
        sums = [
            Fraction(constant) + sum(weight for weight, is_above in zip(row, above, strict=True) if is_above)
            for constant, row in zip(problem.constants.tolist(), weights, strict=True)
        ]
        yield sums[0], sums[1:], len(set(above[counts].tolist())) < 2


@pytest.mark.slow
def test_the_best_cut_is_that_of_a_search_through_all_thresholds():
    rng = np.random.default_rng(0)
    n_held = 0
    for _ in range(300):
        n_rows, n_constraints = int(rng.integers(1, 9)), int(rng.integers(0, 4))
        problem, scores = whole_problem(rng, n_rows, n_constraints), rng.integers(-3, 4, size=n_rows).astype(float)
        sweep = Sweep(problem, scores, np.zeros(n_rows), np.ones(n_constraints))
        cuts = list(every_cut(problem, scores))
        for found, is_constant in ((sweep.best(), False), (sweep.constant(), True)):
            among = [cut for cut in cuts if cut[2] == is_constant]
            held = [value for value, excess, _ in among if all(one <= 0 for one in excess)]
            if held:
                n_held += 1
                assert found.holds
                assert found.value == min(held)
                assert found.is_constant == is_constant
            elif is_constant:
                assert found is None
            elif among:
                total = np.maximum(found.excess, 0).sum()
                assert not found.holds
                assert total == min(sum(max(one, 0) for one in excess) for _, excess, _ in among)
            else:
                assert found is None
    assert n_held > 150


def test_no_cut_separates_rows_whose_scores_differ_by_rounding():
    weights, constants = [[0.0, 0.0, 1.0], [1.0, -1.0, 0.0]], np.array([0.0, 0.5])
    problem = RampProblem(LinearMachine(np.eye(3)), weights, constants, 1.0)
    scores, sizes = np.array([1.0, 1.0 + 1e-15, 3.0]), np.ones(1)
    assert Sweep(problem, scores, np.zeros(3), sizes).best().holds  # the second row alone, without the first
    assert not Sweep(problem, scores, np.full(3, 1e-14), sizes).best().holds


def test_a_threshold_of_zero_is_kept_where_it_is_as_good():
    problem = RampProblem(LinearMachine(np.eye(4)), [[1.0, 0, 0, -1.0], [0, 1.0, 1.0, 0]], np.array([0.0, -1.0]), 1.0)
    assert Sweep(problem, np.array([-2.0, -1.0, 1.0, 2.0]), np.zeros(4), np.ones(1)).best().threshold == 0.0


@pytest.mark.parametrize("size", [2.0**-300, 2.0**300])
def test_scores_of_any_size_have_a_cut_above_and_below_all(size):
    problem = RampProblem(LinearMachine(np.eye(2)), [[1.0, 1.0], [-1.0, -1.0]], np.array([0.0, 2.0]), 1.0)
    cut = Sweep(problem, np.array([-3.0, -2.0]) * size, np.zeros(2), np.ones(1)).constant()
    assert cut.holds
    assert cut.value == 2


@pytest.mark.parametrize("seed", [2, 3, 11])
def test_training_again_under_tighter_constraints_meets_what_no_threshold_does(seed):
    """Without an offset the threshold stays at zero, and the decisions follow the coefficients."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    labels = X[:, 0] + 0.5 * rng.normal(size=60) > 0.5
    weights = np.vstack([np.where(labels, -1, 1), np.where(X[:, 1] > 0, -1.0, 1.0)]) / 60
    problem = RampProblem(LinearMachine(X, fit_bias=False), weights, np.array([labels.mean(), 0.1]), 0.01)
    trained = minimize_ramp(problem, np.zeros(4), RampOptions())
    trained = minimize_ramp(problem, trained.state.point, RampOptions())  # from a start that breaks no constraint
    arguments = problem, trained, lambda _: np.zeros(60), np.ones(1)
    once, again = decide_by_sign(*arguments), decide(*arguments, RampOptions())
    assert once.cut.threshold == again.cut.threshold == 0
    assert not once.cut.holds
    assert again.cut.holds
    assert again.solution.state.violation <= 1e-9
