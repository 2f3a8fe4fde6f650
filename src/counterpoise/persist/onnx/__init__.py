"""Decisions as an ONNX graph, which any runtime of ONNX can run without Python and without counterpoise.

>>> import counterpoise as cp
>>> from counterpoise.persist.onnx import to_onnx
>>> from sklearn.datasets import load_iris
>>> X, y = load_iris(return_X_y=True)
>>> graph = to_onnx(cp.AdaLPBoostClassifier(n_estimators=5, random_state=0).fit(X, y))
>>> [value.name for value in graph.graph.input], [value.name for value in graph.graph.output]
(['rows'], ['probabilities'])
"""

import json
from typing import Any

import numpy as np

from counterpoise._base.frames import CATEGORY, TEXT, as_array, column_names, columns_of, is_frame, kind_of, select
from counterpoise._base.lazy import import_optional
from counterpoise._base.types import AnyArray
from counterpoise.persist.container import UnstorableModel
from counterpoise.persist.models import refuse_unfitted

__all__ = ["to_onnx"]

_DRAWS = (
    "The probability of each decision, 0 or 1 unless decisions are drawn. The draw itself stays outside: see the guide "
    "'Fits in' of counterpoise."
)
_HOW_TO_INSTALL = 'Models are written for ONNX with onnx: pip install "counterpoise[onnx]".'
_TOLERANCE = 1e-6  # of probabilities, which libraries compute in single precision


def to_onnx(model: Any, X: Any = None, *, sensitive_features: Any = None, baseline: Any = None) -> Any:
    """Return a fitted classifier as an ONNX graph of its decisions: of its ``decision_proba``, where it has one.

    Parameters
    ----------
    model : fitted classifier
        Trees of counterpoise; trees, forests, histogram gradient boosting without categories, linear models, naive
        Bayes and ``MLPClassifier`` of scikit-learn; classifiers of LightGBM, XGBoost and CatBoost; pipelines of these
        with scalers, encoders, imputers and ``ColumnTransformer``; any booster or mixture of counterpoise whose models
        are among these; a ``GoalClassifier`` of two classes over them; a linear ``ConstrainedClassifier``.
    X : data frame or array, optional
        Rows as ``predict`` takes them, some thousands: the graph is run on them and must agree with the model. Needed
        where columns hold texts or categories, and where another library converted a part.
    sensitive_features, baseline : optional
        Of the rows in ``X``, where rules use them.

    Returns
    -------
    onnx.ModelProto
        If ``X`` is a data frame, the graph has an input for each column of ``fit``, of shape (n_rows, 1): doubles, or
        texts, of which the empty one stands for a missing value. Else its input ``rows`` is a matrix of doubles,
        columns in the order of ``fit``: single precision becomes double without loss. Where rules use groups (``by``)
        there is a further input ``groups``, whole numbers of 64 bits: places in the list under ``groups`` of its
        metadata. Its output ``probabilities`` has a column for each of the classes, which the metadata list under
        ``classes`` as JSON: the probability that this class is the decision, of models without ``decision_proba`` their
        ``predict_proba``. What is missing to 1 is how likely a row is deferred.

    Raises
    ------
    UnstorableModel
        If the model is not fitted, a part of it has no form in ONNX here, or the graph decides differently about a row
        of ``X``; the message says which part, and what to do.

    Notes
    -----
    All sums and thresholds are doubles, so that probabilities agree with those in Python up to the rounding of
    sums, or of single precision where a library computes in it; a row whose score is as near to a threshold as that may
    fall to its other side. Operators are those of opset 19 and of ``ai.onnx.ml`` 5, which ONNX Runtime knows well from
    1.24 on. The graph does not check rows: what ``predict`` refuses, such as missing values for a linear model, leads
    to probabilities that are no numbers. Codes of categories must be whole numbers: of others, which trees here call
    unknown, ONNX Runtime takes the whole part.

    Examples
    --------
    >>> from counterpoise.learners import HistogramTree
    >>> from counterpoise.persist.onnx import to_onnx
    >>> graph = to_onnx(HistogramTree().fit([[1.0], [2.0], [5.0]], ["low", "low", "high"]))
    >>> {entry.key: entry.value for entry in graph.metadata_props}
    {'classes': '["high", "low"]'}
    """
    import_optional("onnx", UnstorableModel, _HOW_TO_INSTALL)
    refuse_unfitted(model, "to_onnx")
    beside = {"sensitive_features": sensitive_features, "baseline": baseline}
    beside = {name: value for name, value in beside.items() if value is not None}
    try:
        columns = _columns_of(model, X)
        graph, shares = _shares_of(model, columns, is_checked=X is not None)
        words = {"classes": json.dumps(model.classes_.tolist(), default=str)}
        if graph.asks_for_groups:
            words["groups"] = json.dumps(model.groups_.names)
        whole = graph.model(shares, type(model).__name__, getattr(model, "n_features_in_", None), words, _DRAWS)
        if X is not None:
            feed = columns or {"rows": np.asarray(X, dtype=np.float64)}
            if graph.asks_for_groups:
                feed = {**feed, "groups": model.rows_to_decide(X, **beside).groups}
            _compare(whole, feed, _expected(model, X, beside), graph.foreign)
    except UnstorableModel as error:
        raise UnstorableModel(f"This {type(model).__name__} cannot be exported to ONNX: {error}.") from error
    return whole


