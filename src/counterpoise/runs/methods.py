"""The methods that a goals file can name, their parameters, and how each is made.

A method is looked up by name in one table. Its parameters are those of its class, but for what other keys of the file
say (alpha, goals, seed, ...). Everything is checked before data are read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from importlib import import_module
from typing import Any, NamedTuple

from counterpoise._base.text import did_you_mean
from counterpoise.runs.results import CVAR
from counterpoise.runs.settings import MethodSettings, ModelSettings

GOALS, POOL, DEPLOYED = "goals", "pool", "deployed"
_SET_ELSEWHERE = {
    "alpha": "alpha at the top of the file",
    "goals": "goals at the top of the file",
    "random_state": "seed at the top of the file",
    "pos_label": "data.positive",
    "estimator": "method.learner",
    "estimators": "method.models",
    "checkpoint": "nothing: runs keep checkpoints by themselves",
    "callbacks": "nothing: a file cannot hold callables",
    "categorical_features": "data.categorical",
    "kernel_params": "nothing: a file cannot hold it",
}


class Method(NamedTuple):
    """What a method is made of, and what it can do."""

    home: str  # module
    name: str  # class
    title: str
    features: str = "trees"  # ordinal categories and missing values as they are; "scaled": imputed, scaled, one-hot
    does: str = "plain"  # "mixes": a mixture chosen inside goals; "trains": trained inside goals; "plain": neither
    defaults: dict[str, Any] = {}  # noqa: RUF012 - never changed
    boosts: bool = False  # takes a base learner
    crosses: bool = False  # chooses on folds of the rows that train, where no others are set aside for it


_OURS = "counterpoise"
_NEIGHBOURS = {"n_neighbors": 15, "algorithm": "brute"}  # a search tree cannot be stored without pickle
METHODS = {
    GOALS: Method(_OURS, "GoalClassifier", "strong model inside goals", "each", "mixes", crosses=True),
    "adalpboost": Method(_OURS, "AdaLPBoostClassifier", "AdaLPBoost", does="mixes", boosts=True),
    "lpboost": Method(_OURS, "LPBoostClassifier", "LPBoost", does="mixes", boosts=True),
    POOL: Method(_OURS, "MixtureClassifier", "mixture of a pool", "each", "mixes"),
    "constrained": Method(_OURS, "ConstrainedClassifier", "linear model trained inside goals", "scaled", "trains"),
    "adaboost": Method(_OURS, "AdaBoostClassifier", "AdaBoost", boosts=True),
    "vadaboost": Method(_OURS, "VadaBoostClassifier", "VadaBoost", boosts=True),
    "ebboost": Method(_OURS, "EBBoostClassifier", "EBBoost", boosts=True),
    "rlpboost": Method(_OURS, "RLPBoostClassifier", "RLP-Boost", boosts=True),
    "rqpboost": Method(_OURS, "RQPBoostClassifier", "RQP-Boost", boosts=True),
    "droboost": Method(_OURS, "DROBoostClassifier", "DRO-Boosting", boosts=True),
    "histogram_tree": Method(f"{_OURS}.learners", "HistogramTree", "histogram tree"),
    "stump": Method(f"{_OURS}.learners", "Stump", "stump"),
    "logistic": Method(
        "sklearn.linear_model", "LogisticRegression", "logistic regression", "scaled", defaults={"max_iter": 1000}
    ),
    "tree": Method("sklearn.tree", "DecisionTreeClassifier", "decision tree", defaults={"min_samples_leaf": 20}),
    "forest": Method("sklearn.ensemble", "RandomForestClassifier", "random forest", defaults={"min_samples_leaf": 5}),
    "extra_trees": Method("sklearn.ensemble", "ExtraTreesClassifier", "extra trees", defaults={"min_samples_leaf": 5}),
    "gradient_boosting": Method("sklearn.ensemble", "HistGradientBoostingClassifier", "gradient boosting"),
    "lightgbm": Method("lightgbm", "LGBMClassifier", "LightGBM", defaults={"verbose": -1}),
    "naive_bayes": Method("sklearn.naive_bayes", "GaussianNB", "naive Bayes", "scaled"),
    "nearest_neighbours": Method(
        "sklearn.neighbors", "KNeighborsClassifier", "nearest neighbours", "scaled", defaults=_NEIGHBOURS
    ),
    "svm": Method("sklearn.svm", "SVC", "support vector machine", "scaled"),
}
_ONLY_METHODS = (GOALS, POOL, "constrained")
_OF_MODELS = (GOALS, POOL)  # methods that name models
_STRONG = ModelSettings(name="gradient_boosting")
_DRAWN = ("sticky", "ramp")  # decisions by draws that a key makes
_CHOSEN_LATER = ("objective", "by", "budget", "deferral")  # parameters of GOALS that no training depends on
# Parameters that are values of several parts: a goals file writes them as a table, such as { cost = 0.2 }.
_VALUES = {"deferral": "Deferral", "by": "Groups", "stopping": "Stopping"}
_TABLES = {"deferral": "{ cost = 0.2 }", "stopping": "{ patience = 10 }"}  # those that have no shorter form
_AS_IT_IS = Method("", "", "deployed model", "each")  # read from its file: neither made nor fitted

Faults = Iterator[tuple[Sequence[Any], str]]  # keys below the table, and what is wrong there


def models() -> list[str]:
    """Return the names that can stand in a pool or be a base learner."""
    return [name for name in METHODS if name not in _ONLY_METHODS]


def models_of(method: MethodSettings) -> list[ModelSettings]:
    """Return the models that a method names; a strong one where it may name some, and names none."""
    return method.models or ([_STRONG] if method.name == GOALS else [])


def split_parameters(method: MethodSettings) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters that training depends on, and those of the choice after it."""
    later = _CHOSEN_LATER if method.name == GOALS else ()
    training = {name: value for name, value in method.parameters.items() if name not in later}
    return training, {name: value for name, value in method.parameters.items() if name in later}


