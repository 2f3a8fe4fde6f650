"""Watching the goals of a run over time: batches of decided rows, labels that come late, and a log of all of them.

The run folder keeps three files for it. All that is known is in ``monitor.json``, which is written beside its place and
renamed: a batch is counted once that file has its new name, and not before. The log ``monitor.jsonl``, one line a
batch, and the page ``monitor.html`` are functions of it. Where a kill or a full disk left them behind, the next call
writes them again.
"""

import hashlib
import json
from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.shapes import ANY, LABEL, TEXT, OrNone, check_shape, number, one_of, whole
from counterpoise._base.text import short
from counterpoise._base.types import AnyArray
from counterpoise.auditing.audit import FAILS, HOLDS, UNDECIDED
from counterpoise.auditing.monitoring import Monitor
from counterpoise.auditing.verdicts import Verdicts
from counterpoise.goals.classes import reads_as
from counterpoise.persist import write_atomically
from counterpoise.rules.options import STICKY, Deferral, kind_of_decision
from counterpoise.runs.data import Data, RunRows, labels_of, positive_of, read_part, with_baseline_model
from counterpoise.runs.decisions import deferral_of, final_estimator, is_drawn, mixes
from counterpoise.runs.errors import DataError, RunFolderError, as_data_error, check_columns
from counterpoise.runs.folder import Run, alone_in, hash_of, read_json, writing
from counterpoise.runs.goals_file import goals_of
from counterpoise.runs.places import MONITOR, MONITOR_LOG, SETTINGS
from counterpoise.runs.reading import column_names, read_frame
from counterpoise.runs.results import TEST
from counterpoise.runs.settings import RunColumns, written_as
from counterpoise.runs.tables import id_texts
from counterpoise.runs.use import check_known, check_part, read_ids, rule_inputs

PREDICTION = "prediction"  # the column that ``predict`` writes
_WAIT = 60.0  # seconds for another batch to be counted
_LONGEST = 200  # characters of the name of a batch
_MOST_STATE = 1 << 30  # bytes: rows that wait for their labels take some hundred each


class BatchLine(NamedTuple):
    """A line of the log: a batch, and how the goals stood once it was counted."""

    batch: str
    sha256: str  # of its file
    time: str | float
    rows: int  # decided rows of the batch
    labels: int  # labels of the batch, of its own rows or of earlier ones
    n_rows: int  # since the start, as the next two
    n_waiting: int  # rows whose label is not known yet
    n_early: int  # labels whose row is not known yet
    goals: list[dict[str, Any]]  # as ``GoalVerdict.as_record`` has them
    decisions: str = ""  # who made them
    n_others: int | None = 0  # decisions that the rule of the run does not make; None where that is not known


_MOMENT = OrNone({"time": LABEL, "update": whole(1), "n_rows": whole()})
_STANDING = {
    "goal": TEXT,
    "verdict": one_of(HOLDS, FAILS, UNDECIDED),
    "bound": number(),
    "worst": TEXT,
    "note": TEXT,
    **dict.fromkeys(("estimate", "low", "high"), OrNone(number())),
    **dict.fromkeys(("n_rows", "n_waiting"), whole()),
    **dict.fromkeys(("failed_at", "began", "changed_at"), _MOMENT),
}
_LINE = {
    **dict.fromkeys(("batch", "sha256", "decisions"), TEXT),
    **dict.fromkeys(("rows", "labels", "n_rows", "n_waiting", "n_early"), whole()),
    "time": LABEL,
    "n_others": OrNone(whole()),
}
_WORDS = {"run": TEXT, "lines": ANY, "state": ANY, "sha256": TEXT}


