"""A fitted model with held-out rows as a session."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from counterpoise._base.frames import is_frame
from counterpoise._base.types import AnyArray, ArrayLike, FloatArray
from counterpoise.classifiers.base import DRAWN
from counterpoise.explorer.session import Session
from counterpoise.explorer.state import HeldOutRows, SessionParts, original_bounds, unpacked
from counterpoise.goals import Ratio, Table
from counterpoise.goals.binding import Views
from counterpoise.goals.expressions import terms_of
from counterpoise.goals.rates import is_maximized
from counterpoise.goals.tables import with_train
from counterpoise.goals.terms import NoRows
from counterpoise.rules.goal_rows import TRAIN
from counterpoise.rules.options import STICKY, kind_of_decision
from counterpoise.rules.rows import as_columns, known_columns
from counterpoise.rules.scores.table import ScoreTable

_SEED = 0  # of draws that a model makes afresh


def session_of_model(
    model: Any,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    sensitive_features: Any = None,
    baseline: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    largest_weight: float | None = None,
    largest_value: float | Mapping[str, float] | None = None,
    datasets: Mapping[str, Table] | None = None,
    confidence: float = 0.95,
) -> Session:
    """Return a session of a fitted model.

    Parameters
    ----------
    model : fitted classifier that mixes models or rules of scores
        Of two classes, such as ``GoalClassifier``, ``MixtureClassifier`` or ``AdaLPBoostClassifier``.
    X, y : held-out rows and labels, optional
        Rows that took no part in fitting or choosing. Verdicts and rates by group are computed on them.
    sensitive_features, baseline, sample_weight, largest_weight, largest_value
        What belongs to these rows, as for ``Table``.
    datasets : dict from names to Table, optional
        Held-out rows of other datasets that goals use. Default: those of ``fit``.
    confidence : float in (0, 1), default=0.95
        The confidence of verdicts on goals that carry none.

    Returns
    -------
    Session
    """
    selection_data = check_model(model)
    held: HeldOutRows | None = None
    limits: dict[str, Any] = {"largest_weight": largest_weight, "largest_value": largest_value}
    if X is not None:
        if y is None:
            raise ValueError("You passed X without y. Verdicts need labelled rows: pass both, or neither.")
        features = X if is_frame(X) else np.empty((len(np.asarray(y)), 0))
        table = Table(features, np.asarray(y), sensitive_features, baseline, **limits, sample_weight=sample_weight)
        others = with_train(table, datasets)
        check_held_out(model, selection_data, others)
        held = held_out(model, selection_data, table, X, {name: one for name, one in others.items() if name != TRAIN})
    elif any(part is not None for part in (y, sensitive_features, baseline, sample_weight, *limits.values(), datasets)):
        raise ValueError("You passed columns, weights or datasets of held-out rows without X. Pass X and y too.")
    title = type(model).__name__
    names, bounds = names_of(model, selection_data), original_bounds(model)
    return Session(SessionParts(title, model, selection_data, held, names, confidence, bounds))


def check_held_out(model: Any, selection_data: Any, held_out_tables: Mapping[str, Table]) -> None:
    """Refuse held-out rows with other labels, or without the columns that the goals and the rules of a model use."""
    tables = {**selection_data.answers.tables, **held_out_tables}
    views = Views(tables, selection_data.answers.positive.labels)
    for name, part in [(name, part) for name in held_out_tables for part in ("y", "baseline")]:
        if getattr(tables[name], part) is not None:
            views.codes(name, part)  # which says what labels there are
    for goal in model.goals_:
        with suppress(NoRows):  # the page shows that none of them has a value
            for one in [one for part in goal.parts(views) for term in terms_of(part) for one in term.row_counts()]:
                views.rows(one.rows)
    if isinstance(selection_data, ScoreTable):
        for name in held_out_tables:
            model.groups_.codes(tables[name], f"The held-out rows of {name!r}")


def check_model(model: Any) -> Any:
    """Return the data that the mixture of a model was chosen on; refuse models that cannot be explored."""
    if not hasattr(model, "mixture_") or not hasattr(model, "family_"):
        raise TypeError(
            "The explorer needs a fitted classifier that mixes models or rules, such as GoalClassifier; got "
            f"{type(model).__name__}, which is not fitted or is of another kind."
        )
    if isinstance(model.objective_, Ratio):
        raise TypeError(
            f"The explorer solves again as bounds move, for objectives that are linear; this model has the ratio "
            f"{model.objective_}. Call rebalance(objective='error_rate') first, with a goal on the ratio such as "
            f"{model.objective_} {'>=' if is_maximized(model.objective_) else '<='} {model.value_:.2g}."
        )
    if len(model.classes_) != 2:  # noqa: PLR2004 - what is shown has a positive class
        raise ValueError(
            f"The explorer needs a model of two classes; this one has {len(model.classes_)}: "
            f"{model.classes_.tolist()[:10]}. Move bounds with rebalance(goals=...), or see a run's report."
        )
    return model.family_.selection_data


def names_of(model: Any, selection_data: Any) -> list[str]:
    """Return the names of the models."""
    n_models = selection_data.usual.size if isinstance(selection_data, ScoreTable) else selection_data.losses.shape[1]
    known = list(getattr(model, "names_", None) or [])[:n_models]
    known += [""] * (n_models - len(known))
    return [str(name) if name else f"model {place}" for place, name in enumerate(known)]


def held_out(model: Any, selection_data: Any, table: Table, X: Any, datasets: dict[str, Table]) -> HeldOutRows:
    """Compute the models' outputs for held-out rows, and the uniform numbers that decisions are drawn with."""
    tables, rows = {TRAIN: table}, {TRAIN: X}
    tables |= {name: known for name, known in selection_data.answers.tables.items() if name != TRAIN} | datasets
    rows |= {name: one.X for name, one in datasets.items()}
    outputs, uniforms = {}, {}
    for name, own in tables.items():
        if name in rows:
            outputs[name] = member_outputs(model, selection_data, rows[name])
            uniforms[name] = uniforms_of(model, rows[name])
        else:  # rows of fit, whose outputs are stored
            outputs[name], uniforms[name] = _stored_outputs(selection_data, name), generated(model, own.n_samples)
    return HeldOutRows(tables, outputs, uniforms, X if is_frame(X) else None)


def member_outputs(model: Any, selection_data: Any, X: Any) -> AnyArray:
    """Return each model's scores or, in a mixture of predictions, whether it predicts the positive class."""
    checked = model.check_predict_input(X)
    outputs = np.asarray(model.pool().ask(checked, checked.shape[0]))
    if isinstance(selection_data, ScoreTable):
        return outputs
    return np.asarray(outputs == selection_data.answers.positive.place)


def _stored_outputs(selection_data: Any, name: str) -> AnyArray:
    if isinstance(selection_data, ScoreTable):
        return np.asarray(selection_data.scores[name])
    return unpacked(selection_data.answers.positives[name])


def uniforms_of(model: Any, X: Any) -> FloatArray | None:
    """Return the uniform numbers that decide the draws of rows, as in ``predict``; None where the models vote."""
    checked = model.check_predict_input(X)
    if kind_of_decision(model.decision) != STICKY:
        return generated(model, checked.shape[0])
    known = known_columns(X, getattr(model, "feature_names_in_", None))
    return np.asarray(model.draws_.uniforms(known, as_columns(checked)))


def generated(model: Any, n_samples: int) -> FloatArray | None:
    """Return uniform numbers of a fixed seed, as an example of the draws; None where the models vote."""
    return np.random.default_rng(_SEED).random(n_samples) if kind_of_decision(model.decision) in DRAWN else None
