"""ConstrainedClassifier: what it promises about data and parameters, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from two_groups import GROUP, MODEL, PARITY, X, Y, fitted

from counterpoise import ConstrainedClassifier
from counterpoise.goals import Dataset, Table, UnknownName, positive_rate

TRAIN = Dataset("train")


@pytest.mark.parametrize(
    ("fit", "kind", "text"),
    [
        (lambda: ConstrainedClassifier().fit(X, np.arange(400) % 3), ValueError, "Only binary classification.*3 class"),
        (lambda: ConstrainedClassifier().fit(np.where(X > 2, np.nan, X), Y), ValueError, "contains NaN"),
        (
            lambda: ConstrainedClassifier(goals="recall >= 0.5").fit(X, Y, (Y == 0).astype(float)),
            ValueError,
            "no row of positive weight.*labelled positive is empty.*Needed by recall",
        ),
        (lambda: fitted(goals="recall(trian) >= 0.5"), UnknownName, "Unknown dataset 'trian'. Did you mean 'train'"),
        (
            lambda: fitted(goals="recall(sex=a) >= 0.5"),
            UnknownName,
            "Unknown column 'sex'.*is the column 'group'",
        ),
        (lambda: fitted(goals="recall(group=c) >= 0.5"), UnknownName, "Unknown value 'c'.*Known: 'a', 'b'"),
        (lambda: fitted(goals=3), TypeError, "goals must be goals or their texts"),
        (lambda: fitted(objective="precision"), TypeError, "a ratio, which is not linear"),
        (
            lambda: fitted(goals="churn <= 0.1"),
            ValueError,
            "needs the deployed model's predictions: pass baseline",
        ),
        (
            lambda: ConstrainedClassifier(goals="coverage(mail) <= 0.1").fit(X, Y, datasets={"mail": Table(X[:, :2])}),
            ValueError,
            "Dataset 'mail': X has 2 features, but ConstrainedClassifier is expecting 4",
        ),
        (
            lambda: ConstrainedClassifier(goals="recall(old) >= 0.1").fit(X, Y, datasets={"old": Table(None, Y)}),
            ValueError,
            "Dataset 'old' needs features to score its rows by: pass X",
        ),
        (
            lambda: ConstrainedClassifier(goals="coverage(mail) <= 0.1").fit(X, Y, datasets={"mail": X}),
            TypeError,
            "'mail' must be bound to a counterpoise.goals.Table; got ndarray",
        ),
        (lambda: ConstrainedClassifier().fit(X, Y, datasets={"train": Table(X)}), ValueError, "'train' is X and y"),
        (lambda: ConstrainedClassifier().fit(X, Y, datasets=[X]), TypeError, "datasets must be a dict .*; got list"),
        (lambda: MODEL.check_goals(X, Y, datasets={"train": Table(X)}), ValueError, "'train' is X and y"),
        (lambda: fitted(pos_label=2), ValueError, r"pos_label must be one of the classes \[0, 1\]; got 2"),
        (lambda: fitted(kernel="cubic"), ValueError, "kernel must be one of 'linear'.*got 'cubic'"),
        (lambda: fitted(kernel="sigmoid"), ValueError, "'sigmoid' is not supported.*Fit with kernel='rbf'"),
        (
            lambda: ConstrainedClassifier(kernel="rbf").fit(np.column_stack([X, 1e6 * Y]), Y),
            ValueError,
            "kernel of all pairs of rows, 'rbf', must be positive semidefinite.*rows of similar sizes",
        ),
        (lambda: fitted(decision="vote"), ValueError, "decision must be one of 'fixed', 'ramp'; got 'vote'"),
        (lambda: fitted(solver="sgd"), ValueError, "solver must be one of"),
        (lambda: fitted(regularization=0), ValueError, "regularization must be finite and above 0; got 0"),
        (lambda: fitted(gamma=-1), ValueError, "gamma must be finite and above 0; got -1"),
        (lambda: fitted(tol=0), ValueError, "tol must be finite and above 0; got 0"),
        (lambda: fitted(max_multiplier=0), ValueError, "max_multiplier must be finite and above 0; got 0"),
        (lambda: fitted(max_majorizations=0), ValueError, "max_majorizations must be at least 1; got 0"),
        (lambda: MODEL.predict(X, ids=range(400)), ValueError, "ids are for decision='ramp'"),
    ],
)
def test_what_cannot_be_gets_one_clear_sentence(fit, kind, text):
    with pytest.raises(kind, match=text):
        fit()


def test_one_text_a_goal_and_a_list_are_the_same():
    goal = positive_rate(TRAIN.where(group="b")) >= 0.8 * positive_rate(TRAIN.where(group="a"))
    for goals in (goal, [PARITY], (goal,)):
        np.testing.assert_array_equal(fitted(goals=goals).coef_, MODEL.coef_)


def test_sparse_rows_and_single_precision_give_the_same_classifier():
    sparse = ConstrainedClassifier(goals=PARITY).fit(sp.csr_array(X), Y, sensitive_features=GROUP)
    single = ConstrainedClassifier(goals=PARITY).fit(X.astype(np.float32), Y, sensitive_features=GROUP)
    for other, rows in ((sparse, sp.csr_array(X)), (single, X.astype(np.float32))):
        assert other.objective_value_ == pytest.approx(MODEL.objective_value_, abs=2 * MODEL.tol)
        assert (other.predict(rows) == MODEL.predict(X)).mean() > 0.97


def test_sparse_and_dense_datasets_may_be_mixed():
    goals = [PARITY, "coverage(mail) <= 0.3"]
    models = [
        ConstrainedClassifier(goals=goals).fit(X, Y, sensitive_features=GROUP, datasets={"mail": Table(mail)})
        for mail in (X[:50], sp.csr_array(X[:50]))
    ]
    values = [model.objective_value_ for model in models]
    assert values[0] == pytest.approx(values[1], abs=2 * MODEL.tol)


def test_goals_may_speak_of_the_columns_of_a_data_frame():
    frame = pd.DataFrame(X, columns=list("pqrs")).assign(is_b=(GROUP == "b").astype(float))
    goal = "positive_rate(is_b=1) >= 0.8 * positive_rate(is_b=0)"
    model = ConstrainedClassifier(goals=goal, decision="ramp").fit(frame, Y)
    assert model.check_goals(frame, Y)[0].violation <= 1e-6
    assert model.feature_names_in_.tolist() == [*"pqrs", "is_b"]


@pytest.mark.parametrize("regularization", [None, 0.01])
def test_whole_sample_weights_equal_repeated_rows(regularization):
    times = np.random.default_rng(0).integers(0, 4, size=len(Y))
    settings = {"goals": PARITY, "regularization": regularization}
    weighted = ConstrainedClassifier(**settings).fit(X, Y, times, sensitive_features=GROUP)
    repeated = ConstrainedClassifier(**settings).fit(
        np.repeat(X, times, axis=0), np.repeat(Y, times), sensitive_features=np.repeat(GROUP, times)
    )
    assert weighted.objective_value_ == pytest.approx(repeated.objective_value_, abs=2 * weighted.tol)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=0.05)


@pytest.mark.parametrize("solver", ["level", "maximum", "center-of-mass"])
def test_solvers_of_the_multipliers_agree(solver):
    assert fitted(solver=solver).objective_value_ == pytest.approx(MODEL.objective_value_, abs=0.01)


@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_weights_that_no_default_regularizes_are_refused_and_no_unit_matters_beside_one_that_is_given(unit):
    weights = np.full(len(Y), unit)
    with pytest.raises(ValueError, match=r"weights of the training rows sum to .* or pass regularization"):
        ConstrainedClassifier(goals=PARITY).fit(X, Y, weights, sensitive_features=GROUP)
    given, plain = (
        ConstrainedClassifier(goals=PARITY, regularization=0.01).fit(X, Y, one, sensitive_features=GROUP)
        for one in (weights, None)
    )
    np.testing.assert_allclose(given.coef_, plain.coef_, rtol=1e-6)
