"""A graph of ONNX while it is written, and trees of any library as attributes of its ``TreeEnsemble``."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import TensorProto, checker, compose, helper, numpy_helper

from counterpoise import __version__
from counterpoise._base.types import AnyArray, BoolArray, FloatArray, IntArray
from counterpoise.persist.container import UnstorableModel

_UP_TO, _MEMBER = 0, 6  # BRANCH_LEQ and BRANCH_MEMBER
_CODES = 255  # of the categories that our trees know


class PlainTree(NamedTuple):
    """The nodes of a tree, the root first."""

    feature: IntArray  # below zero in a leaf
    threshold: FloatArray  # values up to it go left
    left: IntArray
    right: IntArray
    missing_left: BoolArray
    categories: dict[int, BoolArray]  # of nodes that split by category: whether each goes left; others are missing


class LeafTree(NamedTuple):
    """A tree, and what it adds to each of some sums where a row ends in a leaf."""

    tree: PlainTree
    values: FloatArray  # (n_nodes, n_sums)


def of_histogram_tree(tree: Any) -> PlainTree:
    """Return a tree of ours."""
    bits = np.unpackbits(tree.categories, axis=1, bitorder="little")[:, :_CODES].astype(bool)
    tables = {node: bits[tree.table[node]] for node in np.flatnonzero(tree.table >= 0).tolist()}
    return PlainTree(tree.feature, tree.threshold, tree.left, tree.left + 1, tree.missing_left.astype(bool), tables)


def of_decision_tree(tree: Any) -> PlainTree:
    """Return a tree of scikit-learn's, which compares features rounded to single precision."""
    missing_left = tree.missing_go_to_left.astype(bool)
    return PlainTree(tree.feature, tree.threshold, tree.children_left, tree.children_right, missing_left, {})


def of_predictor(nodes: AnyArray) -> PlainTree:
    """Return a tree of scikit-learn's histogram gradient boosting, without categories."""
    feature = np.where(nodes["is_leaf"], -1, nodes["feature_idx"].astype(np.int64))
    left, right = (nodes[side].astype(np.int64) for side in ("left", "right"))
    return PlainTree(feature, nodes["num_threshold"], left, right, nodes["missing_go_to_left"].astype(bool), {})


def tree_attributes(trees: Sequence[LeafTree]) -> dict[str, Any]:
    """Return trees as the attributes of one operator."""
    nodes: list[dict[str, AnyArray]] = []
    leaves: list[dict[str, AnyArray]] = []
    roots, members, n_nodes, n_leaves = [], [], 0, 0
    for tree, targets, weights in _one_target_a_leaf(trees):
        is_leaf = tree.feature < 0
        if _looks_like_a_leaf(tree, n_nodes, n_leaves):
            leaves.append({"leaf_targetids": np.zeros(1), "leaf_weights": np.zeros(1)})  # which nothing leads to
            n_leaves += 1
        roots.append(n_nodes)
        columns, sets = _columns_of(tree, n_nodes, n_leaves)
        nodes.append(columns)
        members += sets
        leaves.append({"leaf_targetids": targets[is_leaf], "leaf_weights": weights[is_leaf]})
        n_nodes, n_leaves = n_nodes + len(columns["nodes_splits"]), n_leaves + int(is_leaf.sum())
    membership = {"membership_values": numpy_helper.from_array(np.concatenate(members))} if members else {}
    return {"tree_roots": roots, **_concatenate(nodes), **_concatenate(leaves), **membership}


def _concatenate(parts: list[dict[str, AnyArray]]) -> dict[str, Any]:
    """Return columns of nodes, or of leaves, one after the other, in the forms of attributes."""
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {
        name: numpy_helper.from_array(column) if name in _TENSORS else column.astype(np.int64).tolist()
        for name, column in whole.items()
    }


def _looks_like_a_leaf(tree: PlainTree, n_nodes: int, n_leaves: int) -> bool:
    """Return whether the children of the root, one of them a leaf, would have the same number.

    ONNX Runtime up to 1.23 then takes the root for a leaf (its issue 24679).
    """
    is_leaf = tree.feature < 0
    sides = [int(tree.left[0]), int(tree.right[0])]
    if is_leaf[0] or is_leaf[sides].sum() != 1:
        return False
    return len(set(_numbers(is_leaf, n_nodes, n_leaves)[sides].tolist())) == 1


def _numbers(is_leaf: BoolArray, n_nodes: int, n_leaves: int) -> IntArray:
    """Return the number of each node among those that split, or among the leaves, given how many others there are."""
    return np.where(is_leaf, np.cumsum(is_leaf) - 1 + n_leaves, np.cumsum(~is_leaf) - 1 + n_nodes)


