"""The steps of a run once its settings are known: data read and checked, a model fitted, evaluated, written.

Decisions that meet a bound exactly where they were chosen are as likely above it as below on other rows, and no audit
can decide. With a margin for the audit the bound is moved by the width of the audit's interval, and by the chance
variation on both sets of rows, as far as that costs little.
"""

import shlex
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from counterpoise._base.progress import ProgressCallback, RunProgress
from counterpoise._base.text import short
from counterpoise.goals import Goal, InfeasibleGoals, Table, bind
from counterpoise.goals.binding import NEEDED_BY, Views
from counterpoise.goals.bound_goals import check_contradictions, check_goal_data
from counterpoise.goals.classes import check_defer_label
from counterpoise.goals.tables import classes_of
from counterpoise.rules.choosing import as_problem, groups_by
from counterpoise.rules.options import as_groups
from counterpoise.rules.rows import groups_of
from counterpoise.rules.scores.table import find_groups
from counterpoise.runs import fitting, methods
from counterpoise.runs.advice import ways_to_hold, ways_to_meet
from counterpoise.runs.data import Data, RunRows, load_data
from counterpoise.runs.errors import DataError, RunFolderError, as_data_error
from counterpoise.runs.evaluate import Evaluation, evaluate
from counterpoise.runs.folder import Fingerprints, Writer, writing
from counterpoise.runs.goals_file import goals_of
from counterpoise.runs.places import CHECKPOINT, MODEL
from counterpoise.runs.reading import WordsAmongNumbers, collect_warnings
from counterpoise.runs.results import TRAIN
from counterpoise.runs.settings import RunSettings
from counterpoise.theory.risks import Risk, RiskRows

_NAMED = " Columns of groups are named in data.groups."


_KEPT = "The trained models are kept: change the goals in the file and run the same command again."
_KEPT_INSIDE = "The rounds were trained for these goals and are kept for them. Other goals need new rounds."


def fit_steps(
    settings: RunSettings,
    content: bytes,
    folder: Path,
    writer: Writer,
    fingerprints: Fingerprints,
    command: str,
    tell: ProgressCallback,
    say: fitting.Say,
) -> None:
    """Read data, check goals on them, fit and evaluate, in a run folder that nobody else writes to."""
    with collect_warnings(WordsAmongNumbers) as words:
        data = load_data(settings, folder)
    goals = check_goals(settings, data)
    check_objective(settings, data)
    check_rules(settings, data)
    checkpoint = writer.folder / CHECKPOINT
    work = fitting.Work(settings, data, goals, checkpoint, tell, say, writer.save_model, [], content)
    resumes = writer.begin(content, settings, data.columns, fingerprints, folder)
    counts = ", ".join(f"{len(part)} {name}" for name, part in data.splits.items())
    called = "" if data.positive is None else f", positive class {data.positive!s}"
    say(f"{'resumes' if resumes else 'starts'}: {counts} rows, {len(data.columns.features)} features{called}")
    for text in dict.fromkeys(map(str, words)):
        work.warn(text)
    with fitting.report_predictions(work):
        _fit(work, writer, fingerprints, command)


def check_goals(settings: RunSettings, data: Data) -> tuple[Goal, ...]:
    """Return the goals after checking on all rows that what they refer to is there."""
    goals = goals_of(settings)
    for split, part in data.splits.items() if goals else ():
        for goal, error in zip(goals, goal_errors(goals, part, data), strict=True):
            if error is not None:
                raise DataError(f"The goal {short(goal)} cannot be measured on the {split} rows: {error}") from error
    if settings.method.enforce_goals and goals:
        tables = _tables(data.splits[data.chosen_on], data)
        if any(goal.confidence is not None for goal in goals):
            # of so many rows to choose on no decisions may be certified to meet them
            with as_data_error(f"The goals cannot be met with confidence on the {data.chosen_on} rows: "):
                check_goal_data(goals, Views(tables, classes_of(tables, classes=data.classes, pos_label=data.positive)))
        deferred = True if methods.defers(settings.method) else None  # whatever the answer is called
        classes = classes_of(tables, classes=data.classes, pos_label=data.positive)._replace(deferred=deferred)
        check_contradictions(goals, Views(tables, classes))
    return goals


def _tables(part: RunRows, data: Data) -> dict[str, Table]:
    """Return rows in the place of ``train``, and the further ones that goals name."""
    return {TRAIN: part.table()} | {name: one.table() for name, one in data.extra.items()}


