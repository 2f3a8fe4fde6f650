"""Searches over hyperparameters by the cost inside goals, beside thresholds that are tried one by one."""

import pickle
from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterpoise as cp
from counterpoise.goals import InfeasibleGoals

MODEL = make_pipeline(StandardScaler(), LogisticRegression())
FOLDS = [(np.arange(0, 120), np.arange(120, 180)), (np.arange(60, 180), np.arange(0, 60))]
PARITY = "positive_rate(sex=F) >= 0.9 * positive_rate(sex=M)"


def make_rows(seed=0, n=180):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"), index=rng.permutation(n) + 1000)
    sex = pd.DataFrame({"sex": np.where(rng.random(n) < 0.5, "F", "M")}, index=X.index)
    y = (X["a"] + 0.7 * (sex["sex"] == "M") + rng.normal(size=n) > 0.4).astype(int)
    return X, y, sex


X, Y, SEX = make_rows()


def best_by_hand(cost, is_allowed, by_sex):
    """Return the least cost on the test rows of each fold, of all thresholds that are allowed; infinite of none."""
    best = []
    for trained, tested in FOLDS:
        scores = MODEL.fit(X.iloc[trained], Y.iloc[trained]).predict_proba(X.iloc[tested])[:, 1]
        y, is_f = Y.iloc[tested].to_numpy(), SEX.iloc[tested, 0].to_numpy() == "F"
        cuts = [np.append(np.unique(scores[rows]), 2.0) for rows in (is_f, ~is_f)]
        pairs = product(*cuts) if by_sex else zip(*[np.append(np.unique(scores), 2.0)] * 2, strict=True)
        tried = (scores >= np.where(is_f, *pair) for pair in pairs)
        best.append(min((cost(one, y) for one in tried if is_allowed(one, y, is_f)), default=np.inf))
    return best


def errors(decided, y):
    return np.mean(decided != y)


def false_positives(decided, y):
    return decided[y == 0].mean()


def f1(decided, y):
    return -2 * (decided & (y == 1)).sum() / (decided.sum() + y.sum())


def has_recall(decided, y, is_f):  # noqa: ARG001 - as the others
    return decided[y == 1].mean() >= 0.8


def has_parity(decided, y, is_f):  # noqa: ARG001 - as above
    return decided[is_f].mean() >= 0.9 * decided[~is_f].mean() - 1e-12


def has_both(decided, y, is_f):
    return has_recall(decided, y, is_f) and has_parity(decided, y, is_f)


@pytest.mark.parametrize(
    ("goals", "is_allowed", "objective", "cost", "by"),
    [
        ("recall >= 0.8", has_recall, None, errors, ()),
        ("recall >= 0.8", has_recall, "false_positive_rate", false_positives, ()),
        (PARITY, has_parity, "f1_score", f1, ()),
        ([PARITY, "recall >= 0.8"], has_both, None, errors, "sex"),
    ],
)
def test_a_plain_model_scores_by_the_least_cost_of_the_thresholds_that_meet_the_goals(
    goals, is_allowed, objective, cost, by
):
    scorer = cp.goal_scorer(goals, objective=objective, by=by, sensitive_features=SEX)
    scorer = pickle.loads(pickle.dumps(scorer))  # noqa: S301 - as processes of a search do
    found = cross_val_score(MODEL, X, Y, scoring=scorer, cv=FOLDS, error_score="raise")
    assert_allclose(found, [-one for one in best_by_hand(cost, is_allowed, by_sex=bool(by))], rtol=1e-9)


def test_columns_are_found_by_index_by_routing_or_in_x():
    by_index = cross_val_score(MODEL, X, Y, scoring=cp.goal_scorer(PARITY, sensitive_features=SEX), cv=FOLDS)
    numbers = X.assign(sex=np.where(SEX["sex"] == "F", 0.0, 1.0))
    in_x = make_pipeline(StandardScaler().set_output(transform="pandas"), LogisticRegression(C=1e-3))
    goal = "positive_rate(sex=0) >= 0.9 * positive_rate(sex=1)"
    from_x = cross_val_score(in_x, numbers, Y, scoring=cp.goal_scorer(goal), cv=FOLDS, error_score="raise")
    renamed = cp.goal_scorer(goal, sensitive_features=numbers[["sex"]])
    assert_allclose(from_x, cross_val_score(in_x, numbers, Y, scoring=renamed, cv=FOLDS))
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(MODEL, {"logisticregression__C": [1.0]}, scoring=cp.goal_scorer(PARITY), cv=FOLDS)
        search.fit(X.to_numpy(), Y, sensitive_features=SEX)
        weighted = cp.goal_scorer(PARITY, sensitive_features=SEX).set_score_request(sample_weight="w")
        doubled = {"w": np.full(len(Y), 2.0)}
        same = cross_val_score(MODEL, X, Y, scoring=weighted, cv=FOLDS, params=doubled)
    assert_allclose([search.cv_results_[f"split{fold}_test_score"][0] for fold in range(2)], by_index)
    assert_allclose(same, by_index)


