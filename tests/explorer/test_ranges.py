"""The end of a feasible range: the optimum over every rule, whatever the goal's own bound, and no answer beyond it."""

import pytest

from counterpoise.explorer import Setting
from counterpoise.explorer.views import show_view
from tests.explorer.sessions import session

_ALIKE = "max_difference(positive_rate, by=sex) <= {}"


def asked(goals, alpha=0.6, by=("sex",)):
    return Setting.of({"alpha": alpha, "by": list(by), "goals": [{"text": text} for text in goals]})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["score", "trained", "pool"])
def test_where_a_range_ends_depends_on_the_other_goals_alone(kind):
    """Neither where the goal's slider stands nor what was asked before moves the end, and answers agree with it."""
    own = session(kind)

    def goals(bound):
        return asked([f"recall >= {bound}", "positive_rate <= 0.5", _ALIKE.format(0.3)], by=())

    ends = []
    for bound in (0.5, 0.7, 0.6, 0.3):
        own.cache.clear()  # each is found anew
        own.answer(goals(bound), exact=True)
        recall, _, alike = show_view(own, goals(bound), "ranges")["ranges"]
        ends.append(recall["tightest"])
        assert recall["free"] <= recall["tightest"]
        assert alike["free"] >= alike["tightest"]
    assert len(set(ends)) == 1, ends
    assert own.answer(goals(ends[0]), exact=True)["kind"] == "answer"
    assert own.answer(goals(ends[0] + 1e-4), exact=True)["kind"] == "unmet"


@pytest.mark.slow
def test_a_bound_that_is_met_lies_inside_of_its_range():
    """Of ratios too, whose end is searched for."""
    own = session()
    for precision in (0.6, 0.75, 0.85, 0.9):
        setting = asked(["recall >= 0.6", f"precision >= {precision}", _ALIKE.format(0.4)])
        if own.answer(setting, exact=True)["kind"] != "answer":
            continue
        for one, found in zip(setting.goals, show_view(own, setting, "ranges")["ranges"], strict=True):
            inside = one.goal.bound - found["tightest"]
            assert (inside if one.goal.sense == "<=" else -inside) >= -1e-6, (str(one.goal), found)
