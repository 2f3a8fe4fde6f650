"""Nearest bounds of conflicting goals: those of a linear program over every rule, printed so that they can be used."""

import numpy as np
import score_problems
from nearest_problems import (
    can_hold_by_highs,
    nearest_by_highs,
    random_problems,
)

from counterpoise.goals import Table
from counterpoise.mixtures.choosing import as_aim
from counterpoise.mixtures.scores.choosing import limits_of
from counterpoise.mixtures.scores.limits import nearest_of_all

N_PROBLEMS = 300
EXACT = 2e-6  # a bound is offered with room of up to 1e-6, for what a solver may have missed by


def searched(problem, place):
    """Return what is found for one of the goals over all rules of a problem."""
    table = Table(None, problem.y, {"sex": problem.sex}, sample_weight=problem.weights)
    codes = (problem.sex == "M").astype(int) if problem.by else np.zeros(len(problem.y), dtype=int)
    cost, texts = 0.3 if problem.defers else None, problem.texts
    rows = score_problems.Problem(
        {"train": problem.scores}, {"train": table}, {"train": codes}, texts, None, None, cost
    )
    ranked = score_problems.ranked_of(rows, ("sex=F", "sex=M"))
    limits = limits_of(ranked, as_aim(1.0, None, texts, defer_cost=cost))
    return nearest_of_all(limits, place, ranked.usual_rules())


def test_the_nearest_bound_of_a_ratio_is_that_of_a_program_over_every_pair_of_thresholds():
    worst, n_bounds = 0.0, 0
    problems = [one for seed in range(N_PROBLEMS // 10) for one in random_problems(seed, 10)]
    for seed, problem in enumerate(problems):
        limit, truth = problem.limits[0], nearest_by_highs(problem, 0)  # the first goal is on a ratio
        tighter = limit.bound if truth is None else float(truth - limit.sign * (0.02 + 0.05 * (seed % 5)))
        problem = problem.with_bound(0, tighter)
        if can_hold_by_highs(problem.limits):  # by a mixture that decides about nobody
            continue
        found = searched(problem, 0)
        assert found.is_proven, seed
        assert (found.bound is None) == (truth is None), seed
        worst = max(worst, 0.0 if truth is None else abs(found.bound - truth))
        n_bounds += truth is not None
    assert worst <= EXACT
    print(n_bounds, worst)
    assert n_bounds > N_PROBLEMS / 2