class MonitorSummary(NamedTuple):
    """How the goals of a run stand after all batches; ``print`` shows it."""

    run: str
    lines: tuple[BatchLine, ...]
    verdicts: Verdicts
    batch: str = ""  # that was given now; nothing where none was
    is_new: bool = False  # False: the batch had been counted before
    notes: tuple[str, ...] = ()

    @property
    def fails(self) -> bool:
        """Return whether some goal fails."""
        return bool(self.verdicts.fails)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        last = self.lines[-1]._asdict() if self.lines else {}
        counts = {name: last.get(name, 0) for name in ("n_rows", "n_waiting", "n_early")}
        here: dict[str, Any] = {"batch": self.batch or None, "is_new": self.is_new, "batches": len(self.lines)}
        goals = self.verdicts.as_records()
        return here | counts | {"fails": self.fails, "goals": goals, "notes": list(self.notes)}

    def __str__(self) -> str:
        heads = []
        if self.batch and self.is_new:
            heads.append(f"batch {self.batch}: {_counted(self.lines[-1])}")
        elif self.batch:
            heads.append(f"batch {self.batch} was counted before; nothing is counted again")
        if not self.lines:
            return "\n".join([*heads, "no batch has been counted yet"])
        last = self.lines[-1]
        since = f"since the start: {_many(len(self.lines), 'batch', 'es')}, {_many(last.n_rows, 'row')}"
        since += f", {_many(last.n_waiting, 'label')} to come" if last.n_waiting else ""
        since += f", {_many(last.n_early, 'label')} whose row has not come" if last.n_early else ""
        return "\n".join([*heads, since, "", str(self.verdicts), *self.notes])


def _counted(line: BatchLine) -> str:
    if not line.rows:
        return f"{_many(line.labels, 'label')} of rows of other batches"
    others = f", {line.n_others:,} of which the rule of the run does not make" if line.n_others else ""
    return f"{_many(line.rows, 'row')}, {_many(line.labels, 'label')}; decisions: {line.decisions}{others}"


def _many(count: int, noun: str, ending: str = "s") -> str:
    return f"{count:,} {noun}{'' if count == 1 else ending}"


class BatchContent(NamedTuple):
    """What a monitor takes of a file: decided rows, or labels that came late."""

    answers: AnyArray | None
    labels: AnyArray | None  # None in rows whose label is not known
    people: list[str] | None
    part: RunRows | None = None
    decisions: str = ""  # who made them
    n_others: int | None = 0


def monitor_run(
    run: Run,
    data_path: str | Path | None = None,
    *,
    name: str | None = None,
    prediction: str | None = None,
    ids: str | None = None,
    time: str | float | None = None,
) -> MonitorSummary:
    """Count a batch of decided rows, or of labels that came late, and return how the goals of a run stand.

    Each batch is counted once, whatever stops the process, and however many processes count batches of one run.

    Parameters
    ----------
    run : Run
        Its goals are watched, and its model decides where a file holds no decisions.
    data_path : path, optional
        A CSV or Parquet file. Rows: the columns that the goals use, and decisions in the column ``prediction`` or the
        features of the run. The target may be missing in some rows or in all. Labels that came late: ids and the
        target, and no decisions or features. Default: nothing is counted.
    name : str, optional
        The name of the batch: one that was counted already changes nothing. Default: the name of the file.
    prediction : str, optional
        The column with the decisions. Default: ``"prediction"`` where there is one, else the run's model decides.
    ids : str, optional
        The column that identifies people: late labels find their rows by it, and rows of one person in a batch count as
        one. Default: ``data.ids`` of the goals file.
    time : str or float, optional
        When the rows were decided, such as ``"2026-11"``, for tables and figures. Default: the number of the batch.

    Returns
    -------
    MonitorSummary
        ``verdicts`` are those of ``Monitor``; ``lines`` has a line for each batch.

    Raises
    ------
    DataError
        If the file cannot be read or measured; nothing is counted.
    RunFolderError
        If another process writes to the run folder for a minute, or it cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from counterpoise.datasets import loans
    >>> from counterpoise.runs import fit_run, monitor_run
    >>> text = '''
    ... goals = ["recall >= 0.3"]
    ... data = { files = "loans.csv", target = "default", positive = "yes" }
    ... method = { models = [{ name = "logistic" }], parameters = { cv = 2 } }
    ... '''
    >>> with tempfile.TemporaryDirectory() as place:
    ...     _ = (Path(place) / "goals.toml").write_text(text)
    ...     loans(300, random_state=0)[0].to_csv(Path(place) / "loans.csv", index=False)
    ...     loans(2000, random_state=1)[0].to_csv(Path(place) / "march.csv", index=False)
    ...     run = fit_run(Path(place) / "goals.toml")
    ...     first = monitor_run(run, Path(place) / "march.csv")
    ...     again = monitor_run(run, Path(place) / "march.csv")
    >>> first.verdicts[0].verdict, first.is_new, again.is_new, len(again.lines)
    ('holds', True, False, 1)
    """
    fresh, notes = _new_monitor(run)
    path = None if data_path is None else Path(data_path)
    batch = "" if path is None else _check_name(path.name if name is None else name)
    is_new = False
    with alone_in(run.folder, wait=_WAIT) as lock:
        lines, monitor = _read_state(run)
        monitor = monitor or fresh
        if path is not None:
            sha256 = hash_of(path)
            is_new = not _is_counted(lines, batch, sha256, path)
        if path is not None and is_new:
            twins = [line.batch for line in lines if line.sha256 == sha256]
            notes += tuple(f"{path} is the same file as batch {twin} was, and counts again" for twin in twins)
            counted = _read_batch(run, path, prediction, ids)
            with as_data_error(f"The goals cannot be measured on the rows of {path}: "):
                monitor = _counted_by(monitor, counted, time)
            lines = (*lines, _line_of(monitor, counted, batch, sha256, time))
            if not lock.is_there():
                raise RunFolderError(f"The run folder {run.folder} was removed or moved. Nothing is counted.")
            _write_state(run, lines, monitor)
        _write_log(run, lines)
    if monitor.n_unlabelled:
        lost = f"{_many(monitor.n_unlabelled, 'row')} came with neither a label nor an id"
        notes += (f"{lost}: goals that need labels never count them. Name the column of ids with --ids",)
    return MonitorSummary(run.folder.name, lines, monitor.verdicts, batch, is_new, notes)


