"""Answers that are no class are refused by everything that takes answers; the others are counted exactly."""

from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest

from counterpoise import ConstrainedClassifier, MixtureClassifier, audit, certify
from counterpoise.displays import CVaRCurveDisplay, RateDisplay
from counterpoise.goals import Table, bind, churn, error_rate, parse_goal, positive_rate
from counterpoise.metrics import rate_table

Y = np.array(["no", "yes"] * 100)
GOAL = "error_rate <= 0.05"


class Says:
    """A model that says what it was told to, and may know its classes."""

    def __init__(self, answers, classes=None):
        self.answers = answers
        if classes is not None:
            self.classes_ = np.asarray(classes)

    def predict(self, X):
        return self.answers[: len(X)]


NO_CLASS = {
    "half deferred without a defer_label": np.where(np.arange(200) < 100, "defer", Y),
    "n/a for every no": np.where(Y == "no", "n/a", Y),
    "a blank behind": np.where(Y == "no", "no ", Y),
    "nothing": np.where(Y == "no", None, Y),
    "NaN among texts": [np.nan if label == "no" else label for label in Y.tolist()],
    "a missing text of pandas": pd.Series(np.where(Y == "no", None, Y), dtype="string"),
    "a missing category": pd.Series(np.where(Y == "no", None, Y)).astype("category"),
    "bytes": Y.astype("S"),
}
EVERYWHERE = {
    "audit": lambda said: audit(GOAL, said, Y, pos_label="yes"),
    "certify": lambda said: certify(Says(said, ["no", "yes"]), GOAL, np.zeros((200, 1)), Y, pos_label="yes"),
    "certify of answers": lambda said: certify(said, GOAL, y=Y, pos_label="yes"),
    "value": lambda said: error_rate().value(said, Table(None, Y), pos_label="yes"),
    "evaluate": lambda said: parse_goal(GOAL).evaluate(said, Table(None, Y), pos_label="yes"),
    "rate table": lambda said: rate_table(said, Y, pos_label="yes"),
    "rate display": lambda said: RateDisplay.from_predictions(Y, said, sensitive_features=Y, pos_label="yes"),
    "tail display": lambda said: CVaRCurveDisplay.from_predictions(Y, said),
    "tail display of a model": lambda said: CVaRCurveDisplay.from_estimator(Says(said), np.zeros((200, 1)), Y),
    "mixture": lambda said: MixtureClassifier([lambda X: said[: len(X)]]).fit(np.zeros((200, 1)), Y),
}


@pytest.mark.parametrize(
    ("case", "taker"), [*((case, "audit") for case in NO_CLASS), *(("NaN among texts", taker) for taker in EVERYWHERE)]
)
def test_an_answer_that_is_no_class_is_refused(case, taker):
    with pytest.raises(ValueError, match="not among the classes"):
        EVERYWHERE[taker](NO_CLASS[case])


def test_a_baseline_that_is_no_class_is_refused():
    table = Table(None, Y, baseline=NO_CLASS["n/a for every no"])
    with pytest.raises(ValueError, match=r"baseline of dataset 'train' holds the label 'n/a', .* \(100 of 200 rows\)"):
        churn().value(Y, table)
    with pytest.raises(ValueError, match="baseline of dataset 'train' holds the label 'n/a'"):
        audit("churn <= 0.6", Y, table, pos_label="yes")
    with pytest.raises(ValueError, match="baseline of dataset 'train' holds the label 'n/a'"):
        bind("churn <= 0.6", table)
    with pytest.raises(ValueError, match="baseline holds the label 'n/a'"):
        rate_table(Y, Y, baseline=NO_CLASS["n/a for every no"])
    X = np.arange(200.0)[:, None] % 2
    model = ConstrainedClassifier(goals=["churn <= 0.6"]).fit(X, Y, baseline=Y)
    with pytest.raises(ValueError, match="baseline of dataset 'train' holds the label 'n/a'"):
        model.check_goals(X, Y, baseline=NO_CLASS["n/a for every no"])
    assert model.check_goals(X, baseline=Y)[0].holds  # rows without labels: the model knows the classes


