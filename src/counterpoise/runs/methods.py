"""The methods that a goals file can name, their parameters, and how each is made.

A method is looked up by name in one table. Its parameters are those of its class, but for what other keys of the file
say (alpha, goals, seed, ...). Everything is checked before data are read.
"""

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from counterpoise._base.words import did_you_mean
from counterpoise.runs.quantities import CVAR
from counterpoise.runs.settings import MethodSettings, ModelSettings

GOALS, POOL, DEPLOYED = "goals", "pool", "deployed"
_SAID_ELSEWHERE = {
    "alpha": "alpha at the top of the file",
    "goals": "goals at the top of the file",
    "random_state": "seed at the top of the file",
    "key": "nothing: a run draws its own and keeps it",
    "pos_label": "data.positive",
    "estimator": "method.learner",
    "estimators": "method.models",
    "checkpoint": "nothing: runs keep checkpoints by themselves",
    "callbacks": "nothing: callables cannot stand in a file",
    "categorical_features": "data.categorical",
    "kernel_params": "nothing: it cannot stand in a file",
}


class Kind(NamedTuple):
    """What a method is made of, and what it can do."""

    home: str  # module
    name: str  # class
    features: str  # "trees": ordinal categories and missing values as they are; "scaled": imputed, scaled, one-hot
    does: str  # "mixes": a mixture chosen inside goals; "trains": trained inside goals; "plain": neither
    title: str
    defaults: dict[str, Any] = {}  # noqa: RUF012 - never changed
    boosts: bool = False  # takes a base learner
    crosses: bool = False  # chooses on folds of the rows that train, where no others are set aside for it


_BOOSTING = "counterpoise.boosting."
_NEIGHBOURS = {"n_neighbors": 15, "algorithm": "brute"}  # a search tree cannot be stored without pickle
METHODS = {
    GOALS: Kind(
        "counterpoise.mixtures.goal", "GoalClassifier", "each", "mixes", "strong model inside goals", crosses=True
    ),
    "adalpboost": Kind(_BOOSTING + "adalpboost", "AdaLPBoostClassifier", "trees", "mixes", "AdaLPBoost", boosts=True),
    "lpboost": Kind(_BOOSTING + "lpboost", "LPBoostClassifier", "trees", "mixes", "LPBoost", boosts=True),
    POOL: Kind("counterpoise.mixtures.mixture", "MixtureClassifier", "each", "mixes", "mixture of a pool"),
    "constrained": Kind(
        "counterpoise.constrained", "ConstrainedClassifier", "scaled", "trains", "linear model trained inside goals"
    ),
    "adaboost": Kind(_BOOSTING + "adaboost", "AdaBoostClassifier", "trees", "plain", "AdaBoost", boosts=True),
    "vadaboost": Kind(_BOOSTING + "vadaboost", "VadaBoostClassifier", "trees", "plain", "VadaBoost", boosts=True),
    "ebboost": Kind(_BOOSTING + "ebboost", "EBBoostClassifier", "trees", "plain", "EBBoost", boosts=True),
    "rlpboost": Kind(_BOOSTING + "margin_boost", "RLPBoostClassifier", "trees", "plain", "RLP-Boost", boosts=True),
    "rqpboost": Kind(_BOOSTING + "margin_boost", "RQPBoostClassifier", "trees", "plain", "RQP-Boost", boosts=True),
    "droboost": Kind(_BOOSTING + "dro", "DROBoostClassifier", "trees", "plain", "DRO-Boosting", boosts=True),
    "histogram_tree": Kind("counterpoise.learners", "HistogramTree", "trees", "plain", "histogram tree"),
    "stump": Kind("counterpoise.learners", "Stump", "trees", "plain", "stump"),
    "logistic": Kind(
        "sklearn.linear_model", "LogisticRegression", "scaled", "plain", "logistic regression", {"max_iter": 1000}
    ),
    "tree": Kind("sklearn.tree", "DecisionTreeClassifier", "trees", "plain", "decision tree", {"min_samples_leaf": 20}),
    "forest": Kind(
        "sklearn.ensemble", "RandomForestClassifier", "trees", "plain", "random forest", {"min_samples_leaf": 5}
    ),
    "extra_trees": Kind(
        "sklearn.ensemble", "ExtraTreesClassifier", "trees", "plain", "extra trees", {"min_samples_leaf": 5}
    ),
    "gradient_boosting": Kind(
        "sklearn.ensemble", "HistGradientBoostingClassifier", "trees", "plain", "gradient boosting"
    ),
    "lightgbm": Kind("lightgbm", "LGBMClassifier", "trees", "plain", "LightGBM", {"verbose": -1}),
    "naive_bayes": Kind("sklearn.naive_bayes", "GaussianNB", "scaled", "plain", "naive Bayes"),
    "nearest_neighbours": Kind(
        "sklearn.neighbors", "KNeighborsClassifier", "scaled", "plain", "nearest neighbours", _NEIGHBOURS
    ),
    "svm": Kind("sklearn.svm", "SVC", "scaled", "plain", "support vector machine"),
}
_ONLY_METHODS = (GOALS, POOL, "constrained")
_OF_MODELS = (GOALS, POOL)  # methods that name models
_STRONG = ModelSettings(name="gradient_boosting")
_CHOSEN_LATER = (
    "objective",
    "by",
    "budget",
    "defer_cost",
    "defer_label",
)  # parameters of GOALS that no training depends on
_AS_IT_IS = Kind("", "", "each", "plain", "deployed model")  # read from its file: neither made nor fitted

