"""The dataset of a goal is optional: without one the goal is about the rows that are judged."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoise.goals import (
    Dataset,
    GoalSyntaxError,
    Table,
    UnknownName,
    confusion,
    cost,
    demographic_parity_difference,
    every_class,
    false_positive_rate,
    macro,
    max_difference,
    parse_goal,
    recall,
)
from counterpoise.goals.rates import ALIASES, FORMS, METRICS, RATIOS

SHORT = {
    "recall >= 0.7": "recall(train) >= 0.7",
    "recall() >= 0.7": "recall(train) >= 0.7",
    " recall>=.7 ": "recall(train) >= 0.7",
    "0.7 <= recall": "recall(train) >= 0.7",
    "0.7 <= recall with confidence 0.9": "recall(train) >= 0.7 with confidence 0.9",
    "recall >= 0.7 with confidence 0.9": "recall(train) >= 0.7 with confidence 0.9",
    "recall(of=cat) >= 0.8": "recall(train, of=cat) >= 0.8",
    "recall('a b'='it''s') >= 0.8": "recall(train, 'a b'='it''s') >= 0.8",
    "recall(18<=age<25, sex=F) >= 0.8": "recall(train, sex=F, 18<=age<25) >= 0.8",
    "recall(age>-1.5) >= 0.8": "recall(train, age>-1.5) >= 0.8",
    "recall >= churn(mail) + 0.1": "recall(train) >= churn(mail) + 0.1",
    "max_difference(false_positive_rate, by=sex) <= 0.05": "max_difference(false_positive_rate, train, by=sex) <= 0.05",
    "min_ratio(positive_rate, of=cat, by=sex) >= 0.8": "min_ratio(positive_rate, train, of=cat, by=sex) >= 0.8",
    "every_class(recall) >= 0.8": "every_class(recall, train) >= 0.8",
    "every_group(recall, age<=33, by=sex) >= 0.8": "every_group(recall, train, age<=33, by=sex) >= 0.8",
    "macro(recall) >= 0.8": "macro(recall, train) >= 0.8",
    "demographic_parity_difference(by=sex) <= 0.1": "demographic_parity_difference(train, by=sex) <= 0.1",
    "selection_rate(sex=F) >= 0.8 * selection_rate(sex=M)": "positive_rate(train, sex=F) >= "
    "0.8 * positive_rate(train, sex=M)",
    "confusion(of=cat, called=dog) <= 0.1": "confusion(train, of=cat, called=dog) <= 0.1",
    "cost({sick->well: 20}) <= 0.5": "cost(train, {sick->well: 20}) <= 0.5",
    "cost(sex=F, {sick->well: 20}) <= 0.5": "cost(train, sex=F, {sick->well: 20}) <= 0.5",
    "cost({sick->well: 20}, sex=F) <= 0.5": "cost(train, sex=F, {sick->well: 20}) <= 0.5",
    "abs(recall - 0.5) <= 0.1": "abs(recall(train) - 0.5) <= 0.1",
    "abs(recall(sex=F)-recall) <= 0.1": "abs(recall(train, sex=F) - recall(train)) <= 0.1",
    "error_rate+0.5*churn <= 0.2": "error_rate(train) + 0.5 * churn(train) <= 0.2",
    "-(recall - 1) / 2 <= 0.05": "(1 - recall(train)) / 2 <= 0.05",
    "win_rate / loss_rate >= 2": "win_rate(train) / loss_rate(train) >= 2",
    "1 / f1_score <= 2": "1 / f1_score(train) <= 2",
    "precision >= 0.5": "precision(train) >= 0.5",
}


@pytest.mark.parametrize("text", SHORT)
def test_both_forms_are_the_same_goal(text):
    goal, long = parse_goal(text), parse_goal(SHORT[text])
    assert goal == long == parse_goal(str(goal))
    assert str(goal) == str(long)
    assert hash(goal) == hash(long)
    assert "train" in goal.datasets


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("recall(train) >= 0.7", "recall >= 0.7"),
        ("recall(test) >= 0.7", "recall(test) >= 0.7"),
        ("selection_rate(train, sex=F) <= 0.7", "positive_rate(sex=F) <= 0.7"),
        ("selection_rate(test, sex=F) <= 0.7", "positive_rate(test, sex=F) <= 0.7"),
        ("churn(train.positives, sex=F) <= 0.7", "churn(train.positives, sex=F) <= 0.7"),
        ("precision('train', of=cat) >= 0.7", "precision(of=cat) >= 0.7"),
        ("abs(tpr(train) - tpr(mail)) <= 0.1", "abs(recall - recall(mail)) <= 0.1"),
        ("max_difference(fpr, train, by=sex) <= 0.1", "max_difference(false_positive_rate, by=sex) <= 0.1"),
        ("max_difference(fpr, test, by=sex) <= 0.1", "max_difference(false_positive_rate, test, by=sex) <= 0.1"),
        ("every_class(recall, train) >= 0.1", "every_class(recall) >= 0.1"),
        ("macro(recall, train) >= 0.1", "macro(recall) >= 0.1"),
        ("cost(train, {a->b: 2}) <= 0.1", "cost({a->b: 2}) <= 0.1"),
        ("confusion(train, of=a, called=b) <= 0.1", "confusion(of=a, called=b) <= 0.1"),
        ("win_rate(train) / (loss_rate(train) + 1) >= 0.1", "win_rate / (loss_rate + 1) >= 0.1"),
        ("precision(train) >= 0.9 with confidence 0.95", "precision >= 0.9 with confidence 0.95"),
    ],
)
def test_goals_print_the_dataset_only_where_it_is_not_train(text, printed):
    goal = parse_goal(text)
    assert str(goal) == printed
    assert repr(goal) == f"<Goal {printed}>"
    assert parse_goal(printed) == goal


def test_a_dataset_by_itself_has_its_name():
    assert str(Dataset()) == "train"
    assert str(Dataset().where(sex="F")) == "train, sex=F"


DATASETS = st.sampled_from(
    ["", "train", "'train'", "train.positives", "train.baseline_negatives", "test", "'a b'.negatives"]
)
CONDITIONS = ["sex=F", "sex='New Zealand'", "'a b'=-1.5", "age<=33", "18<=age<25", "-1.5<x", "train=1", "recall=train"]
BOUNDS = st.floats(0.001, 0.999).map(repr)


@st.composite
def arguments(draw, *more):
    rows = draw(st.lists(st.sampled_from(CONDITIONS), max_size=3, unique_by=lambda text: re.findall("[a-z]+", text)[0]))
    return ", ".join(filter(None, [draw(DATASETS), *rows, *more]))


@st.composite
def rate_texts(draw, names=(*METRICS, *(alias for alias in ALIASES if ALIASES[alias] in METRICS))):
    name = draw(st.sampled_from(names))
    of = draw(st.sampled_from(["", "of=cat"]))
    inside = draw(arguments(of))
    return f"{name}({inside})" if inside or draw(st.booleans()) else name


@st.composite
def goal_texts(draw):
    kind = draw(
        st.sampled_from(["rate", "ratio", "quotient", "difference", "sum", "form", "macro", "cost", "confusion"])
    )
    sense = draw(st.sampled_from(["<=", ">="]))
    if kind == "ratio":
        left = draw(rate_texts((*RATIOS, *(alias for alias in ALIASES if ALIASES[alias] in RATIOS))))
    elif kind == "quotient":
        left = f"{draw(rate_texts())} / {draw(rate_texts())}"
    elif kind == "difference":
        left, sense = f"abs({draw(rate_texts())} - {draw(rate_texts())})", "<="
    elif kind == "form":
        form = draw(st.sampled_from(list(FORMS)))
        metric = "" if FORMS[form].metrics else draw(st.sampled_from([*METRICS, "tpr", "selection_rate"]))
        by = draw(st.sampled_from(["by=group", "by='a c', by=group"])) if FORMS[form].by else ""
        inside = ", ".join(filter(None, [metric, draw(arguments(by))]))
        left, sense = f"{form}({inside})", FORMS[form].sense or sense
    elif kind in {"macro", "cost", "confusion"}:
        first, last = {"macro": ("recall", ""), "cost": ("", "{a->b: 2}"), "confusion": ("", "of=a, called=b")}[kind]
        left = f"{kind}({', '.join(filter(None, [first, draw(arguments(last))]))})"
    else:
        left = draw(rate_texts())
    right = f"{draw(BOUNDS)} * {draw(rate_texts())} - {draw(BOUNDS)}" if kind == "sum" else draw(BOUNDS)
    return f"{left} {sense} {right}{draw(st.sampled_from(['', ' with confidence 0.9']))}"


@given(goal_texts())
def test_what_is_printed_reads_back_as_the_same_goal(text):
    try:
        goal = parse_goal(text)
    except (ValueError, TypeError):  # rates that cancel, false positives among the positives, differences of ratios
        return
    printed = str(goal)
    assert parse_goal(printed) == goal
    assert hash(parse_goal(printed)) == hash(goal)
    assert str(parse_goal(printed)) == printed
    assert not re.search(r"[(, ]train(?=[,)])|'train'[,)]", printed)


def test_python_needs_no_dataset_either():
    same = {
        "recall >= 0.7": recall() >= 0.7,
        "recall(sex=F) >= 0.7": recall(sex="F") >= 0.7,
        "recall(of=cat, 18<=age<25) >= 0.7": recall("18 <= age < 25", of="cat") >= 0.7,
        "recall(age>=18, age<25, sex=F) >= 0.7": recall("age>=18", "age<25", sex="F") >= 0.7,
        "max_difference(false_positive_rate, by=sex) <= 0.1": max_difference(false_positive_rate, by="sex") <= 0.1,
        "max_difference(recall, age<=33, by=sex) <= 0.1": max_difference(recall, "age<=33", by="sex") <= 0.1,
        "demographic_parity_difference(by=sex) <= 0.1": demographic_parity_difference(by="sex") <= 0.1,
        "every_class(recall) >= 0.7": every_class(recall) >= 0.7,
        "macro(recall) >= 0.7": macro(recall) >= 0.7,
        "confusion(of=cat, called=dog) <= 0.1": confusion(of="cat", called="dog") <= 0.1,
        "cost({a->b: 20, b->a: 1}) <= 2": cost({"a->b": 20, "b->a": 1}) <= 2,
        "cost({a->b: 20, b->a: 1}, sex=F) <= 2": cost([[0, 20], [1, 0]], classes=["a", "b"], sex="F") <= 2,
        "cost({a->b: 20}, age<=33) <= 2": cost({"a->b": 20}, "age<=33") <= 2,
    }
    for text, goal in same.items():
        assert parse_goal(text) == goal, text
    assert recall("age<=33") == recall("train", "age<=33")
    assert recall(Dataset("age<=33")) != recall("train", "age<=33")


WRONG = {
    "recal >= 0.7": (UnknownName, "Unknown metric 'recal'. Did you mean 'recall'? .* At character 1 of 'recal >= 0.7'"),
    "0.5 * recal + churn >= 0.7": (UnknownName, "Did you mean 'recall'? .* At character 7 of"),
    "sex=F >= 0.8": (UnknownName, "Unknown metric 'sex'"),
    "recall train >= 0.7": (GoalSyntaxError, "character 8: expected '(', found 'train'"),
    "recall 'train' >= 0.7": (GoalSyntaxError, "character 8: expected '('"),
    "recall = 0.7": (GoalSyntaxError, "character 8: a goal is written with <=, >= or ==, got '='"),
    "recall > 0.7": (GoalSyntaxError, "character 8: a goal is written with <= or >=, got '>'"),
    "recall 0.7": (GoalSyntaxError, "character 8: expected '<=' or '>=' or '==', found '0.7'"),
    "recall": (GoalSyntaxError, "character 7: expected '<=' or '>=' or '==', found the end of the text"),
    "0.1 <= recall <= 0.9": (GoalSyntaxError, "a goal has one comparison"),
    "recall with 0.9": (GoalSyntaxError, "expected '<=' or '>=' or '==', found 'with'"),
    "recall - recall(train) <= 1": (ValueError, "A goal needs a rate that does not cancel"),
    "recall <= precision": (TypeError, "A ratio can be bounded by a number only"),
    "abs <= 0.1": (GoalSyntaxError, "character 5: expected '(', found '<='"),
    "macro >= 0.5": (GoalSyntaxError, "character 1: macro needs the name of a metric first, as in macro(recall)."),
    "every_class() >= 0.5": (
        GoalSyntaxError,
        "every_class needs the name of a metric first, as in every_class(recall).",
    ),
    "max_difference(by=sex) <= 0.1": (GoalSyntaxError, "a metric first, as in max_difference(recall, by=sex)."),
    "max_difference(recall(train), by=sex) <= 0.1": (GoalSyntaxError, "expected ',' or ')' after the metric recall"),
    "max_difference(train, by=sex) <= 0.1": (UnknownName, "Unknown metric 'train'"),
    "demographic_parity_difference <= 0.1": (ValueError, "is over the groups of a column, as by=sex; got by=None"),
    "confusion <= 0.1": (ValueError, "confusion needs two classes, as in"),
    "cost <= 0.1": (UnknownName, "Unknown metric 'cost' without costs: write them"),
    "recall(sex=F, train) >= 0.7": (GoalSyntaxError, "found ')'; a dataset stands before all conditions"),
    "recall(sex=F, sex=M) >= 0.7": (ValueError, "leaves no row, because sex was 'F' already"),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_cannot_be_read_has_its_sentence(text):
    kind, message = WRONG[text]
    with pytest.raises(kind, match=re.escape(message).replace(r"\ \.\*\ ", " .* ")):
        parse_goal(text)


PEOPLE = Table(None, y=[0, 1, 1, 0], sensitive_features={"sex": list("FFMM"), "age band": list("abab")})
NO_DATASET = {
    "recall(trian) >= 0.5": "Unknown dataset 'trian'. Did you mean 'train'? Known: 'train'. Needed by recall(trian).",
    "recall(sex) >= 0.5": "Known: 'train'. 'sex' is a column: write sex=value for some of the rows, by=sex for groups.",
    "recall('age band') >= 0.5": "'age band' is a column: write 'age band'=value for some of the rows, by='age band'",
    "recall(F) >= 0.5": "Unknown dataset 'F'. Known: 'train'. A condition on the rows is written column=value",
    "recall(positives) >= 0.5": "The positives of dataset 'train' are train.positives.",
    "recall(sec=F) >= 0.5": "Unknown column 'sec' in dataset 'train'. Did you mean 'sex'?",
}


@pytest.mark.parametrize("text", NO_DATASET)
def test_a_word_that_is_neither_a_dataset_nor_a_condition_is_named(text):
    with pytest.raises(UnknownName, match=re.escape(NO_DATASET[text])):
        parse_goal(text).evaluate([0, 1, 1, 1], PEOPLE)
