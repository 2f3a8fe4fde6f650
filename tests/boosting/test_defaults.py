"""The defaults: a strong model first, rounds judged on rows that were not fitted to, and what a fit says of itself."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import counterpoise as cp
from counterpoise import Stopping
from counterpoise.boosting.learner import base_learner, folds_of, is_ensemble
from counterpoise.boosting.stopping import NothingToLearn
from counterpoise.learners import HistogramTree, Resampled, Stump
from counterpoise.rules.cautions import CostlyDecisions

VOTING = ["AdaBoost", "VadaBoost", "EBBoost", "RLPBoost", "RQPBoost", "DROBoost"]
TUMOURS = [part[::2] for part in load_breast_cancer(return_X_y=True)]
OTHERS = [part[1::2] for part in load_breast_cancer(return_X_y=True)]


@pytest.mark.parametrize("name", VOTING)
def test_every_voting_booster_is_as_good_as_gradient_boosting_on_tumours(name):
    """Trees of any depth fit these rows without error, and boosting ended after one with an accuracy of 0.91."""
    model = getattr(cp, f"{name}Classifier")(n_estimators=100, random_state=0).fit(*TUMOURS)
    assert len(model.estimators_) > 10
    assert model.score(*OTHERS) > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("booster", [cp.AdaLPBoostClassifier, cp.LPBoostClassifier])
def test_mixtures_start_from_a_strong_model_and_differ_from_it(booster):
    model = booster(n_estimators=20, decision="vote", random_state=0).fit(*TUMOURS)  # draws need no other model
    strong, *trees = model.estimators_
    assert type(strong) is cp.AdaBoostClassifier
    assert all(type(tree) is HistogramTree for tree in trees)
    assert strong.score(*OTHERS) > 0.95
    assert model.n_models_ > 1
    assert model.score(*OTHERS) > 0.93


def test_rounds_are_judged_by_models_that_did_not_see_the_rows():
    """Labels are noise: who has seen them knows them, and who has not is right half of the time."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), rng.integers(0, 2, 400)
    tree = DecisionTreeClassifier(random_state=0)
    seen = cp.AdaLPBoostClassifier(tree, n_estimators=1, random_state=0).fit(X, y)
    unseen = cp.AdaLPBoostClassifier(tree, n_estimators=1, stopping=Stopping(n_folds=5), random_state=0).fit(X, y)
    assert seen.selection_.losses.mean() == 0
    assert 0.4 < unseen.selection_.losses.mean() < 0.6
    assert unseen.estimators_[0].score(X, y) == 1  # who decides has seen all rows


