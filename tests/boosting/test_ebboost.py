"""EBBoost: the best step of all on the cost that VadaBoost bounds, in every round."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_breast_cancer, load_iris, make_classification

from counterpoise import EBBoostClassifier, Stopping, VadaBoostClassifier
from counterpoise.boosting.adaboost import AdaBoostStep
from counterpoise.boosting.vadaboost import PENALTIES, EBBoostStep, VadaBoostStep, slope_weights
from counterpoise.learners import Stump
from counterpoise.learners.bernstein_stump import BernsteinStumps


def cost(weights, start, penalty, vote=0.0, losses=0):
    """Cost (3) of the paper, over n^2, after a step from these weights."""
    moved = weights * np.exp(vote * (2.0 * losses - 1.0))
    return (1 - penalty) * moved.sum() ** 2 + penalty * (moved**2 / start).sum()


@settings(max_examples=25)
@given(seed=st.integers(0, 1000), penalty=st.floats(0, 1) | st.floats(1, 100))
@example(seed=0, penalty=1e6)
def test_the_cost_never_rises(seed, penalty):
    X, y = make_classification(120, 5, flip_y=0.2, random_state=seed)
    start = np.random.default_rng(seed).dirichlet(np.full(120, 5.0))
    model = EBBoostClassifier(Stump(), n_estimators=15, penalty=penalty).fit(X, y, start)
    margins = [(2 * y - 1) * sums for sums in model.staged_decision_function(X)]
    costs = [1.0, *(cost(start * np.exp(-margin), start, penalty) for margin in margins)]
    assert (np.diff(costs) <= 1e-12 * max(penalty, 1.0)).all()
    assert costs[1] < 1


@given(seed=st.integers(0, 10_000), penalty=st.floats(1, 100))
def test_above_1_the_vote_is_the_step_of_least_cost(seed, penalty):
    """Right and wrong samples of any sizes, one of them nearly all of the start weights among them."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    start = rng.dirichlet(np.full(n, rng.choice([0.2, 1.0, 20.0]))) + 1e-9
    start /= start.sum()
    weights = start * rng.exponential(size=n) ** rng.choice([0.5, 3.0])
    weights /= weights.sum()
    losses = rng.integers(0, 2, n).astype(np.uint8)
    losses[:2] = 0, 1
    vote = EBBoostStep(penalty, start).vote(weights, losses)
    best = minimize_scalar(lambda step: cost(weights, start, penalty, step, losses), bounds=(0, 15), method="bounded")
    assert cost(weights, start, penalty, vote, losses) <= best.fun * (1 + 1e-9)


@given(seed=st.integers(0, 10_000), penalty=st.floats(0, 1))
def test_no_step_of_vadaboost_from_the_same_weights_costs_less(seed, penalty):
    rng = np.random.default_rng(seed)
    X, codes = rng.normal(size=(40, 3)).round(1), rng.integers(0, 2, 40)
    start, weights = rng.dirichlet(np.full(40, 3.0)), rng.dirichlet(np.ones(40))
    binned = Stump().prepare(X)

    def cost_after(step, predicted):
        losses = (predicted != codes).view(np.uint8)
        return cost(weights, start, penalty, step.vote(weights, losses), losses)

    vada, best = VadaBoostStep(penalty, start), BernsteinStumps(binned, codes, start, penalty)
    theirs = Stump().fit_codes(binned, codes, np.arange(2), slope_weights(weights, start, penalty))
    ours = best.fit(Stump(), weights, np.arange(2))
    assert cost_after(EBBoostStep(penalty, start), ours) <= cost_after(vada, theirs) + 1e-12


def test_without_penalty_the_steps_are_those_of_adaboost_over_the_stump_of_least_error():
    X, y = make_classification(200, 4, flip_y=0.2, random_state=0)
    X = X.round(1)
    rounds = []
    model = EBBoostClassifier(Stump(), n_estimators=12, penalty=0, callbacks=[rounds.append]).fit(X, y)
    weights = np.full(200, 1 / 200)
    for done, vote in zip(rounds, model.votes_, strict=True):
        np.testing.assert_allclose(done.weights, weights, rtol=1e-9)
        errors = [weights @ ((column > edge) != y) for column in X.T for edge in np.unique(column)]
        assert weights @ done.losses == pytest.approx(min(*errors, *(1 - np.array(errors))), abs=1e-12)
        assert vote == pytest.approx(AdaBoostStep().vote(weights, done.losses), rel=1e-9)
        weights = weights * np.exp(2 * vote * done.losses)
        weights /= weights.sum()


def test_a_weight_and_so_many_repeated_samples_are_the_same():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:150, :4].round(0), y[:150]
    weight = np.random.default_rng(4).integers(1, 4, size=150)
    for penalty in (0.0, 0.3, 1.0):
        booster = EBBoostClassifier(Stump(), n_estimators=8, penalty=penalty)
        weighted = booster.fit(X, y, sample_weight=weight).votes_
        repeated = booster.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).votes_
        np.testing.assert_allclose(weighted, repeated, rtol=1e-9)


