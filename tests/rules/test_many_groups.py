"""Goals that bind many groups to each other: what can be kept with a confidence is found, and looser bounds keep it."""

import numpy as np
import pytest
from scipy.special import expit

import counterpoise as cp

SIZES = {3: np.array([0.12, 0.6, 0.28]), 5: np.arange(1, 6) / 15, 8: np.arange(1, 9) / 36}


class GivenScores:
    """A fitted model whose score is the only feature."""

    _estimator_type = "classifier"
    classes_ = np.array([0, 1])

    def fit(self, *_rows):
        return self

    def predict_proba(self, X):
        return np.column_stack([1 - expit(X[:, 0]), expit(X[:, 0])])

    def predict(self, X):
        return (X[:, 0] > 0).astype(int)


def people(n_rows, n_groups, seed=0):
    """Return scores, groups and labels; the last group has higher scores."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(n_groups, n_rows, p=SIZES[n_groups])
    scores = rng.normal(size=n_rows) + 0.3 * (groups == n_groups - 1)
    labels = (rng.random(n_rows) < expit(1.1 * scores - 3)).astype(int)
    return scores, np.array(list("abcdefgh"))[groups], labels


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::counterpoise.rules.cautions.Caution")
@pytest.mark.parametrize("n_groups", [3, 5, 8])
def test_a_confidence_that_a_gap_reaches_is_not_lost_by_a_larger_gap(n_groups):
    scores, groups, labels = people(30_000, n_groups)
    values = []
    for gap in (0.05, 0.06, 0.07):
        goals = ["recall >= 0.7", f"max_difference(selection_rate, by=group) <= {gap}"]
        model = cp.GoalClassifier(GivenScores(), goals=goals, by="group", cv="prefit", random_state=0)
        model.fit(scores[:, None], labels, sensitive_features={"group": groups})
        assert model.confidence_ == 0.9
        values.append(model.value_)
    assert values[-1] <= values[0] + 0.002


def brute_force(scores, groups, labels, recall, gap):
    """Return the least error of any thresholds by group, over all of them."""
    levels = [
        np.concatenate([[np.inf], np.unique(scores[groups == group])[::-1] - 1e-9]) for group in np.unique(groups)
    ]
    best = np.inf
    for first in levels[0]:
        for second in levels[1]:
            decided = scores > np.where(groups == np.unique(groups)[0], first, second)
            rates = [decided[groups == group].mean() for group in np.unique(groups)]
            if decided[labels == 1].mean() >= recall - 1e-9 and abs(rates[0] - rates[1]) <= gap + 1e-9:
                best = min(best, (decided != labels).mean())
    return best


@pytest.mark.filterwarnings("ignore::counterpoise.rules.cautions.Caution")
@pytest.mark.parametrize("seed", range(12))
def test_one_rule_of_two_groups_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    scores, groups = rng.integers(0, 9, 60) / 4 - 1.0, np.repeat(["a", "b"], 30)
    labels = (rng.random(60) < expit(2 * scores)).astype(int)
    goals = ["recall >= 0.6", "max_difference(selection_rate, by=group) <= 0.1"]
    model = cp.GoalClassifier(GivenScores(), goals=goals, by="group", cv="prefit", confidence=None)
    model.fit(scores[:, None], labels, sensitive_features={"group": groups})
    assert model.value_ == pytest.approx(brute_force(scores, groups, labels, 0.6, 0.1), abs=1e-12)
    assert model.gap_ <= 1e-9
