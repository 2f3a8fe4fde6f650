"""Rows that keep coming, and labels that come later: which of them belong together."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.checks import check_vector
from counterpoise._base.types import AnyArray, BoolArray, FloatArray
from counterpoise.goals.classes import as_labels
from counterpoise.goals.tables import Table, columns_by_name, rows_at
from counterpoise.goals.terms import is_missing, text_of


class ArrivingRows(NamedTuple):
    """Rows of one batch; a part is None where it was not passed."""

    answers: AnyArray
    y: AnyArray | None
    columns: dict[str, AnyArray]  # those that goals name
    baseline: AnyArray | None
    weights: FloatArray | None
    ids: AnyArray | None  # texts

    @classmethod
    def read(
        cls,
        answers: Any,
        y: Any,
        sensitive_features: Any,
        baseline: Any,
        sample_weight: Any,
        ids: Any,
        columns: Sequence[str],
    ) -> "ArrivingRows":
        """Return rows after checking that there is an entry for each; a single row may be passed as such."""
        decided = as_labels(_in_list(answers))
        n_rows = _check_rows(decided, "answers")
        if isinstance(sensitive_features, Mapping):
            sensitive_features = {name: _in_list(values) for name, values in sensitive_features.items()}
        else:
            sensitive_features = None if sensitive_features is None else _in_list(sensitive_features)
        known = columns_by_name(sensitive_features)
        own = {name: known[name] for name in columns if name in known}
        weights = None
        if sample_weight is not None:
            weights = check_vector(_in_list(sample_weight), "sample_weight", n_rows, "one weight for each row")
            if weights.min() < 0:
                raise ValueError(f"sample_weight must not be negative; got a weight of {float(weights.min())!r}.")
        rows = cls(
            decided,
            None if y is None else as_labels(_in_list(y)),
            own,
            None if baseline is None else as_labels(_in_list(baseline)),
            weights,
            None if ids is None else read_ids(ids),
        )
        parts = {"y": rows.y, "baseline": rows.baseline, "ids": rows.ids, **known}
        for name, part in parts.items():
            if part is not None and part.shape != (n_rows,):
                raise ValueError(f"{name} must have an entry for each of the {n_rows} answers; got shape {part.shape}.")
        return rows

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return len(self.answers)

    def only(self, places: AnyArray) -> "ArrivingRows":
        """Return some of the rows."""
        columns = {name: values[places] for name, values in self.columns.items()}
        parts = (rows_at(part, places) for part in (self.baseline, self.weights, self.ids))
        return ArrivingRows(self.answers[places], rows_at(self.y, places), columns, *parts)

    def table(self, limits: Mapping[str, Any], *, has_labels: bool) -> Table:
        """Return the rows as goals see them."""
        features, y = self.columns or None, self.y if has_labels else None
        return Table(np.empty((self.n_rows, 0)), y, features, self.baseline, sample_weight=self.weights, **limits)

    def records(self, places: Iterable[int]) -> list[list[Any]]:
        """Return rows as plain values: answer, baseline, weight, and the columns in their order."""
        parts = [self.answers, self.baseline, self.weights, *self.columns.values()]
        lists = [[None] * self.n_rows if part is None else _plain(part) for part in parts]
        return [[part[place] for part in lists] for place in places]


class Waiting:
    """Rows whose label is not known yet, and labels whose row has not come; both by id."""

    def __init__(self, columns: Sequence[str], rows: Mapping[str, Any], labels: Mapping[str, Any]) -> None:
        self.columns = list(columns)
        self.rows: dict[str, Sequence[list[Any]]] = dict(rows)  # the queues themselves are never changed
        self.labels: dict[str, Sequence[Any]] = dict(labels)

    def copy(self) -> "Waiting":
        """Return the same, to be changed."""
        return Waiting(self.columns, self.rows, self.labels)

    @property
    def n_rows(self) -> int:
        """Return how many rows wait for a label."""
        return sum(map(len, self.rows.values()))

    @property
    def n_labels(self) -> int:
        """Return how many labels wait for a row."""
        return sum(map(len, self.labels.values()))

    def admit(self, rows: ArrivingRows) -> tuple[ArrivingRows | None, int]:
        """Return the rows whose label is known, and how many never get one as they have no id; the others wait."""
        known = np.zeros(rows.n_rows, dtype=np.bool_) if rows.y is None else has_label(rows.y)
        unknown = np.flatnonzero(~known)
        if rows.ids is None or not unknown.size:
            return (rows.only(np.flatnonzero(known)) if known.any() else None), int(unknown.size)
        labels = np.full(rows.n_rows, None, dtype=object)
        if rows.y is not None:
            labels[known] = _plain(rows.y[known])
        records = rows.records(range(rows.n_rows))
        for place in unknown.tolist():
            name = str(rows.ids[place])
            if name in self.labels:
                labels[place] = _pop(self.labels, name)
            else:
                self.rows[name] = [*self.rows.get(name, ()), records[place]]
        places = np.flatnonzero([label is not None for label in labels])
        return (rows._replace(y=labels).only(places) if places.size else None), 0

    def match(self, y: Any, ids: Any) -> ArrivingRows | None:
        """Return the rows that labels belong to: each label goes to the row of its id that has waited longest."""
        labels, names = as_labels(_in_list(y)), read_ids(ids)
        if labels.shape != names.shape:
            raise ValueError(
                f"Labels that come later need one id each; got {labels.shape[0]} labels and {names.shape[0]} ids."
            )
        known = has_label(labels)
        found: list[tuple[str, Any, list[Any]]] = []
        for name, label in zip(names[known].tolist(), _plain(labels[known]), strict=True):
            if name in self.rows:
                found.append((name, label, _pop(self.rows, name)))
            else:
                self.labels[name] = [*self.labels.get(name, ()), label]
        if not found:
            return None
        answers, baseline, weights, *columns = (
            _objects(part) for part in zip(*(row for *_, row in found), strict=True)
        )
        return ArrivingRows(
            answers,
            _objects([label for _, label, _ in found]),
            dict(zip(self.columns, columns, strict=True)),
            None if baseline[0] is None else baseline,
            None if weights[0] is None else weights.astype(np.float64),
            np.array([name for name, *_ in found]),
        )


def read_ids(ids: Any) -> AnyArray:
    """Return ids as texts; 7 and "7" are one."""
    values = np.asarray(_in_list(ids), dtype=object)
    if values.ndim != 1 or any(map(is_missing, values.tolist())):
        what = f"shape {values.shape}" if values.ndim != 1 else "a missing one"
        raise ValueError(f"ids must name each row, in one list; got {what}. Leave ids out where rows have none.")
    return np.array([text_of(value) for value in values.tolist()], dtype=np.str_)


def has_label(y: AnyArray) -> BoolArray:
    """Return which rows have a label."""
    if y.dtype.kind in "iub":
        return np.ones(y.shape, dtype=np.bool_)
    return ~np.isnan(y) if y.dtype.kind == "f" else np.array([not is_missing(one) for one in y.tolist()])


def _in_list(values: Any) -> Any:
    """Return a single value as a list of one."""
    return [values] if np.ndim(values) == 0 else values


def _check_rows(answers: AnyArray, name: str) -> int:
    if answers.ndim != 1 or not answers.size:
        raise ValueError(f"{name} must be the decisions about one row or more, in one list; got shape {answers.shape}.")
    return int(answers.size)


def _plain(values: AnyArray) -> list[Any]:
    """Return values as JSON has them, those that are missing as None; times and the like as texts."""
    if values.dtype.kind in "mM":
        return [None if np.isnat(value) else text_of(value) for value in values]
    return [None if is_missing(value) else _as_plain(value) for value in values.tolist()]


def _as_plain(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if isinstance(plain, (str, bool, int, float)) else text_of(plain)


def _objects(values: Sequence[Any]) -> AnyArray:
    array = np.empty(len(values), dtype=object)
    array[:] = list(values)
    return array


def _pop(queues: dict[str, Sequence[Any]], name: str) -> Any:
    """Return the first entry of a queue, which goes with its last one."""
    first, *others = queues[name]
    if others:
        queues[name] = others
    else:
        del queues[name]
    return first
