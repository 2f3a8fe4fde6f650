"""Probabilities, answers and scores of each kind of model as operators of ONNX.

``probabilities`` are a matrix with a column for each of the model's own classes, ``answers`` the same with a single 1.0
in each row: where ``predict`` of the model puts it.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.persist.container import UnstorableModel
from counterpoise.persist.onnx.graph import Graph, Rows
from counterpoise.persist.onnx.libraries import catboost_odds, converted_probabilities, lightgbm_odds, xgboost_odds
from counterpoise.persist.onnx.steps import transform
from counterpoise.persist.onnx.trees import PlainTree, of_decision_tree, of_histogram_tree, of_predictor

WriteOutput = Callable[[Graph, Rows, Any], str]  # a graph, its rows and a model: the name of the output
_BINARY = 2
_VOTERS = ("Ada", "Vada", "EB", "RLP", "RQP", "DRO")  # boosters whose models vote
_LEAST = 2.0**-60  # a probability below this counts as this, as in AveragedClassifier
_WHAT_CAN = (
    "you can export trees of counterpoise; trees, forests, histogram gradient boosting without categories, GaussianNB, "
    "MLPClassifier and linear models of scikit-learn; those of LightGBM, XGBoost and CatBoost; pipelines of these with "
    "scalers, encoders, imputers and ColumnTransformer; boosters and mixtures of these, rules of their scores for two "
    "classes, and a linear ConstrainedClassifier. Or run the model in Python and export its rules alone: see the guide "
    "'Bring your scores, leave with thresholds'"
)


class Translator(NamedTuple):
    """The functions that write the outputs of a class of models; None where it has no such output, or none here.

    Where answers have no function of their own, they follow from the scores, or else from the probabilities.
    """

    probabilities: WriteOutput | None
    scores: WriteOutput | None = None  # of the second of two classes, a column; or of each class
    answers: WriteOutput | None = None


def decision_shares(graph: Graph, rows: Rows, model: Any) -> str:
    """Return ``decision_proba`` of a model's classes, or ``predict_proba`` where it has no decisions."""
    if hasattr(model, "mixture_"):
        return _of_mixture(graph, rows, model)
    if getattr(model, "decision", None) == "fixed":
        return answers(graph, rows, model)
    return probabilities(graph, rows, model)


def probabilities(graph: Graph, rows: Rows, model: Any) -> str:
    """Return ``predict_proba`` of a model."""
    write = _kind_of(model).probabilities
    if write is None or not hasattr(model, "predict_proba"):
        raise UnstorableModel(f"a {type(model).__name__} has no probabilities: {_WHAT_CAN}")
    return write(graph, rows, model)


def answers(graph: Graph, rows: Rows, model: Any) -> str:
    """Return ``predict`` of a model, as a single 1.0 in each row."""
    kind, n_classes = _kind_of(model), len(model.classes_)
    if getattr(model, "decision", "fixed") not in ("vote", "fixed"):
        raise UnstorableModel(
            f"a model of the mixture is a {type(model).__name__} that draws its decisions, and ONNX models cannot "
            "draw: set decision='vote' in it"
        )
    if kind.answers is not None:
        return kind.answers(graph, rows, model)
    if kind.scores is None:
        return graph.is_largest(probabilities(graph, rows, model), n_classes)
    scores = kind.scores(graph, rows, model)
    if n_classes == _BINARY:
        return graph.with_complement(graph.is_above(scores, np.array(0.0)))
    return graph.is_largest(scores, n_classes)


def _kind_of(model: Any) -> Translator:
    library = type(model).__module__.split(".", maxsplit=1)[0]
    kind = _KINDS.get(f"{library}.{type(model).__name__}")
    if kind is None and hasattr(model, "best_estimator_"):
        raise UnstorableModel(f"a {type(model).__name__} is a search: export its best_estimator_")
    if kind is None or not isinstance(getattr(model, "classes_", None), np.ndarray):  # several outputs have a list
        raise UnstorableModel(f"a {type(model).__name__} of {library} is not supported; {_WHAT_CAN}")
    return kind


