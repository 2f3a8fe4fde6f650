"""Fitting what a goals file asks for: a model that takes raw frames, and plain training beside it to compare with."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from counterpoise import persist
from counterpoise._base.progress import Pace, ProgressCallback, notify_on_prediction, report_progress_to
from counterpoise._base.types import AnyArray
from counterpoise.classifiers.base import NEVER
from counterpoise.goals import Goal
from counterpoise.rules.cautions import Caution
from counterpoise.rules.choosing import as_problem, rate_of
from counterpoise.rules.draws import derived_key
from counterpoise.rules.options import Proof
from counterpoise.runs import methods
from counterpoise.runs.data import Data
from counterpoise.runs.decisions import decision_inputs, final_estimator, has_rules, keeps_answers, seen_by_last
from counterpoise.runs.errors import DataError, listed
from counterpoise.runs.folder import run_key
from counterpoise.runs.goals_file import line_of_model
from counterpoise.runs.reading import collect_warnings
from counterpoise.runs.results import CVAR, TRAIN, VALIDATION
from counterpoise.runs.settings import MethodSettings, ModelSettings, PreprocessingSettings, RunColumns, RunSettings
from counterpoise.theory.risks import CVaR

TRAINED = "trained.cp"  # of the checkpoint: models that wait for their rules
_ABSENT = -1  # the code of missing and unknown categories where a method takes no missing values


def wanted_features(settings: MethodSettings | ModelSettings) -> str:
    """Return which features a method wants: those of its base learner where one is named."""
    learner = getattr(settings, "learner", None)
    return methods.METHODS[(learner or settings).name].features


def preprocessor(settings: PreprocessingSettings, columns: RunColumns, features: str, *, takes_missing: bool) -> Any:
    """Return an unfitted transformer of frames.

    Trees get categories as codes, numbers as they are and, where they can take them, missing values as NaN. Other
    methods get the median for a missing number, numbers of mean 0 and variance 1, and a column for each category; a
    missing category is one of its own.
    """
    for_trees = features == "trees"
    keep = settings.missing == "keep" or (settings.missing in {"auto", "refuse"} and for_trees and takes_missing)
    scale = settings.numeric == "standardize" or (settings.numeric == "auto" and not for_trees)
    ordinal = settings.categorical == "ordinal" or (settings.categorical == "auto" and for_trees)
    steps: list[tuple[str, Any, list[str]]] = []
    if columns.categorical and settings.categorical != "drop":
        rare, absent = {"max_categories": settings.max_categories}, np.nan if keep else _ABSENT
        unknown = {"handle_unknown": "use_encoded_value", "unknown_value": absent, "encoded_missing_value": absent}
        one_hot = OneHotEncoder(handle_unknown="infrequent_if_exist", sparse_output=False, **rare)
        encoder = OrdinalEncoder(dtype=np.float32, **unknown, **rare) if ordinal else one_hot
        steps.append(("categories", encoder, columns.categorical))
    if columns.numeric:
        imputer = SimpleImputer(strategy="median", keep_empty_features=True)
        # one that does not scale still makes numbers of truth values; "passthrough" would make objects of all columns
        scaler = StandardScaler() if scale else StandardScaler(copy=False, with_mean=False, with_std=False)
        steps.append(("numbers", scaler if keep else make_pipeline(imputer, scaler), columns.numeric))
    return ColumnTransformer(steps, sparse_threshold=0.0, verbose_feature_names_out=False)


Say = Callable[[str], None]
Keep = Callable[[Any, str], None]  # a model, and the name of its file in the run folder


@contextmanager
def report_cautions(say: Say) -> Iterator[None]:
    """Report the last caution of each kind in a line: earlier choices were tries."""
    with collect_warnings(Caution) as cautions:
        yield
    for text in {type(one): str(one) for one in cautions}.values():
        say(text)


class Work(NamedTuple):
    """What a fit works with."""

    settings: RunSettings
    data: Data
    goals: tuple[Goal, ...]
    checkpoint: Path
    tell: ProgressCallback
    say: Say
    keep: Keep
    warnings: list[str]
    goals_file: bytes = b""

    def warn(self, text: str) -> None:
        """Say something that the result of the run repeats."""
        self.warnings.append(text)
        self.say(text)

    @property
    def pos_label(self) -> Any:
        """Return the positive class where it is not the usual one of two."""
        return None if self.settings.data.positive is None else self.data.positive

    def key(self, purpose: str = "") -> bytes:
        """Return the key of the run's draws, or another one for the draws of a model inside."""
        key = run_key(self.checkpoint.parent)
        return derived_key(key, purpose) if purpose else key

    @property
    def confidence(self) -> float | Proof | None:
        """Return the probability with which the goals hold together on new rows; None for no margins."""
        level = self.settings.confidence
        if isinstance(level, str):
            return None
        return Proof(level) if self.settings.proof else level

    @property
    def enforced(self) -> tuple[Goal, ...]:
        """Return the goals that the model must meet."""
        return self.goals if self.settings.method.enforce_goals else ()


