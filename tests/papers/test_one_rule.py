"""One deterministic rule out of a mixture: it does what it states, and of equals the simplest is taken."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoise import MixtureClassifier
from counterpoise.goals import Table
from papers.mixture_goals.one_rule import to_deterministic


def test_where_no_rule_meets_the_goals_the_least_violation_is_taken():
    predicted = np.array([[1, 0], [1, 0], [1, 0], [0, 0]])
    y = np.array([1, 1, 1, 0])
    goals = ["recall <= 0.6", "recall >= 0.5"]
    model = MixtureClassifier(list(predicted.T), goals=goals).fit(predicted, y)
    rule = to_deterministic(model)
    assert rule.violation == pytest.approx(0.4)
    assert sum(check.holds for check in rule.checks) == 1


def column(place):
    """Return a model whose answers are a column of X."""
    return lambda X: X[:, place].astype(int)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 24),
    st.integers(4, 300),
    st.sampled_from([0.05, 0.25, 0.6, 1.0]),
    st.booleans(),
)
def test_a_rule_does_what_it_states(seed, n_models, n_samples, alpha, is_average):
    """Shares are added up in one order where a rule is chosen and in another where it predicts."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_samples) % 2
    X, mail = (np.where(rng.random((n_samples, n_models)) < 0.35, 1 - y[:, None], y[:, None]) for _ in range(2))
    goals = [f"positive_rate <= {X.mean()}", f"positive_rate(mail) >= {mail.mean() - 0.01}"]
    model = MixtureClassifier([column(place) for place in range(n_models)], alpha=alpha, goals=goals)
    model.fit(X, y, datasets={"mail": Table(mail)})
    if is_average:  # which meets the goals too, and whose shares differ by rounding only
        model.mixture_ = np.full(n_models, 1 / n_models)
    rule = to_deterministic(model)
    assert rule.value == pytest.approx(min(1, (rule.predict(X) != y).mean() / alpha), abs=1e-12)
    violations = [max(0, rule.predict(X).mean() - X.mean()), max(0, mail.mean() - 0.01 - rule.predict(mail).mean())]
    assert [check.violation for check in rule.checks] == pytest.approx(violations, abs=1e-12)


def test_where_half_of_the_mixture_says_yes_to_every_row_so_does_the_vote():
    y = np.array([1, 1, 1, 1, 0])
    said = np.array([1, 1, 0, 0, 1])
    X = np.column_stack([said, 1 - said] * 7)
    model = MixtureClassifier([column(place) for place in range(14)], alpha=0.5).fit(X, y)
    model.mixture_ = np.full(14, 1 / 14)
    assert np.cumsum(model.mixture_)[6] < 0.5  # half of them, added up one by one
    rule = to_deterministic(model)
    assert rule.kind == "vote"
    assert rule.predict(X).tolist() == [1] * 5
    assert rule.value == pytest.approx(0.4)


@pytest.mark.parametrize("weights", [None, [1, 1, 1, 1, 1, 1, 1, 30]])
def test_of_rules_with_the_same_risk_the_one_of_least_error_is_taken(weights):
    """At this alpha each rule has a risk of 1; by weight the second model has the least error, else the third."""
    y = np.array([0, 1] * 4)
    X = np.column_stack([1 - y] * 3)
    X[:3, 0], X[6:, 1], X[:5, 2] = y[:3], y[6:], y[:5]
    model = MixtureClassifier([column(place) for place in range(3)], alpha=0.01).fit(X, y, weights)
    rule = to_deterministic(model)
    assert rule.value == 1
    errors = np.average(y[:, None] != X, axis=0, weights=weights)
    assert errors.argmin() == (2 if weights is None else 1)
    assert np.average(rule.predict(X) != y, weights=weights) == pytest.approx(errors.min())
    assert (rule.kind, rule.model) == ("single", errors.argmin())


def test_of_equal_rules_the_simplest_is_taken():
    """The vote of two equal models is the first of them; of equal votes the one nearest to one half is taken."""
    y = np.array([0, 0, 1, 1, 1, 1])
    twice = to_deterministic(MixtureClassifier([column(0), column(0)]).fit(y[:, None], y))
    assert (twice.kind, twice.model, twice.value) == ("single", 0, 0.0)
    X = np.array([[0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0], [1, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 1]])
    model = MixtureClassifier([column(place) for place in range(4)]).fit(X, y)
    model.mixture_ = np.array([0.4, 0.2, 0.2, 0.2])  # shares of 0, 0.6 and 0.8
    rule = to_deterministic(model)
    assert (rule.kind, rule.threshold, rule.value) == ("vote", pytest.approx(0.3), 0.0)
