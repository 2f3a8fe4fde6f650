"""AdaBoost and VadaBoost: against scikit-learn, against the paper's theorems, their stops and choices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import AdaBoostClassifier as ScikitAdaBoost
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

from counterpoise import AdaBoostClassifier, DROBoostClassifier, RLPBoostClassifier, Stopping, VadaBoostClassifier
from counterpoise.boosting.additive import logistic_probabilities
from counterpoise.boosting.vadaboost import PENALTIES, VadaBoostStep
from counterpoise.learners import HistogramTree, Stump


@pytest.mark.parametrize("depth", [1, 3])
def test_adaboost_agrees_with_scikit_learn_round_by_round(depth):
    X, y = make_classification(400, 6, flip_y=0.1, random_state=0)
    peer = ScikitAdaBoost(DecisionTreeClassifier(max_depth=depth), n_estimators=20, random_state=0).fit(X, y)
    ours = AdaBoostClassifier(DecisionTreeClassifier(max_depth=depth), n_estimators=20, random_state=0).fit(X, y)
    np.testing.assert_allclose(2 * ours.votes_, peer.estimator_weights_, rtol=1e-9)
    for mine, theirs in zip(ours.staged_predict(X), peer.staged_predict(X), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("booster", [AdaBoostClassifier(Stump()), DROBoostClassifier(Stump())])
def test_votes_that_cancel_out_decide_the_same_in_any_batch(booster):
    """A product of matrices rounds otherwise in batches of other sizes, so that a tie would go to either class."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (240, 20)).astype(float)
    model = booster.set_params(n_estimators=20).fit(X, (X.sum(axis=1) + rng.normal(size=240) > 10).astype(int))
    (ensemble,) = model.ensembles_
    tenths = rng.integers(1, 9, len(ensemble.votes))
    tenths[0] += tenths.sum() % 2  # so that they can cancel out
    model.ensembles_ = [ensemble._replace(votes=tenths / 10)]
    whole = model.decision_function(X)
    assert (np.abs(whole) < 1e-14).any()
    for size in (1, 2, 3, 7, 64):
        pieces = [model.decision_function(X[start : start + size]) for start in range(0, 240, size)]
        np.testing.assert_array_equal(np.concatenate(pieces), whole)


def cost(f_of_y, penalty):
    """Cost (3) of the paper for margins ``y f(x)``, over n^2."""
    losses = np.exp(-f_of_y)
    return losses.mean() ** 2 + penalty * (np.mean(losses**2) - losses.mean() ** 2)


@settings(max_examples=25)
@given(seed=st.integers(0, 1000), penalty=st.floats(0, 1))
def test_the_cost_never_rises(seed, penalty):
    """Corollary 4."""
    X, y = make_classification(120, 5, flip_y=0.2, random_state=seed)
    model = VadaBoostClassifier(Stump(), n_estimators=15, penalty=penalty, stopping=Stopping()).fit(X, y)
    margins = [(2 * y - 1) * sums for sums in model.staged_decision_function(X)]
    costs = [1.0, *(cost(one, penalty) for one in margins)]
    assert (np.diff(costs) <= 1e-12).all()


@given(st.integers(0, 10_000), st.floats(0, 1), st.floats(-2, 2))
def test_the_bound_is_above_the_cost_and_exact_at_zero_and_at_penalty_one(seed, penalty, vote):
    """Theorem 3 and the remark after it."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(12))
    wrong = rng.random(12) < 0.4

    def true_cost(step, p):
        moved = weights * np.exp(np.where(wrong, step, -step))
        return (1 - p) * moved.sum() ** 2 + p * 12 * (moved**2).sum()

    def bound(step, p):
        u = p * 12 * weights**2 + (1 - p) * weights
        return u[~wrong].sum() * np.exp(-2 * step) + u[wrong].sum() * np.exp(2 * step)

    assert true_cost(vote, penalty) <= bound(vote, penalty) * (1 + 1e-12) + 1e-12
    assert true_cost(0, penalty) == pytest.approx(bound(0, penalty))
    assert true_cost(vote, 1.0) == pytest.approx(bound(vote, 1.0))
    if 0 < wrong.sum() < 12:
        best = VadaBoostStep(penalty, np.full(12, 1 / 12)).vote(weights, wrong.astype(np.uint8))
        assert bound(best, penalty) <= bound(vote, penalty) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_without_penalty_it_needs_at_most_twice_the_rounds_of_adaboost(seed):
    """Theorem 5: with the same errors, two VadaBoost rounds lower AdaBoost's cost at least as far as one of its own."""
    error = np.random.default_rng(seed).uniform(0.01, 0.49)
    adaboost = 4 * error * (1 - error)
    vadaboost = 2 * error * (1 - error) + np.sqrt(error * (1 - error))
    assert vadaboost**2 <= adaboost + 1e-12


def test_penalty_zero_gives_half_of_adaboosts_first_vote():
    X, y = make_classification(300, 5, flip_y=0.2, random_state=1)
    ada = AdaBoostClassifier(Stump(), n_estimators=1).fit(X, y)
    vada = VadaBoostClassifier(Stump(), n_estimators=1, penalty=0).fit(X, y)
    assert vada.votes_[0] == pytest.approx(ada.votes_[0] / 2)


