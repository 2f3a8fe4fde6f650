"""The peers, each used as its own pages show, on the rows and by the scores that ours have.

Their packages are imported where they are used: one that is missing, or fails, is a line of the page.
"""

import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from papers.arrays import AnyArray, FloatArray
from papers.comparison.methods import ALL, Ask, Method, Tail, fixed_tails, plain
from papers.comparison.questions import (
    CHURN,
    GROUP,
    ODDS,
    OPPORTUNITY,
    PARITY,
    PRECISION,
    RATIO,
    RECALL,
    WORST,
    Chances,
    Question,
)
from papers.comparison.rows import Case, Rows

GRID = {"num_class_thresh": 50, "num_ROC_margin": 25}  # of AIF360; its own 100 and 50 take minutes for each bound


class Column(ClassifierMixin, BaseEstimator):
    """A fitted model whose rows are its scores."""

    def __init__(self) -> None:
        self.classes_ = np.array([0, 1])

    def fit(self, X: FloatArray, y: AnyArray) -> "Column":  # noqa: ARG002 - as everyone's
        """Learn nothing."""
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return both columns."""
        scores = np.asarray(X)[:, 0]
        return np.column_stack([1 - scores, scores])

    def predict(self, X: Any) -> AnyArray:
        """Return the usual answer."""
        return (np.asarray(X)[:, 0] > 1 / 2).astype(np.int64)


def _column(rows: Rows) -> FloatArray:
    return rows.scores[:, 1:]


def lightgbm(case: Case) -> Ask:
    """Train the tuned LightGBM on all rows of fitting."""
    return plain(case.base, case)


def histograms(case: Case) -> Ask:
    """Train the tuned HistGradientBoosting on all rows of fitting."""
    return plain(case.other, case)


def lightgbm_tails(case: Case) -> Iterator[Tail]:
    """Yield the tails of the tuned LightGBM."""
    return fixed_tails(case.new().fit(case.fit.X, case.fit.y).predict(case.test.X), case)


def histogram_tails(case: Case) -> Iterator[Tail]:
    """Yield the tails of the tuned HistGradientBoosting."""
    return fixed_tails(clone(case.other).fit(case.fit.X, case.fit.y).predict(case.test.X), case)


def thresholds(case: Case) -> Ask:
    """Choose by fairlearn's ThresholdOptimizer; it knows ratios, and odds, as exact parity only."""
    optimizer = import_module("fairlearn.postprocessing").ThresholdOptimizer
    kinds = {PARITY: "demographic_parity", OPPORTUNITY: "true_positive_rate_parity", ODDS: "equalized_odds"}

    def ask(question: Question, bound: float) -> Chances:
        model = optimizer(
            estimator=Column(),
            constraints=kinds.get(question.name, kinds[PARITY]),
            tol=bound if question.name in (PARITY, OPPORTUNITY) else None,
            prefit=True,
            predict_method="predict_proba",
        )
        model.fit(_column(case.fit), case.fit.y, sensitive_features=case.fit.group)
        return np.asarray(model._pmf_predict(_column(case.test), sensitive_features=case.test.group))[:, 1]  # noqa: SLF001 - no draws

    return ask


def gradient(case: Case) -> Ask:
    """Train by fairlearn's ExponentiatedGradient on all rows of fitting.

    It bounds differences from the rate of all rows; with two groups a difference of d between them is one of d times
    the share of the other group, so the bound is scaled to ask for the same. Ratios are bounded likewise: where the
    rates of groups with the shares p and 1 - p are in the ratio b, that of all rows is to the larger as
    p b + 1 - p to 1, and the smaller to it as b to p b + 1 - p.
    """
    reductions = import_module("fairlearn.reductions")
    kinds = {PARITY: "DemographicParity", OPPORTUNITY: "TruePositiveRateParity", ODDS: "EqualizedOdds"}
    rows = case.fit

    def ask(question: Question, bound: float) -> Chances:
        if question.name == RATIO:
            lower = rows.group == np.argmin([rows.y[rows.group == group].mean() for group in (0, 1)])
            of_all = lower.mean() * bound + 1 - lower.mean()
            constraint = reductions.DemographicParity(ratio_bound=min(of_all, bound / of_all))
        else:
            counted = np.ones(rows.y.size, dtype=bool) if question.name == PARITY else rows.y == 1
            share = rows.group[counted].mean()
            constraint = getattr(reductions, kinds[question.name])(difference_bound=bound * max(share, 1 - share))
        model = reductions.ExponentiatedGradient(case.new(), constraint)
        model.fit(rows.X, rows.y, sensitive_features=rows.group)
        return np.asarray(model._pmf_predict(case.test.X))[:, 1]  # noqa: SLF001 - no draws

    return ask


