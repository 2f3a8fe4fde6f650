"""Less discriminatory alternatives: the best rules, what is proven about them, and what held-out rows show."""

import json

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from counterpoise import GoalClassifier, MixtureClassifier, alternatives

N_ROWS = 900


def people(n_rows=N_ROWS, seed=0, n_classes=2):
    """Return features, labels and sexes; one feature is a proxy of sex."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n_rows)
    X = rng.normal(size=(n_rows, 3)) + 0.5 * (sex == "M")[:, None] * [1, 1, 0]
    score = X @ [1.0, 0.3, 0.6] + rng.normal(0, 0.7, n_rows)
    return X, np.digitize(score, np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1])), {"sex": sex}


@pytest.fixture(scope="module")
def fitted():
    X, y, sex = people()
    models = [("logistic", LogisticRegression().fit(X[:300], y[:300]))]
    models += [("tree", DecisionTreeClassifier(max_depth=4, random_state=0).fit(X[:300, :], y[:300]))]
    model = GoalClassifier(models, cv="prefit", confidence=None)
    return model.fit(X[300:600], y[300:600], sensitive_features={"sex": sex["sex"][300:600]})


@pytest.fixture(scope="module")
def held_out():
    return people(2000, 1)


@pytest.fixture(scope="module")
def found(fitted, held_out):
    X, y, sex = held_out
    return alternatives(fitted, X, y, disparity="sex", sensitive_features=sex, within=0.05, n_points=6)


def every_rule(fitted):
    """Return error and selection rates by sex of every threshold of every model on the selection rows, by hand."""
    X, y, sex = people()
    X, y, sex = X[300:600], y[300:600], sex["sex"][300:600]
    rules = []
    for model in fitted.estimators_:
        scores = model.predict_proba(X)[:, 1]
        for threshold in [-np.inf, *np.unique(scores)]:
            said = scores > threshold
            rules.append([(said != y).mean(), *(said[sex == one].mean() for one in ("F", "M"))])
    return np.array(rules).T


def test_no_single_threshold_of_any_model_is_better_and_the_bound_is_that_of_the_linear_program(fitted, found):
    errors, women, men = every_rule(fitted)
    gaps = women - men
    for point in found.points[1:]:
        allowed = np.abs(gaps) <= point.bound + 1e-9
        assert point.chosen_performance == pytest.approx(errors[allowed].min())
        assert point.chosen_disparity <= point.bound + 1e-9
        program = linprog(
            errors, np.array([gaps, -gaps]), [point.bound] * 2, np.ones((1, gaps.size)), [1.0], method="highs"
        )
        assert point.lower <= program.fun + 1e-9
        assert point.lower == pytest.approx(program.fun, abs=2e-6)
        assert point.gap >= -1e-9


def test_nothing_beyond_the_least_disparity_is_as_good(fitted, found):
    errors, women, men = every_rule(fitted)
    gaps, most = women - men, found.incumbent.chosen_performance + found.within
    limits = np.array([gaps, -gaps])

    def least_error(bound):
        return linprog(errors, limits, [bound] * 2, np.ones((1, gaps.size)), [1.0], method="highs").fun

    assert found.least_disparity > 0
    assert least_error(found.least_disparity - 1e-6) > most - 1e-6
    assert least_error(found.least_disparity + 0.01) <= most
    assert min(one.chosen_disparity for one in found.near) >= found.least_disparity - 1e-9


def test_numbers_of_held_out_rows_are_those_of_the_predictions(found, held_out):
    X, y, sex = held_out
    usual = found.incumbent
    for point in found.points:
        said = point.classifier.predict(X)
        rates = [said[sex["sex"] == one].mean() for one in ("F", "M")]
        assert point.performance.value == pytest.approx((said != y).mean())
        assert point.disparity.value == pytest.approx(abs(rates[0] - rates[1]))
        assert point.performance.low <= point.performance.value <= point.performance.high
        if point is not usual:
            assert point.performance_change.value == pytest.approx(point.performance.value - usual.performance.value)
            assert point.disparity_change.value == pytest.approx(point.disparity.value - usual.disparity.value)


def test_the_result_prints_what_is_near_and_writes_all(found):
    text = str(found)
    assert "incumbent: the best model at its usual threshold" in text
    assert "no mixture of thresholds of logistic, tree, blind to groups," in text
    assert all(one.name in text for one in found.near)
    assert found.near
    json.dumps(found.as_dict())
    lines = found.as_csv().splitlines()
    assert len(lines) == 1 + len(found.points)
    assert "performance_change.high" in lines[0]


@pytest.mark.slow
def test_other_classifiers_stand_beside_the_rules_with_their_probabilities(fitted, held_out):
    X, y, sex = held_out
    rows = people()
    drawn = MixtureClassifier(fitted.estimators_, alpha=0.3, random_state=0).fit(rows[0][300:600], rows[1][300:600])
    options = {"disparity": "sex", "sensitive_features": sex, "n_points": 3}
    shown = alternatives(fitted, X, y, others={"nobody": np.zeros(y.size, dtype=int), "drawn": drawn}, **options)
    nobody, other = shown.points[-2:]
    assert nobody.performance.value == pytest.approx(y.mean())
    assert nobody.disparity.value == 0
    assert np.isnan(other.lower)
    expected = drawn.decision_proba(X)[np.arange(y.size), 1 - y].mean()
    assert other.performance.value == pytest.approx(expected)


@pytest.mark.slow
def test_other_goals_are_kept_and_one_on_the_same_disparity_is_the_default(fitted):
    goals = ["recall >= 0.7", "max_difference(positive_rate, by=sex) <= 0.2"]
    model = fitted.rebalance(goals=goals, by="sex")
    shown = alternatives(model, n_points=4)
    assert shown.disparity == "max_difference(positive_rate, by=sex)"
    for point in shown.points[1:]:
        values = [one.value for one in point.classifier.check_goals()]
        assert values[0] >= 0.7
        assert point.classifier.groups_.by == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "has no goal on a disparity. Pass disparity: a column"),
        ({"disparity": "age"}, "must name a column of groups or be a phrase.*got 'age'.*: sex"),
        ({"disparity": "recall(sex=F)"}, "must compare groups of the selection rows"),
        ({"disparity": "sex", "incumbent": "best"}, "incumbent must be"),
        ({"disparity": "sex", "incumbent": "deployed"}, "needs its predictions about the held-out rows: pass baseline"),
        ({"disparity": "sex", "within": 2}, "within must lie in"),
        ({"disparity": "sex", "n_points": 1}, "n_points must be"),
        ({"disparity": "sex", "y": [1, 0]}, "y without X"),
    ],
)
def test_bad_requests_are_refused_in_a_sentence(fitted, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        alternatives(fitted, **options)


def test_a_model_without_thresholds_is_refused(fitted):
    with pytest.raises(TypeError, match="fitted GoalClassifier, whose thresholds are searched; got LogisticRegression"):
        alternatives(fitted.estimators_[0], disparity="sex")
