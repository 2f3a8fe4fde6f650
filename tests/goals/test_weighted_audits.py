"""Audits of weighted rows: right as often as promised whatever rows were not drawn, or refused with one sentence."""

import numpy as np
import pytest
from weighted_populations import GOALS, POPULATIONS

from counterpoise import (
    audit,
    certify,
)
from counterpoise.goals import Table


def monte_carlo(risk, n_samples):
    """Return how many of the samples may be wrong, three standard deviations of them allowed."""
    return n_samples * risk + 3 * np.sqrt(n_samples * risk * (1 - risk))


@pytest.mark.parametrize("n_rows", [50, 100, 200])
def test_heavy_rows_that_were_not_drawn_do_not_make_a_goal_hold(n_rows):
    """A hundredth of the rows weighs 20 and is wrong: without a limit "holds" in 60, 38 and 12 % of the samples."""
    people = POPULATIONS["heavy, wrong and unseen"]
    assert people.truth("error_rate <= 0.1") > 0.15
    seeds = range(40)
    found = [
        audit("error_rate <= 0.1", *people.drawn(np.random.default_rng(seed), n_rows))[0].verdict for seed in seeds
    ]
    assert found.count("holds") <= monte_carlo(0.05, len(seeds))


@pytest.mark.parametrize("text", GOALS.values(), ids=GOALS.keys())
def test_enough_rows_decide(text):
    """Verdicts are right, and there are some."""
    people = POPULATIONS["frequencies"]
    truth = people.truth(text)
    for away, sense in ((0.12, "<="), (-0.12, ">=")):
        left, _, right = text.replace(" >= ", " <= ").partition(" <= ")
        goal = f"{left} {sense} {''.join(right.rpartition('+ ')[:2])}{truth + away}"
        (row,) = audit(goal, *people.drawn(np.random.default_rng(0), 6000))
        assert row.verdict == "holds", goal


ROWS = {"y": [1, 0] * 30, "sample_weight": [1.0, 2.0, 3.0] * 20}


@pytest.mark.parametrize("goal", ["recall >= 0.5", "recall(group=a) >= recall(group=b)"])
def test_weights_that_differ_need_a_limit(goal):
    told = (
        r"Dataset 'train' needs largest_weight, the largest weight that a row .* "
        r"\(the lightest is 0.333 times the heaviest\).*leave the weights out\. Needed by recall"
    )
    groups = {"sensitive_features": ["a", "a", "b"] * 20}
    with pytest.raises(ValueError, match=told):
        certify([1] * 60, goal, **ROWS, **groups)
    with pytest.raises(ValueError, match=told):
        audit(goal, [1] * 60, Table(None, **ROWS, **groups))
    assert certify([1] * 60, goal, **ROWS, **groups, largest_weight=3)[0].largest_weights == (("train", 3.0),)


def test_weights_of_zero_differ_from_others():
    table = Table(None, [1, 0] * 30, sample_weight=[1.0, 0.0, 1.0] * 20)
    with pytest.raises(ValueError, match="needs largest_weight"):
        audit("recall >= 0.5", [1] * 60, table)


def test_a_dataset_that_no_goal_speaks_of_needs_nothing():
    mail = Table(None, **ROWS)
    assert certify([1, 0] * 30, "recall >= 0.5", y=[1, 0] * 30, datasets={"mail": mail}).holds


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"sample_weight": [1, 7, 2], "largest_weight": 5},
            "every weight .* got 5, but row 1 weighs 7",
        ),
        ({"largest_weight": 5}, "got 5 and no sample_weight"),
        ({"sample_weight": [1, 7, 2], "largest_weight": 0}, "largest_weight must be finite and above 0; got 0"),
        ({"sample_weight": [1, 7, 2], "largest_weight": float("nan")}, "largest_weight must be finite and above 0"),
    ],
)
def test_a_limit_that_is_none_is_refused(given, told):
    with pytest.raises(ValueError, match=told):
        Table(None, [0, 1, 1], **given)
    with pytest.raises(ValueError, match=told):
        certify([0, 1, 1], "recall >= 0.5", None, [0, 1, 1], **given)


def test_a_limit_is_a_number():
    with pytest.raises(TypeError, match="largest_weight must be a number above 0; got '20'"):
        Table(None, [0, 1], sample_weight=[1, 2], largest_weight="20")


def test_only_the_ratio_of_weights_and_limit_matters():
    decided, table = POPULATIONS["lognormal"].drawn(np.random.default_rng(0), 200)
    scaled = Table(None, table.y, table.column("group"), sample_weight=1e12 * table.sample_weight, largest_weight=4e12)
    again = Table(None, table.y, table.column("group"), sample_weight=table.sample_weight, largest_weight=4)
    for text in GOALS.values():
        one, other = audit(text, decided, scaled)[0], audit(text, decided, again)[0]
        np.testing.assert_allclose(one[1:6], other[1:6], atol=1e-9)


def test_an_audit_says_which_limit_it_rests_on():
    decided, table = POPULATIONS["by group"].drawn(np.random.default_rng(0), 200)
    told = str(audit([*GOALS.values()], decided, table)).splitlines()[-1]
    assert told.endswith("with confidence 0.95 if no row of train weighs more than 5.")
    assert repr(table) == "Table(n_samples=200, labelled, largest_weight=5, columns=['group'])"
    plain = Table(None, table.y, table.column("group"))
    assert str(audit(GOALS["one rate"], decided, plain)).endswith("with confidence 0.95.")


@pytest.mark.parametrize(("text", "most"), [("recall >= 0.9", 1), ("error_rate <= 0.05", 10)])
def test_so_many_rows_as_the_note_says_are_enough_and_no_fewer(text, most):
    def judged(n_rows):
        return audit(
            text, [1] * n_rows, Table(None, [1] * n_rows, sample_weight=[2] * n_rows, largest_weight=2 * most)
        )[0]

    few = judged(20)
    assert few.verdict == "undecided"
    needed = next(int(word) for word in few.note.split() if word.isdigit())
    assert [judged(needed - 1).verdict, judged(needed).verdict] == ["undecided", "holds"]