def _tree_of(model: Any) -> tuple[PlainTree, AnyArray]:
    """Return a model that is one tree, with the shares of the classes as its values, and the places of its answers."""
    if type(model).__module__.startswith("sklearn."):
        tree = of_decision_tree(model.tree_)
        return tree, tree.values.argmax(axis=1)
    return of_histogram_tree(model.tree_), model.tree_.labels


def _of_tree(graph: Graph, rows: Rows, model: Any) -> str:
    tree, _ = _tree_of(model)
    return graph.sum_of_leaves(rows, [tree])


def _tree_answers(graph: Graph, rows: Rows, model: Any) -> str:
    return sum_answers(graph, rows, [(model, np.eye(len(model.classes_)))])


def _of_forest(graph: Graph, rows: Rows, model: Any) -> str:
    total = graph.sum_of_leaves(rows, [of_decision_tree(tree.tree_) for tree in model.estimators_])
    return graph.add("Div", total, np.array(float(len(model.estimators_))))


def _of_gradient_boosting(graph: Graph, rows: Rows, model: Any) -> str:
    if model.is_categorical_ is not None:
        raise UnstorableModel(f"a {type(model).__name__} with categorical features is not supported; {_WHAT_CAN}")
    rounds = model._predictors  # noqa: SLF001 - of a kind that is known
    sums = np.eye(len(rounds[0]))
    trees = [
        tree._replace(values=tree.values * sums[place])
        for predictors in rounds
        for place, tree in enumerate(of_predictor(predictor.nodes) for predictor in predictors)
    ]
    start = np.asarray(model._baseline_prediction, dtype=np.float64).reshape(1, -1)  # noqa: SLF001 - as above
    return _by_log_odds(graph, graph.add("Add", graph.sum_of_leaves(rows, trees), start), len(model.classes_))


def _by_log_odds(graph: Graph, odds: str, n_classes: int) -> str:
    """Return probabilities from log odds of the second class, or from those of each."""
    if n_classes == _BINARY:
        return graph.with_complement(graph.add("Sigmoid", odds))
    return graph.add("Softmax", odds, axis=1)


def _of_average(graph: Graph, rows: Rows, model: Any) -> str:
    """Return the probabilities whose log-odds are the means of those of several models."""
    least = np.array(_LEAST)
    logs = [graph.add("Log", graph.add("Max", probabilities(graph, rows, member), least)) for member in model.models]
    mean = graph.add("Div", graph.total(logs), np.array(float(len(logs))))
    return graph.add("Softmax", mean, axis=1)


def _linear_scores(graph: Graph, rows: Rows, model: Any) -> str:
    weights, offsets = np.atleast_2d(model.coef_).T.astype(np.float64), np.atleast_1d(model.intercept_)
    return graph.add("Add", graph.add("MatMul", graph.matrix(rows), weights), offsets.astype(np.float64).reshape(1, -1))


def _of_logistic(graph: Graph, rows: Rows, model: Any) -> str:
    return _by_log_odds(graph, _linear_scores(graph, rows, model), len(model.classes_))


def _of_ramp(graph: Graph, rows: Rows, model: Any) -> str:
    scores = graph.add("Add", _constrained_scores(graph, rows, model), np.array(0.5 + float(model.threshold_)))
    return graph.with_complement(graph.add("Clip", scores, np.array(0.0), np.array(1.0)))


def _constrained_scores(graph: Graph, rows: Rows, model: Any) -> str:
    if model.kernel != "linear":
        raise UnstorableModel(
            f"a {type(model).__name__} with the kernel {model.kernel!r} is not supported; {_WHAT_CAN}"
        )
    return _linear_scores(graph, rows, model)


def _constrained_decision(graph: Graph, rows: Rows, model: Any) -> str:
    shift = 0.0 if model.decision == "fixed" else float(model.threshold_)
    return graph.add("Add", _constrained_scores(graph, rows, model), np.array(shift))


def _behind_steps(write: WriteOutput) -> WriteOutput:
    """Apply a function to the last step of a pipeline and to rows that the other steps have transformed."""

    def write_last(graph: Graph, rows: Rows, model: Any) -> str:
        for _, step in model.steps[:-1]:
            rows = transform(graph, rows, step)
        return write(graph, rows, model.steps[-1][1])

    return write_last


