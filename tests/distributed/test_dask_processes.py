"""Once over a cluster of processes: LightGBM trains there."""

import numpy as np
import pandas as pd
import pytest
from engines import dask_processes

from counterpoise.distributed import DaskGoalClassifier

pytest.importorskip("dask.distributed")
pytest.importorskip("lightgbm")

pytestmark = pytest.mark.filterwarnings("default")  # those of Dask are not ours

RNG = np.random.default_rng(8)
N_ROWS = 1000
FRAME = pd.DataFrame(RNG.normal(size=(N_ROWS, 3)), columns=["a", "b", "c"])
FRAME["sex"] = np.where(RNG.random(N_ROWS) < 0.4, "F", "M")
FRAME["label"] = (FRAME.a + (FRAME.sex == "F") * FRAME.b + RNG.normal(size=N_ROWS) > 0).astype(int)
PARITY = "abs(positive_rate(sex=F) - positive_rate(sex=M)) <= 0.02"


@pytest.fixture(scope="module")
def client():
    with dask_processes(2) as client:
        yield client


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    for number, first in enumerate(range(0, N_ROWS, 300)):
        FRAME[first : first + 300].to_parquet(folder / f"{number}.parquet")
    return folder


@pytest.mark.slow
def test_lightgbm_trains_on_the_workers_and_its_scores_meet_goals(client, files):
    model = DaskGoalClassifier(goals=[PARITY], by="sex", random_state=0)
    model.fit(files, "label", sensitive_features=["sex"], client=client)
    assert model.check_goals()[0].holds
    assert model.value_ < 0.45
    said = model.to_local().predict(FRAME[["a", "b", "c"]], sensitive_features=FRAME[["sex"]])
    assert np.mean(said == FRAME.label) > 0.6