Found = Iterator[tuple[Sequence[Any], str]]  # keys below the table, and what is wrong there


def models() -> list[str]:
    """Return the names that can stand in a pool or be a base learner."""
    return [name for name in METHODS if name not in _ONLY_METHODS]


def models_of(asked: MethodSettings) -> list[ModelSettings]:
    """Return the models that a method names; a strong one where it may name some, and names none."""
    return asked.models or ([_STRONG] if asked.name == GOALS else [])


def split_parameters(asked: MethodSettings) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters that training depends on, and those of the choice after it."""
    later = {name: asked.parameters[name] for name in _CHOSEN_LATER if asked.name == GOALS and name in asked.parameters}
    return {name: value for name, value in asked.parameters.items() if name not in later}, later


def defers(asked: MethodSettings) -> bool:
    """Tell whether a method may leave rows to a person."""
    return asked.parameters.get("defer_cost") is not None


def has_scores(asked: MethodSettings) -> bool:
    """Tell whether a method mixes rules of the scores of its models."""
    return asked.name == GOALS or (asked.name == POOL and bool(asked.parameters.get("scores")))


def kind_of(asked: ModelSettings | MethodSettings) -> Kind:
    """Return what a method or a model of a pool is."""
    return _AS_IT_IS if asked.name == DEPLOYED else METHODS[asked.name]


def make(
    asked: ModelSettings | MethodSettings, *, seed: int, key: Callable[[], bytes] | None = None, **parts: Any
) -> Any:
    """Return the unfitted estimator, with a key if it draws; ``parts`` are what other keys of the file say, and win."""
    kind = METHODS[asked.name]
    made = _class_of(kind)(**parts, **kind.defaults | _values(asked.parameters))
    if "random_state" in made.get_params(deep=False):
        made.set_params(random_state=seed)
    if key is not None and "key" in made.get_params(deep=False):
        made.set_params(key=key())
    return made


def tail_of(asked: ModelSettings | MethodSettings, alpha: float) -> dict[str, Any]:
    """Return the tail of the file as a parameter of a method that mixes, unless it has an objective of its own."""
    has_own = asked.parameters.get("objective", CVAR) != CVAR or asked.parameters.get("reweigh") == "groups"
    return {} if has_own else {"alpha": alpha}


def training_needs_alpha(asked: MethodSettings) -> bool:
    """Tell whether models depend on alpha; those of AdaLPBoost do not, unless something stops its rounds by it."""
    has_patience = asked.parameters.get("stopping", {}).get("patience") is not None
    fixed = asked.name == "lpboost" or has_patience or "mixture" in asked.parameters
    return fixed or any(kind_of(one).does == "mixes" for one in asked.models)


def trains_inside(asked: MethodSettings) -> bool:
    """Tell whether the rounds of a booster train for the goals of the file, so that other goals are other rounds."""
    return asked.name == "lpboost" and asked.enforce_goals and asked.parameters.get("beta") is None


def describe(asked: ModelSettings | MethodSettings) -> str:
    """Return a method or model in words, with the parameters that were set."""
    chosen = ", ".join(f"{name} = {value!r}" for name, value in asked.parameters.items())
    return kind_of(asked).title + (f" with {chosen}" if chosen else "")


def check_method(asked: MethodSettings) -> Found:
    """Yield what is wrong with the method: unknown names and parameters, parts that do not go together, bad values."""
    if asked.name not in METHODS:
        yield ("name",), _unknown("method", asked.name, list(METHODS))
        return
    if asked.name == POOL and not asked.models:
        yield ("models",), 'the method "pool" needs models, as in [[method.models]] name = "logistic"; got none.'
    if asked.name not in _OF_MODELS and asked.models:
        yield ("models",), f'models are for the methods "goals" and "pool"; got them with {asked.name!r}.'
    if asked.learner is not None and not METHODS[asked.name].boosts:
        yield ("learner",), f"a learner is for boosters; got one with {asked.name!r}."
    named = [(("models", number), one) for number, one in enumerate(asked.models)]
    if asked.learner is not None:
        named.append((("learner",), asked.learner))  # type: ignore[arg-type]  # keys of another length
    for key, one in named:
        known = [*models(), DEPLOYED] if asked.name == POOL and one is not asked.learner else models()
        if one.name not in known:
            yield (*key, "name"), _unknown("model", one.name, known)
            return
        yield from (((*key, *inner), message) for inner, message in _check_parameters(one))
    yield from _check_parameters(asked)


def _check_parameters(asked: ModelSettings | MethodSettings) -> Found:
    kind = kind_of(asked)
    if kind is _AS_IT_IS:
        if asked.parameters:
            yield ("parameters",), "the deployed model is taken as it is; got parameters."
        return
    try:
        accepted = _class_of(kind)([]) if asked.name == POOL else _class_of(kind)()
    except ImportError:
        yield ("name",), f"{asked.name} needs the package {kind.home}, which is not installed: pip install {kind.home}."
        return
    names = [name for name in accepted.get_params(deep=False) if name not in _SAID_ELSEWHERE]
    for name in asked.parameters:
        if name in names:
            continue
        if name in _SAID_ELSEWHERE:
            yield ("parameters", name), f"{name} is set by {_SAID_ELSEWHERE[name]}; got it as a parameter."
        else:
            yield ("parameters", name), _unknown(f"parameter of {asked.name}", name, names)
        return
    if "stopping" in names and "stopping" in asked.parameters:
        message = _bad_stopping(asked.parameters["stopping"])
        if message:
            yield ("parameters", "stopping"), message
            return
    message = _bad_value(accepted.set_params(**kind.defaults | _values(asked.parameters)))
    if message:
        yield ("parameters",), message


def _values(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters as an estimator takes them: the table ``stopping`` of a booster is a ``Stopping``."""
    from counterpoise.boosting.stopping import Stopping  # noqa: PLC0415 - with scikit-learn, which takes a while

    asked = parameters.get("stopping")
    return parameters if asked is None else parameters | {"stopping": Stopping(**asked)}


