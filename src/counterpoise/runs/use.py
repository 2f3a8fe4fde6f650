"""Using a finished run: predict, explain and audit.

Ids are compared by their values: a CSV file has no types, a Parquet file has many. So that a person gets the same
decision from either, a text that reads as a plain number, a date or a time is one. Other texts, such as ``007``, stay
texts.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from counterpoise._base.checks import check_positive
from counterpoise._base.text import did_you_mean
from counterpoise._base.types import AnyArray
from counterpoise.auditing.audit import add_confidence
from counterpoise.goals import Goal, as_goals
from counterpoise.goals.tables import check_largest_value
from counterpoise.rules.draw_messages import BadId
from counterpoise.rules.draws import draws_of
from counterpoise.rules.explaining import Explanation
from counterpoise.rules.reasons import PrincipalReasons, principal_reasons
from counterpoise.rules.scores.table import BASELINE
from counterpoise.runs.data import Data, RunRows, extra_parts, load_data, positive_of, read_part, with_baseline_model
from counterpoise.runs.decisions import decision_inputs, final_estimator, has_rules, mixes, seen_by_last, some_rows
from counterpoise.runs.errors import (
    DataError,
    RunFolderError,
    as_data_error,
    check_columns,
    listed,
    refuse_foreign,
)
from counterpoise.runs.evaluate import Evaluation, split_result
from counterpoise.runs.folder import Run, fingerprint, read_json, write_frame
from counterpoise.runs.goals_file import goals_of
from counterpoise.runs.places import SETTINGS, check_place
from counterpoise.runs.reading import column_names, read_column
from counterpoise.runs.result import RunResult
from counterpoise.runs.results import TEST, TRAIN
from counterpoise.runs.settings import DataSettings, RunSettings, data_files, written_as
from counterpoise.runs.summary import RunAudit
from counterpoise.runs.tables import group_columns

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_FLOAT = re.compile(r"-?[0-9](\.[0-9]+)?e[+-][0-9]{2,3}")  # as floats are written that are large or small
_DAY, _CLOCK = r"[0-9]{4}-[0-9]{2}-[0-9]{2}", r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
_MOMENT = re.compile(rf"{_DAY}([ T]{_CLOCK}(Z|[+-][0-9]{{2}}:?[0-9]{{2}})?)?")
_TIME = re.compile(_CLOCK)
_TRUTHS = {"True": True, "true": True, "False": False, "false": False}
_LONGEST = 3000  # characters of what may be a number


def read_ids(path: Path, name: str) -> tuple[Any, list[Any]]:
    """Return a column of ids: as they are in the file, to be written again, and the values that identify people."""
    check_columns([name], column_names(path), path, "ids: ")
    column = read_column(path, name)
    if pa.types.is_float32(column.type) or pa.types.is_float16(column.type):  # as written: 0.1, not 0.10000000149
        numbers = column.to_numpy()
        return numbers, [float(str(number)) for number in numbers]
    values = column.to_pylist()
    if isinstance(column.type, pa.BaseExtensionType):  # such as UUIDs, which pandas does not know
        return [str(value) for value in values], values
    return column.to_pandas(types_mapper=pd.ArrowDtype), [value_of(value) for value in values]


def value_of(key: Any) -> Any:
    """Return an id by its value: ``12`` in a CSV file is the number that a Parquet file holds, ``012`` is a text.

    Examples
    --------
    >>> from counterpoise.runs.use import value_of
    >>> value_of("12"), value_of("012"), value_of("2.50"), value_of("2026-11-03")
    (12, '012', Decimal('2.50'), Timestamp('2026-11-03 00:00:00'))
    """
    with suppress(UnicodeDecodeError):
        key = key.decode() if isinstance(key, bytes) else key  # older files keep texts as bytes
    if not isinstance(key, str) or len(key) > _LONGEST:
        return key
    if _NUMBER.fullmatch(key):
        return Decimal(key) if "." in key else int(key)
    if _FLOAT.fullmatch(key):
        return float(key)
    with suppress(ValueError):  # such as a thirteenth month
        if _TIME.fullmatch(key):
            return time.fromisoformat(key)
        if _MOMENT.fullmatch(key):
            return pd.Timestamp(key)
    return _TRUTHS.get(key, key)


_FIRST_ROWS = 10  # that are explained, where none are named
_DIGITS = 12  # decimals of a probability in a file, beside 1: the rest is rounding, as in 0.9999999999999996


def predict_run(
    run: Run,
    data_path: str | Path,
    output_path: str | Path,
    *,
    probabilities: bool = False,
    ids: str | None = None,
    top: int | None = None,
) -> int:
    """Predict the rows of a file, write one row for each, and return how many there are.

    Parameters
    ----------
    run : Run
    data_path : path
        A CSV or Parquet file with the features of the run.
    output_path : path
        Parquet by its ending, else CSV.
    probabilities : bool, default=False
        Add a column for each class: its probability by the model that decides. Where predictions of models are mixed,
        the probability that a draw gives it.
    ids : str, optional
        A column that identifies people: the same person gets the same decision, whatever the other columns hold. It is
        written too. With ``top`` it breaks ties of scores.
    top : int, optional
        Decide positive for exactly so many rows of the file, as ``GoalClassifier.predict`` does.

    Returns
    -------
    int
    """
    check_place(Path(output_path), read=Path(data_path))
    frame = predictions_of(run, data_path, probabilities=probabilities, ids=ids, top=top)
    write_frame(frame, Path(output_path))
    return len(frame)


def predictions_of(
    run: Run, data_path: str | Path, *, probabilities: bool = False, ids: str | None = None, top: int | None = None
) -> Any:
    """Return the predictions of the rows of a file as a data frame, as ``predict_run`` writes them.

    Parameters
    ----------
    run, data_path, probabilities, ids, top
        As for ``predict_run``.

    Returns
    -------
    data frame
        A row for each of the file.
    """
    path, model = Path(data_path), run.waiting_model()
    part = read_part([path], run.columns, run.settings, labelled=False)
    written: dict[str, Any] = {}
    by: dict[str, Any] = {}
    if top is not None:
        if not mixes(model):
            raise ValueError(
                f"top is for runs that decide by one rule of scores; this run's method is {run.settings.method.name!r}."
            )
        by["top"] = top
    if ids is not None:
        if draws_of(final_estimator(model)) is None:
            raise ValueError("ids are for randomized classifiers; this run's model decides without draws.")
        with written_as(run.settings.data.written):
            written[ids], by["ids"] = read_ids(path, ids)
    inputs = rule_inputs(run, model, part, path)
    try:
        columns: dict[str, Any] = {"prediction": model.predict(part.X, **by, **inputs)}
    except BadId as error:
        raise DataError(f"Column {ids!r} of {path} cannot hold ids: {error}") from error
    if probabilities:
        if not hasattr(model, "predict_proba"):
            raise ValueError(f"The method {run.settings.method.name!r} does not predict probabilities.")
        shares = np.round(model.predict_proba(part.X), _DIGITS)
        columns |= {f"probability {label}": shares[:, place] for place, label in enumerate(model.classes_.tolist())}
    if ids in columns:
        raise DataError(f"The id column of {path} must not be named {ids!r}, as predictions are. Rename it first.")
    return pd.DataFrame(written | columns)


def explain_run(
    run: Run, data_path: str | Path, *, rows: Sequence[int] | str | None = None, ids: str | None = None
) -> dict[int, Explanation]:
    """Explain the decisions about rows of a file, by their number from 1.

    Parameters
    ----------
    run : Run
    data_path : path
        A CSV or Parquet file with the columns of the run.
    rows : sequence of int or "all", optional
        Numbers of rows, the first is 1. Default: the first ten.
    ids : str, optional
        A column that identifies people, as for ``predict_run``.

    Returns
    -------
    dict from int to Explanation
    """
    path, model = Path(data_path), run.waiting_model()
    part = read_part([path], run.columns, run.settings, labelled=False)
    decider = final_estimator(model)
    if not hasattr(decider, "explain"):
        raise ValueError(f"The method {run.settings.method.name!r} has no rule to explain.")
    n_usual = len(part) if rows == "all" else min(len(part), _FIRST_ROWS)
    wanted = list(range(1, n_usual + 1)) if rows is None or rows == "all" else [int(row) for row in rows]
    for row in wanted:
        if not 1 <= row <= len(part):
            raise ValueError(f"row must be a number from 1 to {len(part)}, the rows of {path}; got {row}.")
    inputs = rule_inputs(run, model, part, path)
    if ids is not None:
        with written_as(run.settings.data.written):
            inputs["ids"] = read_ids(path, ids)[1]
    places = np.array(wanted, dtype=np.int64) - 1
    chosen_inputs = {name: some_rows(value, places) for name, value in inputs.items()}
    explanations = decider.explain(seen_by_last(model, part.X.iloc[places]), **chosen_inputs)
    return dict(zip(wanted, explanations, strict=True))


def reasons_of_run(
    run: Run, data_path: str | Path, *, groups: Sequence[str] = (), adverse: str | None = None, ids: str | None = None
) -> PrincipalReasons:
    """Return the principal reasons of the adverse decisions about all rows of a file.

    Parameters
    ----------
    run : Run
    data_path : path
        A CSV or Parquet file with the columns of the run.
    groups : sequence of str
        Columns by whose values together the reasons are also listed. Default: by the group whose threshold applied.
    adverse : str, optional
        The decision that needs reasons. Default: the negative one.
    ids : str, optional
        A column that identifies people, as for ``predict_run``.

    Returns
    -------
    PrincipalReasons
    """
    path = Path(data_path)
    with written_as(run.settings.data.written):
        check_columns(groups, column_names(path), path, "--groups: ")
        columns = group_columns(path, tuple(dict.fromkeys(groups)))
    explanations = list(explain_run(run, path, rows="all", ids=ids).values())
    decisions = {str(one.decision): one.decision for one in explanations}
    named = None if adverse is None else decisions.get(adverse, adverse)
    return principal_reasons(explanations, columns or None, adverse=named)


def rule_inputs(run: Run, model: Any, part: RunRows, path: Path) -> dict[str, Any]:
    """Return what the rules of a model use; the baseline by the deployed model where the run has its file."""
    if not has_rules(model):
        return {}
    data = Data(path.stem, run.columns, np.asarray(final_estimator(model).classes_), None, {TEST: part}, {}, {})
    if BASELINE in final_estimator(model).groups_.by:
        part = with_baseline_model(data, run.settings, run.sources).splits[TEST]
    _check_rule_columns(run, model, part, path)
    return decision_inputs(part)


def _check_rule_columns(run: Run, model: Any, part: RunRows, path: Path) -> None:
    """Refuse rows that lack a column which the rules of a model use."""
    known = {*part.groups, *part.X.columns, *(() if part.baseline is None else (BASELINE,))}
    for name in final_estimator(model).groups_.by if has_rules(model) else ():
        if name not in known:
            column = run.settings.data.baseline if name == BASELINE else name
            raise DataError(f"{path} must have the column {column!r}, which the rules of this run use.")


def audit_run(
    run: Run,
    data_path: str | Path | None = None,
    *,
    confidence: float | None = None,
    goals: Any = None,
    largest_weight: float | None = None,
    largest_value: float | dict[str, float] | None = None,
    drawn: bool = False,
) -> RunAudit:
    """Audit the run's model on rows not used to fit or choose it: its own test rows, or those of a file.

    Where decisions are drawn the rates are expectations over the draws, the same whatever the key of the run. Nothing
    is written.

    Parameters
    ----------
    run : Run
        From ``open_run`` or ``fit_run``.
    data_path : path, optional
        A CSV or Parquet file with the columns of the run and its target. Default: the test rows of the run's own data
        files.
    confidence : float in (0, 1), optional
        For goals that carry none. Default: that of the run.
    goals : goals or their texts, optional
        Default: those of the run.
    largest_weight : float, optional
        The most that a row of the population can weigh. Default: what the goals file says.
    largest_value : float or dict from columns to floats, optional
        The largest amount that a row of the population can have. Default: the same.
    drawn : bool, default=False
        Audit the drawn decisions instead, as the run's key draws them for these rows.

    Returns
    -------
    RunAudit
        Error, loss of the tail and the audit of the goals.
    """
    audited_goals = goals_of(run.settings) if goals is None else known_goals(goals, run.settings)
    if confidence is not None:
        audited_goals = tuple(add_confidence(audited_goals, confidence))
    limited = _set_limits(run, largest_weight, largest_value)
    if data_path is not None:
        evaluation, name, rows = _evaluation(limited, Path(data_path)), Path(data_path).name, f"rows of {data_path}"
    else:
        data, name, rows = own_data(run, limited.settings), TEST, "test rows"
        if TEST not in data.splits:
            raise DataError("The run has no test rows. Pass a data file.")
        evaluation = Evaluation.of(run.settings, data, run.waiting_model(), audited_goals)
    with as_data_error(f"The goals cannot be measured on the {rows}: "):
        audit = evaluation.audit(TEST, audited_goals, drawn=drawn)
    assert audit is not None  # noqa: S101 - the model decides about all rows
    settings = run.settings.model_dump(mode="json")
    result = RunResult(settings=settings, splits={TEST: split_result(evaluation, TEST)})
    return RunAudit(result, name, audit)


def _set_limits(run: Run, largest_weight: float | None, largest_value: float | dict[str, float] | None) -> Run:
    """Return the run with other limits on the weights and amounts of its rows, where they are given."""
    data, limits = run.settings.data, dict[str, Any]()
    if largest_value is not None:
        limits["largest_value"] = check_largest_value(largest_value)
    if largest_weight is not None:
        if data.weights is None:
            raise ValueError(
                f"largest_weight is for weighted rows; got {largest_weight:g}, and data.weights names no column."
            )
        limits["largest_weight"] = check_positive(largest_weight, "largest_weight")
    return run._replace(settings=run.settings.model_copy(update={"data": data.model_copy(update=limits)}))


def known_goals(goals: Any, settings: RunSettings) -> tuple[Goal, ...]:
    """Return goals after checking that the run has the datasets that they refer to."""
    checked_goals, known = tuple(as_goals(goals)), (TRAIN, *settings.datasets)
    for goal in checked_goals:
        for name in goal.datasets:
            if name not in known:
                hint = did_you_mean(name, known)
                raise ValueError(f"Unknown dataset {name!r} in the goal {goal}.{hint} Known: {listed(known)}.")
    return checked_goals


def check_own_data(run: Run) -> None:
    """Check that the data files of a run are those that it was fitted on."""
    words = read_json(run.folder / SETTINGS)
    files = data_files(run.settings, run.sources)
    if fingerprint(run.settings, files, origin=words.get("origin", "")).run != words["fingerprint"]:
        raise RunFolderError(f"The data files of the run in {run.folder} have changed since it was fitted.")


def own_data(run: Run, settings: RunSettings | None = None) -> Data:
    """Return the data that the run was fitted on, after checking that its files are the same; as others read them."""
    check_own_data(run)
    data = load_data(settings or run.settings, run.sources)
    sizes = {name: len(part) for name, part in {**data.splits, **data.extra}.items()}
    data.pool_outputs.update((name, one) for name, one in run.pool_outputs().items() if len(one) == sizes.get(name))
    return data


def _evaluation(run: Run, path: Path) -> Evaluation:
    """Return the run's model with the rows of a file."""
    model, data_settings = run.waiting_model(), run.settings.data
    part = read_part([path], run.columns, run.settings, largest_weight=data_settings.largest_weight)
    classes = np.asarray(final_estimator(model).classes_)
    check_part(part, data_settings, classes, path)
    check_known(part.labels, classes.tolist(), data_settings.target, path)
    positive = positive_of(classes, data_settings.positive)
    extra = extra_parts(run.settings, run.columns, run.sources)
    data = Data(path.stem, run.columns, classes, positive, {TEST: part}, extra, {})
    data = with_baseline_model(data, run.settings, run.sources)
    _check_rule_columns(run, model, data.splits[TEST], path)
    return Evaluation.of(run.settings, data, model, goals_of(run.settings))


def check_part(part: RunRows, data: DataSettings, classes: AnyArray, path: Path) -> None:
    """Check that later rows of a run have weights where its rows have them, and a baseline of its classes."""
    if data.weights is not None and part.weights is None:
        raise DataError(
            f"{path} has no column {data.weights!r}, which holds the weights of its rows (data.weights). "
            "Without it other rates would be measured. Add it, with 1 in every row if all weigh the same."
        )
    if part.baseline is not None:
        check_known(part.baseline, classes.tolist(), str(data.baseline), path)


def check_known(labels: AnyArray, known: Sequence[Any], name: str, path: Path) -> None:
    """Check that the labels in a column are among those that are known."""
    refuse_foreign(labels.tolist(), known, f"Column {name!r} of {path} must hold the classes", got="it holds")
