"""Models of scikit-learn inside ours.

Common ones are stored as plain parts: an estimator by its attributes, its trees as columns of numbers in the smallest
type that keeps each bit. The others go through skops, with an explicit list of what may be built. Whatever compiled
loops of scikit-learn follow is checked when it is put together.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.lazy import import_optional
from counterpoise._base.types import AnyArray
from counterpoise.persist.container import UnreadableModel, UnstorableModel, check_stored
from counterpoise.persist.values import Codec, Parts

MEMBER = "foreign.skops"
_NEEDS_SKOPS = ', which needs skops: pip install "counterpoise[models]"'

# What skops does not trust by itself, and is inside of common models. Looked at: plain containers of arrays and
# numbers without code of the file's own; a partial is as safe as what it calls, which must be on the list too, as the
# check of arrays that histogram gradient boosting of categories holds. ``check_foreign`` checks the two kinds of trees,
# whose loops would follow any index.
TRUSTED = frozenset(
    {
        "functools.partial",
        "numpy.dtype",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.compose._column_transformer._RemainderColsList",  # before scikit-learn 1.7: a list of columns
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
        "sklearn.utils._bunch.Bunch",
        "sklearn.utils.validation.check_array",
    }
)


def is_foreign(value: Any) -> bool:
    """Return whether a value is an estimator, fitted or not, which skops may know."""
    return hasattr(value, "get_params") and not isinstance(value, type)


def write_foreign(models: Sequence[Any], paths: Sequence[str], trusted: Sequence[str]) -> bytes:
    """Return models as one member; ``paths`` are their places in ours, for messages."""
    skops = import_optional("skops.io", UnstorableModel, f"{paths[0]} is a model of another library{_NEEDS_SKOPS}")
    try:
        data = bytes(skops.dumps(list(models)))
        is_known = not _unknown(skops, data, trusted)
    except Exception:  # noqa: BLE001 - skops raises what it meets; the model is identified below
        is_known = False
    if not is_known:
        for model, path in zip(models, paths, strict=True):
            _refuse_unknown(skops, model, path, trusted)
    return data


def _unknown(skops: Any, data: bytes, trusted: Sequence[str]) -> list[str]:
    return sorted(set(skops.get_untrusted_types(data=data)) - TRUSTED - set(trusted))


def _refuse_unknown(skops: Any, model: Any, path: str, trusted: Sequence[str]) -> None:
    name = f"{type(model).__module__}.{type(model).__qualname__}"
    try:
        unknown = _unknown(skops, skops.dumps(model), trusted)
    except Exception as error:  # skops raises what it meets
        raise UnstorableModel(f"{path} is of the type {name}, which skops cannot store ({error})") from error
    if any(word.startswith("counterpoise.") for word in unknown):
        raise UnstorableModel(
            f"{path} is a {type(model).__name__} of scikit-learn with a model of counterpoise inside, and only a "
            "Pipeline of that kind can be stored: save the inner model itself, such as best_estimator_"
        )
    nameless = [word for word in unknown if "<" in word]
    if nameless:
        raise UnstorableModel(
            f"{path} holds the function {nameless[0]}, which cannot be stored: use a named function of a module"
        )
    if unknown:
        raise UnstorableModel(
            f"{path} holds types that are not on the list of trusted types: {', '.join(unknown)}. If you trust them, "
            f"pass trusted={unknown!r} here and to cp.load"
        )


def read_foreign(data: bytes, trusted: Sequence[str]) -> list[Any]:
    """Return the models of the member."""
    skops = import_optional("skops.io", UnreadableModel, f"it holds models of scikit-learn{_NEEDS_SKOPS}")
    try:
        check_stored(data)
        refuse_untrusted(_unknown(skops, data, trusted))
        models = skops.loads(data, trusted=sorted(TRUSTED | set(trusted)))
        check_foreign(models)
    except UnreadableModel:
        raise
    except Exception as error:  # skops raises what it meets
        raise UnreadableModel(f"its models of scikit-learn are broken ({type(error).__name__}: {error})") from error
    return list(models)


def refuse_untrusted(unknown: list[str]) -> None:
    """Refuse types that are not trusted, and name them."""
    if unknown:
        raise UnreadableModel(
            f"it holds types that are not on the list of trusted types: {', '.join(unknown)}. If you know who wrote "
            f"the file and trust them, pass trusted={unknown!r}"
        )


def check_foreign(models: Any) -> None:
    """Check what compiled loops of scikit-learn follow without looking: the children and features of trees."""
    for part, _ in walk(models, _parts_of):
        check_part(part)


def check_part(part: Any) -> None:
    """Check one object, given that those inside of it are checked too."""
    tree: Any = getattr(part, "tree_", None)
    if type(tree).__name__ == "Tree":
        left, right = tree.children_left, tree.children_right
        _require(tree.n_features == part.n_features_in_)
        depth = check_nodes(left, right, tree.feature, left == -1, tree.n_features)
        _require(tree.max_depth >= depth)  # room is made for so many steps
    if type(part).__module__ in ("sklearn.ensemble._forest", "sklearn.ensemble._gb"):
        inner = list(np.ravel(np.array(getattr(part, "estimators_", []), dtype=object)))
        _require(all(one.n_features_in_ == part.n_features_in_ for one in inner))
    if hasattr(part, _ROUNDS):
        _check_rounds(vars(part))
    if type(part).__name__ == "OneHotEncoder" and hasattr(part, "categories_"):
        _check_one_hot(vars(part))
        _require(list(part._n_features_outs) == part._compute_n_features_outs())  # noqa: SLF001 - of a known kind


def _check_one_hot(state: dict[str, Any]) -> None:
    """Check the numbers of columns that each feature becomes: sparse products follow the places they make."""
    sizes, outs = [len(known) for known in state["categories_"]], list(state["_n_features_outs"])
    mappings = state.get("_default_to_infrequent_mappings") or [None] * len(sizes)
    _require(len(mappings) == len(outs) == len(sizes))
    _require(all(0 <= out <= size for out, size in zip(outs, sizes, strict=True)))
    for mapping, size, out in zip(mappings, sizes, outs, strict=True):
        if mapping is not None:
            places = np.asarray(mapping)
            _require(places.shape == (size,) and places.dtype.kind in "iu")
            _require(size == 0 or bool(places.min() >= 0 and places.max() <= out))


def _check_rounds(state: dict[str, Any]) -> None:
    """Check the trees of histogram gradient boosting, and that rows reach them with all their features."""
    n_features, preprocessor = state["n_features_in_"], state.get("_preprocessor")
    is_category = np.asarray(state["_bin_mapper"].is_categorical_, dtype=bool)
    _require(type(n_features) is int and is_category.shape == (n_features,))
    for predictor in chain.from_iterable(state[_ROUNDS]):
        _check_predictor(predictor, n_features, is_category)
    if preprocessor is None:
        return
    places, positions = vars(preprocessor)["_transformer_to_input_indices"], list[int]()
    for name, step, columns in preprocessor.transformers_:  # which give back as many features as they take
        mask = np.asarray(columns)
        if name == "remainder" and not mask.any():
            continue
        _require(type(step).__name__ in ("OrdinalEncoder", "FunctionTransformer") and mask.dtype == np.bool_)
        _require(mask.shape == (n_features,) and list(places[name]) == np.flatnonzero(mask).tolist())
        positions += np.flatnonzero(mask).tolist()
    _require(sorted(positions) == list(range(n_features)) and preprocessor.n_features_in_ == n_features)


def walk(root: Any, inside: Callable[[Any], Iterable[Any] | None]) -> Iterator[tuple[Any, Iterable[Any] | None]]:
    """Yield a value and all objects inside of it, each with what ``inside`` finds in it."""
    waiting, visited = [root], {id(root)}
    while waiting:
        part = waiting.pop()
        inner = inside(part)
        yield part, inner
        for one in inner or ():
            if id(one) not in visited:
                visited.add(id(one))
                waiting.append(one)


def _parts_of(part: Any) -> Iterable[Any]:
    if isinstance(part, np.ndarray):
        return part.ravel().tolist() if part.dtype.kind == "O" else ()
    if isinstance(part, (list, tuple, set)):
        return list(part)
    return list((part if isinstance(part, dict) else getattr(part, "__dict__", {})).values())


def _check_predictor(predictor: Any, n_features: int, is_category: Any) -> None:
    nodes = predictor.nodes
    is_leaf = nodes["is_leaf"].astype(bool)
    left, right = nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)
    check_nodes(left, right, nodes["feature_idx"], is_leaf, n_features)
    by_set = nodes["is_categorical"].astype(bool) & ~is_leaf
    sets = nodes["bitset_idx"][by_set]
    for bits in (predictor.raw_left_cat_bitsets, predictor.binned_left_cat_bitsets):
        _require(bits.ndim == 2 and bits.shape[1:] == (8,) and bool((sets < len(bits)).all()))  # noqa: PLR2004
    _require(bool(is_category[nodes["feature_idx"][by_set]].all()))


def check_nodes(left: Any, right: Any, feature: Any, is_leaf: Any, n_features: int) -> int:
    """Check that nodes are a tree whose children come after their parents and whose features exist; return its depth.

    So every way down ends, and no walk meets more nodes than there are.
    """
    places = np.arange(len(left))[~is_leaf]
    _require(len(left) > 0)
    for child in (left[~is_leaf], right[~is_leaf]):
        _require(bool(((child > places) & (child < len(left))).all()))
    split = feature[~is_leaf]
    _require(bool(((split >= 0) & (split < n_features)).all()))
    children = np.sort(np.concatenate([left[~is_leaf], right[~is_leaf]]))
    _require(np.array_equal(children, np.arange(1, len(left))))
    depth, level = -1, np.zeros(1, dtype=np.int64)
    while level.size:
        inner = level[~is_leaf[level]]
        depth, level = depth + 1, np.concatenate([left[inner], right[inner]])
    return depth


def _require(condition: bool) -> None:
    if not condition:
        raise UnreadableModel("a tree of scikit-learn in it refers to a node that does not exist")


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
_LOSS = "_loss"  # of histogram gradient boosting: compiled, and determined by the parameters
_ROUNDS = "_predictors"
_WORDS = 8  # of 32 bits each: a set of categories
_CHECKS = {"dtype", "ensure_all_finite"}


class Rounds(NamedTuple):
    """The trees of histogram gradient boosting: lists, one for each round, of trees, one for each class."""

    trees: list[list[Any]]


def is_of_scikit_learn(kind: type) -> bool:
    """Return whether a class is one of those that are stored by their attributes."""
    return ESTIMATORS.get(kind.__name__) == kind.__module__


def estimator_state(estimator: Any) -> dict[str, Any]:
    """Return the attributes that are stored, and the version that wrote them."""
    state: dict[str, Any] = estimator.__getstate__()
    if type(estimator).__name__ == "ColumnTransformer":
        return {name: _without_remainder_lists(part) for name, part in state.items()}
    if _ROUNDS not in state:
        return dict(state)
    others = {name: part for name, part in state.items() if name != _LOSS}
    return others | {_ROUNDS: Rounds(state[_ROUNDS])}


def _without_remainder_lists(part: Any) -> Any:
    """Return a part of a ColumnTransformer whose columns are plain lists: before 1.9 some warn that they will be."""
    if type(part).__name__ == "_RemainderColsList":
        return list(part.data)
    return type(part)(map(_without_remainder_lists, part)) if type(part) in (list, tuple) else part


def build_estimator(kind: Any, state: dict[str, Any]) -> Any:
    """Return an estimator with that state; parameters that the file does not know have their defaults."""
    parameters = inspect.signature(kind.__init__).parameters.values()
    defaults = {one.name: one.default for one in parameters if one.default is not one.empty and one.name not in state}
    estimator = kind.__new__(kind)
    estimator.__setstate__(state | defaults)
    if _ROUNDS in state:
        setattr(estimator, _LOSS, estimator._get_loss(sample_weight=None))  # noqa: SLF001 - as its fit does
    check_part(estimator)
    return estimator


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
        raise UnreadableModel("a tree of scikit-learn in it has other columns than your version of it writes")
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
    sizes = [
        small(np.array([len(getattr(tree, name)) for tree in trees], dtype=np.int64))
        for name in ("nodes", "raw_left_cat_bitsets")
    ]
    return [len(one) for one in rounds.trees], sizes, _columns(nodes), sets


def _rounds_together(widths: Any, sizes: Any, columns: Any, sets: Any) -> list[list[Any]]:
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE  # noqa: PLC0415 - as above
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor  # noqa: PLC0415 - as above

    n_nodes, n_sets = (np.asarray(one, dtype=np.int64) for one in sizes)
    whole = all(type(width) is int and width >= 0 for width in widths)
    if not whole or n_nodes.shape != n_sets.shape or n_nodes.shape != (sum(widths),) or (n_nodes < 0).any():
        raise UnreadableModel("it holds another number of scikit-learn trees than it names")
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


def _check_together(keywords: Any) -> Any:
    from sklearn.utils import check_array  # noqa: PLC0415 - as above

    if not isinstance(keywords, dict) or not keywords.keys() <= _CHECKS:
        raise UnreadableModel("a check of arrays has unknown settings")
    return partial(check_array, **keywords)


PARTS = {
    "tree of scikit-learn": Codec(_tree_apart, _tree_together),
    "histogram trees of scikit-learn": Codec(_rounds_apart, _rounds_together),
    "check of arrays": Codec(lambda check: (dict(check.keywords),), _check_together),
}


def part_form_of(value: Any) -> str | None:
    """Return the name of the form of a part of an estimator, or None where it has none."""
    kind = type(value)
    if kind is Rounds:
        return "histogram trees of scikit-learn"
    if kind.__name__ == "Tree" and kind.__module__ == "sklearn.tree._tree":
        return "tree of scikit-learn"
    if kind is not partial or value.args or not value.keywords.keys() <= _CHECKS:
        return None
    # of gradient boosting of categories
    called = getattr(value.func, "__module__", ""), getattr(value.func, "__name__", "")
    return "check of arrays" if called == ("sklearn.utils.validation", "check_array") else None
