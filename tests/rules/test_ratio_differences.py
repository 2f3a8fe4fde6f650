"""Goals on how far ratios are apart: one rule against a look at every rule, mixtures against programs of HiGHS."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import counterpoise as cp
import counterpoise.goals as goals_module
from counterpoise.goals import (
    Table,
    bind,
    parse_goal,
    precision,
)


def rows(seed=0, n=400):
    rng = np.random.default_rng(seed)
    score, sex = np.round(rng.normal(size=n), 2), rng.choice(["F", "M"], n)
    y = (score + rng.normal(size=n) > 0.8 - 0.5 * (sex == "F")).astype(int)
    return score, y, sex


def fitted(goals, *, confidence=None, data=None, **options):
    score, y, sex = rows() if data is None else data
    model = cp.GoalClassifier([score], cv="prefit", goals=goals, confidence=confidence, random_state=0, **options)
    return model.fit(np.arange(len(y))[:, None], y, sensitive_features={"sex": sex})


GOAL = "max_difference(precision, by=sex) <= 0.05"


def test_values_are_those_of_the_groups_and_groups_without_a_value_are_left_out():
    table = Table(None, y=[1, 0, 1, 1, 0], sensitive_features={"sex": list("FFMMX")})
    goal = parse_goal("max_difference(precision, by=sex) <= 0.1")
    check = goal.evaluate([1, 1, 1, 1, 0], table)
    assert (check.value, check.holds) == (0.5, False)
    assert "precision(sex=M) - precision(sex=F)" in str(check)
    assert goal.evaluate([0, 0, 0, 0, 0], table).holds
    assert parse_goal("min_ratio(precision, by=sex) >= 0.6").evaluate([1, 1, 1, 1, 0], table).value == 0.5


@pytest.mark.parametrize("seed", range(40))
def test_ratios_of_zero_and_equals_compare_as_fractions_do(seed):
    """Of quotients the least counts, 0 beside anything, 1 among zeros; groups without a value are left out."""
    rng = np.random.default_rng(seed)
    sex = np.array(["NA", "1", "1.0", "None"])[rng.integers(0, 2 + seed % 3, 12)]
    y, said, weight = (
        rng.integers(0, 2, 12),
        rng.integers(0, 2, 12),
        rng.integers(1, 3, 12) * 10.0 ** rng.choice([-300, 0, 300]),
    )
    y[:4], said[:4], sex[:4] = [0, 0, 1, 1], 1, ["NA", "1"] * 2
    y = y * (rng.random() < 0.7)
    table = Table(None, y, {"sex": sex}, sample_weight=weight)
    values = []
    for mask in (sex == one for one in set(sex)):
        right, every = (sum(map(Fraction, weight[mask & (said == 1) & part])) for part in (y == 1, y >= 0))
        values += [Fraction(right) / every] if every else []
    low, high = min(values), max(values)
    for exact, metric in (((low / high if high else 1), "min_ratio"), (high - low, "max_difference")):
        check = getattr(goals_module, metric)(precision, by="sex")
        sense, steps = (check.__ge__, (-0.01, 0, 0.01)) if metric == "min_ratio" else (check.__le__, (0.01, 0, -0.01))
        for step, holds in zip(steps, (True, True, metric == "min_ratio" and not high), strict=True):
            one = sense(float(exact) + step).evaluate(said, table, classes=[0, 1])
            assert one.value == pytest.approx(float(exact), abs=1e-12)
            assert one.holds == holds


def test_a_mixture_refuses_goals_that_compare_ratios():
    score, y, sex = rows()
    said = "A mixture needs goals that are linear.*precision.*take one rule, by decision='fixed' of GoalClassifier"
    pool = [LogisticRegression(class_weight={0: 1, 1: w}).fit(score[:, None], y) for w in (0.3, 1, 2)]
    model = cp.MixtureClassifier(pool, alpha=1.0, goals=["max_difference(precision, by=sex) <= 0.3"])
    with pytest.raises(ValueError, match=said):
        model.fit(score[:, None], y, sensitive_features={"sex": sex})
    for decision in ("sticky", "vote", "sample"):
        with pytest.raises(ValueError, match=said):
            fitted([GOAL], decision=decision)
    with pytest.raises(ValueError, match=said):
        fitted([GOAL], by="sex").rebalance(decision="sticky")


def test_an_audit_holds_the_union_of_both_intervals():
    rng = np.random.default_rng(0)
    y, sex = rng.integers(0, 2, 4000), rng.choice(["F", "M"], 4000)
    said = np.where(rng.random(4000) < 0.8, y, 1 - y)
    table = Table(None, y, {"sex": sex})
    sure, open_, failed = cp.audit(
        [f"max_difference(precision, by=sex) <= {bound}" for bound in (0.15, 0.02)]
        + ["min_ratio(precision, by=sex) >= 0.999"],
        said,
        table,
    )
    assert sure.verdict == "holds"
    assert open_.verdict == "undecided"
    assert failed.verdict in {"undecided", "fails"}
    assert 0 <= sure.low <= sure.estimate <= sure.high <= 0.15
    skewed = np.where((sex == "F") & (rng.random(4000) < 0.5), 1, said)
    (apart,) = cp.audit("max_difference(precision, by=sex) <= 0.02", skewed, table)
    assert apart.verdict == "fails"


def of_three_classes():
    y = np.arange(60) % 3
    return cp.GoalClassifier(LogisticRegression(), goals=["max_difference(precision, by=sex, of=1) <= 0.1"]).fit(
        np.eye(3)[y], y, sensitive_features={"sex": ["F", "M"] * 30}
    )


WRONG = [
    (lambda: fitted(["max_difference(win_loss_ratio, by=sex) <= 0.1"]), "searched between 0 and 1"),
    (lambda: fitted(["max_difference(precision, by=sex, within=job) <= 0.1"]), "inside strata.*leave within out"),
    (lambda: fitted(["max_difference(precision) <= 0.1"]), "over the groups of a column"),
    (lambda: fitted(["max_difference(precision, by=sex) >= 0.1"]), "can be bounded with <= only"),
    (lambda: fitted(["min_ratio(precision, by=sex) <= 0.1"]), "can be bounded with >= only"),
    (lambda: fitted(["max_difference(precision, by=job) <= 0.1"]), "job"),
    (lambda: fitted(["max_difference(precision, by=sex) <= 2"]), "always holds"),
    (lambda: fitted([f"{GOAL} with confidence 0.9"]), "no tighter bound.*leave its confidence out"),
    (lambda: precision(sex="F") - precision(sex="M"), r"max_difference\(precision, by=sex\)"),
    (lambda: bind(GOAL, Table(None, [0, 1], {"sex": ["F", "M"]})), "compares ratios, which is not linear"),
    (lambda: cp.LPBoostClassifier(goals=[GOAL]).fit(np.eye(4), [0, 1, 0, 1]), "A booster needs goals that are linear"),
    (of_three_classes, "more than two classes needs goals that are linear"),
]


@pytest.mark.parametrize(("use", "words"), WRONG)
def test_wrong_uses_are_refused_in_words(use, words):
    with pytest.raises((TypeError, ValueError), match=words):
        use()
