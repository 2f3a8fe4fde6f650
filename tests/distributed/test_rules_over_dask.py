"""Rules of scores over Dask: the same however the rows are cut, and those of one machine."""

import numpy as np
import pandas as pd
import pytest

from counterpoise import Deferral, GoalClassifier
from counterpoise.distributed import DaskGoalClassifier
from tests.distributed.cuts import COUNTS, column, cut
from tests.tiers import slow, some_fast

pytest.importorskip("dask.dataframe")

RNG = np.random.default_rng(11)
N_ROWS = 900
SEX = np.where(RNG.random(N_ROWS) < 0.4, "F", "M")
TRUTH = RNG.random(N_ROWS) ** 1.5
Y = (RNG.random(N_ROWS) < TRUTH).astype(int)
FEW = np.round(np.clip(TRUTH + 0.1 * (SEX == "F") + RNG.normal(size=N_ROWS) / 9, 0, 1), 2)
OTHER = np.round(np.clip(TRUTH + RNG.normal(size=N_ROWS) / 4, 0, 1), 1)
WEIGHTS = RNG.integers(1, 4, N_ROWS).astype(float)
PARITY = "abs(positive_rate(sex=F) - positive_rate(sex=M)) <= 0.02"
FRAME = pd.DataFrame({"few": FEW, "other": OTHER, "y": Y, "sex": SEX, "weight": WEIGHTS})

CASES = {
    "mean": {"alpha": 1.0},
    "recall": {"alpha": 1.0, "goals": ["recall >= 0.7"]},
    "tail": {"alpha": 0.3},
    "parity by sex": {"alpha": 1.0, "goals": [PARITY, "recall >= 0.8"], "by": "sex"},
    "tail within goals": {"alpha": 0.5, "goals": [PARITY]},
    "a rate": {"objective": "false_positive_rate", "goals": ["recall >= 0.7"]},
    "worst group": {"objective": "worst-group", "budget": 0.05},
}


def _chosen(n_parts, n_models=1, weight="weight", **settings):
    settings = {"cv": "prefit", "decision": "sticky", "random_state": 0, "confidence": None} | settings
    model = DaskGoalClassifier([column(place) for place in range(n_models)], **settings)
    rows = {"sensitive_features": ["sex"], "sample_weight": weight, "features": ["few", "other"]}
    return model.fit(cut(FRAME if weight else FRAME.drop(columns="weight"), n_parts), "y", **rows)


def _twin(n_models=1, weight=WEIGHTS, **settings):
    settings = {"cv": "prefit", "decision": "sticky", "random_state": 0, "confidence": None} | settings
    model = GoalClassifier([column(place) for place in range(n_models)], **settings)
    return model.fit(FRAME[["few", "other"]], Y, sample_weight=weight, sensitive_features=FRAME[["sex"]])


@pytest.mark.parametrize("name", some_fast(CASES, 3))
@pytest.mark.parametrize("n_models", [1, 2])
def test_rules_are_the_same_over_any_number_of_partitions_and_on_one_machine(name, n_models):
    first = _chosen(1, n_models, **CASES[name])
    for n_parts in COUNTS[1:]:
        other = _chosen(n_parts, n_models, **CASES[name])
        assert other.rules_ == first.rules_
        assert other.mixture_.tolist() == first.mixture_.tolist()
        assert other.value_ == first.value_
    twin = _twin(n_models, **CASES[name])
    np.testing.assert_allclose(first.value_, twin.value_, atol=2e-4)
    if name != "tail within goals":  # where many mixtures are as good
        assert [rule.model for rule in first.rules_] == [rule.model for rule in twin.rules_]
        for own, its in zip(first.rules_, twin.rules_, strict=True):
            np.testing.assert_allclose(list(own.thresholds.values()), list(its.thresholds.values()), atol=1e-9)
        within = 0.01 if name == "tail" else 1e-6  # shares that differ so little are as good within the tolerance
        np.testing.assert_allclose(first.mixture_, twin.mixture_, atol=within)
    known = twin.gap_ if name == "mean" else 0.0  # without goals the usual threshold stays, the best of these or not
    np.testing.assert_allclose(first.gap_, known, atol=2e-4)


N_MANY = 30_000  # more than a score has bins of its own for
MANY_SEX, MANY_TRUTH = np.where(RNG.random(N_MANY) < 0.4, "F", "M"), RNG.random(N_MANY)
MANY = pd.DataFrame({"y": (RNG.random(N_MANY) < MANY_TRUTH).astype(int), "sex": MANY_SEX})
MANY["weight"] = RNG.gamma(4.0, size=N_MANY)
MANY["one"] = np.clip(MANY_TRUTH + 0.1 * (MANY_SEX == "F") + RNG.normal(size=N_MANY) / 9, 0, None) ** 3
MANY["two"] = MANY_TRUTH + RNG.normal(size=N_MANY) / 4
DRAWN = {"decision": "sticky", "confidence": None}
MANY_CASES = {
    "recall": {**CASES["recall"], **DRAWN},
    "parity by sex": {**CASES["parity by sex"], **DRAWN},
    "tail within a goal and a budget": {**CASES["tail"], "goals": ["recall >= 0.7"], "budget": 0.05, **DRAWN},
    "worst group": {**CASES["worst group"], **DRAWN},
    "one rule": {**CASES["parity by sex"], "confidence": None},
    "margins": CASES["parity by sex"],
    "ratios compared": {"goals": ["max_difference(precision, by=sex) <= 0.02"], "by": "sex", "confidence": None},
    "deferral": {"goals": ["defer_rate <= 0.2", "recall >= 0.8"], "by": "sex", "deferral": Deferral(0.2)},
    "a ratio as objective": {"objective": "f1_score", "goals": ["positive_rate <= 0.4"], "confidence": None},
}


