"""The best mixture of given models under goals: goals, rebalance, draws, decisions, and what it refuses."""

import pickle

import numpy as np
import pytest
from silenced import silenced
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from counterpoise import MixtureClassifier
from counterpoise.goals import Dataset, InfeasibleGoals, Table, false_positive_rate, positive_rate, recall
from counterpoise.metrics import cvar_loss

TRAIN, MAIL = Dataset("train"), Dataset("mail")


@pytest.fixture(scope="module")
def noisy():
    X, y = make_classification(6000, 12, n_informative=5, flip_y=0.1, class_sep=0.7, random_state=0)
    sex = np.where(X[:, 0] > 0.3, "F", "M")
    return X, np.where(y == 1, "yes", "no"), sex


@pytest.fixture(scope="module")
def pool(noisy):
    X, y, _ = noisy
    X, y = X[:1500], y[:1500]
    models = [make_pipeline(StandardScaler(), LogisticRegression(C=c)) for c in (0.01, 1.0)]
    models += [DecisionTreeClassifier(max_depth=depth, random_state=depth) for depth in (1, 3, 5, 8)]
    models += [GaussianNB(), RandomForestClassifier(10, max_depth=4, random_state=0)]
    return [model.fit(X, y) for model in models]


GOALS = (
    positive_rate(TRAIN.where(sex="F")) >= 0.9 * positive_rate(TRAIN.where(sex="M")),
    recall(TRAIN) >= 0.7,
    false_positive_rate(TRAIN) <= 0.3,
)


@pytest.fixture(scope="module")
def fitted(noisy, pool):
    X, y, sex = noisy
    model = MixtureClassifier(pool, alpha=0.2, goals=GOALS, random_state=0)
    return model.fit(X[1500:], y[1500:], sensitive_features={"sex": sex[1500:]})


def test_a_large_pool_meets_the_goals_and_the_certificate_closes(fitted, noisy, pool):
    X, y, sex = noisy
    X, y, sex = X[1500:], y[1500:], sex[1500:]
    probabilities = fitted.predict_proba(X)
    table = Table(X, y, {"sex": sex})
    for goal in GOALS:
        assert goal.evaluate_expected(probabilities, table).holds
    losses = np.column_stack([model.predict(X) != y for model in pool])
    assert fitted.value_ == pytest.approx(cvar_loss(losses, 0.2, mixture=fitted.mixture_), abs=1e-9)
    assert 0 <= fitted.gap_ <= 1e-4
    assert fitted.n_models_ == np.count_nonzero(fitted.mixture_)
    assert fitted.multipliers_.shape == (3,)
    assert (fitted.multipliers_ >= 0).all()


def test_rebalance_asks_no_model(fitted):
    with silenced(fitted.estimators_):
        looser = fitted.rebalance(goals=[goal.with_bound(goal.bound) for goal in GOALS[1:]])
        milder = fitted.rebalance(alpha=0.5)
        free = fitted.rebalance(goals=())
        other = fitted.rebalance(goals=["error_rate(sex=F) <= 0.25"], objective="error_rate")
    assert free.value_ - free.gap_ <= looser.value_
    assert looser.value_ - looser.gap_ <= fitted.value_
    assert milder.alpha == milder.alpha_ == 0.5
    assert milder.goals_ == fitted.goals_
    assert all(check.holds for check in milder.check_goals())
    assert fitted.alpha_ == 0.2
    assert other.check_goals()[0].holds
    assert other.objective == "error_rate"


def test_many_classes_with_goals_on_one_of_them():
    X, y = load_digits(return_X_y=True)
    pool = [DecisionTreeClassifier(max_depth=d, random_state=d).fit(X[:800], y[:800]) for d in (5, 7, 9)]
    pool.append(GaussianNB().fit(X[:800], y[:800]))
    model = MixtureClassifier(pool, alpha=0.5, goals=["recall >= 0.8"], pos_label=3).fit(X[800:], y[800:])
    losses = np.column_stack([one.predict(X[800:]) != y[800:] for one in pool])
    says_three = np.column_stack([one.predict(X[800:]) == 3 for one in pool])[y[800:] == 3].mean(axis=0)
    assert says_three @ model.mixture_ >= 0.8 - 1e-8
    assert model.value_ == pytest.approx(cvar_loss(losses, 0.5, mixture=model.mixture_), abs=1e-9)
    again = model.rebalance(sensitive_features=y[800:] % 2, goals=["recall(group=1) >= 0.75"])
    assert again.check_goals()[0].holds
    with pytest.raises(ValueError, match=r"got 10 classes.*Name the class that you mean with of.*or with pos_label"):
        MixtureClassifier(pool, goals=["recall >= 0.9"]).fit(X[800:], y[800:])
    with pytest.raises(ValueError, match="pos_label must be one of the classes"):
        MixtureClassifier(pool, pos_label=11).fit(X[800:], y[800:])


