"""What a report advises: by the verdicts, by what was set already, and by how far rows are from deciding."""

import math

import pytest
from run_folders import result_of, row

pytest.importorskip("jinja2", reason="jinja2 is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from counterpoise.report.overview import next_steps
from counterpoise.report.rates import deferral_table
from counterpoise.report.sections import objective_sentence
from counterpoise.report.wording import MISSING, number, percent

pytestmark = pytest.mark.usefixtures("undrawn")

AUDIT = "Repeat the audit on new rows from time to time."
SET = "Set confidence = 0.9, which keeps a margin inside of each bound, so that the goals hold on new rows."
RAISE = "Or raise confidence above 0.9, which keeps larger margins."
LOOSEN = "Loosen a bound, add rows, or let decisions use more columns (method.parameters.by)."
MISSED = "Goal {} is missed by {} on the test rows."


def record(*goals, settings=None, met_on="validation", texts=None, more=()):
    """Return the record of goals, each a verdict and by how much its bound is missed."""
    rows = [row("mixture", "error", "test", 0.1)]
    for place, (verdict, violation) in enumerate(goals, start=1):
        parts = {"estimate": 0.8, "low": math.nan, "high": math.nan, "bound": 0.7, "rows": 100}
        for part, value in (parts | {"verdict": verdict, "violation": violation}).items():
            rows.append(row("mixture", f"goal {part}", "test", value, settings=f"goal {place}"))
    named = [{"name": f"goal {place}", "text": "recall >= 0.7"} for place in range(1, len(goals) + 1)]
    words = {"goals": named, "met_on": met_on, **(texts or {})}
    return result_of((*rows, *more), words, settings or {}, {})


def steps(*goals, **given):
    found = record(*goals, **given)
    return next_steps(found)


HOLDS, OPEN_MET, OPEN_MISSED, FAILS = (1, 0.0), (0, 0.0), (0, 0.02), (-1, 0.1)


@pytest.mark.parametrize(
    ("goals", "settings", "told"),
    [
        ((HOLDS, HOLDS), {}, [AUDIT]),
        ((HOLDS, OPEN_MET), {}, []),
        ((HOLDS, OPEN_MISSED), {"confidence": "none"}, [MISSED.format(2, "0.0200"), SET]),
        ((OPEN_MET, FAILS), {"confidence": "none"}, [MISSED.format(2, "0.1000"), SET]),
        ((HOLDS, FAILS), {"confidence": 0.9}, [MISSED.format(2, "0.1000"), LOOSEN]),
        ((HOLDS, (math.nan, math.nan)), {}, []),
        ((), {}, []),
    ],
)
def test_the_advice_follows_from_the_verdicts_and_from_what_is_set(goals, settings, told):
    assert steps(*goals, settings=settings) == told


def test_where_a_confidence_was_reached_and_a_goal_is_undecided_a_higher_one_is_advised():
    assert steps(HOLDS, OPEN_MET, texts={"confidence": 0.9}) == [RAISE]


def test_where_nothing_was_chosen_inside_of_the_goals_no_margin_is_advised():
    assert steps(FAILS, met_on="") == [MISSED.format(1, "0.1000")]


def standing(estimate, low, high, bound, rows, sense=">="):
    values = {"estimate": estimate, "low": low, "high": high, "bound": bound, "rows": rows, "verdict": 0}
    found = [
        row("mixture", f"goal {part}", "test", value, settings="goal 1")
        for part, value in (values | {"violation": 0.0}).items()
    ]
    texts = {"goals": [{"name": "goal 1", "text": f"recall {sense} {bound}"}]}
    kept = result_of((row("mixture", "error", "test", 0.1), *found), texts, {}, {})
    return next_steps(kept)


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ((0.9, 0.7, 0.95, 0.8, 100, ">="), "4"),  # the side of the bound is twice too wide
        ((0.1, 0.05, 0.4, 0.2, 100, "<="), "9"),  # three times
        ((0.9, 0.6, 0.99, 0.89, 100, ">="), "900"),  # to two digits
        ((0.9, 0.7, 0.95, 0.899, 100, ">="), None),  # more than a thousand times as many: no advice
        ((0.9, 0.85, 0.95, 0.8, 100, ">="), None),  # no more than there are
    ],
)
def test_how_many_times_the_test_rows_would_decide_follows_from_the_side_of_the_bound(given, rows):
    told = " ".join(standing(*given))
    assert (f": {rows} times as many test rows would show it" in told) == (rows is not None)
    assert bool(told) == (rows is not None)


