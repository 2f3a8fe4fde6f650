"""Small groups over shards and in files: rows are counted, whatever they weigh, as on one machine."""

import numpy as np
import pandas as pd
import pytest
from engines import cut, opened

from counterpoise import GoalClassifier
from counterpoise.distributed.files import choose_from_files
from counterpoise.distributed.fitting import mix_over
from counterpoise.goals import NoRows

RNG = np.random.default_rng(5)
N_ROWS = 600
SEX = RNG.choice(["F", "M", "X"], N_ROWS, p=[0.55, 0.4, 0.05])
Y = RNG.integers(0, 2, N_ROWS)
SCORE = np.round(np.clip(0.4 * Y + 0.3 * (SEX == "X") + RNG.normal(size=N_ROWS) / 3, 0, 1), 2)
WEIGHTS = np.where(SEX == "X", 50.0, RNG.integers(1, 4, N_ROWS))  # few rows that weigh much
X = np.zeros((N_ROWS, 1))
SETTINGS = {"cv": "prefit", "decision": "sticky", "random_state": 0, "alpha": 1.0, "confidence": None}


def _name_columns(shard):
    shard["columns"] = {"sex": shard.pop("sex")}


def over_shards(goals, weights):
    parts = {"X": X, "y": Y, "sex": SEX, "scores": SCORE[:, None]} | (
        {} if weights is None else {"sample_weight": weights}
    )
    with opened("threads", cut(3, **parts)) as shards:
        shards.change("columns", _name_columns)
        return mix_over(GoalClassifier([SCORE], goals=goals, **SETTINGS), shards)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_rows_of_groups_are_counted_over_shards_as_on_one_machine(weights):
    goals = "max_difference(positive_rate, by=sex, min_rows=60) <= 0.02"
    model = over_shards(goals, weights)
    twin = GoalClassifier([SCORE], goals=goals, **SETTINGS).fit(X, Y, weights, sensitive_features={"sex": SEX})
    np.testing.assert_allclose(model.value_, twin.value_, atol=2e-4)
    n_small = int((SEX == "X").sum())
    assert model.check_goals()[0].left_out == twin.check_goals()[0].left_out == (f"sex=X ({n_small} rows)",)
    with pytest.raises(NoRows, match="leaves out all groups: the largest has"):
        over_shards("max_difference(positive_rate, by=sex, min_rows=500) <= 0.02", weights)


@pytest.mark.parametrize("average", [False, True])
def test_strata_are_those_of_one_machine(average):
    job = np.where(np.arange(N_ROWS) % 3 == 0, "cook", "NA")
    words = ", average=True" if average else ""
    goals = f"max_difference(positive_rate, by=sex, within=job{words}, min_rows=30) <= 0.02"
    twin = GoalClassifier([SCORE], goals=goals, **SETTINGS).fit(X, Y, sensitive_features={"sex": SEX, "job": job})

    def name_columns(shard):
        shard["columns"] = {name: shard.pop(name) for name in ("sex", "job")}

    parts = {"X": X, "y": Y, "sex": SEX, "job": job, "scores": SCORE[:, None]}
    with opened("threads", cut(3, **parts)) as shards:
        shards.change("columns", name_columns)
        model = mix_over(GoalClassifier([SCORE], goals=goals, **SETTINGS), shards)
    np.testing.assert_allclose(model.value_, twin.value_, atol=2e-4)
    assert model.check_goals()[0].left_out == twin.check_goals()[0].left_out
    assert model.check_goals()[0].holds


def test_rows_of_groups_are_counted_in_files(tmp_path):
    class Scorer:
        classes_ = np.array([0, 1])

        def predict_proba(self, rows):
            score = np.asarray(rows)[:, 0]
            return np.column_stack([1 - score, score])

        def predict(self, rows):
            return (self.predict_proba(rows)[:, 1] > 0.5).astype(int)

    frame = pd.DataFrame({"score": SCORE, "sex": SEX, "weight": WEIGHTS, "label": Y})
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    goals = "max_difference(positive_rate, by=sex, min_rows=60) <= 0.02"
    model = choose_from_files(
        GoalClassifier([Scorer()], goals=goals, **SETTINGS),
        tmp_path,
        "label",
        sensitive_features=["sex"],
        sample_weight="weight",
    )
    assert model.check_goals()[0].left_out == (f"sex=X ({int((SEX == 'X').sum())} rows)",)