def test_conflicting_goals_are_named_with_the_nearest_bounds(fitted, noisy, pool):
    X, y, _ = noisy
    said = np.column_stack([model.predict(X[1500:]) == "yes" for model in pool])
    recalls, rates = said[y[1500:] == "yes"].mean(axis=0), said.mean(axis=0)
    goals = [recall(TRAIN) >= recalls.max() - 0.005, positive_rate(TRAIN) <= rates.min() + 0.005]
    goals.append("error_rate <= 0.9")
    with pytest.raises(InfeasibleGoals, match=r"recall >= .* and positive_rate") as caught:
        fitted.rebalance(goals=goals)
    error = caught.value
    assert "error_rate" not in str(error)
    assert error.least_violation > 0
    for goal, bound in error.nearest_bounds.items():
        others = [other for other in error.conflict if other is not goal]
        slack = 1e-6 if goal.sense == "<=" else -1e-6
        assert fitted.rebalance(goals=[*others, goal.with_bound(bound + slack)]).check_goals()
        with pytest.raises(InfeasibleGoals):
            fitted.rebalance(goals=[*others, goal.with_bound(bound - 1e-3 if goal.sense == "<=" else bound + 1e-3)])
    with pytest.raises(InfeasibleGoals) as caught:
        fitted.rebalance(goals=["recall >= 0.9999"])
    assert next(iter(caught.value.nearest_bounds.values())) == pytest.approx(recalls.max())


def test_draws_are_sticky(fitted, noisy):
    X, y, sex = noisy
    whole = fitted.predict(X)
    order = np.random.default_rng(3).permutation(len(X))
    np.testing.assert_array_equal(fitted.predict(X[order]), whole[order])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), whole)  # noqa: S301
    again = clone(fitted).fit(X[1500:], y[1500:], sensitive_features={"sex": sex[1500:]})
    np.testing.assert_array_equal(again.predict(X), whole)
    same_person = fitted.predict(np.repeat(X[:1], 20, axis=0), ids=np.full(20, 7))
    assert len(set(same_person.tolist())) == 1
    shares = (whole == "yes").mean() - fitted.predict_proba(X)[:, 1].mean()
    assert abs(shares) < 3 * np.sqrt(0.25 / len(X))
    with pytest.raises(ValueError, match="ids are for decision='sticky'"):
        clone(fitted).set_params(decision="vote", goals=()).fit(X, y).predict(X, ids=np.arange(len(X)))


@pytest.mark.parametrize(
    ("parameters", "kind", "text"),
    [
        ({"alpha": 0}, ValueError, "alpha must lie"),
        ({"decision": "maybe"}, ValueError, "decision must be one of"),
        ({"max_models": 0}, ValueError, "max_models must be at least 1"),
        ({"goals": ["recal(train) >= 0.5"]}, ValueError, "Did you mean 'recall'"),
        ({"goals": ["recall(mail) >= 0.5"]}, ValueError, "dataset 'mail'"),
        ({"goals": ["recall(sex=F) >= 0.5"]}, ValueError, "column 'sex'"),
    ],
)
def test_wrong_parameters_are_refused(pool, noisy, parameters, kind, text):
    X, y, _ = noisy
    with pytest.raises(kind, match=text):
        MixtureClassifier(pool, **parameters).fit(X, y)


def test_wrong_rows_are_refused(fitted, noisy, pool):
    X, y, _ = noisy
    with pytest.raises(ValueError, match="one label for each of the 6000 rows"):
        MixtureClassifier(pool).fit(X, y[:-1])
    with pytest.raises(ValueError, match="at least two classes"):
        MixtureClassifier([lambda X: np.zeros(len(X), int)]).fit(X, np.zeros(len(X), int))
    with pytest.raises(ValueError, match="has 3 features"):
        fitted.predict(X[:, :3])
    with pytest.raises(ValueError, match="'train' is X and y themselves"):
        fitted.rebalance(datasets={"train": Table(X, y)})
    with pytest.raises(TypeError, match=r"must be bound to a counterpoise\.goals\.Table"):
        fitted.rebalance(datasets={"mail": X})
    with pytest.raises(ValueError, match="without X"):
        fitted.rebalance(y=y)
    with pytest.raises(ValueError, match="You passed X without y"):
        fitted.rebalance(X)
