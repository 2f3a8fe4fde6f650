"""Goals read like sentences, survive printing and pickling, and bind to signed weights on rows."""

import contextlib
import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import random_decisions

from counterpoise import goals
from counterpoise.goals import (
    Dataset,
    GoalSyntaxError,
    InfeasibleGoals,
    Table,
    UnknownName,
    as_objective,
    bind,
    bind_objective,
    churn,
    correct,
    error_rate,
    f1_score,
    parse_goal,
    parse_rate,
    positive_rate,
    precision,
    recall,
    win_loss_ratio,
)
from counterpoise.goals.rates import METRICS, RATIOS

TRAIN, MAIL = Dataset("train"), Dataset("mail")
NAMES = st.one_of(st.sampled_from(["train", "sex", "a b", "it's", "x=1", "9"]), st.text(min_size=1, max_size=4))
VALUES = st.one_of(st.text(max_size=4), st.integers(-(10**20), 10**20), st.floats(-1e300, 1e300), st.booleans())
NUMBERS = st.one_of(st.integers(-5, 5).map(float), st.floats(-1e12, 1e12))


@st.composite
def rates(draw, metrics=tuple(METRICS)):
    rows = Dataset(draw(NAMES)).where(**draw(st.dictionaries(NAMES, VALUES, max_size=2)))
    part = draw(st.sampled_from(["", "positives", "negatives", "baseline_positives", "baseline_negatives"]))
    metric = getattr(goals, draw(st.sampled_from(metrics)))
    try:
        return metric(getattr(rows, part) if part else rows)
    except ValueError:  # false positives among the positives, say
        return metric(rows)


@st.composite
def sums(draw):
    parts = draw(st.lists(st.tuples(NUMBERS, rates()), max_size=2))
    return draw(NUMBERS) + draw(rates()) + sum(factor * rate for factor, rate in parts)


RATIO_METRICS = rates(tuple(RATIOS)) | st.builds(lambda top, bottom: top / bottom, sums(), rates())


@st.composite
def any_goal(draw):
    left, right = draw(st.tuples(sums(), sums() | NUMBERS) | st.tuples(RATIO_METRICS, NUMBERS))
    try:
        return left <= right if draw(st.booleans()) else left >= right
    except ValueError:  # the terms cancelled
        return positive_rate(TRAIN) >= 0.5


@pytest.mark.slow
@given(any_goal())
def test_goals_survive_printing_parsing_pickling_and_copying(goal):
    pickled = pickle.loads(pickle.dumps(goal))  # noqa: S301 - our own bytes
    for again in (parse_goal(str(goal)), pickled, copy.copy(goal), copy.deepcopy(goal)):
        assert again == goal
        assert hash(again) == hash(goal)
        assert str(again) == str(goal)


def test_a_goal_reads_like_its_sentence():
    goal = positive_rate(TRAIN.where(sex="F")) >= 0.8 * positive_rate(TRAIN.where(sex="M"))
    assert str(goal) == "positive_rate(sex=F) >= 0.8 * positive_rate(sex=M)"
    assert repr(goal) == f"<Goal {goal}>"
    assert str(recall(TRAIN) >= 0.9) == "recall >= 0.9"
    assert str(precision(MAIL, country="New Zealand") >= 0.9) == "precision(mail, country='New Zealand') >= 0.9"
    assert str(1 - recall(TRAIN.baseline_positives) <= 0.1) == "1 - recall(train.baseline_positives) <= 0.1"
    assert str(correct(Dataset("hard cases").positives) >= 1) == "correct('hard cases'.positives) >= 1"


