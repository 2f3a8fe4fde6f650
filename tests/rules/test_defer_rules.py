"""Rules that defer between two thresholds: every interval of every score, against the same written out in full."""

import numpy as np
import pytest

from counterpoise.rules.choosing import as_problem
from counterpoise.rules.program import Objective, Program
from counterpoise.rules.scores.cuts import CutRules, couple
from counterpoise.rules.scores.family import CutFamily
from counterpoise.rules.scores.fixed import search_fixed
from counterpoise.rules.scores.sums import CellLosses, cheapest_rules
from counterpoise.theory.risks import KL, CVaR, EmpiricalLikelihood, Mean, WorstGroup
from tests.rules.score_problems import (
    chosen,
    deferral_of,
    every_rule,
    goal_rows_of,
    goal_scales_of,
    losses_of,
    proven,
    random_problem,
    ranked_of,
    written_out,
)
from tests.tiers import problems, some_fast

_TOL = 1e-7


def cells_of(problem, ranked):
    """Return the losses on labelled rows, each a cell of its own."""
    y, codes = problem.y == 1, ranked.codes["train"]
    return CellLosses(ranked.cuts, codes, y, problem.weights, merge=False, defer_cost=problem.defer_cost)


@pytest.mark.parametrize("first", some_fast(range(0, 60, 20)))
def test_the_cheapest_interval_is_that_of_all_intervals(first):
    """The best pair of edges in each group, with weights of rows and prices of goals, by brute force."""
    for seed in range(first, first + 20):
        problem = random_problem(seed, defers=True)
        ranked = ranked_of(problem)
        rng = np.random.default_rng(seed)
        weights = rng.random(len(problem.y)) * (problem.weights > 0)
        base, costs = cells_of(problem, ranked).costs(weights)
        said = every_rule(problem)
        by_hand = weights @ losses_of(problem, said["train"])
        if problem.goals:
            rows, bounds = goal_rows_of(problem, said)
            aim = as_problem(1.0, None, problem.goals, deferral=deferral_of(problem))
            prices, limits = rng.random(len(rows)), CutFamily(ranked).limits(aim.goals)
            constant, added = limits.costs(prices)
            base, costs = base + constant - prices @ limits.bounds, costs + added
            by_hand = by_hand + prices @ (rows - bounds[:, None])
        least, rules = cheapest_rules(ranked.cuts, costs)
        assert base + least.min() == pytest.approx(by_hand.min(), abs=1e-12)
        n_groups, n_cuts = ranked.cuts.n_groups, ranked.cuts.n_cuts
        assert (rules.cuts[:, :n_groups] <= rules.cuts[:, n_groups:] - n_cuts).all()


@pytest.mark.parametrize("seed", problems())
def test_the_optimum_over_every_interval_is_found_and_proven(seed):
    """Value and lower bound enclose the optimum of the written-out program; where that has none, goals conflict."""
    problem = random_problem(seed, defers=True)
    found = proven(problem, _TOL)
    if found is None:
        return
    choice, ranked = found
    evidence = ranked.predictions_of(choice.rules)
    assert all(check.holds for check in evidence.answers.checks(limits_of_goals(problem), choice.mixture))


@pytest.mark.parametrize("risk", [KL(0.2), EmpiricalLikelihood(0.1), 0.5 * Mean() + 0.5 * CVaR(0.2)])
def test_other_risks_are_proven_over_every_interval_too(risk):
    problem = random_problem(0, defers=True)._replace(goals=["defer_rate <= 0.3"], objective=risk, defer_cost=0.2)
    choice, _ = chosen(problem._replace(budget=None), _TOL)
    assert choice.value == pytest.approx(written_out(problem._replace(budget=None)), abs=1e-6)
    assert choice.value - choice.lower <= 1e-6


def limits_of_goals(problem):
    return as_problem(1.0, None, problem.goals, deferral=deferral_of(problem)).goals


