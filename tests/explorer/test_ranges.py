"""The end of a feasible range: the optimum over every rule, whatever the goal's own bound, and no answer beyond it."""

import pytest

from counterpoise.explorer import Setting
from tests.explorer.inside import show_view
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
