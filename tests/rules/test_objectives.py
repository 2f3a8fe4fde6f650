"""Objectives: every risk and every rate, in every classifier that mixes models."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import counterpoise as cp
from counterpoise import Stopping
from counterpoise.goals import parse_rate
from counterpoise.learners import Stump
from counterpoise.theory.guarantees import calibrated_radius
from counterpoise.theory.risk_text import parse_risk
from counterpoise.theory.risks import (
    KL,
    ChiSquare,
    CVaR,
    EmpiricalLikelihood,
    Mean,
    MeanVariance,
    Risk,
    RiskRows,
    WorstGroup,
)

RISKS = [
    Mean(),
    CVaR(0.3),
    WorstGroup(),
    WorstGroup("sex"),
    WorstGroup(("sex", "age")),
    EmpiricalLikelihood("calibrated"),
    KL(0.1),
    ChiSquare(0.2),
    MeanVariance(0.5),
    0.5 * Mean() + 0.5 * CVaR(0.1),
    0.5 * CVaR(0.2) + 2.0 * WorstGroup("age"),
]
GOAL = "recall >= 0.6"


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(900, 8, n_informative=4, flip_y=0.15, class_sep=0.6, random_state=3)
    rng = np.random.default_rng(0)
    columns = {"sex": np.where(X[:, 0] > 0, "F", "M"), "age": rng.integers(0, 3, 900)}
    return X, y, columns, rng.exponential(size=900)


@pytest.fixture(scope="module")
def pool(data):
    X, y, _, _ = data
    models = [DecisionTreeClassifier(max_depth=d, random_state=d) for d in (1, 2, 4)]
    models += [GaussianNB(), *(LogisticRegression(class_weight={0: 1, 1: w}) for w in (0.4, 1, 3))]
    return [model.fit(X[:300], y[:300]) for model in models]


def rows_of(data):
    X, y, columns, weight = data
    return X[300:], y[300:], {name: values[300:] for name, values in columns.items()}, weight[300:]


def codes_by(columns):
    def codes(names):
        texts = ["|".join(map(str, row)) for row in zip(*(columns[name] for name in names or columns), strict=True)]
        return np.unique(texts, return_inverse=True)[1]

    return codes


@pytest.mark.parametrize("risk", RISKS, ids=repr)
def test_the_mixture_has_the_least_value_of_the_risk_that_was_named(risk, data, pool):
    X, y, columns, weight = rows_of(data)
    model = cp.MixtureClassifier(pool, objective=risk, goals=[GOAL], random_state=0)
    model.fit(X, y, weight, sensitive_features=columns)
    n_rows = weight.sum() ** 2 / (weight**2).sum()
    bound = risk.bind(RiskRows(n_rows, len(pool), codes_by(columns)))
    losses = model.selection_.losses
    assert model.value_ == pytest.approx(bound.value(losses @ model.mixture_, weight), abs=1e-9)
    assert model.gap_ <= 1.1e-4
    assert model.check_goals()[0].holds
    assert model.objective_ == risk
    assert model.alpha_ == getattr(risk, "alpha", None)
    for other in np.random.default_rng(1).dirichlet(np.ones(len(pool)), size=20):  # better only where the goal fails
        if bound.value(losses @ other, weight) < model.value_ - 1e-4:
            assert np.average(1 - losses[y == 1] @ other, weights=weight[y == 1]) < 0.6


@pytest.mark.parametrize("risk", [KL(0.2), WorstGroup("sex"), 0.5 * Mean() + 0.5 * CVaR(0.1)], ids=repr)
def test_rebalance_saving_and_text_know_every_risk(risk, data, pool, tmp_path):
    X, y, columns, _ = rows_of(data)
    plain = cp.MixtureClassifier(pool, alpha=0.2, random_state=0).fit(X, y, sensitive_features=columns)
    asked = cp.MixtureClassifier(pool, objective=risk, random_state=0).fit(X, y, sensitive_features=columns)
    for given in (risk, repr(risk)):
        again = plain.rebalance(objective=given)
        np.testing.assert_array_equal(again.mixture_, asked.mixture_)
        assert again.alpha_ is None
    assert again.rebalance(alpha=0.2).value_ == plain.value_
    assert again.rebalance().value_ == asked.value_
    cp.save(asked, tmp_path / "model.cp")
    loaded = cp.load(tmp_path / "model.cp")
    assert loaded.objective_ == risk
    np.testing.assert_array_equal(loaded.predict(X), asked.predict(X))
    assert loaded.rebalance().value_ == asked.value_
    frontier = cp.tradeoff(asked, GOAL, [0.5, 0.7])
    assert frontier[0].value <= frontier[1].value + 1e-6
    assert frontier.objective == risk
    assert cp.tradeoff(plain, GOAL, [0.5], objective=risk)[0].value == pytest.approx(frontier[0].value, abs=1e-6)


@pytest.mark.parametrize("kind", [cp.AdaLPBoostClassifier, cp.LPBoostClassifier])
@pytest.mark.parametrize("risk", [ChiSquare(0.3), WorstGroup("age"), MeanVariance(0.4)], ids=repr)
def test_boosters_follow_a_risk(kind, risk, data):
    X, y, columns, _ = data
    given = {"n_estimators": 6, "stopping": Stopping(patience=5, validation_fraction=0.3), "random_state": 0}
    model = kind(Stump(), objective=risk, **given).fit(X, y, sensitive_features=columns)
    assert model.objective_ == risk
    assert model.alpha_ is None
    best = kind(Stump(), alpha=0.3, **given).fit(X, y, sensitive_features=columns).rebalance(objective=risk)
    assert model.n_models_ >= 1
    assert np.isfinite(best.value_)


def test_the_weights_of_lpboost_are_the_dual_of_its_risk(data):
    X, y, _, _ = data
    seen = []
    cp.LPBoostClassifier(Stump(), n_estimators=4, objective=KL(0.2), callbacks=[seen.append], random_state=0).fit(X, y)
    losses = np.column_stack([done.losses for done in seen]).astype(float)
    for number, done in enumerate(seen[1:], start=1):
        found = cp.solvers.minimize_risk(losses[:, :number], KL(0.2))
        np.testing.assert_allclose(done.weights, found.weights, atol=1e-12)


@pytest.mark.parametrize("params", [{}, {"goals": [GOAL], "beta": 50.0}], ids=["no goals", "regularized"])
def test_a_rate_is_for_the_mixture_and_alpha_for_rounds_without_goals(params, data):
    X, y, _, _ = data
    rate, params = parse_rate("false_positive_rate"), {"n_estimators": 5, "random_state": 0, **params}
    model = cp.LPBoostClassifier(Stump(), objective=rate, **params).fit(X, y)
    assert model.objective_ == rate
    assert model.alpha_ is None
    plain = cp.LPBoostClassifier(Stump(), **params | {"goals": ()}).fit(X, y)
    np.testing.assert_array_equal(model.selection_.losses, plain.selection_.losses)


def test_a_calibrated_ball_counts_rows_by_their_weights(data, pool):
    X, y, _, weight = rows_of(data)
    model = cp.MixtureClassifier(pool, objective=EmpiricalLikelihood("calibrated", confidence=0.8))
    radius = model.fit(X, y, weight).selection_.risk.radius
    n_rows = weight.sum() ** 2 / (weight**2).sum()
    assert radius == pytest.approx(calibrated_radius(n_rows, 0.8, len(pool) - 1))


class Squares(Risk):
    """A risk of a user's own."""

    def value(self, losses, sample_weight=None):
        return float(np.average(np.square(losses), weights=sample_weight))

    def subgradient(self, losses, sample_weight=None):
        mass = np.ones(len(losses)) if sample_weight is None else np.asarray(sample_weight)
        return 2 * np.asarray(losses) * mass / mass.sum()


