"""What the page is told first: what can be asked of these models and rows. No row is among it."""

from typing import Any

from counterpoise.explorer.few_rows import told_values
from counterpoise.explorer.session import Session
from counterpoise.explorer.setting import MOST_COLUMNS, MOST_GOALS
from counterpoise.explorer.telling import spelled
from counterpoise.goals import Table
from counterpoise.goals.catalogue import catalogue
from counterpoise.goals.rates import FORMS, METRICS, RATIOS
from counterpoise.mixtures.answers import TRAIN
from counterpoise.mixtures.base import DRAWN
from counterpoise.mixtures.options import kind_of_decision


def describe(session: Session) -> dict[str, Any]:
    """Return title, classes, metrics, datasets with their columns, and the setting that the model was chosen for."""
    parts = session.parts
    tables = parts.evidence.answers.tables
    return {
        "title": parts.title,
        "kind": "rules" if session.has_scores else "models",
        "decision": kind_of_decision(parts.estimator.decision),
        "draws": parts.held_out is not None and kind_of_decision(parts.estimator.decision) in DRAWN,
        "models": len(parts.names),
        "classes": {"positive": str(session.classes.positive), "negative": str(session.classes.negative)},
        "start": _start(session),
        "bounds_asked": parts.bounds_asked,
        "objective": str(parts.estimator.objective_),
        "datasets": [_dataset(name, table) for name, table in tables.items()],
        "held_out": None if parts.held_out is None else parts.held_out.tables[TRAIN].n_samples,
        "by": session.columns,
        "can_defer": session.has_scores,
        "metrics": [
            one._asdict() | {"is_ratio": one.name in RATIOS} for one in catalogue() if one.name in {*METRICS, *RATIOS}
        ],
        "phrases": [one._asdict() | _form(one.name) for one in catalogue() if one.name in FORMS],
        "words": [one.name for one in catalogue()],
        "confidence": parts.confidence,
        "notes": [*parts.notes, *_notes(session)],
        "most": {"goals": MOST_GOALS, "by": MOST_COLUMNS},
        "least_alpha": session.least_alpha,
    }


def _start(session: Session) -> dict[str, Any]:
    """Return what the model was chosen for, its goals with both of their sides."""
    words = session.start.as_words()
    goals = zip(words["goals"], session.start.goals, strict=True)
    return words | {"goals": [told | spelled(one.goal) for told, one in goals]}


def _form(name: str) -> dict[str, Any]:
    """Return what a kind of phrase leaves open, and whether it compares rates: none of those may be a ratio."""
    form = FORMS[name]
    return {"sense": form.sense, "takes_metric": not form.metrics, "by": form.by, "compares": form.combine is not tuple}


def _notes(session: Session) -> list[str]:
    told = "One rule decides: it is searched for where values rest. Until then the best mixture of rules is shown."
    return [told] if session.decides_by_one_rule else []


def _dataset(name: str, table: Table) -> dict[str, Any]:
    values = {column: found for column in table.columns if (found := told_values(table, column)) is not None}
    has = {"labels": table.y is not None, "baseline": table.baseline is not None}
    return {"name": name, "rows": table.n_samples, **has, "columns": values}