PARSED = {
    "0.9 <= recall(train)": recall(TRAIN) >= 0.9,
    "recall() >= .9": recall(TRAIN) >= 0.9,
    "recall(sex=F) >= 9e-1": recall(TRAIN.where(sex="F")) >= 0.9,
    "recall( train ,sex = 'F' )>=0.9": recall(TRAIN.where(sex="F")) >= 0.9,
    'recall(train, name="it\'s") >= 0.9': recall(TRAIN.where(name="it's")) >= 0.9,
    "recall(train, name='it''s') >= 0.9": recall(TRAIN.where(name="it's")) >= 0.9,
    "recall(train, t=-1.5) >= 0.9": recall(TRAIN.where(t=-1.5)) >= 0.9,
    "recall(train, self=1) >= 0.9": recall(TRAIN, self=1) >= 0.9,
    "-(recall(train) - 1) / 2 <= 0.05": (1 - recall(TRAIN)) / 2 <= 0.05,
    "2 * (recall(train) + churn(mail)) <= 1 + 0.5 * 2": 2 * recall(TRAIN) + 2 * churn(MAIL) <= 2,
    "recall(train) >= recall(mail) - 0.1": recall(TRAIN) >= recall(MAIL) - 0.1,
    "2 * precision(train) - 0.5 >= 1": 2 * precision(TRAIN) - 0.5 >= 1,
    "win_rate(train) / loss_rate(train) >= 2": win_loss_ratio(TRAIN) >= 2,
    "1 / f1_score(train) <= 2": 1 / f1_score(TRAIN) <= 2,
    "-precision(train) / 2 <= -0.4": -precision(TRAIN) / 2 <= -0.4,
    "1 - precision(train) <= 0.1": 1 - precision(TRAIN) <= 0.1,
}


@pytest.mark.parametrize("text", PARSED)
def test_text_means_what_the_same_python_means(text):
    assert parse_goal(text) == PARSED[text]


def test_a_goal_may_be_written_from_either_side():
    assert (0.8 * recall(MAIL) <= recall(TRAIN)) == (recall(TRAIN) >= 0.8 * recall(MAIL))
    assert (recall(TRAIN) >= 0.9) != (recall(TRAIN) <= 0.9)
    assert (recall(TRAIN) >= 0.9) != "recall >= 0.9"


BAD_TEXT = {
    "recall(train) > 0.9": r"character 15: a goal is written with <= or >=, got '>'",
    "recall(train) = 0.9": r"character 15: a goal is written with <=, >= or ==, got '='",
    "recall(train)": r"character 14: expected '<=' or '>=' or '==', found the end of the text",
    "recall(train >= 0.9": r"character 20: expected '\)', found the end of the text",
    "recall train >= 0.9": r"character 8: expected '\(', found 'train'",
    "recall(train, sex) >= 0.9": r"character 18: expected '=' or one of <= >= < >, found '\)'",
    "recall(train, sex=) >= 0.9": r"character 19: expected a value: a word, a number, or anything in quotes",
    "recall(train, sex=-F) >= 0.9": r"character 20: expected a value",
    "recall(train, 3=F) >= 0.9": r"character 16: expected '<=' or '>=' or '<' or '>', found '='",
    "recall(3) >= 0.9": r"character 9: expected '<=' or '>=' or '<' or '>', found '\)'",
    "recall(train, band=18_24) >= 0.9": r"character 22: expected '\)', found '_24'",
    "recall(train, sex='F) >= 0.9": r"character 19: found an unfinished quote",
    "0.1 <= recall(train) <= 0.9": r"character 22: a goal has one comparison; for two limits write two goals",
    "recall(train) >= 0.9 0.8": r"character 22: expected the end, or one of \+ - \* /, found '0.8'",
    ">= 0.9": r"character 1: expected a rate such as recall, a number or '\('",
    "recall(": r"character 8: expected the name of a dataset, found the end of the text",
    "recall(train, ''=1) >= 0.9": r"where needs a column and a value",
    "": r"character 1: expected a rate .*, found the end of the text",
    "0.5 <= 0.9": r"A goal needs a rate on at least one side",
    "recall(train) / 0 >= 0.9": r"character 15: this divides by zero",
    "1 / 0 >= recall(train)": r"character 3: this divides by zero",
    "(" * 60 + "recall(train)" + ")" * 60 + " >= 0.9": "nested too deeply",
    "recall(train) - recall(train) <= 1": "A goal needs a rate that does not cancel; got 0 <= 1",
    "recall(train) <= recall(train) + 0.1": r"does not cancel; got recall <= recall \+ 0.1, which",
    "1e999 <= recall(train)": "must be finite; got inf",
    "recall(train) \u2265 0.9": "character 15: a goal is written with <= or >=, got '\u2265'",
    "recall(train) >= 90%": "character 20: found '%'; write a share as a number, 0.9 for 90 %",
}


