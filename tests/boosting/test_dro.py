"""DRO-Boosting: what its rounds do to the robust loss, where they meet AdaBoost, and its interface."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from counterpoise import AdaBoostClassifier, DROBoostClassifier, Stopping
from counterpoise.boosting.dro import (
    RADIUS_FACTORS,
    SignDirections,
    ValueDirections,
    dimension,
    make_directions,
    sample_count,
)
from counterpoise.boosting.robust_loss import RobustLoss
from counterpoise.datasets import DataNotAvailable, load_dataset, split_rows
from counterpoise.learners import HistogramTree, Stump
from counterpoise.solvers import worst_case_weights
from counterpoise.theory.guarantees import calibrated_radius
from counterpoise.theory.losses import LOSSES
from counterpoise.theory.risks import KL, ChiSquare, CVaR, EmpiricalLikelihood

BALLS = {"empirical-likelihood": EmpiricalLikelihood, "kl": KL, "chi-square": ChiSquare}
BALLS["cvar"] = lambda radius: CVaR(np.exp(-radius))
KINDS = [("exponential", "empirical-likelihood"), ("logistic", "kl"), ("squared", "chi-square"), ("logistic", "cvar")]


class ImageTree(DecisionTreeClassifier):
    """A tree that takes rows of any shape."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X.reshape(len(X), -1), y, sample_weight)

    def predict(self, X):
        return super().predict(X.reshape(len(X), -1))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


def noisy(seed, n_samples=150):
    return make_classification(n_samples, 5, flip_y=0.25, random_state=seed)


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "divergence"), KINDS)
@pytest.mark.parametrize("learner", [Stump(), DecisionTreeRegressor(max_depth=2)], ids=["signs", "values"])
@settings(max_examples=3)
@given(
    seed=st.integers(0, 999),
    radius=st.sampled_from([0.0, 1e-4, 0.01, 0.05]),
    learning_rate=st.sampled_from([0.1, 0.5, 1.0]),
)
def test_the_robust_loss_never_rises_and_is_that_of_the_risk(loss, divergence, learner, seed, radius, learning_rate):
    X, y = noisy(seed)
    model = DROBoostClassifier(
        learner, n_estimators=12, radius=radius, divergence=divergence, loss=loss, learning_rate=learning_rate
    ).fit(X, y)
    assert (np.diff(model.robust_losses_) <= 1e-12).all()
    risk, signs = BALLS[divergence](radius), 2 * y - 1
    scores = [np.zeros(len(y)), *model.staged_decision_function(X)]
    losses = [LOSSES[loss].value(signs * score) for score in scores]
    np.testing.assert_allclose(model.robust_losses_, [risk.value(one) for one in losses], rtol=1e-8)
    for weights, one in zip(model.descents_[0].weights, losses, strict=False):
        np.testing.assert_allclose(weights, risk.subgradient(one), atol=1e-8)


@pytest.mark.parametrize(("loss", "divergence"), KINDS)
def test_the_line_search_finds_the_least_robust_loss(loss, divergence):
    rng = np.random.default_rng(0)
    margins, sides = rng.normal(scale=0.3, size=300), rng.choice([-1.0, 1.0, 1.0, 1.0, 1.0], size=300)
    robust = RobustLoss(LOSSES[loss], divergence, 0.05, np.full(300, 1 / 300))
    state = robust.at(margins)
    found = robust.line_search(state, sides, are_signs=True)
    least = minimize_scalar(lambda step: robust.at(margins + step * sides).value, bounds=(0, 3), method="bounded")
    assert found.state.value == pytest.approx(least.fun, rel=2e-3)
    assert found.state.value == pytest.approx(robust.at(margins + found.step * sides).value, rel=1e-12)
    assert robust.line_search(found.state, -sides, are_signs=True).step < 0.1 * found.step


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@pytest.mark.parametrize("learner", [HistogramTree(max_depth=5), DecisionTreeRegressor(max_depth=5, random_state=0)])
def test_a_model_that_is_wrong_only_where_the_worst_weights_are_zero_is_no_perfect_one(loss, learner):
    """The weights of a small tail are 0 outside of it, and a tree may be right on all of the tail."""
    X, y = make_classification(150, 5, flip_y=0.05, random_state=1)
    settings = {"n_estimators": 30, "radius": 2.0, "divergence": "cvar", "loss": loss, "learning_rate": 0.5}
    model = DROBoostClassifier(learner, **settings).fit(X, y)
    assert len(model.votes_) > 4
    assert (np.diff(model.robust_losses_) <= 1e-12).all()


