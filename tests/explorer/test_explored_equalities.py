"""Equalities and small groups on the page."""

import pytest

from counterpoise.explorer import Setting
from counterpoise.explorer.conversation import describe
from counterpoise.explorer.views import show_view
from tests.explorer.sessions import session

EQUAL = "positive_rate == 0.3 +- 0.01"
SMALL = "max_difference(recall, by=sex, min_rows={}) <= 0.3"


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


def test_the_page_says_how_many_small_groups_are_left_out_and_not_which():
    own = session("score")
    words = {"alpha": 1.0, "by": ["sex"]}
    (goal,) = own.answer(Setting.of(words | {"goals": [{"text": SMALL.format(20)}]}))["goals"]
    assert "left out" not in goal["choice"].get("worst", "")
    with pytest.raises(ValueError, match="leaves out all groups: the largest has"):
        own.answer(Setting.of(words | {"goals": [{"text": SMALL.format(5000)}]}))


def test_the_editor_knows_the_words_that_are_no_columns():
    hello = describe(session("score"))
    assert {"of", "within", "min_rows"} <= set(hello["reserved"])
    assert "==" not in hello["words"]
