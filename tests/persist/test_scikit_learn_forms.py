"""Common models of scikit-learn are stored as arrays: the same bits after loading, nothing followed blindly."""

import sys

import numpy as np
import pytest
from crafting import X, crafted, taken_apart, y
from numpy.testing import assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import counterpoise as cp
from counterpoise.persist import UnreadableModel, dumps, loads
from counterpoise.persist.models import load_lazily

pd = pytest.importorskip("pandas", reason="pandas is not installed")
IRIS, SPECIES = load_iris(return_X_y=True)
FRAME = pd.DataFrame(X, columns=list("abcde")).assign(f=pd.Categorical(np.array(list("pqr"))[np.arange(len(y)) % 3]))
FRAME.loc[3:9, "a"] = np.nan
ORDINAL = make_column_transformer(
    (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan, dtype=np.float32), ["f"]),
    remainder=StandardScaler(),
)
ONE_HOT = make_column_transformer(
    (OneHotEncoder(handle_unknown="infrequent_if_exist", sparse_output=False, max_categories=2), ["f"]),
    (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), list("abcde")),
)
MODELS = {
    "a tree": (DecisionTreeClassifier(max_depth=4, random_state=0), X, y),
    "a forest": (RandomForestClassifier(4, random_state=0), FRAME.drop(columns="f"), np.where(y == 1, "yes", "no")),
    "extra trees of three classes": (ExtraTreesClassifier(4, random_state=0, bootstrap=True), IRIS, SPECIES),
    "boosting": (HistGradientBoostingClassifier(max_iter=4), X, y),
    "boosting of categories": (HistGradientBoostingClassifier(max_iter=4, categorical_features="from_dtype"), FRAME, y),
    "boosting of three classes": (HistGradientBoostingClassifier(max_iter=4, early_stopping=True), IRIS, SPECIES),
    "logistic regression": (make_pipeline(ONE_HOT, LogisticRegression(class_weight="balanced")), FRAME, y),
    "naive Bayes": (GaussianNB(), X, y),
    "boosting of codes": (
        make_pipeline(ORDINAL, HistGradientBoostingClassifier(max_iter=4, categorical_features=[0])),
        FRAME,
        y,
    ),
}


@pytest.fixture(scope="module", params=MODELS.values(), ids=MODELS)
def fitted(request):
    model, rows, labels = request.param
    return model.fit(rows, labels), rows


def test_models_come_back_bit_for_bit_without_skops(fitted, monkeypatch):
    model, rows = fitted
    monkeypatch.setitem(sys.modules, "skops.io", None)
    data = dumps(model)
    again = loads(data)
    assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
    assert again.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert dumps(again) == data


def test_trees_come_back_with_all_that_they_know():
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    first, second = model.tree_.__getstate__(), loads(dumps(model)).tree_.__getstate__()
    assert first["nodes"].tobytes() == second["nodes"].tobytes()
    assert first["max_depth"] == second["max_depth"]
    assert_array_equal(first["values"], second["values"])


def test_a_forest_takes_less_room_than_its_nodes():
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    nodes = sum(one.tree_.__getstate__()["nodes"].nbytes for one in model.estimators_)
    assert len(dumps(model)) < nodes


def test_what_has_no_form_inside_is_left_to_skops():
    pytest.importorskip("skops", reason="skops is not installed")
    model = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    _, members = taken_apart(dumps(model))
    assert "foreign.skops" in members
    assert_array_equal(loads(dumps(model)).predict(X), model.predict(X))


def node(manifest, kind, form):
    return next(one for one in manifest["nodes"] if one[:2] == [kind, form])