@pytest.mark.parametrize(("loss", "divergence"), KINDS)
@given(
    seed=st.integers(0, 999), radius=st.sampled_from([0.0, 0.1, 5.0, np.inf]), power=st.sampled_from([0, 1, 30, 300])
)
def test_the_line_search_never_rises_and_ends_on_any_weights(loss, divergence, seed, radius, power):
    rng = np.random.default_rng(seed)
    own = np.maximum(rng.random(8) ** power, 1e-290)
    margins, is_signs = rng.normal(scale=seed % 3, size=8), seed % 2 == 0
    sides = rng.choice([-1.0, 1.0, 1.0], size=8) if is_signs else 10.0 ** rng.integers(-5, 5) * rng.normal(size=8)
    robust = RobustLoss(LOSSES[loss], divergence, radius, own / own.sum())
    state = robust.at(margins)
    found = robust.line_search(state, sides, are_signs=is_signs)
    assert found.state.value <= state.value
    assert found.state.value == pytest.approx(robust.at(margins + found.step * sides).value, rel=1e-9)


def test_at_radius_zero_with_whole_steps_it_is_adaboost():
    X, y = noisy(3, 400)
    dro = DROBoostClassifier(Stump(), n_estimators=20, radius=0, learning_rate=1).fit(X, y)
    ada = AdaBoostClassifier(Stump(), n_estimators=20).fit(X, y)
    np.testing.assert_allclose(dro.votes_, ada.votes_, rtol=1e-7)
    np.testing.assert_array_equal(dro.predict(X), ada.predict(X))


def test_corollary_2_the_worst_weights_are_adaboosts_in_every_round():
    X, y = load_breast_cancer(return_X_y=True)
    seen = []
    ada = AdaBoostClassifier(Stump(), n_estimators=30, callbacks=[lambda done: seen.append(done.weights)]).fit(X, y)
    margins = [(2 * y - 1) * score for score in ada.staged_decision_function(X)]
    for weights, margin in zip(seen[1:], margins, strict=False):
        radius = np.log(np.mean(np.exp(-margin))) + np.mean(margin)
        np.testing.assert_allclose(worst_case_weights(-np.exp(margin), radius), weights, atol=1e-10)
    assert len(seen) == 30


def test_a_larger_radius_weighs_unevenly_and_steps_less():
    X, y = noisy(1, 500)
    fits = [
        DROBoostClassifier(Stump(), n_estimators=1, radius=r, learning_rate=1, stopping=Stopping()).fit(X, y)
        for r in (0, 0.01, 0.1)
    ]
    assert fits[0].votes_[0] > fits[1].votes_[0] > fits[2].votes_[0]


def test_the_radius_is_calibrated_with_the_leaves_of_the_first_tree():
    X, y = noisy(2)
    model = DROBoostClassifier(HistogramTree(max_depth=3), n_estimators=3, radius_confidence=0.95).fit(X, y)
    leaves = int((model.estimators_[0].tree_.feature < 0).sum())
    assert model.degrees_of_freedom_ == leaves > 2
    assert model.radius_ == calibrated_radius(len(y), 0.95, leaves)
    given_ = DROBoostClassifier(HistogramTree(), n_estimators=1, degrees_of_freedom=30).fit(X, y)
    assert (given_.degrees_of_freedom_, given_.radius_) == (30.0, calibrated_radius(len(y), 0.9, 30))
    fixed = DROBoostClassifier(HistogramTree(), n_estimators=1, radius=0.2).fit(X, y)
    assert (fixed.degrees_of_freedom_, fixed.radius_) == (None, 0.2)


