"""Arguments of ``fit`` that reach the models inside: which model takes which, and early stopping on rows set aside.

A model that stops early looks at some labelled rows to decide when. Those rows must be none whose scores choose the
rules, or these scores would be too good. So a part of the rows that a model of a fold is trained on is set aside, and a
model that is then trained on all rows takes as many rounds as the models of the folds did on average.
"""

from collections.abc import Iterable, Mapping
from copy import copy
from inspect import Parameter, signature
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupShuffleSplit, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import _check_method_params, has_fit_parameter

from counterpoise._base.checks import check_number
from counterpoise._base.frames import take_rows
from counterpoise._base.text import did_you_mean
from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.learners.resampling import is_routing_on

Params = Mapping[str, Any]
_EVAL_SET = "eval_set"
_STOPS = ("early_stopping_round", "early_stopping_rounds", "use_best_model")  # settings of libraries that stop early
_ROUNDS = ("n_estimators", "iterations", "num_boost_round", "num_trees")  # names of the number of rounds
_NEED_CODES = ("xgboost", "skorch")  # libraries whose classifiers take no labels but 0, 1, 2 and so on


class EarlyStopping(NamedTuple):
    """Which part of the rows a model stops early on."""

    share: float
    persons: IntArray | None = None  # of all rows, where some have several: they stay together
    in_time: bool = False  # whether rows are in the order of time: the last ones are set aside

    def rows(self, labels: AnyArray, seed: int) -> IntArray:
        """Return the places of the rows to set aside, every class spread evenly, unless persons or time forbid it."""
        places = np.arange(labels.size)
        if self.in_time:
            return places[-max(round(self.share * labels.size), 1) :]
        if self.persons is not None:
            splitter = GroupShuffleSplit(1, test_size=self.share, random_state=seed)
            return np.asarray(next(splitter.split(places, groups=self.persons))[1])
        return np.sort(train_test_split(places, test_size=self.share, stratify=labels, random_state=seed)[1])


def params_by_model(router: Any, models: Mapping[str, Any], params: Params) -> dict[str, dict[str, Any]]:
    """Return the arguments of ``fit`` for each model, by title, after refusing those that no model takes.

    With scikit-learn's metadata routing on they go where models have requested them. Otherwise they go to every model
    whose ``fit`` takes them; in a pipeline a step takes what has its name and two underscores before it.
    """
    if not params:
        return {title: {} for title in models}
    if router.is_prefit:
        raise TypeError(
            f"fit trains no model where these are fitted, so it takes no {', '.join(map(repr, params))}. Pass that "
            "where you train the model, or set cv='auto'."
        )
    if is_routing_on():
        routed = process_routing(router, "fit", **params)
        by_model = {title: dict(routed[title].fit) for title in models}
    else:
        taken = {title: [name for name in params if _takes(model, name)] for title, model in models.items()}
        by_model = {title: {name: params[name] for name in names} for title, names in taken.items()}
        for name in params:
            if not any(name in own for own in by_model.values()):
                raise TypeError(_unknown(name, router, models))
    for title, model in models.items():
        _check_eval_set(title, model, by_model[title])
    return by_model


def params_of_rows(X: Any, params: Params, rows: IntArray) -> dict[str, Any]:
    """Return arguments of ``fit`` for some rows of X: those with a value for each row are cut, callbacks copied."""
    own: dict[str, Any] = _check_method_params(X, params, rows)
    return {name: [copy(one) for one in value] if name.endswith("callbacks") else value for name, value in own.items()}


def share_to_stop_on(model: Any, params: Params) -> float | None:
    """Return the part of the rows that a model stops early on; None where ``eval_set`` is not a number."""
    value = params.get(_prefix(model) + _EVAL_SET)
    return float(value) if isinstance(value, Real) else None


def needs_codes(model: Any) -> bool:
    """Return whether a model takes no labels but 0, 1, 2 and so on."""
    parts = [model, *model.get_params().values()]  # of a search or a pipeline, too
    return any(base.__module__.startswith(_NEED_CODES) for part in parts for base in type(part).__mro__)


def with_coded_eval_set(model: Any, params: Params, classes: AnyArray) -> dict[str, Any]:
    """Return arguments with the labels of an ``eval_set`` of the user's as places among the sorted classes."""
    name = _prefix(model) + _EVAL_SET
    if not isinstance(params.get(name), Iterable):
        return dict(params)
    return {**params, name: [(X, np.searchsorted(classes, np.asarray(y))) for X, y in params[name]]}


def fit_stopping_early(
    model: Any, X: Any, labels: AnyArray, weights: FloatArray | None, params: Params, rows: IntArray
) -> Any:
    """Fit a model on all but some rows, by which its last step stops early, and return it."""
    prefix, head, last = _prefix(model), _head(model), _last(model)
    trained = np.setdiff1d(np.arange(labels.size), rows)
    params = params_of_rows(X, {name: value for name, value in params.items() if name != prefix + _EVAL_SET}, trained)
    inside, outside = take_rows(X, trained), take_rows(X, rows)
    own: dict[str, Any] = {name.removeprefix(prefix): params[name] for name in params if name.startswith(prefix)}
    before = [name for name in params if not name.startswith(prefix)]
    if head is not None and is_routing_on():
        own = dict(process_routing(model, "fit", **params)[model.steps[-1][0]].fit)
        before = list(head.get_metadata_routing().consumes("fit_transform", params))
    if head is not None:
        inside = head.fit_transform(inside, labels[trained], **{name: params[name] for name in before})
        outside = head.transform(outside)
    if has_fit_parameter(last, "eval_X"):  # of LightGBM, whose eval_set is deprecated
        own |= {"eval_X": outside, "eval_y": labels[rows]}
    else:
        own[_EVAL_SET] = [(outside, labels[rows])]
    if weights is not None:
        own["sample_weight"] = weights[trained]
        for name in ("eval_sample_weight", "sample_weight_eval_set"):  # of LightGBM, of XGBoost
            if has_fit_parameter(last, name):
                own[name] = [weights[rows]]
    if signature(last.fit).parameters.get("verbose", Parameter("none", Parameter.KEYWORD_ONLY)).default is True:
        own.setdefault("verbose", False)  # XGBoost prints every round otherwise
    last.fit(inside, labels[trained], **own)
    return last if head is None else Pipeline([*head.steps, model.steps[-1]])


