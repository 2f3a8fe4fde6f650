"""AdaLPBoost over Dask: LightGBM's models, the weights of the paper, and the mixture of rows in one place."""

import numpy as np
import pandas as pd
import pytest

from counterpoise import MixtureClassifier, Stopping, load, save
from counterpoise.distributed import DaskAdaLPBoostClassifier
from counterpoise.learners import HistogramTree
from counterpoise.theory.guarantees import hedge_eta
from tests.distributed.cuts import cut

distributed = pytest.importorskip("distributed")
lightgbm = pytest.importorskip("lightgbm")

pytestmark = pytest.mark.filterwarnings("default")  # those of Dask are not ours

RNG = np.random.default_rng(8)
N_ROWS = 600
FRAME = pd.DataFrame(RNG.normal(size=(N_ROWS, 3)), columns=["a", "b", "c"])
FRAME["sex"] = np.where(RNG.random(N_ROWS) < 0.4, "F", "M")
FRAME["label"] = np.where(FRAME.a + (FRAME.sex == "F") * FRAME.b + RNG.normal(size=N_ROWS) > 0, "yes", "no")
FRAME["weight"] = RNG.integers(1, 4, N_ROWS).astype(float)
FEATURES = FRAME[["a", "b", "c"]]
SETTINGS = {"n_estimators": 4, "alpha": 0.3, "budget": None, "random_state": 0}


def learner():
    return lightgbm.DaskLGBMClassifier(n_estimators=3, num_leaves=4, min_child_samples=5, verbose=-1)


@pytest.fixture(scope="module", autouse=True)
def _client():
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster):
        yield


@pytest.mark.slow
@pytest.mark.parametrize("weight", [None, "weight"])
def test_weights_follow_the_failures_so_far_and_the_mixture_is_that_of_rows_in_one_place(weight, tmp_path):
    goals = ["abs(positive_rate(sex=F) - positive_rate(sex=M)) <= 0.15"]
    model = DaskAdaLPBoostClassifier(learner(), goals=goals, **SETTINGS)
    frame = cut(FRAME if weight else FRAME.drop(columns="weight"), 4)
    model.fit(frame, "label", sample_weight=weight, sensitive_features=["sex"])
    own = np.ones(N_ROWS) if weight is None else FRAME.weight.to_numpy()
    eta = hedge_eta(own.sum() / own.min(), 4)
    losses = np.column_stack([one.predict(FEATURES) != FRAME.label for one in model.estimators_])
    for number, loss in enumerate(model.weighted_losses_):
        weights = np.exp(eta * losses[:, :number].sum(axis=1)) * own
        assert loss == pytest.approx(weights @ losses[:, number] / weights.sum())
    twin = MixtureClassifier(model.estimators_, goals=goals, alpha=0.3, budget=None)
    twin.fit(FEATURES, FRAME.label, None if weight is None else own, sensitive_features=FRAME[["sex"]])
    assert model.value_ == pytest.approx(twin.value_, abs=2e-4)
    assert model.check_goals()[0].holds
    trusted = ["lightgbm.dask.DaskLGBMClassifier"]  # the learner, a parameter
    save(model, tmp_path / "model.cp", trusted=trusted)
    decisions = load(tmp_path / "model.cp", trusted=trusted).predict(FEATURES)
    assert decisions.tolist() == model.predict(cut(FEATURES, 3)).compute().tolist()


@pytest.mark.parametrize(
    ("estimator", "settings", "message"),
    [
        (HistogramTree(2), {}, "estimator must be a DaskLGBMClassifier of LightGBM"),
        (None, {"stopping": Stopping(5)}, "stopping=.* is not supported over Dask: leave it at None"),
        (None, {"reweigh": "groups", "alpha": None}, "reweigh='groups' is not supported over Dask"),
        (None, {"goals": ["recall >= 0.5"], "confidence": 0.9}, "confidence=0.9 is not supported over Dask"),
        (None, {"eta": "adaboost"}, "eta='adaboost' is not supported over Dask"),
    ],
)
def test_what_is_for_one_machine_alone_is_refused_before_anything_is_trained(estimator, settings, message):
    model = DaskAdaLPBoostClassifier(estimator, **(SETTINGS | settings))
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(cut(FRAME, 2), "label", sensitive_features=["sex"])


def test_a_partition_that_lacks_a_class_is_refused():
    frame = cut(FRAME.sort_values("label"), 2)
    with pytest.raises(ValueError, match=r"there are none of 'yes' in partition 0\. Shuffle the rows"):
        DaskAdaLPBoostClassifier(learner(), **SETTINGS).fit(frame, "label", sensitive_features=["sex"])
