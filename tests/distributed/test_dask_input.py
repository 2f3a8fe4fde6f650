"""What Dask collections may look like: odd ones work, or are refused with a sentence."""

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from counterpoise import Deferral, GoalClassifier, load, save
from counterpoise.distributed import DaskGoalClassifier, DaskMixtureClassifier
from counterpoise.learners import Stump
from counterpoise.persist import UnreadableModel

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("dask.distributed")
dask = pytest.importorskip("dask")
delayed = dask.delayed

pytestmark = pytest.mark.filterwarnings("default")  # those of Dask are not ours

RNG = np.random.default_rng(8)
FRAME = pd.DataFrame({"a": RNG.normal(size=120), "b": RNG.normal(size=120), "sex": "M", "label": "no"})
FRAME.loc[80:, "sex"] = "F"  # a group in one partition only
FRAME.loc[FRAME.index[:40][FRAME.a[:40] > 0], "label"] = "yes"  # a class in one partition only
POOL = [Stump().fit(FRAME[["a", "b"]], FRAME.label), Stump().fit(FRAME[:50][["a", "b"]], FRAME.label[:50])]
MODEL = DaskMixtureClassifier(POOL, alpha=0.5, random_state=0)


@pytest.fixture(scope="module")
def client():
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        yield client


def test_clones_keep_fitted_models_and_copies_have_parameters_of_their_own():
    fitted = Stump().fit(FRAME[["a", "b"]], FRAME.label)
    assert clone(DaskMixtureClassifier([fitted])).estimators[0] is fitted
    model = DaskGoalClassifier(fitted, cv="prefit")
    assert clone(model).estimator is fitted
    assert repr(model) == "DaskGoalClassifier(cv='prefit', estimator=Stump())"
    copy.copy(model).set_params(cv=3)
    assert model.cv == "prefit"


def _frame(*parts):
    return dd.from_delayed([delayed(part) for part in parts], meta=parts[0].iloc[:0], verify_meta=False)


def _fitted(frame, **more):
    model = DaskMixtureClassifier(**MODEL.get_params(deep=False))
    return model.fit(frame, "label", sensitive_features=["sex"], **more)


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("model", [MODEL, DaskGoalClassifier(POOL[0], cv="prefit")])
def test_saved_models_decide_the_same(model, tmp_path):
    fitted = (
        clone(model).set_params(random_state=0).fit(dd.from_pandas(FRAME.drop(columns="sex"), npartitions=2), "label")
    )
    save(fitted, tmp_path / "model.cp")
    loaded = load(tmp_path / "model.cp")
    assert type(loaded) is type(model)
    rows = FRAME[["a", "b"]]
    assert loaded.predict(rows).tolist() == fitted.predict(rows).tolist()


def test_a_file_with_another_estimator_inside_is_refused(tmp_path):
    rows, model = FRAME[["a", "b"]], DaskMixtureClassifier([])
    model.local = GoalClassifier(Stump().fit(rows, FRAME.label), cv="prefit").fit(rows, FRAME.label)
    save(model, tmp_path / "model.cp")
    with pytest.raises(UnreadableModel, match="it must hold a MixtureClassifier, and holds a GoalClassifier"):
        load(tmp_path / "model.cp")


@pytest.mark.slow
@pytest.mark.usefixtures("client")
def test_empty_partitions_unknown_divisions_and_classes_or_groups_in_one_partition_do_not_matter():
    whole = _fitted(dd.from_pandas(FRAME, npartitions=1))
    odd = _frame(FRAME[:0], FRAME[:40], FRAME[40:40], FRAME[40:80], FRAME[80:], FRAME[:0])
    assert not odd.known_divisions
    other = _fitted(odd)
    assert other.mixture_.tolist() == whole.mixture_.tolist()
    assert other.classes_.tolist() == ["no", "yes"]
    assert (
        odd[["a", "b"]].map_partitions(len).compute().tolist()
        == other.predict(odd[["a", "b"]]).map_partitions(len).compute().tolist()
    )


@pytest.mark.usefixtures("client")
def test_columns_that_differ_between_partitions_are_named():
    parts = FRAME[:60], FRAME[60:].rename(columns={"b": "c"})
    with pytest.raises(ValueError, match=r"must have the same columns; they are a, b, .*partition 1 has a, c, "):
        DaskGoalClassifier(Stump(), cv=2).fit(_frame(*parts), "label", sensitive_features=["sex"])


@pytest.mark.usefixtures("client")
def test_a_column_that_is_not_there_is_named():
    with pytest.raises(
        ValueError,
        match="You named the column 'label', so X must be a data frame that has it; a partition of X has a, b, sex",
    ):
        _fitted(dd.from_pandas(FRAME.drop(columns="label"), npartitions=2))


