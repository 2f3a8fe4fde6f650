"""Models of LightGBM, XGBoost and CatBoost in pools: stored in the format of their library, checked when loaded."""

import copy
import json
import re
import sys
from functools import partial

import numpy as np
import pytest
from crafting import X, crafted, taken_apart, y
from numpy.testing import assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterpoise as cp
from counterpoise.persist import UnreadableModel, UnstorableModel, dumps, loads
from counterpoise.persist.values import ModelFile

TRUSTED = ["catboost.core.CatBoostClassifier"]
SETTINGS = {
    "lightgbm": ("LGBMClassifier", {"n_estimators": 3, "n_jobs": 1, "verbose": -1, "min_child_samples": 2}),
    "xgboost": ("XGBClassifier", {"n_estimators": 3, "n_jobs": 1, "max_depth": 2}),
    "catboost": (
        "CatBoostClassifier",
        {"iterations": 3, "thread_count": 1, "verbose": False, "allow_writing_files": False},
    ),
}
TEXT = ("lightgbm", "xgboost")


def unfitted(package, **settings):
    library = pytest.importorskip(package, reason=f"{package} is not installed")
    kind, usual = SETTINGS[package]
    return getattr(library, kind)(**(usual | settings))


@pytest.fixture(scope="module")
def fitted():
    made = {}

    def fit(package):
        if package not in made:
            made[package] = unfitted(package).fit(X[:100], y[:100])
        return made[package]

    return fit


def file_of(data):
    """Return the name and the content of the one file of another library."""
    _, members = taken_apart(data)
    ((name, content),) = [(name, members[name]) for name in members if name.startswith("models/")]
    return name, content


def with_file(change):
    """Return a change that edits the file of the other library."""

    def edit(_manifest, members):
        (name,) = [name for name in members if name.startswith("models/")]
        members[name] = change(members[name].decode()).encode()

    return edit


@pytest.mark.parametrize("package", SETTINGS)
@pytest.mark.parametrize(
    "choose",
    [cp.MixtureClassifier, partial(cp.GoalClassifier, cv="prefit", decision="sticky", alpha=0.1)],
    ids=["mixture of answers", "rules of scores"],
)
def test_a_pool_decides_after_loading_as_before(package, choose, fitted, tmp_path):
    model = choose([fitted(package)], random_state=0).fit(X[100:], y[100:])
    cp.save(model, tmp_path / "model.cp")
    again = cp.load(tmp_path / "model.cp", trusted=TRUSTED)
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert_array_equal(again.predict(X), model.predict(X))
    assert_array_equal(again.rebalance(alpha=0.5).mixture_, model.rebalance(alpha=0.5).mixture_)


def test_text_labels_and_pipelines_survive():
    pytest.importorskip("skops", reason="skops is not installed")
    labels = np.where(y == 1, "benign", "malignant")
    model = make_pipeline(StandardScaler(), unfitted("lightgbm")).fit(X, labels)
    again = loads(dumps(model))
    assert_array_equal(again.predict(X), model.predict(X))
    assert again.classes_.tolist() == ["benign", "malignant"]


@pytest.mark.parametrize("package", SETTINGS)
def test_unfitted_models_keep_their_settings(package):
    again = loads(dumps(unfitted(package)), trusted=TRUSTED)
    assert {name: again.get_params()[name] for name in SETTINGS[package][1]} == SETTINGS[package][1]


def test_the_file_inside_is_one_that_the_library_reads(fitted):
    model, lightgbm = fitted("lightgbm"), pytest.importorskip("lightgbm")
    name, content = file_of(dumps(model))
    assert name == "models/0.lightgbm.txt"
    alone = lightgbm.Booster(model_str=content.decode())
    assert_array_equal(alone.predict(X), model.predict_proba(X)[:, 1])


@pytest.mark.parametrize("package", TEXT)
def test_saving_what_was_loaded_gives_the_same_bytes(package, fitted):
    data = dumps(fitted(package))
    assert dumps(loads(data)) == data