def test_a_risk_of_ones_own_is_as_good_as_ours(data, pool, tmp_path):
    X, y, _, weight = rows_of(data)
    model = cp.MixtureClassifier(pool, objective=Squares(), goals=[GOAL]).fit(X, y, weight)
    assert model.value_ == pytest.approx(Squares().value(model.selection_.losses @ model.mixture_, weight))
    assert len(cp.tradeoff(model, GOAL, n_points=3)) == 3
    with pytest.raises(cp.persist.UnstorableModel, match="Squares"):
        cp.save(model, tmp_path / "model.cp")


BAD = {
    "no groups": ({"objective": WorstGroup()}, {}, "needs sensitive_features"),
    "unknown column": ({"objective": WorstGroup("race")}, {}, "the column 'race'; got no columns"),
    "unknown risk": ({"objective": "CVar(0.1) + Mean()"}, {}, "Unknown risk 'CVar'.*Did you mean 'CVaR'"),
    "not a risk": ({"objective": "Mean() - CVaR(0.1)"}, {}, "A risk reads like"),
    "arguments": ({"objective": "CVaR(alfa=0.1)"}, {}, "CVaR in .*alfa"),
    "factor": ({"objective": "0 * Mean()"}, {}, "factor of a risk must be finite and above 0"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_objectives_get_one_clear_sentence(name, data, pool):
    params, given, text = BAD[name]
    X, y, _, _ = rows_of(data)
    with pytest.raises(ValueError, match=text):
        cp.MixtureClassifier(pool, **params).fit(X, y, **given)


@pytest.mark.parametrize(
    ("params", "text"),
    [({"beta": 10.0}, "beta is for a CVaR"), ({"outlier_fraction": 0.1}, "outlier_fraction is for a CVaR")],
)
def test_settings_of_a_tail_are_refused_beside_another_risk(params, text, data):
    X, y, _, _ = data
    with pytest.raises(ValueError, match=text):
        cp.LPBoostClassifier(Stump(), objective=KL(0.1), **params).fit(X, y)


@pytest.mark.parametrize("risk", RISKS, ids=repr)
def test_every_risk_is_read_back_from_its_text(risk):
    assert parse_risk(repr(risk)) == risk


def test_rebalance_records_what_it_was_asked_for(data, pool):
    X, y, columns, _ = rows_of(data)
    model = cp.MixtureClassifier(pool, objective=KL(0.1), random_state=0).fit(X, y)
    other = model.rebalance(alpha=0.5)
    assert (other.objective_, other.get_params()["objective"], other.alpha) == (CVaR(0.5), None, 0.5)
    assert model.rebalance(alpha=0.5, sensitive_features=columns).objective_ == CVaR(0.5)
    assert model.rebalance(sensitive_features=columns).objective_ == WorstGroup()
    assert model.risk_ == KL(0.1)
    calibrated = model.rebalance(objective=EmpiricalLikelihood("calibrated"))
    assert calibrated.risk_.radius == pytest.approx(calibrated_radius(len(y), 0.9, len(pool) - 1))


def test_risks_are_scaled_from_either_side_and_added():
    assert Mean() * 0.5 + CVaR(0.1) == 0.5 * Mean() + CVaR(0.1)
    assert 2 * (0.5 * Mean() + KL(0.1)) == 1.0 * Mean() + 2.0 * KL(0.1)


@pytest.mark.parametrize("objective", [Mean, 3, [Mean()]])
def test_what_is_no_objective_is_told_what_one_is(objective, data, pool):
    X, y, _, _ = rows_of(data)
    with pytest.raises(TypeError, match="objective must be a risk such as CVaR"):
        cp.MixtureClassifier(pool, objective=objective).fit(X, y)
