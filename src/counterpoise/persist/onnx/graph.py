"""A graph of ONNX while it is written: every method returns the name of a result."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

from counterpoise import __version__
from counterpoise._base.types import AnyArray
from counterpoise.persist.onnx.trees import LeafTree, tree_attributes

_OPSET, _TREES, _IR_VERSION = 17, 5, 8  # TreeEnsemble with doubles came with version 5 of ai.onnx.ml
_ML = "ai.onnx.ml"


class Graph:
    """Operators on rows, added one after the other; arrays among their inputs become constants."""

    rows = "rows"  # the input: a matrix of doubles

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self.asks_for_groups = False

    def add(self, operator: str, *inputs: "str | AnyArray", domain: str = "", **attributes: Any) -> str:
        """Add an operator."""
        names = [one if isinstance(one, str) else self._constant(one) for one in inputs]
        result = f"{operator}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, names, [result], domain=domain, **attributes))
        return result

    def _constant(self, array: AnyArray) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def groups(self) -> str:
        """Return the input that tells the group of each row."""
        self.asks_for_groups = True
        return "groups"

    def as_doubles(self, values: str) -> str:
        """Turn truth values or other numbers into doubles."""
        return self.add("Cast", values, to=TensorProto.DOUBLE)

    def in_single_precision(self, rows: str) -> str:
        """Round doubles to those that are numbers of single precision."""
        return self.as_doubles(self.add("Cast", rows, to=TensorProto.FLOAT))

    def total(self, terms: Sequence[str]) -> str:
        """Add up matrices."""
        return self.add("Sum", *terms) if len(terms) > 1 else terms[0]

    def column(self, matrix: str, place: int) -> str:
        """Take one column, as a matrix."""
        return self.add("Gather", matrix, np.array([place]), axis=1)

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

    def sum_of_leaves(self, rows: str, trees: Sequence[LeafTree], n_sums: int) -> str:
        """Add up what the leaves of trees hold that rows end in."""
        return self.add(
            "TreeEnsemble",
            rows,
            domain=_ML,
            n_targets=n_sums,
            aggregate_function=1,  # their sum
            post_transform=0,  # nothing after it
            **tree_attributes(trees),
        )

    def model(self, result: str, name: str, n_features: int | None, words: dict[str, str], note: str) -> Any:
        """Return the whole, with words for its metadata."""
        shapes = {self.rows: (TensorProto.DOUBLE, ["n_rows", n_features])}
        if self.asks_for_groups:
            shapes["groups"] = (TensorProto.INT64, ["n_rows"])
        given = [helper.make_tensor_value_info(one, kind, shape) for one, (kind, shape) in shapes.items()]
        told = helper.make_tensor_value_info("probabilities", TensorProto.DOUBLE, ["n_rows", None])
        last = helper.make_node("Identity", [result], [told.name])
        made = helper.make_model(
            helper.make_graph([*self._nodes, last], name, given, [told], self._constants),
            opset_imports=[helper.make_opsetid("", _OPSET), helper.make_opsetid(_ML, _TREES)],
            ir_version=_IR_VERSION,
            producer_name="counterpoise",
            producer_version=__version__,
            doc_string=note,
        )
        helper.set_model_props(made, words)
        checker.check_model(made)
        return made
