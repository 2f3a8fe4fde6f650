"""Audits where labels are known for some rows only, against all labels that the others may have."""

from itertools import product

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from counterpoise import GoalClassifier, audit, certify
from counterpoise.goals import Table, parse_goal

GOALS = [
    "recall >= 0.5",
    "precision >= 0.3",
    "error_rate <= 0.4",
    "f1_score >= 0.4",
    "recall(of=0) >= 0.5",
    "false_positive_rate(sex=F) <= 0.2",
    "recall(sex=F) - recall(sex=M) <= 0.1",
    "recall(value=amount) >= 0.2",
    "error_rate - 0.5 * selection_rate <= 0.1",
    "recall(sex=F) / recall(sex=M) >= 0.5",
]


def _rows(rng, n_rows=14):
    labelled = rng.random(n_rows) < 0.6
    labelled[:4] = True
    y = rng.integers(0, 2, n_rows)
    y[:4] = 0, 1, 0, 1
    sex = rng.choice(["F", "M"], n_rows)
    sex[:4] = "F", "F", "M", "M"
    amounts = rng.integers(1, 4, n_rows).astype(float)
    answers = rng.integers(0, 2, n_rows)
    answers[3] = 1  # some recall of M
    return y, answers, labelled, {"sex": sex, "amount": amounts}


@pytest.mark.parametrize("text", GOALS)
def test_ends_are_those_of_all_labels(text):
    rng, goal = np.random.default_rng(len(text)), parse_goal(text)
    for _ in range(6):
        y, answers, labelled, columns = _rows(rng)
        places, values = np.flatnonzero(~labelled), []
        for labels in product([0, 1], repeat=places.size):
            filled = y.copy()
            filled[places] = labels
            table = Table(None, y=filled, sensitive_features=columns)
            value = (goal.left - goal.right if goal.right.terms else goal.left).value(answers, table)
            values.append(value)
        options = {"sensitive_features": columns, "labelled": labelled, "largest_value": 4, "confidence": 0.5}
        hidden = y.astype(float)
        hidden[~labelled] = np.nan
        (row,) = audit(goal, answers, hidden, **options)
        known = audit(goal, answers, y, **{**options, "labelled": np.ones(y.size, dtype=bool)})
        (plain,) = audit(goal, answers, y, **{**options, "labelled": None})
        assert (known[0].estimate, known[0].low, known[0].high) == (plain.estimate, plain.low, plain.high)
        values = [value for value in values if not np.isnan(value)]
        if np.ptp(values) == 0:
            assert row.estimate == pytest.approx(values[0])
            continue
        assert np.isnan(row.estimate)
        assert "missing labels" in row.note
        assert row.verdict in {"undecided", "holds", "fails"}
        assert row.low <= min(values) + 1e-9
        assert row.high >= max(values) - 1e-9


def test_rates_that_need_opposite_labels_are_not_decided():
    y, answers, labelled, _ = _rows(np.random.default_rng(2), 100)
    (row,) = audit("true_positives / (recall + 1) >= 0.1", answers, y, labelled=labelled)
    assert row.verdict == "undecided"
    assert "audit each rate by itself" in row.note


def test_rates_without_hidden_labels_are_estimated_as_always():
    y, answers, labelled, columns = _rows(np.random.default_rng(0), 200)
    goals = ["selection_rate <= 0.6", "max_difference(selection_rate, by=sex) <= 0.3"]
    assert audit(goals, answers, y, sensitive_features=columns, labelled=labelled) == audit(
        goals, answers, y, sensitive_features=columns
    )
    selected = answers * labelled  # nobody is selected whose label is not known
    (row,) = audit("precision >= 0.3", selected, y, labelled=labelled)
    assert row == audit("precision >= 0.3", selected, y)[0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"labelled": [True, False]}, "which of the 6 labels are known"),
        ({"labelled": [0.5] * 6}, "an array of True and False that says"),
        ({"labelled": [False] * 6}, "some of them"),
        ({"data": Table(None, y=[0, 1] * 3)}, "labelled needs an array of labels"),
        ({"data": None}, "labelled needs an array of labels"),
        ({"predictions": [0.5] * 6, "kind": "probabilities"}, "and predicted labels"),
        ({"data": [0, 1, 2] * 2}, "labelled is for two classes; there are 3"),
        ({"goals": "max_difference(recall, by=sex, min_rows=2) <= 0.1"}, "leaves out groups by their number of labels"),
        ({"predictions": [1] * 6, "data": [1] * 6}, "Name both with classes"),
    ],
)
def test_wrong_uses(changes, words):
    options = {"goals": "recall >= 0.5", "predictions": [0, 1] * 3, "data": [0, 1] * 3, "labelled": [True] * 6}
    options |= {"sensitive_features": {"sex": list("FFFMMM")}} if "data" not in changes else {}
    with pytest.raises(ValueError, match=words):
        audit(**{**options, **changes})


def test_texts_and_missing_labels():
    y = np.array(["good", "bad", None, "good", "bad", None] * 20, dtype=object)
    answers = ["good", "bad", "good", "good", "good", "bad"] * 20
    labelled = [one is not None for one in y]
    (row,) = audit("precision >= 0.5", answers, y, labelled=labelled, pos_label="good")
    assert row.low < 2 / 4 < 3 / 4 < row.high
    (row,) = certify(np.array(answers), "selection_rate >= 0.5", y=["good", "bad"] * 60, pos_label="good")
    assert row.estimate == pytest.approx(4 / 6)


@pytest.mark.parametrize("labels", [[0.0, 1.0, np.nan] * 20, ["no", "yes", None] * 20])
def test_a_fit_says_which_goals_such_rows_allow(labels):
    X = np.arange(60.0)[:, None]
    y = np.array(labels, dtype=float if labels[0] == 0 else object)
    with pytest.raises(
        ValueError, match=r"20 of 60 are missing .* need no labels, such as selection_rate\(everybody\)"
    ):
        GoalClassifier(LogisticRegression()).fit(X, y)
    known = ~np.array([one is None or one != one for one in labels])  # noqa: PLR0124 - NaN
    goal = "selection_rate(everybody) <= 0.5"
    model = GoalClassifier(LogisticRegression(), goals=goal, confidence=None, pos_label=labels[1], random_state=0)
    own = y[known].astype(int if labels[0] == 0 else str)
    model.set_params(pos_label=own[1]).fit(X[known], own, datasets={"everybody": Table(X)})
    assert (model.predict(X) == own[1]).mean() <= 0.5
    model.set_params(goals="recall(everybody) >= 0.5")
    with pytest.raises(ValueError, match="Dataset 'everybody' needs labels"):
        model.fit(X[known], own, datasets={"everybody": Table(X)})