@pytest.mark.parametrize(("cost", "is_told"), [(0.03, True), (0.00001, False), (None, False)])
def test_the_price_of_margins_is_shown_where_it_counts(cost, is_told):
    told = steps(HOLDS, texts={"margin_cost": cost, "objective": {"kind": "rate", "text": "fpr"}})
    assert told == [AUDIT, *([f"The margins for new rows raise fpr by {number(cost)}."] if is_told else [])]


@pytest.mark.parametrize("value", [0.0733, math.nan])
def test_an_objective_that_was_not_measured_is_not_told(value):
    more = [row("mixture", "objective", "test", value), row("first model", "objective", "test", 0.2)]
    found = record(more=more, texts={"objective": {"kind": "rate", "text": "fpr"}})
    if math.isnan(value):
        assert objective_sentence(found) == ""
    else:
        beside = f"(plain training: {number(0.2)})"
        assert objective_sentence(found) == f"The objective, fpr, is {number(value)} on the test rows {beside}."
    tail = record(more=more, texts={"objective": {"kind": "cvar"}})
    assert objective_sentence(tail) == ""


def test_where_nobody_is_deferred_no_group_is_told_as_a_multiple():
    more = [
        row("mixture", f"group {part}", "test", value, settings=f"group {place}")
        for place, rate in enumerate((0.0, 0.0))
        for part, value in {"n_samples": 50, "defer_rate": rate, "error_rate": 0.2, "decided_error_rate": 0.2}.items()
    ]
    found = deferral_table(record(more=more))
    assert [line[2:4] for line in found.rows] == [[percent(0.0), MISSING]] * 2


def test_every_missed_goal_is_named_the_worst_first():
    told = steps(OPEN_MISSED, (-1, 0.05), HOLDS, FAILS, (0, 0.3))
    named = [MISSED.format(4, "0.1000"), MISSED.format(2, "0.0500"), MISSED.format(5, "0.3000")]
    assert told[:4] == [*named, MISSED.format(1, "0.0200")]


@pytest.mark.parametrize(("violation", "error", "told"), [(0.0, 0.2, ["goal 1"]), (0.3, 0.05, ["the share wrong"])])
def test_where_the_deployed_model_is_better_the_report_says_so(violation, error, told):
    more = [row("deployed model", "error", "test", error)]
    for part, value in {"estimate": 0.75, "violation": violation}.items():
        more.append(row("deployed model", f"goal {part}", "test", value, settings="goal 1"))
    (found,) = [one for one in steps(FAILS, more=more) if one.startswith("The deployed model is better in ")]
    better, _, worse = found.partition(", and worse in ")
    assert [name for name in ("goal 1", "the share wrong") if name in better] == told
    assert [name for name in ("goal 1", "the share wrong") if name in worse] == [
        name for name in ("goal 1", "the share wrong") if name not in told
    ]
    assert not [one for one in steps(HOLDS, more=more[1:]) if one.startswith("The deployed model")]


def test_ways_that_were_tried_stand_in_the_advice():
    found = record(FAILS).model_copy(update={"advice": ["If decisions may use sex, all goals are met."]})
    assert "If decisions may use sex, all goals are met." in next_steps(found)


def test_rounding_errors_of_a_share_do_not_show():
    assert percent(0.2765) == percent(0.27649999999999725)
