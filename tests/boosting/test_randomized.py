"""What the 2021 paper proves, on real fitted ensembles; sticky decisions; rebalancing."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from silenced import silenced
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from counterpoise import AdaLPBoostClassifier, LPBoostClassifier, Stopping
from counterpoise.learners import HistogramTree, Resampled
from counterpoise.metrics import cvar_loss
from counterpoise.rules.choosing import as_problem, choose_mixture
from counterpoise.solvers import solve_weights_lp
from counterpoise.theory.guarantees import hedge_bound
from tests.inside import drawn_numbers

ALPHAS = (0.02, 0.1, 0.3, 0.7, 1.0)


@pytest.fixture(scope="module")
def noisy():
    """Two classes that overlap, so that every model errs somewhere."""
    return make_classification(3000, 12, n_informative=5, flip_y=0.1, class_sep=0.7, random_state=0)


@pytest.fixture(scope="module")
def fitted(noisy):
    return AdaLPBoostClassifier(HistogramTree(), n_estimators=30, alpha=0.1, budget=None, random_state=0).fit(*noisy)


def test_a_deterministic_model_has_a_cvar_of_error_over_alpha(fitted):
    """Proposition 1."""
    losses = fitted.selection_.losses
    for alpha in ALPHAS:
        for model in range(0, 30, 7):
            assert cvar_loss(losses[:, model], alpha) == pytest.approx(min(1, losses[:, model].mean() / alpha))


def test_a_randomized_model_of_the_same_error_is_no_worse_in_the_tail(fitted):
    """Proposition 2."""
    losses = fitted.selection_.losses
    for alpha in ALPHAS:
        mixed = cvar_loss(losses, alpha, mixture=fitted.mixture_)
        assert mixed <= min(1, (losses @ fitted.mixture_).mean() / alpha) + 1e-12


def test_the_optimal_mixture_solves_lpboost(fitted):
    """Proposition 3: the value of alpha-LPBoost is 1 minus the least CVaR."""
    assert fitted.value_ == pytest.approx(solve_weights_lp(fitted.selection_.losses, 0.1).value, abs=1e-4)
    assert fitted.value_ == pytest.approx(cvar_loss(fitted.selection_.losses, 0.1, mixture=fitted.mixture_), abs=1e-6)


def test_the_average_keeps_the_bound_of_theorem_5(fitted):
    losses = fitted.selection_.losses
    average = np.full(30, 1 / 30)
    bound = hedge_bound(fitted.weighted_losses_.mean(), len(losses), 30, fitted.eta_)
    assert fitted.eta_ == pytest.approx(np.sqrt(8 * np.log(3000) / 30))
    assert max(cvar_loss(losses, alpha, mixture=average) for alpha in ALPHAS) <= bound
    assert bound <= hedge_bound(fitted.weighted_losses_.max(), 3000, 30)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_mixture_is_at_most_as_bad_as_erm_and_the_average(fitted, alpha):
    optimal = fitted.rebalance(alpha=alpha)
    for kind in ("first", "average"):
        rival = choose_mixture(fitted.selection_, as_problem(alpha, None, (), mixture=kind))
        assert optimal.value_ - optimal.gap_ <= rival.value + 1e-12
        assert optimal.value_ <= rival.value + 1e-4


def test_the_first_model_is_plain_training(noisy):
    X, y = noisy
    alone = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    erm = AdaLPBoostClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=3, mixture="first", random_state=0)
    np.testing.assert_array_equal(erm.fit(X, y).predict(X), alone.predict(X))


@pytest.mark.parametrize(
    "model", [LPBoostClassifier(HistogramTree(), alpha=0.2), LPBoostClassifier(HistogramTree(), alpha=0.2, beta=50.0)]
)
def test_lpboost_weights_are_new_capped_and_bind(noisy, model):
    seen = []
    model.set_params(n_estimators=8, random_state=0, callbacks=[seen.append]).fit(*noisy)
    cap = 1 / (0.2 * 3000)
    for done in seen:
        assert done.weights.sum() == pytest.approx(1)
        assert done.weights.min() >= 0
        assert done.weights.max() <= cap + 1e-9
        assert done.weighted_loss == pytest.approx(done.weights @ done.losses)
    assert all(done.weights.max() == pytest.approx(cap) for done in seen[1:])
    assert len({id(done.weights) for done in seen}) == 8
    assert np.ptp(seen[0].weights) == 0


def test_every_new_lpboost_model_lowers_the_value_or_stays(noisy):
    model = LPBoostClassifier(HistogramTree(), n_estimators=12, alpha=0.2, random_state=0).fit(*noisy)
    losses = model.selection_.losses
    values = [solve_weights_lp(losses[:, :n], 0.2).value for n in range(1, 13)]
    assert (np.diff(values) <= 1e-9).all()
    assert values[-1] < values[0]


def test_lpboost_stops_at_its_target(noisy):
    full = LPBoostClassifier(HistogramTree(), n_estimators=15, alpha=0.5, random_state=0).fit(*noisy)
    target = 1 - full.value_ - 0.05
    model = LPBoostClassifier(HistogramTree(), n_estimators=15, alpha=0.5, target=target, random_state=0).fit(*noisy)
    assert len(model.estimators_) < 15
    assert 1 - model.value_ > target


def test_lpboost_theory_sets_beta_from_the_rounds():
    X, y = load_breast_cancer(return_X_y=True)
    model = LPBoostClassifier(HistogramTree(), n_estimators=10, alpha=0.1, beta="theory", random_state=0).fit(X, y)
    delta = np.sqrt(32 * np.log(10) / 10)
    assert model.beta_ == pytest.approx(max(2 / delta * np.log(10), 0.5))


def test_sticky_shares_are_those_of_the_mixture(fitted):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(30_000, 12))
    probabilities = fitted.predict_proba(rows)
    said = fitted.predict(rows) == fitted.classes_[1]
    expected = probabilities[:, 1].mean()
    error = np.sqrt((probabilities[:, 1] * probabilities[:, 0]).mean() / 30_000)
    assert abs(said.mean() - expected) < 3 * error + 1e-9


def test_each_model_decides_its_share_of_the_people(fitted):
    from counterpoise.rules.draws import pick  # noqa: PLC0415

    rows = np.random.default_rng(2).normal(size=(30_000, 12))
    shares = np.bincount(pick(drawn_numbers(fitted, rows), fitted.mixture_), minlength=30) / 30_000
    error = np.sqrt(fitted.mixture_ * (1 - fitted.mixture_) / 30_000)
    assert (np.abs(shares - fitted.mixture_) <= 3 * error + 1e-12).all()


def test_the_same_row_gets_the_same_answer_in_any_company(fitted, noisy):
    X, _ = noisy
    whole = fitted.predict(X)
    order = np.random.default_rng(3).permutation(len(X))
    np.testing.assert_array_equal(fitted.predict(X[order]), whole[order])
    np.testing.assert_array_equal(np.concatenate([fitted.predict(X[i : i + 1]) for i in range(20)]), whole[:20])
    np.testing.assert_array_equal(fitted.predict(sp.csr_matrix(X)), whole)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), whole)  # noqa: S301


def test_ids_override_the_row(fitted, noisy):
    X, _ = noisy
    undecided = X[np.argsort(np.abs(fitted.predict_proba(X)[:, 1] - 0.5))[:1]]
    same_person = fitted.predict(np.repeat(undecided, 50, axis=0), ids=np.full(50, 7))
    assert len(set(same_person.tolist())) == 1
    many_people = fitted.predict(np.repeat(undecided, 200, axis=0), ids=np.arange(200))
    assert len(set(many_people.tolist())) == 2


def test_random_state_fixes_models_and_draws(noisy):
    X, y = noisy
    first, second = (
        AdaLPBoostClassifier(HistogramTree(), n_estimators=5, random_state=9).fit(X, y).predict(X) for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


def test_sample_draws_afresh_and_vote_is_the_argmax(noisy):
    X, y = noisy
    sampling = AdaLPBoostClassifier(HistogramTree(), n_estimators=10, decision="sample", random_state=0).fit(X, y)
    assert (sampling.predict(X) != sampling.predict(X)).any()
    voting = AdaLPBoostClassifier(HistogramTree(), n_estimators=10, decision="vote", random_state=0).fit(X, y)
    np.testing.assert_array_equal(voting.predict(X), voting.classes_[voting.predict_proba(X).argmax(axis=1)])


def test_rebalance_trains_and_evaluates_nothing(fitted):
    before = fitted.mixture_.copy()
    with silenced(fitted.estimators_):
        other = fitted.rebalance(alpha=0.5)
    assert other.alpha == other.alpha_ == 0.5
    assert other.estimators_ is fitted.estimators_
    assert other.value_ <= choose_mixture(fitted.selection_, as_problem(0.5, None, (), mixture="first")).value + 1e-4
    np.testing.assert_array_equal(fitted.mixture_, before)
    assert fitted.alpha == 0.1


def test_rebalance_on_new_rows_and_for_the_worst_group(fitted, noisy):
    X, y = noisy
    groups = np.where(X[:, 0] > 0.5, "high", "low")
    balanced = fitted.rebalance(X, y, sensitive_features=groups)
    losses = balanced.selection_.losses

    def worst(mixture):
        return max((losses[groups == name] @ mixture).mean() for name in ("high", "low"))

    assert balanced.value_ == pytest.approx(worst(balanced.mixture_), abs=1e-6)
    assert all(worst(np.eye(30)[model]) >= balanced.value_ - balanced.gap_ - 1e-9 for model in range(30))
    plain = fitted.rebalance(X[:500], y[:500], alpha=0.3)
    assert plain.value_ == pytest.approx(cvar_loss(plain.selection_.losses, 0.3, mixture=plain.mixture_), abs=1e-6)


def test_many_groups_and_models_are_balanced_too(fitted, noisy):
    X, y = noisy
    groups = np.arange(len(X)) % 150
    balanced = fitted.rebalance(X, y, sensitive_features=groups)
    losses = balanced.selection_.losses @ balanced.mixture_
    worst = max(losses[groups == group].mean() for group in range(150))
    assert balanced.value_ == pytest.approx(worst, abs=1e-6)
    assert balanced.gap_ <= 1e-4


def test_reweighing_groups_helps_the_worst_group():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(4000, 4))
    small = rng.random(4000) < 0.1
    y = np.where(small, X[:, 0] < 0, X[:, 0] > 0).astype(int)  # the small group obeys the opposite rule
    X[:, 3] = small + 0.3 * rng.normal(size=4000)
    stumps = DecisionTreeClassifier(max_depth=1)
    by_group = AdaLPBoostClassifier(stumps, n_estimators=20, reweigh="groups", budget=None, random_state=0)
    by_group.fit(X, y, sensitive_features=small)
    erm = (by_group.selection_.losses[small, 0]).mean()
    assert by_group.value_ <= 0.55
    assert erm > 0.9
    assert by_group.eta_ == pytest.approx(np.sqrt(8 * np.log(2) / 20))


def test_a_group_may_be_absent_from_the_validation_split():
    rng = np.random.default_rng(6)
    X, groups = rng.normal(size=(200, 3)), np.array(["common"] * 199 + ["rare"])
    model = AdaLPBoostClassifier(
        HistogramTree(), n_estimators=4, reweigh="groups", stopping=Stopping(validation_fraction=0.3), random_state=0
    )
    model.fit(X, X[:, 0] > 0, sensitive_features=groups)
    assert 0 <= model.value_ <= 1


def test_outliers_are_ignored():
    X, y = load_breast_cancer(return_X_y=True)
    flipped = y.copy()
    flipped[:28] = 1 - flipped[:28]  # five per cent of wrong labels
    plain = AdaLPBoostClassifier(HistogramTree(), n_estimators=20, alpha=0.05, random_state=0).fit(X, flipped)
    robust = clone(plain).set_params(outlier_fraction=0.1).fit(X, flipped)
    assert robust.value_ < plain.value_
    weights = []
    clone(robust).set_params(callbacks=[lambda done: weights.append(done.weights)]).fit(X, flipped)
    assert all((weight == 0).mean() >= 0.09 for weight in weights[1:])


@pytest.mark.parametrize(
    "learner",
    [
        make_pipeline(StandardScaler(), LogisticRegression()),
        KNeighborsClassifier(3),
        make_pipeline(StandardScaler(), KNeighborsClassifier(3)),
        Perceptron(),
        DecisionTreeClassifier(max_depth=4),
    ],
    ids=["weighted pipeline", "no weights", "pipeline without weights", "perceptron", "tree"],
)
def test_any_learner_and_any_labels(learner):
    X, y = load_digits(return_X_y=True)
    names = np.array([f"digit {digit}" for digit in range(10)])[y]
    model = AdaLPBoostClassifier(learner, n_estimators=4, random_state=0, decision="vote").fit(X[:600], names[:600])
    assert model.score(X[600:], names[600:]) > 0.6
    assert set(model.estimators_[0].predict(X)) <= set(names)
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(len(X)))


def test_data_frames_reach_pipelines_by_column_name():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    from sklearn.compose import make_column_transformer  # noqa: PLC0415
    from sklearn.preprocessing import OneHotEncoder  # noqa: PLC0415

    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"town": rng.choice(["A", "B", "C"], 400), "age": rng.integers(20, 70, 400)})
    y = np.where((frame["town"] == "A") | (frame["age"] > 60), "yes", "no")
    columns = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    model = AdaLPBoostClassifier(make_pipeline(columns, DecisionTreeClassifier(max_depth=3)), n_estimators=5)
    model.fit(frame, y, X_val=frame[:200], y_val=y[:200])
    whole = model.predict(frame)
    np.testing.assert_array_equal(model.predict(frame[100:150]), whole[100:150])
    assert (whole == y).mean() > 0.9


def test_our_trees_know_the_columns_they_were_fitted_on(noisy):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y = noisy
    frame = pd.DataFrame(X, columns=[f"column {place}" for place in range(X.shape[1])])
    model = AdaLPBoostClassifier(HistogramTree(), n_estimators=2, random_state=0).fit(frame, y)
    assert model.estimators_[1].feature_names_in_.tolist() == frame.columns.tolist()
    np.testing.assert_array_equal(
        model.predict(frame), AdaLPBoostClassifier(HistogramTree(), n_estimators=2, random_state=0).fit(X, y).predict(X)
    )
    assert set(model.estimators_[1].predict(frame).tolist()) <= {0, 1}


def test_a_pipeline_may_impute_missing_values():
    X, y = load_breast_cancer(return_X_y=True)
    X[::7, 3] = np.nan
    pipeline = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression())
    for learner in (pipeline, Resampled(pipeline)):
        assert (
            AdaLPBoostClassifier(learner, n_estimators=3, random_state=0, decision="vote").fit(X, y).score(X, y) > 0.9
        )


def test_validation_rows_choose_the_mixture(noisy):
    X, y = noisy
    model = AdaLPBoostClassifier(
        HistogramTree(), n_estimators=10, stopping=Stopping(validation_fraction=0.25), random_state=0
    ).fit(X, y)
    assert model.selection_.losses.shape == (750, 10)
    given_rows = AdaLPBoostClassifier(HistogramTree(), n_estimators=10, random_state=0).fit(
        X[:2000], y[:2000], X_val=X[2000:], y_val=y[2000:]
    )
    expected = np.column_stack([one.predict(X[2000:]) != y[2000:] for one in given_rows.estimators_])
    np.testing.assert_array_equal(given_rows.selection_.losses, expected)


def test_fit_more_goes_on_as_if_it_had_not_stopped(noisy):
    X, y = noisy
    settings = {"eta": 1.0, "stopping": Stopping(validation_fraction=0.3), "random_state": 0}
    whole = AdaLPBoostClassifier(DecisionTreeClassifier(max_depth=4), n_estimators=12, **settings).fit(X, y)
    parts = AdaLPBoostClassifier(DecisionTreeClassifier(max_depth=4), n_estimators=5, **settings).fit(X, y).fit_more(7)
    assert len(parts.estimators_) == 12
    np.testing.assert_array_equal(parts.selection_.losses, whole.selection_.losses)
    np.testing.assert_array_equal(parts.mixture_, whole.mixture_)
    with pytest.raises(ValueError, match="fit_more needs the samples"):
        pickle.loads(pickle.dumps(parts)).fit_more(1)  # noqa: S301


@pytest.mark.slow
def test_staged_probabilities_end_where_the_classifier_is(fitted, noisy):
    X, _ = noisy
    stages = list(fitted.staged_decision_proba(X[:50]))
    assert len(stages) == 30
    np.testing.assert_allclose(stages[-1], fitted.predict_proba(X[:50]), atol=1e-9)
    np.testing.assert_array_equal(next(fitted.staged_predict(X[:50])), fitted.estimators_[0].predict(X[:50]))


def test_patience_stops_when_the_tail_no_longer_improves(noisy):
    model = AdaLPBoostClassifier(
        HistogramTree(), n_estimators=200, alpha=0.5, stopping=Stopping(patience=5), random_state=0
    ).fit(*noisy)
    assert 6 <= len(model.estimators_) < 200


def test_a_callback_can_stop(noisy):
    model = AdaLPBoostClassifier(
        HistogramTree(), n_estimators=50, callbacks=[lambda done: done.number == 4], random_state=0
    )
    assert len(model.fit(*noisy).estimators_) == 4


def test_grid_search_works_with_groups_at_fit(noisy):
    X, y = noisy
    search = GridSearchCV(
        AdaLPBoostClassifier(HistogramTree(), n_estimators=3, random_state=0), {"alpha": [0.1, 0.5]}, cv=2
    )
    assert search.fit(X, y).best_params_["alpha"] in (0.1, 0.5)


def test_n_jobs_gives_the_same_answer(noisy):
    X, y = noisy
    one = AdaLPBoostClassifier(HistogramTree(), n_estimators=6, random_state=0).fit(X, y)
    two = clone(one).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


@pytest.mark.parametrize("booster", [AdaLPBoostClassifier, LPBoostClassifier])
@pytest.mark.parametrize("unit", [2.0**-12, 2.0**12])
def test_rounds_and_patience_do_not_depend_on_the_unit_of_a_risk(booster, unit):
    X, y = make_classification(300, 4, n_informative=3, n_redundant=0, flip_y=0.1, random_state=0)
    settings = {
        "estimator": HistogramTree(max_depth=1),
        "n_estimators": 15,
        "stopping": Stopping(patience=3),
        "random_state": 0,
    }
    plain, other = (booster(objective=f"{one!r} * CVaR(0.3)", **settings).fit(X, y) for one in (1.0, unit))
    assert 3 < len(plain.estimators_) < 15
    assert len(other.estimators_) == len(plain.estimators_)