def defers(method: MethodSettings) -> bool:
    """Tell whether a method may leave rows to a person."""
    return method.parameters.get("deferral") is not None


def as_values(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as the classes take them, made from the tables of a goals file.

    Examples
    --------
    >>> from counterpoise.runs.methods import as_values
    >>> as_values({"deferral": {"cost": 0.2}, "budget": 0.01})
    {'deferral': Deferral(cost=0.2, label='defer', error=0.0), 'budget': 0.01}
    """
    return {
        name: _value(name, value) if name in _VALUES and isinstance(value, Mapping) else value
        for name, value in parameters.items()
    }


def _value(name: str, table: Mapping[str, Any]) -> Any:
    kind = getattr(import_module(_OURS), _VALUES[name])
    known = [field.name for field in fields(kind)]
    for key in table:
        if key not in known:
            raise ValueError(f"{name}: unknown key {key!r}.{did_you_mean(key, known)} Known: {', '.join(known)}.")
    missing = [field.name for field in fields(kind) if field.default is MISSING and field.name not in table]
    if missing:
        raise ValueError(f"{name} must have the key {missing[0]!r}; got {dict(table)!r}.")
    return kind(**table)


def kind_of(settings: ModelSettings | MethodSettings) -> Method:
    """Return what a method or a model of a pool is."""
    return _AS_IT_IS if settings.name == DEPLOYED else METHODS[settings.name]


def make(
    settings: ModelSettings | MethodSettings, *, seed: int, key: Callable[[], bytes] | None = None, **parts: Any
) -> Any:
    """Return the unfitted estimator, with a key if it draws; ``parts`` are what other keys of the file say, and win."""
    kind = METHODS[settings.name]
    estimator = _class_of(kind)(**parts, **kind.defaults | as_values(settings.parameters))
    if "random_state" in estimator.get_params(deep=False):
        estimator.set_params(random_state=seed)
    if key is not None and getattr(estimator, "decision", None) in _DRAWN:
        from counterpoise.rules.options import Draws  # noqa: PLC0415 - with scikit-learn, which takes a while

        estimator.set_params(decision=Draws(key()))
    return estimator


def tail_of(settings: ModelSettings | MethodSettings, alpha: float) -> dict[str, Any]:
    """Return the tail of the file as a parameter of a method that mixes, unless it has an objective of its own."""
    has_own = settings.parameters.get("objective", CVAR) != CVAR or settings.parameters.get("reweigh") == "groups"
    return {} if has_own else {"alpha": alpha}


def training_needs_alpha(method: MethodSettings) -> bool:
    """Tell whether models depend on alpha; those of AdaLPBoost do not, unless something stops its rounds by it."""
    has_patience = method.parameters.get("stopping", {}).get("patience") is not None
    fixed = method.name == "lpboost" or has_patience or "mixture" in method.parameters
    return fixed or any(kind_of(one).does == "mixes" for one in method.models)


def trains_inside(method: MethodSettings) -> bool:
    """Tell whether the rounds of a booster train for the goals of the file, so that other goals are other rounds."""
    return method.name == "lpboost" and method.enforce_goals and method.parameters.get("beta") is None


def describe(settings: ModelSettings | MethodSettings) -> str:
    """Return a method or model in words, with the parameters that were set."""
    chosen = ", ".join(f"{name} = {value!r}" for name, value in settings.parameters.items())
    return kind_of(settings).title + (f" with {chosen}" if chosen else "")


def check_method(method: MethodSettings) -> Faults:
    """Yield what is wrong with the method: unknown names and parameters, parts that do not go together, bad values."""
    if method.name not in METHODS:
        yield ("name",), _unknown("method", method.name, list(METHODS))
        return
    if method.name == POOL and not method.models:
        yield ("models",), 'the method "pool" needs models, as in [[method.models]] name = "logistic"; got none.'
    if method.name not in _OF_MODELS and method.models:
        yield ("models",), f'models are for the methods "goals" and "pool"; got them with {method.name!r}.'
    if method.learner is not None and not METHODS[method.name].boosts:
        yield ("learner",), f"a learner is for boosters; got one with {method.name!r}."
    named = [(("models", number), one) for number, one in enumerate(method.models)]
    if method.learner is not None:
        named.append((("learner",), method.learner))  # type: ignore[arg-type]  # keys of another length
    for key, one in named:
        known = [*models(), DEPLOYED] if method.name == POOL and one is not method.learner else models()
        if one.name not in known:
            yield (*key, "name"), _unknown("model", one.name, known)
            return
        yield from (((*key, *inner), message) for inner, message in _check_parameters(one))
    yield from _check_parameters(method)


def _check_parameters(settings: ModelSettings | MethodSettings) -> Faults:
    kind = kind_of(settings)
    if kind is _AS_IT_IS:
        if settings.parameters:
            yield ("parameters",), "the deployed model takes no parameters; got some."
        return
    try:
        accepted = _class_of(kind)([]) if settings.name == POOL else _class_of(kind)()
    except ImportError as error:
        install = f"{settings.name} needs the package {kind.home}. Install it: pip install {kind.home}."
        yield ("name",), f"{error}." if kind.home.startswith(_OURS) else install
        return
    elsewhere = _SET_ELSEWHERE | ({"confidence": "confidence at the top of the file"} if settings.name == GOALS else {})
    names = [name for name in accepted.get_params(deep=False) if name not in elsewhere]
    for name in settings.parameters:
        if name in names:
            continue
        if name in elsewhere:
            yield ("parameters", name), f"{name} is set by {elsewhere[name]}; got it as a parameter."
        else:
            yield ("parameters", name), _unknown(f"parameter of {settings.name}", name, names)
        return
    yield from _value_faults(accepted, kind.defaults | settings.parameters)


def _value_faults(estimator: Any, parameters: dict[str, Any]) -> Faults:
    """Yield what an estimator says against parameters; every kind has its own way to check them."""
    for name, example in _TABLES.items():
        table = parameters.get(name, {})
        if not isinstance(table, Mapping):
            yield ("parameters", name), f"{name} is a table, as in {name} = {example}; got {table!r}."
            return
        if "validation_fraction" in table:
            message = "validation_fraction is set by splits.validation; got it as a part of stopping."
            yield ("parameters", name), message
            return
    own = getattr(estimator, "check_parameters", None)
    check = estimator._validate_params if hasattr(estimator, "_parameter_constraints") else own  # noqa: SLF001
    try:
        estimator.set_params(**as_values(parameters))
        if check is not None:  # trees of ours check theirs when they are fitted
            check()
    except (TypeError, ValueError) as error:  # scikit-learn's own error is a ValueError
        yield ("parameters",), str(error)


def _unknown(kind: str, name: str, known: Sequence[str]) -> str:
    return f"unknown {kind} {name!r}.{did_you_mean(name, known)} Known: {', '.join(known)}."


def _class_of(kind: Method) -> Any:
    return getattr(import_module(kind.home), kind.name)