@pytest.mark.parametrize("seed", range(0, 50, 12))
def test_coupled_rules_keep_their_value_and_their_edges_apart(seed):
    problem = random_problem(seed, defers=True)._replace(goals=[])
    choice, ranked = chosen(problem)
    losses = ranked.predictions_of(choice.rules).losses
    if not isinstance(problem.objective, (str, WorstGroup)):
        value = problem.objective.value(losses @ choice.mixture, problem.weights)
        assert value == pytest.approx(choice.value, abs=1e-9)
    upper, lower = np.split(ranked.cuts.levels(choice.rules.cuts), 2, axis=1)
    assert (upper >= lower).all()
    for model in np.unique(choice.rules.models):
        assert (np.diff(choice.rules.cuts[choice.rules.models == model], axis=0) <= 0).all()  # thresholds rise


def test_coupling_pairs_of_edges_keeps_the_lower_one_below():
    rng = np.random.default_rng(0)
    edges = np.sort(rng.integers(0, 30, (8, 2, 3)), axis=1).reshape(8, 6)  # three upper edges, then three lower ones
    others, shares = couple(CutRules(np.zeros(8, dtype=int), edges), rng.dirichlet(np.ones(8)))
    assert (others.cuts[:, :3] <= others.cuts[:, 3:]).all()
    assert shares.sum() == pytest.approx(1.0)


def test_merged_cells_have_the_losses_of_their_rows():
    for seed in range(20):
        problem = random_problem(seed, defers=True)
        ranked = ranked_of(problem)
        rules = ranked.usual_rules()
        y, codes = problem.y == 1, ranked.codes["train"]
        merged = CellLosses(ranked.cuts, codes, y, problem.weights, defer_cost=problem.defer_cost)
        merged.split_cells(rules)
        means = CutFamily(ranked).mean_losses().of(rules)[0]
        assert merged.sample_weight @ merged.of(rules) == pytest.approx(means, abs=1e-12)


@pytest.mark.slow
def test_a_deferral_as_dear_as_an_error_changes_nothing():
    for seed in range(8):
        plain = random_problem(seed)._replace(goals=[], objective=CVaR(0.4))
        dear = plain._replace(defer_cost=1.0)
        assert chosen(dear, _TOL)[0].value == pytest.approx(chosen(plain, _TOL)[0].value, abs=1e-6)


@pytest.mark.parametrize("seed", problems(10, 0))
def test_a_fixed_rule_is_the_best_of_all_intervals_where_these_are_few(seed):
    """The search looks at every pair of edges of every group: least violation, then least mean loss."""
    problem = random_problem(seed, defers=True)._replace(objective=CVaR(1.0), budget=None)
    choice, ranked = chosen(problem._replace(goals=[]))
    aim = as_problem(1.0, None, problem.goals, deferral=deferral_of(problem))
    found = search_fixed(ranked, aim, choice.rules, choice.mixture, np.zeros(len(aim.goals)))
    said = every_rule(problem)
    rows, bounds = goal_rows_of(problem, said)
    violation = np.maximum((rows - bounds[:, None]) / goal_scales_of(problem)[:, None], 0.0).sum(axis=0)
    mean = np.average(losses_of(problem, said["train"]), axis=0, weights=problem.weights)
    best = mean[violation <= violation.min() + 1e-9].min()
    assert found.violation == pytest.approx(violation.min(), abs=1e-8)
    assert CutFamily(ranked).mean_losses().of(found.rule)[0, 0] == pytest.approx(best, abs=1e-9)


def test_the_program_needs_no_rule_that_defers_to_begin_with():
    """From the rule that calls nobody positive alone the same optimum is reached."""
    problem = random_problem(4, defers=True)._replace(goals=[], budget=None, objective=CVaR(0.3), defer_cost=0.25)
    choice, ranked = chosen(problem, _TOL)
    start = ranked.usual_rules().only(slice(1, 2))
    program = Program(CutFamily(ranked), Objective(cells_of(problem, ranked), CVaR(0.3)))
    assert program.family.optimum(program, _TOL, start).solution.value == pytest.approx(choice.value, abs=1e-6)
