"""Common models of scikit-learn as plain parts: arrays and numbers instead of one file of another library.

An estimator is stored by its attributes, its trees as columns of numbers in the smallest type that keeps each bit.
Whatever compiled loops of scikit-learn follow is checked when it is put together.
"""

import inspect
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray
from counterpoise.persist.errors import UnreadableModel
from counterpoise.persist.foreign import check_nodes, check_part
from counterpoise.persist.values import Form, Parts

ESTIMATORS = {
    "ColumnTransformer": "sklearn.compose._column_transformer",
    "DecisionTreeClassifier": "sklearn.tree._classes",
    "ExtraTreeClassifier": "sklearn.tree._classes",
    "ExtraTreesClassifier": "sklearn.ensemble._forest",
    "FunctionTransformer": "sklearn.preprocessing._function_transformer",
    "GaussianNB": "sklearn.naive_bayes",
    "HistGradientBoostingClassifier": "sklearn.ensemble._hist_gradient_boosting.gradient_boosting",
    "LabelEncoder": "sklearn.preprocessing._label",
    "LogisticRegression": "sklearn.linear_model._logistic",
    "OneHotEncoder": "sklearn.preprocessing._encoders",
    "OrdinalEncoder": "sklearn.preprocessing._encoders",
    "RandomForestClassifier": "sklearn.ensemble._forest",
    "SimpleImputer": "sklearn.impute._base",
    "StandardScaler": "sklearn.preprocessing._data",
    "_BinMapper": "sklearn.ensemble._hist_gradient_boosting.binning",
}
_MADE_AGAIN = "_loss"  # of histogram gradient boosting: compiled, and told by the parameters
_ROUNDS = "_predictors"
_WORDS = 8  # of 32 bits each: a set of categories
_CHECKS = {"dtype", "ensure_all_finite", "force_all_finite"}


class Rounds(NamedTuple):
    """The trees of histogram gradient boosting: lists, one for each round, of trees, one for each class."""

    trees: list[list[Any]]


def is_of_scikit_learn(kind: type) -> bool:
    """Tell whether a class is one of those that are stored by their attributes."""
    return ESTIMATORS.get(kind.__name__) == kind.__module__


def estimator_state(estimator: Any) -> dict[str, Any]:
    """Return the attributes that are stored, and the version that wrote them."""
    state: dict[str, Any] = estimator.__getstate__()
    if type(estimator).__name__ == "ColumnTransformer":
        return {name: _without_remainder_lists(part) for name, part in state.items()}
    if _ROUNDS not in state:
        return dict(state)
    others = {name: part for name, part in state.items() if name != _MADE_AGAIN}
    return others | {_ROUNDS: Rounds(state[_ROUNDS])}


def _without_remainder_lists(part: Any) -> Any:
    """Return a part of a ColumnTransformer whose columns are plain lists: before 1.9 some warn that they will be."""
    if type(part).__name__ == "_RemainderColsList":
        return list(part.data)
    return type(part)(map(_without_remainder_lists, part)) if type(part) in (list, tuple) else part


def made_estimator(kind: Any, state: dict[str, Any]) -> Any:
    """Return an estimator with that state; parameters that the file does not know have their defaults."""
    parameters = inspect.signature(kind.__init__).parameters.values()
    defaults = {one.name: one.default for one in parameters if one.default is not one.empty and one.name not in state}
    made = kind.__new__(kind)
    made.__setstate__(state | defaults)
    if _ROUNDS in state:
        setattr(made, _MADE_AGAIN, made._get_loss(sample_weight=None))  # noqa: SLF001 - as its fit does
    check_part(made)
    return made


def small(values: AnyArray) -> AnyArray:
    """Return numbers in a smaller type, where it keeps each bit of them."""
    if values.dtype.kind in "iu" and values.size:
        kinds = (np.min_scalar_type(values.min()), np.min_scalar_type(values.max()))
        return values.astype(np.promote_types(*kinds))
    if values.dtype == np.float64:
        with np.errstate(over="ignore"):
            less = values.astype(np.float32)
        if less.astype(np.float64).tobytes() == values.tobytes():
            return less
    return np.ascontiguousarray(values)


def _columns(nodes: AnyArray) -> dict[str, AnyArray]:
    """Return records as columns."""
    return {name: small(nodes[name]) for name in nodes.dtype.names or ()}


def _records(columns: Any, dtype: Any, n_nodes: int) -> AnyArray:
    """Return columns as records, after checking that they are those of this version."""
    if set(columns) != set(dtype.names) or any(column.shape != (n_nodes,) for column in columns.values()):
        raise UnreadableModel("a tree of scikit-learn in it has other columns than those of the version installed")
    nodes = np.zeros(n_nodes, dtype=dtype)
    for name, column in columns.items():
        if column.dtype.kind not in "biuf" or not np.can_cast(column.dtype, dtype[name], casting="same_kind"):
            raise UnreadableModel(f"the column {name!r} of a tree of scikit-learn in it holds {column.dtype}")
        nodes[name] = column
    return nodes