def _one_target_a_leaf(trees: Sequence[LeafTree]) -> Iterator[tuple[PlainTree, IntArray, FloatArray]]:
    """Yield trees whose leaves add to one sum each, with its place and what is added: copies, where they have more."""
    for tree, values in trees:
        if (np.count_nonzero(values[tree.feature < 0], axis=1) <= 1).all():
            targets = np.abs(values).argmax(axis=1)
            yield tree, targets, values[np.arange(len(values)), targets]
        else:
            for place in range(values.shape[1]):
                yield tree, np.full(len(values), place), values[:, place]


def _columns_of(tree: PlainTree, n_nodes: int, n_leaves: int) -> tuple[dict[str, AnyArray], list[FloatArray]]:
    """Return the nodes that split as columns, and the members of their sets, each ended by NaN."""
    is_leaf = tree.feature < 0
    number = _numbers(is_leaf, n_nodes, n_leaves)
    split = np.flatnonzero(~is_leaf)
    if is_leaf[0]:  # the root is a leaf, and a node is needed: any feature, both sides the leaf
        tree, split = _ONE_NODE, np.array([0])
    branches = [_branch(tree, node) for node in split.tolist()]
    true, false = np.array([one.true for one in branches]), np.array([one.false for one in branches])
    columns = {
        "nodes_featureids": tree.feature[split],
        "nodes_splits": np.array([one.threshold for one in branches], dtype=np.float64),
        "nodes_modes": np.array([_UP_TO if one.members is None else _MEMBER for one in branches], dtype=np.uint8),
        "nodes_truenodeids": number[true],
        "nodes_falsenodeids": number[false],
        "nodes_trueleafs": is_leaf[true],
        "nodes_falseleafs": is_leaf[false],
        "nodes_missing_value_tracks_true": np.array([one.missing_is_true for one in branches]),
    }
    return columns, [np.append(one.members, np.nan) for one in branches if one.members is not None]


_ONE_NODE = PlainTree(np.array([0]), np.array([0.0]), np.array([0]), np.array([0]), np.array([False]), {})


class _Branch(NamedTuple):
    """Where a node leads: values up to the threshold, or members of a set, to one node, all others to the other."""

    true: int
    false: int
    missing_is_true: bool
    threshold: float
    members: IntArray | None = None


def _branch(tree: PlainTree, node: int) -> _Branch:
    left, right, missing_left = int(tree.left[node]), int(tree.right[node]), bool(tree.missing_left[node])
    if node not in tree.categories:
        return _Branch(left, right, missing_left, float(tree.threshold[node]))
    goes_left = tree.categories[node]
    # Unknown categories, members of no set, go where missing values go.
    sides, codes = ((right, left), ~goes_left) if missing_left else ((left, right), goes_left)
    return _Branch(*sides, False, -np.inf, np.flatnonzero(codes) if codes.any() else None)


_TENSORS = {"nodes_splits", "nodes_modes", "leaf_weights"}


# Texts are compared from opset 19 on; TreeEnsemble with doubles came with version 5 of ai.onnx.ml.
OPSET, _TREES, _IR_VERSION = 19, 5, 9
ML = "ai.onnx.ml"
MISSING_TEXT = ""


class GraphColumns(NamedTuple):
    """Columns of rows, each a value of the graph of shape (n_rows, 1)."""

    names: tuple[str, ...]
    values: tuple[str, ...]
    are_texts: tuple[bool, ...]


Rows = str | GraphColumns  # a matrix of doubles, or columns


