"""Models of LightGBM, XGBoost and CatBoost in pools: stored in the format of their library, checked when loaded."""

import json
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


def sized(text):
    """Return a LightGBM file with the sizes of its trees as they are."""
    head, *trees = text.partition("\nend of trees")[0].split("Tree=")
    end = text[text.index("\nend of trees") :]
    sizes = " ".join(str(len(f"Tree={tree}".encode())) for tree in trees[:-1])
    last = len(f"Tree={trees[-1]}\n".encode())
    head = "\n".join(f"tree_sizes={sizes} {last}" if line[:10] == "tree_sizes" else line for line in head.split("\n"))
    return head + "".join(f"Tree={tree}" for tree in trees) + end


def first_number(field, number):
    """Return a change of the first number of the first field of that name."""

    def change(text):
        start = text.index(f"\n{field}=") + len(field) + 2
        end = next(at for at in range(start, len(text)) if text[at] in " \n")
        return sized(text[:start] + number + text[end:])

    return change


LIGHTGBM = {
    "a child outside": (first_number("left_child", "1000000"), "a child in a tree cannot be right"),
    "a child that is its parent": (first_number("left_child", "0"), "a child in a tree cannot be right"),
    "a leaf outside": (first_number("right_child", "-99"), "a child in a tree cannot be right"),
    "a feature outside": (first_number("split_feature", "5"), "a feature of a tree cannot be right"),
    "no such set of categories": (first_number("decision_type", "3"), "categories of a tree cannot be right"),
    "sets that are not there": (first_number("num_cat", "1"), "cat_boundaries of a tree cannot be right"),
    "more leaves than there are": (first_number("num_leaves", "9999"), "leaf_value of a tree cannot be right"),
    "a word for a number": (first_number("threshold", "x"), "threshold of a tree cannot be right"),
    "more classes": (first_number("num_class", "2"), "its number of classes cannot be right"),
    "cut short": (lambda text: text[: len(text) // 2], "its tree sizes cannot be right"),
    "nothing": (lambda _text: "", "that it is a model of LightGBM cannot be right"),
}


@pytest.mark.parametrize(("change", "message"), LIGHTGBM.values(), ids=LIGHTGBM)
def test_broken_files_of_lightgbm_are_refused(change, message, fitted):
    with pytest.raises(UnreadableModel, match=rf"its model of LightGBM is broken \({message}"):
        loads(crafted(with_file(change), dumps(fitted("lightgbm"))))


def first_tree(change):
    """Return a change of the first tree of an XGBoost file."""
    return lambda model: change(model["learner"]["gradient_booster"]["model"]["trees"][0])


def first_entry(field, value):
    return first_tree(lambda tree: tree[field].__setitem__(0, value))


def in_learner(part, name, value):
    return lambda model: model["learner"][part].update({name: value})


XGBOOST = {
    "a child outside": (first_entry("left_children", 1000), "a child in a tree cannot be right"),
    "a child that is its parent": (first_entry("left_children", 0), "a child in a tree cannot be right"),
    "a feature outside": (first_entry("split_indices", 5), "a feature of a tree cannot be right"),
    "a list too short": (first_tree(lambda tree: tree["base_weights"].pop()), "base_weights of a tree"),
    "no such set of categories": (first_entry("split_type", 1), "categories of a tree cannot be right"),
    "trees out of order": (first_tree(lambda tree: tree.update(id=1)), "the order of its trees cannot be right"),
    "odd leaves": (first_tree(lambda tree: tree["tree_param"].update(size_leaf_vector="-1")), "a tree of another kind"),
    "more classes": (in_learner("learner_model_param", "num_class", "3"), "its rounds cannot be right"),
    "another objective": (in_learner("objective", "name", "reg:tweedie"), "its objective 'reg:tweedie'"),
    "another booster": (in_learner("gradient_booster", "name", "gblinear"), "its booster 'gblinear'"),
    "no learner": (lambda model: model.clear(), "it is not a model file of XGBoost"),
}


@pytest.mark.parametrize(("change", "message"), XGBOOST.values(), ids=XGBOOST)
def test_broken_files_of_xgboost_are_refused(change, message, fitted):
    def edited(text):
        model = json.loads(text)
        change(model)
        return json.dumps(model)

    with pytest.raises(UnreadableModel, match=rf"its model of XGBoost is broken \({message}"):
        loads(crafted(with_file(edited), dumps(fitted("xgboost"))))


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


def as_form(form, *children):
    """Return a change that makes one value of a form the whole file."""
    nodes = [["dict"], ["file", "models/0.txt"], ["form", form, [0], *children]]

    def edit(manifest, members):
        members["models/0.txt"] = b""
        manifest.update(nodes=nodes, root=[2], layouts=[])

    return edit


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
