"""Bad input to the boosters gets one clear sentence each."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from counterpoise import AdaLPBoostClassifier, LPBoostClassifier, Stopping, VadaBoostClassifier
from counterpoise.learners import HistogramTree


class SaysSomethingElse(ClassifierMixin, BaseEstimator):
    """A learner that predicts a label it was never given."""

    def fit(self, X, y, sample_weight=None):  # noqa: ARG002
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), 99)


def rare_class():
    """Return 100 samples of two classes, two samples of the second."""
    return np.arange(100.0).reshape(-1, 1), np.where(np.arange(100) < 98, "common", "rare")


GOOD_X, GOOD_Y = np.arange(20.0).reshape(10, 2), np.array([0, 1] * 5)
BAD = {
    "a class without weight": (
        lambda: AdaLPBoostClassifier(HistogramTree()).fit(GOOD_X, GOOD_Y, GOOD_Y.astype(float)),
        "All samples of the class .*0.* have weights of about 0",
    ),
    "NaN where the learner cannot": (
        lambda: AdaLPBoostClassifier(LogisticRegression()).fit(np.where(GOOD_X == 3, np.nan, GOOD_X), GOOD_Y),
        "Input X contains NaN",
    ),
    "alpha": (
        lambda: AdaLPBoostClassifier(HistogramTree(), alpha=0).fit(GOOD_X, GOOD_Y),
        r"alpha must lie in \(0, 1\].*got 0",
    ),
    "eta": (
        lambda: AdaLPBoostClassifier(HistogramTree(), eta=-1).fit(GOOD_X, GOOD_Y),
        "eta must be finite and above 0; got -1",
    ),
    "eta word": (
        lambda: AdaLPBoostClassifier(HistogramTree(), eta="thoery").fit(GOOD_X, GOOD_Y),
        "eta.*must be one of 'theory', 'adaboost'; got 'thoery'",
    ),
    "rounds": (
        lambda: AdaLPBoostClassifier(HistogramTree(), n_estimators=0).fit(GOOD_X, GOOD_Y),
        "n_estimators must be at least 1; got 0",
    ),
    "decision": (
        lambda: AdaLPBoostClassifier(HistogramTree(), decision="dice").fit(GOOD_X, GOOD_Y),
        "decision must be one of.*got 'dice'",
    ),
    "mixture": (
        lambda: AdaLPBoostClassifier(HistogramTree(), mixture="best").fit(GOOD_X, GOOD_Y),
        "mixture must be one of.*got 'best'",
    ),
    "outliers": (
        lambda: AdaLPBoostClassifier(HistogramTree(), outlier_fraction=1).fit(GOOD_X, GOOD_Y),
        r"must lie in \[0, 1\); got 1",
    ),
    "beta": (
        lambda: LPBoostClassifier(HistogramTree(), beta=0).fit(GOOD_X, GOOD_Y),
        "beta must be finite and above 0; got 0",
    ),
    "target": (
        lambda: LPBoostClassifier(HistogramTree(), target=2).fit(GOOD_X, GOOD_Y),
        r"target must lie in \[0, 1\); got 2",
    ),
    "groups missing": (
        lambda: AdaLPBoostClassifier(HistogramTree(), reweigh="groups").fit(GOOD_X, GOOD_Y),
        "reweigh='groups' needs sensitive_features at fit",
    ),
    "groups of the validation rows": (
        lambda: AdaLPBoostClassifier(HistogramTree(), reweigh="groups").fit(
            GOOD_X, GOOD_Y, sensitive_features=GOOD_Y, X_val=GOOD_X, y_val=GOOD_Y
        ),
        "X_val needs sensitive_features_val",
    ),
    "groups too short": (
        lambda: AdaLPBoostClassifier(HistogramTree(), reweigh="groups").fit(GOOD_X, GOOD_Y, sensitive_features=[0, 1]),
        "sensitive_features must have one row for each of the 10 samples; column 'group' has .*2",
    ),
    "unknown labels": (
        lambda: AdaLPBoostClassifier(SaysSomethingElse()).fit(GOOD_X, GOOD_Y),
        "SaysSomethingElse.. predicted the label .*99.*not among the classes",
    ),
    "validation without a class": (
        lambda: AdaLPBoostClassifier(HistogramTree()).fit(GOOD_X, GOOD_Y, X_val=GOOD_X[:1], y_val=[0]),
        "y_val must hold samples of every class; it has none of the class .*1",
    ),
    "split without a class": (
        lambda: AdaLPBoostClassifier(HistogramTree(), stopping=Stopping(validation_fraction=0.5)).fit(
            GOOD_X[:4], [0, 0, 0, 1]
        ),
        "needs two samples of each class at least.*the class .*1.* has one",
    ),
    "a fraction that sets too few aside": (
        lambda: AdaLPBoostClassifier(HistogramTree(), stopping=Stopping(validation_fraction=0.01)).fit(GOOD_X, GOOD_Y),
        "validation_fraction=0.01 of 10 samples sets 1 aside and leaves 9, but either part needs .* 2 classes",
    ),
    "a fraction that leaves too few": (
        lambda: VadaBoostClassifier(stopping=Stopping(patience=100, validation_fraction=0.9)).fit(GOOD_X, GOOD_Y),
        "validation_fraction=0.9 of 10 samples sets 9 aside and leaves 1, but .*pass X_val and y_val instead",
    ),
    "a fraction that leaves none": (
        lambda: VadaBoostClassifier(stopping=Stopping(patience=100, validation_fraction=0.999)).fit(GOOD_X, GOOD_Y),
        "sets 10 aside and leaves 0, but",
    ),
    "a fraction that leaves no sample of a class": (
        lambda: VadaBoostClassifier(stopping=Stopping(patience=100, validation_fraction=0.9), random_state=0).fit(
            *rare_class()
        ),
        "sets 90 aside and leaves 10, but .*there is none of the class 'rare' left to train on",
    ),
    "a fraction that sets no sample of a class aside": (
        lambda: VadaBoostClassifier(stopping=Stopping(patience=100, validation_fraction=0.1), random_state=0).fit(
            *rare_class()
        ),
        "sets 10 aside and leaves 90, but .*there is none of the class 'rare' set aside",
    ),
    "y_val alone": (
        lambda: AdaLPBoostClassifier(HistogramTree()).fit(GOOD_X, GOOD_Y, y_val=GOOD_Y),
        "X_val and y_val go together",
    ),
    "unknown y_val": (
        lambda: AdaLPBoostClassifier(HistogramTree()).fit(GOOD_X, GOOD_Y, X_val=GOOD_X, y_val=GOOD_Y + 1),
        "y holds the label .*2.*not among the classes",
    ),
    "ids for a vote": (
        lambda: (
            AdaLPBoostClassifier(HistogramTree(), n_estimators=1, decision="vote")
            .fit(GOOD_X, GOOD_Y)
            .predict(GOOD_X, ids=range(10))
        ),
        "ids are for decision='sticky'",
    ),
    "text for numbers in y_val": (
        lambda: AdaLPBoostClassifier(HistogramTree()).fit(
            GOOD_X, GOOD_Y, X_val=GOOD_X, y_val=np.array(["no", "yes"] * 5, dtype=object)
        ),
        r"y holds the label 'no', which is not among the classes \[0, 1\]",
    ),
    "rebalance half": (
        lambda: AdaLPBoostClassifier(HistogramTree(), n_estimators=1).fit(GOOD_X, GOOD_Y).rebalance(GOOD_X),
        "You passed X without y",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_sentence(case):
    call, text = BAD[case]
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("learner", [object(), LogisticRegression, StandardScaler()])
def test_a_learner_that_is_no_classifier_is_refused(learner):
    with pytest.raises(TypeError, match="estimator must be a classifier"):
        AdaLPBoostClassifier(learner).fit(GOOD_X, GOOD_Y)
