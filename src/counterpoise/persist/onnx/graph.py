"""A graph of ONNX while it is written."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import TensorProto, checker, compose, helper, numpy_helper

from counterpoise import __version__
from counterpoise._base.types import AnyArray
from counterpoise.persist.container import UnstorableModel
from counterpoise.persist.onnx.trees import PlainTree, tree_attributes

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
        names = [value if isinstance(value, str) else self._constant(value) for value in inputs]
        result = f"{operator}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, names, [result], domain=domain, **attributes))
        return result

    def _constant(self, array: AnyArray) -> str:
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

    def sum_of_leaves(self, rows: Rows, trees: Sequence[PlainTree]) -> str:
        """Add up the values of the leaves that rows end in."""
        how = {"aggregate_function": 1, "post_transform": 0}  # their sum, and nothing after it
        n_sums = trees[0].values.shape[1]
        return self.add("TreeEnsemble", self.matrix(rows), domain=ML, n_targets=n_sums, **how, **tree_attributes(trees))

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
        inputs = [helper.make_tensor_value_info(title, kind, shape) for title, (kind, shape) in shapes.items()]
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
