"""Budgets of time: work that is cut short, and cancelled from outside."""

import pytest

from counterpoise._base import budget
from counterpoise._base.budget import OutOfTime, TimeLimit, advice, check_budget, choosing, is_advice_cut, within


def test_work_beyond_a_budget_ends_and_work_after_it_goes_on():
    with pytest.raises(OutOfTime), within(TimeLimit(0.0)):
        check_budget()
    check_budget()


def test_a_budget_that_is_cancelled_ends_what_is_inside_of_others():
    outer = TimeLimit()
    with within(outer), within(TimeLimit()):
        check_budget()
        outer.cancel()
        with pytest.raises(OutOfTime):
            check_budget()


def test_advice_keeps_what_was_found_in_time(monkeypatch):
    monkeypatch.setattr(budget, "ADVICE_SECONDS", -1e9)
    found = []
    with choosing():
        with advice():
            found.append("first")
            check_budget()
            found.append("second")
        assert found == ["first"]
        assert is_advice_cut()
    with choosing():
        assert not is_advice_cut()


def test_advice_does_not_survive_a_cancellation():
    outer, goes_on = TimeLimit(), False

    def advise():
        with advice():
            outer.cancel()
            check_budget()
        return True

    with within(outer), pytest.raises(OutOfTime):
        goes_on = advise()
    assert not goes_on
