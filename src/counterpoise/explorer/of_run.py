"""A run folder as a session: its models, the rows they were chosen on, its test rows."""

from pathlib import Path
from typing import Any

import numpy as np

from counterpoise.explorer.parts import HeldOut, Parts
from counterpoise.explorer.source import asked, check_model, generated, names_of, uniforms_of
from counterpoise.goals import Goal, Table
from counterpoise.mixtures.answers import TRAIN
from counterpoise.mixtures.scores.evidence import ScoreEvidence
from counterpoise.runs.data import Data, Part
from counterpoise.runs.fitted import has_rules, last_step, mixes, seen_by_last
from counterpoise.runs.folder import Run, open_run
from counterpoise.runs.goals_file import goals_of
from counterpoise.runs.methods import kind_of, models_of
from counterpoise.runs.quantities import TEST
from counterpoise.runs.use import own_data


def parts_of_run(folder: str | Path) -> Parts:
    """Return what a session of a finished run holds."""
    run = open_run(folder)
    model = run.model()
    if not mixes(model):
        raise ValueError(
            f"The run in {run.folder} cannot be explored: the method {run.settings.method.name!r} has no mixture to "
            "choose anew. Methods that mix models have one, such as goals, adalpboost and pool."
        )
    estimator, data = last_step(model), own_data(run)
    evidence = _with_all_columns(check_model(estimator), data)
    held = _held_out(model, estimator, evidence, data) if TEST in data.splits else None
    notes = () if held is not None else ("The run has no test rows: verdicts on held-out rows are not shown.",)
    asked_bounds = _bounds_asked(goals_of(run.settings), estimator.goals_)
    names = _names(run, estimator, evidence)
    return Parts(run.folder.name, estimator, evidence, held, names, run.settings.confidence, asked_bounds, notes)


def _with_all_columns(evidence: Any, data: Data) -> Any:
    """Return evidence whose tables hold all columns of the files, which goals may name."""
    known = evidence.scores if isinstance(evidence, ScoreEvidence) else evidence.answers.sizes
    parts = {TRAIN: data.splits[data.chosen_on], **data.extra}
    tables = {name: one.table() for name, one in parts.items() if name in known and len(one) == _size(evidence, name)}
    return evidence.with_tables(tables)


def _size(evidence: Any, name: str) -> int:
    return evidence.answers.tables[name].n_samples  # type: ignore[no-any-return]


def _held_out(model: Any, estimator: Any, evidence: Any, data: Data) -> HeldOut:
    """Return the test rows, and the further rows that goals name, with what the models say about them."""
    parts: dict[str, Part] = {TRAIN: data.splits[TEST], **data.extra}
    tables: dict[str, Table] = {name: part.table() for name, part in parts.items()}
    said, uniforms = {}, {}
    for name, part in parts.items():
        X, known = seen_by_last(model, part.X), data.said.get(TEST if name == TRAIN else name)
        said[name] = asked(estimator, evidence, X) if known is None else _as_said(known, estimator, evidence, X)
        uniforms[name] = (
            uniforms_of(estimator, X) if estimator.decision == "sticky" else generated(estimator, len(part))
        )
    groups = {name: values for name, values in parts[TRAIN].groups.items() if name not in parts[TRAIN].X}
    return HeldOut(tables, said, uniforms, parts[TRAIN].X.assign(**groups))


def _as_said(known: Any, estimator: Any, evidence: Any, X: Any) -> Any:
    """Return what was kept of the models' answers as a session has it; asked anew where it is of another kind."""
    is_of_scores, wanted = isinstance(evidence, ScoreEvidence), (X.shape[0], len(estimator.estimators_))
    if known.shape != wanted or (known.dtype.kind == "f") != is_of_scores:
        return asked(estimator, evidence, X)
    return known if is_of_scores else np.asarray(known == evidence.answers.positive.place)


def _names(run: Run, estimator: Any, evidence: Any) -> list[str]:
    named = [one.title or kind_of(one).title for one in models_of(run.settings.method)]
    known = names_of(estimator, evidence)
    if len(named) == len(known):
        return named
    return known if has_rules(estimator) else [f"round {number}" for number in range(1, len(known) + 1)]


def _bounds_asked(asked_for: tuple[Goal, ...], aimed: tuple[Goal, ...]) -> dict[str, float]:
    """Return by the text of each goal that was aimed elsewhere, with room for the audit, what the goals file asks."""
    pairs = zip(asked_for, aimed, strict=False)
    return {str(aim): goal.bound for goal, aim in pairs if goal.bound != aim.bound}
