"""Rules of scores over shards: the same however the rows are cut, those of one machine, and proven over thresholds."""

import numpy as np
import pytest
from engines import COUNTS, cut, opened

from counterpoise import GoalClassifier
from counterpoise.distributed.fitting import mix_over
from counterpoise.goals import InfeasibleGoals
from counterpoise.rules.cautions import ConfidenceNotReached
from tests.tiers import some_fast

RNG = np.random.default_rng(11)
N_ROWS = 900
SEX = np.where(RNG.random(N_ROWS) < 0.4, "F", "M")
TRUTH = RNG.random(N_ROWS) ** 1.5
Y = (RNG.random(N_ROWS) < TRUTH).astype(int)
FEW = np.round(np.clip(TRUTH + 0.1 * (SEX == "F") + RNG.normal(size=N_ROWS) / 9, 0, 1), 2)
OTHER = np.round(np.clip(TRUTH + RNG.normal(size=N_ROWS) / 4, 0, 1), 1)
WEIGHTS = RNG.integers(1, 4, N_ROWS).astype(float)
PARITY = "abs(positive_rate(sex=F) - positive_rate(sex=M)) <= 0.02"
X = RNG.normal(size=(N_ROWS, 2))

CASES = {
    "mean": {"alpha": 1.0},
    "recall": {"alpha": 1.0, "goals": ["recall >= 0.7"]},
    "tail": {"alpha": 0.3},
    "parity by sex": {"alpha": 1.0, "goals": [PARITY, "recall >= 0.8"], "by": "sex"},
    "tail within goals": {"alpha": 0.5, "goals": [PARITY]},
    "a rate": {"objective": "false_positive_rate", "goals": ["recall >= 0.7"]},
    "worst group": {"objective": "worst-group", "budget": 0.05},
}


def _name_columns(shard):
    shard["columns"] = {"sex": shard.pop("sex")}


def _chosen(engine, n_shards, scores, **settings):
    columns = [scores[:, place] for place in range(scores.shape[1])]
    model = GoalClassifier(columns, cv="prefit", decision="sticky", random_state=0, **settings, confidence=None)
    with opened(engine, cut(n_shards, X=X, y=Y, sex=SEX, scores=scores, sample_weight=WEIGHTS)) as shards:
        shards.change("columns", _name_columns)
        return mix_over(model, shards)


@pytest.mark.parametrize("name", some_fast(CASES, 3))
@pytest.mark.parametrize("scores", [FEW[:, None], np.column_stack([FEW, OTHER])], ids=["one", "two"])
def test_rules_are_the_same_over_any_number_of_shards_and_on_one_machine(name, scores):
    first = _chosen("threads", 1, scores, **CASES[name])
    for n_shards in COUNTS[1:]:
        other = _chosen("threads", n_shards, scores, **CASES[name])
        assert other.rules_ == first.rules_
        assert other.mixture_.tolist() == first.mixture_.tolist()
        assert other.value_ == first.value_
    twin = GoalClassifier(
        list(scores.T), cv="prefit", decision="sticky", random_state=0, **CASES[name], confidence=None
    )
    twin.fit(X, Y, sample_weight=WEIGHTS, sensitive_features={"sex": SEX})
    np.testing.assert_allclose(first.value_, twin.value_, atol=2e-4)
    if name != "tail within goals":  # where many mixtures are as good
        assert [rule.model for rule in first.rules_] == [rule.model for rule in twin.rules_]
        for own, its in zip(first.rules_, twin.rules_, strict=True):
            np.testing.assert_allclose(list(own.thresholds.values()), list(its.thresholds.values()), atol=1e-9)
        within = 0.01 if name == "tail" else 1e-6  # shares that differ so little are as good within the tolerance
        np.testing.assert_allclose(first.mixture_, twin.mixture_, atol=within)
    known = twin.gap_ if name == "mean" else 0.0  # without goals the usual threshold stays, the best of these or not
    np.testing.assert_allclose(first.gap_, known, atol=2e-4)


@pytest.mark.slow
def test_processes_choose_the_same_rules():
    case = CASES["parity by sex"]
    assert _chosen("processes", 3, FEW[:, None], **case).rules_ == _chosen("threads", 1, FEW[:, None], **case).rules_


@pytest.mark.parametrize("name", ["recall", "parity by sex", "tail"])
def test_many_different_scores_are_binned_and_refined_until_no_better_threshold_can_hide(name):
    rng, n_rows = np.random.default_rng(2), 60_000
    sex, truth = np.where(rng.random(n_rows) < 0.4, "F", "M"), rng.random(n_rows)
    y = (rng.random(n_rows) < truth).astype(int)
    scores = np.clip(truth + 0.1 * (sex == "F") + rng.normal(size=n_rows) / 9, 0, None)[:, None] ** 3
    X = np.zeros((n_rows, 1))
    found = []
    for n_shards in (1, 3):
        model = GoalClassifier(
            [scores[:, 0]], cv="prefit", decision="sticky", random_state=0, **CASES[name], confidence=None
        )
        with opened("threads", cut(n_shards, X=X, y=y, sex=sex, scores=scores)) as shards:
            shards.change("columns", _name_columns)
            found.append(mix_over(model, shards))
    first, other = found
    assert first.rules_ == other.rules_
    assert first.n_passes_ > (name == "tail")
    assert first.gap_ <= 3e-4
    twin = GoalClassifier(
        [scores[:, 0]], cv="prefit", decision="sticky", random_state=0, **CASES[name], confidence=None
    )
    twin.fit(X, y, sensitive_features={"sex": sex})
    np.testing.assert_allclose(first.value_, twin.value_, atol=3e-4)
    assert first.value_ - first.gap_ <= twin.value_ + 1e-9
    said = first.rules_[0]
    for group in first.groups_.names:  # thresholds lie between scores, so rows are told what the lumps say
        assert not (scores[:, 0] == said.thresholds[group]).any()