def _is_counted(lines: Sequence[BatchLine], name: str, sha256: str, path: Path) -> bool:
    """Tell whether a batch was counted already; refuse other rows under its name."""
    before = next((line for line in lines if line.batch == name), None)
    if before is not None and before.sha256 != sha256:
        raise DataError(
            f"Batch {name!r} was counted already, and {path} holds other rows than it had. Nothing is counted. If "
            "these are new rows, give them another with --name."
        )
    return before is not None


def _new_monitor(run: Run) -> tuple[Monitor, tuple[str, ...]]:
    """Return a monitor that starts from a run: its goals, bounds, confidence and classes; and which goals it leaves."""
    model, data = run.waiting_model(), run.settings.data
    classes, deferral = np.asarray(final_estimator(model).classes_), deferral_of(model)
    options: dict[str, Any] = {"confidence": run.settings.audit_confidence, "classes": classes}
    options |= {"pos_label": positive_of(classes, data.positive), "largest_weight": data.largest_weight}
    options |= {"defer_label": None if deferral is None else deferral.label, "largest_value": data.largest_value}
    watched, notes = [], []
    for goal in goals_of(run.settings):
        try:
            Monitor([goal], **options)
        except ValueError as error:  # such as one on a total, or on other rows than those that come
            notes.append(f"not watched: {str(error).rstrip('.')}")
        else:
            watched.append(goal)
    if not watched:
        lack = "; ".join(notes) or "the run's goals file has none"
        raise ValueError(
            f"A monitor needs at least one goal, as in recall >= 0.8; {lack}. Make a run that has one, without "
            f'training: counterpoise fit --from {run.folder.name} --goal "recall >= 0.8" --output NEW.'
        )
    return Monitor(watched, **options), tuple(notes)


def _check_name(name: str) -> str:
    """Return the name of a batch, which tables and pages show, after checking it."""
    if not (0 < len(name) <= _LONGEST and name.isprintable()):
        raise ValueError(
            f"The name of a batch must have 1 to {_LONGEST} characters, all printable; got {short(repr(name), 60)}. "
            "Pass another with --name."
        )
    return name


