"""Models of LightGBM, XGBoost and CatBoost inside ours, each in the file format of its own library.

Their libraries read these files, and their errors are translated. LightGBM and XGBoost follow whatever a tree points
to, and some crafted files would end the process: so the children, features and categories of trees, and their classes
and rounds, are checked here first. The format of CatBoost is binary, and a crafted file can do harm: it is read only
where the caller trusts the writer of the file.
"""

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.lazy import import_optional
from counterpoise._base.text import load_json, short
from counterpoise._base.types import IntArray
from counterpoise.persist.container import UnreadableModel
from counterpoise.persist.trees import check_nodes
from counterpoise.persist.values import Codec, ModelFile, Parts

_MOST_BYTES = 1 << 28  # of a file; ten thousand trees of 31 leaves take an eighth
_OBJECTIVES = ("binary:logistic", "binary:logitraw", "binary:hinge", "reg:logistic", "multi:softprob", "multi:softmax")


def _require(condition: Any, what: str) -> None:
    if not condition:
        raise ValueError(f"{what} cannot be right")


def _check_lightgbm(content: bytes) -> None:
    """Check the text of a LightGBM model: trees after a head, each of lines of a name and its values."""
    text, end, _ = content.decode().partition("\nend of trees")
    head_text, *trees = text.split("\nTree=")
    head = dict(line.partition("=")[::2] for line in head_text.split("\n"))
    is_whole = end and text.startswith("tree\n") and not re.search("[\r\0]", text)
    _require(is_whole, "that it is a model of LightGBM")
    n_scores = int(head["num_tree_per_iteration"])
    n_classes = re.findall(r"\bnum_class:(\d+)", head.get("objective", ""))
    _require(n_scores >= 1 and {head["num_class"], *n_classes} == {str(n_scores)}, "its number of classes")
    for tree in trees:
        lines = [_LINE_OF_TREE.fullmatch(line) for line in tree.split("\n")[1:] if line]
        fields = {line[1]: line[2] for line in lines if line is not None}
        _require(len(fields) == len(lines), "a line of a tree")
        _check_lightgbm_tree(fields, int(head["max_feature_idx"]) + 1)


_LINE_OF_TREE = re.compile(r"([a-z_]+)=([-+.0-9a-z ]*)")


def _check_lightgbm_tree(tree: dict[str, str], n_features: int) -> None:
    n_splits, n_sets = int(tree["num_leaves"]) - 1, int(tree["num_cat"])
    _require(n_splits >= 0 and n_sets >= 0, "the size of a tree")
    _require(int(tree.get("is_linear", "0")) == 0, "a tree with linear models in its leaves")
    if n_splits == 0:
        return
    names = ("left_child", "right_child", "split_feature", "decision_type")
    left, right, feature, kind = (_whole([int(number) for number in tree[name].split(" ")]) for name in names)
    threshold = np.array(tree["threshold"].split(" "), dtype=np.float64)
    _require({column.size for column in (left, right, feature, kind, threshold)} == {n_splits}, "the size of a tree")
    # A child below zero is a leaf, -1 the first one. Here the leaves come behind the splits.
    left, right = (np.where(child < 0, n_splits - 1 - child, child) for child in (left, right))
    leaves = np.full(n_splits + 1, -1)
    left, right, feature = (np.concatenate([column, leaves]) for column in (left, right, feature))
    check_nodes(left, right, feature, np.arange(left.size) >= n_splits, n_features)
    sets = threshold[kind % 2 == 1]  # of categories, by their numbers
    _require(((sets >= 0) & (sets < n_sets)).all(), "categories of a tree")
    bounds = _whole([int(number) for number in tree.get("cat_boundaries", "0").split(" ")])
    _require(bounds.size == n_sets + 1 and bounds[0] == 0 and (np.diff(bounds) >= 0).all(), "categories of a tree")
    _require(len(tree.get("cat_threshold", "").split()) == bounds[-1], "categories of a tree")


