"""What a fitted model of a run is: what stands at its end, what that sees, and what it may look at."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from counterpoise._base.types import IntArray
from counterpoise.mixtures.class_scores.evidence import ClassEvidence
from counterpoise.mixtures.options import Deferral
from counterpoise.mixtures.scored import RuleClassifier
from counterpoise.runs.data import Part


def last_step(model: Any) -> Any:
    """Return the estimator of ours or scikit-learn's at the end of a model."""
    return model[-1] if hasattr(model, "steps") else model


def seen_by_last(model: Any, frame: Any) -> Any:
    """Return a raw frame as the last step takes it."""
    return model[:-1].transform(frame) if hasattr(model, "steps") else frame


def mixes(model: Any) -> bool:
    """Tell whether a model is a mixture."""
    return hasattr(last_step(model), "mixture_")


def has_rules(model: Any) -> bool:
    """Tell whether a model is a mixture of rules of scores."""
    return hasattr(last_step(model), "rules_")


def has_class_rules(model: Any) -> bool:
    """Tell whether the rules of a model are of the probabilities of more than two classes, and not of a score."""
    return has_rules(model) and isinstance(last_step(model)._scored, ClassEvidence)  # noqa: SLF001 - of our own kind


def deferral_of(model: Any) -> Deferral | None:
    """Return what deferring a row costs, and what is then said of it; None where every row is decided about."""
    found: Deferral | None = last_step(model)._scored.deferral if has_rules(model) else getattr(model, "deferral", None)  # noqa: SLF001
    return found


def keeps_answers(model: Any) -> bool:
    """Tell whether a model is a mixture of models of any kind, which may be slow to read and to ask: rounds are not."""
    return isinstance(model, RuleClassifier)


def looked_at(part: Part) -> dict[str, Any]:
    """Return what rules may look at beside the features of rows, as ``predict`` takes it."""
    return {"sensitive_features": part.groups or None, "baseline": part.baseline}


def some_rows(value: Any, rows: IntArray) -> Any:
    """Return some rows of columns by name, of one column, or of none."""
    if value is None or isinstance(value, Mapping):
        return value and {name: np.asarray(column)[rows] for name, column in value.items()}
    return np.asarray(value)[rows]
