"""Small groups over Dask: rows are counted, whatever they weigh, as on one machine."""

import numpy as np
import pandas as pd
import pytest

from counterpoise import GoalClassifier
from counterpoise.distributed import DaskGoalClassifier
from counterpoise.goals import NoRows
from tests.distributed.cuts import column, cut

pytest.importorskip("dask.dataframe")

RNG = np.random.default_rng(5)
N_ROWS = 600
SEX = RNG.choice(["F", "M", "X"], N_ROWS, p=[0.55, 0.4, 0.05])
Y = RNG.integers(0, 2, N_ROWS)
SCORE = np.round(np.clip(0.4 * Y + 0.3 * (SEX == "X") + RNG.normal(size=N_ROWS) / 3, 0, 1), 2)
WEIGHTS = np.where(SEX == "X", 50.0, RNG.integers(1, 4, N_ROWS))  # few rows that weigh much
FRAME = pd.DataFrame({"score": SCORE, "y": Y, "sex": SEX, "weight": WEIGHTS})
SETTINGS = {"cv": "prefit", "decision": "sticky", "random_state": 0, "alpha": 1.0, "confidence": None}


def over_dask(goals, weight, frame=FRAME, columns=("sex",)):
    model = DaskGoalClassifier([column(0)], goals=goals, **SETTINGS)
    names = {"sensitive_features": list(columns), "sample_weight": weight, "features": ["score"]}
    return model.fit(cut(frame, 3), "y", **names)


@pytest.mark.parametrize("weight", [None, "weight"])
def test_rows_of_groups_are_counted_over_dask_as_on_one_machine(weight):
    goals = "max_difference(positive_rate, by=sex, min_rows=60) <= 0.02"
    model = over_dask(goals, weight)
    twin = GoalClassifier([column(0)], goals=goals, **SETTINGS)
    twin.fit(FRAME[["score"]], Y, None if weight is None else WEIGHTS, sensitive_features={"sex": SEX})
    np.testing.assert_allclose(model.value_, twin.value_, atol=2e-4)
    n_small = int((SEX == "X").sum())
    assert model.check_goals()[0].left_out == twin.check_goals()[0].left_out == (f"sex=X ({n_small} rows)",)
    with pytest.raises(NoRows, match="leaves out all groups: the largest has"):
        over_dask("max_difference(positive_rate, by=sex, min_rows=500) <= 0.02", weight)


@pytest.mark.parametrize("average", [False, True])
def test_strata_are_those_of_one_machine(average):
    job = np.where(np.arange(N_ROWS) % 3 == 0, "cook", "NA")
    words = ", average=True" if average else ""
    goals = f"max_difference(positive_rate, by=sex, within=job{words}, min_rows=30) <= 0.02"
    twin = GoalClassifier([column(0)], goals=goals, **SETTINGS)
    twin.fit(FRAME[["score"]], Y, sensitive_features={"sex": SEX, "job": job})
    model = over_dask(goals, None, FRAME.assign(job=job), ["sex", "job"])
    np.testing.assert_allclose(model.value_, twin.value_, atol=2e-4)
    assert model.check_goals()[0].left_out == twin.check_goals()[0].left_out
    assert model.check_goals()[0].holds