def _read_batch(run: Run, path: Path, prediction: str | None, ids: str | None) -> BatchContent:
    """Read decided rows, or labels that came late, after checking that they are of the run's classes."""
    data, model = run.settings.data, run.waiting_model()
    classes = np.asarray(final_estimator(model).classes_)
    with written_as(data.written):
        known = column_names(path)
        for key, name in {"ids: ": ids, "prediction: ": prediction}.items():
            check_columns([] if name is None else [name], known, path, key)
        ids = data.ids if ids is None and data.ids in known else ids
        people = None if ids is None else id_texts(path, ids)
        labels = _read_labels(run, path, classes) if data.target in known else None
    prediction = PREDICTION if prediction is None and PREDICTION in known else prediction
    lacking = [name for name in run.columns.features if name not in known]
    if lacking and prediction is None:
        if labels is None or people is None:
            raise DataError(
                f"{path} must hold decisions, or the features by which the run decides: it has no column "
                f"{PREDICTION!r}, and no column {lacking[0]!r}. Name the column of decisions with --prediction. For "
                f"labels that came late it must hold {data.target!r} and ids, whose column --ids names."
            )
        used = [*run.columns.features, *(name for goal in goals_of(run.settings) for name in goal.compared_columns)]
        other = next((name for name in used if name in known and name not in (ids, data.target)), None)
        if other is not None:  # else decided rows whose decisions nobody named would count as late labels
            raise DataError(
                f"{path} must hold decisions, as it has column {other!r}, or labels that came late and nothing else "
                f"that goals or features use. Name the column of decisions with --prediction; for late labels leave "
                f"only {ids!r} and {data.target!r}."
            )
        is_known = [label is not None for label in labels.tolist()]
        return BatchContent(None, labels[is_known], list(compress(people, is_known)))
    columns = run.columns
    if prediction is not None:  # a category beside those features that are there
        numeric, categorical = ([name for name in names if name in known] for names in columns[:2])
        columns = RunColumns(numeric, [*categorical, prediction], [*columns.texts, prediction])
    part = read_part([path], columns, run.settings, labelled=False, largest_weight=data.largest_weight)
    check_part(part, data, classes, path)
    if not lacking:
        rows = Data(path.stem, columns, classes, None, {TEST: part}, {}, {})
        part = with_baseline_model(rows, run.settings, run.sources).splits[TEST]
    if prediction is None:
        by = rule_inputs(run, model, part, path)
        if ids is not None and mixes(model) and kind_of_decision(final_estimator(model).decision) == STICKY:
            with written_as(data.written):
                by["ids"] = read_ids(path, ids)[1]
        return BatchContent(np.asarray(model.predict(part.X, **by)), labels, people, part, "the rule of the run")
    answers = _decisions_in(part.X[prediction], prediction, classes, deferral_of(model), path)
    n_others = None if lacking or is_drawn(model) else _count_others(run, model, part, answers, path)
    return BatchContent(answers, labels, people, part, f"column {prediction}", n_others)


def _count_others(run: Run, model: Any, part: RunRows, answers: AnyArray, path: Path) -> int | None:
    """Return how many decisions the rule of the run does not make; None where it cannot decide about all rows."""
    try:
        own = np.asarray(model.predict(part.X, **rule_inputs(run, model, part, path)))
    except ValueError:  # such as a group without a threshold, which others have decided about
        return None
    return sum(bool(one != other) for one, other in zip(own.tolist(), answers.tolist(), strict=True))


def _read_labels(run: Run, path: Path, classes: AnyArray) -> AnyArray:
    """Return the label of each row, None where it is not known."""
    data = run.settings.data
    texts = [data.target] if data.target in run.columns.texts else []
    frame = read_frame(path, [data.target], missing=data.missing, texts=texts, values=[data.target])
    is_known = frame[data.target].notna().to_numpy()
    labels = np.full(len(frame), None, dtype=object)
    if is_known.any():
        labels[is_known] = labels_of(frame[is_known], data.target, path)
        check_known(labels[is_known], classes.tolist(), data.target, path)
    return labels