def check_objective(settings: RunSettings, data: Data) -> None:
    """Refuse an objective of rows or groups that are not there, before models are trained for it."""
    method, part = settings.method, data.splits[data.chosen_on]
    objective = method.parameters.get("objective") if methods.METHODS[method.name].does in ("mixes", "trains") else None
    deferral = methods.as_values(method.parameters).get("deferral")
    risk = as_problem(None, objective, (), default_alpha=settings.alpha, deferral=deferral).objective
    if not isinstance(risk, Risk):
        with as_data_error("method.parameters.objective: "):
            tables, own = _tables(part, data), {"classes": data.classes, "pos_label": data.positive}
            check_goal_data((), Views(tables, classes_of(tables, **own)._replace(deferred=deferral)), risk)
        return
    codes = groups_of(part.groups, len(part))[0] if part.groups else None
    table = part.table() if method.name == methods.POOL else Table(None, part.y, part.groups or None)
    with as_data_error("method.parameters.objective: ", _NAMED):
        risk.bind(RiskRows(len(part), 1, lambda names: groups_by(names, table, codes)))


def check_rules(settings: RunSettings, data: Data) -> None:
    """Refuse models without the scores that rules need, and columns that rules may not use, before training."""
    method = settings.method
    if method.name == methods.GOALS and len(data.classes) > 2:  # noqa: PLR2004 - of two any score will do
        for place, one in enumerate(methods.models_of(method), start=1):
            model = data.deployed if one.name == methods.DEPLOYED else methods.make(one, seed=0)
            if not hasattr(model, "predict_proba"):
                raise DataError(
                    f"method.models[{place}]: {methods.describe(one)} does not predict probabilities, which rules "
                    f"for {len(data.classes)} classes need. Choose another model, or mix predictions: "
                    'method.name = "pool".'
                )
    parameters = methods.as_values(method.parameters)
    if parameters.get("deferral") is not None:
        with as_data_error("method.parameters.deferral: "):
            check_defer_label(parameters["deferral"].label, data.classes.tolist(), "label")
    with as_data_error("method.parameters.by: ", _NAMED):
        find_groups(as_groups(parameters.get("by", ())), data.splits[data.chosen_on].table())


def goal_errors(goals: Iterable[Goal], part: RunRows, data: Data) -> Iterator[ValueError | None]:
    """Yield for each goal why it cannot be measured on these rows, in the place of ``train``; None where it can."""
    tables = _tables(part, data)
    for goal in goals:
        try:
            if goal.compares_ratios:  # not linear: what it refers to is checked all the same
                views = Views(tables, classes_of(tables, classes=data.classes, pos_label=data.positive))
                check_goal_data([goal.with_confidence(None)], views)
            else:
                bind([goal.with_confidence(None)], tables, classes=data.classes, pos_label=data.positive)
            for name in goal.datasets:
                tables[name].heaviest(name)
        except ValueError as error:
            reason = str(error).partition(NEEDED_BY)[0]  # which the message of the caller says too
            yield type(error)(reason)
        else:
            yield None


def _fit(work: fitting.Work, writer: Writer, fingerprints: Fingerprints, command: str) -> None:
    """Fit and evaluate; whatever stops it is in the log."""
    started = time.monotonic()
    try:
        damaged = "the model file is damaged; the model is made again from its rounds"
        model = fitting.kept_model(writer.folder / MODEL, work.say, damaged)
        if model is None:
            with fitting.report_cautions(work.warn):
                model = fitting.fit_model(work)
            writer.save_model(model)
        seconds = {"fit": time.monotonic() - started}
        work.say(f"fitted in {seconds['fit']:.1f} s; evaluates it on every split")
        if work.settings.method.name != methods.POOL:  # whose bar goes on while its models predict
            work.tell(RunProgress(0, 0, "measuring", seconds["fit"], 0.0))
        commands = [command, shlex.join(["counterpoise", "report", writer.folder.name])]
        finish(work, writer, fingerprints, model, commands, plain=fitting.plain_model(work), seconds=seconds)
    except BaseException as error:
        with suppress(RunFolderError):  # a full disk takes no last words either
            writer.log(f"stopped: {type(error).__name__}: {error}".removesuffix(": "))
        if isinstance(error, InfeasibleGoals):
            error.add_note(_KEPT_INSIDE if methods.trains_inside(work.settings.method) else _KEPT)
            kept = fitting.kept_model(work.checkpoint / fitting.TRAINED, work.say, "")
            for way in ways_to_hold(work, kept):
                error.add_note(way)
        with writing(work.checkpoint):  # an error of the system, of a round that could not be kept
            raise


def finish(
    work: fitting.Work,
    writer: Writer,
    fingerprints: Fingerprints,
    model: Any,
    commands: list[str],
    *,
    plain: Any = None,
    seconds: dict[str, float] | None = None,
) -> None:
    """Evaluate a model on every split, and write the result: the last steps of every run, trained or rebalanced."""
    run = Evaluation.of(work.settings, work.data, model, work.goals, plain)
    started, times = time.monotonic(), dict(seconds or {})
    if seconds is not None:
        run.on(work.data.judged)  # it is then known
        times["predict"] = time.monotonic() - started
    run_result = evaluate(run)
    writer.save_pool_outputs(work.data.pool_outputs, fingerprints)
    additions = {"advice": ways_to_meet(work, model, run_result), "commands": commands, "seconds": times}
    additions["warnings"] = list(dict.fromkeys(work.warnings))
    writer.finish(run_result.model_copy(update=additions), fingerprints)