def in_column(form, column, value, where=0):
    """Return a change of one entry of a column of the nodes of trees."""

    def change(manifest, members):
        nodes = manifest["nodes"]
        columns = nodes[node(manifest, "form", form)[4][0]]
        pack, start = nodes[columns[2 + columns.index(column) - 1][0]][1:3]
        name = f"arrays/{'little-' if pack[0] == '<' else ''}{pack.strip('<|')}.npy"
        size, content = np.dtype(pack).itemsize, bytearray(members[name])
        begin = len(content) - len(values_of(members, name)) * size + (start + where) * size
        content[begin : begin + size] = np.array([value], dtype=pack).tobytes()
        members[name] = bytes(content)

    return change


def values_of(members, name):
    import io  # noqa: PLC0415 - as the files are arrays

    return np.load(io.BytesIO(members[name]))


TREE, ROUNDS = "tree of scikit-learn", "histogram trees of scikit-learn"
CRAFTED = {
    "a child outside": (TREE, "left_child", 120),
    "a child that is its parent": (TREE, "right_child", 0),
    "a child of two": (TREE, "right_child", 1),
    "a feature outside": (TREE, "feature", 100),
    "a histogram child outside": (ROUNDS, "left", 250),
    "a histogram feature outside": (ROUNDS, "feature_idx", 100),
    "a histogram child of two": (ROUNDS, "right", 1),
    "no such set of categories": (ROUNDS, "bitset_idx", 200),
}


@pytest.mark.parametrize(("form", "column", "value"), CRAFTED.values(), ids=CRAFTED)
def test_crafted_trees_are_refused(form, column, value):
    labels = (FRAME["f"] == "q").to_numpy().astype(int)
    boosting = HistGradientBoostingClassifier(max_iter=2, categorical_features="from_dtype", min_samples_leaf=5)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    data = dumps(tree.fit(X, y) if form == TREE else boosting.fit(FRAME, labels))
    loads(crafted(lambda _manifest, _members: None, data))
    with pytest.raises(UnreadableModel, match="a tree of scikit-learn in it refers to a node that does not exist"):
        loads(crafted(in_column(form, column, value), data))


def test_a_preprocessor_that_drops_features_is_refused():
    model = HistGradientBoostingClassifier(max_iter=1, categorical_features="from_dtype").fit(FRAME, y)
    (name, step, mask), *others = model._preprocessor.transformers_
    model._preprocessor.transformers_ = [(name, step, ~mask), *others]
    with pytest.raises(UnreadableModel, match="refers to a node that does not exist"):
        loads(dumps(model))


def test_models_of_a_pool_wait_until_they_are_asked(tmp_path):
    pool = [DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X[:100], y[:100]) for depth in (1, 2, 3)]
    model = cp.MixtureClassifier(pool, alpha=0.3, random_state=0).fit(X[100:], y[100:])
    cp.save(model, tmp_path / "model.cp")
    again = load_lazily(tmp_path / "model.cp")
    other = again.rebalance(alpha=1.0, goals=["recall >= 0.5"])
    assert dumps(other) == dumps(model.rebalance(alpha=1.0, goals=["recall >= 0.5"]))
    assert [one._model for one in again.estimators_] == [None] * 3
    assert_array_equal(other.predict_proba(X), model.rebalance(alpha=1.0, goals=["recall >= 0.5"]).predict_proba(X))
    assert [one._model is not None for one in again.estimators_] == (other.mixture_ > 0).tolist()
    assert again.estimators_[2].get_depth() == 3
    assert type(cp.load(tmp_path / "model.cp").estimators_[0]) is DecisionTreeClassifier


def test_files_nested_without_end_are_refused():
    data = dumps(GaussianNB().fit(X, y))
    for _ in range(12):
        data = crafted(lambda manifest, members: wrapped(manifest, members, data), data)  # noqa: B023 - used at once
    with pytest.raises(UnreadableModel, match="files in it are nested too deeply"):
        loads(data)


def wrapped(manifest, members, inner):
    members.clear()
    members["parts/0.cp"] = inner
    manifest |= {"layouts": [], "nodes": [["part", "parts/0.cp"]], "root": [0]}
    return manifest
