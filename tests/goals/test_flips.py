"""Flips between rows and their twins: the language, values, audits, and wrong uses."""

import copy

import numpy as np
import pytest

from counterpoise import audit
from counterpoise.goals import (
    Dataset,
    Table,
    UnknownName,
    bind,
    every_group,
    flip_rate,
    max_difference,
    parse_goal,
    register_metric,
    validate_goals,
)

WRITTEN = {
    "flip_rate(twin=swapped) <= 0.05": flip_rate(twin="swapped") <= 0.05,
    "flip_rate(mail, sex=F, twin='my twins') <= 0.05": flip_rate("mail", sex="F", twin=Dataset("my twins")) <= 0.05,
    "flip_rate(18<=age<25, value=amount, twin=swapped) <= 0.1": (
        flip_rate("18<=age<25", value="amount", twin="swapped") <= 0.1
    ),
    "every_group(flip_rate, twin=swapped, by=sex) <= 0.1": every_group(flip_rate, by="sex", twin="swapped") <= 0.1,
    "max_difference(flip_rate, twin=swapped, by=sex, within=job) <= 0.1": (
        max_difference("flip_rate", by="sex", within="job", twin="swapped") <= 0.1
    ),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_text_and_python_are_one_goal_which_prints_and_names_both_datasets(text):
    goal = parse_goal(text)
    assert goal == WRITTEN[text]
    assert str(goal) == text
    assert copy.deepcopy(goal) == goal
    assert set(goal.datasets) >= {"my twins" if "my" in text else "swapped"}
    assert goal != parse_goal(text.replace("swapped", "other").replace("my twins", "other"))


WRONG = {
    "flip_rate <= 0.1": "flip_rate needs the dataset of the twins, the same rows changed, as in .*; got none",
    "flip_rate(twin=train) <= 0.1": "A row and its twin are in two datasets; got twin=train for the rows of the same",
    "flip_rate(twin=a, twin=b) <= 0.1": "in two datasets; got twin=b beside twin=a",
    "flip_rate(of=cat, twin=a) <= 0.1": "counts decisions that differ, of either class; got of=cat",
    "recall(twin=a) >= 0.1": "twin is a word of the language of goals, for the dataset with the same rows changed",
    "every_group(recall, by=sex, twin=a) >= 0.1": "twin is for flip_rate, which compares decisions; recall takes none",
    "flip_rate(twin=a) <= 5": "always holds",
    "flip_rat(twin=a) <= 0.5": "twin is a word|Did you mean 'flip_rate'",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_text_is_answered_in_a_sentence(text):
    with pytest.raises(ValueError, match=WRONG[text]):
        validate_goals(text)


def test_a_twin_is_a_whole_dataset_by_its_name():
    for twin in (3, "", Dataset("a").where(sex="F")):
        with pytest.raises(TypeError, match="twin must be the name of the dataset with the same rows changed, all of"):
            flip_rate(twin=twin)
    with pytest.raises(ValueError, match="must be a word that no metric has yet; got 'flip_rate'"):
        register_metric(flip_rate, name="flip_rate")


def test_twins_are_the_same_rows_in_the_same_order():
    goal, y = parse_goal("flip_rate(twin=other) <= 0.5"), np.array([0, 1, 1, 0])
    answers = {"train": y, "other": y}
    with pytest.raises(ValueError, match=r"with a column changed, in the same order; got 3 rows beside 4\."):
        goal.evaluate(answers | {"other": y[:3]}, {"train": Table(None, y), "other": Table(None, y[:3])})
    with pytest.raises(ValueError, match=r"the labels of row 1 are 1 and 0. Leave y out of the Table of the twins if"):
        goal.evaluate(answers, {"train": Table(None, y), "other": Table(None, y[[0, 3, 1, 2]])})
    with pytest.raises(UnknownName, match=r"Unknown dataset 'other'. Known: 'train'"):
        goal.evaluate(y, Table(None, y))
    with pytest.raises(ValueError, match="predictions must cover dataset 'other'"):
        goal.evaluate({"train": y}, {"train": Table(None, y), "other": Table(None, y)})


def test_chances_several_classes_and_training_are_refused():
    y, tables = [0, 1, 1, 0], {"train": Table(None, [0, 1, 1, 0]), "other": Table(None, [0, 1, 1, 0])}
    goal = parse_goal("flip_rate(twin=other) <= 0.5")
    chances = {"train": [0.5, 1.0, 0.2, 0.3], "other": [0.5, 1.0, 0.2, 0.3]}
    with pytest.raises(ValueError, match="do not say whether one draw decides a row and its twin: pass labels"):
        goal.evaluate_expected(chances, tables)
    assert goal.evaluate_expected({"train": y, "other": [0, 1, 1, 1]}, tables).value == 0.25  # sure of each
    three = {name: Table(None, [0, 1, 2, 0]) for name in tables}
    with pytest.raises(ValueError, match=r"flip_rate is for two classes, .* here are more"):
        goal.evaluate({"train": y, "other": y}, three)
    with pytest.raises(ValueError, match=r"compares two decisions, so it is not linear .* no model can be trained"):
        bind(goal, tables)
    with pytest.raises(ValueError, match=r"flip_rate is for two classes, .* here rows may be deferred"):
        goal.evaluate({"train": y, "other": y}, tables, defer_label="later")


@pytest.mark.parametrize("seed", range(12))
def test_values_are_shares_of_rows_that_differ(seed):
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(10, 200))
    y, one = rng.integers(0, 2, (2, n_rows))
    other = np.where(rng.random(n_rows) < 0.2, 1 - one, one)
    sex, weights = rng.choice(["NA", "None"], n_rows), rng.integers(1, 5, n_rows).astype(float)
    sex[:2] = ["NA", "None"]
    tables = {"train": Table(None, y, {"sex": sex}, sample_weight=weights), "other": Table(np.zeros((n_rows, 1)))}
    answers = {"train": one, "other": other}
    flips = one != other
    assert flip_rate(twin="other").value(answers, tables) == pytest.approx(np.average(flips, weights=weights))
    groups = [np.average(flips[sex == own], weights=weights[sex == own]) for own in ("NA", "None")]
    assert flip_rate(twin="other", sex="NA").value(answers, tables) == pytest.approx(groups[0])
    check = (max_difference("flip_rate", by="sex", twin="other") <= 1).evaluate(answers, tables)
    assert check.value == pytest.approx(np.ptp(groups))


def test_audits_count_each_row_once_with_exact_bounds():
    rng = np.random.default_rng(0)
    one = rng.integers(0, 2, 500)
    other = np.where(np.arange(500) < 20, 1 - one, one)
    tables = {"train": Table(None, rng.integers(0, 2, 500)), "other": Table(np.zeros((500, 1)))}
    (row,) = audit("flip_rate(twin=other) <= 0.08", {"train": one, "other": other}, tables)
    share = audit("error_rate <= 0.08", np.where(np.arange(500) < 20, 1, 0), np.zeros(500, int), classes=[0, 1])[0]
    assert (row.estimate, row.low, row.high, row.verdict) == (share.estimate, share.low, share.high, "holds")
    assert sum(count for _, count in row.counts) == 500