def error_parity(case: Case) -> Ask:
    """Choose by error-parity's linear program over the hulls of the ROC curves."""
    optimizer = import_module("error_parity").RelaxedThresholdOptimizer
    kinds = {PARITY: "demographic_parity", OPPORTUNITY: "true_positive_rate_parity", ODDS: "equalized_odds"}

    def ask(question: Question, bound: float) -> Chances:
        model = optimizer(predictor=lambda X: X[:, 0], constraint=kinds[question.name], tolerance=bound, seed=case.seed)
        model.fit(_column(case.fit), case.fit.y, group=case.fit.group)
        return _expected(model._realized_classifier.group_to_clf, case.test)  # noqa: SLF001 - no draws

    return ask


def _expected(by_group: dict[int, Any], rows: Rows) -> Chances:
    """Return the chance that error-parity's random classifiers say 1, which they themselves only draw from."""
    chances = np.zeros(rows.y.size)
    for group, classifier in by_group.items():
        inside = rows.group == group
        chances[inside] = _chance(classifier, _column(rows)[inside])
    return chances


def _chance(classifier: Any, X: FloatArray) -> Any:
    if hasattr(classifier, "target_fpr"):  # says 1 with that chance, whatever the row
        return float(classifier.target_fpr)
    if hasattr(classifier, "probabilities"):
        shares = zip(classifier.probabilities, classifier.classifiers, strict=True)
        return sum(share * _chance(one, X) for share, one in shares)
    return np.asarray(classifier(X), dtype=np.float64)


def oxonfair(case: Case) -> Ask:
    """Choose by OxonFair's grid of thresholds, one for all where the question is not about groups."""
    package, metrics = import_module("oxonfair"), import_module("oxonfair.utils.group_metrics")
    aims = {
        PARITY: (metrics.accuracy, metrics.demographic_parity),
        OPPORTUNITY: (metrics.accuracy, metrics.equal_opportunity),
        ODDS: (metrics.accuracy, metrics.equalized_odds_max),
        RATIO: (metrics.accuracy, metrics.disparate_impact),
        WORST: (metrics.accuracy, metrics.recall.min),
        RECALL: (metrics.true_neg_rate, metrics.recall),
        PRECISION: (metrics.recall, metrics.precision),
    }

    def told(rows: Rows, question: Question) -> Any:
        group = rows.group if question.by == GROUP else np.zeros(rows.y.size, dtype=np.int64)
        return package.DataDict(rows.y, _column(rows), group)

    def ask(question: Question, bound: float) -> Chances:
        model = package.FairPredictor(Column(), told(case.fit, question))
        model.fit(*aims[question.name], bound)
        return np.asarray(model.predict(told(case.test, question)), dtype=np.float64)

    return ask


def fairgbm(case: Case) -> Ask:
    """Train FairGBM, whose bound is on differences of error rates, with the settings of the tuned model."""
    package: Any = import_module("fairgbm.sklearn")
    # It calls checks of scikit-learn by a keyword that was renamed: with the old one it fits, and so takes part.
    utils = import_module("sklearn.utils")
    package._LGBMCheckXY, package._LGBMCheckArray = _renamed(utils.check_X_y), _renamed(utils.check_array)  # noqa: SLF001
    tuned = {name: case.base.get_params()[name] for name in ("num_leaves", "n_estimators", "random_state")}
    kinds = {OPPORTUNITY: "FNR", ODDS: "FPR,FNR"}
    rows = case.fit

    def ask(question: Question, bound: float) -> Chances:
        limits = {"constraint_fnr_threshold": bound, "constraint_fpr_threshold": bound}
        model = package.FairGBMClassifier(constraint_type=kinds[question.name], n_jobs=1, **tuned, **limits)
        model.fit(rows.X, rows.y, constraint_group=rows.group)
        return np.asarray(model.predict(case.test.X), dtype=np.float64)

    return ask


