"""Mixtures with a confidence: margins that hold on the population, proofs, and where there are none."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

import counterpoise as cp
from counterpoise import Stopping
from counterpoise.learners import HistogramTree

# Models of a population with three positives in ten, by how often each calls a positive and a negative row positive.
RECALLS, FALSE_ALARMS = np.array([0.55, 0.75, 0.9, 1.0, 0.0]), np.array([0.05, 0.15, 0.4, 1.0, 0.0])
GOALS = ("recall >= 0.7", "positive_rate <= 0.4")


def draw_rows(n_rows, rng):
    """Return labels, and what each model says about them."""
    y = (rng.random(n_rows) < 0.3).astype(int)
    return y, [
        (rng.random(n_rows) < np.where(y, *rates)).astype(int) for rates in zip(RECALLS, FALSE_ALARMS, strict=True)
    ]


def fit_mixture(y, answers, **options):
    options = {"alpha": 1.0, "goals": GOALS, "random_state": 0} | options
    ids = options.pop("ids", None)
    return cp.MixtureClassifier(answers, **options).fit(np.zeros((y.size, 1)), y, ids=ids)


def holds_on_population(model):
    recall, alarms = model.mixture_ @ RECALLS, model.mixture_ @ FALSE_ALARMS
    return recall >= 0.7 and 0.3 * recall + 0.7 * alarms <= 0.4


@pytest.mark.slow
def test_goals_of_mixtures_hold_on_the_population_about_as_often_as_the_confidence_says():
    held = {None: [], 0.9: []}
    reached = []
    for seed in range(40):
        y, answers = draw_rows(1500, np.random.default_rng(seed))
        for confidence, known in held.items():
            known.append(holds_on_population(model := fit_mixture(y, answers, confidence=confidence)))
        reached.append(model.confidence_ == 0.9)
    assert np.mean(held[None]) < 0.75
    assert np.mean(reached) > 0.95
    assert np.mean(held[0.9]) >= 0.83


def test_margins_cost_and_say_so():
    y, answers = draw_rows(1500, np.random.default_rng(0))
    goals = ("recall >= 0.78", "positive_rate <= 0.45")
    plain, safe = (fit_mixture(y, answers, confidence=one, goals=goals) for one in (None, 0.9))
    assert plain.margins_ == ()
    assert plain.confidence_ is None
    assert safe.value_ > plain.value_
    assert all(check.holds for check in safe.check_goals())
    recall = safe.margins_[0]
    assert recall.bound == 0.78 < recall.value
    assert recall.cost > 0
    assert recall.expected[0] < recall.value < recall.expected[1]
    assert safe.rebalance(confidence=None).value_ == pytest.approx(plain.value_, abs=1e-4)


X, Y = make_classification(1500, 8, n_informative=5, flip_y=0.1, random_state=0)


def test_boosters_need_rows_that_no_round_has_seen():
    options = {"n_estimators": 4, "alpha": 1.0, "goals": ["recall >= 0.8"], "random_state": 0}
    for booster in (cp.LPBoostClassifier, cp.AdaLPBoostClassifier):
        with pytest.raises(ValueError, match="needs rows that no round has seen"):
            booster(HistogramTree(3), confidence=0.9, **options).fit(X, Y)
        fitted = booster(HistogramTree(3), **options).fit(X, Y)
        with pytest.raises(ValueError, match="pass X and y of other rows"):
            fitted.rebalance(confidence=0.9)
        held_out = booster(HistogramTree(3), confidence=0.9, stopping=Stopping(validation_fraction=0.4), **options)
        held_out.fit(X, Y)
        assert held_out.margins_[0].standard_error > 0
        assert held_out.check_goals()[0].value >= 0.8