def test_auto_takes_the_penalty_with_the_least_held_out_error_and_patience_the_rounds_up_to_it():
    X, y = make_classification(600, 10, flip_y=0.2, random_state=3)
    parts = {"X_val": X[300:], "y_val": y[300:]}
    models = [
        EBBoostClassifier(Stump(), n_estimators=60, stopping=Stopping(patience=10), penalty=penalty).fit(
            X[:300], y[:300], **parts
        )
        for penalty in ("auto", *PENALTIES)
    ]
    scores = [model.score(X[300:], y[300:]) for model in models]
    assert scores[0] == max(scores[1:])
    assert models[0].penalty_ == PENALTIES[int(np.argmax(scores[1:]))]
    staged = list(models[0].staged_score(X[300:], y[300:]))
    assert len(staged) < 60
    assert int(np.argmax(staged)) == len(staged) - 1


def test_missing_values_and_categories_and_the_names_of_a_data_frame():
    rng = np.random.default_rng(5)
    colour, size = rng.integers(0, 6, 400), rng.normal(size=400)
    y = np.where(np.isin(colour, [0, 3, 4]) ^ (rng.random(400) < 0.1), "odd", "even")
    frame = pd.DataFrame({"size": np.where(rng.random(400) < 0.2, np.nan, size), "colour": colour.astype(float)})
    model = EBBoostClassifier(Stump(categorical_features=[1]), n_estimators=5).fit(frame, y)
    assert model.score(frame, y) > 0.85
    first = model.estimators_[0]
    assert type(first) is Stump
    assert first.feature_names_in_.tolist() == ["size", "colour"]
    assert first.get_params()["categorical_features"] == [1]
    assert set(frame.colour[first.predict(frame) == "odd"]) == {0, 3, 4}


def test_more_classes_are_boosted_one_against_the_others():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = EBBoostClassifier(
        Stump(),
        learning_rate=1.0,
        n_estimators=20,
        penalty="auto",
        stopping=Stopping(patience=100, validation_fraction=0.3),
        random_state=0,
    ).fit(X, names)
    assert len(model.ensembles_) == len(model.penalty_) == 3
    assert model.score(X, names) > 0.93


def test_a_perfect_stump_ends_the_boosting_with_the_vote_of_adaboost():
    X = np.arange(20.0)[:, None]
    y = X[:, 0] > 9
    for penalty in (0.0, 0.5, 1.0):
        model = EBBoostClassifier(Stump(), penalty=penalty).fit(X, y)
        none = np.zeros(20, dtype=np.uint8)
        assert model.votes_ == pytest.approx([AdaBoostStep().vote(np.full(20, 0.05), none)])
        assert model.score(X, y) == 1


def test_boosting_stops_where_no_stump_gains():
    """After the only stump has its best vote, the reweighed samples leave nothing to any stump or constant."""
    X, y = np.array([[0.0], [0.0], [0.0], [1.0], [1.0], [1.0]]), [0, 0, 1, 1, 1, 0]
    model = EBBoostClassifier(Stump(), penalty=0.4).fit(X, y)
    assert len(model.votes_) == 1


NOISE_X = np.zeros((10, 1))
BAD = {
    "penalty": (
        lambda: EBBoostClassifier(Stump(), penalty=-0.1).fit(NOISE_X, [0, 1] * 5),
        r"penalty must lie in \[0, 1e\+06\].*got -0.1",
    ),
    "infinite penalty": (
        lambda: EBBoostClassifier(Stump(), penalty=np.inf).fit(NOISE_X, [0, 1] * 5),
        r"penalty must lie in \[0, 1e\+06\].*got inf",
    ),
    "a penalty above 1 where a bound needs it below": (
        lambda: VadaBoostClassifier(penalty=1.5).fit(NOISE_X, [0, 1] * 5),
        r"penalty must lie in \[0, 1\].*got 1.5",
    ),
    "penalty word": (
        lambda: EBBoostClassifier(Stump(), penalty="best").fit(NOISE_X, [0, 1] * 5),
        "penalty.*must be one of 'auto'",
    ),
    "auto without samples": (
        lambda: EBBoostClassifier(Stump(), penalty="auto").fit(NOISE_X, [0, 1] * 5),
        "penalty='auto' needs held-out samples",
    ),
    "bins": (
        lambda: EBBoostClassifier(Stump(max_bins=2)).fit(NOISE_X, [0, 1] * 5),
        "max_bins must lie from 3 to 256",
    ),
    "no better than chance": (
        lambda: EBBoostClassifier().fit(NOISE_X, [0, 1] * 5),
        "first model is no better than chance: its weighted error is 0.5",
    ),
    "one class": (lambda: EBBoostClassifier().fit(NOISE_X, np.zeros(10)), "at least two classes"),
    "zero weights": (lambda: EBBoostClassifier().fit(NOISE_X, [0, 1] * 5, np.zeros(10)), "zero"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_sentence(case):
    call, text = BAD[case]
    with pytest.raises(ValueError, match=text):
        call()