def test_goals_that_no_rules_meet_say_so():
    with pytest.raises(InfeasibleGoals, match="cannot hold"):
        _chosen("threads", 2, FEW[:, None], alpha=1.0, goals=["recall >= 0.99", "positive_rate <= 0.1"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["recall", "parity by sex"])
def test_margins_are_those_of_one_machine_over_any_number_of_shards(name):
    settings = {"cv": "prefit", "random_state": 0, "confidence": 0.8, **CASES[name]}
    settings["goals"] = [goal.replace("0.02", "0.1") for goal in settings["goals"]]
    twin = GoalClassifier([FEW], **settings).fit(X, Y, sensitive_features={"sex": SEX})
    assert twin.confidence_ == 0.8
    for n_shards in (1, 2, 4):
        model = GoalClassifier([FEW], **settings)
        with opened("threads", cut(n_shards, X=X, y=Y, sex=SEX, scores=FEW[:, None])) as shards:
            shards.change("columns", _name_columns)
            mix_over(model, shards)
        assert model.confidence_ == 0.8
        for own, its in zip(model.margins_, twin.margins_, strict=True):
            for part in ("bound", "value", "standard_error", "optimism", "cost"):
                np.testing.assert_allclose(getattr(own, part), getattr(its, part), rtol=0, atol=1e-9)


def test_rows_of_different_weights_have_no_margins_over_shards():
    model = GoalClassifier([FEW], cv="prefit", goals=["recall >= 0.7"], random_state=0)
    with opened("threads", cut(2, X=X, y=Y, sex=SEX, scores=FEW[:, None], sample_weight=WEIGHTS)) as shards:
        shards.change("columns", _name_columns)
        with pytest.warns(ConfidenceNotReached, match="over shards margins need rows that weigh the same"):
            mix_over(model, shards)
    assert model.confidence_ is None
    assert model.check_goals()[0].holds


AMOUNT = RNG.integers(1, 30, N_ROWS).astype(float)
AMOUNT_CASES = {
    "money": {"alpha": 1.0, "goals": ["recall(value=amount) >= 0.75"]},
    "cost": {"alpha": 1.0, "goals": ["cost({1->0: amount, 0->1: 5}) <= 2.5"]},
    "total": {"objective": "-1 * total(value=amount)", "goals": ["positive_rate(value=amount) <= 0.3"]},
    "limit": {"alpha": 1.0, "goals": ["total(sex=F, value=amount) <= 1500"], "by": "sex"},
}


def _name_amounts(shard):
    shard["columns"] = {"sex": shard.pop("sex"), "amount": shard.pop("amount")}


def _chosen_for_amounts(n_shards, weights=None, **settings):
    model = GoalClassifier([FEW], cv="prefit", random_state=0, **settings)
    parts = {} if weights is None else {"sample_weight": weights}
    rows = cut(n_shards, X=X, y=Y, sex=SEX, amount=AMOUNT, scores=FEW[:, None], **parts)
    with opened("threads", rows) as shards:
        shards.change("columns", _name_amounts)
        return mix_over(model, shards)


@pytest.mark.parametrize("confidence", [None, 0.9])
@pytest.mark.parametrize("name", AMOUNT_CASES)
def test_amounts_are_counted_over_shards_as_on_one_machine(name, confidence):
    first = _chosen_for_amounts(1, confidence=confidence, **AMOUNT_CASES[name])
    other = _chosen_for_amounts(3, confidence=confidence, **AMOUNT_CASES[name])
    assert (other.rules_, other.value_) == (first.rules_, first.value_)
    twin = GoalClassifier([FEW], cv="prefit", random_state=0, confidence=confidence, **AMOUNT_CASES[name])
    twin.fit(X, Y, sensitive_features={"sex": SEX, "amount": AMOUNT})
    scale = AMOUNT.sum() if name == "total" else 1.0
    tolerance = 2e-4 if confidence is None else 0.02  # resamples differ
    np.testing.assert_allclose(first.value_, twin.value_, atol=tolerance * scale)
    assert all(check.holds for check in first.check_goals())


def test_a_total_of_weighted_rows_is_refused_over_shards():
    with pytest.raises(ValueError, match="Over shards a total needs rows that weigh the same"):
        _chosen_for_amounts(2, WEIGHTS, alpha=1.0, goals=["total(value=amount) <= 1500"])