@pytest.mark.parametrize("package", TEXT)
def test_more_classes_are_stored_too(package):
    labels = y + (X[:, 0] > np.median(X[:, 0]))
    model = unfitted(package).fit(X, labels)
    assert_array_equal(loads(dumps(model)).predict_proba(X), model.predict_proba(X))


def test_splits_by_category_are_stored_too():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    rows = pd.DataFrame(X[:, :2], columns=["a", "b"])
    rows["c"] = pd.Categorical(np.array(list("pqrstu"))[np.argsort(np.argsort(X[:, 2])) * 6 // len(X)])
    model = unfitted("lightgbm", min_data_per_group=1, cat_smooth=0.0).fit(rows, y)
    assert "cat_threshold" in model.booster_.model_to_string()
    assert_array_equal(loads(dumps(model)).predict_proba(rows), model.predict_proba(rows))


@pytest.mark.filterwarnings("ignore:The argument 'eval_set'")  # which older versions know alone
def test_early_stopping_survives():
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    model = unfitted("lightgbm", n_estimators=30)
    stop = lightgbm.early_stopping(1, verbose=False)
    model.fit(X[:100], y[:100], eval_set=[(X[100:], 1 - y[100:])], callbacks=[stop])
    again = loads(dumps(model))
    assert again.best_iteration_ == model.best_iteration_ < 30
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def as_form(form, *children, name="0.txt", content=b""):
    """Return a change that makes one value of a form, with a file, the whole content."""

    def edit(manifest, members):
        members[f"models/{name}"] = content
        manifest.update(nodes=[["dict"], ["file", f"models/{name}"], ["form", form, [0], *children]], root=[2])
        manifest["layouts"] = []

    return edit


def first_number(field, number):
    """Return a change of the first number of the first field of that name."""
    return lambda text: re.sub(rf"(?<=\n{field}=)[^ \n]*", number, text, count=1)


def line(field, values):
    """Return a change of the first line of that name; None takes it out."""
    return lambda text: re.sub(rf"\n{field}=[^\n]*", "" if values is None else f"\n{field}={values}", text, count=1)


NODE, SIZE = "a tree in it refers to a node or a feature", "the size of a tree"
LIGHTGBM = {
    "a child outside": (first_number("left_child", "1000000"), NODE),
    "a child that is its parent": (first_number("left_child", "0"), NODE),
    "a leaf outside": (first_number("right_child", "-99"), NODE),
    "half a child": (first_number("left_child", "1.5"), "invalid literal for int"),
    "a feature outside": (first_number("split_feature", "5"), NODE),
    "a feature below the first": (first_number("split_feature", "-1"), NODE),
    "no such set of categories": (first_number("decision_type", "3"), "categories of a tree"),
    "sets that are not there": (first_number("num_cat", "1"), "categories of a tree"),
    "more leaves than there are": (first_number("num_leaves", "9999"), SIZE),
    "no leaves": (first_number("num_leaves", "0"), SIZE),
    "too few thresholds": (line("threshold", "0.5"), SIZE),
    "no children": (line("left_child", None), r"it is not a model file of LightGBM: KeyError\('left_child'\)"),
    "a word for a number": (first_number("threshold", "x"), "could not convert string to float"),
    "digits of another alphabet": (first_number("left_child", "\u0661"), "a line of a tree"),
    "linear leaves": (first_number("is_linear", "1"), "a tree with linear models in its leaves"),
    "two lines of one name": (first_number("shrinkage", "1\nleft_child=0"), "a line of a tree"),
    "more classes": (first_number("num_class", "2"), "its number of classes"),
    "classes of another number": (first_number("objective", "multiclass num_class:7"), "its number of classes"),
    "sizes of trees that are none": (first_number("tree_sizes", "-5"), None),
    "no leaf values": (line("leaf_value", None), "Tree model string format error"),  # as LightGBM says
    "cut short": (lambda text: text[: len(text) // 2], "that it is a model of LightGBM"),
    "nothing": (lambda _text: "", "that it is a model of LightGBM"),
}


@pytest.mark.parametrize(("change", "message"), LIGHTGBM.values(), ids=LIGHTGBM)
def test_broken_files_of_lightgbm_are_refused(change, message, fitted):
    data = crafted(with_file(change), dumps(fitted("lightgbm")))
    if message is None:  # it is not looked at
        assert_array_equal(loads(data).predict(X), fitted("lightgbm").predict(X))
        return
    with pytest.raises(UnreadableModel, match=rf"its model of LightGBM is broken \({message}"):
        loads(data)


TREE = {
    "id": 0,
    "tree_param": {"num_nodes": "5", "num_feature": "4", "size_leaf_vector": "1", "num_deleted": "0"},
    "split_conditions": [0.5, 0.0, 0.1, 0.2, 0.3],
    "base_weights": [0.0] * 5,
    "loss_changes": [1.0, 2.0, 0.0, 0.0, 0.0],
    "sum_hessian": [9.0, 5.0, 4.0, 2.0, 3.0],
    "left_children": [1, 3, -1, -1, -1],
    "right_children": [2, 4, -1, -1, -1],
    "parents": [2147483647, 0, 0, 1, 1],
    "split_indices": [3, 0, 0, 0, 0],
    "default_left": [1, 0, 0, 0, 0],
    "split_type": [0, 1, 0, 0, 0],
    "categories_nodes": [1],
    "categories_segments": [0],
    "categories_sizes": [2],
    "categories": [0, 3],
}


def xgboost_file(change):
    """Return a model of XGBoost of one tree after a change of the learner, of its model and of the tree."""
    tree = copy.deepcopy(TREE)
    params = {"num_trees": "1", "num_parallel_tree": "1"}
    model = {"trees": [tree], "tree_info": [0], "gbtree_model_param": params, "iteration_indptr": [0, 1]}
    learner = {
        "learner_model_param": {"num_feature": "4", "num_class": "0", "num_target": "1"},
        "gradient_booster": {"name": "gbtree", "model": model},
        "objective": {"name": "binary:logistic"},
    }
    change(learner, model, tree)
    return json.dumps({"learner": learner}).encode()


def of_tree(**changes):
    return lambda _learner, _model, tree: tree.update(changes)


def of_size(**changes):
    return lambda _learner, _model, tree: tree["tree_param"].update(changes)


def of_model(**changes):
    return lambda _learner, model, _tree: model.update(changes)


def of_learner(part, **changes):
    return lambda learner, _model, _tree: learner[part].update(changes)


def as_dart(learner, _model, _tree):
    learner["gradient_booster"] = {"name": "dart", "weight_drop": [1.0, 1.0], "gbtree": learner["gradient_booster"]}


CATEGORIES = "categories of a tree"
XGBOOST = {
    "a feature outside": (of_tree(split_indices=[4, 0, 0, 0, 0]), NODE),
    "a way back to the root": (of_tree(right_children=[2, 0, -1, -1, -1]), NODE),
    "a child that is no node": (of_tree(left_children=[1, 5, -1, -1, -1]), NODE),
    "one child of two nodes": (of_tree(left_children=[1, 2, -1, -1, -1]), NODE),
    "half a child": (of_tree(left_children=[1, 3.5, -1, -1, -1]), "a list of whole numbers"),
    "a number that is a truth": (of_tree(left_children=[True, 3, -1, -1, -1]), "a list of whole numbers"),
    "leaves that are vectors": (of_size(size_leaf_vector="2"), "a tree whose leaves are vectors"),
    "a set of another node": (of_tree(categories_nodes=[0]), CATEGORIES),
    "a set that begins later": (of_tree(categories_segments=[1]), CATEGORIES),
    "a set that is longer": (of_tree(categories_sizes=[3]), CATEGORIES),
    "an empty set": (of_tree(categories_sizes=[0], categories=[]), CATEGORIES),
    "a category below the first": (of_tree(categories=[-1, 3]), CATEGORIES),
    "a tree of no class": (of_model(tree_info=[1]), "the classes of its trees"),
    "other rounds": (of_model(iteration_indptr=[0]), "its rounds"),
    "no trees in a round": (of_model(gbtree_model_param={"num_trees": "1", "num_parallel_tree": "0"}), "range()"),
    "recoded categories": (of_model(cats={"enc": [1]}), "its recoding of category columns"),
    "two targets": (of_learner("learner_model_param", num_target="2"), "its number of targets"),
    "more classes": (of_learner("learner_model_param", num_class="3"), "its rounds"),
    "classes of another number": (of_learner("objective", softmax_multiclass_param={"num_class": "3"}), "its number"),
    "another objective": (of_learner("objective", name="reg:tweedie"), "its objective 'reg:tweedie'"),
    "no trees": (of_learner("gradient_booster", name="gblinear"), "its booster 'gblinear'"),
    "weights of other trees": (as_dart, "the weights of its trees"),
    "no learner": (lambda learner, _model, _tree: learner.clear(), "it is not a model file of XGBoost"),
}


@pytest.mark.parametrize(("change", "message"), XGBOOST.values(), ids=XGBOOST)
def test_broken_files_of_xgboost_are_refused(change, message):
    data = crafted(as_form("XGBoost", None, [1], name="0.xgboost.json", content=xgboost_file(change)))
    with pytest.raises(UnreadableModel, match=rf"its model of XGBoost is broken \({re.escape(message)}"):
        loads(data)


def test_a_whole_tree_of_xgboost_passes_and_only_the_library_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    whole = xgboost_file(lambda *_: None)
    with pytest.raises(UnreadableModel, match="which needs xgboost: pip install xgboost"):
        loads(crafted(as_form("XGBoost", None, [1], name="0.xgboost.json", content=whole)))


def test_files_that_are_too_large_are_refused(fitted, monkeypatch):
    data = dumps(fitted("lightgbm"))
    monkeypatch.setattr("counterpoise.persist.boosted._MOST_BYTES", 1000)
    with pytest.raises(UnreadableModel, match=r"its file has \d+ bytes, and a file of a model may have at most 1000"):
        loads(data)


def test_a_binary_file_is_read_only_where_it_is_trusted(fitted):
    data = dumps(fitted("catboost"))
    with pytest.raises(UnreadableModel, match=r"trusted=\['catboost.core.CatBoostClassifier'\]"):
        loads(data)

    def cut(_manifest, members):
        members["models/0.catboost.cbm"] = members["models/0.catboost.cbm"][:200]

    with pytest.raises(UnreadableModel, match="its model of CatBoost is broken"):
        loads(crafted(cut, data), trusted=TRUSTED)


def test_linear_boosters_are_refused_when_they_are_saved():
    model = unfitted("xgboost", booster="gblinear", max_depth=None).fit(X, y)
    with pytest.raises(UnstorableModel, match="its booster 'gblinear', which is no tree booster, cannot be right"):
        dumps(model)


@pytest.mark.parametrize(
    ("package", "title"), [("lightgbm", "LightGBM"), ("xgboost", "XGBoost"), ("catboost", "CatBoost")]
)
def test_without_the_library_a_sentence_names_it(package, title, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UnreadableModel, match=f"a model of {title}, which needs {package}: pip install {package}"):
        loads(crafted(as_form(title, None, None)), trusted=TRUSTED)


def test_more_files_than_one_holds_are_refused():
    with pytest.raises(UnstorableModel, match="It has 10000 arrays and models, and a file can hold at most 9999"):
        dumps([ModelFile("txt", b"") for _ in range(10_000)])


def test_a_file_that_is_missing_or_of_another_library_is_refused():
    unfitted("lightgbm")
    with pytest.raises(UnreadableModel, match="a model of LightGBM lacks its file"):
        loads(crafted(as_form("LightGBM", None, [1])))

    def lost(manifest, _members):
        manifest.update(nodes=[["file", "models/9.lightgbm.txt"]], root=[0])

    with pytest.raises(UnreadableModel, match=r"refers to the file 'models/9.lightgbm.txt', which it does not hold"):
        loads(crafted(lost))