def fit_model(work: Work) -> Any:
    """Return the fitted model: a pipeline from raw frames to labels, or a mixture of such pipelines."""
    method = work.settings.method
    if method.name == methods.POOL:
        return _fit_pool(work)
    if method.name == methods.GOALS:
        return _fit_goals(work)
    if methods.METHODS[method.name].does == "mixes":
        return _fit_mixture(work)
    estimator = methods.make(method, seed=work.settings.seed, key=work.key, **_learner(work, method))
    if methods.METHODS[method.name].does == "trains":
        estimator.set_params(goals=work.enforced, pos_label=work.pos_label)
    return _fit_pipeline(work, method, estimator)


def inside_goals(work: Work, model: Any, *, alpha: float | None = None, objective: Any = None, **changes: Any) -> Any:
    """Return a fitted mixture chosen again, inside the goals, on the rows set aside for it. Nothing is trained.

    ``alpha`` is another tail, ``objective`` another objective; without either it is as before. ``changes`` are further
    arguments of ``rebalance``.
    """
    data = work.data
    part, estimator = data.splits[data.chosen_on], final_estimator(model)
    options: dict[str, Any] = {"objective": estimator.objective_ if objective is None else objective}
    if objective is None and alpha is not None:
        options = {"alpha": alpha}
    if work.settings.method.name == methods.GOALS:
        options["confidence"] = work.confidence
    options |= changes
    kept = estimator.family_.selection_data
    known = kept.scores if has_rules(model) else kept.answers.sizes
    needs_rates = bool(work.enforced or rate_of(as_problem(None, options.get("objective"), ()).objective))
    is_unknown = needs_rates and TRAIN not in known
    # the rounds count held-out rows alike, and know where models err only
    if not keeps_answers(model) and (part.weights is not None or is_unknown):
        options |= {"X": seen_by_last(model, part.X), "y": part.y, "sample_weight": part.weights}
        options["sensitive_features"] = part.groups or None
    new = {name: one for name, one in data.extra.items() if name not in known}
    # rounds knew all columns, and chose on a part
    others = new if methods.trains_inside(work.settings.method) else data.extra
    with report_progress_to(work.tell):
        chosen = estimator.rebalance(
            **options,
            goals=work.enforced,
            datasets={name: one.table(seen_by_last(model, one.X)) for name, one in new.items()},
            tables={name: one.table() for name, one in {TRAIN: part, **others}.items()},  # goals may name every column
        )
    return piped(model[0], chosen) if hasattr(model, "steps") else chosen


def plain_model(work: Work) -> Any:
    """Return plain training to compare with, on the same features; None where the model shows it itself."""
    method = work.settings.method
    kind = methods.METHODS[method.name]
    if kind.does == "mixes" or (kind.does == "plain" and not kind.boosts):
        return None
    settings = method.learner or ModelSettings(name="logistic" if kind.does == "trains" else "histogram_tree")
    return _fit_pipeline(work, settings, methods.make(settings, seed=work.settings.seed))


