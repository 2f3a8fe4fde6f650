"""Faults of rules of scores that were found by attack, each with the smallest program that shows it."""

import warnings

import numpy as np
import pytest

from counterpoise import AdaLPBoostClassifier, GoalClassifier, Stopping
from counterpoise.goals import Dataset, InfeasibleGoals, recall
from counterpoise.learners import HistogramTree
from counterpoise.rules.cautions import CostlyDecisions

SCORES = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
LABELS = np.array([0, 0, 0, 1, 0, 1, 1, 0, 1, 1])


def chosen(scores, labels, **settings):
    settings = {"decision": "sticky", "random_state": 0} | settings
    model = GoalClassifier([lambda X: X[:, 0]], cv="prefit", **settings, confidence=None)
    return model.fit(np.asarray(scores)[:, None], labels)


def test_scores_of_any_size_are_told_apart():
    labels = np.array([0, 1] * 10)
    scores = np.where(labels == 1, 1.7e308, -1.7e308)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = chosen(scores, labels, alpha=1.0)
    assert (model.predict(scores[:, None]) == labels).all()


@pytest.mark.parametrize("unit", [1e-300, 1e-12, 1e-9, 1e250])
def test_a_goal_is_met_by_scores_in_any_unit(unit):
    """Scores of rare events lie within 1e-9 of each other: as one block no threshold could meet a goal."""
    rng = np.random.default_rng(0)
    labels = rng.random(400) < 0.2
    scores = unit * np.exp(rng.normal(size=400) + 2 * labels)
    model = chosen(scores, labels.astype(int), alpha=1.0, goals=["recall >= 0.6"], decision="vote")
    plain = chosen(scores / unit, labels.astype(int), alpha=1.0, goals=["recall >= 0.6"], decision="vote")
    answers = model.predict(scores[:, None])
    assert answers[labels].mean() >= 0.6
    np.testing.assert_array_equal(answers, plain.predict(scores[:, None] / unit))


def test_groups_with_one_name_are_refused():
    labels = np.tile([0, 1], 20)
    columns = {"g": ["x, h=1"] * 20 + ["x"] * 20, "h": ["2"] * 20 + ["1, h=2"] * 20}
    model = GoalClassifier([lambda X: X[:, 0]], cv="prefit", decision="sticky", alpha=1.0, by=["g", "h"])
    with pytest.raises(ValueError, match=r"two groups with the same name 'g=x, h=1, h=2'.*change the values of g, h"):
        model.fit(labels[:, None] / 2, labels, sensitive_features=columns)


@pytest.mark.parametrize("others", [None, "a"])
def test_a_group_called_as_missing_values_are_is_refused(others):
    labels, group = np.tile([0, 1], 20), np.array([others] * 20 + ["(missing)"] * 20, dtype=object)
    model = GoalClassifier([lambda X: X[:, 0]], cv="prefit", decision="sticky", alpha=1.0, by="g")
    with pytest.raises(ValueError, match=r"Column 'g' must not hold the text '\(missing\)'.*20 of 40 rows do"):
        model.fit(labels[:, None] / 2, labels, sensitive_features={"g": group})


def test_small_ratios_that_cannot_hold_are_explained():
    scores = [0.7, 0.9, 0.7, 0.1, 0.5, 0.5, 0.5, 1, 0.3, 0.2, 0.5, 0.6, 0.9, 0.6, 0.3, 0.9, 0.5, 0.7, 0.5, 0.2]
    labels = np.array([1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1, 0])
    goals = [
        "max_difference(positive_rate, by=g) <= 0",
        "every_group(precision, by=g) >= 0.9",
        "recall >= 0.3",
    ]
    model = GoalClassifier([lambda X: X[:, 0]], cv="prefit", decision="sticky", alpha=1.0, goals=goals, confidence=None)
    with pytest.raises(InfeasibleGoals):
        model.fit(np.array(scores)[:, None], labels, sensitive_features={"g": np.repeat([0, 1], 10)})


def test_a_tail_bought_at_a_high_price_is_said_once_at_fit_or_at_rebalance():
    rng = np.random.default_rng(0)
    labels = (rng.random(400) < 0.5).astype(int)
    scores = np.clip(rng.normal(0.3 + 0.4 * labels, 0.2), 0, 1)
    with pytest.warns(CostlyDecisions, match=r"the best model alone for .* set budget=0\.05") as at_fit:
        chosen(scores, labels, alpha=0.02)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CostlyDecisions)
        plain = chosen(scores, labels, alpha=1.0)
        chosen(scores, labels, alpha=0.02, budget=0.05)
    with pytest.warns(CostlyDecisions) as at_rebalance:
        costly = plain.rebalance(alpha=0.02)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CostlyDecisions)
        costly.rebalance(alpha=0.03)  # which was said already
    assert {one.filename for one in (*at_fit, *at_rebalance)} == {__file__}  # the line of the caller


def test_patience_does_not_look_at_the_budget_so_that_rounds_can_be_gone_on_with(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = (X[:, 0] * X[:, 1] > 0) ^ (rng.random(200) < 0.1)
    settings = {"n_estimators": 15, "alpha": 0.5, "random_state": 0, "stopping": Stopping(patience=3)}
    AdaLPBoostClassifier(HistogramTree(2), checkpoint=tmp_path / "c", budget=0.0, **settings).fit(X, y)
    resumed = AdaLPBoostClassifier(HistogramTree(2), checkpoint=tmp_path / "c", **settings).fit(X, y)
    assert len(resumed.estimators_) == len(AdaLPBoostClassifier(HistogramTree(2), **settings).fit(X, y).estimators_)


def test_a_budget_without_a_free_mixture_is_refused():
    with pytest.raises(ValueError, match=r"budget needs mixture='optimal'.*got mixture='average'"):
        AdaLPBoostClassifier(budget=0.1, mixture="average").fit(SCORES[:, None], LABELS)


@pytest.mark.parametrize("word", ["of", "by", "called", "value", "within", "average", "min_rows", "twin"])
def test_words_of_the_language_are_no_columns(word):
    with pytest.raises(
        ValueError, match=f"{word} is a word of the language of goals.*in quotes, as in recall..{word}'=x"
    ):
        recall(Dataset("train").where(**{word: "x"}))
