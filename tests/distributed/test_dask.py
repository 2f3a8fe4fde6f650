"""Estimators on Dask collections, over a cluster inside of this process."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

from counterpoise import GoalClassifier, MixtureClassifier
from counterpoise.distributed import DaskGoalClassifier, DaskMixtureClassifier
from counterpoise.goals import InfeasibleGoals
from counterpoise.learners import HistogramTree

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("dask.distributed")

pytestmark = pytest.mark.filterwarnings("default")  # those of Dask are not ours

RNG = np.random.default_rng(8)
N_ROWS = 500
FRAME = pd.DataFrame(RNG.normal(size=(N_ROWS, 3)), columns=["a", "b", "c"])
FRAME["sex"] = np.where(RNG.random(N_ROWS) < 0.4, "F", "M")
FRAME["label"] = np.where(FRAME.a + (FRAME.sex == "F") * FRAME.b + RNG.normal(size=N_ROWS) > 0, "yes", "no")
FEATURES = FRAME[["a", "b", "c"]]
PARITY = "abs(positive_rate(sex=F) - positive_rate(sex=M)) <= 0.1"
SETTINGS = {"alpha": 0.4, "random_state": 0}
POOL = [
    DecisionTreeClassifier(max_depth=2, min_samples_leaf=5, random_state=0).fit(
        FEATURES[first::2], FRAME.label[first::2]
    )
    for first in (0, 1)
]


@pytest.fixture(scope="module")
def client():
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def twin():
    model = MixtureClassifier(POOL, goals=[PARITY], **SETTINGS)
    return model.fit(FEATURES, FRAME.label, sensitive_features=FRAME[["sex"]])


@pytest.mark.parametrize("form", ["names", "frames", "arrays", "parquet"])
def test_every_form_of_rows_gives_the_mixture_of_one_machine(twin, tmp_path, form):
    frame = dd.from_pandas(FRAME, npartitions=5)
    model = DaskMixtureClassifier(POOL, goals=[PARITY], **SETTINGS)
    if form == "names":
        model.fit(frame, "label", sensitive_features=["sex"])
    elif form == "frames":
        model.fit(frame[["a", "b", "c"]], frame.label, sensitive_features=frame[["sex"]])
    elif form == "arrays":
        X, y = (da.from_array(part.to_numpy(), chunks=(120, -1)[: part.ndim]) for part in (FEATURES, FRAME.label))
        columns = dd.from_pandas(FRAME[["sex"]], npartitions=1).repartition(divisions=(0, 120, 240, 360, 480, 499))
        model.fit(X, y, sensitive_features=columns)
    else:
        for place, first in enumerate(range(0, N_ROWS, 180)):
            FRAME[first : first + 180].rename(index=str).to_parquet(tmp_path / f"{place}.parquet", row_group_size=100)
        model.fit(tmp_path.as_uri(), "label", sensitive_features=["sex"])
    np.testing.assert_allclose(model.mixture_, twin.mixture_, atol=1e-6)
    np.testing.assert_allclose(model.value_, twin.value_, atol=2e-4)
    assert model.check_goals()[0].holds


@pytest.mark.usefixtures("client")
def test_predictions_are_lazy_and_those_of_one_machine():
    frame = dd.from_pandas(FEATURES, npartitions=4)
    model = DaskMixtureClassifier(POOL, **SETTINGS).fit(frame, dd.from_pandas(FRAME.label, npartitions=4))
    said, chances = model.predict(frame), model.predict_proba(frame)
    assert hasattr(said, "dask")
    expected = model.to_local().predict(FEATURES)
    assert said.compute().tolist() == expected.tolist()
    np.testing.assert_array_equal(chances.compute().to_numpy(), model.to_local().predict_proba(FEATURES))
    rows = da.from_array(FEATURES.to_numpy(), chunks=(200, 2))
    assert model.predict(rows).shape == (N_ROWS,)
    assert model.predict_proba(rows).compute().shape == (N_ROWS, 2)
    assert model.predict(FEATURES).tolist() == expected.tolist()


@pytest.mark.slow
@pytest.mark.usefixtures("client")
def test_rules_by_group_look_at_columns_of_collections_and_ids_decide(tmp_path):
    settings = {"cv": "prefit", "decision": "sticky", "by": "sex", "alpha": 0.5, "random_state": 0}
    frame = dd.from_pandas(FRAME.reset_index(), npartitions=4)
    model = DaskGoalClassifier(POOL, **settings).fit(
        frame[["a", "b", "c"]], frame.label, sensitive_features=frame[["sex"]]
    )
    expected = model.to_local().predict(FEATURES, ids=FRAME.index, sensitive_features=FRAME[["sex"]]).tolist()
    assert model.predict(frame, ids="index", sensitive_features=["sex"]).compute().tolist() == expected
    assert model.predict(frame, ids=frame["index"], sensitive_features=frame[["sex"]]).compute().tolist() == expected
    FRAME.reset_index().to_parquet(tmp_path / "rows.parquet")
    assert model.predict(tmp_path, ids="index", sensitive_features=["sex"]).compute().tolist() == expected
    rows, sexes, ids = (frame[part].to_dask_array() for part in (["a", "b", "c"], "sex", "index"))
    with pytest.raises(ValueError, match="sensitive_features names the column 'sex', but X has no column names"):
        model.predict(rows, sensitive_features="sex")
    with pytest.raises(ValueError, match="ids must be a Dask collection that is cut at the rows of X, with 4 "):
        model.predict(frame, ids=FRAME.index, sensitive_features=["sex"])
    other = DaskGoalClassifier(POOL, **(settings | {"by": "group"}))
    other.fit(rows, frame.label.to_dask_array(), sensitive_features=sexes)
    assert other.predict(rows, ids=ids, sensitive_features=sexes).compute().tolist() == expected
    assert other.decision_proba(rows, sensitive_features=sexes).compute().shape == (N_ROWS, 2)
    assert other.predict_proba(rows).compute().shape == (N_ROWS, 2)


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize(
    ("kind", "own", "settings"),
    [
        (DaskMixtureClassifier, MixtureClassifier, {"alpha": 0.4}),
        (DaskGoalClassifier, GoalClassifier, {"cv": "prefit", "decision": "sticky", "by": "sex", "confidence": None}),
        (DaskGoalClassifier, GoalClassifier, {"cv": "prefit", "by": "sex"}),
    ],
    ids=["said", "rules", "one rule"],
)
def test_what_is_chosen_of_models_that_exist_is_that_of_one_machine(kind, own, settings):
    frame = dd.from_pandas(FRAME, npartitions=5)
    given = {"goals": [PARITY], "random_state": 0, **settings}
    model = kind(POOL, **given).fit(frame, "label", sensitive_features=["sex"])
    twin = own(POOL, **given).fit(FEATURES, FRAME.label, sensitive_features=FRAME[["sex"]])
    np.testing.assert_allclose(model.value_, twin.value_, atol=2e-4)
    assert model.check_goals()[0].holds
    local = model.to_local()
    assert local.predict(FEATURES, sensitive_features=FRAME[["sex"]]).shape == (N_ROWS,)


@pytest.mark.usefixtures("client")
def test_the_score_of_a_collection_is_that_of_its_rows(tmp_path):
    weighed = FRAME.assign(weight=np.arange(N_ROWS) % 3)
    weighed.to_parquet(tmp_path / "0.parquet")
    model = DaskMixtureClassifier([HistogramTree(2).fit(FEATURES, FRAME.label)], random_state=0)
    model.fit(dd.from_pandas(FRAME, npartitions=3)[["a", "b", "c", "label"]], "label")
    expected = model.to_local().score(FEATURES, FRAME.label)
    assert model.score(FEATURES, FRAME.label) == model.score(tmp_path, "label") == pytest.approx(expected)
    expected = model.to_local().score(FEATURES, FRAME.label, sample_weight=weighed.weight)
    assert model.score(dd.from_pandas(weighed, npartitions=2), "label", "weight") == pytest.approx(expected)
    with pytest.raises(
        ValueError, match="ids names the column 'persn', which X does not have; its columns are a, b, c"
    ):
        model.predict(dd.from_pandas(FRAME, npartitions=2), ids="persn")


@pytest.mark.usefixtures("client")
def test_goals_that_cannot_hold_leave_nothing_that_looks_fitted():
    frame = dd.from_pandas(FRAME, npartitions=3)
    model = DaskMixtureClassifier(POOL, goals=["recall >= 0.999", "error_rate <= 0.01"], **SETTINGS)
    with pytest.raises(InfeasibleGoals):
        model.set_params(pos_label="yes").fit(frame, "label", sensitive_features=["sex"])
    for ask in (model.to_local, model.check_goals, lambda: model.predict(frame)):
        with pytest.raises(NotFittedError):
            ask()
