"""Mixtures under goals of every kind, against the linear program written out for HiGHS."""

import numpy as np
import pytest
from written_out import fitted, random_problem, solved_by_highs

from counterpoise.goals import InfeasibleGoals, parse_goal
from tests.tiers import problems


@pytest.mark.parametrize("seed", problems())
def test_the_mixture_is_the_one_that_highs_finds(seed):
    problem = random_problem(seed)
    for limit in problem.limits:
        goal = parse_goal(limit.text)
        assert parse_goal(str(goal)) == goal
    least = solved_by_highs(problem)
    if least is None:
        with pytest.raises(InfeasibleGoals) as caught:
            fitted(problem)
        assert caught.value.proven
        return
    model = fitted(problem)
    assert model.value_ == pytest.approx(least, abs=1e-6)
    assert model.multipliers_.shape == (len(problem.limits),)
    for limit, check in zip(problem.limits, model.check_goals(), strict=True):
        size = max(1.0, np.abs(limit.rows).max())
        assert (np.array(limit.rows) @ model.mixture_ <= np.array(limit.bounds) + 1e-9 * size).all()
        assert check.holds
