"""Models of LightGBM, XGBoost and CatBoost inside ours, each in the file format of its own library.

The compiled loops of LightGBM and XGBoost follow whatever a tree points to, and some end the whole process where a
field is missing. So everything in their two formats of text is checked here before their library reads it; a
``ValueError`` names the fault. The format of CatBoost is binary, and a crafted file can do harm: it is read only
where the caller trusts the writer of the file.
"""

import re
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from counterpoise._base.lazy import import_optional
from counterpoise._base.text import load_json
from counterpoise._base.types import AnyArray, IntArray
from counterpoise.persist.container import UnreadableModel
from counterpoise.persist.values import Codec, ModelFile, Parts

_NUMBER = r"(?:-?[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?|-?inf|-?nan)"
_NUMBERS = re.compile(f"{_NUMBER}(?: {_NUMBER})*")
_LINE = re.compile(r"(Tree|[a-z_]+)=([ -~]*)")  # of a tree of LightGBM; its head may hold any names of features
_OF_SPLITS = ("split_feature", "threshold", "left_child", "right_child", "decision_type", "split_gain")
_ALSO_OF_SPLITS = ("internal_value", "internal_weight", "internal_count")  # older files lack some
_OF_LEAVES = ("leaf_weight", "leaf_count")
_MOST_KINDS = 16  # of a split: four bits
_MOST_CATEGORY = 1 << 24  # above it XGBoost's floats skip whole numbers
_OBJECTIVES = ("binary:logistic", "binary:logitraw", "binary:hinge", "reg:logistic", "multi:softprob", "multi:softmax")


# how many features the rows of a file have, and how many scores; one for two classes
Shape: TypeAlias = tuple[int, int]


def check_lightgbm(content: bytes) -> Shape:
    """Check the text of a LightGBM model."""
    text = content.decode()
    _require(text.startswith("tree\n") and "\r" not in text and "\n\n" in text, "that it is a model of LightGBM")
    head_text = text.partition("\n\n")[0]
    pairs = [line.partition("=")[::2] for line in head_text.split("\n")[1:]]
    head = dict(pairs)
    _require(len(head) == len(pairs), "a line of its head")
    n_features, n_outputs = int(head["max_feature_idx"]) + 1, int(head["num_tree_per_iteration"])
    _require(int(head["num_class"]) == n_outputs >= 1 and n_features >= 1, "its number of classes")
    for name in ("feature_names", "feature_infos"):
        _require(len(head[name].split(" ")) == n_features, "its list of features")
    sizes = [int(size) for size in head["tree_sizes"].split()]
    _require(len(sizes) % n_outputs == 0, "its number of trees")
    start = len(head_text.encode())
    place, end = start + len("\n\n"), content.find(b"\nend of trees\n", start)
    for number, size in enumerate(sizes):  # trees lie one after the other with the sizes that the head lists
        tree = content[place : place + size]
        is_whole = tree.startswith(f"Tree={number}\n".encode()) and tree.count(b"Tree=") == 1
        _require(size > 0 and is_whole and place + size <= end + 1, "its tree sizes")
        _check_lightgbm_tree(_fields(tree.decode()), n_features)
        place += size
    _require(end >= 0 and not content[place:end].strip(b"\n"), "its tree sizes")
    return n_features, n_outputs


def _fields(text: str) -> dict[str, str]:
    """Return the lines ``name=value`` of one tree of LightGBM, all of printable letters."""
    lines = [_LINE.fullmatch(line) for line in text.split("\n") if line]
    values = {line[1]: line[2] for line in lines if line is not None}
    _require(len(values) == len(lines), "a line of a tree")
    return values


def _numbers(tree: dict[str, str], name: str, size: int, missing: str = "") -> AnyArray:
    """Return numbers, of which there must be so many."""
    text = tree.get(name, missing)
    values = np.array(text.split(" ") if _NUMBERS.fullmatch(text) else [], dtype=np.float64)
    _require(values.size == size, f"{name} of a tree")
    return values


def _check_lightgbm_tree(tree: dict[str, str], n_features: int) -> None:
    n_leaves, n_sets = (int(_numbers(tree, name, 1)[0]) for name in ("num_leaves", "num_cat"))
    n_splits = n_leaves - 1
    _require(n_leaves >= 1 and n_sets >= 0, "the size of a tree")
    _require(int(_numbers(tree, "is_linear", 1, "0")[0]) == 0, "a tree with linear models in its leaves")
    _numbers(tree, "shrinkage", 1, "1")
    _numbers(tree, "leaf_value", n_leaves)
    if n_splits == 0:
        return
    fields = {name: _numbers(tree, name, n_splits) for name in _OF_SPLITS}
    for names, size in ((_ALSO_OF_SPLITS, n_splits), (_OF_LEAVES, n_leaves)):
        for name in tree.keys() & names:
            _numbers(tree, name, size)
    _require(_are_below(fields["split_feature"], n_features), "a feature of a tree")
    _require(_are_below(fields["decision_type"], _MOST_KINDS), "a kind of split of a tree")
    for name in ("left_child", "right_child"):
        child = fields[name]  # below 0: the leaf -1 - child
        is_inner = (child > np.arange(n_splits)) & (child < n_splits)
        is_leaf = (child < 0) & (child >= -n_leaves)
        _require(bool(((child == np.floor(child)) & (is_inner | is_leaf)).all()), "a child in a tree")
    _check_lightgbm_sets(tree, n_sets, fields["threshold"][fields["decision_type"] % 2 == 1])


