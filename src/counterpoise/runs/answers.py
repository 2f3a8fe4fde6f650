"""Answers that stand in a table, whoever gave them: audited, and measured for a report of one page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.checks import check_confidence, check_positive
from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.auditing.audit import Audit
from counterpoise.goals import Goal, as_goals
from counterpoise.goals.classes import check_defer_label, reads_as, where_equal
from counterpoise.mixtures.options import Deferral
from counterpoise.runs.columns import Columns, check_classes, groups_of, labels_of, weights_of
from counterpoise.runs.data import Data, Part, positive_of
from counterpoise.runs.errors import DataError, check_columns, listed, oddest
from counterpoise.runs.judging import Judge
from counterpoise.runs.measuring import Measured, measure_answers
from counterpoise.runs.quantities import TEST, TRAIN
from counterpoise.runs.reading import column_names, read_usable
from counterpoise.runs.settings import RunSettings


class Asked(NamedTuple):
    """Which columns of a table play which part, and what is asked of the answers."""

    target: str
    goals: tuple[Goal, ...]
    groups: tuple[str, ...] = ()
    baseline: str | None = None
    weights: str | None = None
    largest_weight: float | None = None
    positive: Any = None
    confidence: float | None = None
    deferral: Deferral | None = None  # what deferring a row costs, and what is then said of it

    @property
    def columns(self) -> dict[str, list[str]]:
        """Return the columns named, by what names them."""
        single = {"target": self.target, "baseline": self.baseline, "weights": self.weights}
        return {"groups": list(self.groups)} | {key: [name] for key, name in single.items() if name is not None}


class Answers(NamedTuple):
    """An audit of answers, and every number about them."""

    audit: Audit
    measured: Measured
    settings: dict[str, Any]
    positive: Any  # the class that goals call so; None where there is none


class LabelledTable(NamedTuple):
    """A table with labels, the classes there are, and which is the positive one."""

    path: Path
    frame: Any
    labels: AnyArray
    baseline: AnyArray | None
    classes: AnyArray
    positive: Any

    def part(self, asked: Asked) -> Part:
        """Return the rows as they are measured; goals may speak of every column that holds numbers or texts."""
        groups, limit = groups_of(self.frame, asked.groups, self.path), asked.largest_weight
        if asked.weights is None:
            return Part(self.frame, self.labels, groups, None, self.baseline)
        weights = weights_of(self.frame, asked.weights, self.path, limit)
        return Part(self.frame, self.labels, groups, weights, self.baseline, limit)


def read_table(path: Path, asked: Asked, others: dict[str, list[str]] | None = None) -> LabelledTable:
    """Read a labelled table, after checking that it has all columns that are named."""
    if asked.largest_weight is not None:
        check_positive(asked.largest_weight, "largest_weight")
        if asked.weights is None:
            raise ValueError(f"--largest-weight is for weighted rows; got {asked.largest_weight:g} and no --weights.")
    known = column_names(path)
    for key, names in (asked.columns | (others or {})).items():
        check_columns(names, known, path, f"--{key}: ")
    compared = [name for names in (asked.columns | (others or {})).values() for name in names]
    compared += [name for goal in asked.goals for name in goal.compared_columns]
    frame, refused = read_usable(path, known, values=frozenset(compared))
    wrong = [name for names in (asked.columns | (others or {})).values() for name in names if name in refused]
    if wrong:
        raise DataError(f"Column {wrong[0]!r} of {path} must hold numbers or texts; it holds dates, lists or the like.")
    labels = labels_of(frame, asked.target, path)
    baseline = None if asked.baseline is None else labels_of(frame, asked.baseline, path)
    classes = check_classes(labels, None, asked.target, path)
    foreign = set() if baseline is None else set(baseline.tolist()) - set(classes.tolist())
    if foreign:
        raise DataError(
            f"The answers in column {asked.baseline!r} of {path} must be classes of column {asked.target!r}, "
            f"{listed(classes.tolist(), most=10)}; got {min(foreign, key=str)!r}."
        )
    return LabelledTable(path, frame, labels, baseline, classes, _positive(classes, asked, path))


def _positive(classes: AnyArray, asked: Asked, path: Path) -> Any:
    """Return the positive class; the command line tells numbers and texts apart as little as a CSV file."""
    if asked.positive is None:
        return positive_of(classes, None)
    named = {str(label): label for label in classes.tolist()}
    if str(asked.positive) not in named:
        raise DataError(
            f"--positive must be a class of column {asked.target!r} of {path}: {listed(named, most=10)}; got "
            f"{str(asked.positive)!r}."
        )
    return named[str(asked.positive)]


def audit_table(
    path: str | Path,
    *,
    target: str,
    prediction: str,
    goals: Any,
    groups: tuple[str, ...] = (),
    baseline: str | None = None,
    weights: str | None = None,
    largest_weight: float | None = None,
    positive: Any = None,
    confidence: float | None = None,
    defer_label: str | None = None,
) -> Answers:
    """Audit answers that stand in a column of a table: no run and no model is needed.

    Parameters
    ----------
    path : path
        A CSV or Parquet file of rows that whoever gave the answers neither fitted nor chose on.
    target, prediction : str
        The columns with what is true and with what was said.
    goals : goals or their texts
        They speak of these rows as ``train``.
    groups : tuple of str
        Columns by which the report tells groups apart; goals may speak of any column.
    baseline : str, optional
        The column with the answers of another model, for churn, wins and losses.
    weights, largest_weight : optional
        The column of sample weights, and the most that a row of the population can weigh.
    positive : label, optional
        The class that goals call positive; by default the second of two.
    confidence : float in (0, 1), optional
        For goals that carry none; default 0.95.
    defer_label : str, optional
        What was said of rows that a person decides about, which are neither right nor wrong.

    Returns
    -------
    Answers
        ``audit``, and what a report needs.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from counterpoise.datasets import loans
    >>> from counterpoise.runs.answers import audit_table
    >>> goals = ["recall(train) >= 0.5", "false_positive_rate(train, sex=F) <= 0.1"]
    >>> asked = {"target": "default", "prediction": "last_year", "positive": "yes", "goals": goals}
    >>> with tempfile.TemporaryDirectory() as place:
    ...     loans(2000, random_state=0)[0].to_csv(Path(place) / "loans.csv", index=False)
    ...     found = audit_table(Path(place) / "loans.csv", **asked)
    >>> [(str(row.goal.left), row.verdict) for row in found.audit]
    [('recall(train)', 'holds'), ('false_positive_rate(train, sex=F)', 'fails')]
    """
    deferral = None if defer_label is None else Deferral(0.0, defer_label)  # at no loss: nobody chose it here
    asked = Asked(target, checked(goals), groups, baseline, weights, largest_weight, positive, confidence, deferral)
    table = read_table(Path(path), asked, {"prediction": [prediction]})
    said = _as_answers(labels_of(table.frame, prediction, table.path), table.classes, deferral)
    words = {"method": f"answers that stand in the column {prediction}", "source": table.path.name}
    return judged(table, said, asked, TEST, words)


def _as_answers(said: AnyArray, classes: AnyArray, deferral: Deferral | None) -> AnyArray:
    """Return answers as classes are written: a column of numbers is one of texts where some rows are deferred."""
    if deferral is None:
        return said
    known = {reads_as(label): label for label in (*classes.tolist(), deferral.label)}
    found = np.empty(said.size, dtype=object)
    found[:] = [known.get(reads_as(label), label) for label in said.tolist()]
    return found


def checked(goals: Any) -> tuple[Goal, ...]:
    """Return goals after checking that there are some and that they speak of the rows of the table only."""
    listed_goals = tuple(as_goals(goals))
    if not listed_goals:
        raise ValueError('Name at least one goal, as in --goal "recall(train) >= 0.8"; got none.')
    for goal in listed_goals:
        other = next((name for name in goal.datasets if name != TRAIN), None)
        if other is not None:
            raise ValueError(f"Goals on a table speak of its rows, which are called 'train'; got {other!r} in: {goal}.")
    return listed_goals


def judged(
    table: LabelledTable,
    said: AnyArray,
    asked: Asked,
    split: str,
    words: dict[str, Any],
    shares: Sequence[float] = (),
    chances: FloatArray | None = None,
) -> Answers:
    """Return an audit of answers, and every number about them, as of rows of a split.

    Where answers were drawn by rules, ``shares`` are those of the rules and ``chances`` tell how likely each answer was
    in each row: the numbers are then expectations over the draws.
    """
    left = np.zeros(said.size, dtype=np.bool_)
    if asked.deferral is not None:
        check_defer_label(asked.deferral.label, table.classes.tolist())
        left = where_equal(said, asked.deferral.label)
    classes = table.classes.tolist()
    foreign = set(said[~left].tolist()) - set(classes)
    if foreign:
        raise DataError(
            f"The answers in {table.path} must be classes of column {asked.target!r}, "
            f"{listed(classes, most=10)}; got {oddest(foreign, classes)!r}. If it stands for rows that "
            "a person decides about, name it with --defer-label."
        )
    settings = _settings(table, asked)
    parts = {split: table.part(asked)}
    data = Data(table.path.stem, Columns([], []), table.classes, table.positive, parts, {}, {})
    judge = Judge(settings, data, _Said(said, asked.deferral, chances), asked.goals)
    try:
        audit = judge.audit(split, asked.goals)
    except ValueError as error:
        raise DataError(f"The goals cannot be asked of the rows of {table.path}: {error}") from error
    measured, told = measure_answers(judge, split, words, shares), settings.model_dump(exclude_defaults=True)
    positive = None if table.positive is None else np.asarray(table.positive).item()
    return Answers(audit, measured, told, positive)


def _settings(table: LabelledTable, asked: Asked) -> RunSettings:
    """Return what a goals file would say of the table."""
    roles = {"groups": list(asked.groups), "baseline": asked.baseline, "weights": asked.weights}
    positive = None if table.positive is None else np.asarray(table.positive).item()
    names = {"files": [table.path.name], "target": asked.target, "positive": positive}
    words = {"data": names | roles | {"largest_weight": asked.largest_weight}, "alpha": 1.0}
    level = {} if asked.confidence is None else {"confidence": check_confidence(asked.confidence)}
    goals = [str(goal.with_confidence(None)) for goal in asked.goals]
    return RunSettings.model_validate(words | level | {"goals": goals})


class _Said(NamedTuple):
    """Answers in the place of a model."""

    answers: AnyArray
    deferral: Deferral | None
    chances: FloatArray | None = None  # of each class in each row, and of deferral, where answers were drawn

    def predict(self, X: Any) -> AnyArray:  # noqa: ARG002 - whatever the rows are, these are their answers
        """Return the answers."""
        return self.answers
