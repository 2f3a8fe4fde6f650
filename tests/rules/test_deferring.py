"""Classifiers that defer: draws, votes and fixed rules of three answers, inside goals on who is deferred."""

import numpy as np
import pytest

import counterpoise as cp
from counterpoise.goals import InfeasibleGoals, Table

N = 500
RNG = np.random.default_rng(0)
SEX = RNG.choice(["F", "M"], N)
X = RNG.normal(size=(N, 2)) + 0.5 * (SEX == "M")[:, None]
Y = np.where(X.sum(axis=1) + 1.2 * RNG.normal(size=N) > 0.6, "yes", "no")
SCORE = 1 / (1 + np.exp(0.6 - X.sum(axis=1)))
GOALS = [
    "defer_rate <= 0.15",
    "defer_rate(sex=F) <= 1.2 * defer_rate(sex=M)",
    "defer_rate(sex=M) <= 1.2 * defer_rate(sex=F)",
]


def score(rows):
    return 1 / (1 + np.exp(0.6 - np.asarray(rows).sum(axis=1)))


def fitted(y=Y, pool=(score,), **settings):
    """Return the rules of one score under goals on deferral."""
    tail = {} if "objective" in settings else {"alpha": 0.3}
    settings = {"deferral": cp.Deferral(0.2), "goals": GOALS, "by": "sex", "random_state": 0} | tail | settings
    settings = {"decision": "sticky"} | settings
    return cp.GoalClassifier(list(pool), cv="prefit", **settings, confidence=None).fit(
        X, y, sensitive_features={"sex": SEX}
    )


@pytest.fixture(scope="module")
def model():
    return fitted()


def asked(rows=slice(None), **more):
    return {"X": X[rows], "sensitive_features": {"sex": SEX[rows]}, **more}


def answers_by_hand(rule, rows=slice(None)):
    """Return what a rule says, from its thresholds."""
    upper = np.array([rule.thresholds[f"sex={one}"] for one in SEX[rows]])
    lower = upper if rule.lower is None else np.array([rule.lower[f"sex={one}"] for one in SEX[rows]])
    return np.where(SCORE[rows] > upper, "yes", np.where(SCORE[rows] > lower, "defer", "no"))


def test_probabilities_are_the_mixture_of_intervals(model):
    shares = model.decision_proba(**asked())
    by_hand = sum(
        share * (answers_by_hand(rule)[:, None] == ["no", "yes", "defer"])
        for share, rule in zip(model.mixture_, model.rules_, strict=True)
    )
    np.testing.assert_allclose(shares, by_hand, atol=1e-12)
    assert shares[:, 2].mean() == pytest.approx(0.15, abs=1e-6)


def test_goals_and_tail_are_those_of_the_probabilities(model):
    shares = model.decision_proba(**asked())
    table = Table(None, Y, {"sex": SEX})
    for check in model.check_goals():
        told = check.goal.evaluate_expected(shares, table, defer_label="defer")
        assert check.holds
        assert told.value == pytest.approx(check.value, abs=1e-9)
    losses = np.where(Y == "yes", shares[:, 0], shares[:, 1]) + 0.2 * shares[:, 2]
    assert cp.metrics.cvar_loss(losses, 0.3) == pytest.approx(model.value_, abs=1e-9)
    assert 0 <= model.gap_ <= 1e-4


def test_draws_are_sticky_and_as_often_as_the_mixture_says(model):
    said = model.predict(**asked())
    np.testing.assert_array_equal(said[100:200], model.predict(**asked(slice(100, 200))))
    assert set(said) == {"no", "yes", "defer"}
    ids = np.arange(N)
    np.testing.assert_array_equal(model.predict(**asked(ids=ids)), model.predict(**asked(ids=ids)))
    fresh = model.rebalance()
    fresh.decision = "sample"
    often = np.mean([fresh.predict(**asked()) == "defer" for _ in range(40)])
    assert often == pytest.approx(0.15, abs=0.01)


def test_a_fixed_rule_meets_the_goals_without_draws():
    fixed = fitted(decision="fixed", alpha=1.0)
    (rule,) = fixed.rules_
    assert rule.lower is not None
    assert all(check.holds for check in fixed.check_goals())
    np.testing.assert_array_equal(fixed.predict(**asked()), answers_by_hand(rule))
    assert fixed.fixed_cost_ < 0.02
    one = fitted(alpha=1.0).rebalance(decision="fixed")
    assert one.rules_ == fixed.rules_
    assert "deferred above" in str(one.rules_[0])


def test_probabilities_are_deferred_where_both_classes_are_likelier_than_its_cost():
    """As the best rule for good probabilities has it (Chow 1970)."""
    rng = np.random.default_rng(0)
    chance = rng.random(30_000)
    y = (rng.random(30_000) < chance).astype(int)
    told = cp.GoalClassifier(lambda rows: rows[:, 0], cv="prefit", deferral=cp.Deferral(0.2)).fit(chance[:, None], y)
    (rule,) = told.rules_
    assert rule.thresholds["all"] == pytest.approx(0.8, abs=0.05)
    assert rule.lower["all"] == pytest.approx(0.2, abs=0.05)