def _fit_mixture(work: Work) -> Any:
    from counterpoise.boosting.learner import planned_rounds  # noqa: PLC0415 - it takes a while to import

    method, data = work.settings.method, work.data
    pace = Pace(work.tell)
    parts = {"pos_label": work.pos_label, **_learner(work, method)}
    if methods.training_needs_alpha(method):  # else the rounds serve any alpha, also that of another try
        parts |= methods.tail_of(method, work.settings.alpha)
    if methods.trains_inside(method):
        parts["goals"] = work.enforced
    kept = {"checkpoint": str(work.checkpoint), "callbacks": [pace]}
    estimator = methods.make(method, seed=work.settings.seed, key=work.key, **kept, **parts)
    pace.total = planned_rounds(estimator)
    train = data.splits[TRAIN]
    prepare = _preprocessor(work, method, estimator)
    held_out = {}
    X = prepare.fit_transform(train.X)
    if VALIDATION in data.splits:
        part = data.splits[VALIDATION]
        held_out = {"X_val": prepare.transform(part.X), "y_val": part.y, "sensitive_features_val": part.groups or None}
    if methods.trains_inside(method):  # rounds that train for goals use more than labelled rows
        tables = {}
        for name, one in data.extra.items():  # features for models that take no frame, every column for goals
            columns = {str(column): one.X[column].to_numpy() for column in one.X.columns} | one.groups
            tables[name] = one.table(prepare.transform(one.X)).with_parts(sensitive_features=columns or None)
        held_out |= {"table": train.table(), "datasets": tables, "largest_weight": train.largest_weight}
        held_out |= {"table_val": data.splits[VALIDATION].table()} if VALIDATION in data.splits else {}
    estimator.fit(X, train.y, train.weights, sensitive_features=train.groups or None, **held_out)
    estimator.set_params(checkpoint=None, callbacks=())
    model = piped(prepare, estimator)
    if estimator.mixture != "optimal":
        return model
    work.say("chooses the mixture")
    is_tail = method.parameters.get("objective", CVAR) == CVAR and isinstance(estimator.objective_, CVaR)
    return inside_goals(work, model, alpha=work.settings.alpha if is_tail else None)


def _fit_goals(work: Work) -> Any:
    """Train strong models, keep them, and choose the rules of their scores inside the goals."""
    path = work.checkpoint / TRAINED
    model = kept_model(path, work.say, f"{path.name} of the checkpoint cannot be read; the models are trained again")
    if model is None:
        model = _train_for_goals(work)
        work.keep(model, f"{work.checkpoint.name}/{path.name}")
    return choose_rules(work, model)


def choose_rules(work: Work, model: Any, **changes: Any) -> Any:
    """Return models with the rules of their scores that the settings ask for, but for some changes of these."""
    later = methods.as_values(methods.split_parameters(work.settings.method)[1])
    model.set_params(budget=later.get("budget"))
    options: dict[str, Any] = {"alpha": work.settings.alpha}
    if later.get("objective", CVAR) != CVAR:
        options = {"objective": later["objective"]}
    options |= {"by": later.get("by", ()), "deferral": later.get("deferral", NEVER)}
    return inside_goals(work, model, **options | changes)


def _train_for_goals(work: Work) -> Any:
    """Return strong models with the scores that rules are chosen on; goals wait, so that others need no training."""
    data, model_settings = work.data, methods.models_of(work.settings.method)
    method = work.settings.method.model_copy(update={"parameters": methods.split_parameters(work.settings.method)[0]})
    models = []
    for one in model_settings:
        made = _set_categories(work, one, methods.make(one, seed=work.settings.seed))
        models.append((one.title or methods.describe(one), piped(_preprocessor(work, one, made), made)))
    parts = {"estimator": models, "pos_label": work.pos_label, "confidence": work.confidence}  # a proof keeps rows back
    estimator = methods.make(method, seed=work.settings.seed, key=work.key, **parts)
    train = data.splits[TRAIN]
    held_out: dict[str, Any] = {"largest_weight": train.largest_weight, "ids": train.ids}
    if VALIDATION in data.splits:
        part = data.splits[VALIDATION]
        held_out |= {"X_val": part.X, "y_val": part.y, "sample_weight_val": part.weights, "ids_val": part.ids}
        held_out |= {f"{name}_val": value for name, value in decision_inputs(part).items()}
    with report_progress_to(work.tell):
        estimator.fit(train.X, train.y, train.weights, **decision_inputs(train), **held_out)
    return estimator