class Graph:
    """Operators on rows, added one after the other; arrays among their inputs become constants.

    ``rows`` is the input: columns by name, or one matrix of doubles.
    """

    def __init__(self, texts: dict[str, bool] | None = None) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self.asks_for_groups = False
        self.foreign: list[str] = []  # what was converted by other libraries
        self.rows: Rows = "rows" if texts is None else GraphColumns(tuple(texts), tuple(texts), tuple(texts.values()))

    def add(self, operator: str, *inputs: "str | AnyArray", domain: str = "", **attributes: Any) -> str:
        """Add an operator."""
        names = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        result = f"{operator}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, names, [result], domain=domain, **attributes))
        return result

    def constant(self, array: AnyArray) -> str:
        """Add an array."""
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def matrix(self, rows: Rows, *, of_texts: bool = False) -> str:
        """Return rows as one matrix."""
        if isinstance(rows, str):
            return rows
        odd = [name for name, is_text in zip(rows.names, rows.are_texts, strict=True) if is_text != of_texts]
        if odd:
            raise UnstorableModel(
                f"the column {odd[0]!r} holds texts, where numbers are needed: encode it by a OneHotEncoder or an "
                "OrdinalEncoder in a ColumnTransformer before the model"
                if not of_texts
                else f"one step reads texts and {odd[0]!r}, which holds numbers: use a step for each kind of column"
            )
        return self.add("Concat", *rows.values, axis=1) if len(rows.values) > 1 else rows.values[0]

    def pick(self, rows: Rows, places: Sequence[int]) -> Rows:
        """Return some columns of rows."""
        if isinstance(rows, str):
            return self.add("Gather", rows, np.asarray(places, dtype=np.int64), axis=1)
        names, values, are_texts = zip(*(list(zip(*rows, strict=True))[place] for place in places), strict=True)
        return GraphColumns(names, values, are_texts)

    def merge(self, other: Any, rows: str, output: int) -> str:
        """Add a graph with one input and return one of its outputs."""
        prefix = f"part_{len(self._nodes)}_"
        part = compose.add_prefix(other, prefix).graph
        self._nodes.append(helper.make_node("Identity", [rows], [part.input[0].name]))
        self._nodes += part.node
        self._constants += part.initializer
        return str(part.output[output].name)

    def groups(self) -> str:
        """Return the input that holds the group of each row."""
        self.asks_for_groups = True
        return "groups"

    def as_doubles(self, values: str) -> str:
        """Turn truth values or other numbers into doubles."""
        return self.add("Cast", values, to=TensorProto.DOUBLE)

    def total(self, terms: Sequence[str]) -> str:
        """Add up matrices."""
        return self.add("Sum", *terms) if len(terms) > 1 else terms[0]

    def with_complement(self, positive: str) -> str:
        """Make the probability of the second class, a column, those of both."""
        return self.add("Concat", self.add("Sub", np.array(1.0), positive), positive, axis=1)

    def is_above(self, scores: str, threshold: "str | AnyArray") -> str:
        """Return 1.0 where scores are above thresholds, else 0.0."""
        return self.as_doubles(self.add("Greater", scores, threshold))

    def is_largest(self, matrix: str, n_columns: int) -> str:
        """Return 1.0 at the largest entry of each row, the first of equals, and 0.0 elsewhere."""
        places = self.add("ArgMax", matrix, axis=1, keepdims=1)
        return self.as_doubles(self.add("Equal", places, np.arange(n_columns)))

    def log_sigmoid(self, odds: str) -> str:
        """Return the logarithms of the probabilities that log odds stand for, however small they are."""
        tail = self.add("Exp", self.add("Neg", self.add("Abs", odds)))  # Softplus has no doubles in ONNX Runtime
        below = self.add("Min", odds, np.array(0.0))
        return self.add("Sub", below, self.add("Log", self.add("Add", tail, np.array(1.0))))

    def sum_of_leaves(self, rows: Rows, trees: Sequence[LeafTree], n_sums: int, *, rounds: bool = False) -> str:
        """Add up the values of the leaves that rows end in; ``rounds`` rounds the rows to single precision before."""
        rows = self.matrix(rows)
        if rounds:
            rows = self.as_doubles(self.add("Cast", rows, to=TensorProto.FLOAT))
        how = {"aggregate_function": 1, "post_transform": 0}  # their sum, and nothing after it
        return self.add("TreeEnsemble", rows, domain=ML, n_targets=n_sums, **how, **tree_attributes(trees))

    def model(self, result: str, name: str, n_features: int | None, words: dict[str, str], note: str) -> Any:
        """Return the whole, with words for its metadata."""
        shapes: dict[str, tuple[int, list[Any]]] = {}
        if isinstance(self.rows, str):
            shapes = {self.rows: (TensorProto.DOUBLE, ["n_rows", n_features])}
        else:
            kinds = [TensorProto.STRING if is_text else TensorProto.DOUBLE for is_text in self.rows.are_texts]
            shapes = {name: (kind, ["n_rows", 1]) for name, kind in zip(self.rows.names, kinds, strict=True)}
        if self.asks_for_groups:
            shapes["groups"] = (TensorProto.INT64, ["n_rows"])
        inputs = [helper.make_tensor_value_info(one, kind, shape) for one, (kind, shape) in shapes.items()]
        output = helper.make_tensor_value_info("probabilities", TensorProto.DOUBLE, ["n_rows", None])
        last = helper.make_node("Identity", [result], [output.name])
        model = helper.make_model(
            helper.make_graph([*self._nodes, last], name, inputs, [output], self._constants),
            opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(ML, _TREES)],
            ir_version=_IR_VERSION,
            producer_name="counterpoise",
            producer_version=__version__,
            doc_string=note,
        )
        helper.set_model_props(model, words)
        checker.check_model(model)
        return model