def _shares_of(model: Any, columns: dict[str, AnyArray] | None, *, is_checked: bool) -> tuple[Any, str]:
    """Return a graph and its value with the probabilities of decisions."""
    from counterpoise.persist.onnx.graph import Graph  # noqa: PLC0415 - they need onnx
    from counterpoise.persist.onnx.models import decision_shares  # noqa: PLC0415

    graph = Graph(None if columns is None else {name: values.dtype == object for name, values in columns.items()})
    shares = decision_shares(graph, graph.rows, model)
    if graph.foreign and not is_checked:
        parts = ", ".join(dict.fromkeys(graph.foreign))
        raise UnstorableModel(
            f"other libraries convert its {parts}, not all versions rightly: pass X, some thousand rows as predict "
            "takes them, on which the graph is compared with the model"
        )
    return graph, shares


def _columns_of(model: Any, X: Any) -> dict[str, AnyArray] | None:
    """Return the columns of a frame that a model was fitted on, as a graph reads them; None of anything else."""
    if not is_frame(X):
        return None
    names = list(getattr(model, "feature_names_in_", column_names(X)))
    return {str(name): _as_input(str(name), column) for name, column in columns_of(select(X, names))}


def _as_input(name: str, column: Any) -> AnyArray:
    values = as_array(column)
    present = [value for value in values.tolist() if value is not None and value == value]  # noqa: PLR0124 - NaN
    if any(isinstance(value, str) for value in present):
        return np.array([[value if isinstance(value, str) else ""] for value in values.tolist()], dtype=object)
    if values.dtype.kind in "mM" or (kind_of(column) in (TEXT, CATEGORY) and present):
        what = "times" if values.dtype.kind in "mM" else "categories that are no texts"
        raise UnstorableModel(
            f"the column {name!r} holds {what}, which a graph cannot read: make them texts or numbers before fit"
        )
    return np.array([np.nan if value is None else value for value in values.tolist()], dtype=np.float64)[:, None]


def _expected(model: Any, X: Any, beside: dict[str, Any]) -> AnyArray:
    decides = hasattr(model, "decision_proba")
    shares = model.decision_proba(X, **beside) if decides else model.predict_proba(X)
    return np.asarray(shares)[:, : len(model.classes_)]


def _compare(graph: Any, feed: dict[str, AnyArray], expected: AnyArray, foreign: list[str]) -> None:
    """Refuse a graph that does not run, or that gives other probabilities than the model."""
    runtime = import_optional(
        "onnxruntime", UnstorableModel, 'Graphs are checked with onnxruntime: pip install "counterpoise[onnx]".'
    )
    parts = f" Look at what other libraries convert: {', '.join(dict.fromkeys(foreign))}." if foreign else ""
    try:
        session = runtime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
        (shares,) = session.run(["probabilities"], feed)
    except Exception as error:  # of many kinds
        raise UnstorableModel(f"ONNX Runtime does not run its graph ({str(error).splitlines()[0]}).{parts}") from error
    gaps = np.nan_to_num(np.abs(shares - expected), nan=1.0).max(axis=1)
    if (gaps > _TOLERANCE).any():
        raise UnstorableModel(
            f"its graph differs from it in {int((gaps > _TOLERANCE).sum())} of {gaps.size} rows, by up to "
            f"{gaps.max():.2g}.{parts} Do that step before the model, or run the model in Python and export its rules "
            "alone: see the guide 'Bring your scores, leave with thresholds'"
        )