def _check_lightgbm_sets(tree: dict[str, str], n_sets: int, sets: AnyArray) -> None:
    """Check the sets of categories, which splits name by a number in the place of a threshold."""
    _require(_are_below(sets, n_sets), "categories of a tree")
    if n_sets == 0:
        return
    bounds = _numbers(tree, "cat_boundaries", n_sets + 1)
    _require(bounds[0] == 0 and bool((np.diff(bounds) >= 0).all()), "categories of a tree")
    _require(_are_below(_numbers(tree, "cat_threshold", int(bounds[-1])), 1 << 32), "categories of a tree")


def check_xgboost(content: bytes) -> Shape:
    """Check the JSON of an XGBoost model."""
    try:
        return _check_xgboost(load_json(content)["learner"])
    except (AttributeError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"it is not a model file of XGBoost ({error})") from error


def _check_xgboost(learner: dict[str, Any]) -> Shape:
    params, booster, objective = (learner[name] for name in ("learner_model_param", "gradient_booster", "objective"))
    n_features, n_outputs = int(params["num_feature"]), max(int(params["num_class"]), 1)
    _require(int(params.get("num_target", "1")) == 1 and n_features >= 1, "its number of features or targets")
    _require(objective["name"] in _OBJECTIVES, f"its objective {objective['name']!r}, which is of no classifier,")
    n_named = int(objective.get("softmax_multiclass_param", {}).get("num_class", params["num_class"]))
    _require(max(n_named, 1) == n_outputs, "its number of classes")
    for name in ("feature_names", "feature_types"):
        _require(len(learner.get(name, [])) in (0, n_features), "its list of features")
    if booster["name"] == "dart":
        _require(len(booster["weight_drop"]) == len(booster["gbtree"]["model"]["trees"]), "the weights of its trees")
        booster = booster["gbtree"]
    _require(booster["name"] == "gbtree", f"its booster {booster['name']!r}, which is no tree booster,")
    _check_xgboost_trees(booster["model"], n_features, n_outputs)
    return n_features, n_outputs


def _check_xgboost_trees(model: dict[str, Any], n_features: int, n_outputs: int) -> None:
    trees, params = model["trees"], model["gbtree_model_param"]
    _require(int(params["num_trees"]) == len(trees) == len(model["tree_info"]), "its number of trees")
    _require(_are_below(_whole(model["tree_info"]), n_outputs), "the classes of its trees")
    a_round = int(params["num_parallel_tree"]) * n_outputs
    rounds = [*range(0, len(trees) + 1, a_round)] if a_round >= 1 else []
    _require(model.get("iteration_indptr", rounds) == rounds and rounds[-1:] == [len(trees)], "its rounds")
    _require(not any(model.get("cats", {}).values()), "its recoding of category columns, which is not known here,")
    for place, tree in enumerate(trees):
        _require(type(tree["id"]) is int and tree["id"] == place, "the order of its trees")
        _check_xgboost_tree(tree, n_features)


def _check_xgboost_tree(tree: dict[str, Any], n_features: int) -> None:
    params = tree["tree_param"]
    n_nodes = int(params["num_nodes"])
    is_plain = int(params.get("size_leaf_vector", "1")) in (0, 1) and int(params["num_feature"]) == n_features
    _require(is_plain, "a tree of another kind")
    for name in ("split_conditions", "base_weights", "loss_changes", "sum_hessian"):
        are_numbers = all(type(one) in (int, float) for one in tree[name])
        _require(len(tree[name]) == n_nodes and are_numbers, f"{name} of a tree")
    names = ("left_children", "right_children", "parents", "split_indices", "default_left", "split_type")
    left, right, parents, features, sides, kinds = (_whole(tree[name], n_nodes) for name in names)
    _require(_is_tree(left, right, parents, int(params["num_deleted"])), "a child in a tree")
    _require(_are_below(features[left >= 0], n_features) and _are_below(features, 1 << 31), "a feature of a tree")
    _require(_are_below(sides, 2) and _are_below(kinds, 2), "a kind of split of a tree")
    _check_xgboost_sets(tree, np.flatnonzero(kinds).tolist())


def _is_tree(left: IntArray, right: IntArray, parents: IntArray, n_deleted: int) -> bool:
    """Return whether every way down from the root ends, inside of the arrays."""
    inner = np.flatnonzero(left != -1)
    children, above = np.concatenate([left[inner], right[inner]]), np.concatenate([inner, inner])
    is_inside = left.size > 0 and bool((right[left == -1] == -1).all()) and _are_below(children - 1, left.size - 1)
    if not is_inside or np.unique(children).size != children.size or children.size != left.size - 1 - n_deleted:
        return False
    return bool((parents[children] == above).all())  # one parent each, and the root has none: no way leads back