@pytest.mark.parametrize(
    "booster", [AdaBoostClassifier(), RLPBoostClassifier(C="auto"), VadaBoostClassifier(penalty="auto")]
)
def test_held_out_samples_keep_their_weights(booster):
    """Many samples with turned labels, but next to no weight, do not tell when to stop and what to choose."""
    X, y = make_classification(1500, 6, n_informative=5, n_redundant=0, flip_y=0, random_state=6)
    turned = np.random.default_rng(0).random(1500) < 0.8
    booster.set_params(
        estimator=HistogramTree(max_depth=2), n_estimators=30, stopping=Stopping(patience=30, validation_fraction=0.5)
    )
    booster.set_params(random_state=0).fit(X, np.where(turned, 1 - y, y), np.where(turned, 1e-9, 1.0))
    assert booster.score(X, y) > 0.87


@pytest.mark.parametrize("booster", [AdaBoostClassifier, VadaBoostClassifier])
def test_patience_keeps_the_rounds_up_to_the_least_error(booster):
    X, y = make_classification(600, 10, flip_y=0.3, random_state=2)
    model = booster(HistogramTree(max_depth=3), n_estimators=200, stopping=Stopping(patience=10)).fit(
        X[:300], y[:300], X_val=X[300:], y_val=y[300:]
    )
    errors = 1 - np.array(list(model.staged_score(X[300:], y[300:])))
    assert len(model.estimators_) < 200
    assert errors.argmin() == len(errors) - 1


def test_auto_takes_the_penalty_with_the_least_held_out_error():
    X, y = make_classification(600, 10, flip_y=0.2, random_state=3)
    parts = {"X_val": X[300:], "y_val": y[300:]}
    auto = VadaBoostClassifier(Stump(), n_estimators=30, penalty="auto").fit(X[:300], y[:300], **parts)
    scores = [
        VadaBoostClassifier(Stump(), n_estimators=30, penalty=p).fit(X[:300], y[:300], **parts).score(X[300:], y[300:])
        for p in PENALTIES
    ]
    assert auto.score(X[300:], y[300:]) == max(scores)
    assert auto.penalty_ == PENALTIES[int(np.argmax(scores))]


def test_more_classes_are_boosted_one_against_the_others():
    X, y = load_digits(return_X_y=True)
    model = AdaBoostClassifier(HistogramTree(max_depth=3), n_estimators=20).fit(X[:1200], y[:1200])
    assert len(model.ensembles_) == 10
    assert model.decision_function(X).shape == (1797, 10)
    assert model.score(X[1200:], y[1200:]) > 0.85


def test_classes_that_all_deny_a_sample_by_far_still_share_its_probability():
    """The logistic link of each is 0 to the last float, but not so their ratios."""
    odds = np.array([[-2000.0, -2000.0 + np.log(2), -2000.0]])
    np.testing.assert_allclose(logistic_probabilities(odds), [[0.25, 0.5, 0.25]], rtol=1e-9)


def test_stages_are_scored_on_a_column_of_labels_as_on_a_row():
    X, y = make_classification(60, 5, flip_y=0.2, random_state=4)
    model = AdaBoostClassifier(Stump(), n_estimators=4).fit(X, y)
    assert list(model.staged_score(X, y[:, None])) == list(model.staged_score(X, y))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        list(model.staged_score(X, y[:5]))


@pytest.mark.parametrize("booster", [AdaBoostClassifier, VadaBoostClassifier])
def test_a_step_of_any_length_is_no_sign_of_chance(booster):
    X, y = make_classification(100, 3, n_informative=2, n_redundant=0, random_state=0)
    short, whole = (booster(Stump(), n_estimators=1, learning_rate=rate).fit(X, y) for rate in (1e-14, 1.0))
    np.testing.assert_array_equal(short.predict(X), whole.predict(X))


def test_a_perfect_model_ends_the_boosting_with_a_finite_vote():
    X = np.arange(20.0)[:, None]
    model = AdaBoostClassifier(Stump()).fit(X, X[:, 0] > 9)
    assert len(model.votes_) == 1
    assert np.isfinite(model.votes_).all()
    assert model.predict_proba(X).min() >= 0


NOISE_X = np.zeros((10, 1))
BAD = {
    "penalty": (
        lambda: VadaBoostClassifier(penalty=1.5).fit(NOISE_X, [0, 1] * 5),
        r"penalty must lie in \[0, 1\].*got 1.5",
    ),
    "penalty word": (
        lambda: VadaBoostClassifier(penalty="best").fit(NOISE_X, [0, 1] * 5),
        "penalty.*must be one of 'auto'",
    ),
    "auto without samples": (
        lambda: VadaBoostClassifier(penalty="auto").fit(NOISE_X, [0, 1] * 5),
        "penalty='auto' needs held-out samples",
    ),
    "no better than chance": (
        lambda: AdaBoostClassifier(Stump()).fit(NOISE_X, [0, 1] * 5),
        "first model is no better than chance: its weighted error is 0.5",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_sentence(case):
    call, text = BAD[case]
    with pytest.raises(ValueError, match=text):
        call()


def test_a_fit_that_fails_leaves_nothing_of_an_earlier_one():
    model = AdaBoostClassifier(Stump(), n_estimators=2).fit(np.arange(10.0)[:, None], [0] * 5 + [1] * 4 + [0])
    with pytest.raises(ValueError, match="no better than chance"):
        model.fit(NOISE_X, ["no", "yes"] * 5)
    for ask in (model.predict, model.predict_proba, lambda X: next(model.staged_predict(X))):
        with pytest.raises(NotFittedError):
            ask(NOISE_X)
