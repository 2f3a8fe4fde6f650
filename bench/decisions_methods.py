"""Who decides in ``decisions.py``: ours and the peers, all over the same column of scores, chosen on the same rows."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from counterpoise import GoalClassifier

GROUP = "group"


class Part(NamedTuple):
    """Rows with their labels (0 or 1), groups (0, 1, ...) and the scores that all methods share."""

    X: np.ndarray
    y: np.ndarray
    group: np.ndarray
    scores: np.ndarray


class Goal(NamedTuple):
    """A question, the bounds that everyone is asked for, and those of our frontier."""

    name: str
    text: str  # with {bound} in the place of the bound
    value: Callable[[Part, np.ndarray], float]  # on rows, of the chances that they are called positive
    asked: tuple[float, ...]
    frontier: tuple[float, ...]
    is_floor: bool = False  # the value must be at least the bound

    def miss(self, value: float, bound: float) -> float:
        """Return by how much a value misses the bound; negative where it is met."""
        return bound - value if self.is_floor else value - bound


def _rates(part: Part, said: np.ndarray, label: int | None = None) -> np.ndarray:
    """Return the positive rate of each group, of all rows or of those with a label."""
    rows = np.ones(part.y.size, dtype=bool) if label is None else part.y == label
    return np.array([said[rows & (part.group == group)].mean() for group in np.unique(part.group)])


def _parity(part: Part, said: np.ndarray) -> float:
    return float(np.ptp(_rates(part, said)))


def _opportunity(part: Part, said: np.ndarray) -> float:
    return float(np.ptp(_rates(part, said, 1)))


def _odds(part: Part, said: np.ndarray) -> float:
    return float(max(np.ptp(_rates(part, said, label)) for label in (0, 1)))


def _ratio(part: Part, said: np.ndarray) -> float:
    rates = _rates(part, said)
    return float(rates.min() / max(rates.max(), 1e-12))


def _least_recall(part: Part, said: np.ndarray) -> float:
    return float(_rates(part, said, 1).min())


PARITY, OPPORTUNITY, ODDS = "demographic parity", "equal opportunity", "equalized odds"
RATIO, FLOOR = "80 % rule", "recall floor"
_BOUNDS = (0.02, 0.05)
_DIFFERENCES = (0.0, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2)
_RATIOS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
_FLOORS = (0.4, 0.5, 0.55, 0.575, 0.6, 0.625, 0.65, 0.7, 0.8)
_ALL = (
    Goal(PARITY, f"demographic_parity_difference(train, by={GROUP}) <= {{bound}}", _parity, _BOUNDS, _DIFFERENCES),
    Goal(
        OPPORTUNITY,
        f"equal_opportunity_difference(train, by={GROUP}) <= {{bound}}",
        _opportunity,
        _BOUNDS,
        _DIFFERENCES,
    ),
    Goal(ODDS, f"equalized_odds_difference(train, by={GROUP}) <= {{bound}}", _odds, _BOUNDS, _DIFFERENCES),
    Goal(RATIO, f"demographic_parity_ratio(train, by={GROUP}) >= {{bound}}", _ratio, (0.8,), _RATIOS, is_floor=True),
    Goal(FLOOR, f"every_group(recall, train, by={GROUP}) >= {{bound}}", _least_recall, (0.6,), _FLOORS, is_floor=True),
)
GOALS = {goal.name: goal for goal in _ALL}


class Case(NamedTuple):
    """The rows of one set and seed, with scores, and what makes the model that scored them.

    ``crossed`` are the rows of training and of choice together, each scored by a model that did not see it, and the
    test rows scored by a model of all of them: another way to use the same rows.
    """

    choose: Part
    test: Part
    crossed: Part
    test_crossed: Part
    model: Callable[[], Any]
    seed: int


Decide = Callable[[Case], np.ndarray]  # the probability that each test row is called positive
Method = Callable[[Case, Goal, float], Decide | None]  # None: it has no such goal


class Column(ClassifierMixin, BaseEstimator):
    """A model whose rows are its scores."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Column":  # noqa: ARG002 - as everyone's
        """Learn nothing."""
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return both columns."""
        scores = np.asarray(X)[:, 0]
        return np.column_stack([1 - scores, scores])

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the usual answer."""
        return (np.asarray(X)[:, 0] > 0.5).astype(int)


def _column(part: Part) -> np.ndarray:
    return part.scores[:, None]


def _known() -> Column:
    return Column().fit(None, None)


def plain(_case: Case, _goal: Goal, _bound: float) -> Decide:
    """Decide by the usual threshold."""
    return lambda case: (case.test.scores > 0.5).astype(float)


def ours(case: Case, goal: Goal, bound: float, **settings: Any) -> Decide:
    """Mix all thresholds, one for each group."""
    model = _mixture(case.choose, goal, bound, random_state=case.seed, **settings)
    return lambda case: _chances(model, case.test)


def ours_crossed(case: Case, goal: Goal, bound: float) -> Decide:
    """Mix all thresholds, chosen on the scores of rows that were left out of training in turn."""
    model = _mixture(case.crossed, goal, bound, random_state=case.seed)
    return lambda case: _chances(model, case.test_crossed)


def _mixture(part: Part, goal: Goal, bound: float, *, decision: str = "sticky", **settings: Any) -> GoalClassifier:
    goals = [goal.text.format(bound=bound)]
    model = GoalClassifier(
        [_known()], cv="prefit", decision=decision, by=GROUP, goals=goals, **settings, confidence=None
    )
    return model.fit(_column(part), part.y, sensitive_features={GROUP: part.group})


def _chances(model: GoalClassifier, part: Part) -> np.ndarray:
    return model.decision_proba(_column(part), sensitive_features={GROUP: part.group})[:, 1]


