"""Two bounds on one rate that contradict each other: which are refused, and what is offered, by brute force."""

import itertools

import numpy as np
import pytest

from counterpoise.goals import InfeasibleGoals, Table, as_goals
from counterpoise.goals.binding import Views
from counterpoise.goals.bound_goals import check_contradictions
from counterpoise.goals.tables import as_tables, classes_of

Y = np.array([0, 0, 0, 1, 1])
RATES = [
    "recall",
    "error_rate",
    "1 - positive_rate",
    "recall - false_positive_rate",
    "cost({0->1: 2, 1->0: 5})",
    "3e6 * recall",
]


def check(*texts, table=None, deferred=None):
    tables = as_tables(Table(None, Y) if table is None else table)
    check_contradictions(as_goals(texts), Views(tables, classes_of(tables)._replace(deferred=deferred)))


def reach(rate, table):
    """Return the least and the largest value of a rate over all predictions."""
    goal = as_goals([f"{rate} <= 0.5"])[0]
    found = [goal.evaluate(np.array(one), table).value for one in itertools.product([0, 1], repeat=Y.size)]
    return min(found), max(found)


@pytest.mark.parametrize("rate", RATES)
def test_bounds_are_offered_where_predictions_reach_them(rate):
    table = Table(None, Y)
    low, high = reach(rate, table)
    inside = low + 0.25 * (high - low), low + 0.75 * (high - low)
    for lower, upper in ((inside[1], inside[0]), (inside[1], low - 1.0), (high + 1.0, inside[0])):
        goals = as_goals([f"{rate} >= {lower!r}", f"{rate} <= {upper!r}"])
        with pytest.raises(InfeasibleGoals) as error:
            check(*map(str, goals))
        found = error.value
        assert found.conflict == goals
        assert found.least_violation == pytest.approx(lower - upper)
        wanted = {goals[0]: upper} if low <= upper else {}
        wanted |= {goals[1]: lower} if lower <= high else {}
        assert found.nearest_bounds == pytest.approx(wanted)
        assert set(found.held_by) == set(wanted)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("apart", [0.0, 1e-10, -0.1])
def test_bounds_that_agree_up_to_rounding_are_kept(rate, apart):
    size = 3e6 if "3e6" in rate else 1.0
    check(f"{rate} >= {0.4 * size + apart * size!r}", f"{rate} <= {0.4 * size!r}")


def test_other_rates_rows_and_ratios_do_not_contradict():
    check("recall >= 0.9", "error_rate <= 0.1", "false_positive_rate <= 0.1")
    check("precision >= 0.9", "precision <= 0.1")  # nothing is predicted positive
    table = Table(None, Y, {"sex": list("FMFMF")})
    check("positive_rate(sex=F) >= 0.9", "positive_rate(sex=M) <= 0.1", table=table)


def test_rates_that_are_equal_for_decided_rows_contradict_unless_some_are_deferred():
    goals = ["negative_rate <= 0.1", "1 - positive_rate >= 0.9"]
    with pytest.raises(InfeasibleGoals):
        check(*goals)
    check(*goals, deferred=True)


def test_a_bound_is_offered_only_where_it_is_enough():
    with pytest.raises(InfeasibleGoals) as error:
        check("recall >= 0.9", "recall >= 0.8", "recall <= 0.1")
    assert [(str(goal), bound) for goal, bound in error.value.nearest_bounds.items()] == [("recall <= 0.1", 0.9)]
    with pytest.raises(InfeasibleGoals) as error:
        check("recall >= 0.9", "error_rate <= 0.1", "recall <= 0.1")
    assert not error.value.ways_out
