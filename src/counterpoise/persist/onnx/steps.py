"""Steps before a model in a pipeline as operators of ONNX: ColumnTransformer, imputers, scalers and encoders."""

from copy import copy
from typing import Any

import numpy as np

from counterpoise.persist.container import UnstorableModel
from counterpoise.persist.onnx.graph import MISSING_TEXT, Graph, GraphColumns, Rows
from counterpoise.persist.onnx.libraries import add_converted

_SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "Normalizer", "Binarizer")
_ENCODERS = ("OneHotEncoder", "OrdinalEncoder")
# What skl2onnx 1.20 writes rightly in double precision: others fail there, or have doubles that never end.
_CONVERTED = (*_SCALERS, *_ENCODERS, "PCA", "TruncatedSVD", "VarianceThreshold", "SelectKBest", "SelectFromModel")
_WAYS_OUT = (
    f"the steps that can be exported are ColumnTransformer, Pipeline, SimpleImputer, {', '.join(_CONVERTED)}. Do this "
    "step before the model, in whatever prepares the rows, or run the model in Python and export its rules alone: see "
    "the guide 'Bring your scores, leave with thresholds'"
)


def transform(graph: Graph, rows: Rows, step: Any) -> Rows:
    """Return rows as a fitted step of a pipeline transforms them."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return rows
    name, library = type(step).__name__, type(step).__module__.split(".", maxsplit=1)[0]
    if library == "sklearn" and name in _OWN:
        return _OWN[name](graph, rows, step)
    if library != "sklearn" or name not in _CONVERTED:
        raise UnstorableModel(f"the step {name} of a Pipeline is not supported; {_WAYS_OUT}")
    are_texts = isinstance(rows, GraphColumns) and all(rows.are_texts)
    if are_texts and name in _ENCODERS:
        step = _with_missing_texts(step)
    elif name in _ENCODERS and any(isinstance(value, str) for values in step.categories_ for value in values):
        raise UnstorableModel(
            f"the step {name} encodes texts: pass X, a data frame of some thousand rows as predict takes"
        )
    return add_converted(graph, graph.matrix(rows, of_texts=are_texts), step, are_texts=are_texts)


def _pipeline(graph: Graph, rows: Rows, pipeline: Any) -> Rows:
    for _, step in pipeline.steps:
        rows = transform(graph, rows, step)
    return rows


def _columns(graph: Graph, rows: Rows, transformer: Any) -> Rows:
    places_of = transformer._transformer_to_input_indices  # noqa: SLF001 - of a kind that is known
    parts = []
    for name, step, _ in transformer.transformers_:
        places = list(places_of.get(name, ()))
        if places and not (isinstance(step, str) and step == "drop"):
            try:
                parts.append(graph.matrix(transform(graph, graph.pick(rows, places), step)))
            except UnstorableModel as error:
                raise UnstorableModel(f"in {name!r} of a ColumnTransformer, {error}") from error
    return graph.add("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]


def _function(graph: Graph, rows: Rows, step: Any) -> Rows:  # noqa: ARG001 - as others
    if step.func is not None:
        raise UnstorableModel(f"the step FunctionTransformer applies a function of Python; {_WAYS_OUT}")
    return rows


def _imputer(graph: Graph, rows: Rows, step: Any) -> Rows:
    """Return rows with statistics in place of missing values: ONNX Runtime imputes no doubles itself."""
    values, is_missing = step.statistics_, step.missing_values
    is_nan = is_missing is None or is_missing != is_missing  # noqa: PLR0124 - of any type
    if not is_nan or (step.add_indicator and step.statistics_.dtype == object):
        raise UnstorableModel(f"the step SimpleImputer(missing_values={is_missing!r}) is not supported; {_WAYS_OUT}")
    if isinstance(rows, GraphColumns) and all(rows.are_texts):
        filled = [
            graph.add("Where", graph.add("Equal", column, _text(MISSING_TEXT)), _text(value), column)
            for column, value in zip(rows.values, values, strict=True)
        ]
        return rows._replace(values=tuple(filled))
    matrix, numbers = graph.matrix(rows), np.asarray(values, dtype=np.float64)[None, :]
    gaps = graph.add("IsNaN", matrix)
    result = graph.add("Where", gaps, np.nan_to_num(numbers), matrix)
    kept = np.arange(numbers.size) if step.keep_empty_features else np.flatnonzero(~np.isnan(numbers[0]))
    if kept.size < numbers.size:
        result = graph.add("Gather", result, kept, axis=1)
    if not step.add_indicator:
        return result
    return graph.add(
        "Concat", result, graph.as_doubles(graph.add("Gather", gaps, step.indicator_.features_, axis=1)), axis=1
    )


def _text(value: Any) -> Any:
    return np.array([[value]], dtype=object)


def _with_missing_texts(step: Any) -> Any:
    """Return an encoder of texts to which a missing value is the empty text, as it is to the graph."""
    step = copy(step)
    step.categories_ = [
        np.array([MISSING_TEXT if value is None or value != value else value for value in values], dtype=object)  # noqa: PLR0124 - NaN
        for values in step.categories_
    ]
    if any(len(set(values)) < len(values) for values in step.categories_):
        raise UnstorableModel(
            f"the step {type(step).__name__} tells missing texts from empty ones, and a graph cannot: make them one"
        )
    return step


_OWN = {
    "Pipeline": _pipeline,
    "ColumnTransformer": _columns,
    "FunctionTransformer": _function,
    "SimpleImputer": _imputer,
}