def ours_fixed(case: Case, goal: Goal, bound: float) -> Decide:
    """Search one threshold for each group."""
    return ours(case, goal, bound, decision="fixed")


def fairlearn_thresholds(case: Case, goal: Goal, bound: float) -> Decide | None:
    """Choose by fairlearn's ThresholdOptimizer; it knows ratios, and odds within a tolerance, as exact parity only."""
    from fairlearn.postprocessing import ThresholdOptimizer  # noqa: PLC0415 - an optional package

    words = {
        PARITY: ("demographic_parity", bound),
        OPPORTUNITY: ("true_positive_rate_parity", bound),
        ODDS: ("equalized_odds", None),
        RATIO: ("demographic_parity", None),
    }
    if goal.name not in words:
        return None
    constraint, tolerance = words[goal.name]
    model = ThresholdOptimizer(
        estimator=_known(), constraints=constraint, tol=tolerance, prefit=True, predict_method="predict_proba"
    )
    model.fit(_column(case.choose), case.choose.y, sensitive_features=case.choose.group)

    def decide(case: Case) -> np.ndarray:
        chances = model._pmf_predict(_column(case.test), sensitive_features=case.test.group)  # noqa: SLF001 - no draws
        return np.asarray(chances)[:, 1]

    return decide


def fairlearn_gradient(case: Case, goal: Goal, bound: float) -> Decide | None:
    """Train by fairlearn's ExponentiatedGradient on the rows of training and of choice together.

    It bounds differences from the rate of all rows; with two groups a difference of d between them is one of d times
    the share of the other group, so the bound is scaled to ask for the same.
    """
    from fairlearn import reductions  # noqa: PLC0415 - an optional package

    X, y, group, _ = case.crossed
    if goal.name == RATIO:
        constraint = reductions.DemographicParity(ratio_bound=bound)
    elif goal.name in (PARITY, OPPORTUNITY, ODDS):
        kind = {
            PARITY: reductions.DemographicParity,
            OPPORTUNITY: reductions.TruePositiveRateParity,
            ODDS: reductions.EqualizedOdds,
        }[goal.name]
        rows = np.ones(y.size, dtype=bool) if goal.name == PARITY else y == 1
        share = group[rows].mean()
        constraint = kind(difference_bound=bound * max(share, 1 - share))
    else:
        return None
    model = reductions.ExponentiatedGradient(case.model(), constraint, max_iter=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations inside of it
        model.fit(X, y, sensitive_features=group)
    return lambda case: np.asarray(model._pmf_predict(case.test.X))[:, 1]  # noqa: SLF001 - no draws


def error_parity(case: Case, goal: Goal, bound: float) -> Decide | None:
    """Choose by error-parity's linear program over the hulls of the ROC curves."""
    from error_parity import RelaxedThresholdOptimizer  # noqa: PLC0415 - an optional package

    words = {PARITY: "demographic_parity", OPPORTUNITY: "true_positive_rate_parity", ODDS: "equalized_odds"}
    if goal.name not in words:
        return None
    model = RelaxedThresholdOptimizer(
        predictor=lambda X: X[:, 0], constraint=words[goal.name], tolerance=bound, seed=case.seed
    )
    model.fit(_column(case.choose), case.choose.y, group=case.choose.group)
    return lambda case: _expected(model._realized_classifier.group_to_clf, case.test)  # noqa: SLF001 - no draws


def _expected(by_group: dict[int, Any], part: Part) -> np.ndarray:
    """Return the chance that error-parity's random classifiers say 1, which they themselves only draw from."""
    chances = np.zeros(part.y.size)
    for group, classifier in by_group.items():
        rows = part.group == group
        chances[rows] = _chance(classifier, _column(part)[rows])
    return chances


def _chance(classifier: Any, X: np.ndarray) -> np.ndarray | float:
    if hasattr(classifier, "target_fpr"):  # says 1 with that chance, whatever the row
        return float(classifier.target_fpr)
    if hasattr(classifier, "probabilities"):
        shares = zip(classifier.probabilities, classifier.classifiers, strict=True)
        return sum(share * _chance(one, X) for share, one in shares)
    return np.asarray(classifier(X), dtype=float)


def oxonfair(case: Case, goal: Goal, bound: float) -> Decide:
    """Choose by OxonFair's grid of thresholds."""
    from oxonfair import DataDict, FairPredictor  # noqa: PLC0415 - an optional package
    from oxonfair.utils import group_metrics  # noqa: PLC0415 - as above

    constraint = {
        PARITY: group_metrics.demographic_parity,
        OPPORTUNITY: group_metrics.equal_opportunity,
        ODDS: group_metrics.equalized_odds_max,
        RATIO: group_metrics.disparate_impact,
        FLOOR: group_metrics.recall.min,
    }[goal.name]
    choose = case.choose
    model = FairPredictor(_known(), DataDict(choose.y, _column(choose), choose.group))
    model.fit(group_metrics.accuracy, constraint, bound)

    def decide(case: Case) -> np.ndarray:
        return np.asarray(model.predict(DataDict(case.test.y, _column(case.test), case.test.group)), dtype=float)

    return decide


OURS, CROSSED, FIXED, PLAIN = "ours: mixture", "ours: mixture, cross-fitted", "ours: fixed", "plain LightGBM"
GRADIENT = "fairlearn ExponentiatedGradient"
PEERS: dict[str, Method] = {
    "fairlearn ThresholdOptimizer": fairlearn_thresholds,
    GRADIENT: fairlearn_gradient,
    "error-parity": error_parity,
    "OxonFair": oxonfair,
}
METHODS: dict[str, Method] = {PLAIN: plain, OURS: ours, CROSSED: ours_crossed, FIXED: ours_fixed, **PEERS}
