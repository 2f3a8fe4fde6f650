"""Rates are data: they agree with plain counting, and combine as numbers do."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import random_decisions, rates_by_counting

from counterpoise import goals, rates
from counterpoise.goals import Dataset, Table, accuracy, churn, error_rate, positive_rate, precision, recall
from counterpoise.goals.rates import METRICS, RATIOS

TRAIN = Dataset("train")
SEEDS = st.integers(0, 10_000)
GROUPS = ("all", "F", "M")


def table_of(labels, baseline, sex, weight):
    return Table(None, labels, {"sex": sex}, baseline, sample_weight=weight)


@pytest.mark.parametrize("name", [*METRICS, *RATIOS])
@settings(max_examples=15)
@given(SEEDS, st.booleans(), st.sampled_from(GROUPS))
def test_every_metric_agrees_with_counting(name, seed, weighted, group):
    predicted, labels, baseline, sex, weight = random_decisions(seed, weighted=weighted)
    kept = np.ones(len(sex), dtype=bool) if group == "all" else sex == group
    expected = rates_by_counting(predicted[kept], labels[kept], baseline[kept], weight[kept])[name]
    rows = TRAIN if group == "all" else TRAIN.where(sex=group)
    found = getattr(goals, name)(rows).value(predicted, table_of(labels, baseline, sex, weight))
    assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)


@given(SEEDS, st.booleans())
def test_the_corrected_identities_of_changes_and_losses_hold(seed, weighted):
    """#Changes and #Losses as sums over the four cells of label and baseline."""
    predicted, labels, baseline, sex, weight = random_decisions(seed, weighted=weighted)
    table = table_of(labels, baseline, sex, weight)

    def count(label, before, now):
        return weight[(labels == label) & (baseline == before) & (predicted == now)].sum() / weight.sum()

    changes = count(1, 1, 0) + count(1, 0, 1) + count(0, 1, 0) + count(0, 0, 1)
    assert rates.churn().value(predicted, table) == pytest.approx(changes)
    assert rates.loss_rate().value(predicted, table) == pytest.approx(count(1, 1, 0) + count(0, 0, 1))
    gain = accuracy().value(predicted, table) - accuracy().value(baseline, table)
    assert rates.wins_minus_losses().value(predicted, table) == pytest.approx(gain)


def test_a_ratio_to_nothing_has_no_value():
    predicted, labels, baseline, sex, weight = random_decisions(1, weighted=True)
    table = table_of(labels, baseline, sex, weight)
    assert np.isnan(rates.win_change_ratio().value(baseline, table))
    assert np.isnan(precision().value(np.zeros_like(predicted), table))
    assert rates.win_loss_ratio().value(labels, table) == np.inf


def test_rates_that_count_the_same_are_equal_however_written():
    assert rates.negative_rate(TRAIN) == 1 - positive_rate(TRAIN)
    assert rates.coverage(TRAIN) == positive_rate(TRAIN)
    assert error_rate(TRAIN) == 1 - accuracy(TRAIN)
    assert error_rate(TRAIN) == rates.false_positives(TRAIN) + rates.false_negatives(TRAIN)
    assert recall(TRAIN) == positive_rate(TRAIN.positives) == 1 - rates.false_negative_rate(TRAIN)
    assert rates.false_positive_rate(TRAIN) == positive_rate(TRAIN.negatives) == 1 - rates.true_negative_rate(TRAIN)
    assert rates.win_rate(TRAIN) + rates.loss_rate(TRAIN) == churn(TRAIN)
    assert rates.win_rate(TRAIN) - rates.loss_rate(TRAIN) == rates.wins_minus_losses(TRAIN)
    assert churn(TRAIN.negatives) == rates.win_rate(TRAIN.negatives) + rates.loss_rate(TRAIN.negatives)
    assert hash(error_rate(TRAIN)) == hash(1 - accuracy(TRAIN))
    assert precision(TRAIN) == rates.true_positives(TRAIN) / positive_rate(TRAIN)


def test_rates_that_count_other_things_differ():
    assert recall(TRAIN) != rates.true_positives(TRAIN)
    assert recall(TRAIN) != recall(Dataset("mail"))
    assert recall(TRAIN) != recall(TRAIN.where(sex="F"))
    assert recall(TRAIN) != 2 * recall(TRAIN)
    assert recall(TRAIN) != recall(TRAIN) + 0.1
    assert recall(TRAIN) != "recall"
    assert precision(TRAIN) != recall(TRAIN)


RATES = st.sampled_from(list(METRICS))
NUMBERS = st.floats(-10, 10).filter(lambda number: abs(number) > 1e-3)


