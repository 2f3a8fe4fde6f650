"""Audits of rows in shards: rows that no goal distinguishes are counted, and the counts are audited.

An audit uses the label of a row, the columns that goals name, the baseline prediction and the decision. Each shard
counts its rows by these values and the counts are added up. The audit of one machine takes them in place of rows. They
are whole numbers, so intervals and verdicts are the same to the last digit however the rows are divided.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.shards import Shard, Shards
from counterpoise._base.types import AnyArray, ArrayLike
from counterpoise.auditing.audit import Audit, audit, classes_of_model, defer_label_of
from counterpoise.classifiers.base import MixtureBase
from counterpoise.distributed.rows import (
    BASELINE,
    COLUMNS,
    MOST_CELLS,
    SAMPLE_WEIGHT,
    Values,
    X,
    Y,
    code_cells,
    column_of,
    in_order,
)
from counterpoise.goals import Table


class RowCounts(NamedTuple):
    """Every kind of row once: its values that goals use, the number of such rows, and the answers about it."""

    table: Table
    answers: tuple[AnyArray, ...]  # in the order in which they were counted


def count_by_values(shard: Shard, *answers: AnyArray) -> Counter[Values]:
    """Return how many rows of a shard have each label, baseline, columns and answers."""
    numbers, values = code_cells(shard, Y, answers)
    return Counter(dict(zip(values, np.bincount(numbers, minlength=len(values)).tolist(), strict=True)))


def tabulate_counts(counts: Counter[Values], columns: Sequence[str], *, has_baseline: bool) -> RowCounts:
    """Return counted rows as a table, whatever the order in which they were counted."""
    if not counts:
        raise ValueError("There are no rows in any shard: an audit needs some.")
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
    shards: Shards,
    model: Any,
    *,
    confidence: float | None = None,
    pos_label: Any = None,
    defer_label: Any = None,
    classes: ArrayLike | None = None,
) -> Audit:
    """Audit a classifier on rows in shards, as ``certify`` does on rows in one place.

    Parameters
    ----------
    goals : goals or their texts
    shards : Shards
        Each holds ``"X"`` and ``"y"``, and may hold ``"columns"`` (a dict of arrays) and ``"baseline"``. Goals name
        those columns.
    model : fitted classifier
        It decides where the rows are.
    confidence, pos_label, defer_label, classes
        As for ``certify``.

    Returns
    -------
    Audit

    Examples
    --------
    >>> import numpy as np
    >>> from functools import partial
    >>> from sklearn.dummy import DummyClassifier
    >>> from counterpoise._base.shards import LocalShards
    >>> from counterpoise.distributed.counting import audit_over
    >>> X, y = np.zeros((100, 1)), np.repeat([0, 1], 50)
    >>> model = DummyClassifier(strategy="constant", constant=1).fit(X, y)
    >>> with LocalShards([partial(dict, X=X[part], y=y[part]) for part in (slice(0, 30), slice(30, 100))]) as shards:
    ...     print(audit_over("recall >= 0.9", shards, model))
    goal           estimate     low    high   bound  margin  verdict  rows
    recall >= 0.9    1.0000  0.9418  1.0000  0.9000  0.0418  holds      50
    All verdicts are right together with confidence 0.95.
    """
    parts = shards.map(_count_decisions, model)
    columns, has_baseline = parts[0][1:]
    rows = tabulate_counts(sum((one[0] for one in parts), Counter()), columns, has_baseline=has_baseline)
    positive = getattr(model, "pos_label", None) if pos_label is None else pos_label
    all_classes = classes_of_model(model, rows.table.y) if classes is None else classes
    options = {"pos_label": positive, "classes": all_classes, "defer_label": defer_label_of(model, defer_label)}
    return audit(goals, rows.answers[0], rows.table, confidence=confidence, **options)


def _count_decisions(shard: Shard, model: Any) -> tuple[Counter[Values], tuple[str, ...], bool]:
    if shard.get(SAMPLE_WEIGHT) is not None:
        raise ValueError(
            f"An audit over shards counts every row once; got sample_weight in shard {shard.number}. Leave it out."
        )
    inputs = {"sensitive_features": shard.get(COLUMNS), "baseline": shard.get(BASELINE)}
    names = tuple(shard.get(COLUMNS) or ())
    if not len(shard[X]):
        return Counter(), names, shard.get(BASELINE) is not None
    answers = model.predict(shard[X], **(inputs if isinstance(model, MixtureBase) else {}))
    return count_by_values(shard, answers), names, shard.get(BASELINE) is not None
