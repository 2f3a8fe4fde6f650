"""First answers, and searches that a newer setting cancels."""

from dataclasses import replace

import pytest

from tests.explorer.sessions import session


def moved(setting, bound):
    """Return a setting with another bound of its goal on recall."""
    goals = [
        one._replace(goal=one.goal.with_bound(bound)) if "recall" in str(one.goal) else one for one in setting.goals
    ]
    return replace(setting, goals=tuple(goals))


@pytest.mark.parametrize("kind", ["score", "trained", "pool"])
def test_a_search_that_takes_long_is_answered_by_the_last_rule_and_then_exactly(kind, monkeypatch):
    asked = session(kind)
    last, other = asked.answer(asked.start), moved(asked.start, 0.72)
    assert not last["is_last"]
    monkeypatch.setattr("counterpoise.explorer.session._FIRST_SECONDS", 0.0)
    first = asked.answer(other)
    assert first["is_last"]
    assert first["setting"] == other.as_words()
    assert first["members"] == last["members"]
    assert first["value"] is first["lower"] is None
    values = [goal["choice"]["value"] for goal in first["goals"]]
    assert values == [goal["choice"]["value"] for goal in last["goals"]]
    exact = asked.answer(other, exact=True)
    assert not exact["is_last"]
    assert all(goal["choice"]["holds"] for goal in exact["goals"])


def test_a_last_rule_says_which_of_more_goals_it_misses(monkeypatch):
    asked = session()
    fewer = replace(asked.start, goals=tuple(one._replace(on=False) for one in asked.start.goals))
    asked.answer(fewer)
    monkeypatch.setattr("counterpoise.explorer.session._FIRST_SECONDS", 0.0)
    goals = asked.answer(moved(asked.start, 0.99))["goals"]
    assert [goal["price"] for goal in goals] == [None] * len(goals)
    assert not goals[1]["choice"]["holds"]