def _check_xgboost(content: bytes) -> None:
    """Check the JSON of an XGBoost model."""
    learner = load_json(content)["learner"]
    params, booster, objective = (learner[name] for name in ("learner_model_param", "gradient_booster", "objective"))
    n_features, n_scores = int(params["num_feature"]), max(int(params["num_class"]), 1)
    _require(int(params.get("num_target", "1")) == 1, "its number of targets")
    _require(objective["name"] in _OBJECTIVES, f"its objective {objective['name']!r}, which is of no classifier,")
    n_classes = int(objective.get("softmax_multiclass_param", params)["num_class"])
    _require(max(n_classes, 1) == n_scores, "its number of classes")
    if booster["name"] == "dart":
        _require(len(booster["weight_drop"]) == len(booster["gbtree"]["model"]["trees"]), "the weights of its trees")
        booster = booster["gbtree"]
    _require(booster["name"] == "gbtree", f"its booster {booster['name']!r}, which is no tree booster,")
    model = booster["model"]
    trees, forest, scores = model["trees"], model["gbtree_model_param"], _whole(model["tree_info"])
    _require(len(trees) == scores.size and ((scores >= 0) & (scores < n_scores)).all(), "the classes of its trees")
    rounds = list(range(0, len(trees) + 1, int(forest["num_parallel_tree"]) * n_scores))
    _require(model.get("iteration_indptr", rounds) == rounds and rounds[-1] == len(trees), "its rounds")
    _require(not any(model.get("cats", {}).values()), "its recoding of category columns, which is not known here,")
    for tree in trees:
        _check_xgboost_tree(tree, n_features)


def _check_xgboost_tree(tree: dict[str, Any], n_features: int) -> None:
    _require(int(tree["tree_param"].get("size_leaf_vector", "1")) in (0, 1), "a tree whose leaves are vectors")
    left, right, feature, kind = (
        _whole(tree[name]) for name in ("left_children", "right_children", "split_indices", "split_type")
    )
    check_nodes(left, right, feature, left == -1, n_features)
    names = ("categories_nodes", "categories_segments", "categories_sizes", "categories")
    nodes, starts, sizes_of_sets, categories = (_whole(tree.get(name, [])) for name in names)
    _require(np.array_equal(nodes, np.flatnonzero(kind)) and nodes.size == sizes_of_sets.size, "categories of a tree")
    ends = np.cumsum(sizes_of_sets)
    _require(np.array_equal(starts, ends - sizes_of_sets) and (sizes_of_sets > 0).all(), "categories of a tree")
    _require(categories.size == ends[-1:].sum() and (categories >= 0).all(), "categories of a tree")


def _check_catboost(content: bytes) -> None:
    """Check that it may be a model of CatBoost; CatBoost itself looks at the rest when it reads it."""
    _require(content.startswith(b"CBM1"), "that it is a model of CatBoost")


def _whole(values: list[Any]) -> IntArray:
    """Return whole numbers of 32 bits."""
    _require(all(type(value) is int and abs(value) < 1 << 31 for value in values), "a list of whole numbers")
    return np.array(values, dtype=np.int64)


class Library(NamedTuple):
    """A library whose classifiers we store."""

    title: str
    package: str
    kind: str  # the class, of which subclasses are no part
    suffix: str  # of its files
    is_fitted: Callable[[Any], bool]
    write: Callable[[Any], bytes]
    check: Callable[[bytes], None]
    read: Callable[[Any, bytes, dict[str, Any]], None]  # a file into an unfitted model
    left_out: tuple[str, ...] = ()  # parameters that are not stored
    learned: Callable[[Any], dict[str, Any]] = lambda _: {}  # what its file does not hold

    def apart(self, model: Any) -> Parts:
        """Return the parameters, what was learned besides the trees, and the file, which is None before ``fit``."""
        params = {name: value for name, value in model.get_params(deep=False).items() if name not in self.left_out}
        if not self.is_fitted(model):
            return params, None, None
        content = self.write(model)
        try:
            self.check_file(content)
        except ValueError as error:
            raise TypeError(f"a model of {self.title} that cannot be stored: {error}") from error
        return params, self.learned(model), ModelFile(self.suffix, content)

    def together(self, params: Any, learned: Any, file: Any) -> Any:
        """Return the model."""
        if file is not None and (not isinstance(file, ModelFile) or file.suffix != self.suffix):
            raise UnreadableModel(f"a model of {self.title} lacks its file")
        advice = f"it holds a model of {self.title}, which needs {self.package}: pip install {self.package}"
        try:
            if file is not None:
                self.check_file(file.content)
            model = getattr(import_optional(self.package, UnreadableModel, advice), self.kind)(**params)
            if file is not None:
                self.read(model, file.content, learned)
        except UnreadableModel:
            raise
        except Exception as error:  # every library raises its own
            words = " ".join(str(error).split()) or type(error).__name__
            raise UnreadableModel(f"its model of {self.title} is broken ({short(words)})") from error
        return model

    def check_file(self, content: bytes) -> None:
        """Check the size of a file, and what the loops of its library follow without looking."""
        if len(content) > _MOST_BYTES:
            raise ValueError(f"its file has {len(content)} bytes, and a file of a model may have at most {_MOST_BYTES}")
        try:
            self.check(content)
        except UnreadableModel as error:  # by the check of nodes
            raise ValueError(str(error)) from error
        except (AttributeError, LookupError, TypeError, RecursionError) as error:
            raise ValueError(f"it is not a model file of {self.title}: {short(repr(error))}") from error


