"""Audits of rows in partitions: rows that no goal distinguishes are counted, and the counts are audited.

An audit uses the label of a row, the columns that goals name, the baseline prediction and the decision. The rows
of each partition are counted by these values and the counts are added up. The audit of one machine takes them in place
of rows. They are whole numbers, so intervals and verdicts are the same to the last digit however the rows are divided.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, ArrayLike
from counterpoise.auditing.audit import Audit, audit, classes_of_model, defer_label_of
from counterpoise.classifiers.base import MixtureBase
from counterpoise.distributed.collections import RowCollections, partitions_of
from counterpoise.distributed.partitions import Part
from counterpoise.distributed.rows import BASELINE, COLUMNS, MOST_CELLS, Values, X, Y, code_cells, column_of, in_order
from counterpoise.goals import Table


class RowCounts(NamedTuple):
    """Every kind of row once: its values that goals use, the number of such rows, and the answers about it."""

    table: Table
    answers: tuple[AnyArray, ...]  # in the order in which they were counted


def tabulate_counts(counts: Counter[Values], columns: Sequence[str], *, has_baseline: bool) -> RowCounts:
    """Return counted rows as a table, whatever the order in which they were counted."""
    if not counts:
        raise ValueError("There are no rows in any partition: an audit needs some.")
    if len(counts) > MOST_CELLS:
        raise ValueError(
            f"The columns {', '.join(columns)} divide the rows into {len(counts)} different kinds, more than "
            f"{MOST_CELLS}. Name only columns that goals use, and cut numbers into a few ranges first."
        )
    values = sorted(counts, key=in_order)
    labels, baseline, *others = map(column_of, zip(*values, strict=True))
    groups = dict(zip(columns, others, strict=False)) or None
    n_rows = [counts[value] for value in values]
    return RowCounts(
        Table(None, labels, groups, baseline if has_baseline else None, counts=n_rows), (*others[len(columns) :],)
    )


def audit_over(
    goals: Any,
    model: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    baseline: Any = None,
    features: Sequence[str] | None = None,
    confidence: float | None = None,
    pos_label: Any = None,
    defer_label: Any = None,
    classes: ArrayLike | None = None,
) -> Audit:
    """Audit a classifier on Dask collections, as ``certify`` does on rows in one place.

    Parameters
    ----------
    goals : goals or their texts
    model : fitted classifier
        It decides where the rows are.
    X : dask DataFrame or Array, or path of Parquet files
    y, baseline : dask Series or Array, or str
        Labels, and the deployed model's predictions; or the names of columns of X, which then are no features.
    sensitive_features : dask DataFrame, Series or Array, or list of str, optional
        Columns that goals use; or the names of columns of X, which then are no features.
    features : list of str, optional
        Names of the columns of X that are features, as for ``DaskGoalClassifier.fit``.
    confidence, pos_label, defer_label, classes
        As for ``certify``.

    Returns
    -------
    Audit

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from counterpoise.distributed import audit_over
    >>> X, y = np.zeros((100, 1)), np.repeat([0, 1], 50)
    >>> model = DummyClassifier(strategy="constant", constant=1).fit(X, y)
    >>> print(audit_over("recall >= 0.9", model, da.from_array(X, chunks=(30, 1)), da.from_array(y, chunks=30)))
    goal           estimate     low    high   bound  margin  verdict  rows
    recall >= 0.9    1.0000  0.9418  1.0000  0.9000  0.0418  holds      50
    All verdicts are right together with confidence 0.95.
    """
    rows = RowCollections(X, y, sensitive_features, baseline, None, features).with_features_of([model])
    parts = partitions_of(rows).map(_count_decisions, model)
    columns = next((names for _, names in parts if names), ())
    counts = sum((one[0] for one in parts), Counter())
    counted = tabulate_counts(counts, columns, has_baseline=baseline is not None)
    positive = getattr(model, "pos_label", None) if pos_label is None else pos_label
    all_classes = classes_of_model(model, counted.table.y) if classes is None else classes
    options = {"pos_label": positive, "classes": all_classes, "defer_label": defer_label_of(model, defer_label)}
    return audit(goals, counted.answers[0], counted.table, confidence=confidence, **options)


def _count_decisions(part: Part, model: Any) -> tuple[Counter[Values], tuple[str, ...]]:
    inputs = {"sensitive_features": part.get(COLUMNS), "baseline": part.get(BASELINE)}
    names = tuple(part.get(COLUMNS) or ())
    if not len(part[X]):
        return Counter(), names
    answers = model.predict(part[X], **(inputs if isinstance(model, MixtureBase) else {}))
    numbers, values = code_cells(part, part[Y], (answers,))
    return Counter(dict(zip(values, np.bincount(numbers, minlength=len(values)).tolist(), strict=True))), names