@pytest.mark.parametrize("text", BAD_TEXT)
def test_a_text_that_cannot_be_read_names_the_place(text):
    with pytest.raises(ValueError, match=BAD_TEXT[text]):
        parse_goal(text)


WORDS = ["recall", "train", "sex", "precision", "0.5", "1e400", "'F'", "''", "'", "(", ")", ",", "=", ".", "<=", ">="]


WORDS += ["of", "by", "abs", "cost", "max_difference", "{", "}", "->", ":", "<", ">", "a->b: 1", "age<=3", "macro"]


@given(st.lists(st.sampled_from([*WORDS, "-", "+", "*", "/", "positives", "0", " ", "#"]), max_size=12))
def test_any_text_is_a_goal_or_an_error_of_the_text(words):
    for text in ("".join(words), f"recall(train{' '.join(words)}) >= 0.5"):
        with contextlib.suppress(ValueError, TypeError):
            goal = parse_goal(text)
            assert parse_goal(str(goal)) == goal


@pytest.mark.parametrize("written", ["recall => 0.9", "recall\n\t=> 0.9"])
def test_a_syntax_error_shows_the_place(written):
    with pytest.raises(GoalSyntaxError) as caught:
        parse_goal(written)
    *_, text, caret = str(caught.value).split("\n")
    assert text[caret.index("^")] == ">"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("precison(train) >= 0.9", r"Unknown metric 'precison'\. Did you mean 'precision'\?.*At character 1 of"),
        ("0.9 <= Recall(train)", r"Did you mean 'recall'\?.*At character 8"),
        ("recall(train.positive) >= 0.9", r"Unknown restriction 'positive'.*Did you mean 'positives'\?"),
    ],
)
def test_a_wrong_word_gets_the_nearest_spelling(text, message):
    with pytest.raises(UnknownName, match=message):
        parse_goal(text)


@given(st.integers(0, 10_000), st.sampled_from([*METRICS, *RATIOS]), st.floats(0.05, 3), st.booleans())
def test_goals_hold_exactly_where_the_value_keeps_the_bound(seed, name, bound, is_upper):
    """Also for ratios: the multiplied-through form agrees with the ratio itself."""
    predicted, labels, baseline, sex, weight = random_decisions(seed, weighted=True)
    table, rate = Table(None, labels, {"sex": sex}, baseline, sample_weight=weight), getattr(goals, name)(TRAIN)
    goal = rate <= bound if is_upper else rate >= bound
    found = goal.evaluate(predicted, table)
    value = rate.value(predicted, table)
    assert found.value == pytest.approx(value, nan_ok=True)
    assert found.bound == bound
    if np.isnan(value):
        assert found.holds
    elif abs(value - bound) > 1e-6:
        assert found.holds == (value <= bound if is_upper else value >= bound)
        assert found.violation == pytest.approx(0.0 if found.holds else abs(value - bound))
    margin = bind(goal, table).violations({"train": predicted})
    assert (margin[0] <= 1e-9) == found.holds


def test_a_check_says_how_the_goal_fares():
    table = Table(None, y=[1, 1, 1, 1, 0])
    goal = recall(TRAIN) >= 0.9
    found = goal.evaluate([1, 1, 1, 0, 1], table)
    assert (found.value, found.bound, found.holds) == (0.75, 0.9, False)
    assert str(found) == "recall >= 0.9: missed by 0.15 (0.75, bound 0.9)"
    assert str(goal.evaluate([1] * 5, table)) == "recall >= 0.9: holds (1, bound 0.9)"
    assert goal.evaluate_expected([0.9] * 5, table).holds
    assert goal.evaluate_ramp([0.4, 0.4, 0.4, 0.3, -9], table).value == pytest.approx(0.875)
    assert not goal.evaluate([1] * 5, table, pos_label=0).holds