def test_the_budget_counts_what_deferring_costs():
    best = fitted(goals=(), alpha=1.0)
    tail = fitted(goals=(), alpha=0.1, budget=0.02)
    shares = tail.decision_proba(**asked())
    mean = (np.where(Y == "yes", shares[:, 0], shares[:, 1]) + 0.2 * shares[:, 2]).mean()
    assert mean <= best.value_ + 0.02 + 1e-6


def test_goals_that_cannot_hold_name_a_bound_that_can():
    with pytest.raises(InfeasibleGoals, match=r"defer_rate <= 0\.\d+") as caught:
        fitted(goals=["defer_rate <= 0.05", "decided_error_rate <= 0.05"])
    (goal,) = [goal for goal in caught.value.nearest_bounds if str(goal).startswith("defer_rate")]
    nearest = goal.with_bound(caught.value.nearest_bounds[goal])
    fitted(goals=[nearest, "decided_error_rate <= 0.05"])


def test_audits_know_who_is_deferred(model):
    class Decides:
        deferral, classes_ = cp.Deferral(0.2), model.classes_

        def predict(self, rows):
            return model.predict(rows, sensitive_features={"sex": SEX})

    found = cp.certify(Decides(), ["defer_rate <= 0.25"], X, Y)
    assert found[0].estimate == np.mean(model.predict(**asked()) == "defer")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"deferral": None}, r"defer_rate <= 0.15 uses deferred rows, but no row is deferred"),
        (
            {"deferral": None, "goals": (), "objective": "defer_rate"},
            r"defer_rate uses deferred rows, but no row is deferred",
        ),
        (
            {"deferral": cp.Deferral(0.2, "yes")},
            "label must not be mistaken for a class; got 'yes' beside the class 'yes'",
        ),
        ({"deferral": cp.Deferral(0.2, "Yes ")}, "taken for a class"),
        (
            {"goals": ["decided_error_rate(sex=F) <= decided_error_rate(sex=M)"]},
            "not linear once multiplied through",
        ),
    ],
)
def test_wrong_uses_are_told(settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fitted(**settings)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((1.5,), r"cost of Deferral must lie in \[0, 1\], the loss of a row that a person decides about; got 1.5"),
        ((-0.1,), "cost of Deferral must lie in"),
        (("a lot",), "cost of Deferral must be a number in"),
        ((True,), "cost of Deferral must be a number in"),
        ((np.nan,), "cost of Deferral must lie in"),
        ((0.2, "defer", -0.1), r"error of Deferral must lie in \[0, 1\]"),
        ((0.7, "defer", 0.4), r"cost \+ error of Deferral, .* must be at most 1, .* got 0.7 \+ 0.4"),
        ((0.2, None), "label must be a text or a number that no class has; got None"),
    ],
)
def test_a_deferral_has_a_cost_and_a_label(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        cp.Deferral(*given)


def test_a_deferral_for_nothing_is_warned_of():
    y = RNG.integers(0, 2, N)
    with pytest.warns(UserWarning, match=r"The rules defer 100.0% of the rows, because"):
        cp.GoalClassifier(
            [lambda rows: np.zeros(len(rows))], cv="prefit", decision="sticky", alpha=1.0, deferral=cp.Deferral(0.0)
        ).fit(X, y)


def test_the_loss_counts_errors_of_the_person_as_a_higher_cost_does():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(800, 1))
    y = (rng.random(800) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    options = {"cv": "prefit", "goals": "recall >= 0.4", "confidence": None}
    erring, dear = (
        cp.GoalClassifier(lambda rows: rows[:, 0], deferral=deferral, **options).fit(X, y)
        for deferral in (cp.Deferral(0.1, error=0.15), cp.Deferral(0.25))
    )
    assert (erring.predict(X) == dear.predict(X)).all()
    assert erring.value_ == pytest.approx(dear.value_)
    decisions = erring.predict(X)
    wrong = (decisions != "defer") & (decisions != y.astype(str)) & (decisions != y)
    assert erring.value_ == pytest.approx(wrong.mean() + 0.25 * (decisions == "defer").mean())


def test_a_goal_adds_the_errors_of_the_person():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(800, 1))
    y = (rng.random(800) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    goal = "error_rate + 0.15 * defer_rate <= 0.18"
    model = cp.GoalClassifier(
        lambda rows: rows[:, 0], cv="prefit", goals=goal, confidence=None, deferral=cp.Deferral(0.1, error=0.15)
    ).fit(X, y)
    decisions = model.predict(X).astype(str)
    deferred = decisions == "defer"
    wrong = (decisions != y.astype(str)) & ~deferred
    check = model.check_goals()[0]
    assert check.holds
    assert check.value == pytest.approx(wrong.mean() + 0.15 * deferred.mean())