def test_the_dimension_of_other_models():
    X, y = noisy(4)
    assert dimension(DecisionTreeClassifier(max_leaf_nodes=6).fit(X, y), 5) == 6
    assert dimension(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y), 5) == 6
    assert dimension(LinearRegression().fit(X, y), 5) == 6
    assert dimension(KNeighborsRegressor().fit(X, y), 5) == 6


def test_weights_count_as_repeats_where_they_are_whole_multiples():
    assert sample_count(np.full(40, 1 / 40)) == pytest.approx(40)
    assert sample_count(np.array([1, 2, 3, 1]) / 7) == pytest.approx(7)
    uneven = np.array([0.5, 0.3, 0.2]) ** 1.7
    own = uneven / uneven.sum()
    assert sample_count(own) == pytest.approx(1 / (own @ own))


def test_a_sample_of_next_to_no_weight_does_not_multiply_the_others():
    own = np.array([1e-9, 1.0, 1.0, 1.0, 1.0])
    assert sample_count(own / own.sum()) == pytest.approx(4)


def test_doubling_a_weight_is_repeating_the_sample_for_regressors_too():
    X, y = noisy(5)
    X, weight = X.round(1), np.random.default_rng(0).integers(1, 4, size=150)
    model = DROBoostClassifier(DecisionTreeRegressor(max_depth=2, random_state=0), n_estimators=8)
    weighted = model.fit(X, y, sample_weight=weight).decision_function(X)
    repeated = model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).decision_function(X)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-7)


@pytest.mark.slow
def test_cross_validation_takes_a_multiple_of_the_calibrated_radius():
    X, y = noisy(6, 300)
    model = DROBoostClassifier(Stump(), n_estimators=15, radius="cv", learning_rate=0.5, random_state=0).fit(X, y)
    factor = model.radius_ / calibrated_radius(300, 0.9, model.degrees_of_freedom_)
    assert np.isclose(factor, RADIUS_FACTORS).any()
    with pytest.raises(ValueError, match=r"radius='cv' needs 3 samples of each class.*the class 1 has 2\. Use radius="):
        model.fit(X[:9], [0, 0, 0, 0, 0, 0, 0, 1, 1])
    again = DROBoostClassifier(Stump(), n_estimators=15, radius="cv", learning_rate=0.5, random_state=0).fit(X, y)
    assert again.radius_ == model.radius_


def test_a_regressor_is_fitted_to_the_pulls_by_least_squares():
    X, _ = noisy(7)
    rng = np.random.default_rng(0)
    own = rng.dirichlet(np.full(150, 5.0))
    pulls, labels = own * rng.normal(size=150), rng.choice([-1.0, 1.0], size=150)
    directions = make_directions(LinearRegression(), X, labels, own, np.array([0, 1]), lambda number: number)
    assert isinstance(directions, ValueDirections)
    _, values = directions(pulls, 1)
    design = np.column_stack([X, np.ones(150)]) * np.sqrt(own)[:, None]
    best = np.linalg.lstsq(design, np.sqrt(own) * pulls / own, rcond=None)[0]
    np.testing.assert_allclose(values, np.column_stack([X, np.ones(150)]) @ best)


