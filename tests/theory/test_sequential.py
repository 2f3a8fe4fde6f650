"""Evidence that may be looked at after every row: its expectation is at most 1 where the mean is at most the bound."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from counterpoise.theory.confidence import WeightedSample
from counterpoise.theory.sequential import log_evidence, log_wealth, lower_mean, unruled_pairs
from tests.tiers import slow


def sample_of(rows, span=(0.0, 1.0)):
    """Return rows of (value, weight)."""
    values, weights = (np.array(part, dtype=float) for part in zip(*rows, strict=True))
    return WeightedSample(values, weights, np.ones(len(rows)), span)


POPULATIONS = [  # of a row: value, weight, probability
    [(0.0, 1.0, Fraction(2, 3)), (1.0, 1.0, Fraction(1, 3))],
    [(0.0, 1.0, Fraction(1, 2)), (0.25, 0.5, Fraction(1, 4)), (1.0, 0.125, Fraction(1, 4))],
    [(-2.0, 0.25, Fraction(1, 8)), (0.0, 1.0, Fraction(3, 4)), (3.0, 1.0, Fraction(1, 8))],
]


def mean_of(population):
    whole = sum(Fraction(weight) * chance for _, weight, chance in population)
    return sum(Fraction(value) * Fraction(weight) * chance for value, weight, chance in population) / whole


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("sign", [1, -1])
def test_the_expected_evidence_against_the_truth_is_at_most_one_after_any_number_of_rows(population, sign):
    turned = [(sign * value, weight, chance) for value, weight, chance in population]
    truth = mean_of(turned)
    span = min(value for value, *_ in turned), max(value for value, *_ in turned)
    for n_rows in (1, 2, 5):
        expected = Fraction(0)
        for rows in product(turned, repeat=n_rows):
            chance = np.prod([row[2] for row in rows])
            evidence = log_wealth(sample_of([row[:2] for row in rows], span), np.array([float(truth)]))[0]
            expected += chance * Fraction(float(np.exp(evidence)))
        assert 0.5 < expected <= 1 + Fraction(1, 10**9)


def test_the_expected_evidence_of_two_streams_is_at_most_one():
    one, other = POPULATIONS[0], [(-value, weight, chance) for value, weight, chance in POPULATIONS[1]]
    total = float(mean_of(one) + mean_of(other))
    for are_disjoint in (True, False):
        expected = Fraction(0)
        for rows in product(one, repeat=3):
            for others in product(other, repeat=3):
                chance = np.prod([row[2] for row in rows + others])
                samples = [
                    sample_of([row[:2] for row in part], span)
                    for part, span in ((rows, (0.0, 1.0)), (others, (-1.0, 0.0)))
                ]
                evidence = log_evidence(samples, total, are_disjoint=are_disjoint)
                expected += chance * Fraction(float(np.exp(evidence)))
        assert expected <= 1


def test_the_evidence_of_two_streams_is_the_least_over_all_pairs_of_means():
    rng = np.random.default_rng(0)
    for n_rows in (20, 300, 20_000):
        one = WeightedSample(np.array([0.0, 1.0]), np.ones(2), rng.multinomial(n_rows, [0.5, 0.5]) * 1.0, (0.0, 1.0))
        other = WeightedSample(
            np.array([-1.0, 0.0]), np.ones(2), rng.multinomial(2 * n_rows, [0.4, 0.6]) * 1.0, (-1.0, 0.0)
        )
        for total in (-0.2, 0.0, 0.07):
            means = np.linspace(max(0.0, total), min(1.0, total + 1.0), 40_001)
            least = (log_wealth(one, means) + log_wealth(other, total - means)).min()
            found = log_evidence([one, other], total, are_disjoint=True)
            assert 0.99 * least - 0.25 <= found <= least + 1e-9


def test_evidence_falls_with_the_mean_and_ends_are_where_it_reaches_the_level():
    rows = WeightedSample(np.array([0.0, 0.3, 1.0]), np.array([1.0, 0.2, 0.7]), np.array([40.0, 9.0, 60.0]), (0.0, 1.0))
    means = np.linspace(0.0, 1.0, 101)
    assert (np.diff(log_wealth(rows, means)) <= 1e-9).all()
    end = lower_mean(rows, 3.0)
    assert log_wealth(rows, np.array([end]))[0] >= 3.0 > log_wealth(rows, np.array([end + 1e-3]))[0]


def test_pairs_of_means_below_all_that_are_kept_are_ruled_out():
    one = WeightedSample(np.array([0.0, 1.0]), np.ones(2), np.array([300.0, 200.0]), (0.0, 1.0))
    other = WeightedSample(np.array([-1.0, 0.0]), np.ones(2), np.array([100.0, 100.0]), (-1.0, 0.0))
    firsts, seconds = unruled_pairs(one, other, 3.0)
    rng = np.random.default_rng(1)
    means, others = rng.random(500), -rng.random(500)
    is_kept = log_wealth(one, means) + log_wealth(other, others) < 3.0
    above = (means[:, None] >= firsts) & (others[:, None] >= seconds)
    assert above.any(axis=1)[is_kept].all()
    assert log_evidence([one, other], float((firsts + seconds).min()), are_disjoint=True) >= 3.0 - 0.05


def test_a_bound_that_leaves_no_room_is_refuted_by_one_row_and_by_none_before():
    perfect = WeightedSample(np.array([0.0, 1.0]), np.ones(2), np.array([10_000.0, 0.0]), (0.0, 1.0))
    assert log_wealth(perfect, np.array([0.0]))[0] == 0.0
    assert log_wealth(perfect._replace(counts=np.array([10_000.0, 1.0])), np.array([0.0]))[0] > 100
    assert log_wealth(perfect, np.array([-0.1]))[0] > 100


@slow
def test_streams_at_the_bound_are_rarely_ever_refuted():
    rng = np.random.default_rng(2)
    hits = (rng.random((400, 3000)) < 0.3).cumsum(axis=1)
    seen = np.arange(1, 3001)
    ever = 0
    for row in hits[:, ::1]:
        counts = np.column_stack([seen - row, row]).astype(float)
        sample = WeightedSample(np.array([0.0, 1.0]), np.ones(2), counts, (0.0, 1.0))
        ever += bool((log_wealth(sample, np.array([0.3])) >= np.log(20)).any())
    assert ever / 400 <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 400)
