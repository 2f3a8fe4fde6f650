"""A run folder as a session: its models, the rows they were chosen on, its test rows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from counterpoise.classifiers.base import NEVER
from counterpoise.explorer.conversation import NO_CONFIDENCE, REPORT, Exporter
from counterpoise.explorer.session import Session
from counterpoise.explorer.setting import Setting
from counterpoise.explorer.source import check_model, member_outputs, names_of, uniforms_of
from counterpoise.explorer.state import HeldOutRows, SessionParts, original_bounds
from counterpoise.rules.goal_rows import TRAIN
from counterpoise.rules.scores.table import ScoreTable
from counterpoise.runs.data import Data, RunRows
from counterpoise.runs.decisions import final_estimator, has_rules, known_answers, mixes, seen_by_last
from counterpoise.runs.fitting import piped
from counterpoise.runs.folder import Run
from counterpoise.runs.goals_file import goals_of, parse_goals_file, rewritten
from counterpoise.runs.methods import kind_of, models_of
from counterpoise.runs.rebalanced import changed, write_chosen
from counterpoise.runs.results import TEST
from counterpoise.runs.use import check_own_data, own_data


class ReadRun(NamedTuple):
    """A run with its model in memory, and what a session of it holds."""

    run: Run
    model: Any
    parts: SessionParts


def read_run(run: Run) -> ReadRun:
    """Read the model and the data files of a run."""
    model = run.model()
    if not mixes(model):
        raise ValueError(
            f"The run in {run.folder} cannot be explored: its method {run.settings.method.name!r} has no mixture to "
            "choose again. Fit with a method that mixes models or rules, such as goals, adalpboost or pool."
        )
    estimator, data = final_estimator(model), own_data(run)
    selection_data = check_model(estimator)
    # with all columns of the files, which goals may name
    known = selection_data.scores if isinstance(selection_data, ScoreTable) else selection_data.answers.sizes
    parts, own = {TRAIN: data.splits[data.chosen_on], **data.extra}, selection_data.answers.tables
    tables = {name: one.table() for name, one in parts.items() if name in known and len(one) == own[name].n_samples}
    selection_data = selection_data.with_tables(tables)
    held = _held_out(model, estimator, selection_data, data) if TEST in data.splits else None
    notes = () if held is not None else ("The run has no test rows, so the page shows no verdicts on held-out rows.",)
    names, title = _names(run, estimator, selection_data), run.folder.resolve().name
    level, bounds = run.settings.audit_confidence, original_bounds(estimator)
    session_parts = SessionParts(title, estimator, selection_data, held, names, level, bounds, notes)
    return ReadRun(run, model, session_parts)


def _held_out(model: Any, estimator: Any, selection_data: Any, data: Data) -> HeldOutRows:
    """Return the test rows, and the further rows that goals name, with the models' scores or predictions for them."""
    parts: dict[str, RunRows] = {TRAIN: data.splits[TEST], **data.extra}
    tables = {name: part.table() for name, part in parts.items()}
    outputs, uniforms, is_of_scores = {}, {}, isinstance(selection_data, ScoreTable)
    for name, part in parts.items():
        X = seen_by_last(model, part.X)
        known = known_answers(data, TEST if name == TRAIN else name, estimator, "f" if is_of_scores else "iu")
        if known is not None and not is_of_scores:
            known = np.asarray(known == selection_data.answers.positive.place)
        outputs[name] = member_outputs(estimator, selection_data, X) if known is None else known
        uniforms[name] = uniforms_of(estimator, X)
    groups = {name: values for name, values in parts[TRAIN].groups.items() if name not in parts[TRAIN].X}
    return HeldOutRows(tables, outputs, uniforms, parts[TRAIN].X.assign(**groups))


def _names(run: Run, estimator: Any, selection_data: Any) -> list[str]:
    named = [one.title or kind_of(one).title for one in models_of(run.settings.method)]
    known = names_of(estimator, selection_data)
    if len(named) == len(known):
        return named
    return known if has_rules(estimator) else [f"round {number}" for number in range(1, len(known) + 1)]


class RunExporter(Exporter):
    """Exports of a session whose model is a run's: the whole goals file, the whole model, another run with a report."""

    def __init__(self, session: Session, read: ReadRun, folder: str | Path | None) -> None:
        super().__init__(session, folder)
        self._read = read

    @property
    def kinds(self) -> dict[str, Callable[[Setting], dict[str, str]]]:
        """Return what can be exported, and what writes it."""
        return super().kinds | ({} if self.folder is None else {REPORT: self.report})

    def goals_file(self, setting: Setting) -> dict[str, str]:
        """Return the goals file of a setting: the run's own file with the values that you moved.

        Data files are named by their whole paths, so that it can be fitted from wherever a page saved it.
        """
        run = self._read.run
        settings = run.settings.model_copy(update=self._changes(setting))
        text = rewritten(settings, sources=run.sources)
        parse_goals_file(text.encode(), Path("goals.toml"))  # refuses what a goals file cannot express
        return {"name": "goals.toml", "text": text}

    def report(self, setting: Setting) -> dict[str, str]:
        """Write a run of a setting with its report, and return where the report is."""
        from counterpoise.report import write_report  # noqa: PLC0415 - needs optional packages

        check_own_data(self._read.run)
        model, changes = self.model(setting), self._changes(setting)
        if setting != self.session.start and self._read.run.settings.proof:
            changes["proof"] = False  # the model of another setting has margins instead
        with self._fresh("", Path.mkdir) as folder:
            run = write_chosen(self._read.run, changes, lambda _: model, folder)
            return {"path": str(write_report(run.folder))}

    def _changes(self, setting: Setting) -> dict[str, Any]:
        """Return the fields of the run's settings that a setting changes.

        A goal that stands where the run aimed has the bound of its goals file, without the margin for new rows that
        fitting adds; one that was moved has the bound of the page.
        """
        start, settings = self.session.start, self._read.run.settings
        others: dict[str, Any] = {}
        if setting.alpha is not None and setting.alpha != start.alpha:
            others["alpha"] = setting.alpha
        if setting.budget != start.budget:
            others["budget"] = 1.0 if setting.budget is None else setting.budget
        if setting.by != start.by:
            others["by"] = list(setting.by)
        if setting.defer != start.defer:
            others["defer_cost"] = NEVER if setting.defer is None else setting.defer
        goals = self.session.goals_of_file(setting)
        if setting.confidence != start.confidence:
            others["confidence"] = NO_CONFIDENCE if setting.confidence is None else setting.confidence
        if setting.confidence is None and settings.proof:
            others["proof"] = False
        return changed(settings, goals=None if goals == goals_of(settings) else goals, **others)

    def _whole(self, model: Any) -> Any:
        return piped(self._read.model[0], model) if hasattr(self._read.model, "steps") else model
