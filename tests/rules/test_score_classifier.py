"""Rules of the scores of fitted models in fit, predict, rebalance, on disk and in messages."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.tree import DecisionTreeClassifier

import counterpoise as cp
from counterpoise import persist
from counterpoise.goals import InfeasibleGoals, Table

N = 600
RNG = np.random.default_rng(0)
SEX = RNG.choice(["F", "M"], N)
X = RNG.normal(size=(N, 3)) + 0.6 * (SEX == "M")[:, None]
Y = np.where(X[:, 0] + X[:, 1] + RNG.normal(size=N) > 0.8, "yes", "no")
OLD = np.where(X[:, 0] > 0.5, "yes", "no")  # what the deployed model says
MODEL = LogisticRegression().fit(X[:200], Y[:200])
TREE = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X[:200], Y[:200])
CHOOSE = slice(200, None)
PARITY = [
    "positive_rate(sex=F) - positive_rate(sex=M) <= 0.02",
    "positive_rate(sex=M) - positive_rate(sex=F) <= 0.02",
]


def fitted(models=(MODEL,), **settings):
    settings = {"cv": "prefit", "decision": "sticky", "by": "sex", "goals": PARITY, "random_state": 0} | settings
    model = cp.GoalClassifier(list(models), **settings, confidence=None)
    return model.fit(X[CHOOSE], Y[CHOOSE], sensitive_features={"sex": SEX[CHOOSE]}, baseline=OLD[CHOOSE])


@pytest.fixture(scope="module")
def parity():
    return fitted((MODEL, TREE))


def rate(model, group):
    rows = SEX[CHOOSE] == group
    shares = model.decision_proba(X[CHOOSE][rows], sensitive_features={"sex": SEX[CHOOSE][rows]})
    return shares[:, 1].mean()


def test_goals_hold_for_the_draws_and_the_value_is_their_error(parity):
    shares = parity.decision_proba(X[CHOOSE], sensitive_features={"sex": SEX[CHOOSE]})
    error = np.where(Y[CHOOSE] == "yes", shares[:, 0], shares[:, 1]).mean()
    assert error == pytest.approx(parity.value_, abs=1e-9)
    assert abs(rate(parity, "F") - rate(parity, "M")) <= 0.02 + 1e-9
    assert all(check.holds for check in parity.check_goals())
    assert parity.gap_ <= 1e-4
    assert parity.n_models_ == np.count_nonzero(parity.mixture_) == len(parity.rules_)


def test_rules_are_sorted_by_model_and_threshold_and_name_the_groups(parity):
    for rule in parity.rules_:
        assert list(rule.thresholds) == ["sex=F", "sex=M"] == list(parity.groups_.names)
        assert parity.estimators_[rule.model] in (MODEL, TREE)
    models = [rule.model for rule in parity.rules_]
    assert models == sorted(models)
    for first, second in zip(parity.rules_, parity.rules_[1:], strict=False):
        if first.model == second.model:
            assert all(first.thresholds[group] <= second.thresholds[group] for group in parity.groups_.names)


def test_answers_follow_the_rule_that_was_drawn_whatever_the_batch(parity):
    whole = parity.predict(X, sensitive_features={"sex": SEX})
    parts = [parity.predict(X[i : i + 7], sensitive_features={"sex": SEX[i : i + 7]}) for i in range(0, N, 7)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    shares = parity.decision_proba(X, sensitive_features={"sex": SEX})[:, 1]
    assert (whole[shares == 1] == "yes").all()
    assert (whole[shares == 0] == "no").all()
    drawn = cp.GoalClassifier([MODEL], cv="prefit", alpha=0.1, decision="sample", random_state=0).fit(X, Y)
    assert set(drawn.predict(X)) <= {"yes", "no"}


def test_rebalance_changes_objective_goals_budget_and_columns_without_asking_a_model(parity):
    tail = parity.rebalance(alpha=0.2)
    assert tail.alpha_ == 0.2
    assert tail.gap_ <= 1e-4
    least = parity.value_
    for budget in (0.01, 0.04):
        kept = parity.rebalance(alpha=0.2, budget=budget)
        assert kept.value_ >= tail.value_ - 1e-4
        error = np.average(kept.selection_.losses, axis=0) @ kept.mixture_
        assert error <= least + budget + 1e-4
    assert parity.rebalance(by="baseline", goals="churn <= 0.05").check_goals()[0].holds
    assert parity.rebalance(goals=(), objective="WorstGroup('sex')").gap_ <= 1e-4
    assert parity.rebalance(goals=(), objective="false_positive_rate").value_ == pytest.approx(0.0, abs=1e-9)
    other = parity.rebalance(X[:200], Y[:200], sensitive_features={"sex": SEX[:200]})
    assert other.selection_.losses.shape[0] == 200
    assert parity.get_params()["budget"] is None


@pytest.mark.parametrize(("decision", "budget"), [("sticky", None), ("sticky", 0.03), ("fixed", 0.03)])
def test_a_better_group_is_no_worse_off_for_the_worst_one(decision, budget):
    """Rules that see the groups leave each its own least error: the worst one alone would let the others rise to it."""
    groups = np.arange(N) % 3
    noise = np.array([0.2, 0.8, 2.0])[groups] * np.random.default_rng(1).normal(size=N)
    labels = X[:, 0] + noise > np.array([0.0, 0.5, -0.5])[groups]
    model = cp.GoalClassifier(MODEL, cv="prefit", objective="WorstGroup('g')", by="g", decision=decision, budget=budget)
    model.fit(X, np.where(labels, "yes", "no"), sensitive_features={"g": groups})
    chances, scores = model.decision_proba(X, sensitive_features={"g": groups})[:, 1], MODEL.decision_function(X)
    errors, least = [], []
    for rows in (groups == group for group in range(3)):
        errors.append(np.abs(chances[rows] - labels[rows]).mean())
        least.append(min(np.mean((scores[rows] > cut) != labels[rows]) for cut in [-np.inf, *scores[rows]]))
    assert errors == pytest.approx(least, abs=1e-4)
    assert model.value_ == pytest.approx(max(least), abs=1e-4)
    assert sorted(least)[1] < max(least) - 0.05  # else there would be nothing to see


def test_infeasible_goals_name_the_conflict_and_bounds_that_can_be_met():
    goals = ["recall >= 0.99", "precision >= 0.9"]
    with pytest.raises(InfeasibleGoals, match=r"recall >= 0.99 and precision >= 0.9") as caught:
        fitted(goals=goals)
    for goal, bound in caught.value.nearest_bounds.items():
        moved = [str(goal.with_bound(bound)) if str(goal) == text else text for text in goals]
        assert all(check.holds for check in fitted(goals=moved).check_goals())
        tighter = bound + (1e-3 if goal.sense == ">=" else -1e-3)
        with pytest.raises(InfeasibleGoals):
            fitted(goals=[str(goal.with_bound(tighter)) if str(goal) == text else text for text in goals])


@pytest.mark.parametrize(
    ("model", "models"),
    [
        (cp.GoalClassifier([MODEL, TREE], cv="prefit", by="sex"), "estimator"),
        (cp.MixtureClassifier([MODEL, TREE], alpha=1.0), "estimators"),
    ],
    ids=["scores", "answers"],
)
def test_goals_that_cannot_hold_leave_nothing_of_an_earlier_fit_and_others_need_no_fit(model, models):
    given = {"sensitive_features": {"sex": SEX[CHOOSE]}}
    model = clone(model).fit(X[CHOOSE], Y[CHOOSE], **given)
    impossible = ["recall >= 1", "precision >= 1"]
    model.set_params(**{models: [TREE, MODEL, TREE]}, goals=impossible)
    with pytest.raises(InfeasibleGoals):
        model.fit(X[CHOOSE], Y[CHOOSE], **given)
    with pytest.raises(NotFittedError):
        model.predict(X)
    expected = clone(model).set_params(goals=()).fit(X[CHOOSE], Y[CHOOSE], **given)
    assert model.rebalance(goals=()).value_ == expected.value_


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": 7}, "a rule is not of one of 1 models with thresholds for sex=F, sex=M"),
        ({"thresholds": {"sex=F": 0.5}}, "a rule is not of one of 1 models with thresholds for sex=F, sex=M"),
        ({"thresholds": {"sex=F": 0.5, "sex=M": "high"}}, "it is no model with thresholds"),
    ],
)
def test_files_with_rules_that_cannot_be_are_refused(change, message):
    model = fitted([TREE])
    model.rules_ = [model.rules_[0]._replace(**change)] * len(model.rules_)
    with pytest.raises(persist.UnreadableModel, match=message):
        persist.loads(persist.dumps(model))


def test_stored_columns_of_scores_or_answers_are_chosen_among():
    stored = {"train": MODEL.predict_proba(X[CHOOSE])[:, 1], "mail": MODEL.predict_proba(X[:100])}
    answers = TREE.predict(X[CHOOSE])
    live, columns = fitted(goals=PARITY), fitted([stored["train"]], goals=PARITY)
    assert columns.value_ == pytest.approx(live.value_, abs=1e-12)
    assert columns.rules_ == live.rules_
    assert fitted([answers], goals=()).value_ == pytest.approx((answers != Y[CHOOSE]).mean())
    model = cp.GoalClassifier(
        [stored], cv="prefit", decision="sticky", alpha=1.0, goals="positive_rate(mail) <= 0.3", confidence=None
    )
    model.fit(X[CHOOSE], Y[CHOOSE], datasets={"mail": Table(X[:100])})
    assert model.check_goals()[0].holds
    with pytest.raises(ValueError, match=r"stored scores for the rows of fit.*Pass the model itself"):
        columns.predict(X, sensitive_features={"sex": SEX})
    with pytest.raises(ValueError, match=r"dataset 'mail' needs its own"):
        cp.GoalClassifier([stored["train"]], cv="prefit", decision="sticky", alpha=0.1).fit(
            X[CHOOSE], Y[CHOOSE], datasets={"mail": Table(X[:100])}
        )


def test_of_constant_scores_the_rules_say_one_class_of_a_whole_group():
    model = fitted([np.zeros(N - 200)], by=(), goals="positive_rate >= 0.5")
    assert [rule.thresholds for rule in model.rules_] == [{"all": -np.inf}, {"all": np.inf}]
    assert model.mixture_.tolist() == [0.5, 0.5]


def test_goals_that_are_met_by_calling_everybody_one_class_are_told():
    with pytest.warns(UserWarning, match="The rules decide 'yes' for every row, whatever its score.*pos_label"):
        fitted(by=(), goals=["recall >= 1", "positive_rate >= 1"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(by=(), goals=["recall >= 0.9"])


def test_small_and_unknown_groups_are_pooled_where_that_is_allowed():
    sex = SEX.copy()
    sex[200:203] = "X"
    columns = {"sex": sex[CHOOSE]}
    model = cp.GoalClassifier(
        [MODEL], cv="prefit", decision="sticky", by=cp.Groups("sex", unknown="pool"), random_state=0
    )
    model.fit(X[CHOOSE], Y[CHOOSE], sensitive_features=columns)
    assert model.groups_.names == ("sex=F", "sex=M", "(other)")
    assert set(model.predict(X[:4], sensitive_features={"sex": ["F", "X", "Q", None]})) <= {"yes", "no"}
    none = model.rebalance(sensitive_features={"sex": SEX[CHOOSE]})  # nobody of fit is of others
    shares = [np.mean(none.decision_proba(X, sensitive_features={"sex": kind})[:, 1]) for kind in (SEX, ["Q"] * N)]
    assert shares[0] == pytest.approx(shares[1], abs=0.05)


class Answering:
    """A model without scores."""

    classes_ = np.array(["no", "yes"])

    def predict(self, rows):
        return np.full(len(rows), "no")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"models": [Answering()]}, r"Model 0 \(Answering\) has no scores to cut: rules need predict_proba"),
        ({"models": [LogisticRegression]}, r"is a class, not a model"),
        ({"models": [LogisticRegression()]}, r"Model 0 \(LogisticRegression\) is not fitted"),
        ({"models": [np.full(N - 200, np.nan)]}, r"must be finite; 400 of 400 are not, the first is"),
        ({"models": [np.zeros(3)]}, r"must give one score for each of the 400 rows.*shape \(3,\)"),
        ({"by": "age"}, r"The rows of fit need the column 'age', which the rules use: pass sensitive_features"),
        ({"by": 3}, r"by must be the name of a column that rules may use, a list of names, or Groups; got 3"),
        ({"by": ("sex", "sex")}, r"by names a column twice"),
        ({"budget": -0.1}, r"budget must lie in \[0, 1\]"),
        ({"deferral": 0.2}, r"deferral must be None, or Deferral\(cost\).*got 0.2"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fitted(**settings)


def test_small_groups_and_rows_of_unknown_groups_are_refused(parity):
    odd = np.where(np.arange(N - 200) < 3, "X", SEX[CHOOSE])
    with pytest.raises(ValueError, match=r"The group 'sex=X' has 3 rows to choose a threshold on, fewer than 10"):
        cp.GoalClassifier([MODEL], cv="prefit", decision="sticky", alpha=0.1, by="sex").fit(
            X[CHOOSE], Y[CHOOSE], sensitive_features={"sex": odd}
        )
    with pytest.raises(
        ValueError, match=r"The rows to decide about hold the group 'sex=X'.*by=Groups\('sex', unknown='pool'\)"
    ):
        parity.predict(X[:2], sensitive_features={"sex": ["F", "X"]})
    with pytest.raises(ValueError, match=r"The rows to decide about need the column 'sex'.*got the columns: none"):
        parity.predict(X)
    with pytest.raises(ValueError, match=r"The rows to decide about need baseline"):
        fitted(by="baseline", goals=()).decision_proba(X)
    with pytest.raises(ValueError, match=r"The rows of dataset 'mail' hold the group 'sex=X'"):
        parity.rebalance(datasets={"mail": Table(X[:3], None, {"sex": ["F", "M", "X"]})})


def test_models_that_fail_or_answer_oddly_are_named():
    def fails(_):
        raise RuntimeError("no")

    with pytest.raises(ValueError, match=r"Model 1 \('odd'\) failed to predict: RuntimeError: no"):
        fitted([MODEL, ("odd", fails)])
    linear = Perceptron().fit(X[:200], Y[:200])  # has a decision function only
    assert fitted([linear], goals=(), objective="error_rate").gap_ <= 1e-4
