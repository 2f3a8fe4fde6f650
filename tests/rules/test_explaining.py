"""Explanations: what a decision was compared with, and what would change it."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import counterpoise as cp

RNG = np.random.default_rng(0)
N = 400
SEX = RNG.choice(["F", "M"], N)
X = RNG.normal(size=(N, 3))
Y = np.where(X[:, 0] + X[:, 1] + RNG.normal(size=N) > 0.3, "yes", "no")
FRAME = pd.DataFrame(X, columns=["age", "debt", "years"])
KINDS = np.digitize(X[:, 0] + 0.5 * RNG.normal(size=N), [-0.5, 0.5])


def score(rows):
    return 1 / (1 + np.exp(-np.asarray(rows)[:, 0] - np.asarray(rows)[:, 1]))


def at(scores):
    """Return rows with such scores."""
    rows = np.zeros((len(scores), 3))
    rows[:, 0] = np.log(np.asarray(scores) / (1 - np.asarray(scores)))
    return rows


@pytest.mark.parametrize("deferral", [None, cp.Deferral(0.15)], ids=["decides", "defers"])
@pytest.mark.parametrize("pos_label", ["yes", "no"])
@pytest.mark.parametrize("by", ["sex", ()])
def test_the_smallest_change_of_the_score_is_what_changes_the_decision(deferral, pos_label, by):
    sign = 1.0 if pos_label == "yes" else -1.0
    settings = {"goals": ["recall >= 0.9"], "by": by, "deferral": deferral, "pos_label": pos_label}
    model = cp.GoalClassifier(lambda rows: score(sign * np.asarray(rows)), cv="prefit", **settings, confidence=None)
    model.fit(X, Y, sensitive_features={"sex": SEX})
    columns = {"sensitive_features": {"sex": SEX}} if by else {}
    found = model.explain(X, **columns)
    assert [one.decision for one in found] == model.predict(X, **columns).tolist()
    scores = np.array([one.score for one in found])
    np.testing.assert_allclose(scores, score(sign * X))
    changes = np.array([one.change for one in found])
    assert np.isfinite(changes).all()
    near, far = scores + (1 - 1e-6) * changes, scores + changes + 1e-6 * np.sign(changes)
    np.testing.assert_array_equal(model.predict(sign * at(near), **columns), [one.decision for one in found])
    assert (model.predict(sign * at(far), **columns) != [one.decision for one in found]).all()
    assert {one.group for one in found} == ({"sex=F", "sex=M"} if by else {"all"})
    if deferral is None and pos_label == "yes":  # else the goal costs nothing here
        assert all(one.goals["recall >= 0.9"].cost > 0 for one in found)


def test_a_record_can_be_read_and_written():
    model = cp.GoalClassifier(score, cv="prefit", goals=["recall >= 0.8"], by="sex", confidence=None)
    model.fit(X, Y, sensitive_features={"sex": SEX})
    (one,) = model.explain(X[:1], sensitive_features={"sex": SEX[:1]})
    text = str(one)
    assert f"Decision: {one.decision}\nScore {one.score:.4g}, " in text
    assert f"the threshold {one.threshold:.4g} of the group sex={SEX[0]}" in text
    word = "lowers" if one.threshold < 0.5 else "raises"  # without goals the usual threshold stays
    assert f"Goals that set the threshold: recall >= 0.8 {word} it from 0.5 (without it " in text
    higher = f"higher by more than {one.change:.4g}"
    lower = f"lower by {-one.change:.4g} or more"
    assert f"A score that is {lower if one.change < 0 else higher} would change the decision." in text
    again = json.loads(json.dumps(one.as_dict()))
    assert again["score"] == one.score
    assert again["contributions"] is None
    assert again["goals"]["recall >= 0.8"]["threshold"] == 0.5
    assert one == model.explain(X[:1], sensitive_features={"sex": SEX[:1]})[0]


@pytest.mark.parametrize("confidence", [None, 0.6])
def test_every_goal_that_moves_the_rule_is_named_with_the_threshold_without_it(confidence):
    goals = ["recall >= 0.8", "max_difference(positive_rate, by=sex) <= 0.02", "positive_rate <= 0.99"]
    model = cp.GoalClassifier(score, cv="prefit", goals=goals, by="sex", confidence=confidence)
    with warnings.catch_warnings(action="ignore"):
        model.fit(X, Y, sensitive_features={"sex": SEX})
        others = {goal: model.rebalance(goals=[one for one in goals if one != goal]) for goal in goals}
    own, *rest = (one.predict(X, sensitive_features={"sex": SEX}) for one in (model, *others.values()))
    moved = {goal: (other != own).mean() for goal, other in zip(goals, rest, strict=True)}
    for one in model.explain(X[:10], sensitive_features={"sex": SEX[:10]}):
        assert {goal: effect.changed for goal, effect in one.goals.items()} == pytest.approx(
            {goal: share for goal, share in moved.items() if share}
        )
        assert len(one.goals) == 2
        for goal, effect in one.goals.items():
            assert effect.threshold == others[goal].rules_[0].thresholds[one.group]
            word = "raises" if effect.threshold < one.threshold else "lowers"
            assert effect.threshold == one.threshold or f"{goal} {word} it from {effect.threshold:.4g}" in str(one)


def test_of_goals_that_ask_for_the_same_one_is_named():
    goals = ["recall >= 0.8", "false_negative_rate <= 0.2"]
    model = cp.GoalClassifier(score, cv="prefit", goals=goals, confidence=None).fit(X, Y)
    assert list(model.explain(X[:1])[0].goals) == ["false_negative_rate <= 0.2"]


def test_contributions_of_linear_models_add_up_to_their_log_odds():
    model = cp.GoalClassifier(make_pipeline(StandardScaler(), LogisticRegression()), random_state=0).fit(FRAME, Y)
    folds = model.estimators_[0].models
    constant = np.mean([one[-1].intercept_[0] for one in folds])
    for row, one in enumerate(model.explain(FRAME[:5])):
        assert list(one.contributions) == ["age", "debt", "years"]
        assert sum(one.contributions.values()) + constant == pytest.approx(model.decision_function(FRAME)[row])
    first = cp.GoalClassifier(LogisticRegression(), pos_label="no", random_state=0).fit(FRAME, Y)
    second = cp.GoalClassifier(LogisticRegression(), random_state=0).fit(FRAME, Y)
    for one, other in zip(first.explain(FRAME[:5]), second.explain(FRAME[:5]), strict=True):
        assert one.decision == other.decision
        assert {name: -value for name, value in one.contributions.items()} == pytest.approx(other.contributions)


def test_contributions_of_boosted_trees_add_up_to_their_log_odds():
    lightgbm = pytest.importorskip("lightgbm")
    trees = lightgbm.LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1)
    model = cp.GoalClassifier(trees, random_state=0).fit(FRAME, Y)
    folds = model.estimators_[0].models
    constant = np.mean([one.predict(FRAME[:3], pred_contrib=True)[:, -1] for one in folds], axis=0)
    told = [sum(one.contributions.values()) for one in model.explain(FRAME[:3])]
    np.testing.assert_allclose(told + constant, model.decision_function(FRAME[:3]), atol=1e-6)


def test_contributions_of_histogram_gradient_boosting_add_up_and_go_to_the_features_that_decide():
    frame = FRAME.assign(job=pd.Categorical(np.where(X[:, 2] > 0, "clerk", "smith")))[["age", "job", "debt", "years"]]
    frame.loc[::7, "age"] = np.nan
    labels = (frame["job"] == "smith").to_numpy().astype(int)
    model = HistGradientBoostingClassifier(max_iter=8, categorical_features="from_dtype").fit(frame, labels)
    rows = cp.GoalClassifier(model, cv="prefit", confidence=None).fit(frame, labels).explain(frame)
    parts = pd.DataFrame([row.contributions for row in rows])
    assert np.ptp(parts.sum(axis=1) - model.decision_function(frame)) < 1e-9
    sizes = parts.abs().sum()
    assert list(sizes.index) == list(frame)
    assert sizes["job"] > 5 * sizes.drop("job").max()


def test_for_any_other_model_a_function_tells_the_contributions():
    model = cp.GoalClassifier(RandomForestClassifier(5, random_state=0), random_state=0).fit(FRAME, Y)
    assert model.explain(FRAME[:2])[0].contributions is None
    given = model.explain(FRAME[:2], contributions=lambda _, rows: np.asarray(rows) / 2)
    assert given[1].contributions == pytest.approx({name: FRAME.loc[1, name] / 2 for name in FRAME})
    dicts = model.explain(FRAME[:2], contributions=lambda _, rows: [{"why": 1.0}] * len(rows))
    assert dicts[0].contributions == {"why": 1.0}
    with pytest.raises(ValueError, match=r"must return an array of shape \(2, n_features\), or a dict .*\(3,\)"):
        model.explain(FRAME[:2], contributions=lambda *_: np.zeros(3))


@pytest.mark.parametrize("goals", [(), ["recall(of=1) >= 0.7"]], ids=["plain", "goals"])
def test_of_more_classes_the_decision_is_the_largest_weighted_probability(goals):
    model = cp.GoalClassifier(LogisticRegression(), goals=goals, random_state=0, confidence=None).fit(FRAME, KINDS)
    found = model.explain(FRAME)
    assert [one.decision for one in found] == model.predict(FRAME).tolist()
    assert all(one.score >= one.threshold for one in found)
    assert all(one.runner_up != one.decision for one in found)
    assert "; the next class, " in str(found[0])
    if not goals:
        shares = np.sort(model.predict_proba(FRAME), axis=1)
        np.testing.assert_allclose([one.score for one in found], shares[:, -1], atol=1e-12)
        np.testing.assert_allclose([one.threshold for one in found], shares[:, -2], atol=1e-12)


def test_of_drawn_decisions_the_share_and_the_draw_are_told():
    model = cp.GoalClassifier(score, cv="prefit", alpha=0.3, decision="sticky", random_state=0).fit(X, Y)
    shares = model.decision_proba(X)
    for row, one in enumerate(model.explain(X)):
        assert one.decision == model.predict(X[row : row + 1])[0]
        assert one.share == shares[row, int(one.decision == "yes")]
        assert "the same every time" in one.draw
    pool = [LogisticRegression(C=c).fit(X[:200], Y[:200]) for c in (1e-3, 1.0)]
    mixed = cp.MixtureClassifier(pool, alpha=0.3, random_state=0).fit(X[200:], Y[200:]).explain(X[:3])
    assert all(np.isnan(one.score) and 0 < one.share <= 1 for one in mixed)


def test_a_deferred_row_of_several_classes_has_no_contributions():
    X, y = make_classification(600, 6, n_informative=4, n_classes=3, n_clusters_per_class=1, flip_y=0.2, random_state=0)
    model = cp.GoalClassifier(LogisticRegression(), deferral=cp.Deferral(0.2, "person"), random_state=0)
    records = model.fit(X, y.astype(str)).explain(X)
    deferred = [record for record in records if record.decision == "person"]
    assert 0 < len(deferred) < len(records)
    assert all((record.contributions is None) == (record.decision == "person") for record in records)
