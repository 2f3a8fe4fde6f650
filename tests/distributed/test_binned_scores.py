"""Rules over Dask where scores share bins: as good as those of one machine on every threshold, whatever is asked."""

import numpy as np
import pandas as pd
import pytest

from counterpoise import GoalClassifier
from counterpoise.distributed import DaskGoalClassifier, lumps
from tests.distributed.cuts import column, cut
from tests.tiers import slow

pytest.importorskip("dask.dataframe")

N_PEOPLE, N_ROWS = 300, 900
RNG = np.random.default_rng(4)
PERSON = np.repeat(np.arange(N_PEOPLE), 3)  # each is there three times, with scores that differ by a little
SEX = np.where(RNG.random(N_PEOPLE) < 0.3, "F", "M")[PERSON]
TRUTH = (RNG.random(N_PEOPLE) ** 1.4)[PERSON]
Y = (RNG.random(N_PEOPLE) < TRUTH[::3]).astype(int)[PERSON]
WEIGHTS = RNG.integers(1, 4, N_ROWS).astype(float)
SCORES = np.column_stack(
    [
        TRUTH + 0.15 * (SEX == "F") + (RNG.normal(size=N_PEOPLE) / 9)[PERSON],
        TRUTH + (RNG.normal(size=N_PEOPLE) / 4)[PERSON],
    ]
) + 1e-4 * RNG.random((N_ROWS, 2))
PARITY = "abs(positive_rate(sex=F) - positive_rate(sex=M)) <= 0.02"
CASES = {
    "mean": {"alpha": 1.0},
    "tail within a goal": {"alpha": 0.5, "goals": ["positive_rate <= 0.35"]},
    "tail within a budget": {"alpha": 0.3, "budget": 0.01},
    "goals by sex": {"alpha": 1.0, "goals": [PARITY, "recall >= 0.8"], "by": "sex"},
    "a rate": {"objective": "false_positive_rate", "goals": ["recall >= 0.7"]},
    "a rate within a goal and a budget": {
        "objective": "positive_rate(sex=F)",
        "goals": ["recall >= 0.75"],
        "budget": 0.02,
    },
    "worst group": {"objective": "worst-group", "by": "sex"},
    "worst group within a budget": {"objective": "worst-group", "budget": 0.005},
}


@pytest.fixture(autouse=True)
def _few_bins(monkeypatch):
    """Let few rows share bins, as a million do."""
    monkeypatch.setattr(lumps, "_DISTINCT", 20)
    monkeypatch.setattr(lumps, "_BINS", 6)
    monkeypatch.setattr(lumps, "_PARTS", 3)


FRAME = pd.DataFrame({"0": SCORES[:, 0], "1": SCORES[:, 1], "y": Y, "sex": SEX, "weight": WEIGHTS})
FIXED = {"cv": "prefit", "decision": "sticky", "random_state": 0, "confidence": None}


def chosen(n_parts, n_models, **settings):
    model = DaskGoalClassifier([column(place) for place in range(n_models)], **FIXED, **settings)
    names = {"sensitive_features": ["sex"], "sample_weight": "weight", "features": ["0", "1"]}
    return model.fit(cut(FRAME, n_parts), "y", **names)


@pytest.mark.parametrize("n_models", [2, slow(1)])
@pytest.mark.parametrize("name", CASES)
def test_no_threshold_inside_of_a_bin_is_better_than_those_that_are_found(name, n_models):
    found = chosen(2, n_models, **CASES[name])
    twin = GoalClassifier([column(place) for place in range(n_models)], **FIXED, **CASES[name])
    twin.fit(SCORES, Y, sample_weight=WEIGHTS, sensitive_features={"sex": SEX})
    assert found.value_ == pytest.approx(twin.value_, abs=3e-4)
    assert found.value_ - found.gap_ <= twin.value_ + 1e-9  # what is proven of every mixture is true of this one
    assert found.gap_ <= 3e-4
    assert found.n_passes_ > 1


@pytest.mark.parametrize("n_models", [2, slow(1)])
@pytest.mark.parametrize("name", ["mean", "goals by sex"])
def test_the_value_of_the_rules_is_that_of_their_answers_on_the_rows(name, n_models):
    found = chosen(3, n_models, **CASES[name])
    codes = (SEX == "M").astype(int) if "by" in CASES[name] else np.zeros(N_ROWS, int)
    yes = np.zeros(N_ROWS)
    for rule, share in zip(found.rules_, found.mixture_, strict=True):
        thresholds, scores = np.array(list(rule.thresholds.values())), SCORES[:, rule.model]
        yes += share * (scores > thresholds[codes])
        for code, threshold in enumerate(thresholds.tolist()):  # in the middle of the gap between two rows
            own = scores[codes == code]
            assert threshold == pytest.approx((own[own <= threshold].max() + own[own > threshold].min()) / 2)
    assert found.value_ == pytest.approx(np.average(np.abs(yes - Y), weights=WEIGHTS))
    if name == "goals by sex":
        women, men = (np.average(yes[sex == SEX], weights=WEIGHTS[sex == SEX]) for sex in "FM")
        assert abs(women - men) <= 0.02 + 1e-9
        assert np.average(yes[Y == 1], weights=WEIGHTS[Y == 1]) >= 0.8 - 1e-9
