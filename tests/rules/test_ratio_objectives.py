"""Ratios as objectives: one rule against a look at every rule, mixtures against the Charnes-Cooper program of HiGHS."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, jaccard_score, make_scorer, precision_score
from sklearn.model_selection import TunedThresholdClassifierCV

import counterpoise as cp
from counterpoise.goals import (
    Table,
    bind_objective,
    rates,
    register_metric,
)


def rows(seed=0, n=900):
    rng = np.random.default_rng(seed)
    score = np.round(rng.normal(size=n), 2)  # with ties
    sex = rng.choice(["F", "M"], n)
    y = (score + rng.normal(size=n) > 0.8 - 0.4 * (sex == "F")).astype(int)
    return score, y, sex


def fitted(score, y, sex=None, **options):
    features = None if sex is None else {"sex": sex}
    defaults = {"cv": "prefit", "confidence": None, "random_state": 0}
    model = cp.GoalClassifier([score], **(defaults | options))
    return model.fit(np.arange(len(y))[:, None], y, sensitive_features=features)


@pytest.mark.parametrize(
    ("name", "metric"), [("f1_score", f1_score), ("precision", precision_score), ("jaccard_score", jaccard_score)]
)
def test_the_value_is_the_metric_of_scikit_learn_and_at_least_its_tuned_threshold(name, metric):
    X = np.random.default_rng(3).normal(size=(500, 3))
    y = (X[:, 0] + np.random.default_rng(4).normal(size=500) > 1).astype(int)
    base = LogisticRegression().fit(X, y)
    ours = cp.GoalClassifier(base, objective=name, cv="prefit", confidence=None).fit(X, y)
    tuned = TunedThresholdClassifierCV(
        base, scoring=make_scorer(metric, zero_division=0.0), cv="prefit", refit=False, thresholds=100
    ).fit(X, y)
    assert ours.value_ == pytest.approx(metric(y, ours.predict(X)), abs=1e-12)
    assert ours.value_ >= metric(y, tuned.predict(X)) - 1e-12
    assert ours.gap_ <= 1e-6
    assert str(ours.objective_) == name


def test_a_mixture_is_at_least_as_good_as_one_rule_and_says_by_how_much():
    score, y, sex = rows()
    goals = ["demographic_parity_difference(by=sex) <= 0.01", "recall >= 0.55"]
    one, mixed = (
        fitted(score, y, sex, objective="precision", goals=goals, by="sex", decision=how) for how in ("fixed", "sticky")
    )
    assert mixed.value_ >= one.value_ - 1e-9
    assert one.fixed_cost_ == pytest.approx(mixed.value_ - one.value_, abs=1e-6)
    assert all(check.holds for check in mixed.check_goals())


def test_deferred_rows_are_neither_right_nor_wrong():
    score, y, _ = rows()
    base, X = LogisticRegression().fit(score[:, None], y), score[:, None]
    goals, options = (
        ["defer_rate <= 0.2", "recall >= 0.4"],
        {"objective": "f1_score", "cv": "prefit", "confidence": None},
    )
    model = cp.GoalClassifier(base, goals=goals, deferral=cp.Deferral(0.1, 2), **options).fit(X, y)
    said = model.predict(X)
    hits, wrong = ((said == 1) & (y == 1)).sum(), ((said != y) & (said != 2)).sum()
    assert (said == 2).any()
    assert model.value_ == pytest.approx(2 * hits / (2 * hits + wrong), abs=1e-12)
    assert model.value_ >= cp.GoalClassifier(base, goals=goals[1:], **options).fit(X, y).value_ - 1e-12


def test_prices_and_margins_are_in_the_unit_of_the_ratio():
    score, y, _ = rows(n=4000)
    base = fitted(score, y, objective="precision", goals=["recall >= 0.6"], decision="sticky")
    looser = fitted(score, y, objective="precision", goals=["recall >= 0.599"], decision="sticky")
    assert (looser.value_ - base.value_) / 0.001 == pytest.approx(base.multipliers_[0], rel=0.02)
    margined = fitted(score, y, objective="precision", goals=["recall >= 0.6"], confidence=0.9)
    plain = fitted(score, y, objective="precision", goals=["recall >= 0.6"])
    assert margined.confidence_ == 0.9
    assert margined.check_goals()[0].value > 0.61
    assert 0 <= plain.value_ - margined.value_ <= 0.05
    assert margined.gap_ >= plain.value_ - margined.value_ - 1e-9


def bound_alone(_scores, y):
    return bind_objective("precision", Table(None, y=y))


def registered(_scores, _labels):
    return register_metric(rates.recall, name="hits", greater_is_better=True)


def priced(scores, y):
    return cp.tradeoff(fitted(scores, y, objective="f1_score", goals=["recall >= 0.5"]), "recall >= 0.5")


def boosted(scores, y):
    return cp.LPBoostClassifier(objective="f1_score").fit(scores[:, None], y)


def constrained(scores, y):
    return cp.ConstrainedClassifier(objective="f1_score").fit(scores[:, None], y)


def explored(scores, y):
    return cp.explore(fitted(scores, y, objective="f1_score", goals=["recall >= 0.5"]))


def objective(text, **options):
    return lambda scores, y: fitted(scores, y, objective=text, **options)


WRONG = [
    (objective("win_loss_ratio"), "baseline"),
    (objective("f1_scor"), "Did you mean 'f1_score'"),
    (objective("precision", alpha=0.1), "alpha=0.1 is short for"),
    (objective("precision", goals=["positive_rate <= 0"]), "has no value on these rows"),
    (objective("error_rate / (recall - 0.5)"), r"The objective .* its denominator falls to -0.5"),
    (objective("(positive_rate - 1) / positive_rate"), "has no best value here.*Set a goal"),
    (objective("decided_error_rate / recall"), "not a number|combined|ratio"),
    (objective("max_difference(recall, by=sex)"), "worst of several"),
    (objective("precision(sex=X)"), "sex"),
    (objective("precision", deferral=0.2), "deferral must be None"),
    (boosted, r"call rebalance\(objective='f1_score'\)"),
    (constrained, "cannot be the objective here"),
    (priced, "is a ratio"),
    (bound_alone, "GoalClassifier and MixtureClassifier can have it"),
    (registered, "greater_is_better is for ratios"),
    (explored, r"rebalance\(objective='error_rate'\).*f1_score >= 0"),
]


@pytest.mark.parametrize(("use", "words"), WRONG)
def test_wrong_uses_are_refused_in_words(use, words):
    score, y, _ = rows()
    with pytest.raises((TypeError, ValueError), match=words):
        use(score, y)


def test_infeasible_goals_are_explained_where_the_objective_is_a_ratio_and_models_are_trained_in_folds():
    score, y, _ = rows(1)
    model = cp.GoalClassifier(LogisticRegression(), goals="recall >= 0.6", objective="precision", cv=3, random_state=0)
    model = model.fit(score[:, None], y)
    with pytest.raises(cp.goals.InfeasibleGoals, match=r"positive_rate <= 0\.\d+ \(selection rate"):
        model.rebalance(goals=["recall >= 0.9", "positive_rate <= 0.2"])
