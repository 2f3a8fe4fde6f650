"""Decisions as an ONNX graph, which any runtime of ONNX can run without Python and without counterpoise.

>>> import counterpoise as cp
>>> from counterpoise.persist.onnx import to_onnx
>>> from sklearn.datasets import load_iris
>>> X, y = load_iris(return_X_y=True)
>>> graph = to_onnx(cp.AdaLPBoostClassifier(n_estimators=5, random_state=0).fit(X, y))
>>> [one.name for one in graph.graph.input], [one.name for one in graph.graph.output]
(['rows'], ['probabilities'])
"""

import json
from typing import Any

from counterpoise._base.lazy import import_optional
from counterpoise.persist.container import UnstorableModel
from counterpoise.persist.models import refuse_unfitted

__all__ = ["to_onnx"]

_DRAWS = (
    "The probability of each decision, 0 or 1 unless decisions are drawn. The draw itself stays outside: see the guide "
    "'Fits in' of counterpoise."
)


def to_onnx(model: Any) -> Any:
    """Return a fitted classifier as an ONNX graph of its decisions: of its ``decision_proba``, where it has one.

    Parameters
    ----------
    model : fitted classifier
        A tree of counterpoise; a tree, forest, histogram gradient boosting without categories, or linear model of
        scikit-learn, alone or behind a ``StandardScaler`` in a ``Pipeline``; any booster or mixture of counterpoise
        whose models are among these; a ``GoalClassifier`` of two classes over them; a linear ``ConstrainedClassifier``.

    Returns
    -------
    onnx.ModelProto
        Its input ``rows`` is a matrix of doubles, columns in the order of ``fit``: single precision becomes double
        without loss. Where rules use groups (``by``) there is a second input ``groups``, whole numbers of 64 bits:
        places in the list under ``groups`` of its metadata. Its output ``probabilities`` has a column for each of the
        classes, which the metadata list under ``classes`` as JSON: the probability that this class is the decision, of
        models without ``decision_proba`` their ``predict_proba``. What is missing to 1 is how likely a row is deferred.

    Raises
    ------
    UnstorableModel
        If the model is not fitted, or a part of it has no form in ONNX here; the message lists what has.

    Notes
    -----
    All sums and thresholds are doubles, so that probabilities agree with those in Python up to the rounding of
    sums; a row whose score is as near to a threshold as that may fall to its other side. Operators are those of
    opset 17 and of ``ai.onnx.ml`` 5, which ONNX Runtime knows well from 1.23 on. The graph does not check rows: what
    ``predict`` refuses, such as missing values for a linear model, leads to probabilities that are no numbers.
    Codes of categories must be whole numbers: of others, which trees here call unknown, ONNX Runtime takes the whole
    part.

    Examples
    --------
    >>> from counterpoise.learners import HistogramTree
    >>> from counterpoise.persist.onnx import to_onnx
    >>> graph = to_onnx(HistogramTree().fit([[1.0], [2.0], [5.0]], ["low", "low", "high"]))
    >>> {entry.key: entry.value for entry in graph.metadata_props}
    {'classes': '["high", "low"]'}
    """
    import_optional("onnx", UnstorableModel, 'Models are written for ONNX with onnx: pip install "counterpoise[onnx]".')
    from counterpoise.persist.onnx.graph import Graph  # noqa: PLC0415 - they need it
    from counterpoise.persist.onnx.models import decision_shares  # noqa: PLC0415

    name = type(model).__name__
    refuse_unfitted(model, "to_onnx")
    graph = Graph()
    try:
        shares = decision_shares(graph, graph.rows, model)
    except UnstorableModel as error:
        raise UnstorableModel(f"This {name} cannot be exported to ONNX: {error}.") from error
    words = {"classes": json.dumps(model.classes_.tolist(), default=str)}
    if graph.asks_for_groups:
        words["groups"] = json.dumps(model.groups_.names)
    return graph.model(shares, name, getattr(model, "n_features_in_", None), words, _DRAWS)
