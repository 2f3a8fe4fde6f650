"""Models of scikit-learn come back by skops with the same answers; nothing in their files is run or trusted."""

import copy
import io
import pickle
import sys
import zipfile

import numpy as np
import pytest
from crafting import X, crafted, y
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
from counterpoise.learners import HistogramTree
from counterpoise.persist import UnreadableModel, UnstorableModel, dumps, loads
from counterpoise.persist.models import load_lazily

pd = pytest.importorskip("pandas", reason="pandas is not installed")
skops = pytest.importorskip("skops.io", reason="skops is not installed")

IRIS, SPECIES = load_iris(return_X_y=True)
FRAME = pd.DataFrame(X, columns=list("abcde")).assign(f=pd.Categorical(np.array(list("pqr"))[np.arange(len(y)) % 3]))
FRAME.loc[3:9, "a"] = np.nan
ORDINAL = make_column_transformer(
    (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan, dtype=np.float32), ["f"]),
    remainder=StandardScaler(),
)
ONE_HOT = make_column_transformer(
    (OneHotEncoder(handle_unknown="infrequent_if_exist", sparse_output=False, max_categories=2), ["f"]),
    (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), slice(0, 5)),
)
MODELS = {
    "tree": (DecisionTreeClassifier(max_depth=4, random_state=0), X, y),
    "forest of texts": (RandomForestClassifier(4, random_state=0), FRAME[["a", "b"]], np.where(y == 1, "yes", "no")),
    "extra trees of three classes": (ExtraTreesClassifier(4, random_state=0, bootstrap=True), IRIS, SPECIES),
    "boosting": (HistGradientBoostingClassifier(max_iter=4), X, y),
    "boosting of categories": (HistGradientBoostingClassifier(max_iter=4, categorical_features="from_dtype"), FRAME, y),
    "boosting of three classes": (HistGradientBoostingClassifier(max_iter=4, early_stopping=True), IRIS, SPECIES),
    "boosting of codes": (
        make_pipeline(ORDINAL, HistGradientBoostingClassifier(max_iter=4, categorical_features=[0])),
        FRAME,
        y,
    ),
    "logistic regression": (make_pipeline(ONE_HOT, LogisticRegression(class_weight="balanced")), FRAME, y),
    "naive Bayes": (GaussianNB(), X, y),
    "support vectors": (make_pipeline(StandardScaler(), SVC()), X, y),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_come_back_bit_for_bit(name):
    model, rows, labels = MODELS[name]
    again = loads(dumps(model.fit(rows, labels)))
    method = "predict_proba" if hasattr(model, "predict_proba") else "decision_function"
    assert_array_equal(getattr(again, method)(rows), getattr(model, method)(rows))
    assert again.get_params(deep=False).keys() == model.get_params(deep=False).keys()


def test_a_forest_takes_less_room_than_its_pickle():
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    assert len(dumps(model)) < len(pickle.dumps(model))


def test_without_skops_a_sentence_says_what_to_install(monkeypatch):
    data = dumps(GaussianNB().fit(X, y))
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(UnreadableModel, match=r'needs skops: pip install "counterpoise\[models\]"'):
        loads(data)
    with pytest.raises(UnstorableModel, match=r'it is a model of .* needs skops: pip install "counterpoise\[models\]"'):
        dumps(GaussianNB().fit(X, y))
    tree = HistogramTree().fit(X, y)  # of ours, which needs none
    assert_array_equal(loads(dumps(tree)).predict(X), tree.predict(X))


CATEGORIES = np.array([["a", "x"], ["b", "y"], ["c", "z"]] * 67, dtype=object)[: len(y)]


def tree_with(**changes):
    """Return a tree of scikit-learn whose first node has other entries."""
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    state = model.tree_.__getstate__()
    for field, value in changes.items():
        state["nodes"][field][0] = value
    model.tree_.__setstate__(state)
    return model


def boosting():
    model = HistGradientBoostingClassifier(max_iter=1, categorical_features="from_dtype", min_samples_leaf=5)
    return model.fit(FRAME, (FRAME["f"] == "q").to_numpy())


def boosting_with(**changes):
    model = boosting()
    nodes = model._predictors[0][0].nodes
    for field, value in changes.items():
        nodes[field][0] = value
    return model


def boosting_that_drops_features():
    model = boosting()
    (name, step, mask), *others = model._preprocessor.transformers_
    model._preprocessor.transformers_ = [(name, step, ~mask), *others]
    return model


def forest_of_other_features():
    model = RandomForestClassifier(3, random_state=0).fit(X, y)
    model.estimators_[1] = DecisionTreeClassifier().fit(np.hstack([X, X]), y)
    return model


def one_hot_with(outs=None, mapping=None):
    model = make_pipeline(OneHotEncoder(min_frequency=68), LogisticRegression()).fit(CATEGORIES, y)
    if outs is not None:
        model[0]._n_features_outs = outs
    if mapping is not None:
        model[0]._default_to_infrequent_mappings[0] = np.array(mapping)
    return model


CRAFTED = {
    "a child outside": lambda: tree_with(left_child=10**6),
    "a child before the root": lambda: tree_with(left_child=-7),
    "a child that is its parent": lambda: tree_with(right_child=0),
    "a child of two": lambda: tree_with(right_child=1),
    "a feature outside": lambda: tree_with(feature=10**6),
    "a feature below the first": lambda: tree_with(feature=-7),
    "a histogram child outside": lambda: boosting_with(left=10**6),
    "a histogram child of two": lambda: boosting_with(right=1),
    "a histogram feature outside": lambda: boosting_with(feature_idx=6),
    "no such set of categories": lambda: boosting_with(bitset_idx=200),
    "a preprocessor that drops features": boosting_that_drops_features,
    "a forest of trees on other features": forest_of_other_features,
    "too many columns of a category": lambda: one_hot_with(outs=[10**12, 6 - 10**12]),
    "too few columns": lambda: one_hot_with(outs=[3]),
    "columns below none": lambda: one_hot_with(outs=[-1, 7]),
    "a rare category outside": lambda: one_hot_with(mapping=[0, 0, 10**9]),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_crafted_models_are_refused(name):
    with pytest.raises(UnreadableModel, match="a tree in it refers to a node or a feature that does not exist"):
        loads(dumps(CRAFTED[name]()))


class Evil:
    def __setstate__(self, state):
        raise AssertionError("a file ran code")


def zipped(content, packing=zipfile.ZIP_DEFLATED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", packing) as archive:
        archive.writestr("schema.json", content)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (lambda: skops.dumps([Evil()]), r"holds types that are not on the list of trusted types: .*Evil"),
        (lambda: b"PK nonsense", "its models of scikit-learn are broken"),
        (lambda: zipped(10**7 * " "), "a file inside it would unpack to far more bytes than it has"),
    ],
    ids=["another type", "no zip", "bomb"],
)
def test_a_member_of_harm_is_refused(member, message):
    def change(_manifest, members):
        members["models.skops"] = member()

    with pytest.raises(UnreadableModel, match=message):
        loads(crafted(change, dumps(GaussianNB().fit(X, y))))


def test_models_of_a_pool_wait_until_they_are_asked(tmp_path):
    pool = [DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X[:100], y[:100]) for depth in (1, 2, 3)]
    model = cp.MixtureClassifier(pool, alpha=0.3, random_state=0).fit(X[100:], y[100:])
    cp.save(model, tmp_path / "model.cp")
    again = load_lazily(tmp_path / "model.cp")
    other, expected = (one.rebalance(alpha=1.0, goals=["recall >= 0.5"]) for one in (again, model))
    assert [waiting._model for waiting in again.estimators_] == [None] * 3
    assert_array_equal(other.predict_proba(X), expected.predict_proba(X))
    assert [waiting._model is not None for waiting in again.estimators_] == (other.mixture_ > 0).tolist()
    assert again.estimators_[2].get_depth() == 3
    assert type(cp.load(tmp_path / "model.cp").estimators_[0]) is DecisionTreeClassifier


def test_a_model_that_waits_is_copied_and_sent_as_itself(tmp_path):
    trees = [DecisionTreeClassifier(max_depth=depth).fit(X, y) for depth in (1, 2)]
    cp.save(cp.MixtureClassifier(trees, random_state=0).fit(X, y), tmp_path / "m.cp")
    mixture = load_lazily(tmp_path / "m.cp")
    waiting, expected = mixture.estimators_[0], trees[0].predict(X)
    for copied in (copy.copy(waiting), copy.deepcopy(waiting), pickle.loads(pickle.dumps(waiting))):  # noqa: S301 - our own
        assert_array_equal(copied.predict(X), expected)
    assert_array_equal(copy.deepcopy(mixture).predict(X), mixture.predict(X))


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