def _bad_stopping(asked: Any) -> str:
    """Return what is wrong with the table ``stopping``."""
    from counterpoise.boosting.stopping import Stopping  # noqa: PLC0415 - as above

    known = ["patience", "n_folds"]
    if not isinstance(asked, dict):
        return f"stopping is a table, as in stopping = {{ patience = 10 }}; got {asked!r}."
    for name in asked:
        if name == "validation_fraction":
            return "validation_fraction is set by splits.validation; got it as a part of stopping."
        if name not in known:
            return _unknown("part of stopping", name, known)
    try:
        Stopping(**asked)
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


def _bad_value(estimator: Any) -> str:
    """Return what an estimator says against its parameters; every kind has its own way to check them."""
    own = getattr(estimator, "_check_parameters", getattr(estimator, "_check_shared_parameters", None))
    check = estimator._validate_params if hasattr(estimator, "_parameter_constraints") else own  # noqa: SLF001
    try:
        if check is not None:  # trees of ours check theirs when they are fitted
            check()
    except (TypeError, ValueError) as error:  # scikit-learn's own error is a ValueError
        return str(error)
    return ""


def _unknown(kind: str, name: str, known: Sequence[str]) -> str:
    return f"unknown {kind} {name!r}.{did_you_mean(name, known)} Known: {', '.join(known)}."


def _class_of(kind: Kind) -> Any:
    return getattr(import_module(kind.home), kind.name)