def kept_rounds(model: Any) -> int | None:
    """Return how many rounds a fitted model has kept after stopping early; None where it did not stop."""
    last = _last(model)
    if hasattr(last, "tree_count_"):  # CatBoost drops the trees after the best one
        return int(last.tree_count_)
    best = getattr(last, "best_iteration", None)  # of XGBoost, which counts from 0
    return (getattr(last, "best_iteration_", None) or None) if best is None else int(best) + 1


def with_rounds(model: Any, params: Params, n_rounds: int) -> tuple[Any, dict[str, Any]]:
    """Return an unfitted model that takes so many rounds and does not stop early, and arguments of its ``fit``."""
    prefix, last = _prefix(model), _last(model)
    settings = last.get_params(deep=False)
    changed: dict[str, Any] = {next((name for name in _ROUNDS if name in settings), "iterations"): n_rounds}
    if settings.get("callbacks"):
        changed["callbacks"] = _without_stops(settings["callbacks"])
    if isinstance(last, BaseEstimator):
        last.set_params(**changed, **dict.fromkeys(set(_STOPS) & settings.keys()))
    else:  # CatBoost, whose settings cannot be None
        last = type(last)(**{name: value for name, value in (settings | changed).items() if name not in _STOPS})
    if isinstance(model, Pipeline):
        model.set_params(**{model.steps[-1][0]: last})
    kept = {name: value for name, value in params.items() if not name.startswith(f"{prefix}eval_")}
    if f"{prefix}callbacks" in kept:
        kept[f"{prefix}callbacks"] = _without_stops(kept[f"{prefix}callbacks"])
    return (model if isinstance(model, Pipeline) else last), kept


def _last(model: Any) -> Any:
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def _head(model: Any) -> Any:
    """Return the steps of a pipeline before the last one; None where there are none."""
    return model[:-1] if isinstance(model, Pipeline) and len(model.steps) > 1 else None


def _prefix(model: Any) -> str:
    """Return what names of arguments of the last step begin with."""
    return f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) and not is_routing_on() else ""


def _without_stops(callbacks: Any) -> list[Any]:
    return [one for one in callbacks if not _is_stop(one)]


def _is_stop(callback: Any) -> bool:
    return "EarlyStopping" in type(callback).__name__  # of LightGBM and of XGBoost


def _takes(model: Any, name: str) -> bool:
    """Return whether ``fit`` of a model takes an argument."""
    if isinstance(model, Pipeline):
        step, _, inner = name.partition("__")
        return bool(inner) and hasattr(model.named_steps.get(step), "fit") and _takes(model.named_steps[step], inner)
    taken = signature(model.fit).parameters
    return name in taken or any(one.kind is Parameter.VAR_KEYWORD for one in taken.values())


def _unknown(name: str, router: Any, models: Mapping[str, Any]) -> str:
    """Return the message for an argument that no model takes."""
    known = []
    for model in models.values():
        steps = model.steps if isinstance(model, Pipeline) else [("", model)]
        for step, one in steps:
            names = list(signature(one.fit).parameters) if hasattr(one, "fit") else []
            known += [f"{step}__{inner}" if step else inner for inner in names if inner not in ("X", "y")]
    ours = [one for one in signature(router.fit).parameters if one != "fit_params"]
    hint = did_you_mean(name, [*ours, *known])
    nested = [one for one in known if one.endswith(f"__{name}")]
    if nested:
        hint = f" In a pipeline name the step before it: {nested[-1]}."
    takes = [one for one in known if not one.endswith("sample_weight")]
    return (
        f"fit got {name!r}, which neither {type(router).__name__} nor the fit of {' or '.join(models)} takes.{hint} "
        f"What {'it takes' if len(models) == 1 else 'they take'}: {', '.join(dict.fromkeys(takes)) or 'nothing more'}."
    )


def _check_eval_set(title: str, model: Any, params: Params) -> None:
    """Refuse a part of the rows to stop on that is out of range, or that nothing stops on."""
    name, last = _prefix(model) + _EVAL_SET, _last(model)
    if share_to_stop_on(model, params) is None:
        return
    check_number(params[name], name, "(0, 1)", "the part of the training rows to stop on, or pairs of rows and labels")
    if not has_fit_parameter(last, _EVAL_SET):
        raise TypeError(
            f"{name}={params[name]!r} sets rows aside for models that stop early by an eval_set, as those of LightGBM, "
            f"XGBoost and CatBoost; {title} takes none."
        )
    settings = last.get_params()
    callbacks = [*params.get(f"{_prefix(model)}callbacks", ()), *(settings.get("callbacks") or ())]
    keeps_best = hasattr(last, "get_best_iteration")  # CatBoost, whatever its settings
    if not (keeps_best or any(settings.get(one) for one in _STOPS) or any(map(_is_stop, callbacks))):
        raise ValueError(
            f"{name}={params[name]!r} sets rows aside to stop early on, and {title} does not stop early: pass "
            f"{_prefix(model)}callbacks=[lightgbm.early_stopping(20)] to fit for LightGBM, or set "
            "early_stopping_rounds=20 in the model for XGBoost."
        )
