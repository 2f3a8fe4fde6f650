"""Rates are data: they agree with plain counting, combine as numbers do, and say what is wrong with their rows."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import random_decisions, rates_by_counting

from counterpoise import goals, rates
from counterpoise.goals import (
    Dataset,
    Table,
    UnknownName,
    accuracy,
    churn,
    error_rate,
    positive_rate,
    precision,
    recall,
)
from counterpoise.rates import METRICS, RATIOS

TRAIN = Dataset("train")
SEEDS = st.integers(0, 10_000)
GROUPS = ("all", "F", "M")


def table_of(labels, baseline, sex, weight):
    return Table(None, labels, {"sex": sex}, baseline, sample_weight=weight)


@pytest.mark.parametrize("name", [*METRICS, *RATIOS])
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
    assert rates.losses().value(predicted, table) == pytest.approx(count(1, 1, 0) + count(0, 0, 1))
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
    assert rates.wins(TRAIN) + rates.losses(TRAIN) == churn(TRAIN)
    assert rates.wins(TRAIN) - rates.losses(TRAIN) == rates.wins_minus_losses(TRAIN)
    assert churn(TRAIN.negatives) == rates.wins(TRAIN.negatives) + rates.losses(TRAIN.negatives)
    assert hash(error_rate(TRAIN)) == hash(1 - accuracy(TRAIN))
    assert precision(TRAIN) == rates.true_positives(TRAIN) / positive_rate(TRAIN)


def test_rates_that_count_other_things_differ():
    assert recall(TRAIN) != rates.true_positives(TRAIN)
    assert recall(TRAIN) != recall(Dataset("mail"))
    assert recall(TRAIN) != recall(TRAIN.where(sex="F"))
    assert recall(TRAIN) != 2 * recall(TRAIN)
    assert recall(TRAIN) != recall(TRAIN) + 0.1
    assert recall(TRAIN) != "recall(train)"
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


def test_ramp_rates_and_indicator_rates_have_two_names():
    table = Table(None, y=[0, 1, 1])
    assert recall().ramp_value([5.0, 0.25, -0.25], table) == 0.5
    assert recall().value([1, 1, 0], table) == 0.5
    assert recall().ramp_value([0.0, 9.0, 9.0], table) == 1.0
    proba = np.array([[0.4, 0.6], [0.1, 0.9], [0.7, 0.3]])
    assert recall().expected_value(proba, table) == pytest.approx(0.6)
    assert recall().expected_value(proba, table, pos_label=0) == pytest.approx(0.4)


def test_numbers_of_numpy_may_stand_in_rates():
    assert np.float64(0.5) * recall() == recall() * 0.5
    assert np.float32(0.5) + recall() == recall() + 0.5
    assert np.int64(1) - recall() == rates.false_negative_rate()
    assert str(np.float64(0.5) <= recall()) == "recall(train) >= 0.5"


def test_labels_may_be_words_and_the_positive_class_may_be_named():
    table = Table(None, y=["no", "no", "yes"])
    assert recall().value(["no", "yes", "yes"], table) == 1.0
    assert recall().value(["no", "yes", "yes"], table, pos_label="no") == 0.5
    assert positive_rate().value(np.array([True, False, False]), Table(None, y=[0, 1, 1])) == pytest.approx(1 / 3)
    assert positive_rate().value([1, 1, -1], Table(np.zeros((3, 1)))) == pytest.approx(2 / 3)
    assert positive_rate().value([1, 1, 1], Table(np.zeros((3, 1)))) == 1.0
    assert positive_rate().value([0, 0, 0], Table(np.zeros((3, 1)))) == 0.0
    assert positive_rate().value(["a", "a"], Table(np.zeros((2, 1))), pos_label="a") == 1.0


FRAME = {
    "sex": ["F", "M", "F", None],
    "age": [30, 40, 30, 50],
    "score": [0.5, 1.0, np.nan, 2.0],
    "old": [False, True, False, True],
}


def frame_of(library):
    if library == "dict":
        return FRAME
    module = pytest.importorskip(library)
    return module.table(FRAME) if library == "pyarrow" else module.DataFrame(FRAME)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "dict"])
def test_where_finds_columns_in_any_data_frame(library):
    frame = frame_of(library)
    predicted = [1, 1, 0, 0]
    as_features = Table(None, sensitive_features=frame)
    as_table = as_features if isinstance(frame, dict) else Table(frame)
    for table in (as_features, as_table):
        assert positive_rate(sex="F").value(predicted, table) == 0.5
        assert positive_rate(age=30).value(predicted, table) == 0.5
        assert positive_rate(age="30").value(predicted, table) == 0.5
        assert positive_rate(age=30.0, sex="F").value(predicted, table) == 0.5
        assert positive_rate(score="1.00").value(predicted, table) == 1.0
        assert positive_rate(old=1).value(predicted, table) == 0.5


def test_sensitive_features_come_before_the_columns_of_the_frame():
    table = Table(pd.DataFrame({"sex": ["F", "F"]}), sensitive_features={"sex": ["M", "F"]})
    assert positive_rate(sex="F").value([1, 0], table) == 0.0


def test_a_bare_array_is_the_column_group():
    codes = np.array([3, 3, 7])
    assert positive_rate(group=7).value([0, 1, 1], Table(None, sensitive_features=codes)) == 1.0
    named = pd.Series(["a", "b", "a"], name="team")
    for column in ("group", "team"):
        assert positive_rate(**{column: "a"}).value([0, 1, 1], Table(None, sensitive_features=named)) == 0.5
    pair = Table(None, sensitive_features=np.array([["a", "x"], ["a", "y"]]))
    assert positive_rate(group0="a", group1="y").value([0, 1], pair) == 1.0


def test_values_are_compared_as_text_and_as_numbers_where_the_column_holds_numbers():
    assert positive_rate(zip="01234").value([1, 0], Table(None, sensitive_features={"zip": ["01234", "1234"]})) == 1.0
    mixed = Table(None, sensitive_features={"code": np.array([1, "1", 2.0], dtype=object)})
    assert positive_rate(code=1).value([1, 0, 0], mixed) == 0.5
    assert positive_rate(code=2).value([1, 0, 0], mixed) == 0.0
    large = Table(None, sensitive_features={"id": np.array([2**60, 2**60 + 1])})
    assert positive_rate(id=2**60 + 1).value([0, 1], large) == 1.0
    truth = Table(None, sensitive_features={"member": np.array([True, False])})
    assert positive_rate(member=True).value([1, 0], truth) == positive_rate(member="1").value([1, 0], truth) == 1.0


PEOPLE = {"sex": np.array(["F", "F", "M"]), "income": np.array([1, 2, 3])}
TABLE = Table(None, y=[0, 1, 0], sensitive_features=PEOPLE)
UNLABELLED = Table(np.zeros((3, 1)))

BAD = {
    "unknown dataset": (
        lambda: recall("trian").value([0, 1, 1], TABLE),
        r"Unknown dataset 'trian'\. Did you mean 'train'\? Known: 'train'.*asked by recall\(trian\)",
    ),
    "unknown column": (
        lambda: recall(sec="F").value([0, 1, 1], TABLE),
        r"Unknown column 'sec' in dataset 'train'\. Did you mean 'sex'\? Known: 'sex', 'income'",
    ),
    "column of a bare array": (
        lambda: recall(sex="F").value([0, 1, 1], Table(None, [0, 1, 0], PEOPLE["sex"])),
        r"Unknown column 'sex'.*a bare array of sensitive_features is the column 'group'.*Known: 'group'",
    ),
    "no columns": (
        lambda: recall(sex="F").value([0, 1, 1], Table(None, [0, 1, 0])),
        "pass sensitive_features, or X as",
    ),
    "unknown value": (
        lambda: recall(sex="f").value([0, 1, 1], TABLE),
        r"Unknown value 'f' of column 'sex' in dataset 'train'\. Did you mean 'F'\? Known: 'F', 'M'",
    ),
    "unknown number": (lambda: recall(income=4).value([0, 1, 1], TABLE), r"Unknown value '4'.*Known: '1', '2', '3'"),
    "word for a number": (lambda: recall(income="low").value([0, 1, 1], TABLE), "Unknown value 'low'"),
    "empty part": (
        lambda: recall(sex="M").value([0, 1, 1], TABLE),
        r"no row of positive weight.*dataset 'train' restricted to sex=M and labelled positive is empty.*recall\(train",
    ),
    "no weight": (
        lambda: recall().value([0, 1], Table(None, [0, 1], sample_weight=[1, 0])),
        "no row of positive weight.*labelled positive is empty",
    ),
    "no labels": (lambda: recall().value([0, 1, 1], UNLABELLED), "Dataset 'train' needs labels: pass y"),
    "no baseline": (
        lambda: churn().value([0, 1, 1], TABLE),
        "'train' needs the deployed model's predictions: pass baseline in a Table, of another name.*data.baseline",
    ),
    "NaN label": (lambda: Table(None, y=[0.0, np.nan]), "y must hold a label for each row; 1 of 2 are missing"),
    "None label": (lambda: Table(None, y=np.array(["a", None], dtype=object)), "1 of 2 are missing"),
    "NA label": (lambda: Table(None, y=np.array(["a", pd.NA], dtype=object)), "1 of 2 are missing"),
    "NaN baseline": (lambda: Table(None, baseline=[np.nan, 1.0]), "baseline must hold a label for each row"),
    "three classes": (
        lambda: positive_rate().value([0, 1, 2], Table(None, y=[0, 1, 2])),
        "positive and a negative class; got 3 classes: 0, 1, 2. Make the labels binary",
    ),
    "one class": (lambda: positive_rate().value(["a"], Table(None, y=["a"])), "All labels are 'a'.*pos_label"),
    "foreign pos_label": (
        lambda: positive_rate().value([0, 1], Table(None, y=[0, 1]), pos_label=2),
        r"pos_label must be one of the classes \[0, 1\]; got 2",
    ),
    "short predictions": (
        lambda: recall().value([0, 1], TABLE),
        r"labels for dataset 'train' must have shape \(3,\); got shape \(2,\)",
    ),
    "matrix of labels": (
        lambda: recall().value(np.zeros((3, 2)), TABLE),
        r"must have shape \(3,\); got shape \(3, 2\)",
    ),
    "probability of 2": (lambda: recall().expected_value([0, 1, 2], TABLE), r"must lie in \[0, 1\]; got 2"),
    "matrix of probabilities": (lambda: recall().expected_value(np.zeros((3, 3)), TABLE), r"\(3,\) or \(3, 2\); got"),
    "NaN probability": (lambda: recall().expected_value([0, 1, np.nan], TABLE), "must be finite everywhere; found NaN"),
    "short column": (
        lambda: Table(None, [0, 1], {"a": [1]}),
        r"one row for each of the 2 samples; column 'a' has shape",
    ),
    "short y": (lambda: Table(np.zeros((3, 1)), [0, 1]), r"y must have shape \(3,\).*got shape \(2,\)"),
    "no rows": (lambda: Table(np.zeros((0, 1))), "at least one row"),
    "nothing": (lambda: Table(None), "A Table needs rows"),
    "cube of features": (lambda: Table(None, [0], np.zeros((1, 1, 1))), "sensitive_features must have shape"),
    "two values": (lambda: TRAIN.where(sex="F").where(sex="M"), "leaves no row, because sex was 'F' already"),
    "missing value": (lambda: TRAIN.where(sex=np.nan), "A missing value selects no row"),
    "opposites": (lambda: TRAIN.positives.negatives, "it is the opposite"),
    "nothing to count": (lambda: rates.false_positive_rate(TRAIN.positives), "counts nothing"),
    "predictions by dataset": (
        lambda: recall().value([0, 1, 1], {"train": TABLE, "mail": TABLE}),
        "With 2 datasets, predictions must be a dict.*train, mail",
    ),
    "missing predictions": (
        lambda: (recall() - recall("mail")).value({"train": [0, 1, 1]}, {"train": TABLE, "mail": TABLE}),
        "predictions must cover dataset 'mail'; got 'train' only",
    ),
    "infinite number": (lambda: recall() * float("inf"), "must be finite; got inf"),
    "a very long number": (lambda: recall() >= 10**400, "must be finite; got inf"),
    "two columns of one name": (
        lambda: positive_rate(a=1).value([0, 1], Table(pd.DataFrame([[1, 2], [1, 2]], columns=["a", "a"]))),
        "X must have one column 'a' to select rows by; got 2 of that name",
    ),
    "a number too large for the column": (
        lambda: positive_rate(a=70000).value([0], Table(None, sensitive_features={"a": np.ones(1, np.float16)})),
        "Unknown value '70000'",
    ),
    "a missing time": (
        lambda: positive_rate(a="NaT").value([0], Table(None, sensitive_features={"a": np.array(["NaT"], "M8[s]")})),
        "Unknown value 'NaT'",
    ),
    "overflow": (lambda: 1e308 * recall() * 10, "must be finite; got inf"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_and_numbers_get_one_clear_sentence(case):
    call, text = BAD[case]
    with pytest.raises(ValueError, match=text):
        call()


WRONG_TYPE = {
    "product": (lambda: recall() * accuracy(), r"product of two rates is not linear.*\(recall\(train\)\) \* "),
    "ratio and rate": (lambda: precision() + recall(), r"ratio can be combined with numbers only: precision\(train\)"),
    "rate and ratio": (lambda: recall() - precision(), "ratio can be combined with numbers only"),
    "ratio times rate": (lambda: precision() * recall(), "ratio can be combined with numbers only"),
    "ratio over rate": (lambda: precision() / recall(), "ratio can be combined with numbers only"),
    "rate over ratio": (lambda: recall() / precision(), "ratio can be combined with numbers only"),
    "ratio against rate": (lambda: precision() >= recall(), "ratio can be bounded by a number only"),
    "rate against ratio": (lambda: recall() <= precision(), "ratio can be bounded by a number only"),
    "less than": (lambda: recall() < 0.5, r"written with <= or >=; got recall\(train\) < 0.5"),
    "more than": (lambda: recall() > 0.5, r"written with <= or >=; got recall\(train\) > 0.5"),
    "a flag": (lambda: recall() + True, "unsupported operand"),
    "a word": (lambda: recall() <= "high", r"compares a rate with a number .*; got recall\(train\) <= 'high'"),
    "a word times": (lambda: {} * recall(), "unsupported operand"),
    "data": (lambda: recall([[1.0]]), "A rate speaks of a Dataset or of its name.*bound later"),
    "a number as a name": (lambda: Dataset(3), "name of a dataset must be a non-empty string; got 3"),
    "a list of values": (lambda: TRAIN.where(sex=["F", "M"]), "where.* takes one value.*use by"),
    "one value": (lambda: TRAIN.by(sex="F"), "by.* takes a list of values; got 'F'. For one value use where"),
    "no table": (lambda: recall().value([0], np.zeros(1)), "data must be a Table, or a dict"),
    "frame for table": (
        lambda: recall().value([0], {"train": [1]}),
        "'train' must be bound to a counterpoise.goals.Table",
    ),
    "lists in a column": (
        lambda: positive_rate(a="x").value(
            [1], Table(None, sensitive_features={"a": np.array([None, [1]], object)[1:]})
        ),
        "Column 'a' must hold numbers or words",
    ),
    "mixed labels": (
        lambda: recall().value([0, 1], Table(None, y=np.array([0, "a"], object))),
        "Labels must be of one kind, those of the data and those predicted; got int and str",
    ),
}


@pytest.mark.parametrize("case", WRONG_TYPE)
def test_what_is_no_rate_is_refused_with_a_sentence(case):
    call, text = WRONG_TYPE[case]
    with pytest.raises(TypeError, match=text):
        call()


def test_dividing_by_zero_is_refused():
    with pytest.raises(ZeroDivisionError, match=r"\(recall\(train\)\) / 0"):
        _ = recall() / 0
    with pytest.raises(ZeroDivisionError, match=r"\(true_positives\(train\)\) / 0"):
        _ = precision() / 0


def test_rows_of_next_to_no_weight_have_rates_too():
    table = Table(None, sensitive_features={"a": [1, 1, 2]}, sample_weight=[1e-20, 1e-20, 1e300])
    assert positive_rate(a=1).value([1, 0, 0], table) == 0.5


def test_a_label_outside_the_classes_is_named():
    bound = {"train": Table(None, y=[0, 1]), "mail": Table(None, y=[0, 2])}
    with pytest.raises(
        ValueError, match=r"y of dataset 'mail' holds the label .*2.*not among the classes \[0, 1\].*asked by"
    ):
        goals.bind("recall(mail) >= 0.5", bound, classes=[0, 1])


def test_unknown_names_are_value_errors():
    assert issubclass(UnknownName, ValueError)


def test_known_words_are_listed_up_to_a_point():
    table = Table(None, sensitive_features={"country": [f"c{number:03}" for number in range(50)]})
    with pytest.raises(UnknownName, match=r"Known: 'c000'.*'c009' and 40 more"):
        positive_rate(country="d").value([1] * 50, table)


def test_the_language_needs_no_heavy_library():
    heavy = ("sklearn", "torch", "pandas", "matplotlib")
    code = f"import sys, counterpoise.goals; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
