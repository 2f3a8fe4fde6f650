"""Principal reasons of a batch: against contributions that were counted by hand."""

import csv
import io
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import counterpoise as cp

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.standard_normal((400, 4)), columns=["a", "b", "c", "d"])
SEX = RNG.choice(["F", "M"], 400)
Y = (X["a"] - 0.5 * X["b"] + 0.2 * RNG.standard_normal(400) > 0).astype(int)


@pytest.fixture(scope="module")
def model():
    return cp.GoalClassifier(LogisticRegression(), random_state=0).fit(X, Y)


def test_reasons_of_a_linear_model_are_those_counted_by_hand(model):
    found = cp.principal_reasons(model.explain(X), {"sex": SEX}, n_reasons=2)
    coefficients = np.mean([one.coef_[0] for one in getattr(model.estimators_[0], "models", [model.estimators_[0]])], 0)
    changes = (X - X.mean()).to_numpy() * coefficients
    refused = model.predict(X) == 0
    assert [group.group for group in found.groups] == ["everybody", "sex=F", "sex=M"]
    for group, rows in zip(found.groups, [np.ones(400, bool), SEX == "F", SEX == "M"], strict=True):
        counts, firsts = Counter(), Counter()
        for row in changes[rows & refused]:
            falling = [place for place in np.argsort(row) if row[place] < 0]
            counts.update(X.columns[falling[:2]])
            firsts.update(X.columns[falling[:1]])
        assert (group.rows, group.adverse) == (rows.sum(), (rows & refused).sum())
        assert {one.feature: one.decisions for one in group.reasons} == counts
        assert {one.feature: one.first for one in group.reasons if one.first} == firsts
        assert [one.decisions for one in group.reasons] == sorted(counts.values(), reverse=True)
        gaps = np.array([-one.distance for one in model.explain(X)])[rows & refused]
        assert group.distance == pytest.approx((gaps.min(), np.median(gaps), gaps.max()))


@pytest.mark.slow
def test_differences_from_the_average_add_up_for_trees():
    lightgbm = pytest.importorskip("lightgbm", reason="needs lightgbm")
    trees = cp.GoalClassifier(lightgbm.LGBMClassifier(n_estimators=5, verbose=-1), cv=2, random_state=0).fit(X, Y)
    records = trees.explain(X)
    found = cp.principal_reasons(records, n_reasons=4).groups[0]
    values = pd.DataFrame([one.contributions for one in records])
    changes = (values - values.mean())[trees.predict(X) == 0]
    below = changes.where(changes < -1e-9)
    assert {one.feature: one.decisions for one in found.reasons} == below.count()[below.count() > 0].to_dict()
    expected = below.mean()
    assert all(one.change == pytest.approx(expected[one.feature]) for one in found.reasons)


def test_where_the_positive_decision_is_adverse_reasons_are_what_raised_the_score(model):
    records = model.explain(X)
    turned = [replace(one, contributions={k: -v for k, v in one.contributions.items()}) for one in records]
    turned = [replace(one, score=-one.score, threshold=-one.threshold) for one in turned]
    found, mirror = cp.principal_reasons(records, adverse=1), cp.principal_reasons(turned)
    assert found.groups[0].adverse == model.predict(X).sum()
    assert found.groups[0].distance == pytest.approx(mirror.groups[0].distance)
    assert [one[:4] for one in found.groups[0].reasons] == [one[:4] for one in mirror.groups[0].reasons]
    assert all(one.change > 0 for one in found.groups[0].reasons)
    assert "added more to the score" in str(found)


def test_of_other_models_a_sentence_says_that_there_are_none():
    forest = cp.GoalClassifier(RandomForestClassifier(5, random_state=0), cv=2, random_state=0).fit(X, Y)
    found = cp.principal_reasons(forest.explain(X))
    assert found.groups[0].reasons == ()
    assert "The only reason is the rule" in str(found)
    assert f"everybody: {(forest.predict(X) == 0).sum()} of 400 decided 0; scores are" in str(found)


def test_features_without_a_part_in_the_difference_are_no_reasons(model):
    records = [replace(one, contributions={"same": 0.1, "other": 0.2}) for one in model.explain(X)]
    assert cp.principal_reasons(records).groups[0].reasons == ()


def test_nobody_refused_and_groups_without_decisions_are_shown(model):
    records = model.explain(X)
    taken = [one for one in records if one.decision == 1]
    found = cp.principal_reasons(taken, ["x"] * (len(taken) - 1) + [None])
    assert [(group.adverse, group.reasons) for group in found.groups] == [(0, ())] * 3
    assert "group=(missing): 0 of 1 with an adverse decision" in str(found)


def test_deferred_rows_are_no_decisions():
    model = cp.GoalClassifier(LogisticRegression(), deferral=cp.Deferral(0.1), random_state=0).fit(X, Y)
    decisions = model.predict(X)
    found = cp.principal_reasons(model.explain(X)).groups[0]
    with pytest.raises(ValueError, match="leaves it to a person"):
        cp.principal_reasons(model.explain(X), adverse="defer")
    assert found.adverse == sum(one == 0 for one in decisions.tolist())


def test_rows_of_a_table_are_those_of_the_reasons(model):
    found = cp.principal_reasons(model.explain(X), SEX)
    rows = list(csv.DictReader(io.StringIO(found.as_csv())))
    assert [(row["group"], row["reason"], int(row["decisions"])) for row in rows] == [
        (group.group, one.feature, one.decisions) for group in found.groups for one in group.reasons
    ]
    assert [one["adverse"] for one in found.as_dict()["groups"]] == [one.adverse for one in found.groups]


def test_what_has_no_reasons_is_refused(model):
    records = model.explain(X[:3])
    with pytest.raises(ValueError, match="at least one row; got none"):
        cp.principal_reasons([])
    with pytest.raises(ValueError, match="one row for each of the 3 explanations; got 2"):
        cp.principal_reasons(records, ["F", "M"])
    with pytest.raises(ValueError, match=r"adverse must be one of the decisions \d, \d; got 'no'"):
        cp.principal_reasons(records, adverse="no")
    with pytest.raises(ValueError, match="contributions must be finite everywhere; got NaN"):
        cp.principal_reasons(replace(one, contributions={"a": np.nan}) for one in records)
    with pytest.raises(ValueError, match="n_reasons must"):
        cp.principal_reasons(records, n_reasons=0)
    drawn = cp.GoalClassifier(LogisticRegression(), decision="sticky", alpha=0.3, random_state=0).fit(X, Y)
    if len(drawn.rules_) > 1:
        with pytest.raises(ValueError, match="decisions of two classes by thresholds of one score"):
            cp.principal_reasons(drawn.explain(X))