def test_the_losses_of_a_fold_are_those_of_a_model_without_it():
    X, y = make_classification(200, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    model = cp.AdaLPBoostClassifier(GaussianNB(), n_estimators=1, stopping=Stopping(n_folds=4), random_state=7).fit(
        X, y
    )
    wrong = model.selection_.losses[:, 0]
    by_hand = [
        (GaussianNB().fit(X[kept], y[kept]).predict(X[~kept]) != y[~kept]).mean()
        for kept in np.random.default_rng(0).random((200, 200)) < 0.75
    ]
    assert abs(wrong.mean() - np.mean(by_hand)) < 0.05


@pytest.mark.parametrize("n_classes", [2, 3])
def test_folds_hold_every_class_evenly(n_classes):
    codes = np.arange(103) % n_classes
    folds = folds_of(codes, 5, np.random.default_rng(0))
    counts = np.array([np.bincount(folds[codes == place], minlength=5) for place in range(n_classes)])
    assert np.ptp(counts, axis=1).max() <= 1


def test_a_class_of_one_row_and_rows_fewer_than_folds_are_no_obstacle():
    X = np.arange(12.0)[:, None]
    y = np.array(["a"] * 5 + ["b"] * 6 + ["c"])
    model = cp.AdaLPBoostClassifier(n_estimators=3, random_state=0).fit(X, y)
    assert set(model.predict(X)) <= {"a", "b", "c"}
    small = cp.AdaLPBoostClassifier(Stump(), n_estimators=2, stopping=Stopping(n_folds=5), random_state=0).fit(
        X[3:7], y[3:7]
    )
    assert small.selection_.losses.shape == (4, 2)


@pytest.mark.slow
def test_goals_of_several_classes_are_met_by_answers_of_unseen_rows():
    X, y = make_classification(300, 6, n_informative=5, n_redundant=0, n_classes=3, random_state=1)
    model = cp.AdaLPBoostClassifier(n_estimators=8, alpha=0.5, goals="recall >= 0.6", pos_label=2, random_state=0).fit(
        X, y
    )
    assert all(check.holds for check in model.check_goals())


@pytest.mark.slow
def test_an_interrupted_fit_with_folds_goes_on_as_if_it_had_not_been(tmp_path):
    X, y = make_classification(200, 6, n_informative=5, n_redundant=0, n_classes=3, random_state=2)
    settings = {"random_state": 0, "goals": "recall >= 0.1", "pos_label": 1, "eta": 0.5}
    whole = cp.AdaLPBoostClassifier(n_estimators=6, **settings).fit(X, y)
    cp.AdaLPBoostClassifier(n_estimators=3, checkpoint=tmp_path / "rounds", **settings).fit(X, y)
    resumed = cp.AdaLPBoostClassifier(n_estimators=6, checkpoint=tmp_path / "rounds", **settings).fit(X, y)
    np.testing.assert_array_equal(resumed.selection_.losses, whole.selection_.losses)
    np.testing.assert_allclose(resumed.mixture_, whole.mixture_)


def test_a_learner_without_error_is_fitted_once_and_told():
    for booster in (cp.AdaLPBoostClassifier, cp.LPBoostClassifier):
        with pytest.warns(
            NothingToLearn, match=r"ended with 1 model\. Use a weaker learner.*or set Stopping\(n_folds=5\)"
        ):
            model = booster(HistogramTree(), random_state=0).fit(*TUMOURS)
        assert len(model.estimators_) == 1
    with pytest.warns(NothingToLearn, match="a larger min_samples_leaf or a smaller max_depth"):
        cp.AdaBoostClassifier(HistogramTree()).fit(*TUMOURS)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NothingToLearn)
        advised = cp.AdaLPBoostClassifier(
            HistogramTree(), n_estimators=5, stopping=Stopping(n_folds=5), random_state=0
        ).fit(*TUMOURS)
        cp.AdaBoostClassifier(HistogramTree(min_samples_leaf=20), n_estimators=5).fit(*TUMOURS)
    assert len(advised.estimators_) == 5


def test_models_that_draw_differ_and_are_not_taken_for_repeats():
    forest = RandomForestClassifier(5, max_features=1, random_state=0)
    model = cp.AdaLPBoostClassifier(forest, n_estimators=3, stopping=Stopping(n_folds=None), random_state=0).fit(
        *TUMOURS
    )
    assert len(model.estimators_) == 3


@pytest.mark.slow
def test_a_mixture_that_pays_much_on_average_says_so_and_a_budget_limits_it():
    X, y = make_classification(600, 8, flip_y=0.3, random_state=3)
    settings = {"n_estimators": 15, "random_state": 0}
    text = r"wrong for \d+\.\d% of the rows, and those of its first model alone for .* set budget=0\.05"
    with pytest.warns(CostlyDecisions, match=text):
        free = cp.AdaLPBoostClassifier(alpha=0.05, budget=None, **settings).fit(X, y)
    means = free.selection_.losses.mean(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CostlyDecisions)
        kept = cp.AdaLPBoostClassifier(alpha=0.05, budget=0.05, **settings).fit(X, y)
        cp.AdaLPBoostClassifier(alpha=1.0, **settings).fit(X, y)
    assert means @ free.mixture_ > means[0] + 0.1
    assert means @ kept.mixture_ <= means.min() + 0.05 + 1e-7
    assert kept.multipliers_.shape == (0,)
    assert free.value_ - 1e-3 <= kept.value_