def _decisions_in(column: Any, name: str, classes: AnyArray, deferral: Deferral | None, path: Path) -> AnyArray:
    """Return the decisions in a column of texts as the classes that they stand for."""
    labels = classes.tolist() if deferral is None else [*classes.tolist(), deferral.label]
    known = {reads_as(label): label for label in labels}
    texts = labels_of({name: column}, name, path)
    decisions = np.empty(len(texts), dtype=object)
    decisions[:] = [known.get(reads_as(text), text) for text in texts.tolist()]
    check_known(decisions, labels, name, path)
    return decisions


def _counted_by(monitor: Monitor, batch: BatchContent, time: str | float | None) -> Monitor:
    """Return a monitor that has counted a batch."""
    part = batch.part
    columns: dict[str, Any] = {}
    if part is not None:
        columns["sensitive_features"] = {str(name): part.X[name].to_numpy() for name in part.X} | part.groups
        columns["sensitive_features"] |= part.amounts
        columns |= {"baseline": part.baseline, "sample_weight": part.weights}
    monitor.update(batch.answers, batch.labels, ids=batch.people, time=time, **columns)
    return monitor


def _line_of(monitor: Monitor, batch: BatchContent, name: str, sha256: str, time: str | float | None) -> BatchLine:
    return BatchLine(
        name,
        sha256,
        monitor.n_updates if time is None else time,
        rows=0 if batch.part is None else len(batch.part),
        labels=0 if batch.labels is None else sum(label is not None for label in batch.labels),
        n_rows=monitor.n_rows,
        n_waiting=monitor.n_waiting,
        n_early=monitor.n_early,
        goals=monitor.verdicts.as_records(),
        decisions=batch.decisions,
        n_others=batch.n_others,
    )


def _read_state(run: Run) -> tuple[tuple[BatchLine, ...], Monitor | None]:
    """Return a line for each batch that was counted, and the monitor after the last; None before the first."""
    path = run.folder / MONITOR
    if not path.exists():
        return (), None
    words = read_json(path, most=_MOST_STATE)
    if words.get("run") != _fingerprint(run):
        raise RunFolderError(f"{path} is of another run than the one in its folder. Move it elsewhere to begin anew.")
    try:
        check_shape(words, _WORDS, "it")
        if words["sha256"] != _seal(words["lines"], words["state"]):
            raise ValueError("its checksum is that of something else")  # noqa: TRY301 - told below
        monitor = Monitor.restore(words["state"])
        line = {**_LINE, "goals": (_STANDING,) * len(monitor.goals)}
        check_shape(words["lines"], (line,) * monitor.n_updates, "lines")
        return tuple(BatchLine(**line) for line in words["lines"]), monitor
    except ValueError as error:
        raise RunFolderError(
            f"{path} is damaged ({short(error)}). Restore it, or move it away to begin anew."
        ) from error


def _seal(lines: Any, state: Any) -> str:
    """Return the checksum of what was counted: one digit that changed would change a verdict unseen."""
    return hashlib.sha256(json.dumps([lines, state]).encode()).hexdigest()


def _fingerprint(run: Run) -> str:
    return str(read_json(run.folder / SETTINGS)["fingerprint"])


def _write_state(run: Run, lines: Sequence[BatchLine], monitor: Monitor) -> None:
    """Write all that is known: from here on the last batch is counted. It has ids of people, for its owner alone."""
    words = {"run": _fingerprint(run), "lines": [line._asdict() for line in lines], "state": monitor.state()}
    words["sha256"] = _seal(words["lines"], words["state"])
    with writing(run.folder / MONITOR):
        write_atomically(run.folder / MONITOR, [json.dumps(words, allow_nan=False).encode()], private=True)


def _write_log(run: Run, lines: Sequence[BatchLine]) -> None:
    """Write the log where it lacks a line, as after a kill."""
    path = run.folder / MONITOR_LOG
    content = "".join(f"{json.dumps(line._asdict(), allow_nan=False)}\n" for line in lines).encode()
    is_there = path.is_file() and path.stat().st_size == len(content)
    if lines and not (is_there and path.read_bytes() == content):
        with writing(path):
            write_atomically(path, [content])