def _fit_pool(work: Work) -> Any:
    method, data = work.settings.method, work.data
    pace = Pace(work.tell, len(method.models) * (1 + predictions_per_model(work)))
    titles = [one.title or f"{number}: {methods.describe(one)}" for number, one in enumerate(method.models, start=1)]
    pool = list(zip(titles, train_pool(work, method.models, pace), strict=True))
    parts = {**methods.tail_of(method, work.settings.alpha), "pos_label": work.pos_label}
    mixture = methods.make(method, seed=work.settings.seed, key=work.key, estimators=pool, **parts)
    part = data.splits[data.chosen_on]
    work.say("predicts with each model of the pool")
    mixture.fit(part.X, part.y, part.weights, **decision_inputs(part))
    work.say("chooses the mixture")
    return inside_goals(work, mixture)


def train_pool(work: Work, models: Sequence[ModelSettings], pace: Pace) -> list[Any]:
    """Return models one after the other, and say which of the goals file it was that could not be fitted."""
    pool = []
    for number, one in enumerate(models, start=1):
        try:
            pool.append(_pool_member(work, one, number))
        except (DataError, OSError):
            raise
        except Exception as error:
            line = line_of_model(work.goals_file.decode(errors="replace"), number - 1)
            which, reason = f"method.models[{number}]{line}, {methods.describe(one)}", " ".join(str(error).split())
            raise DataError(f"{which}, cannot be fitted: {type(error).__name__}: {reason}") from error
        pace.step(number, one.title or methods.describe(one))
    return pool


def predictions_per_model(work: Work) -> int:
    """Return how often each model of a pool predicts: to choose the mixture, and for every set of rows."""
    return 1 + len(work.data.splits) + 2 * len(work.data.extra)


@contextmanager
def report_predictions(work: Work) -> Iterator[None]:
    """Report the progress of a pool's predictions, which go on after all of its models are fitted."""
    n_models, numbers = len(work.settings.method.models), count(1)
    pace = Pace(work.tell, n_models * (1 + predictions_per_model(work)))
    pace.resume(n_models)
    if work.settings.method.name != methods.POOL:
        yield
        return
    with notify_on_prediction(
        lambda: pace.step(min(n_models + next(numbers), pace.total), "predicting with each model of the pool")
    ):
        yield


def kept_model(path: Path, say: Say, damaged: str) -> Any:
    """Return the model that an earlier fit kept; None where there is none, or, as ``say`` reports, it is unreadable."""
    try:
        return persist.load(path) if path.exists() else None
    except persist.UnreadableModel:  # damaged, or of another version of the library
        say(damaged)
        return None


def _pool_member(work: Work, settings: ModelSettings, number: int) -> Any:
    """Return a model of the pool: from the checkpoint where it was fitted before, else fitted and kept there."""
    if settings.name == methods.DEPLOYED:
        return work.data.deployed
    path = work.checkpoint / f"model-{number:03}.cp"
    kept = kept_model(path, work.say, f"{path.name} of the checkpoint cannot be read; the model is fitted again")
    if kept is not None:
        return kept
    tail = methods.tail_of(settings, work.settings.alpha) if methods.METHODS[settings.name].does == "mixes" else {}
    key = partial(work.key, f"model {number}")
    model = _fit_pipeline(work, settings, methods.make(settings, seed=work.settings.seed + number, key=key, **tail))
    work.keep(model, f"{work.checkpoint.name}/{path.name}")
    return model