def test_a_goal_may_speak_of_several_datasets():
    data = {"train": Table(None, y=[0, 1, 1]), "mail": Table(None, baseline=[0, 1, 1, 0])}
    goal = recall(TRAIN) >= 2 * churn(MAIL)
    assert goal.datasets == ("train", "mail")
    found = goal.evaluate({"train": [0, 1, 0], "mail": [1, 1, 1, 0]}, data)
    assert (found.value, found.bound, found.holds) == (0.5, 0.5, True)


TERMS = st.tuples(st.floats(-5, 5), st.sampled_from(list(METRICS)), st.sampled_from(["F", "M"]))


@given(st.integers(0, 10_000), st.lists(st.tuples(st.floats(-5, 5), st.lists(TERMS, max_size=3)), max_size=3))
def test_bound_goals_are_the_goals_as_numbers(seed, written):
    """weights @ predictions <= bounds says the same as the goals, for one model and for many at once."""
    predicted, labels, baseline, sex, weight = random_decisions(seed, weighted=True)
    table = Table(None, labels, {"sex": sex}, baseline, sample_weight=weight)
    listed = [recall(TRAIN) >= 0.5]
    for limit, terms in written:
        parts = [factor * getattr(goals, name)(TRAIN, sex=group) for factor, name, group in terms]
        listed.append(recall(TRAIN) + sum(parts) <= limit)
    bound = bind(listed, table)
    models = np.column_stack([predicted, 1 - predicted, np.random.default_rng(seed).random(len(predicted))])
    values = bound.values({"train": models})
    for number, goal in enumerate(listed):
        margins = [goal.linear.expected_value(column, table) for column in models.T]
        np.testing.assert_allclose(values[number] - bound.bounds[number], margins, atol=1e-9)
    np.testing.assert_allclose(bound.violations({"train": models}).T, (values.T - bound.bounds), atol=1e-12)
    multipliers = np.arange(1.0, len(listed) + 1)
    signed = bound.row_weights(multipliers)["train"]
    np.testing.assert_allclose(signed @ models, multipliers @ values, atol=1e-9)


def test_an_objective_is_a_rate_and_no_ratio():
    objective = error_rate(TRAIN) + 0.5 * goals.false_positive_rate(MAIL)
    assert as_objective("error_rate + 0.5 * false_positive_rate(mail)") == objective
    data = {"train": Table(None, y=[0, 1, 1, 1]), "mail": Table(None, y=[0, 0])}
    bound = bind_objective(objective, data)
    assert bound.values({"train": [1, 1, 1, 0], "mail": [1, 0]})[0] == pytest.approx(0.5 + 0.25)
    with pytest.raises(TypeError, match=r"precision is a ratio, which is not linear.*cannot be the objective"):
        as_objective(precision(TRAIN))
    with pytest.raises(TypeError, match="is a ratio"):
        parse_rate("f1_score")
    with pytest.raises(TypeError, match="An objective must be a rate"):
        as_objective(0.5)
    with pytest.raises(GoalSyntaxError, match="a goal has one comparison"):
        parse_rate("error_rate <= 0.5")


def test_infeasible_goals_say_what_could_be_met():
    first, second = recall(TRAIN) >= 0.95, positive_rate(TRAIN) <= 0.1 * positive_rate(MAIL)
    error = InfeasibleGoals([first, second], 0.0625, {first: 0.71234, second: 0.05})
    assert "cannot hold together: recall >= 0.95 and positive_rate <= " in str(error)
    assert "The least total violation is 0.0625." in str(error)
    assert (
        "one at a time and with all other goals kept: recall >= 0.7123, or "
        "positive_rate <= 0.1 * positive_rate(mail) + 0.05." in str(error)
    )
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (again.conflict, again.least_violation, again.nearest_bounds) == (
        (first, second),
        0.0625,
        {first: 0.71234, second: 0.05},
    )
    assert str(again) == str(error)
    assert str(InfeasibleGoals([first], 0.1)).startswith("This goal cannot hold: recall >= 0.95.")
