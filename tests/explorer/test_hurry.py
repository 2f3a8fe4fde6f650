"""First answers, and searches that a newer setting cancels."""

import threading
from dataclasses import replace

import pytest

from counterpoise._base import budget
from counterpoise._base.budget import check_budget
from counterpoise.explorer import session as sessions
from counterpoise.explorer.conversation import Worker
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
    monkeypatch.setattr(sessions, "_FIRST_SECONDS", 0.0)
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
    monkeypatch.setattr(sessions, "_FIRST_SECONDS", 0.0)
    goals = asked.answer(moved(asked.start, 0.99))["goals"]
    assert [goal["price"] for goal in goals] == [None] * len(goals)
    assert not goals[1]["choice"]["holds"]


def test_a_cancelled_search_ends_in_the_middle_of_a_step():
    worker, has_begun, replies = Worker(), threading.Event(), []

    def endless():
        has_begun.set()
        while True:
            check_budget()
        yield "never"

    def next_one():
        yield "next"

    has_ended = threading.Event()

    def send(text):
        replies.append(text)
        has_ended.set()

    job = worker.submit(endless(), send, urgent=True)
    assert has_begun.wait(60)
    job.cancel()
    worker.submit(next_one(), send, urgent=True)
    assert has_ended.wait(60)
    worker.close()
    assert replies == ["next"]


def test_a_conflict_without_time_for_its_bounds_names_its_goals(monkeypatch):
    monkeypatch.setattr(budget, "ADVICE_SECONDS", -1e9)
    asked = session()
    answer = asked.conflict(moved(asked.start, 0.999))
    assert answer["kind"] == "infeasible"
    assert answer["conflict"]
    assert answer["message"].endswith("The search for bounds ended for lack of time: others may be met too.")
