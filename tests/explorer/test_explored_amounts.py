"""The page offers columns of amounts, answers goals on them, and hides those that rest on few rows."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from counterpoise import GoalClassifier
from counterpoise.explorer import Setting, session_of_model
from tests.explorer.inside import Conversation, show_view

N = 900
RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, N)
X = RNG.normal(size=(N, 3)) + Y[:, None]
AMOUNT = RNG.lognormal(5, 0.7, N)
ONE = np.where(np.arange(N) == 3, 1e6, 1.0)  # nearly all of it is one row's
PROFIT = np.where(Y == 1, AMOUNT, -AMOUNT)
SEX = RNG.choice(["F", "M"], N)
SECRETS = np.array([f"secret {number}" for number in range(N)])
GAPS = np.where(np.arange(N) == 7, np.nan, 1234.5)
COLUMNS = {"amount": AMOUNT, "one": ONE, "profit": PROFIT, "sex": SEX, "name": SECRETS, "gaps": GAPS}
GOAL = "recall(value=amount) >= 0.8"


@pytest.fixture(scope="module")
def own():
    chosen, test = slice(0, 600), slice(600, None)
    model = LogisticRegression().fit(X[chosen], Y[chosen])
    columns = {name: values[chosen] for name, values in COLUMNS.items()}
    fitted = GoalClassifier([model], cv="prefit", goals=[GOAL], random_state=0)
    fitted.fit(X[chosen], Y[chosen], sensitive_features=columns)
    held_out = {name: values[test] for name, values in COLUMNS.items()}
    return session_of_model(fitted, X[test], Y[test], sensitive_features=held_out, largest_value={"amount": 5000})


def test_the_picker_lists_columns_of_amounts_and_sums(own):
    words = json.loads(Conversation(own).hello)["datasets"][0]
    assert words["amounts"] == ["amount", "one"]
    assert words["profits"] == ["profit"]
    assert {"cost", "total"} <= {metric["name"] for metric in json.loads(Conversation(own).hello)["metrics"]}
    assert "sex" in words["columns"]
    assert not {"amount", "profit", "name"} & set(words["columns"])


def test_amounts_that_one_row_has_are_hidden(own):
    setting = Setting.of({"alpha": 1.0, "goals": [{"text": "positive_rate(value=one) <= 0.9"}], "by": []})
    with pytest.raises(ValueError, match="would reveal single rows"):
        own.check(setting)


CHOSEN = slice(0, 600)
SUMS = {  # goals, each with the range of its value on the selection rows
    "total(value=profit) >= 20000": (PROFIT[CHOSEN][Y[CHOSEN] == 0].sum(), PROFIT[CHOSEN][Y[CHOSEN] == 1].sum()),
    "total(sex=F, value=amount) <= 30000": (0.0, AMOUNT[CHOSEN][SEX[CHOSEN] == "F"].sum()),
    "cost({0->1: 5, 1->0: amount}) <= 80": (
        0.0,
        (AMOUNT[CHOSEN] * Y[CHOSEN]).sum() / 600 + 5 * (Y[CHOSEN] == 0).sum() / 600,
    ),
    "abs(total(sex=F, value=amount) - total(sex=M, value=amount)) <= 9000": (
        0.0,
        max(AMOUNT[CHOSEN][SEX[CHOSEN] == sex].sum() for sex in "FM"),
    ),
}


@pytest.mark.parametrize("text", SUMS)
def test_the_slider_of_a_sum_has_the_range_of_the_rows(own, text):
    words = {"alpha": 1.0, "goals": [{"text": text}], "by": []}
    setting = Setting.of(words)
    own.check(setting)
    (goal,) = own.answer(setting, exact=True)["goals"]
    assert (goal["low"], goal["high"]) == pytest.approx(SUMS[text], rel=1e-4)
    assert goal["choice"]["holds"]
    (found,) = show_view(own, setting, "ranges")["ranges"]
    assert goal["low"] - 1e-6 <= found["tightest"] <= goal["high"]
    tight = Setting.of(words | {"goals": [{"text": text, "bound": found["tightest"]}]})
    assert own.answer(tight, exact=True)["goals"][0]["choice"]["holds"]


def test_held_out_rows_judge_amounts_with_a_limit_and_say_that_one_is_missing(own):
    words = {"alpha": 1.0, "goals": [{"text": GOAL}, {"text": "cost({1->0: profit}) <= 80"}], "by": []}
    known, unknown = (goal["held_out"] for goal in own.answer(Setting.of(words), exact=True)["goals"])
    assert known["low"] < known["estimate"] < known["high"]
    assert "needs largest_value, the largest amount in column 'profit'" in unknown["note"]
    assert not any(f"{amount:g}" in unknown["note"] for amount in np.abs(PROFIT))


@pytest.mark.parametrize(
    "text",
    [
        "recall(value=name) >= 0.5",
        "recall(name<=3) >= 0.5",
        "total(value=name) >= 1",
        "cost({1->0: name}) <= 1",
        "positive_rate(value=profit) >= 0.5",
        "total(value=gaps) >= 1",
        "precision(value=gaps) >= 0.5",
        "abs(recall(value=amount) - recall(sex=F, value=gaps)) <= 0.5",
    ],
)
def test_no_message_quotes_a_value_of_a_row(own, text):
    setting = Setting.of({"alpha": 1.0, "goals": [{"text": text}], "by": []})
    with pytest.raises(ValueError, match="holds values that this goal cannot use") as refusal:
        own.check(setting)
    values = [*SECRETS, *(f"{amount:g}" for amount in AMOUNT), "1234.5"]
    assert not any(value in str(refusal.value) for value in values)
    assert "row" not in str(refusal.value)
