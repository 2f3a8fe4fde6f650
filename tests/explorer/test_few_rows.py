"""Nothing is told that so few rows are behind that it would tell about single ones."""

import json

import numpy as np
import pytest

from counterpoise import MixtureClassifier
from counterpoise.explorer import Setting, session_of_model
from tests.explorer.inside import Conversation, page_of, show_view
from tests.explorer.sessions import CHOSEN, TEST, X, Y, fitted, session

AGE = np.random.default_rng(0).uniform(20, 70, len(Y)).round(2)
YOUNGEST = sorted(AGE[CHOSEN])


def rows_of(columns, rows):
    return {name: values[rows] for name, values in columns.items()}


@pytest.fixture(scope="module")
def tiny():
    """Return a session whose model has a goal on nine rows."""
    group = np.where(np.arange(len(Y)) % 2, "a", "b").astype(object)
    group[CHOSEN.start : CHOSEN.start + 9] = group[TEST.start : TEST.start + 9] = "tiny"
    columns = {"group": group, "age": AGE, "half": np.where(np.arange(len(Y)) % 3, "x", "y")}
    goals = ["recall >= 0.6", "error_rate(group=tiny) <= 0.9"]
    pool = MixtureClassifier(fitted("pool").estimators_, alpha=0.6, goals=goals, random_state=0)
    pool = pool.fit(X[CHOSEN], Y[CHOSEN], sensitive_features=rows_of(columns, CHOSEN))
    return session_of_model(pool, X[TEST], Y[TEST], sensitive_features=rows_of(columns, TEST))


def read(own, text):
    message = {"type": "read", "text": text, "setting": own.start.as_words()}
    return json.loads(Conversation(own).reply(json.dumps(message)))


@pytest.mark.parametrize(
    "text",
    [
        "recall(half=x) >= 0.5",
        "positive_rate(half=x) >= 0.8 * positive_rate(half=y)",
        "max_difference(recall, by=half) <= 0.2",
        "precision(30<=age<50) >= 0.5",
        f"positive_rate(age>{YOUNGEST[60]}) >= 0.5",
    ],
)
def test_goals_on_enough_rows_are_read(tiny, text):
    assert read(tiny, text)["goal"]["text"] == text


@pytest.mark.parametrize(
    "text",
    [
        "recall(group=tiny) >= 0.5",
        f"positive_rate(age={YOUNGEST[0]}) >= 0.5",
        f"positive_rate(age<={YOUNGEST[5]}) >= 0.5",
        f"positive_rate(age>{YOUNGEST[5]}) >= 0.5",  # all but six
        "max_difference(recall, by=group) <= 0.2",
        "max_difference(recall, by=age) <= 0.2",
        "recall(group=nobody) >= 0.5",
    ],
)
def test_goals_on_few_rows_or_all_but_few_are_refused_and_no_value_of_a_row_is_told(tiny, text):
    refused = read(tiny, text)
    assert refused["type"] == "refused"
    words = refused["message"].replace(text, "")
    assert not any(str(age) in words for age in AGE if str(age) not in text)
    assert "tiny" not in words or "tiny" in text


def test_what_a_page_is_told_of_a_small_goal_has_no_number(tiny):
    told = tiny.answer(tiny.start, exact=True)
    recall, small = told["goals"]
    assert recall["choice"]["holds"]
    assert recall["held_out"]["rows"] > 50
    assert small["choice"] == {"note": "fewer than 10 rows"}
    assert small["held_out"] == {"verdict": "not asked", "note": "fewer than 10 rows"}
    assert small["price"] is None
    assert show_view(tiny, tiny.start, "verdicts")["verdicts"][1] == small["held_out"]
    assert [one["place"] for one in show_view(tiny, tiny.start, "ranges")["ranges"]] == [0]
    with pytest.raises(
        ValueError, match="is computed on fewer than 10 rows, so the explorer does not show its frontier"
    ):
        show_view(tiny, tiny.start, "frontier", x=1)
    assert [one["group"] for one in told["rates"]["groups"]] in (["all", "group=a"], ["all", "group=b"])


def test_a_file_has_no_number_of_a_small_goal(tiny):
    kept = json.loads(page_of(tiny).split('id="explorer-data">')[1].split("</script>")[0])
    assert {json.dumps(one["goals"][1]["held_out"]) for one in kept["answers"] if one["kind"] == "answer"} == {
        '{"verdict": "not asked", "note": "fewer than 10 rows"}'
    }


def test_ratios_out_of_few_rows_have_no_number():
    explored = session("defer")
    goals = ["positive_rate <= 0.015", "precision >= 0.01", "decided_error_rate <= 1"]
    asked = Setting.of({"alpha": 1.0, "goals": [{"text": text} for text in goals], "by": ["sex"], "defer": 0.3})
    told = explored.answer(asked, exact=True)
    assert told["goals"][1]["choice"] == {"note": "fewer than 10 rows", "holds": True}
    assert told["goals"][1]["held_out"] == {"verdict": "not asked", "note": "fewer than 10 rows"}
    assert told["goals"][2]["held_out"]["rows"] > 50
    with pytest.raises(ValueError, match="the explorer does not show its frontier"):
        show_view(explored, asked, "frontier", x=1)


def test_a_tail_has_ten_rows():
    explored = session()
    assert explored.least_alpha == pytest.approx(10 / 400)
    with pytest.raises(ValueError, match=r"alpha must be at least .* A tail of fewer than 10 rows would reveal"):
        explored.check(Setting(alpha=0.02))
    assert min(show_view(explored, explored.start, "curve")["alphas"]) >= 0.025


def test_a_goal_on_deferred_rows_says_what_to_do_on_the_page():
    talk = Conversation(session())
    asked = {"type": "read", "text": "defer_rate <= 0.1", "setting": {"alpha": 0.5}}
    told = json.loads(talk.reply(json.dumps(asked)))
    assert told["message"].endswith("no row is deferred. Allow deferral under Details, then add it.")
    asked["setting"] |= {"defer": 0.2}
    assert json.loads(talk.reply(json.dumps(asked)))["goal"]["text"] == asked["text"]


def test_rules_look_only_at_what_is_offered():
    talk = Conversation(session())
    setting = {"alpha": 0.5, "by": ["age"]}
    for message in ({"type": "set"}, {"type": "export", "what": "goals"}, {"type": "view", "view": "curve"}):
        told = json.loads(talk.reply(json.dumps({**message, "setting": setting})))
        assert told["message"] == "The rules cannot use 'age' here. Columns that they can use: 'sex'."
        assert told["field"] == "by"
