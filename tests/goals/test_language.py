"""The language of goals: any class, differences, conditions, costs, phrases over all groups."""

import re
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest

from counterpoise import audit, certify
from counterpoise.goals import (
    Dataset,
    NoRows,
    Table,
    UnknownName,
    UnknownValue,
    bind,
    confusion,
    cost,
    every_class,
    macro,
    max_difference,
    min_ratio,
    parse_goal,
    parse_rate,
    precision,
    recall,
    register_metric,
)

TEXTS = [
    "recall(of=cat) >= 0.9",
    "positive_rate(of='New Zealand', sex=F) <= 0.2",
    "precision(mail.baseline_positives, of=-1, 'a b'='it''s') >= 0.5",
    "confusion(of=cat, called='dog fox') <= 0.1",
    "macro(recall, age>=18.5) + 0.5 * error_rate <= 1.2 with confidence 0.9",
    "every_class(f1_score, sex=F) >= 0.8",
    "every_group(recall, of=1, by=sex, by='a b') >= 0.8",
    "abs(false_positive_rate(sex=F) - false_positive_rate(sex=M)) <= 0.05",
    "abs(precision - 0.5) <= 0.1",
    "max_difference(recall, by=race) <= 0.1",
    "min_ratio(positive_rate, of=cat, by=sex) >= 0.8",
    "equalized_odds_difference(18<=age<25, by=sex) <= 0.1 with confidence 0.95",
    "demographic_parity_ratio(by=sex) >= 0.8",
    "recall(sex=F, -1.5<age<=33, income>50000) >= 0.1",
    "cost(sex=F, {'New Zealand'->cat: 20, well->sick: 0.5}) <= 0.3",
    "cost({-1->1: 3}) - churn <= 0.3",
]
OTHER_WORDS = {
    "cat": "cow",
    "mail": "cows",
    "sex": "height",
    "race": "height",
    "precision": "f1_score",
    "age": "height",
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_goal_is_read_from_what_it_is_written_as(text):
    goal = parse_goal(text)
    assert str(goal) == text or "/ positive_rate" in str(goal)  # a ratio less a number is written out
    assert parse_goal(str(goal)) == goal
    assert hash(parse_goal(str(goal))) == hash(goal)
    assert goal != goal.with_bound(0.123)
    for word, another in OTHER_WORDS.items():
        if word in text:
            assert parse_goal(text.replace(word, another)) != goal


def test_python_and_text_say_the_same():
    train = Dataset("train")
    same = {
        "recall(of=cat) >= 0.9": recall(train, of="cat") >= 0.9,
        "recall(18<=age<25, sex=F) >= 0.9": recall(train, "18 <= age < 25", sex="F") >= 0.9,
        "recall(age>18, age<=25) >= 0.9": recall(train.where("age > 18").where("25 >= age")) >= 0.9,
        "macro(recall) >= 0.9": macro(recall) >= 0.9,
        "every_class(precision) >= 0.9": every_class(precision, train) >= 0.9,
        "0.1 >= max_difference(recall, by=race)": max_difference("recall", train, by="race") <= 0.1,
        "min_ratio(recall, by=a, by=b) >= 0.9": min_ratio(recall, train, by=["a", "b"]) >= 0.9,
        "confusion(of=1, called=2) <= 0.1": confusion(train, of=1, called=2.0) <= 0.1,
        'cost({"sick->well": 20, "well->sick": 1}) <= 2': cost(train, {"sick->well": 20, ("well", "sick"): 1}) <= 2,
        "cost({b->a: 1, a->b: 20}) <= 2": cost(train, [[0, 20], [1, 0]], classes=["a", "b"]) <= 2,
        "abs(recall - recall(mail)) <= 0.1": abs(recall("mail") - recall(train)) <= 0.1,
    }
    for text, goal in same.items():
        assert parse_goal(text) == goal, text
    frame = pd.DataFrame([[0, 20], [1, 0]], index=["a", "b"], columns=["a", "b"])
    assert cost(train, frame) == parse_rate("cost({a->b: 20, b->a: 1})")


def people(n=120, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    classes = np.array(["cat", "dog", "fox", "New Zealand"])[:n_classes]
    y, said = rng.choice(classes, n), rng.choice(classes, n)
    said = np.where(rng.random(n) < 0.6, y, said)
    columns = {"sex": rng.choice(["F", "M", "X"], n), "age": rng.integers(18, 70, n)}
    return y, said, columns


def share(hits, mask):
    return Fraction(int(hits[mask].sum()), int(mask.sum()))


@pytest.mark.parametrize("seed", range(3))
def test_values_are_the_exact_fractions(seed):
    y, said, columns = people(seed=seed)
    table, everyone = Table(None, y, columns), np.ones(len(y), bool)
    sex, age = columns["sex"], columns["age"]
    recalls = {of: share(said == of, y == of) for of in np.unique(y)}
    by_sex = {value: share(said == "cat", sex == value) for value in np.unique(sex)}
    wrong = {value: share(said != y, sex == value) for value in np.unique(sex)}
    exact = {
        "recall(of=cat)": recalls["cat"],
        "error_rate": share(said != y, everyone),
        "accuracy(of=cat)": share((said == "cat") == (y == "cat"), everyone),
        "confusion(of=cat, called=dog)": share(said == "dog", y == "cat"),
        "macro(recall)": sum(recalls.values()) / len(recalls),
        "precision(of=dog)": share(y == "dog", said == "dog"),
        "recall(of=fox, age<=33)": share(said == "fox", (y == "fox") & (age <= 33)),
        "error_rate(20<age<=50, sex=F)": share(said != y, (age > 20) & (age <= 50) & (sex == "F")),
        "cost({cat->dog: 20, dog->cat: 1})": 20 * share((y == "cat") & (said == "dog"), everyone)
        + share((y == "dog") & (said == "cat"), everyone),
        "max_difference(positive_rate, of=cat, by=sex)": max(by_sex.values()) - min(by_sex.values()),
        "min_ratio(positive_rate, of=cat, by=sex)": min(by_sex.values()) / max(by_sex.values()),
        "max_difference(error_rate, by=sex)": max(wrong.values()) - min(wrong.values()),
        "abs(recall(of=cat) - recall(of=dog))": abs(recalls["cat"] - recalls["dog"]),
    }
    for text, value in exact.items():
        sense = ">=" if text.startswith("min_ratio") else "<="
        check = parse_goal(f"{text} {sense} {float(value)!r}").evaluate(said, table)
        assert check.value == pytest.approx(float(value), abs=1e-15), text
        assert check.holds  # with equality
        (found,) = audit(check.goal, said, table)
        assert found.estimate == pytest.approx(float(value), abs=1e-14), text
        assert found.worst == check.worst
        hair = 1e-6 if sense == "<=" else -1e-6
        assert not check.goal.with_bound(float(value) - hair).evaluate(said, table).holds
    worst = parse_goal("every_class(recall) >= 0.99").evaluate(said, table)
    assert worst.value == pytest.approx(float(min(recalls.values())))
    assert worst.worst == str(recall(of=min(recalls, key=recalls.get)))


AGES = pd.DataFrame({"age": [17.0, 18.0, 24.5, 25.0, np.nan], "n": [1, 2, 3, 4, 2**60 + 1]})
RANGES = {
    "age<=18": [1, 1, 0, 0, 0],
    "18<age": [0, 0, 1, 1, 0],
    "18<=age<25": [0, 1, 1, 0, 0],
    "25>age>=18": [0, 1, 1, 0, 0],
    "age>=17, age<=17": [1, 0, 0, 0, 0],
    "n>1152921504606846976": [0, 0, 0, 0, 1],
    "n>=2.5, n<4": [0, 0, 1, 0, 0],
    "mixed<2": [1, 0, 0, 0, 0],
}


@pytest.mark.parametrize("text", RANGES)
def test_a_range_finds_the_rows_that_lie_in_it(text):
    frame = AGES.assign(mixed=np.array([1, 2, None, 3.5, np.nan], dtype=object))
    (rate,) = parse_goal(f"positive_rate({text}) <= 1").left.terms
    found = bind("positive_rate(" + text + ") <= 1", Table(frame, y=[0, 1, 1, 1, 1])).weights["train"].toarray()
    assert (found[0] > 0).astype(int).tolist() == RANGES[text]
    assert rate.rows == Dataset().where(*text.split(", "))


NO_ROWS = Table(
    None,
    y=["cat", "dog", "cat", "fox"],
    sensitive_features={
        "sex": ["F", "M", "F", "M"],
        "age": [20, 30, 40, 50],
        "of": ["a", "b", "a", "b"],
        "one": [1] * 4,
    },
)
SAID = ["cat", "dog", "dog", "fox"]
WRONG = {
    "unknown class": ("recall(of=cow) >= 0.5", UnknownValue, "Unknown class 'cow'.*Known: 'cat', 'dog', 'fox'"),
    "of as a column": (
        "recall(of=a) >= 0.5",
        UnknownName,
        "Unknown class 'a'.*a column of this name is written 'of'=a",
    ),
    "a condition on text": (
        "recall(of=cat, sex<=33) >= 0.5",
        ValueError,
        "sex<=33 needs a column of numbers; 'sex' holds others, such as 'F'. For one of its values write sex=F",
    ),
    "text behind a sign": (
        "recall(age<=old) >= 0.5",
        ValueError,
        "expected a number, as in age<=33; for a text",
    ),
    "an empty range": ("recall(25<=age<18) >= 0.5", ValueError, "The range 25<=age<18 is empty"),
    "an empty pair": ("recall(age<18, age>=18) >= 0.5", ValueError, "The range 18<=age<18 is empty"),
    "two lower ends": ("recall(18<=age>20) >= 0.5", ValueError, "must be a lower and an upper one"),
    "a range without rows": ("recall(of=cat, age>90) >= 0.5", NoRows, "No row has age>90.* from 20 to 50"),
    "unknown column": (
        "recall(of=cat, wage>90) >= 0.5",
        UnknownName,
        "Unknown column 'wage'.*Did you mean 'age'",
    ),
    "no class": ("recall >= 0.5", ValueError, "got 3 classes: 'cat', 'dog', 'fox'.*recall.of=cat."),
    "two classes": (
        "recall(of=cat, of=dog) >= 0.5",
        ValueError,
        "is about one class; got of=dog beside of=cat",
    ),
    "one group": ("max_difference(accuracy, by=one) <= 0.5", NoRows, "compares groups; by 'one' there is one"),
    "class absent from a group": (
        "max_difference(recall, of=dog, by=sex) <= 0.5",
        NoRows,
        r"restricted to sex=F and labelled dog is empty.*Needed by recall\(of=dog, sex=F\)",
    ),
    "difference of ratios without end": (
        "max_difference(win_loss_ratio, by=sex) <= 0.5",
        ValueError,
        r"compares ratios.*every_group\(win_loss_ratio, by=sex\)",
    ),
    "average of ratios": ("macro(precision) >= 0.5", TypeError, r"every_class\(precision\) >= 0.8"),
    "wrong way": ("max_difference(recall, by=sex) >= 0.5", ValueError, "can be bounded with <= only"),
    "absolute from below": ("abs(recall - recall(mail)) >= 0.5", ValueError, "can be bounded with <= only"),
    "sum of phrases": ("2 * every_class(recall) >= 0.5", TypeError, "stands alone on one side of a goal"),
    "phrase against a rate": ("every_class(recall) >= recall", TypeError, "bounded by a number only"),
    "no by": ("max_difference(recall) <= 0.5", ValueError, "over the groups of a column, as by=sex"),
    "by for classes": ("every_class(recall, by=sex) >= 0.5", ValueError, "over all classes, and takes no by"),
    "class of every class": ("every_class(recall, of=cat) >= 0.5", ValueError, "over all classes; got of=cat"),
    "unknown metric of a phrase": ("every_class(recal) >= 0.5", UnknownName, "Did you mean 'recall'"),
    "half a confusion": ("confusion(of=cat) <= 0.5", ValueError, "needs two classes.*of=cat and called=None"),
    "costs of a rate": ("recall({cat->dog: 1}) <= 0.5", ValueError, "Costs in braces are for cost"),
    "cost of a class": ("cost(of=cat, {cat->dog: 1}) <= 0.5", ValueError, "names its classes itself"),
    "cost twice": ("cost({cat->dog: 1, cat->dog: 2}) <= 0.5", ValueError, "named once; cat->dog occurs twice"),
    "cost of no class": ("cost({cat->cow: 1}) <= 0.5", UnknownValue, "Unknown class 'cow'"),
    "cost of a column": ("cost({cat->dog: much}) <= 0.5", UnknownName, "Unknown column 'much'"),
    "cost of a sign": ("cost({cat->dog: (}) <= 0.5", ValueError, "expected a number, or the name of a column"),
    "abs of a number": ("abs(2) + recall <= 0.5", ValueError, "abs takes a rate"),
}


@pytest.mark.parametrize(("text", "kind", "message"), WRONG.values(), ids=WRONG.keys())
def test_wrong_use_has_its_sentence(text, kind, message):
    with pytest.raises(kind, match=message):
        parse_goal(text).evaluate(SAID, NO_ROWS)


PYTHON_WRONG = {
    "column of": (lambda: Dataset().where(of="cat"), "never a column"),
    "no class": (lambda: recall(of=""), "of needs the name of a class"),
    "no range": (lambda: recall("train", "age"), "reads like 'age<=33'.*got 'age'"),
    "costs that are none": (lambda: cost("train", {"a->b": 0}), "needs a cost that is not 0"),
    "costs of three": (lambda: cost("train", {"a->b->c": 1}), "named by two classes"),
    "array without classes": (lambda: cost("train", [[0, 1], [1, 0]]), r"got shape \(2, 2\) for 0 classes"),
    "reserved name": (
        lambda: register_metric(recall, name="macro"),
        "no metric has yet; got 'macro'",
    ),
    "nameless": (lambda: register_metric(partial(recall)), "name of a metric must be a word.*got None"),
    "metric with a class": (
        lambda: register_metric(lambda rows: recall(rows, of="a"), name="mine"),
        "must not name a class",
    ),
}


@pytest.mark.parametrize(("ask", "message"), PYTHON_WRONG.values(), ids=PYTHON_WRONG.keys())
def test_wrong_use_in_python_has_its_sentence(ask, message):
    with pytest.raises(ValueError, match=message):
        ask()


def test_audits_know_the_classes_of_the_model_and_name_the_worst():
    y, said, columns = people(300, n_classes=3)
    few = np.flatnonzero(y != "fox")[:50]
    (row,) = audit("every_class(recall) >= 0.5", said[few], Table(None, y[few]), classes=np.unique(y))
    assert row.note.endswith("dataset 'train' restricted to labelled fox is empty")
    found = certify(
        said,
        ["every_class(recall) >= 0.5", "max_difference(recall, of=cat, by=sex) <= 0.6"],
        y=y,
        sensitive_features=columns,
    )
    assert found.holds
    assert re.search(r"every_class\(recall\) >= 0.5: the estimate is of recall\(of=(cat|dog|fox)\)\.", str(found))