def test_weights_of_test_rows_count():
    doubled, weights = np.r_[0:60, 0:20], np.where(np.arange(60) < 20, 2.0, 1.0)
    model, scorer = MODEL.fit(X, Y), cp.goal_scorer("recall >= 0.8")
    repeated = scorer(model, X.iloc[doubled], Y.iloc[doubled])
    assert scorer(model, X.iloc[:60], Y.iloc[:60], weights) == pytest.approx(repeated)


IMPOSSIBLE = ["recall >= 0.99", "positive_rate <= 0.1"]


@pytest.mark.parametrize("model", [MODEL, cp.GoalClassifier(MODEL, goals=IMPOSSIBLE, cv=2, random_state=0)])
def test_goals_that_cannot_be_met_follow_error_score(model):
    scorer = cp.goal_scorer(IMPOSSIBLE)
    with pytest.raises(InfeasibleGoals, match=r"recall >= 0\.99"):
        cross_val_score(model, X, Y, scoring=scorer, cv=FOLDS[:1], error_score="raise")
    if model is MODEL:  # of models that cannot be fitted scikit-learn tells whether all of them fail
        with pytest.warns(UserWarning, match="InfeasibleGoals"):
            found = cross_val_score(model, X, Y, scoring=scorer, cv=FOLDS, error_score=-1.0)
        assert found.tolist() == [-1.0, -1.0]


def test_a_classifier_that_chooses_its_rules_scores_by_its_decisions():
    inside = make_pipeline(StandardScaler(), cp.GoalClassifier(LogisticRegression(), goals="recall >= 0.7", cv=3))
    inside.set_params(goalclassifier__random_state=0)
    scoring = {"cost": cp.goal_scorer(), "auc": "roc_auc", "fpr": cp.goal_scorer(objective="false_positive_rate")}
    found = cross_validate(inside, X, Y, scoring=scoring, cv=FOLDS, return_estimator=True, error_score="raise")
    decided = [model.predict(X.iloc[rows]) for model, (_, rows) in zip(found["estimator"], FOLDS, strict=True)]
    labels = [Y.iloc[rows].to_numpy() for _, rows in FOLDS]
    assert_allclose(found["test_cost"], [-errors(*pair) for pair in zip(decided, labels, strict=True)])
    assert_allclose(found["test_fpr"], [-false_positives(*pair) for pair in zip(decided, labels, strict=True)])
    with pytest.raises(
        ValueError, match=r"decisions of GoalClassifier fail positive_rate <= 0.05 on the 180 test rows"
    ):
        cp.goal_scorer("positive_rate <= 0.05")(found["estimator"][0], X, Y)


@pytest.mark.parametrize(
    "settings",
    [
        {"objective": "f1_score"},
        {"objective": cp.risks.WorstGroup("sex"), "by": "sex"},
        {"deferral": cp.Deferral(0.2)},
        {"alpha": 0.3, "decision": "sticky"},
    ],
)
def test_the_objective_of_decisions_is_the_value_on_the_rows_where_they_were_chosen(settings):
    model = cp.GoalClassifier(MODEL.fit(X, Y), cv="prefit", goals="recall >= 0.7", confidence=None, **settings)
    model.set_params(random_state=0).fit(X, Y, sensitive_features=SEX)
    assert model.objective_value(X, Y, sensitive_features=SEX) == pytest.approx(model.value_)


def test_what_cannot_be_matched_is_refused():
    with pytest.raises(ValueError, match=r"must be a pandas object with a unique index.*got dict"):
        cp.goal_scorer(PARITY, sensitive_features={"sex": ["F"]})
    scorer = cp.goal_scorer(PARITY, sensitive_features=SEX.iloc[1:])
    with pytest.raises(ValueError, match=f"lacks 1 rows of X; the first has the index {SEX.index[0]}"):
        scorer(MODEL, X, Y)
    with pytest.raises(ValueError, match=r"X must be a pandas data frame; got ndarray"):
        scorer(MODEL, X.to_numpy(), Y)
    with pytest.raises(ValueError, match="recal"):
        cp.goal_scorer("recal >= 0.8")