def test_a_classifier_is_fitted_to_the_signs_of_the_pulls():
    X = np.arange(6.0)[:, None]
    labels, own = np.array([-1.0, -1, -1, 1, 1, 1]), np.full(6, 1 / 6)
    directions = make_directions(Stump(), X, labels, own, np.array(["no", "yes"]), lambda number: number)
    assert isinstance(directions, SignDirections)
    model, values = directions(np.array([-1.0, -1, -1, 1, 1, 1]), 1)
    np.testing.assert_array_equal(values, labels)
    np.testing.assert_array_equal(model.predict(X), ["no", "no", "no", "yes", "yes", "yes"])
    _, values = directions(np.array([1.0, 1, 0, 0, -1, -1]), 2)  # too sure on both sides: pulled back
    np.testing.assert_array_equal(values[[0, 1, 4, 5]], [1, 1, -1, -1])


@pytest.mark.parametrize("loss", ["exponential", "logistic", "squared"])
def test_probabilities_stages_and_scores_agree(loss):
    X, y = load_breast_cancer(return_X_y=True)
    names = np.array(["bad", "good"])[y]
    model = DROBoostClassifier(HistogramTree(max_depth=2), n_estimators=25, loss=loss, random_state=0)
    model.fit(X[:400], names[:400])
    assert model.score(X[400:], names[400:]) > 0.9
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[(proba[:, 1] > 0.5).astype(int)], model.predict(X))
    *_, last = model.staged_predict_proba(X)
    np.testing.assert_allclose(last, proba)
    assert len(list(model.staged_predict(X))) == len(model.votes_)


def test_more_classes_are_boosted_one_against_the_others():
    X, y = load_digits(n_class=4, return_X_y=True)
    model = DROBoostClassifier(HistogramTree(max_depth=2), n_estimators=20, learning_rate=0.5, random_state=0)
    model.fit(X[:500], y[:500])
    assert len(model.descents_) == len(model.radius_) == len(model.degrees_of_freedom_) == 4
    assert model.decision_function(X).shape == (len(y), 4)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.score(X[500:], y[500:]) > 0.85


def test_it_stops_by_the_held_out_loss_and_keeps_the_rounds_up_to_its_least():
    X, y = make_classification(900, 10, flip_y=0.4, random_state=0)
    model = DROBoostClassifier(HistogramTree(max_depth=5), learning_rate=1, stopping=Stopping(patience=5))
    model.fit(X[:600], y[:600], X_val=X[600:], y_val=y[600:])
    seen = model.descents_[0].held_out_losses
    losses = [np.exp(-(2 * y[600:] - 1) * score).mean() for score in model.staged_decision_function(X[600:])]
    assert len(model.votes_) == np.argmin(seen) + 1 < 100
    assert len(seen) == len(model.votes_) + 5
    np.testing.assert_allclose(losses, seen[: len(losses)], rtol=1e-9)


def test_a_fifth_is_held_out_of_500_samples_and_none_of_fewer():
    X, y = noisy(8, 500)
    auto = DROBoostClassifier(Stump(), n_estimators=2, stopping=Stopping(patience=10, validation_fraction="auto"))
    assert len(auto.fit(X, y).descents_[0].weights[0]) == 400
    assert len(auto.fit(X[:499], y[:499]).descents_[0].weights[0]) == 499
    assert len(auto.set_params(stopping=Stopping()).fit(X, y).descents_[0].weights[0]) == 500


def test_a_perfect_model_ends_the_boosting_with_a_finite_vote():
    X = np.arange(20.0)[:, None]
    for learner in (Stump(), DecisionTreeRegressor(max_depth=1)):
        model = DROBoostClassifier(learner).fit(X, X[:, 0] > 9)
        assert len(model.votes_) == 1
        assert np.isfinite(model.decision_function(X)).all()
        assert model.score(X, X[:, 0] > 9) == 1


def test_where_every_loss_is_at_its_least_the_boosting_ends():
    """The squared loss of a perfect model with a whole step is 0: no sample pulls any more."""
    X = np.arange(20.0)[:, None]
    model = DROBoostClassifier(Stump(), loss="squared", learning_rate=1).fit(X, X[:, 0] > 9)
    np.testing.assert_allclose(model.votes_, [1.0])
    np.testing.assert_allclose(model.robust_losses_, [1.0, 0.0])


