"""Conditional demographic disparity against its definition, row by row, and wrong uses."""

import numpy as np
import pytest

from counterpoise import audit, conditional_disparities, goals
from counterpoise.goals import Table


def by_definition(accepted, is_group, strata):
    """Return the average over strata of the group's share of the rejected less its share of the accepted."""
    total = 0.0
    for stratum in set(strata.tolist()):
        inside = strata == stratum
        own, one = is_group[inside], accepted[inside]
        if 0 < one.sum() < one.size:
            total += inside.sum() * (own[~one].mean() - own[one].mean())
    return total / strata.size


@pytest.mark.parametrize("seed", range(15))
def test_every_group_has_the_disparity_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(5, 200))
    sex, job = rng.choice(["F", "M", "NA"], n_rows), rng.choice(["cook", "None", "true", "smith"], n_rows)
    sex[:2], decisions = ["F", "M"], rng.integers(0, 2, n_rows)
    decisions[:2] = [0, 1]
    shown = conditional_disparities(decisions, {"sex": sex}, {"job": job})
    for one in shown.groups:
        is_group = sex == one.group.removeprefix("sex=")
        assert one.n_rows == is_group.sum()
        assert one.conditional == pytest.approx(by_definition(decisions == 1, is_group, job), abs=1e-12)
        gap = is_group[decisions == 0].mean() - is_group[decisions == 1].mean()
        assert one.disparity == pytest.approx(gap, abs=1e-12)
    assert sum(one.conditional for one in shown.groups) == pytest.approx(0.0, abs=1e-12)
    table = Table(None, decisions, {"sex": sex, "job": job})
    goal = goals.conditional_disparity(by="sex", within="job")
    assert goal.value(decisions, table, classes=[0, 1]) == pytest.approx(max(one.conditional for one in shown.groups))
    order = rng.permutation(n_rows)
    assert conditional_disparities(decisions[order], {"sex": sex[order]}, {"job": job[order]}) == shown


def test_its_standard_error_is_how_much_it_varies():
    rng = np.random.default_rng(0)
    job = rng.integers(0, 3, 600)
    values, errors = [], []
    for _ in range(300):
        sex = rng.random(600) < 0.3 + 0.1 * job
        accepted = rng.random(600) < 0.2 + 0.2 * job
        one = conditional_disparities(accepted, sex, job).groups[0]
        values.append(one.conditional)
        errors.append(one.standard_error)
    assert np.std(values) == pytest.approx(np.mean(errors), rel=0.15)


ODD = (["NA", "None", "nan", "", " "], [1, 1.0, 2], ["1", "1.0", "01"], [None, "a", "A "], [np.nan, -0.0, 0.0, 7])


@pytest.mark.parametrize("values", ODD)
def test_a_goal_groups_odd_values_as_the_report_does(values):
    rng = np.random.default_rng(0)
    for n_rows in (8, 20, 40):
        sex, job, decisions = np.empty(n_rows, object), rng.choice(["a", "b"], n_rows), rng.integers(0, 2, n_rows)
        sex[:], decisions[:2] = [values[place] for place in rng.permutation(n_rows) % len(values)], [0, 1]
        shown = conditional_disparities(decisions, {"sex": sex}, {"job": job}).groups
        table = Table(None, decisions, {"sex": sex, "job": job})
        value = goals.conditional_disparity(by="sex", within="job").value(decisions, table, classes=[0, 1])
        assert value == pytest.approx(max(one.conditional for one in shown), abs=1e-12)


def test_audits_cover_the_disparity_of_the_population():
    rng = np.random.default_rng(1)
    job, missed, n_rows = np.arange(600) % 3, 0, 600
    of_women, accepted = 0.3 + 0.1 * np.arange(3), 0.3 + 0.1 * np.arange(3)
    rates = of_women * accepted + (1 - of_women) * (accepted + 0.3)
    truth = np.mean(of_women * ((1 - accepted) / (1 - rates) - accepted / rates))
    goal = "conditional_disparity(by=sex, within=job) <= 0.1"
    for _ in range(40):
        is_woman = rng.random(n_rows) < of_women[job]
        decisions = (rng.random(n_rows) < accepted[job] + 0.3 * ~is_woman).astype(int)
        columns = {"sex": np.where(is_woman, "F", "M"), "job": job}
        (row,) = audit(goal, decisions, Table(None, decisions, columns))
        missed += not row.low <= truth <= row.high
    assert missed <= 6
    assert (row.verdict, row.worst) == ("fails", "disparity of sex=F")
    (row,) = audit(goal, decisions, Table(None, decisions, columns, sample_weight=rng.random(n_rows) + 0.5))
    assert row.verdict == "undecided"
    assert row.note == "its bounds are of counts: of rows that weigh the same, and of decisions that are not drawn"


def test_strata_that_are_treated_alike_are_listed():
    shown = conditional_disparities(
        ["no", "no", "yes", "no"], {"sex": list("FMFM")}, {"job": ["cook", "cook", "smith", "smith"]}, pos_label="yes"
    )
    assert shown.notes == ("All are accepted, or all rejected, in job=cook: no disparity.",)
    assert [one.conditional for one in shown.groups] == [-0.5, 0.5]
    assert shown.groups[0].by_stratum == {"job=cook": 0.0, "job=smith": -1.0}
    assert "job=cook: no disparity." in str(shown)


WRONG = [
    (([], "F", "a"), "decisions must hold one decision for each row"),
    ((["yes", None], list("FM"), list("ab")), "none missing; got shape .* with 1 missing"),
    (([0, 1, 2], list("FMM"), list("abb")), "decisions must be of two classes, accepted or not; got 3 classes"),
    (([0, 1], list("FF"), list("ab")), "must make two groups or more; got group=F alone"),
    (([0, 1], list("FMM"), list("ab")), "sensitive_features must have a row for each decision, 2; got 3"),
    (([0, 1], list("FM"), None), "strata must hold a column, as in strata="),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_wrong_arguments_are_answered_in_a_sentence(arguments, message):
    with pytest.raises(ValueError, match=message):
        conditional_disparities(*arguments)


def test_too_many_groups_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"sensitive_features may make at most 100 combinations; got 101\. Merge"):
        conditional_disparities(rng.integers(0, 2, 101), np.arange(101), np.zeros(101))