def test_a_message_lists_each_answer_once_and_counts_the_rest():
    y = np.array([0, 1] * 100)
    with pytest.raises(ValueError, match=r"hold the label nan, which is not among the classes \[0, 1\] \(100 of 200"):
        audit(GOAL, np.where(y, 1.0, np.nan), y)
    many = np.where(y, 1, np.arange(200))
    with pytest.raises(
        ValueError, match=r"hold the labels 2, 4, .*, 20 and 89 more, which are not among .*\(99 of 200"
    ):
        audit(GOAL, many, y)
    with pytest.raises(ValueError, match="'0' is not the class 0: blanks, case and type count"):
        audit(GOAL, y.astype(str), y)
    with pytest.raises(ValueError, match="classes must hold labels only; got a missing one"):
        audit(GOAL, y, y, classes=[0, 1, np.nan])


KINDS = [(0, 1), (False, True), (0.0, 1.0), (-1, 1), ("no", "yes"), ("0", "1"), (2, 7, 9), ("a", "b", "c")]
WRONG = [None, np.nan, "n/a", "no ", " yes", 5, 1.5, "2", "a ", pd.NA, b"a"]


def forms(labels, rng):
    """Return the same labels in some form that holds them unchanged."""
    as_objects = np.empty(len(labels), dtype=object)
    as_objects[:] = labels
    found = [list(labels), tuple(labels), as_objects, pd.Series(as_objects, dtype=object)]
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and kinds <= {int, float, bool, str}:
        found += [np.array(labels), pd.Series(labels), pd.Series(labels).astype("category")]
    if kinds == {str}:
        found += [[np.str_(label) for label in labels], pd.Series(labels, dtype="string")]
    if kinds == {int}:
        found += [np.array(labels, dtype=float), np.array(labels, dtype=np.int8), pd.Series(labels, dtype="Int64")]
    if kinds == {bool}:
        found += [np.array(labels, dtype=int), pd.Series(labels, dtype="boolean")]
    return found[rng.integers(len(found))]


def is_equal(one, other):
    """Tell whether two labels are the same to Python; what is missing is equal to nothing."""
    return one is not None and one is not pd.NA and bool(one == other)


@pytest.mark.parametrize("seed", range(6))
def test_answers_are_counted_exactly_or_refused(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        classes, n_rows = KINDS[rng.integers(len(KINDS))], int(rng.integers(1, 40))
        y = [classes[place] for place in rng.integers(len(classes), size=n_rows)]
        said = [classes[place] for place in rng.integers(len(classes), size=n_rows)]
        deferred = [None, "ask", 99][rng.integers(3)]
        for row in np.flatnonzero(rng.random(n_rows) < 0.3) if deferred is not None else ():
            said[row] = deferred
        if rng.random() < 0.4:
            said[rng.integers(n_rows)] = WRONG[rng.integers(len(WRONG))]
        named = {"pos_label": classes[-1], "defer_label": deferred}
        named |= {"classes": classes} if rng.random() < 0.7 else {}
        known = [*y, classes[-1], *named.get("classes", ()), *([] if deferred is None else [deferred])]
        answers, truth = forms(said, rng), np.array(y)
        ask = partial(audit, ["error_rate <= 0.5", "positive_rate <= 0.5"], answers, truth, **named)
        if not all(any(is_equal(one, label) for label in known) for one in said):
            with pytest.raises((ValueError, TypeError), match=r"not among the classes|of one kind"):
                ask()
            continue
        called = [None if is_equal(one, deferred) else one == classes[-1] for one in said]  # positive, or another class
        wrong = sum(one is (label != classes[-1]) for one, label in zip(called, y, strict=True))
        exact = [Fraction(wrong, n_rows), Fraction(called.count(True), n_rows)]
        assert [row.estimate for row in ask()] == [float(share) for share in exact]
        table = Table(None, truth)
        assert error_rate().value(answers, table, **named) == pytest.approx(float(exact[0]), abs=1e-15)
        assert positive_rate().value(answers, table, **named) == pytest.approx(float(exact[1]), abs=1e-15)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["yes", "maybe"], r"classes must name every class.*\['no'\] too"),
        (["yes", "no", "yes"], "each class once"),
    ],
)
def test_given_classes_name_every_class_once(classes, message):
    y, said = ["yes", "no"] * 5, ["yes"] * 10
    asked = {"pos_label": "yes", "classes": classes}
    with pytest.raises(ValueError, match=message):
        audit("recall >= 0.5", said, Table(None, y), **asked)
    with pytest.raises(ValueError, match=message):
        parse_goal("recall >= 0.5").evaluate(said, Table(None, y), **asked)
    with pytest.raises(ValueError, match=message):
        rate_table(said, y, **asked)