@given(st.lists(st.tuples(NUMBERS, RATES, st.sampled_from(GROUPS)), min_size=1, max_size=5), NUMBERS, SEEDS)
def test_arithmetic_on_rates_is_arithmetic_on_their_values(parts, constant, seed):
    predicted, labels, baseline, sex, weight = random_decisions(seed, weighted=True)
    table = table_of(labels, baseline, sex, weight)
    made = [(factor, getattr(rates, name)(TRAIN if g == "all" else TRAIN.where(sex=g))) for factor, name, g in parts]
    forward = constant + sum(factor * rate for factor, rate in made)
    backward = sum(-(rate * -factor) for factor, rate in reversed(made)) - -constant
    expected = constant + sum(factor * rate.value(predicted, table) for factor, rate in made)
    assert forward.value(predicted, table) == pytest.approx(expected, abs=1e-9)
    assert backward.value(predicted, table) == pytest.approx(expected, abs=1e-9)
    assert (forward / 2).value(predicted, table) == pytest.approx(expected / 2, abs=1e-9)
    assert pickle.loads(pickle.dumps(forward)) == forward == copy.deepcopy(forward)  # noqa: S301 - our own bytes


@given(SEEDS, RATES, st.floats(0, 1))
def test_rates_are_linear_in_the_predictions(seed, name, share):
    """The rate of a randomized classifier is the mixture of the rates of what it draws from."""
    first, labels, baseline, sex, weight = random_decisions(seed, weighted=True)
    second = np.random.default_rng(seed + 1).integers(0, 2, size=len(first))
    table, rate = table_of(labels, baseline, sex, weight), getattr(rates, name)(TRAIN)
    mixed = rate.expected_value(share * first + (1 - share) * second, table)
    assert mixed == pytest.approx(share * rate.value(first, table) + (1 - share) * rate.value(second, table), abs=1e-9)


def test_labels_may_be_words_and_the_positive_class_may_be_named():
    table = Table(None, y=["no", "no", "yes"])
    assert recall().value(["no", "yes", "yes"], table) == 1.0
    assert recall().value(["no", "yes", "yes"], table, pos_label="no") == 0.5
    assert positive_rate().value(np.array([True, False, False]), Table(None, y=[0, 1, 1])) == pytest.approx(1 / 3)
    assert positive_rate().value([1, 1, -1], Table(np.zeros((3, 1))), classes=[-1, 1]) == pytest.approx(2 / 3)
    assert positive_rate().value([1, 1, 1], Table(None, [1, 1, 1])) == 1.0
    assert positive_rate().value([0, 0, 0], Table(None, [0, 0, 0])) == 0.0
    assert positive_rate().value(["a", "a"], Table(np.zeros((2, 1))), pos_label="a") == 1.0


def test_sensitive_features_come_before_the_columns_of_the_frame():
    table = Table(pd.DataFrame({"sex": ["F", "F"]}), [0, 1], {"sex": ["M", "F"]})
    assert positive_rate(sex="F").value([1, 0], table) == 0.0


def test_a_bare_array_is_the_column_group():
    codes = np.array([3, 3, 7])
    assert positive_rate(group=7).value([0, 1, 1], Table(None, [0, 1, 1], codes)) == 1.0
    named = pd.Series(["a", "b", "a"], name="team")
    for column in ("group", "team"):
        assert positive_rate(**{column: "a"}).value([0, 1, 1], Table(None, [0, 1, 1], named)) == 0.5
    pair = Table(None, [0, 1], np.array([["a", "x"], ["a", "y"]]))
    assert positive_rate(group0="a", group1="y").value([0, 1], pair) == 1.0


def test_values_are_compared_as_text_and_as_numbers_where_the_column_holds_numbers():
    assert positive_rate(zip="01234").value([1, 0], Table(None, [1, 0], {"zip": ["01234", "1234"]})) == 1.0
    mixed = Table(None, [1, 0, 0], {"code": np.array([1, "1", 2.0], dtype=object)})
    assert positive_rate(code=1).value([1, 0, 0], mixed) == 0.5
    assert positive_rate(code=2).value([1, 0, 0], mixed) == 0.0
    large = Table(None, [0, 1], {"id": np.array([2**60, 2**60 + 1])})
    assert positive_rate(id=2**60 + 1).value([0, 1], large) == 1.0
    truth = Table(None, [0, 1], {"member": np.array([True, False])})
    assert positive_rate(member=True).value([1, 0], truth) == positive_rate(member="1").value([1, 0], truth) == 1.0
