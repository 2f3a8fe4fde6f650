"""The best mixture of one score's rules from a grid of its cuts, against the program written out over every rule."""

import numpy as np
import pytest

from counterpoise.metrics import cvar_loss
from counterpoise.rules.choosing import as_problem
from counterpoise.rules.program import TOL, NoMixture, Objective, Program, with_budget
from counterpoise.rules.scores.family import CutFamily
from counterpoise.rules.scores.grid import GridFamily
from counterpoise.theory.risks import CVaR
from tests.rules.score_problems import chosen, random_problem, written_out
from tests.tiers import problems

_TOL = 1e-8


def one_score(seed):
    """Return a problem on one score whose objective is a tail, and its rows with their cuts."""
    rng, problem = np.random.default_rng(seed), random_problem(seed)
    alpha = float(rng.choice([0.1, 0.3, 0.7, 1.0]))
    scores = {name: one[:, :1] for name, one in problem.scores.items()}
    problem = problem._replace(scores=scores, objective=CVaR(alpha))
    return problem, alpha, chosen(problem._replace(goals=[], budget=None))[1]


def limits(problem, ranked):
    family = CutFamily(ranked)
    return with_budget(family, family.limits(as_problem(1.0, None, problem.goals).goals), problem.budget)[0]


def solved(family, alpha, asked, grid=None, tol=TOL):
    return Program(family, Objective(None, CVaR(alpha)), asked).solve(tol, grid)


@pytest.mark.parametrize("seed", problems(8, 8))
def test_the_optimum_over_every_rule_is_found_from_a_grid_and_proven(seed):
    problem, alpha, ranked = one_score(seed)
    best = written_out(problem)
    family = GridFamily(ranked)
    if best is None:
        with pytest.raises(NoMixture):
            solved(family, alpha, limits(problem._replace(budget=None), ranked))
        return
    asked = limits(problem, ranked)
    start = np.unique([ranked.cuts.starts[0, :-1], ranked.cuts.starts[0, 1:] - 1])
    for cuts in (None, start):  # a fine grid, and one that must be refined
        found = solved(family, alpha, asked, cuts, _TOL).solution
        assert found.value == pytest.approx(best, abs=1e-6)
        assert found.lower <= best + 1e-8
        evidence = ranked.predictions_of(found.rules)
        value = cvar_loss(evidence.losses, alpha, problem.tables["train"].sample_weight, mixture=found.mixture)
        assert value == pytest.approx(found.value, abs=1e-9)
        assert all(
            check.violation < 1e-7
            for check in evidence.answers.checks(tuple(as_problem(1, None, problem.goals).goals), found.mixture)
        )


def test_a_path_of_settings_has_the_values_of_each_alone():
    """What is kept from one setting changes how fast the next is solved, and not its answer."""
    problem, _, ranked = one_score(2)
    problem = problem._replace(goals=["recall >= 0.5"], budget=None)
    path, grid, asked = GridFamily(ranked), None, limits(problem, ranked)
    for alpha in (1.0, 0.5, 0.2, 0.5, 0.9):
        grid, found = solved(path, alpha, asked, grid, _TOL)
        alone = solved(GridFamily(ranked), alpha, asked, tol=_TOL).solution
        assert found.value == pytest.approx(alone.value, abs=1e-7)


def test_a_grid_is_refused_for_several_scores():
    _, ranked = chosen(random_problem(0)._replace(goals=[]))
    if ranked.cuts.n_models == 1:
        _, ranked = chosen(random_problem(1)._replace(goals=[]))
    assert ranked.cuts.n_models == 2
    with pytest.raises(ValueError, match="A grid is of the cuts of one score, without deferral; got 2"):
        GridFamily(ranked)
