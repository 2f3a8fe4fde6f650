"""Once over a cluster of processes: a worker that is killed changes nothing, LightGBM trains there."""

import logging
import os
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from counterpoise.distributed import DaskAdaLPBoostClassifier, DaskGoalClassifier, audit_over

distributed = pytest.importorskip("distributed")
lightgbm = pytest.importorskip("lightgbm")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]  # warnings of Dask are not ours

RNG = np.random.default_rng(8)
N_ROWS = 1000
FRAME = pd.DataFrame(RNG.normal(size=(N_ROWS, 3)), columns=["a", "b", "c"])
FRAME["sex"] = np.where(RNG.random(N_ROWS) < 0.4, "F", "M")
FRAME["label"] = (FRAME.a + (FRAME.sex == "F") * FRAME.b + RNG.normal(size=N_ROWS) > 0).astype(int)
PARITY = "abs(positive_rate(sex=F) - positive_rate(sex=M)) <= 0.02"


@pytest.fixture
def client():
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": logging.CRITICAL}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    for number, first in enumerate(range(0, N_ROWS, 300)):
        FRAME[first : first + 300].to_parquet(folder / f"{number}.parquet")
    return folder


def kill_once(marker):
    """End this process without a word, if none was ended before."""
    if marker is not None and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)


class Scorer(ClassifierMixin, BaseEstimator):
    """A score that may end the process that computes it."""

    def __init__(self, marker=None):
        self.marker, self.classes_ = marker, np.array([0, 1])

    def predict_proba(self, X):
        kill_once(self.marker)
        chance = 1 / (1 + np.exp(-np.asarray(X)[:, 0]))
        return np.column_stack([1 - chance, chance])

    def predict(self, X):
        return (self.predict_proba(X)[:, 1] > 0.5).astype(int)


@pytest.mark.usefixtures("client")
def test_a_worker_that_is_killed_while_it_scores_counts_or_chooses_changes_nothing(files, tmp_path):
    settings = {"cv": "prefit", "goals": [PARITY], "by": "sex", "confidence": None}
    found = []
    for marker in (None, str(tmp_path / "while it scores")):
        model = DaskGoalClassifier(Scorer(marker), **settings)
        found.append(model.fit(files, "label", sensitive_features=["sex"], features=["a", "b", "c"]))
    audits = [
        audit_over("recall >= 0.5", Scorer(marker), files, "label", features=["a", "b", "c"])
        for marker in (None, str(tmp_path / "while it counts"))
    ]
    assert len(list(tmp_path.iterdir())) == 2
    assert found[0].rules_ == found[1].rules_
    assert found[0].value_ == found[1].value_
    assert audits[0] == audits[1]


@pytest.mark.usefixtures("client")
def test_lightgbm_trains_on_the_workers_and_its_scores_meet_goals(files):
    model = DaskGoalClassifier(goals=[PARITY], by="sex", random_state=0)
    model.fit(files, "label", sensitive_features=["sex"])
    assert model.check_goals()[0].holds
    assert model.value_ < 0.45
    decisions = model.to_local().predict(FRAME[["a", "b", "c"]], sensitive_features=FRAME[["sex"]])
    assert np.mean(decisions == FRAME.label) > 0.6


@pytest.mark.usefixtures("client")
def test_lightgbm_is_boosted_over_processes(files):
    learner = lightgbm.DaskLGBMClassifier(n_estimators=3, num_leaves=4, verbose=-1)
    model = DaskAdaLPBoostClassifier(learner, n_estimators=3, alpha=0.3, budget=None, random_state=0)
    model.fit(files, "label", sensitive_features=["sex"])
    assert len(model.estimators_) == 3
    assert model.value_ < 1.0


_LIMIT = 180  # seconds


def too_long(*_):
    raise TimeoutError("LightGBM waits for a worker that is lost")


class KillingObjective:
    """The logistic loss, whose first computation ends a process."""

    def __init__(self, marker):
        self.marker = marker

    def __call__(self, labels, scores):
        kill_once(self.marker)
        chance = 1 / (1 + np.exp(-scores))
        return chance - labels, chance * (1 - chance)

    def __deepcopy__(self, memo):
        return self  # clone() asks that a parameter stays what it was


@pytest.mark.usefixtures("client")
def test_a_worker_that_is_lost_while_lightgbm_trains_ends_in_a_sentence(files, tmp_path):
    learner = lightgbm.DaskLGBMClassifier(n_estimators=3, objective=KillingObjective(tmp_path / "one"), verbose=-1)
    model = DaskGoalClassifier(learner, goals=[PARITY], by="sex", random_state=0)
    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(_LIMIT)  # without its workers LightGBM may wait for ever
    try:
        with pytest.raises(RuntimeError, match="A worker of the Dask cluster was lost while LightGBM trained"):
            model.fit(files, "label", sensitive_features=["sex"])
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert (tmp_path / "one").exists()
