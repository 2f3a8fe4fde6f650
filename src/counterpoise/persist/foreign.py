"""Models of scikit-learn inside ours: through skops, with an explicit list of what may be built."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from counterpoise.persist.container import check_stored
from counterpoise.persist.errors import UnreadableModel, UnstorableModel

MEMBER = "foreign.skops"

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
    """Tell whether a value is an estimator, fitted or not, which skops may know."""
    return hasattr(value, "get_params") and not isinstance(value, type)


def write_foreign(models: Sequence[Any], paths: Sequence[str], trusted: Sequence[str]) -> bytes:
    """Return models as one member; ``paths`` say where in ours they are, for messages."""
    skops = _skops(UnstorableModel, f"{paths[0]} is a model of another library")
    try:
        data = bytes(skops.dumps(list(models)))
        is_known = not _unknown(skops, data, trusted)
    except Exception:  # noqa: BLE001 - skops raises what it meets; which model it was is found below
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
            f"{path} is a {type(model).__name__} of scikit-learn with a model of counterpoise inside, and of those "
            "only a Pipeline can be stored: save the inner model itself, such as best_estimator_"
        )
    nameless = [word for word in unknown if "<" in word]
    if nameless:
        raise UnstorableModel(
            f"{path} holds the function {nameless[0]}, which no file can hold: use a function that a module has by name"
        )
    if unknown:
        raise UnstorableModel(
            f"{path} holds what is not on the list of trusted types: {', '.join(unknown)}. If you trust them, pass "
            f"trusted={unknown!r} here and to cp.load"
        )


def read_foreign(data: bytes, trusted: Sequence[str]) -> list[Any]:
    """Return the models of the member."""
    skops = _skops(UnreadableModel, "it holds models of scikit-learn")
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
    """Say what is not trusted, where there is anything."""
    if unknown:
        raise UnreadableModel(
            f"it holds what is not on the list of trusted types: {', '.join(unknown)}. If you know who wrote the file "
            f"and trust them, pass trusted={unknown!r}"
        )


def _skops(kind: type[ValueError], why: str) -> Any:
    try:
        import skops.io  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise kind(f'{why}, which needs skops: pip install "counterpoise[models]"') from error
    return skops.io


def check_foreign(models: Any) -> None:
    """Check what compiled loops of scikit-learn follow without looking: the children and features of trees."""
    for part in _walk(models):
        check_part(part)


def check_part(part: Any) -> None:
    """Check one object, given that those inside of it are checked too."""
    tree = getattr(part, "tree_", None)
    if type(tree).__name__ == "Tree":
        _check_tree(tree, part.n_features_in_)
    if type(part).__module__ in ("sklearn.ensemble._forest", "sklearn.ensemble._gb"):
        inner = list(np.ravel(np.array(getattr(part, "estimators_", []), dtype=object)))
        _require(all(one.n_features_in_ == part.n_features_in_ for one in inner))
    if hasattr(part, "_predictors"):
        _check_rounds(part)
    if type(part).__name__ == "OneHotEncoder" and hasattr(part, "categories_"):
        _check_one_hot(part)


def _check_one_hot(encoder: Any) -> None:
    """Check the numbers of columns that each feature becomes: sparse products follow the places they make."""
    sizes = [len(known) for known in encoder.categories_]
    mappings = getattr(encoder, "_default_to_infrequent_mappings", None) or [None] * len(sizes)
    outs = list(encoder._n_features_outs)  # noqa: SLF001 - of a kind that is known
    _require(len(mappings) == len(outs) == len(sizes))
    _require(all(0 <= out <= size for out, size in zip(outs, sizes, strict=True)))
    for mapping, size, out in zip(mappings, sizes, outs, strict=True):
        if mapping is not None:
            places = np.asarray(mapping)
            _require(places.shape == (size,) and places.dtype.kind in "iu")
            _require(size == 0 or bool(places.min() >= 0 and places.max() <= out))
    _require(outs == encoder._compute_n_features_outs())  # noqa: SLF001 - as above


def _check_rounds(model: Any) -> None:
    """Check the trees of histogram gradient boosting, and that rows reach them with all their features."""
    n_features, preprocessor = model.n_features_in_, getattr(model, "_preprocessor", None)
    is_category = np.asarray(model._bin_mapper.is_categorical_, dtype=bool)  # noqa: SLF001 - of a kind that is known
    _require(type(n_features) is int and is_category.shape == (n_features,))
    for one in model._predictors:  # noqa: SLF001 - as above
        for predictor in one:
            _check_predictor(predictor, n_features, is_category)
    if preprocessor is not None:
        _check_width(preprocessor, n_features)


def _check_width(preprocessor: Any, n_features: int) -> None:
    """Check that a preprocessor of histogram gradient boosting gives back as many features as it takes."""
    places = preprocessor._transformer_to_input_indices  # noqa: SLF001 - of a kind that is known
    taken: list[int] = []
    for name, step, columns in preprocessor.transformers_:
        mask = np.asarray(columns)
        if name == "remainder" and not mask.any():
            continue
        _require(type(step).__name__ in ("OrdinalEncoder", "FunctionTransformer") and mask.dtype == np.bool_)
        _require(mask.shape == (n_features,) and list(places[name]) == np.flatnonzero(mask).tolist())
        taken += np.flatnonzero(mask).tolist()
    _require(sorted(taken) == list(range(n_features)) and preprocessor.n_features_in_ == n_features)


def _walk(root: Any) -> Iterator[Any]:
    """Yield all objects inside of a value."""
    waiting, seen = [root], {id(root)}
    while waiting:
        part = waiting.pop()
        yield part
        if isinstance(part, dict):
            inner = list(part.values())
        elif isinstance(part, (list, tuple, set)):
            inner = list(part)
        elif isinstance(part, np.ndarray):
            inner = list(part.ravel()) if part.dtype.kind == "O" else []
        else:
            inner = list(getattr(part, "__dict__", {}).values())
        for one in inner:
            if id(one) not in seen:
                seen.add(id(one))
                waiting.append(one)


def _check_tree(tree: Any, n_features: int) -> None:
    _require(tree.n_features == n_features)
    is_leaf = tree.children_left == -1
    depth = check_nodes(tree.children_left, tree.children_right, tree.feature, is_leaf, n_features)
    _require(tree.max_depth >= depth)  # room is made for so many steps


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
        raise UnreadableModel("a tree of scikit-learn in it points where nothing is")