def sum_answers(graph: Graph, rows: Rows, pairs: Iterable[tuple[Any, FloatArray]]) -> str:
    """Return sums over models: each adds the row of its weights, of shape (n_classes, n_sums), that it answers with."""
    trees, terms = list[PlainTree](), list[str]()
    for model, weights in pairs:
        if _kind_of(model) is _TREE:
            tree, labels = _tree_of(model)
            trees.append(tree._replace(values=weights[labels]))
        else:
            terms.append(graph.add("MatMul", answers(graph, rows, model), weights))
    if trees:
        terms.append(graph.sum_of_leaves(rows, trees))
    return graph.total(terms)


def _of_mixture(graph: Graph, rows: Rows, model: Any) -> str:
    if hasattr(model, "rules_"):
        return _of_rules(graph, rows, model)
    active = [(model.estimators_[place], model.mixture_[place]) for place in np.flatnonzero(model.mixture_)]
    return sum_answers(graph, rows, [(member, share * _places(member, model.classes_)) for member, share in active])


def _mean_probabilities(graph: Graph, rows: Rows, model: Any) -> str:
    """Return the probabilities of the models that decide by their scores, or those of drawn answers."""
    if not hasattr(model, "rules_"):
        return _of_mixture(graph, rows, model)
    shares = np.bincount([rule.model for rule in model.rules_], weights=model.mixture_)
    terms = []
    for place in np.flatnonzero(shares).tolist():
        member = model.estimators_[place]
        values = probabilities(graph, rows, member)
        terms.append(graph.add("MatMul", values, shares[place] * _places(member, model.classes_)))
    return graph.total(terms)


def _places(model: Any, classes: AnyArray) -> FloatArray:
    """Return a row for each class of a model: 1.0 at its place among all classes."""
    _kind_of(model)
    return np.asarray(np.eye(len(classes))[np.searchsorted(classes, _labels(model, classes))])


def _labels(model: Any, classes: AnyArray) -> AnyArray:
    """Return the classes of a model, which may know them by their places, as those of XGBoost do."""
    has_codes = np.array_equal(model.classes_, np.arange(len(classes)))
    return np.asarray(classes if has_codes else model.classes_)


def _of_vote(graph: Graph, rows: Rows, model: Any) -> str:
    return graph.is_largest(_of_mixture(graph, rows, model), len(model.classes_))


def _of_rules(graph: Graph, rows: Rows, model: Any) -> str:
    """Return the shares of the rules that predict each class."""
    if len(model.classes_) > _BINARY:
        raise UnstorableModel(f"rules of more than two classes are not supported; {_WHAT_CAN}")
    label = model.classes_[model.family_.pool.positive.place]
    is_positive = (model.classes_ == label).astype(np.float64)
    active, terms = np.flatnonzero(model.mixture_).tolist(), []
    for column in sorted({model.rules_[place].model for place in active}):
        rules = [place for place in active if model.rules_[place].model == column]
        score, shares = _score(graph, rows, model.estimators_[column], label, model.classes_), model.mixture_[rules]
        # Rules add to the positive class above their thresholds, to the other one where not above the lower ones.
        levels = np.array([model.rules_[place].levels for place in rules])  # (n_rules, 2, n_groups)
        upper, lower = levels.transpose(1, 2, 0)
        is_below = graph.add("Sub", np.array(1.0), graph.is_above(score, _of_group(graph, lower)))
        terms += [
            graph.add("MatMul", graph.is_above(score, _of_group(graph, upper)), np.outer(shares, is_positive)),
            graph.add("MatMul", is_below, np.outer(shares, 1.0 - is_positive)),
        ]
    return graph.total(terms)


def _of_group(graph: Graph, thresholds: FloatArray) -> "str | AnyArray":
    """Return the thresholds of each row, where groups have their own."""
    return thresholds if len(thresholds) == 1 else graph.add("Gather", thresholds, graph.groups(), axis=0)


def _decision(graph: Graph, rows: Rows, model: Any) -> str:
    """Return ``decision_function`` of a model."""
    write = _kind_of(model).scores
    assert write is not None  # noqa: S101 - a model without probabilities has a decision function
    return write(graph, rows, model)