def _renamed(check: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, force_all_finite=True, **more: check(*given, ensure_all_finite=force_all_finite, **more)


def reject_option(case: Case) -> Ask:
    """Choose by AIF360's RejectOptionClassification, which looks for the best balanced accuracy inside the bound."""
    kind = import_module("aif360.algorithms.postprocessing").RejectOptionClassification
    names = {
        PARITY: "Statistical parity difference",
        OPPORTUNITY: "Equal opportunity difference",
        ODDS: "Average odds difference",
    }
    behind = int(np.argmin([_column(case.fit)[case.fit.group == group].mean() for group in (0, 1)]))

    def ask(question: Question, bound: float) -> Chances:
        model = kind(
            unprivileged_groups=[{GROUP: behind}],
            privileged_groups=[{GROUP: 1 - behind}],
            metric_name=names[question.name],
            metric_lb=-bound,
            metric_ub=bound,
            **GRID,
        )
        model.fit(_labelled(case.fit, case.fit.y), _labelled(case.fit))
        return np.asarray(model.predict(_labelled(case.test)).labels, dtype=np.float64).ravel()

    return ask


def _labelled(rows: Rows, labels: AnyArray | None = None) -> Any:
    """Return rows as AIF360 has them: by their labels, or by what the scores say."""
    pandas, datasets = import_module("pandas"), import_module("aif360.datasets")
    said = Column().predict(_column(rows)) if labels is None else labels
    frame = pandas.DataFrame({GROUP: rows.group.astype(np.float64), "y": said.astype(np.float64)})
    found = datasets.BinaryLabelDataset(df=frame, label_names=["y"], protected_attribute_names=[GROUP])
    found.scores = _column(rows)
    return found


def reweighing(case: Case) -> Ask:
    """Train the tuned model with AIF360's weights, which make group and label independent."""
    kind = import_module("aif360.algorithms.preprocessing").Reweighing
    weigh = kind(unprivileged_groups=[{GROUP: 0}], privileged_groups=[{GROUP: 1}])
    weights = weigh.fit_transform(_labelled(case.fit, case.fit.y)).instance_weights
    said = case.new().fit(case.fit.X, case.fit.y, sample_weight=weights).predict(case.test.X).astype(np.float64)
    return lambda _question, _bound: said


def mapie(case: Case) -> Ask:
    """Choose by MAPIE's risk control, with its usual confidence of 0.9."""
    controller = import_module("mapie.risk_control").BinaryClassificationController
    words = {RECALL: ("recall", "fpr"), PRECISION: ("precision", "recall")}
    tried = {"list_predict_params": mapie_thresholds(_column(case.fit))}

    def ask(question: Question, bound: float) -> Chances:
        risk, best = words[question.name]
        model = controller(Column().predict_proba, risk, target_level=bound, best_predict_param_choice=best, **tried)
        model.calibrate(_column(case.fit), case.fit.y)
        return np.asarray(model.predict(_column(case.test)), dtype=np.float64)

    return ask


def mapie_thresholds(scores: FloatArray) -> FloatArray:
    """Return those of MAPIE's own thresholds above which there is a row.

    Where there is none its p-values are no numbers, and then its default correction for many thresholds proves nothing.
    """
    own = np.arange(100) / 100
    return np.asarray(own[own < scores.max()])


def tuned_threshold(case: Case) -> Ask:
    """Choose one threshold by scikit-learn's TunedThresholdClassifierCV, whose score is the question itself."""
    from sklearn.metrics import make_scorer  # noqa: PLC0415 - heavy
    from sklearn.model_selection import TunedThresholdClassifierCV  # noqa: PLC0415

    rows = case.fit

    def ask(question: Question, bound: float) -> Chances:
        score = make_scorer(lambda _y, said: question.score(rows, np.asarray(said, dtype=np.float64), bound))
        model = TunedThresholdClassifierCV(Column(), scoring=score, cv="prefit", refit=False, thresholds=500)
        return np.asarray(model.fit(_column(rows), rows.y).predict(_column(case.test)), dtype=np.float64)

    return ask


_DIFFERENCES = (PARITY, OPPORTUNITY, ODDS)
_FAIR, _FLOORS = (*_DIFFERENCES, RATIO), (RECALL, PRECISION)
_SCORED = (*_FAIR, *_FLOORS, WORST)
_TUNED = (*_FLOORS, CHURN, WORST)
LIGHTGBM, HISTOGRAMS, REJECT = "LightGBM", "HistGradientBoosting", "AIF360 RejectOption"
GRADIENT = "ExponentiatedGradient"
PEERS = (
    Method(LIGHTGBM, lightgbm, ALL, tails=lightgbm_tails, needs="lightgbm"),
    Method(HISTOGRAMS, histograms, ALL, tails=histogram_tails, needs="scikit-learn"),
    Method("ThresholdOptimizer", thresholds, _FAIR, (PARITY, OPPORTUNITY), on_scores=True, needs="fairlearn"),
    Method(GRADIENT, gradient, _FAIR, _FAIR, needs="fairlearn", costly=True),
    Method("error-parity", error_parity, _DIFFERENCES, _DIFFERENCES, on_scores=True, needs="error-parity"),
    Method("OxonFair", oxonfair, _SCORED, _SCORED, on_scores=True, needs="oxonfair"),
    Method("FairGBM", fairgbm, (OPPORTUNITY, ODDS), (OPPORTUNITY, ODDS), needs="fairgbm"),
    Method(REJECT, reject_option, _DIFFERENCES, _DIFFERENCES, on_scores=True, needs="aif360", costly=True),
    Method("AIF360 Reweighing", reweighing, (PARITY, RATIO), needs="aif360"),
    Method("MAPIE", mapie, _FLOORS, _FLOORS, on_scores=True, needs="mapie"),
    Method("TunedThreshold", tuned_threshold, _TUNED, _TUNED, on_scores=True, needs="scikit-learn"),
)


def quietly(work: Callable[[], Any]) -> Any:
    """Return what work returns, without the warnings of foreign packages about each other."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work()
