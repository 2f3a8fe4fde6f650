"""RLP-Boost and RQP-Boost: AdaBoost's models, the program's votes, C by held-out error, errors."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_classification

from counterpoise import AdaBoostClassifier, RLPBoostClassifier, RQPBoostClassifier, Stopping
from counterpoise.boosting.margin_boost import LINEAR_COSTS, QUADRATIC_COSTS
from counterpoise.learners import HistogramTree, Stump

BOTH = [RLPBoostClassifier, RQPBoostClassifier]


def noisy():
    X, y = make_classification(900, 10, n_informative=5, flip_y=0.2, random_state=0)
    return (X[:400], y[:400]), (X[400:650], y[400:650]), (X[650:], y[650:])


def signs(models, X):
    return np.column_stack([2 * model.predict(X) - 1 for model in models])


@pytest.mark.parametrize("booster", BOTH)
def test_the_models_are_adaboosts_and_the_votes_the_programs(booster):
    (X, y), _, _ = noisy()
    model = booster(Stump(), n_estimators=40).fit(X, y)
    ada = AdaBoostClassifier(Stump(), n_estimators=40).fit(X, y)
    (solution,) = model.solutions_
    kept = np.flatnonzero(solution.votes)
    np.testing.assert_array_equal(model.votes_, solution.votes[kept])
    np.testing.assert_array_equal(signs(model.estimators_, X), signs(ada.estimators_, X)[:, kept])
    np.testing.assert_allclose(model.decision_function(X), signs(ada.estimators_, X) @ solution.votes, atol=1e-12)
    assert solution.gap <= 1e-3


def test_rlp_has_a_larger_soft_margin_than_adaboost():
    (X, y), _, _ = noisy()
    model = RLPBoostClassifier(Stump(), n_estimators=60, C=4.0).fit(X, y)
    ada = AdaBoostClassifier(Stump(), n_estimators=60).fit(X, y)

    def smallest_quarter(booster):
        margins = np.sort((2 * y - 1) * booster.decision_function(X) / booster.votes_.sum())
        return margins[: len(y) // 4].mean()

    assert smallest_quarter(model) == pytest.approx(model.solutions_[0].value, abs=1e-9)
    assert smallest_quarter(model) > smallest_quarter(ada)


def test_rqp_has_a_smaller_cost_than_any_multiple_of_adaboosts_votes():
    (X, y), _, _ = noisy()
    model = RQPBoostClassifier(Stump(), n_estimators=60, C=5.0).fit(X, y)
    ada = AdaBoostClassifier(Stump(), n_estimators=60).fit(X, y)

    def cost(votes, sums):
        return votes @ votes / 2 + 5.0 * np.maximum(0, 1 - (2 * y - 1) * sums).mean()

    mine = cost(model.votes_, model.decision_function(X))
    assert mine == pytest.approx(model.solutions_[0].value)
    sums = ada.decision_function(X)
    assert mine < min(cost(scale * ada.votes_, scale * sums) for scale in np.geomspace(0.01, 10, 50))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("booster", "grid"), [(RLPBoostClassifier, LINEAR_COSTS), (RQPBoostClassifier, QUADRATIC_COSTS)]
)
def test_auto_takes_the_smallest_c_of_least_held_out_error(booster, grid):
    train, (X_val, y_val), _ = noisy()
    auto = booster(Stump(), C="auto", n_estimators=40).fit(*train, X_val=X_val, y_val=y_val)
    # One program at a time starts elsewhere than along the grid: only the errors to the tolerance agree.
    scores = [
        booster(Stump(), C=C, n_estimators=40).fit(*train, X_val=X_val, y_val=y_val).score(X_val, y_val) for C in grid
    ]
    assert auto.C_ in grid
    assert auto.score(X_val, y_val) == pytest.approx(max(scores), abs=0.02)


@pytest.mark.parametrize("booster", BOTH)
def test_patience_gives_the_program_the_rounds_up_to_the_least_error(booster):
    train, (X_val, y_val), _ = noisy()
    settings = {"n_estimators": 150, "stopping": Stopping(patience=10)}
    model = booster(HistogramTree(max_depth=3), **settings).fit(*train, X_val=X_val, y_val=y_val)
    ada = AdaBoostClassifier(HistogramTree(max_depth=3), **settings).fit(*train, X_val=X_val, y_val=y_val)
    assert len(model.solutions_[0].votes) == len(ada.votes_) < 150


@pytest.mark.parametrize("booster", BOTH)
def test_stages_add_the_kept_models_with_their_final_votes(booster):
    (X, y), _, _ = noisy()
    model = booster(Stump(), n_estimators=30).fit(X, y)
    stages = list(model.staged_decision_function(X))
    assert len(stages) == len(model.estimators_)
    each = signs(model.estimators_, X) * model.votes_
    np.testing.assert_allclose(stages[2], each[:, :3].sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(stages[-1], model.decision_function(X), atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("booster", BOTH)
def test_more_classes_each_have_a_program_of_their_own(booster):
    X, y = load_digits(return_X_y=True)
    X, y, X_val, y_val = X[:900], y[:900], X[900:1200], y[900:1200]
    model = booster(HistogramTree(max_depth=3), C="auto", n_estimators=10).fit(X, y, X_val=X_val, y_val=y_val)
    assert len(model.ensembles_) == len(model.solutions_) == len(model.C_) == 10
    assert model.score(X_val, y_val) > 0.8


@pytest.mark.parametrize("booster", BOTH)
def test_a_perfect_first_model_is_the_whole_ensemble(booster):
    X = np.arange(20.0)[:, None]
    model = booster(Stump()).fit(X, X[:, 0] > 9)
    assert len(model.estimators_) == 1
    assert model.votes_[0] > 0
    assert model.score(X, X[:, 0] > 9) == 1


def test_callbacks_see_adaboosts_rounds_and_can_stop_them():
    (X, y), _, _ = noisy()
    seen = []
    model = RLPBoostClassifier(Stump(), callbacks=[lambda done: seen.append(done.number) or done.number == 6]).fit(X, y)
    assert seen == [1, 2, 3, 4, 5, 6]
    assert len(model.solutions_[0].votes) == 6


X_BAD, Y_BAD = np.zeros((10, 1)), [0, 1] * 5
BAD = {
    "C of zero": (lambda: RQPBoostClassifier(C=0).fit(X_BAD, Y_BAD), "C must be finite and above 0; got 0"),
    "C beyond rounding": (lambda: RQPBoostClassifier(C=1e300).fit(X_BAD, Y_BAD), "C must be at most 1e\\+12"),
    "C below 1": (lambda: RLPBoostClassifier(C=0.5).fit(X_BAD, Y_BAD), r"C must be at least 1.*got 0\.5"),
    "unknown word": (lambda: RLPBoostClassifier(C="best").fit(X_BAD, Y_BAD), "C.*must be one of 'auto'; got 'best'"),
    "auto without samples": (
        lambda: RQPBoostClassifier(C="auto").fit(X_BAD, Y_BAD),
        "C='auto' needs held-out samples: pass X_val and y_val, or set stopping=Stopping",
    ),
    "no better than chance": (lambda: RLPBoostClassifier(Stump()).fit(X_BAD, Y_BAD), "no better than chance"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_sentence(case):
    call, text = BAD[case]
    with pytest.raises(ValueError, match=text):
        call()


def test_a_c_that_is_no_number_is_refused():
    with pytest.raises(TypeError, match="C must be a number above 0; got None"):
        RQPBoostClassifier(C=None).fit(X_BAD, Y_BAD)