@pytest.mark.slow
def test_a_budget_counts_from_the_least_that_the_goals_allow():
    X, y = make_classification(500, 8, flip_y=0.2, random_state=4)
    goal = "positive_rate <= 0.4"
    settings = {"n_estimators": 15, "random_state": 0, "goals": goal, "alpha": 0.1}
    least = cp.AdaLPBoostClassifier(**settings | {"alpha": 1.0}).fit(X, y).value_
    model = cp.AdaLPBoostClassifier(budget=0.02, **settings).fit(X, y)
    assert model.selection_.losses.mean(axis=0) @ model.mixture_ <= least + 0.02 + 1e-3
    assert model.multipliers_.shape == (1,)
    assert all(check.holds for check in model.check_goals())


@pytest.mark.slow
def test_strong_learners_are_known_and_get_few_rounds():
    strong = [HistGradientBoostingClassifier(), RandomForestClassifier(), cp.AdaBoostClassifier()]
    strong += [make_pipeline(StandardScaler(), RandomForestClassifier()), Resampled(RandomForestClassifier())]
    weak = [HistogramTree(), Stump(), LogisticRegression(), GaussianNB(), make_pipeline(StandardScaler(), GaussianNB())]
    assert all(map(is_ensemble, strong))
    assert not any(map(is_ensemble, weak))
    model = cp.AdaLPBoostClassifier(RandomForestClassifier(3), random_state=0).fit(*TUMOURS)
    assert len(model.estimators_) == 10
    assert model.selection_.losses[:, 0].any()  # judged on rows that it did not see


@pytest.mark.parametrize(("n_rows", "leaf"), [(5, 1), (80, 10), (160, 20), (100_000, 20)])
def test_leaves_of_the_default_tree_follow_the_number_of_rows(n_rows, leaf):
    assert base_learner(None, n_rows).get_params()["min_samples_leaf"] == leaf


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"budget": -0.1}, r"budget must .*got -0\.1"),
        ({"n_estimators": 0}, "n_estimators must be at least 1; got 0"),
    ],
)
def test_settings_out_of_range_are_refused(settings, text):
    with pytest.raises((TypeError, ValueError), match=text):
        cp.AdaLPBoostClassifier(**settings).fit(*TUMOURS)


def test_a_learning_rate_out_of_range_is_refused():
    with pytest.raises(ValueError, match=r"learning_rate must .*got 2"):
        cp.AdaBoostClassifier(learning_rate=2).fit(*TUMOURS)


def test_a_given_learner_is_boosted_as_the_paper_does():
    whole, short = (cp.AdaBoostClassifier(Stump(), n_estimators=1, learning_rate=rate) for rate in (None, 0.2))
    assert short.fit(*TUMOURS).votes_[0] == pytest.approx(0.2 * whole.fit(*TUMOURS).votes_[0])


@pytest.mark.slow
def test_a_budget_can_be_changed_without_training_and_bounds_a_frontier():
    X, y = make_classification(500, 8, flip_y=0.2, random_state=5)
    free = cp.AdaLPBoostClassifier(n_estimators=15, alpha=0.1, budget=None, random_state=0).fit(X, y)
    means = free.selection_.losses.mean(axis=0)
    kept = free.rebalance(budget=0.02)
    assert means @ kept.mixture_ <= means.min() + 0.02 + 1e-7
    assert kept.rebalance(budget=1).value_ == pytest.approx(free.value_, abs=1e-3)
    bounds = [0.55, 0.6]
    loose, tight = (cp.tradeoff(model, "positive_rate <= 0.6", bounds) for model in (free, kept))
    assert all(point.value >= other.value - 1e-6 for point, other in zip(tight, loose, strict=True))
    assert all(means @ point.mixture <= means.min() + 0.02 + 1e-6 for point in tight)
    pool = cp.MixtureClassifier(free.estimators_, alpha=0.1, budget=0.0, random_state=0).fit(X, y)
    errors = pool.selection_.losses.mean(axis=0)
    assert errors @ pool.mixture_ == pytest.approx(errors.min(), abs=1e-6)
