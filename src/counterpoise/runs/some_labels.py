"""Audits of decisions in a table where labels are known for some rows only, as a column says."""

from pathlib import Path
from typing import Any

import numpy as np

from counterpoise._base.types import AnyArray, BoolArray
from counterpoise.auditing.audit import Audit, audit
from counterpoise.goals.expressions import amount_columns
from counterpoise.runs.data import groups_of, labels_of, weights_of
from counterpoise.runs.errors import DataError, as_data_error, check_columns, listed
from counterpoise.runs.reading import column_names, read_frame
from counterpoise.runs.tables import check_table_goals

_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def audit_some_labels(
    path: str | Path,
    *,
    target: str,
    prediction: str,
    labelled: str,
    goals: Any,
    weights: str | None = None,
    positive: str | None = None,
    **options: Any,
) -> Audit:
    """Audit decisions in a table where a column says of which rows the label is known.

    Parameters
    ----------
    path : path
        A CSV or Parquet file.
    target, prediction : str
        The columns of labels and of decisions, of two classes. Labels of other rows may be empty, and are not read.
    labelled : str
        The column of truth values, yes and no, or 1 and 0.
    goals : goals or their texts
    weights : str, optional
        The column of sample weights.
    positive : str, optional
        The class that goals call positive; by default the second of two.
    **options
        As for ``audit``: ``confidence``, ``largest_weight`` and ``largest_value``.

    Returns
    -------
    Audit
        A rate that depends on labels that are not known has no estimate, and bounds that hold whatever they are.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from counterpoise.datasets import loans
    >>> from counterpoise.runs.some_labels import audit_some_labels
    >>> people = loans(2000, random_state=0)[0]
    >>> people["granted"] = people["last_year"] == "no"
    >>> people["default"] = people["default"].where(people["granted"])
    >>> roles = {"target": "default", "prediction": "last_year", "labelled": "granted"}
    >>> with tempfile.TemporaryDirectory() as place:
    ...     people.to_csv(Path(place) / "loans.csv", index=False)
    ...     goals = ["recall >= 0.5", "selection_rate <= 0.5"]
    ...     done = audit_some_labels(Path(place) / "loans.csv", goals=goals, **roles)
    >>> [(str(row.goal.left), row.has_estimate and not np.isnan(row.estimate)) for row in done]
    [('recall', False), ('positive_rate', True)]
    """
    table, listed_goals = Path(path), check_table_goals(goals)
    compared = [name for goal in listed_goals for name in goal.compared_columns]
    groups = list(dict.fromkeys([*compared, *amount_columns(listed_goals)]))
    single = [target, prediction, labelled, *([] if weights is None else [weights])]
    known = column_names(table)
    check_columns([*single, *groups], known, table)
    frame = read_frame(table, list(dict.fromkeys([*single, *groups])), values=[target, prediction, *compared])
    is_known = _truths(frame[labelled], labelled, table)
    if not is_known.any():
        raise DataError(
            f"Column {labelled!r} of {table} says that no label is known: without labels audit a rate of all rows."
        )
    decisions, own = labels_of(frame, prediction, table), labels_of(frame[is_known], target, table)
    if decisions.dtype.kind != own.dtype.kind and "U" in (decisions.dtype.kind, own.dtype.kind):
        decisions, own = decisions.astype(str), own.astype(str)
    classes = list(dict.fromkeys([*np.unique(own).tolist(), *np.unique(decisions).tolist()]))
    texts = {str(label): label for label in classes}
    if positive is not None and positive not in texts:
        raise DataError(f"--positive must be one of the classes {listed(texts, most=10)}; got {positive!r}.")
    labels = np.full(len(frame), own[0], dtype=object)
    labels[is_known] = own
    with as_data_error(f"The goals cannot be measured on the rows of {table}: "):
        return audit(
            listed_goals,
            decisions,
            labels,
            labelled=is_known,
            sensitive_features=groups_of(frame, groups, table) or None,
            sample_weight=None if weights is None else weights_of(frame, weights, table),
            pos_label=None if positive is None else texts[positive],
            classes=classes,
            **options,
        )


def _truths(column: Any, name: str, path: Path) -> BoolArray:
    """Return a column of truth values, as files write them."""
    texts: AnyArray = np.array([str(value).removesuffix(".0").casefold() for value in column.tolist()])
    wrong = np.flatnonzero(~np.isin(texts, list(_WORDS)))
    if wrong.size:
        value = column.iloc[wrong[0]]
        raise DataError(
            f"Column {name!r} of {path} must say of each row whether its label is known: true and false, yes and no, "
            f"or 1 and 0; row {wrong[0] + 1} holds {value!r}."
        )
    return np.array([_WORDS[text] for text in texts.tolist()], dtype=np.bool_)