@pytest.mark.usefixtures("client")
def test_collections_that_are_cut_at_other_rows_are_refused():
    X = dd.from_pandas(FRAME[["a", "b"]], npartitions=3)
    with pytest.raises(ValueError, match="cut at the same rows, with as many partitions each; X has 3, y has 2"):
        MODEL.fit(X, dd.from_pandas(FRAME.label, npartitions=2))
    other = da.from_array(FRAME.label.to_numpy(), chunks=((50, 30, 40),))
    with pytest.raises(ValueError, match=r"cut at the same rows; in partition . X has 40, y has [35]0"):
        MODEL.fit(X, other)
    with pytest.raises(ValueError, match=r"in partition . X has 40, y has 40, sensitive_features has [35]0"):
        MODEL.fit(X, dd.from_pandas(FRAME.label, npartitions=3), sensitive_features=other)


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": "yes"}, "two classes or more, and at most 1000; got 1 different labels in 2 partition.*'yes' alone"),
        ({"a": "text"}, "Features must be numbers; the column 'a' of X is of type .* in partition .* Encode it"),
        ({"label": [None, *["no"] * 119]}, "a label for each row; 1 of 60 are missing in partition 0"),
        ({"label": [np.nan, *[1.0] * 119]}, "a label for each row; 1 of 60 are missing in partition 0"),
        ({"label": FRAME.a}, "y must hold classes; got real numbers, such as "),
    ],
)
def test_rows_that_no_fit_takes_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        _fitted(dd.from_pandas(FRAME.assign(**change), npartitions=2))


@pytest.mark.usefixtures("client")
def test_labels_of_two_types_are_refused():
    with pytest.raises(ValueError, match="y must hold labels of one type in all partitions"):
        _fitted(_frame(FRAME[:60], FRAME[60:].assign(label=1)))


@pytest.mark.usefixtures("client")
def test_columns_in_another_order_and_numbers_of_another_type_do_not_matter():
    whole = _fitted(dd.from_pandas(FRAME.assign(b=FRAME.b.round()), npartitions=1))
    other = FRAME[60:].assign(b=FRAME.b.round().astype(int))[["label", "b", "sex", "a"]]
    odd = _fitted(_frame(FRAME[:60].assign(b=FRAME.b.round()), other))
    assert odd.mixture_.tolist() == whole.mixture_.tolist()
    assert odd.feature_names_in_.tolist() == ["a", "b"]


@pytest.mark.usefixtures("client")
def test_paths_without_parquet_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"or the path of Parquet files; there is no .*nothing\.parquet"):
        _fitted(tmp_path / "nothing.parquet")
    with pytest.raises(ValueError, match="There are no rows in Parquet files at "):
        _fitted(tmp_path)
    (tmp_path / "text.parquet").write_text("text")
    with pytest.raises(ValueError, match=r"Not all files at .* are Parquet files: "):
        _fitted(tmp_path)


def test_data_in_memory_and_rows_in_no_partition_are_refused():
    with pytest.raises(TypeError, match=r"X must be a Dask DataFrame.*got DataFrame\. For data in memory use"):
        MODEL.fit(FRAME, "label")
    with pytest.raises(ValueError, match="no rows in any partition"):
        _fitted(_frame(FRAME[:0], FRAME[:0]))


@pytest.mark.slow
def test_many_values_of_a_column_that_goals_see_are_refused():
    n_rows = 100_500
    frame = pd.DataFrame({"a": np.arange(n_rows) % 7, "sex": np.arange(n_rows)})
    frame["label"] = np.where(frame.a % 2, "yes", "no")
    with pytest.raises(ValueError, match="divide the rows into 100500 different groups, more than 100000"):
        _fitted(dd.from_pandas(frame, npartitions=2))


def test_of_models_that_exist_too_few_are_refused():
    with pytest.raises(ValueError, match="estimators"):
        DaskMixtureClassifier([]).fit(dd.from_pandas(FRAME, npartitions=2), "label", sensitive_features="sex")


class Trained(ClassifierMixin, BaseEstimator):
    """A classifier whose training, and whose answers, are counted."""

    n_calls = 0

    def fit(self, X, y, sample_weight=None):  # noqa: ARG002 - as scikit-learn calls it
        Trained.n_calls += 1
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        Trained.n_calls += 1
        return np.tile([0.5, 0.5], (len(X), 1))

    def predict(self, X):
        Trained.n_calls += 1
        return np.full(len(X), self.classes_[0])


BAD = [
    ({"goals": ["recall(sx=F) >= 0.5"]}, "Did you mean 'sex'"),
    ({"goals": ["recall(sex=X) >= 0.5"]}, "Unknown value 'X'"),
    ({"goals": ["recall(trian) >= 0.5"]}, "Did you mean 'train'"),
    ({"goals": ["churn <= 0.1"]}, "needs the deployed model's predictions"),
    ({"goals": ["defer_rate <= 0.1"]}, "set deferral"),
    ({"goals": ["recall >= 0.99 with confidence 0.9999"]}, "too few rows"),
    ({"objective": "false_positive_rate(sx=F)"}, "Did you mean 'sex'"),
    ({"objective": 'WorstGroup("sx")'}, "Did you mean 'sex'"),
    ({"pos_label": "maybe"}, "pos_label must be one of the classes"),
]
OF_RULES = [({"by": "sx"}, "Did you mean 'sex'"), ({"deferral": Deferral(0.2)}, "is not supported over Dask")]


@pytest.mark.slow
@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("kind", ["goals", "mixture"])
def test_what_the_rows_cannot_answer_is_refused_before_a_model_is_trained_or_asked(kind):
    fitted = Trained().fit(FRAME[["a", "b"]], FRAME.label)
    for params, match in BAD + OF_RULES:
        if kind == "goals":
            model = DaskGoalClassifier(Trained(), cv=2, **params)
        else:
            model = DaskGoalClassifier([fitted], cv="prefit", decision="sticky", **params)
        Trained.n_calls = 0
        with pytest.raises(ValueError, match=match):
            model.fit(dd.from_pandas(FRAME, npartitions=2), "label", sensitive_features=["sex"])
        assert Trained.n_calls == 0