def _tree_apart(tree: Any) -> Parts:
    state = tree.__getstate__()
    return tree.n_features, np.array(tree.n_classes), _columns(state["nodes"]), small(state["values"])


def _tree_together(n_features: Any, n_classes: Any, columns: Any, values: Any) -> Any:
    from sklearn.tree._tree import NODE_DTYPE, Tree  # noqa: PLC0415 - this file lies below scikit-learn

    counts, n_nodes = np.asarray(n_classes, dtype=np.intp), len(values)
    if type(n_features) is not int or counts.ndim != 1 or not counts.size or counts.min() < 1:
        raise UnreadableModel("a tree of scikit-learn in it has no classes")
    if values.shape != (n_nodes, counts.size, counts.max()) or values.dtype.kind != "f":
        raise UnreadableModel("a tree of scikit-learn in it lacks values")
    nodes = _records(columns, NODE_DTYPE, n_nodes)
    left = nodes["left_child"]
    depth = check_nodes(left, nodes["right_child"], nodes["feature"], left == -1, n_features)
    tree = Tree(n_features, counts, counts.size)
    values = np.ascontiguousarray(values, dtype=np.float64)
    tree.__setstate__({"max_depth": depth, "node_count": n_nodes, "nodes": nodes, "values": values})
    return tree


def _rounds_apart(rounds: Rounds) -> Parts:
    trees = [tree for one in rounds.trees for tree in one]
    nodes = np.concatenate([tree.nodes for tree in trees]) if trees else np.zeros(0)
    sets = {
        name: np.concatenate([getattr(tree, name) for tree in trees] or [np.zeros((0, _WORDS), np.uint32)])
        for name in ("binned_left_cat_bitsets", "raw_left_cat_bitsets")
    }
    sizes = [small(np.array([len(part) for part in parts], dtype=np.int64)) for parts in _parts_of(trees)]
    return [len(one) for one in rounds.trees], sizes, _columns(nodes), sets


def _parts_of(trees: list[Any]) -> tuple[list[Any], list[Any]]:
    return [tree.nodes for tree in trees], [tree.raw_left_cat_bitsets for tree in trees]


def _rounds_together(widths: Any, sizes: Any, columns: Any, sets: Any) -> list[list[Any]]:
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE  # noqa: PLC0415 - as above
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor  # noqa: PLC0415 - as above

    n_nodes, n_sets = (np.asarray(one, dtype=np.int64) for one in sizes)
    whole = all(type(width) is int and width >= 0 for width in widths)
    if not whole or n_nodes.shape != n_sets.shape or n_nodes.shape != (sum(widths),) or (n_nodes < 0).any():
        raise UnreadableModel("the trees of scikit-learn in it are of another number")
    for one in sets.values():
        if one.dtype != np.uint32 or one.shape != (n_sets.sum(), _WORDS) or (n_sets < 0).any():
            raise UnreadableModel("the trees of scikit-learn in it lack categories")
    nodes = _records(columns, PREDICTOR_RECORD_DTYPE, int(n_nodes.sum())) if widths else np.zeros(0)
    ends, set_ends = np.cumsum(n_nodes)[:-1], np.cumsum(n_sets)[:-1]
    cut = {name: np.split(one, set_ends) for name, one in sets.items()}
    trees = iter(
        TreePredictor(part.copy(), **{name: cut[name][place].copy() for name in sets})
        for place, part in enumerate(np.split(nodes, ends))
    )
    return [[next(trees) for _ in range(width)] for width in widths]


def _check_apart(check: Any) -> Parts:
    return (dict(check.keywords),)


def _check_together(keywords: Any) -> Any:
    from sklearn.utils import check_array  # noqa: PLC0415 - as above

    if not isinstance(keywords, dict) or not keywords.keys() <= _CHECKS:
        raise UnreadableModel("a check of arrays has unknown settings")
    return partial(check_array, **keywords)


def _is_check(value: Any) -> bool:
    """Tell whether a value is the check of arrays that histogram gradient boosting of categories holds."""
    if type(value) is not partial or value.args or not value.keywords.keys() <= _CHECKS:
        return False
    return getattr(value.func, "__module__", "") == "sklearn.utils.validation" and value.func.__name__ == "check_array"


PARTS = {
    "tree of scikit-learn": Form(_tree_apart, _tree_together),
    "histogram trees of scikit-learn": Form(_rounds_apart, _rounds_together),
    "check of arrays": Form(_check_apart, _check_together),
}


def part_form_of(value: Any) -> str | None:
    """Return the name of the form of a part of an estimator, or None where it has none."""
    kind = type(value)
    if kind is Rounds:
        return "histogram trees of scikit-learn"
    if kind.__name__ == "Tree" and kind.__module__ == "sklearn.tree._tree":
        return "tree of scikit-learn"
    return "check of arrays" if _is_check(value) else None