def test_images_reach_a_learner_that_takes_them():
    X = np.random.default_rng(0).normal(size=(60, 2, 3))
    y = X[:, 1, 0] + X[:, 0, 2] > 0
    assert DROBoostClassifier(ImageTree(max_depth=2), n_estimators=5).fit(X, y).score(X, y) > 0.8


def test_callbacks_see_the_rounds_and_may_stop_them():
    X, y = noisy(9)
    seen = []
    model = DROBoostClassifier(Stump(), callbacks=[lambda done: seen.append(done) or done.number == 3]).fit(X, y)
    assert [done.number for done in seen] == [1, 2, 3]
    assert len(model.votes_) == 3
    assert seen[0].weighted_loss == pytest.approx((model.estimators_[0].predict(X) != y).mean())


@pytest.mark.slow
def test_on_credit_default_it_is_ahead_of_adaboost():
    try:
        data = load_dataset("credit-default")
    except DataNotAvailable as error:
        pytest.skip(str(error))
    gains = []
    for seed in range(3):
        train, test = split_rows(data.y, (0.1, 0.9), seed=seed)
        tree, parts = HistogramTree(max_depth=5), (data.X[train], data.y[train])
        dro = DROBoostClassifier(tree, degrees_of_freedom=30, random_state=seed).fit(*parts)
        ada = AdaBoostClassifier(tree, n_estimators=50).fit(*parts)
        gains.append(dro.score(data.X[test], data.y[test]) - ada.score(data.X[test], data.y[test]))
    assert np.mean(gains) > 0.015


GOOD_X, GOOD_Y = np.arange(20.0).reshape(10, 2), np.array([0, 1] * 5)
BAD = {
    "radius": ({"radius": -0.1}, "radius must lie in \\[0, inf\\].*got -0.1"),
    "radius word": ({"radius": "wide"}, "radius.*must be one of 'calibrated', 'cv'; got 'wide'"),
    "radius_confidence": ({"radius_confidence": 1.0}, r"radius_confidence must lie in \(0, 1\).*got 1.0"),
    "degrees": ({"degrees_of_freedom": 0}, "degrees_of_freedom must be finite and above 0; got 0"),
    "divergence": ({"divergence": "renyi"}, "divergence must be one of.*got 'renyi'"),
    "loss": ({"loss": "hinge"}, "loss must be one of 'exponential', 'logistic', 'squared'; got 'hinge'"),
    "learning rate": ({"learning_rate": 1.5}, r"learning_rate must lie in \(0, 1\].*got 1.5"),
    "rounds": ({"n_estimators": 0}, "n_estimators must be at least 1; got 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_parameters_get_one_clear_sentence(case):
    parameters, text = BAD[case]
    with pytest.raises(ValueError, match=text):
        DROBoostClassifier(**parameters).fit(GOOD_X, GOOD_Y)


@pytest.mark.parametrize("learner", [object(), StandardScaler()])
def test_a_learner_that_is_neither_classifier_nor_regressor_is_refused(learner):
    with pytest.raises(TypeError, match=r"must be a classifier or a regressor.*which is neither"):
        DROBoostClassifier(learner).fit(GOOD_X, GOOD_Y)


def test_a_learner_without_sample_weights_is_refused_for_uneven_samples():
    with pytest.raises(ValueError, match=r"must take sample_weight at fit.*KNeighborsRegressor"):
        DROBoostClassifier(KNeighborsRegressor(3)).fit(GOOD_X, GOOD_Y, sample_weight=np.arange(1.0, 11.0))
    assert DROBoostClassifier(KNeighborsRegressor(3), n_estimators=2).fit(GOOD_X, GOOD_X[:, 0] > 9).votes_.size > 0


def test_labels_that_are_all_noise_are_named():
    with pytest.raises(ValueError, match="first model is no better than chance"):
        DROBoostClassifier(Stump()).fit(np.zeros((10, 1)), GOOD_Y)