def _check_xgboost_sets(tree: dict[str, Any], split_by_category: list[int]) -> None:
    """Check the categories of splits: each has a part of one list."""
    nodes, values = tree.get("categories_nodes", []), tree.get("categories", [])
    starts, sizes = tree.get("categories_segments", []), tree.get("categories_sizes", [])
    _require(nodes == split_by_category and _are_below(_whole(values), _MOST_CATEGORY), "categories of a tree")
    ends = [0, *np.cumsum(_whole(sizes, len(nodes))).tolist()]
    _require(starts == ends[:-1] and ends[-1] == len(values), "categories of a tree")
    _require(all(one < other for one, other in pairwise(ends)), "categories of a tree")


def check_catboost(content: bytes) -> None:
    """Check that it may be a model of CatBoost; CatBoost itself looks at the rest when it reads it."""
    _require(content.startswith(b"CBM1"), "that it is a model of CatBoost")


def _whole(values: Any, size: int | None = None) -> IntArray:
    """Return a list of whole numbers of 32 bits."""
    is_right = isinstance(values, list) and len(values) == (len(values) if size is None else size)
    _require(is_right and all(type(one) is int and abs(one) < 1 << 31 for one in values), "a list of whole numbers")
    return np.array(values, dtype=np.int64)


def _are_below(values: AnyArray, most: int) -> bool:
    """Return whether all values are whole numbers from 0 to below ``most``."""
    return bool(((values >= 0) & (values < most) & (values == np.floor(values))).all())


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(f"{what} cannot be right")


_PAIR = 2


class Library(NamedTuple):
    """A library whose classifiers we store."""

    title: str
    package: str
    kind: str  # the class, of which subclasses are no part
    suffix: str  # of its files
    is_fitted: Callable[[Any], bool]
    write: Callable[[Any], bytes]
    check: Callable[[bytes], Shape | None]
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
            self.check(content)
        except ValueError as error:
            raise TypeError(f"a model of {self.title} that cannot be stored: {error}") from error
        return params, self.learned(model), ModelFile(self.suffix, content)

    def together(self, params: Any, learned: Any, file: Any) -> Any:
        """Return the model."""
        advice = f"it holds a model of {self.title}, which needs {self.package}: pip install {self.package}"
        model = getattr(import_optional(self.package, UnreadableModel, advice), self.kind)(**params)
        if file is None:
            return model
        if not isinstance(file, ModelFile) or file.suffix != self.suffix:
            raise UnreadableModel(f"a model of {self.title} lacks its file")
        try:
            shape = self.check(file.content)
            self.read(model, file.content, learned)
            if shape is not None:
                _compare(model, *shape)
        except Exception as error:  # every library raises its own
            raise UnreadableModel(f"its model of {self.title} is broken ({error})") from error
        return model


def _compare(model: Any, n_features: int, n_outputs: int) -> None:
    """Check that the restored model has the classes and features of its file."""
    n_classes = len(np.asarray(model.classes_))
    if n_outputs != (1 if n_classes == _PAIR else n_classes):
        raise ValueError(f"its trees score {n_outputs} classes, but it names {n_classes}")
    if int(model.n_features_in_) != n_features:
        raise ValueError(f"its trees use {n_features} features, but it names {model.n_features_in_}")


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
        _Booster=Booster(model_str=content.decode()),
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
        "LightGBM",
        "lightgbm",
        "LGBMClassifier",
        "lightgbm.txt",
        lambda model: hasattr(model, "fitted_"),
        lambda model: model.booster_.model_to_string(num_iteration=-1).encode(),
        check_lightgbm,
        _lightgbm_read,
        learned=_lightgbm_learned,
    ),
    Library(
        "XGBoost",
        "xgboost",
        "XGBClassifier",
        "xgboost.json",
        lambda model: model.__sklearn_is_fitted__(),
        lambda model: bytes(model.get_booster().save_raw(raw_format="json")),
        check_xgboost,
        _xgboost_read,
        left_out=("callbacks",),
    ),
    Library(
        "CatBoost",
        "catboost",
        "CatBoostClassifier",
        "catboost.cbm",
        lambda model: model.is_fitted(),
        _catboost_write,
        check_catboost,
        lambda model, content, _learned: model.load_model(blob=content, format="cbm"),
        left_out=("callback",),
    ),
)
UNCHECKED = {"CatBoost": "catboost.core.CatBoostClassifier"}  # the forms that need trust, and in whose name
BOOSTED = {library.title: Codec(library.apart, library.together) for library in _LIBRARIES}


def boosted_form_of(value: Any) -> str | None:
    """Return the name of the library whose classifier a value is, or None."""
    home = type(value).__module__.partition(".")[0], type(value).__qualname__
    return next((one.title for one in _LIBRARIES if (one.package, one.kind) == home), None)