@pytest.mark.parametrize("n_models", [1, slow(2)])
@pytest.mark.parametrize("name", some_fast(MANY_CASES, 2))
def test_many_different_scores_share_bins_that_are_split_where_the_rules_are(name, n_models):
    settings, found = {"cv": "prefit", "random_state": 0, **MANY_CASES[name]}, []
    rows = {"sensitive_features": ["sex"], "sample_weight": "weight", "features": ["one", "two"]}
    for n_parts in (1, 3):
        model = DaskGoalClassifier([column(place) for place in range(n_models)], **settings)
        found.append(model.fit(cut(MANY, n_parts), "y", **rows))
    first, other = found
    assert (first.rules_, first.value_) == (other.rules_, other.value_)
    twin = GoalClassifier([column(place) for place in range(n_models)], **settings)
    twin.fit(MANY[["one", "two"]], MANY.y, sample_weight=MANY.weight, sensitive_features=MANY[["sex"]])
    within = 3e-4 if n_models == 1 else 2e-3  # scores share the bins
    assert first.value_ <= twin.value_ + within
    assert first.confidence_ == twin.confidence_
    assert all(check.holds for check in first.check_goals())
    chances = first.to_local().decision_proba(MANY[["one", "two"]], sensitive_features=MANY[["sex"]])
    if "objective" not in settings and "alpha" in settings and settings["alpha"] == 1.0:
        assert first.value_ == pytest.approx(np.average(chances[np.arange(N_MANY), 1 - MANY.y], weights=MANY.weight))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["recall", "parity by sex"])
def test_margins_are_those_of_one_machine_over_any_number_of_partitions(name):
    settings = {"decision": "fixed", "confidence": 0.8, **CASES[name]}
    settings["goals"] = [goal.replace("0.02", "0.1") for goal in settings["goals"]]
    twin = _twin(weight=None, **settings)
    assert twin.confidence_ == 0.8
    for n_parts in (1, 2, 4):
        model = _chosen(n_parts, weight=None, **settings)
        assert model.confidence_ == 0.8
        for own, its in zip(model.margins_, twin.margins_, strict=True):
            for part in ("bound", "value", "standard_error", "optimism", "cost"):
                np.testing.assert_allclose(getattr(own, part), getattr(its, part), rtol=0, atol=1e-9)


@pytest.mark.parametrize("scale", [1.0, np.pi])
def test_margins_of_rows_of_unequal_weight_are_those_of_one_machine(scale):
    settings = {"decision": "fixed", "confidence": 0.8, **CASES["parity by sex"]}
    settings["goals"] = [goal.replace("0.02", "0.12") for goal in settings["goals"]]
    weights = scale * WEIGHTS
    twin = _twin(weight=weights, **settings)
    frame, found = FRAME.assign(weight=weights), []
    for n_parts in (1, 3):
        model = DaskGoalClassifier([column(0)], cv="prefit", random_state=0, **settings)
        rows = {"sensitive_features": ["sex"], "sample_weight": "weight", "features": ["few"]}
        found.append(model.fit(cut(frame, n_parts), "y", **rows))
    first, other = found
    assert (first.rules_, first.value_, first.margins_) == (other.rules_, other.value_, other.margins_)
    assert first.confidence_ == twin.confidence_ == 0.8
    assert first.rules_ == twin.rules_
    for own, its in zip(first.margins_, twin.margins_, strict=True):
        np.testing.assert_allclose([own.value, own.standard_error], [its.value, its.standard_error], atol=1e-9)
        np.testing.assert_allclose(own.optimism, its.optimism, atol=0.3 * its.standard_error)  # resamples differ


AMOUNT = RNG.integers(1, 30, N_ROWS).astype(float)
AMOUNT_CASES = {
    "money": {"alpha": 1.0, "goals": ["recall(value=amount) >= 0.75"]},
    "cost": {"alpha": 1.0, "goals": ["cost({1->0: amount, 0->1: 5}) <= 2.5"]},
    "total": {"objective": "-1 * total(value=amount)", "goals": ["positive_rate(value=amount) <= 0.3"]},
    "limit": {"alpha": 1.0, "goals": ["total(sex=F, value=amount) <= 1500"], "by": "sex"},
}


def _chosen_for_amounts(n_parts, weight, **settings):
    model = DaskGoalClassifier([column(0)], cv="prefit", random_state=0, **settings)
    names = {"sensitive_features": ["sex", "amount"], "sample_weight": weight, "features": ["few"]}
    return model.fit(cut(FRAME.assign(amount=AMOUNT), n_parts), "y", **names)


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("confidence", [None, 0.9])
@pytest.mark.parametrize("name", AMOUNT_CASES)
def test_amounts_are_counted_over_dask_as_on_one_machine(name, confidence, weight):
    first = _chosen_for_amounts(1, weight, confidence=confidence, **AMOUNT_CASES[name])
    other = _chosen_for_amounts(3, weight, confidence=confidence, **AMOUNT_CASES[name])
    assert (other.rules_, other.value_) == (first.rules_, first.value_)
    twin = GoalClassifier([column(0)], cv="prefit", random_state=0, confidence=confidence, **AMOUNT_CASES[name])
    weights = None if weight is None else WEIGHTS
    twin.fit(FRAME[["few"]], Y, sample_weight=weights, sensitive_features={"sex": SEX, "amount": AMOUNT})
    scale = AMOUNT.sum() if name == "total" else 1.0
    tolerance = 2e-4 if confidence is None else 0.02  # resamples differ
    np.testing.assert_allclose(first.value_, twin.value_, atol=tolerance * scale)
    assert all(check.holds for check in first.check_goals())