def _score(graph: Graph, rows: Rows, model: Any, positive: Any, classes: AnyArray) -> str:
    """Return the score of the positive class that rules compare with thresholds: a column."""
    _kind_of(model)
    place = int(np.flatnonzero(_labels(model, classes) == positive)[0])
    if hasattr(model, "predict_proba"):
        return graph.add("Gather", probabilities(graph, rows, model), np.array([place]), axis=1)  # that column
    scores = _decision(graph, rows, model)
    return scores if place else graph.add("Neg", scores)


def _votes(graph: Graph, rows: Rows, model: Any) -> str:
    """Return the sums of votes for the second class, or for each."""
    sums, pairs = np.eye(len(model.ensembles_)), []
    for place, ensemble in enumerate(model.ensembles_):
        for member, vote in zip(ensemble.models, ensemble.votes.tolist(), strict=True):
            _kind_of(member)
            signs = np.where(member.classes_ == ensemble.classes[1], vote, -vote)
            pairs.append((member, np.outer(signs, sums[place])))
    return sum_answers(graph, rows, pairs)


def _of_votes(graph: Graph, rows: Rows, model: Any) -> str:
    loss = getattr(model, "loss", "exponential")
    if loss == "squared":
        raise UnstorableModel(f"a {type(model).__name__} with loss='squared' is not supported; {_WHAT_CAN}")
    sums, n_classes = _votes(graph, rows, model), len(model.classes_)
    odds = graph.add("Mul", sums, np.array(2.0)) if loss == "exponential" else sums
    if n_classes > _BINARY:  # each against the others: the logarithm of how likely it is
        odds = graph.log_sigmoid(odds)
    return _by_log_odds(graph, odds, n_classes)


def _behind_odds(write_odds: Callable[[Graph, Rows, Any], str]) -> WriteOutput:
    """Make probabilities of log odds."""

    def write(graph: Graph, rows: Rows, model: Any) -> str:
        return _by_log_odds(graph, write_odds(graph, rows, model), len(model.classes_))

    return write


_TREE = Translator(_of_tree, answers=_tree_answers)
_MIXTURE = Translator(_mean_probabilities, answers=_of_vote)
_PIPELINE = Translator(*(_behind_steps(write) for write in (probabilities, _decision, answers)))
_LOGISTIC = ("LogisticRegression", "LogisticRegressionCV", "LinearDiscriminantAnalysis")
_KINDS = {
    f"{library}.{name}": kind
    for library, kind, names in (
        ("counterpoise", _TREE, ("HistogramTree", "Stump", "LeastErrorStump")),
        ("counterpoise", _MIXTURE, [f"{name}Classifier" for name in ("AdaLPBoost", "LPBoost", "Mixture", "Goal")]),
        ("counterpoise", Translator(_of_votes, _votes), [f"{name}BoostClassifier" for name in _VOTERS]),
        ("counterpoise", Translator(_of_average), ["AveragedClassifier"]),
        ("counterpoise", Translator(_of_ramp, _constrained_decision), ["ConstrainedClassifier"]),
        ("sklearn", _TREE, ("DecisionTreeClassifier", "ExtraTreeClassifier")),
        ("sklearn", Translator(_of_forest), ("RandomForestClassifier", "ExtraTreesClassifier")),
        ("sklearn", Translator(_of_gradient_boosting), ["HistGradientBoostingClassifier"]),
        ("sklearn", Translator(_of_logistic, _linear_scores), _LOGISTIC),
        ("sklearn", Translator(None, _linear_scores), ("LinearSVC", "Perceptron", "RidgeClassifier")),
        ("sklearn", Translator(converted_probabilities), ("GaussianNB", "MLPClassifier")),
        ("sklearn", _PIPELINE, ["Pipeline"]),
        ("lightgbm", Translator(_behind_odds(lightgbm_odds)), ["LGBMClassifier"]),
        ("xgboost", Translator(_behind_odds(xgboost_odds)), ("XGBClassifier", "XGBRFClassifier")),
        ("catboost", Translator(_behind_odds(catboost_odds)), ["CatBoostClassifier"]),
    )
    for name in names
}
