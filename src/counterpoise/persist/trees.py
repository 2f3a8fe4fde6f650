"""What compiled loops of scikit-learn follow without looking: children, features and places in models from a file."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np

from counterpoise._base.types import AnyArray, BoolArray
from counterpoise.persist.container import UnreadableModel


def check_nodes(left: AnyArray, right: AnyArray, feature: AnyArray, is_leaf: BoolArray, n_features: int) -> int:
    """Check that nodes are a tree, the root first, whose features exist; return its depth.

    So every way down ends in a leaf, and stays inside of the arrays.
    """
    split_features = feature[~is_leaf]
    _require(((split_features >= 0) & (split_features < n_features)).all())
    is_visited = np.zeros(len(left), dtype=bool)
    depth, level = -1, np.zeros(1, dtype=np.int64)
    while level.size:
        _require(((level >= 0) & (level < len(left))).all() and np.unique(level).size == level.size)
        _require(not is_visited[level].any())
        is_visited[level] = True
        inner = level[~is_leaf[level]]
        depth, level = depth + 1, np.concatenate([left[inner], right[inner]])
    return depth


def check_estimator(root: Any) -> None:
    """Check a model of scikit-learn and all that is inside of it."""
    waiting, visited = [root], {id(root)}
    while waiting:
        part = waiting.pop()
        _check_part(part)
        for inner in _parts_of(part):
            if id(inner) not in visited:
                visited.add(id(inner))
                waiting.append(inner)


def _parts_of(part: Any) -> Iterable[Any]:
    if isinstance(part, np.ndarray):
        return part.ravel().tolist() if part.dtype.kind == "O" else ()
    if isinstance(part, (list, tuple, set)):
        return part
    return list((part if isinstance(part, dict) else getattr(part, "__dict__", {})).values())


def _check_part(part: Any) -> None:
    tree: Any = getattr(part, "tree_", None)
    if type(tree).__name__ == "Tree":
        left = tree.children_left
        _require(tree.n_features == part.n_features_in_)
        depth = check_nodes(left, tree.children_right, tree.feature, left == -1, tree.n_features)
        _require(tree.max_depth >= depth)  # room is made for so many steps
    if type(part).__module__ in ("sklearn.ensemble._forest", "sklearn.ensemble._gb"):
        trees = np.ravel(np.array(getattr(part, "estimators_", []), dtype=object))
        _require(all(tree.n_features_in_ == part.n_features_in_ for tree in trees))
    if hasattr(part, "_predictors"):
        _check_histogram_boosting(vars(part))
    if type(part).__name__ == "OneHotEncoder" and hasattr(part, "categories_"):
        _check_one_hot(vars(part))
        _require(list(part._n_features_outs) == part._compute_n_features_outs())  # noqa: SLF001 - of a known kind


def _check_one_hot(state: dict[str, Any]) -> None:
    """Check the numbers of columns that features become: sparse products follow the places that these make."""
    sizes, outs = [len(categories) for categories in state["categories_"]], list(state["_n_features_outs"])
    mappings = state.get("_default_to_infrequent_mappings") or [None] * len(sizes)
    _require(len(mappings) == len(outs) == len(sizes))
    for mapping, size, out in zip(mappings, sizes, outs, strict=True):
        _require(0 <= out <= size)
        if mapping is not None:
            columns = np.asarray(mapping)
            _require(columns.shape == (size,) and columns.dtype.kind in "iu")
            _require(size == 0 or (columns.min() >= 0 and columns.max() <= out))


def _check_histogram_boosting(state: dict[str, Any]) -> None:
    """Check the trees of histogram gradient boosting, and that rows reach them with all their features."""
    n_features, preprocessor = state["n_features_in_"], state.get("_preprocessor")
    is_category = np.asarray(state["_bin_mapper"].is_categorical_, dtype=bool)
    _require(type(n_features) is int and is_category.shape == (n_features,))
    for predictor in chain.from_iterable(state["_predictors"]):
        nodes = predictor.nodes
        is_leaf = nodes["is_leaf"].astype(bool)
        left, right = nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)
        check_nodes(left, right, nodes["feature_idx"], is_leaf, n_features)
        by_category = nodes[nodes["is_categorical"].astype(bool) & ~is_leaf]
        _require(is_category[by_category["feature_idx"]].all())
        for bits in (predictor.raw_left_cat_bitsets, predictor.binned_left_cat_bitsets):
            _require(bits.ndim == 2 and bits.shape[1] == 8 and (by_category["bitset_idx"] < len(bits)).all())  # noqa: PLR2004
    if preprocessor is None:
        return
    columns_of, columns = vars(preprocessor)["_transformer_to_input_indices"], list[int]()
    for name, step, mask in preprocessor.transformers_:  # which give back as many features as they take
        if name == "remainder" and not np.any(mask):
            continue
        _require(type(step).__name__ in ("OrdinalEncoder", "FunctionTransformer") and np.shape(mask) == (n_features,))
        _require(list(columns_of[name]) == np.flatnonzero(mask).tolist())
        columns += columns_of[name]
    _require(sorted(columns) == list(range(n_features)) and preprocessor.n_features_in_ == n_features)


def _require(condition: Any) -> None:
    if not condition:
        raise UnreadableModel("a tree in it refers to a node or a feature that does not exist")
