"""Rounds inside goals: with a learner that finds the best model there is, they reach the optimum over its class."""

import warnings

import numpy as np
import pytest
from exact_stumps import BestStump, all_answers
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import Problem, least_cvar, least_risk

from counterpoise import LPBoostClassifier
from counterpoise.goals import InfeasibleGoals, Table
from counterpoise.mixtures.cautions import CostlyTail
from counterpoise.theory.risks import KL, Mean, WorstGroup

warnings.simplefilter("ignore", CostlyTail)
CLOSE = 2e-3  # rounds end where no model lowers the risk by 1e-3, of mixtures that are known to a part of that


class Rows:
    """Labelled rows of two groups, and unlabelled ones with the answers of a deployed model."""

    def __init__(self, seed, n_classes=2):
        rng = np.random.default_rng(seed)
        n_train, n_mail = int(rng.integers(12, 40)), int(rng.integers(5, 20))
        self.X = rng.integers(0, 7, size=(n_train + n_mail, 2)).astype(float)
        noise = rng.normal(size=n_train + n_mail)
        levels = self.X[:, 0] - 0.7 * self.X[:, 1] + 1.5 * noise
        labels = np.searchsorted(np.quantile(levels, np.arange(1, n_classes) / n_classes), levels)
        labels[:n_classes] = np.arange(n_classes)
        self.train, self.mail = slice(0, n_train), slice(n_train, None)
        self.y, self.baseline = labels[self.train], rng.permutation(labels)[self.mail]
        self.sex = np.where(rng.random(n_train) + 0.1 * (self.y > 0) > 0.5, "M", "F")
        self.sex[:2], self.sex[2:4] = "M", "F"
        self.weight = rng.integers(1, 4, n_train).astype(float) if seed % 2 else np.ones(n_train)
        self.said = all_answers(self.X, np.arange(n_classes))

    @property
    def losses(self):
        """Return where each stump errs on the labelled rows."""
        return (self.said[self.train] != self.y[:, None]).astype(float)

    def share(self, said, rows):
        """Return the weighted share of some labelled rows of which something is said, for each stump."""
        return self.weight[rows] @ said[self.train][rows] / self.weight[rows].sum()

    def gap(self):
        """Return the difference of the groups' positive rates, for each stump."""
        women, men = (self.share(self.said == 1, self.sex == sex) for sex in "FM")
        return women - men

    def fit(self, **params):
        """Fit inside goals."""
        model = LPBoostClassifier(BestStump(), **{"n_estimators": 80, "random_state": 0, **params})
        datasets = {"mail": Table(self.X[self.mail], baseline=self.baseline)}
        given = {"sensitive_features": {"sex": self.sex}, "datasets": datasets}
        return model.fit(self.X[self.train], self.y, self.weight, **given)


def asked(rows, parity, recall, churn):
    """Return goals on several datasets as texts, and by hand as rows over all stumps with their bounds."""
    texts = [
        f"abs(positive_rate(train, sex=F) - positive_rate(train, sex=M)) <= {parity}",
        f"recall(train) >= {recall}",
        f"churn(mail) <= {churn}",
    ]
    found = rows.share(rows.said == 1, rows.y == 1)
    changed = (rows.said[rows.mail] != rows.baseline[:, None]).mean(axis=0)
    return texts, np.array([rows.gap(), -rows.gap(), -found, changed]), np.array([parity, parity, -recall, churn])


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    alpha=st.sampled_from([1.0, 0.6, 0.3]),
    parity=st.sampled_from([0.0, 0.05, 0.2]),
    recall=st.sampled_from([0.0, 0.5, 0.8]),
    churn=st.sampled_from([0.2, 0.4, 1.0]),
)
def test_an_exact_learner_reaches_the_optimum_over_its_class(seed, alpha, parity, recall, churn):
    rows = Rows(seed)
    texts, matrix, bounds = asked(rows, parity, recall, churn)
    best = least_cvar(Problem(rows.losses, alpha, rows.weight, matrix, bounds))
    if best is None:
        with pytest.raises(InfeasibleGoals, match="cannot hold"):
            rows.fit(goals=texts, alpha=alpha)
        return
    model = rows.fit(goals=texts, alpha=alpha)
    assert model.bound_if_learner_exact_ <= best + 1e-9
    assert best - 1e-9 <= model.value_ <= best + CLOSE
    assert all(check.holds for check in model.check_goals())


RISKS = {
    "mean": (Mean(), [(1.0, "cvar", 0.0)]),
    "ball": (KL(0.2), [(1.0, "kl", 0.2)]),
    "worst group": (WorstGroup("sex"), [(1.0, "worst-group", None)]),
    "sum": (0.5 * KL(0.05) + 0.5 * KL(0.3), [(0.5, "kl", 0.05), (0.5, "kl", 0.3)]),
}


@pytest.mark.parametrize("name", RISKS)
def test_any_risk_is_trained_for(name):
    objective, parts = RISKS[name]
    rows = Rows(7)
    texts, matrix, bounds = asked(rows, 0.1, 0.5, 0.6)
    best = least_risk(Problem(rows.losses, 1.0, rows.weight, matrix, bounds), parts, rows.sex)
    model = rows.fit(goals=texts, objective=objective)
    assert model.bound_if_learner_exact_ <= best + 1e-6
    assert best - 1e-6 <= model.value_ <= best + CLOSE


def test_a_rate_is_trained_for_inside_goals():
    rows = Rows(5)
    texts, matrix, bounds = asked(rows, 0.1, 0.6, 0.5)
    false = rows.share(rows.said == 1, rows.y == 0)
    best = least_cvar(Problem(false[None], 1.0, None, matrix, bounds))
    model = rows.fit(goals=texts, objective="false_positive_rate(train)")
    assert model.bound_if_learner_exact_ <= best + 1e-9
    assert best - 1e-9 <= model.value_ <= best + CLOSE


@pytest.mark.parametrize("alpha", [1.0, 0.4])
def test_of_three_classes_every_answer_has_its_price(alpha):
    rows = Rows(11, n_classes=3)
    texts = ["recall(train, of=2) >= 0.7", "recall(train, of=0) >= 0.6", "churn(mail, of=1) <= 0.5"]
    recalls = [-rows.share(rows.said == label, rows.y == label) for label in (2, 0)]
    changed = ((rows.said[rows.mail] == 1) != (rows.baseline == 1)[:, None]).mean(axis=0)
    matrix, bounds = np.array([*recalls, changed]), np.array([-0.7, -0.6, 0.5])
    best = least_cvar(Problem(rows.losses, alpha, rows.weight, matrix, bounds))
    model = rows.fit(goals=texts, alpha=alpha)
    assert model.bound_if_learner_exact_ <= best + 1e-9
    assert best - 1e-9 <= model.value_ <= best + CLOSE
    assert all(check.holds for check in model.check_goals())


def test_goals_out_of_reach_end_early_with_the_mixture_that_is_nearest():
    rows, seen = Rows(3), []
    with pytest.raises(InfeasibleGoals, match=r"error_rate\(train\) <= 0\.01") as caught:
        rows.fit(goals="error_rate(train) <= 0.01", alpha=1.0, callbacks=[seen.append])
    assert len(seen) < 20
    assert all(done.standing.violation > 0 for done in seen)
    closest = caught.value.closest
    best = least_cvar(Problem(rows.losses, 1.0, rows.weight, None, None))
    assert closest.check_goals()[0].value == pytest.approx(best, abs=CLOSE)
    assert closest.predict(rows.X).shape == (len(rows.X),)
