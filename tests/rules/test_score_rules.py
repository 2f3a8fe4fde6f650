"""The best mixture over every threshold of every score, against the same program written out in full."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from counterpoise.rules.scores.cuts import CutRules, couple, find_cuts
from counterpoise.solvers import minimize_cvar
from counterpoise.theory.risks import Mean, MeanVariance, WorstGroup
from tests.rules.score_problems import RISKS, chosen, every_rule, proven, random_problem
from tests.tiers import problems

_TOL = 1e-7


@pytest.mark.parametrize("seed", problems())
def test_the_optimum_over_every_threshold_is_found_and_proven(seed):
    """Value and lower bound enclose the optimum of the written-out program; where that has none, goals conflict."""
    found = proven(random_problem(seed), _TOL)
    assert found is None or found[0].mixture.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(0, 60, 12))
def test_coupled_rules_have_the_value_that_was_proven_and_fall_together(seed):
    problem = random_problem(seed)._replace(goals=[])
    choice, ranked = chosen(problem)
    evidence = ranked.predictions_of(choice.rules)
    if not isinstance(problem.objective, (str, WorstGroup)):
        value = problem.objective.value(evidence.losses @ choice.mixture, problem.weights)
        assert value == pytest.approx(choice.value, abs=1e-9)
    for model in np.unique(choice.rules.models):
        cuts = choice.rules.cuts[choice.rules.models == model]
        assert (np.diff(cuts, axis=0) <= 0).all()  # thresholds rise


@pytest.mark.parametrize("seed", range(5))
def test_running_sums_are_sums_over_the_rows_above_each_threshold(seed):
    rng = np.random.default_rng(seed)
    scores, groups = rng.integers(0, 5, (30, 2)) / 4.0, rng.integers(0, 3, 30)
    cuts, amounts = find_cuts(scores, groups, 4), rng.normal(size=30)  # the last group is empty
    sums = cuts.sums(slice(None), amounts)
    for model in range(2):
        for group in range(4):
            for cut in range(cuts.starts[model, group], cuts.starts[model, group + 1]):
                above = (groups == group) & (scores[:, model] > cuts.thresholds[cut])
                assert sums[cut] == pytest.approx(amounts[above].sum())
                np.testing.assert_array_equal((groups == group) & (cuts.places[model] <= cut), above)


def test_scores_that_may_be_equal_but_for_rounding_are_not_cut_apart():
    scores = np.array([0.5, 0.5 + 1e-13, 0.5 + 2e-13, 0.7])[:, None]
    assert find_cuts(scores, np.zeros(4, dtype=int), 1).thresholds.size == 3


def test_a_long_chain_of_near_neighbours_is_cut_between_all_of_them():
    scores = (np.array(1e8).view(np.int64) + np.arange(1 << 18)).view(np.float64)  # no float lies between two of them
    cuts = find_cuts(scores[:, None], np.zeros(scores.size, dtype=int), 1)
    assert cuts.n_cuts == scores.size + 1
    for place in (1, 1000, scores.size - 1):
        assert (scores > cuts.thresholds[place]).sum() == place


def scores_of_any_kind(rng, n_rows):
    """Return scores as models give them: probabilities, rare ones, logits, votes, ranks, sums that cancel out."""
    logits = rng.normal(size=n_rows)
    kinds = [
        1 / (1 + np.exp(-logits)),
        1e-12 * rng.uniform(1, 2, n_rows),
        logits,
        rng.integers(0, 6, n_rows) / 5,
        np.arange(n_rows) * 1e-11 / n_rows + 3e-11,
        logits - logits.mean(),
        np.exp(-rng.uniform(0, 60, n_rows)),
        1 - 1e-9 * rng.uniform(1, 2, n_rows),
    ]
    return kinds[rng.integers(len(kinds))]


@pytest.mark.slow
def test_the_unit_of_a_score_decides_nothing_and_scores_that_differ_are_told_apart():
    """Blocks of equal scores by exact fractions; then the same cuts for the scores times any power of two."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        scores = scores_of_any_kind(rng, int(rng.integers(2, 60)))
        groups = rng.integers(0, 3, scores.size)
        cuts = find_cuts(scores[:, None], groups, 3)
        usual = np.median(np.abs(scores))
        for group in range(3):
            exact = sorted({Fraction(score) for score in scores[groups == group]}, reverse=True)
            room = [max(Fraction(usual) / 2**49, max(abs(one), abs(two)) / 2**39) for one, two in pairwise(exact)]
            surely = sum(one - two > gap for (one, two), gap in zip(pairwise(exact), room, strict=True))
            n_blocks = cuts.starts[0, group + 1] - cuts.starts[0, group] - 1
            assert surely + bool(exact) <= n_blocks <= len(exact)
        exponents = np.frexp(scores[scores != 0])[1]
        power = int(rng.integers(-1020 - exponents.min(), 1023 - exponents.max(), endpoint=True))
        scaled = find_cuts(np.ldexp(scores, power)[:, None], groups, 3)
        np.testing.assert_array_equal(scaled.places[0], cuts.places[0])
        np.testing.assert_array_equal(scaled.thresholds, np.ldexp(cuts.thresholds, power))


def test_coupling_keeps_the_chance_of_each_cut_in_each_group():
    rng = np.random.default_rng(0)
    rules = CutRules(np.array([0, 0, 0, 1, 1]), np.column_stack([[1, 5, 3, 7, 8], [14, 11, 12, 17, 16]]))
    mixture = rng.dirichlet(np.ones(5))
    others, shares = couple(rules, mixture)
    for group in range(2):
        for cut in rules.cuts[:, group]:
            before = mixture[rules.cuts[:, group] == cut].sum()
            assert shares[others.cuts[:, group] == cut].sum() == pytest.approx(before)


def test_every_rule_of_the_written_out_program_is_among_the_cuts():
    problem = random_problem(3)
    _, ranked = chosen(problem._replace(goals=[]))
    n_rules = sum(int(np.prod(np.diff(starts))) for starts in ranked.cuts.starts)
    assert every_rule(problem)["train"].shape[1] == n_rules


def test_losses_that_count_all_rows_alike_can_be_merged():
    rng = np.random.default_rng(0)
    losses, times = rng.random(20), rng.integers(1, 5, 20)
    for risk in (*RISKS, MeanVariance(0.3)):
        assert risk.is_law_invariant
        assert risk.value(np.repeat(losses, times)) == pytest.approx(risk.value(losses, times), rel=1e-7)
    assert not WorstGroup("sex").is_law_invariant
    assert not (0.5 * Mean() + 0.5 * WorstGroup("sex")).is_law_invariant


@pytest.mark.parametrize("seed", range(4))
def test_a_risk_that_tells_rows_apart_is_taken_row_by_row(seed):
    """Half the mean and half the worst group, against the program over every rule, whose rows are those two parts."""
    problem = random_problem(seed)._replace(goals=[], budget=None, objective=0.5 * Mean() + 0.5 * WorstGroup("sex"))
    said, sex = every_rule(problem)["train"], problem.tables["train"].column("sex")
    losses = (said != (problem.y == 1)[:, None]).astype(float)
    means = np.array(
        [np.average(losses[rows], axis=0, weights=problem.weights[rows]) for rows in (sex == "a", sex == "b")]
    )
    mean = np.average(losses, axis=0, weights=problem.weights)
    best = minimize_cvar(0.5 * means + 0.5 * mean, 0.5, method="highs").value
    choice, _ = chosen(problem, _TOL)
    assert choice.value == pytest.approx(best, abs=1e-6)
    assert choice.lower <= best + 1e-8
