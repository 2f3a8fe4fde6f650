"""Faults of rules of scores that were found by attack, each with the smallest program that shows it."""

import warnings

import numpy as np
import pytest

from counterpoise import GoalClassifier
from counterpoise.goals import Dataset, recall


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


def test_a_tail_bought_at_a_high_price_is_said_once_at_fit_or_at_rebalance():
    rng = np.random.default_rng(0)
    labels = (rng.random(400) < 0.5).astype(int)
    scores = np.clip(rng.normal(0.3 + 0.4 * labels, 0.2), 0, 1)
    with pytest.warns(UserWarning, match=r"the best model alone for .* set budget=0\.05") as at_fit:
        chosen(scores, labels, alpha=0.02)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*set budget=")
        plain = chosen(scores, labels, alpha=1.0)
        chosen(scores, labels, alpha=0.02, budget=0.05)
    with pytest.warns(UserWarning, match=r"set budget=") as at_rebalance:
        costly = plain.rebalance(alpha=0.02)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*set budget=")
        costly.rebalance(alpha=0.03)  # which was said already
    assert {one.filename for one in (*at_fit, *at_rebalance)} == {__file__}  # the line of the caller


@pytest.mark.parametrize("word", ["of", "by", "called", "value", "within", "average", "min_rows", "twin"])
def test_words_of_the_language_are_no_columns(word):
    with pytest.raises(
        ValueError, match=f"{word} is a word of the language of goals.*in quotes, as in recall..{word}'=x"
    ):
        recall(Dataset("train").where(**{word: "x"}))
