"""What is wrong with rates, their rows and their tables gets one clear sentence."""

import numpy as np
import pandas as pd
import pytest

from counterpoise import audit, goals, rates
from counterpoise.goals import Dataset, Table, UnknownName, accuracy, churn, positive_rate, precision, recall
from counterpoise.persist import loads

TRAIN = Dataset("train")
PEOPLE = {"sex": np.array(["F", "F", "M"]), "income": np.array([1, 2, 3])}
TABLE = Table(None, y=[0, 1, 0], sensitive_features=PEOPLE)
UNLABELLED = Table(np.zeros((3, 1)))

BAD = {
    "unknown dataset": (
        lambda: recall("trian").value([0, 1, 1], TABLE),
        r"Unknown dataset 'trian'\. Did you mean 'train'\? Known: 'train'.*Needed by recall\(trian\)",
    ),
    "unknown column": (
        lambda: recall(sec="F").value([0, 1, 1], TABLE),
        r"Unknown column 'sec' in dataset 'train'\. Did you mean 'sex'\? Known: 'sex', 'income'",
    ),
    "column of a bare array": (
        lambda: recall(sex="F").value([0, 1, 1], Table(None, [0, 1, 0], PEOPLE["sex"])),
        r"Unknown column 'sex'.*a bare array of sensitive_features is the column 'group'.*Known: 'group'",
    ),
    "a column that is no feature": (
        lambda: recall(sec="F").value([0, 1, 1], Table(pd.DataFrame({"age": [1, 2, 3]}), [0, 1, 0])),
        r"Unknown column 'sec' in dataset 'train' \(pass it as sensitive_features\)\. Known: 'age'",
    ),
    "no columns": (
        lambda: recall(sex="F").value([0, 1, 1], Table(None, [0, 1, 0])),
        "pass sensitive_features, or X as",
    ),
    "no columns to compare": (
        lambda: goals.max_difference("recall", by="sex").value([0, 1, 1], Table(None, [0, 1, 0])),
        r"Unknown column 'sex' in dataset 'train' \(pass sensitive_features, or X as a data frame\)",
    ),
    "unknown value": (
        lambda: recall(sex="f").value([0, 1, 1], TABLE),
        r"Unknown value 'f' of column 'sex' in dataset 'train'\. Did you mean 'F'\? Known: 'F', 'M'",
    ),
    "unknown number": (lambda: recall(income=4).value([0, 1, 1], TABLE), r"Unknown value '4'.*Known: '1', '2', '3'"),
    "word for a number": (lambda: recall(income="low").value([0, 1, 1], TABLE), "Unknown value 'low'"),
    "empty part": (
        lambda: recall(sex="M").value([0, 1, 1], TABLE),
        r"no row of positive weight.*dataset 'train' restricted to sex=M and labelled positive is empty.*recall\(sex=M",
    ),
    "no weight": (
        lambda: recall().value([0, 1], Table(None, [0, 1], sample_weight=[1, 0])),
        "no row of positive weight.*labelled positive is empty",
    ),
    "no labels": (
        lambda: recall().value([0, 1, 1], UNLABELLED, classes=[0, 1]),
        "Dataset 'train' needs labels: pass y",
    ),
    "no labels in a dataset": (
        lambda: recall("mail").value({"mail": [0, 1, 1]}, {"mail": UNLABELLED}, classes=[0, 1]),
        "'mail' needs labels: pass y in its Table, or set labelled = true .* goals file; .* no labels",
    ),
    "no baseline": (
        lambda: churn().value([0, 1, 1], TABLE),
        "'train' needs the deployed model's predictions: pass baseline, to fit or in a Table, or name data.baseline",
    ),
    "NaN label": (lambda: Table(None, y=[0.0, np.nan]), "y must hold a label for each row; 1 of 2 are missing"),
    "None label": (lambda: Table(None, y=np.array(["a", None], dtype=object)), "1 of 2 are missing"),
    "NA label": (lambda: Table(None, y=np.array(["a", pd.NA], dtype=object)), "1 of 2 are missing"),
    "NaN baseline": (lambda: Table(None, baseline=[np.nan, 1.0]), "baseline must hold a label for each row"),
    "three classes": (
        lambda: positive_rate().value([0, 1, 2], Table(None, y=[0, 1, 2])),
        r"needs a positive class; got 3 classes: 0, 1, 2. Name .* as in recall\(of=0\), or with pos_label",
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
    "NaN probability": (lambda: recall().expected_value([0, 1, np.nan], TABLE), "must be finite everywhere; got NaN"),
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
        lambda: positive_rate(a=1).value(
            [0, 1], Table(pd.DataFrame([[1, 2], [1, 2]], columns=["a", "a"])), classes=[0, 1]
        ),
        "X must have one column 'a' to select rows by; got 2 of that name",
    ),
    "a number too large for the column": (
        lambda: positive_rate(a=70000).value([0], Table(None, [0], {"a": np.ones(1, np.float16)})),
        "Unknown value '70000'",
    ),
    "a missing time": (
        lambda: positive_rate(a="NaT").value([0], Table(None, [0], {"a": np.array(["NaT"], "M8[s]")})),
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
    "product": (lambda: recall() * accuracy(), r"product of two rates is not linear.*\(recall\) \* "),
    "ratio and rate": (lambda: precision() + recall(), r"ratio can be combined with numbers only: precision"),
    "rate and ratio": (lambda: recall() - precision(), "ratio can be combined with numbers only"),
    "ratio times rate": (lambda: precision() * recall(), "ratio can be combined with numbers only"),
    "ratio over rate": (lambda: precision() / recall(), "ratio can be combined with numbers only"),
    "rate over ratio": (lambda: recall() / precision(), "ratio can be combined with numbers only"),
    "ratio against rate": (lambda: precision() >= recall(), "ratio can be bounded by a number only"),
    "rate against ratio": (lambda: recall() <= precision(), "ratio can be bounded by a number only"),
    "less than": (lambda: recall() < 0.5, r"written with <= or >=; got recall < 0.5"),
    "more than": (lambda: recall() > 0.5, r"written with <= or >=; got recall > 0.5"),
    "a flag": (lambda: recall() + True, "unsupported operand"),
    "a word": (lambda: recall() <= "high", r"compares a rate with a number .*; got recall <= 'high'"),
    "a word times": (lambda: {} * recall(), "unsupported operand"),
    "data": (lambda: recall([[1.0]]), "A rate takes a Dataset or its name.*bound later"),
    "a number as a name": (lambda: Dataset(3), "name of a dataset must be a non-empty string; got 3"),
    "a list of values": (lambda: TRAIN.where(sex=["F", "M"]), "where.* takes one value.*use by"),
    "one value": (lambda: TRAIN.by(sex="F"), "by.* takes a list of values; got 'F'. For one value use where"),
    "no table": (lambda: recall().value([0], np.zeros(1)), "data must be a Table, or a dict"),
    "frame for table": (
        lambda: recall().value([0], {"train": [1]}),
        "'train' must be bound to a counterpoise.goals.Table",
    ),
    "dict of features": (
        lambda: Table({"age": [1, 2], "sex": ["F", "M"]}, [0, 1]),
        "X of a Table must be an array, a sparse matrix or a data frame; got a dict of columns. Make it a data frame",
    ),
    "lists in a column": (
        lambda: positive_rate(a="x").value([1], Table(None, [1], {"a": np.array([None, [1]], object)[1:]})),
        "Column 'a' must hold numbers or words",
    ),
    "mixed labels": (
        lambda: recall().value([0, 1], Table(None, y=np.array([0, "a"], object))),
        "Labels of the data and predictions must be of one kind; got int and str",
    ),
}


@pytest.mark.parametrize("case", WRONG_TYPE)
def test_what_is_no_rate_is_refused_with_a_sentence(case):
    call, text = WRONG_TYPE[case]
    with pytest.raises(TypeError, match=text):
        call()


def test_dividing_by_zero_is_refused():
    with pytest.raises(ZeroDivisionError, match=r"\(recall\) / 0"):
        _ = recall() / 0
    with pytest.raises(ZeroDivisionError, match=r"\(true_positives\) / 0"):
        _ = precision() / 0


def test_a_label_outside_the_classes_is_named():
    bound = {"train": Table(None, y=[0, 1]), "mail": Table(None, y=[0, 2])}
    with pytest.raises(
        ValueError, match=r"y of dataset 'mail' holds the label .*2.*not among the classes \[0, 1\].*Needed by"
    ):
        goals.bind("recall(mail) >= 0.5", bound, classes=[0, 1])


def test_unknown_names_are_value_errors():
    assert issubclass(UnknownName, ValueError)


def test_known_words_are_listed_up_to_a_point():
    table = Table(None, [1] * 50, {"country": [f"c{number:03}" for number in range(50)]})
    with pytest.raises(UnknownName, match=r"Known: 'c000'.*'c009' and 40 more"):
        positive_rate(country="d").value([1] * 50, table)


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: goals.demographic_parity_difference("train", by=None), "by must be the name of a column"),
        (lambda: goals.equalized_odds_ratio("train", by=[1]), "by must be the name of a column, or a list of names"),
        (lambda: Table(0), "A Table needs an entry for each row; got 0"),
        (lambda: Table(None, 3), "A Table needs an entry for each row; got 3"),
        (lambda: audit("recall >= 0.5", [0, 1], {}), "got an empty dict"),
        (lambda: loads("model.cp"), "data must be the bytes that dumps returned; got str"),
    ],
)
def test_what_is_no_column_no_rows_or_no_bytes_is_said(use, words):
    with pytest.raises((TypeError, ValueError), match=words):
        use()