_LIGHTGBM_LEARNED = {"_best_iteration": int, "_fitted_with_feature_names": bool, "_objective": str}


def _lightgbm_learned(model: Any) -> dict[str, Any]:
    state = {name: value for name, value in vars(model).items() if name in _LIGHTGBM_LEARNED}
    return {"classes": model.classes_, "n_features": model.n_features_, "state": state}


def _lightgbm_read(model: Any, content: bytes, learned: dict[str, Any]) -> None:
    """Restore a model, whose labels LightGBM's own file does not hold."""
    from lightgbm import Booster  # noqa: PLC0415 - an optional package
    from sklearn.preprocessing import LabelEncoder  # noqa: PLC0415 - this file lies below scikit-learn

    classes, n_features, state = np.asarray(learned["classes"]), learned["n_features"], learned["state"]
    kinds = {name: type(value) for name, value in state.items()}
    if not kinds.items() <= _LIGHTGBM_LEARNED.items() or np.unique(classes).size != classes.size:
        raise ValueError("it was learned in an unknown way")
    vars(model).update(
        state,
        # Without sizes LightGBM reads one tree after the other, as the check does.
        _Booster=Booster(model_str=re.sub(r"\ntree_sizes.*", "", content.decode())),
        _classes=classes,
        _class_map=dict(zip(classes, range(classes.size), strict=True)),
        _le=LabelEncoder().fit(classes),
        _n_classes=classes.size,
        _n_features=n_features,
        _n_features_in=n_features,
        fitted_=True,
    )


def _xgboost_read(model: Any, content: bytes, _learned: dict[str, Any]) -> None:
    parameters = vars(model).copy()
    model.load_model(bytearray(content))
    vars(model).update(parameters)  # it fills parameters that were left open with what was used


def _catboost_write(model: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:  # it writes to files only
        path = Path(folder) / "model.cbm"
        model.save_model(str(path), format="cbm")
        return path.read_bytes()


_LIBRARIES = (
    Library(
        title="LightGBM",
        package="lightgbm",
        kind="LGBMClassifier",
        suffix="lightgbm.txt",
        is_fitted=lambda model: hasattr(model, "fitted_"),
        write=lambda model: model.booster_.model_to_string(num_iteration=-1).encode(),
        check=_check_lightgbm,
        read=_lightgbm_read,
        learned=_lightgbm_learned,
    ),
    Library(
        title="XGBoost",
        package="xgboost",
        kind="XGBClassifier",
        suffix="xgboost.json",
        is_fitted=lambda model: model.__sklearn_is_fitted__(),
        write=lambda model: bytes(model.get_booster().save_raw(raw_format="json")),
        check=_check_xgboost,
        read=_xgboost_read,
        left_out=("callbacks",),
    ),
    Library(
        title="CatBoost",
        package="catboost",
        kind="CatBoostClassifier",
        suffix="catboost.cbm",
        is_fitted=lambda model: model.is_fitted(),
        write=_catboost_write,
        check=_check_catboost,
        read=lambda model, content, _learned: model.load_model(blob=content, format="cbm"),
        left_out=("callback",),
    ),
)
UNCHECKED = {"CatBoost": "catboost.core.CatBoostClassifier"}  # the forms that need trust, and in whose name
BOOSTED = {library.title: Codec(library.apart, library.together) for library in _LIBRARIES}


def boosted_form_of(value: Any) -> str | None:
    """Return the name of the library whose classifier a value is, or None."""
    home = type(value).__module__.partition(".")[0], type(value).__qualname__
    return next((library.title for library in _LIBRARIES if (library.package, library.kind) == home), None)
