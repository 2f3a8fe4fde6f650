"""What Dask collections may look like: odd ones work, or are refused with a sentence."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from counterpoise import load, save
from counterpoise.distributed import DaskGoalClassifier, DaskMixtureClassifier
from counterpoise.learners import Stump

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
STUMP = DecisionTreeClassifier(max_depth=1, random_state=0)
POOL = [clone(STUMP).fit(rows[["a", "b"]], rows.label) for rows in (FRAME, FRAME[:50])]
MODEL = DaskMixtureClassifier(POOL, alpha=0.5, random_state=0)


@pytest.fixture(scope="module")
def client():
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        yield client


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
