"""Trees of any library as attributes of ONNX's ``TreeEnsemble``, in double precision."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import numpy_helper

from counterpoise._base.types import AnyArray, BoolArray, FloatArray, IntArray

_UP_TO, _MEMBER = 0, 6  # BRANCH_LEQ and BRANCH_MEMBER
_CODES = 255  # of the categories that our trees know
_TENSORS = ("nodes_splits", "nodes_modes", "leaf_weights")


class PlainTree(NamedTuple):
    """The nodes of a tree, the root first, and what a row that ends in each of them adds to some sums."""

    feature: IntArray  # below zero in a leaf
    threshold: FloatArray  # values up to it go left
    left: IntArray
    right: IntArray
    missing_left: BoolArray
    values: FloatArray  # (n_nodes, n_sums)
    members: dict[int, IntArray]  # the categories that go left in nodes that split by category


def of_histogram_tree(tree: Any) -> PlainTree:
    """Return a tree of ours; its values are the shares of the classes."""
    left, right, missing_left, members = tree.left.copy(), tree.left + 1, tree.missing_left.astype(bool), {}
    bits = np.unpackbits(tree.categories, axis=1, bitorder="little")[:, :_CODES].astype(bool)
    for node in np.flatnonzero(tree.table >= 0).tolist():
        goes_left = bits[tree.table[node]]
        if missing_left[node]:  # unknown categories, members of no set, go where missing values go
            left[node], right[node], goes_left = right[node], left[node], ~goes_left
        members[node] = np.flatnonzero(goes_left)
    missing_left &= tree.table < 0
    return PlainTree(
        feature=tree.feature,
        threshold=tree.threshold,
        left=left,
        right=right,
        missing_left=missing_left,
        values=tree.shares,
        members=members,
    )


def of_decision_tree(tree: Any) -> PlainTree:
    """Return a tree of scikit-learn's; its values are the shares of the classes."""
    return PlainTree(
        feature=tree.feature,
        threshold=of_singles(tree.threshold),
        left=tree.children_left,
        right=tree.children_right,
        missing_left=tree.missing_go_to_left.astype(bool),
        values=tree.value[:, 0, :],
        members={},
    )


def of_predictor(nodes: AnyArray) -> PlainTree:
    """Return a tree of scikit-learn's histogram gradient boosting, without categories."""
    return PlainTree(
        feature=np.where(nodes["is_leaf"], -1, nodes["feature_idx"].astype(np.int64)),
        threshold=nodes["num_threshold"],
        left=nodes["left"].astype(np.int64),
        right=nodes["right"].astype(np.int64),
        missing_left=nodes["missing_go_to_left"].astype(bool),
        values=nodes["value"][:, None],
        members={},
    )


def of_singles(thresholds: FloatArray) -> FloatArray:
    """Return the largest doubles that are up to thresholds after they are rounded to single precision."""
    below = thresholds.astype(np.float32)
    below = np.where(below > thresholds, np.nextafter(below, np.float32(-np.inf)), below)
    middle = (below.astype(np.float64) + np.nextafter(below, np.float32(np.inf))) / 2
    is_even = below.view(np.uint32) % 2 == 0  # the middle between two singles is rounded to the even one
    return np.where(is_even, middle, np.nextafter(middle, -np.inf))


def tree_attributes(trees: Sequence[PlainTree]) -> dict[str, Any]:
    """Return trees as the attributes of one operator."""
    columns: dict[str, list[AnyArray]] = {}
    roots, members, n_nodes, n_leaves = [], [], 0, 0
    for tree, sums in _one_sum_a_leaf(trees):
        is_leaf, split = tree.feature < 0, np.flatnonzero(tree.feature >= 0)
        # Nodes and leaves are numbered apart, each over all trees.
        numbers = np.where(is_leaf, np.cumsum(is_leaf) - 1 + n_leaves, np.cumsum(~is_leaf) - 1 + n_nodes)
        codes = [tree.members.get(node) for node in split.tolist()]
        has_members = np.array([members is not None and members.size > 0 for members in codes])
        nodes = {
            "nodes_featureids": tree.feature[split],
            "nodes_splits": np.where([members is None for members in codes], tree.threshold[split], -np.inf),
            "nodes_modes": np.where(has_members, _MEMBER, _UP_TO).astype(np.uint8),
            "nodes_truenodeids": numbers[tree.left[split]],
            "nodes_falsenodeids": numbers[tree.right[split]],
            "nodes_trueleafs": is_leaf[tree.left[split]],
            "nodes_falseleafs": is_leaf[tree.right[split]],
            "nodes_missing_value_tracks_true": tree.missing_left[split],
            "leaf_targetids": sums[is_leaf],
            "leaf_weights": tree.values[is_leaf, sums[is_leaf]],
        }
        for name, column in nodes.items():
            columns.setdefault(name, []).append(column)
        members += [np.append(inside, np.nan) for inside in codes if inside is not None and inside.size > 0]
        roots.append(n_nodes)
        n_nodes, n_leaves = n_nodes + split.size, n_leaves + int(is_leaf.sum())
    whole = {name: np.concatenate(parts) for name, parts in columns.items()}
    attributes = {
        name: numpy_helper.from_array(column) if name in _TENSORS else column.astype(np.int64).tolist()
        for name, column in whole.items()
    }
    sets = {"membership_values": numpy_helper.from_array(np.concatenate(members))} if members else {}
    return {"tree_roots": roots, **attributes, **sets}


def _one_sum_a_leaf(trees: Sequence[PlainTree]) -> Iterator[tuple[PlainTree, IntArray]]:
    """Yield trees whose leaves add to one sum each, and which: copies, where they have more."""
    for tree in trees:
        if tree.feature[0] < 0:  # the root is a leaf, and a node is needed: any feature, both sides alike
            tree = _ONE_SPLIT._replace(values=tree.values[[0, 0, 0]])  # noqa: PLW2901 - the same tree
        if (np.count_nonzero(tree.values[tree.feature < 0], axis=1) <= 1).all():
            yield tree, np.abs(tree.values).argmax(axis=1)
        else:
            for place in range(tree.values.shape[1]):
                yield tree, np.full(len(tree.values), place)


_ONE_SPLIT = PlainTree(
    feature=np.array([0, -1, -1]),
    threshold=np.zeros(3),
    left=np.array([1, 0, 0]),
    right=np.array([2, 0, 0]),
    missing_left=np.zeros(3, dtype=bool),
    values=np.zeros((3, 1)),
    members={},
)
