"""Equalities and small groups on the page."""

import pytest

from counterpoise.explorer import Setting
from tests.explorer.inside import show_view
from tests.explorer.sessions import session

EQUAL = "positive_rate == 0.3 +- 0.01"


def test_the_slider_of_an_equality_moves_its_tolerance():
    own, by = session("score"), ["sex"]
    for tolerance in (0.01, 0.2):
        setting = Setting.of({"alpha": 1.0, "goals": [{"text": EQUAL, "bound": tolerance}], "by": by})
        answer = own.answer(setting, exact=True)
        (goal,) = answer["goals"]
        assert (goal["left"], goal["sign"], goal["sense"], goal["low"]) == ("positive_rate == 0.3", "+-", "<=", 0.0)
        assert goal["text"] == f"positive_rate == 0.3 +- {tolerance}"
        assert goal["choice"]["holds"]
        assert goal["choice"]["value"] <= tolerance + 1e-6
        assert "positive_rate = " in goal["choice"]["worst"]
    (found,) = show_view(own, Setting.of({"alpha": 1.0, "goals": [{"text": EQUAL}], "by": by}), "ranges")["ranges"]
    assert found["tightest"] == pytest.approx(0.0, abs=1e-6)  # a mixture has any rate
