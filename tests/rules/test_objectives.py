"""Objectives: every risk and every rate, in every classifier that mixes models."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import counterpoise as cp

RISKS = [
    cp.risks.Mean(),
    cp.risks.CVaR(0.3),
    cp.risks.WorstGroup(),
    cp.risks.WorstGroup("sex"),
    cp.risks.WorstGroup(("sex", "age")),
    cp.risks.EmpiricalLikelihood("calibrated"),
    cp.risks.KL(0.1),
    cp.risks.ChiSquare(0.2),
    cp.risks.MeanVariance(0.5),
    0.5 * cp.risks.Mean() + 0.5 * cp.risks.CVaR(0.1),
    0.5 * cp.risks.CVaR(0.2) + 2.0 * cp.risks.WorstGroup("age"),
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
    bound = risk.bind(cp.risks.RiskRows(n_rows, len(pool), codes_by(columns)))
    losses = model.selection_.losses
    assert model.value_ == pytest.approx(bound.value(losses @ model.mixture_, weight), abs=1e-9)
    assert model.gap_ <= 1.1e-4
    assert model.check_goals()[0].holds
    assert model.objective_ == risk
    assert model.alpha_ == getattr(risk, "alpha", None)
    for other in np.random.default_rng(1).dirichlet(np.ones(len(pool)), size=20):  # better only where the goal fails
        if bound.value(losses @ other, weight) < model.value_ - 1e-4:
            assert np.average(1 - losses[y == 1] @ other, weights=weight[y == 1]) < 0.6


@pytest.mark.parametrize(
    "risk", [cp.risks.KL(0.2), cp.risks.WorstGroup("sex"), 0.5 * cp.risks.Mean() + 0.5 * cp.risks.CVaR(0.1)], ids=repr
)
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


def test_a_calibrated_ball_counts_rows_by_their_weights(data, pool):
    X, y, _, weight = rows_of(data)
    model = cp.MixtureClassifier(pool, objective=cp.risks.EmpiricalLikelihood("calibrated", confidence=0.8))
    radius = model.fit(X, y, weight).selection_.risk.radius
    n_rows = weight.sum() ** 2 / (weight**2).sum()
    assert radius == pytest.approx(cp.guarantees.calibrated_radius(n_rows, 0.8, len(pool) - 1))


class Squares(cp.risks.Risk):
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
    "no groups": ({"objective": cp.risks.WorstGroup()}, {}, "needs sensitive_features"),
    "unknown column": ({"objective": cp.risks.WorstGroup("race")}, {}, "the column 'race'; got no columns"),
    "unknown risk": ({"objective": "CVar(0.1) + cp.risks.Mean()"}, {}, "Unknown risk 'CVar'.*Did you mean 'CVaR'"),
    "not a risk": ({"objective": "Mean() - cp.risks.CVaR(0.1)"}, {}, "A risk reads like"),
    "arguments": ({"objective": "CVaR(alfa=0.1)"}, {}, "CVaR in .*alfa"),
    "factor": ({"objective": "0 * Mean()"}, {}, "factor of a risk must be finite and above 0"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_objectives_get_one_clear_sentence(name, data, pool):
    params, given, text = BAD[name]
    X, y, _, _ = rows_of(data)
    with pytest.raises(ValueError, match=text):
        cp.MixtureClassifier(pool, **params).fit(X, y, **given)


def test_rebalance_records_what_it_was_asked_for(data, pool):
    X, y, columns, _ = rows_of(data)
    model = cp.MixtureClassifier(pool, objective=cp.risks.KL(0.1), random_state=0).fit(X, y)
    other = model.rebalance(alpha=0.5)
    assert (other.objective_, other.get_params()["objective"], other.alpha) == (cp.risks.CVaR(0.5), None, 0.5)
    assert model.rebalance(alpha=0.5, sensitive_features=columns).objective_ == cp.risks.CVaR(0.5)
    assert model.rebalance(sensitive_features=columns).objective_ == cp.risks.WorstGroup()
    assert model.risk_ == cp.risks.KL(0.1)
    calibrated = model.rebalance(objective=cp.risks.EmpiricalLikelihood("calibrated"))
    assert calibrated.risk_.radius == pytest.approx(cp.guarantees.calibrated_radius(len(y), 0.9, len(pool) - 1))
