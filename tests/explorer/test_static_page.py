"""The explorer as a file: answers of the session itself, nothing of small groups, and no markup from the data."""

import json
import re

import numpy as np
import pytest

from counterpoise import MixtureClassifier, audit
from counterpoise.explorer import Setting, session_of_model
from tests.explorer.inside import page_of, show_view
from tests.explorer.sessions import CHOSEN, GOALS, TEST, X, Y, fitted, pool_as_file, session

HOSTILE = "</script><script>alert(1)</script>"


def kept_in(page):
    return json.loads(re.search(r'id="explorer-data">(.*?)</script>', page)[1])


@pytest.mark.slow
def test_the_answers_of_a_file_are_those_of_the_session():
    own = session("pool")
    kept = kept_in(pool_as_file())
    assert len(kept["answers"]) > 20
    assert Setting.of(kept["answers"][0]["setting"]) == own.start
    for told in kept["answers"][::9]:
        found = own.answer(Setting.of(told["setting"]), exact=True)
        assert found["kind"] == ("answer" if told["kind"] == "answer" else "unmet")
        assert told.get("value") == pytest.approx(found.get("value"), abs=2e-4)
    start = kept["answers"][0]
    assert start["views"]["verdicts"] == show_view(own, own.start, "verdicts")


def test_a_file_opens_with_the_verdicts_of_the_audit_in_its_words():
    """Intervals are wider while a value is dragged: a page that never moves must not begin with those."""
    kept = [told for told in kept_in(pool_as_file())["answers"] if told["kind"] == "answer"]
    for told in kept:
        assert [goal["held_out"] for goal in told["goals"]] == told["views"]["verdicts"]["verdicts"]
    chances = fitted("pool").decision_proba(X[TEST])
    library = audit(GOALS[1:], chances, Y[TEST], kind="probabilities")
    words = [goal["held_out"]["words"] for goal in kept[0]["goals"]]
    assert words == [one.words for one in library] == [one.texts["verdict"] for one in library]


def test_each_goal_of_a_file_can_be_switched_off_and_what_cannot_be_met_says_so():
    kept = kept_in(pool_as_file())["answers"]
    switched = [[goal["on"] for goal in told["setting"]["goals"]] for told in kept]
    assert (
        switched.count([False, True])
        == switched.count([True, False])
        == len({told["setting"]["alpha"] for told in kept})
    )
    unmet = [told for told in kept if told["kind"] != "answer"]
    assert unmet
    assert all("cannot hold together" in told["message"] and not told["ways"] for told in unmet)


def with_few_rows(**asked):
    """Return a session of models, nine of whose rows are of a group of their own."""
    group = np.where(np.arange(len(Y)) % 2 == 0, HOSTILE, "b").astype(object)
    for rows in (TEST, CHOSEN):
        group[rows.start : rows.start + 9] = "rare"
    pool = MixtureClassifier(fitted("pool").estimators_, alpha=0.6, random_state=0, **asked)
    pool = pool.fit(X[CHOSEN], Y[CHOSEN], sensitive_features={"group": group[CHOSEN]})
    return session_of_model(pool, X[TEST], Y[TEST], sensitive_features={"group": group[TEST]})


def test_of_a_goal_on_few_rows_a_file_tells_no_number():
    kept = kept_in(page_of(with_few_rows(goals=["error_rate(group=rare) <= 0.4"])))["answers"]
    goals = [goal for told in kept if told["kind"] == "answer" for goal in told["goals"]]
    assert {goal["bound"] for goal in goals} == {0.4}
    assert all(goal["choice"] == {"note": "fewer than 10 rows"} and goal["price"] is None for goal in goals)
    verdicts = [one for told in kept if told["kind"] == "answer" for one in told["views"]["verdicts"]["verdicts"]]
    assert all(one == {"verdict": "not asked", "note": "fewer than 10 rows"} for one in verdicts)


def test_of_a_conflict_about_few_rows_no_bound_is_told():
    own = with_few_rows(goals=["error_rate(group=rare) <= 0.4"])
    asked = [{"text": "error_rate(group=rare) <= 0"}, {"text": "positive_rate >= 0.9"}]
    told = own.conflict(Setting.of({"alpha": 0.6, "goals": asked}))
    assert (told["kind"], told["message"], told["ways"]) == ("infeasible", "These goals cannot hold together.", [])


def test_groups_under_ten_rows_are_hidden_and_texts_cannot_end_the_script():
    page = page_of(with_few_rows())
    assert "rare" not in page
    assert page.count("<script") == 2
    assert HOSTILE in [text for one in kept_in(page)["hello"]["datasets"] for text in one["columns"]["group"]]