def _fit_pipeline(work: Work, settings: MethodSettings | ModelSettings, estimator: Any) -> Any:
    """Fit an estimator behind its preprocessing, with whatever its ``fit`` can use of weights, groups and datasets."""
    train = work.data.splits[TRAIN]
    estimator = _set_categories(work, settings, estimator)
    prepare = _preprocessor(work, settings, estimator)
    X = prepare.fit_transform(train.X)
    fit_arguments: dict[str, Any] = {}
    if train.weights is not None and has_fit_parameter(estimator, "sample_weight"):
        fit_arguments["sample_weight"] = train.weights
    elif train.weights is not None:
        work.say(f"{methods.describe(settings)} does not support sample weights: all rows count alike")
    if has_fit_parameter(estimator, "datasets"):
        tables = {name: one.table(prepare.transform(one.X)) for name, one in work.data.extra.items()}
        fit_arguments |= {"sensitive_features": train.groups or None, "datasets": tables}
        fit_arguments |= {"largest_weight": train.largest_weight}
        fit_arguments |= {"baseline": train.baseline} if has_fit_parameter(estimator, "baseline") else {}
    elif has_fit_parameter(estimator, "X_val") and VALIDATION in work.data.splits:
        part = work.data.splits[VALIDATION]
        fit_arguments |= {"X_val": prepare.transform(part.X), "y_val": part.y}
    estimator.fit(X, train.y, **fit_arguments)
    return piped(prepare, estimator)


def _preprocessor(work: Work, settings: MethodSettings | ModelSettings, estimator: Any) -> Any:
    how, takes_missing = work.settings.preprocessing, bool(get_tags(estimator).input_tags.allow_nan)
    return preprocessor(how, work.data.columns, wanted_features(settings), takes_missing=takes_missing)


def _learner(work: Work, method: MethodSettings) -> dict[str, Any]:
    """Return the base learner of a booster, with the places of categories where it wants them."""
    settings = method.learner
    if settings is None:  # boosters have their own
        return {}
    learner = methods.make(settings, seed=work.settings.seed, key=partial(work.key, "learner"))
    return {"estimator": _set_categories(work, settings, learner)}


def _set_categories(work: Work, settings: MethodSettings | ModelSettings, estimator: Any) -> Any:
    how, names, features = work.settings.preprocessing, work.data.columns.categorical, wanted_features(settings)
    is_coded = features == "trees" and how.categorical in {"auto", "ordinal"} and how.missing != "impute"
    if is_coded and names and hasattr(estimator, "categorical_features"):  # which trees split by subset
        estimator.set_params(categorical_features=list(range(len(names))))
    if isinstance(getattr(estimator, "class_weight", None), dict):
        estimator.set_params(class_weight=_class_weights(estimator, work.data.classes, settings))
    return estimator


def _class_weights(estimator: Any, classes: AnyArray, settings: MethodSettings | ModelSettings) -> dict[Any, float]:
    """Return weights by class as a model takes them: keys of TOML are texts, whatever the labels are."""
    codes = {str(label): code for code, label in enumerate(classes.tolist())}
    unknown = next((name for name in estimator.class_weight if str(name) not in codes), None)
    if unknown is not None:
        raise DataError(
            f"parameters.class_weight of {methods.kind_of(settings).title} must name classes, "
            f"{listed(classes.tolist(), most=10)}; got {unknown!r}."
        )
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415 - heavy

    by_code = isinstance(estimator, HistGradientBoostingClassifier)  # which uses the codes of the classes
    weights = {codes[str(name)]: float(weight) for name, weight in estimator.class_weight.items()}
    every = {code: weights.get(code, 1.0) for code in codes.values()}
    return {code if by_code else classes.tolist()[code]: weight for code, weight in every.items()}


def piped(prepare: Any, estimator: Any) -> Any:
    """Return a model that prepares raw frames for an estimator."""
    return Pipeline([("preprocess", prepare), ("model", estimator)])
