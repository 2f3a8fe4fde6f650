"""Nearest bounds of conflicting goals: those of a linear program over every rule, printed so that they can be used."""

import re

import numpy as np
import pytest
from nearest_problems import (
    least_moves_by_highs,
    nearest_by_highs,
    random_pool,
    random_problem,
    random_rates,
)

import counterpoise as cp
from counterpoise.goals import InfeasibleGoals, parse_goal
from counterpoise.goals.infeasible import NEAREST, bound_scale

EXACT = 2e-6  # a bound is offered with room of up to 1e-6, for what a solver may have missed by


def offered(error):
    """Return the goals of a conflict with what the message offers for each, read from its text."""
    text = re.sub(r" \([^()]*error [^()]*\)", "", str(error))  # what the decisions there do
    texts = re.search(r"with all other goals kept: (.*?)\.(?= [A-Z]|$)", text).group(1).split(", or ")
    return zip(error.nearest_bounds.items(), map(parse_goal, texts), strict=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [41, 118])  # where a pool of rules did not hold the nearest bound
def test_bounds_offered_for_thresholds_can_be_typed_in_and_not_tightened(seed):
    problem = random_problem(seed)
    limit, truth = problem.limits[0], nearest_by_highs(problem, 0)
    check_offers(problem.with_bound(0, float(truth - limit.sign * (0.02 + 0.05 * (seed % 3)))))


def check_offers(problem):
    """Check that what is offered is nearest, is met as printed, and is not met where it is tighter by the tolerance."""
    error = problem.conflict()
    assert error.proven
    assert error.nearest_proven
    assert "The nearest bounds that can be met" in str(error)
    for (goal, bound), printed in offered(error):
        place = [parse_goal(text).left for text in problem.texts].index(goal.left)
        limit = problem.limits[place]
        assert bound == pytest.approx(nearest_by_highs(problem, place), abs=EXACT)
        assert problem.conflict([*problem.texts[:place], str(printed), *problem.texts[place + 1 :]]) is None
        tighter = float(bound - limit.sign * NEAREST * bound_scale(goal, bound))
        assert problem.conflict(problem.with_bound(place, tighter).texts) is not None


@pytest.mark.slow
def test_the_least_joint_change_is_that_of_a_program_over_every_rule():
    n_joint = 0
    for seed in range(8):
        problem = random_rates(seed)
        error = problem.conflict()
        if error is None or not error.joint_bounds:
            continue
        n_joint += 1
        least = least_moves_by_highs(problem)
        assert least - 1e-9 <= error.joint_change <= least + 1e-3  # each bound is rounded to four digits
    assert n_joint >= 4


@pytest.mark.slow
def test_the_nearest_bound_of_a_ratio_is_that_of_a_program_over_all_models_of_a_pool():
    worst, n_bounds = 0.0, 0
    for seed in range(12):
        pool, limits = random_pool(seed)
        with pytest.raises(InfeasibleGoals) as caught:
            pool.fit([limit.text for limit in limits])
        assert caught.value.nearest_proven
        for goal, bound in caught.value.nearest_bounds.items():
            place = [parse_goal(limit.text).left for limit in limits].index(goal.left)
            worst, n_bounds = (
                max(worst, abs(bound - nearest_by_highs(pool._replace(limits=limits), place))),
                n_bounds + 1,
            )
    assert worst <= EXACT
    assert n_bounds > 12


def test_bounds_of_a_search_are_not_called_proven():
    rng = np.random.default_rng(0)
    y = np.tile(["ant", "bee", "cat"], 20)
    shares = rng.dirichlet(np.ones(3), 60)
    goals = ["recall(of=ant) >= 0.99", "precision(of=ant) >= 0.99"]
    model = cp.GoalClassifier(
        [shares], cv="prefit", decision="sticky", alpha=1.0, goals=goals, random_state=0, confidence=None
    )
    with pytest.raises(InfeasibleGoals, match="The nearest bounds found that can be met") as caught:
        model.fit(np.zeros((60, 1)), y)
    assert not caught.value.proven
    assert not caught.value.nearest_proven
    assert caught.value.as_dict()["nearest_proven"] is False
