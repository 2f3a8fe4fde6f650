"""The page offers columns of amounts, answers goals on them, and hides those that rest on few rows."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from counterpoise import GoalClassifier
from counterpoise.explorer import Setting, session_of_model
from counterpoise.explorer.conversation import describe

N = 900
RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, N)
X = RNG.normal(size=(N, 3)) + Y[:, None]
AMOUNT = RNG.lognormal(5, 0.7, N)
ONE = np.where(np.arange(N) == 3, 1e6, 1.0)  # nearly all of it is one row's
COLUMNS = {"amount": AMOUNT, "one": ONE, "sex": RNG.choice(["F", "M"], N)}
GOAL = "recall(value=amount) >= 0.8"


@pytest.fixture(scope="module")
def own():
    chosen, test = slice(0, 600), slice(600, None)
    model = LogisticRegression().fit(X[chosen], Y[chosen])
    columns = {name: values[chosen] for name, values in COLUMNS.items()}
    fitted = GoalClassifier([model], cv="prefit", goals=[GOAL], random_state=0)
    fitted.fit(X[chosen], Y[chosen], sensitive_features=columns)
    held_out = {name: values[test] for name, values in COLUMNS.items()}
    return session_of_model(fitted, X[test], Y[test], sensitive_features=held_out)


def test_the_picker_lists_columns_of_amounts(own):
    words = describe(own)["datasets"][0]
    assert words["amounts"] == ["amount", "one"]
    assert list(words["columns"]) == ["one", "sex"] or list(words["columns"]) == ["sex"]


def test_a_goal_on_amounts_is_answered(own):
    setting = Setting.of({"alpha": 1.0, "goals": [{"text": GOAL, "bound": 0.9}], "by": []})
    answer = own.answer(setting, exact=True)
    assert answer["kind"] == "answer"
    assert answer["goals"][0]["choice"]["holds"]
    assert answer["goals"][0]["choice"]["value"] >= 0.9


def test_amounts_that_one_row_has_are_hidden(own):
    setting = Setting.of({"alpha": 1.0, "goals": [{"text": "positive_rate(value=one) <= 0.9"}], "by": []})
    with pytest.raises(ValueError, match="would reveal single rows"):
        own.check(setting)
