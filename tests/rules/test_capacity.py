"""Capacity: ``predict(X, top=...)`` selects exactly so many rows, with the quotas of groups that goals ask for."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from counterpoise import Deferral, GoalClassifier, Groups, MixtureClassifier
from counterpoise.goals import InfeasibleGoals
from tests.tiers import some_fast


class FirstColumn:
    """A fitted model whose score is the first feature."""

    classes_ = np.array([0, 1])

    def predict(self, X):
        return (np.asarray(X)[:, 0] > 0.5).astype(int)

    def predict_proba(self, X):
        score = np.asarray(X)[:, 0].astype(float)
        return np.column_stack([1 - score, score])


def people(n_rows, seed=0, *, shift=1.0, odds=-1.0):
    """Return rows whose first feature is their probability, labels and sexes."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n_rows, p=[0.4, 0.6])
    chance = 1 / (1 + np.exp(-(1.5 * rng.normal(size=n_rows) + odds + shift * (sex == "M"))))
    y = (rng.random(n_rows) < chance).astype(int)
    return np.column_stack([chance, rng.normal(size=n_rows)]), y, {"sex": sex}


PARITY = "max_difference(selection_rate, by=sex) <= 0.05"


def fitted(goals=(PARITY,), by="sex", **parameters):
    """Return a classifier by the first feature that was fitted on 2,000 people."""
    X, y, columns = people(2000)
    parameters = {"confidence": None, "random_state": 0, **parameters}
    model = GoalClassifier(FirstColumn(), goals=list(goals), by=by, cv="prefit", **parameters)
    return model.fit(X, y, sensitive_features=columns)


# A brute force over quotas: rates of selecting a part of each group by score, counted row by row.


def selected_parts(scores, share):
    """Return which part of each row is selected where a share of all rows is; equal scores share what is left."""
    parts, left = np.zeros(scores.size), share * scores.size
    for level in np.unique(scores)[::-1]:
        tied = np.flatnonzero(scores == level)
        parts[tied] = min(max(left / tied.size, 0.0), 1.0)
        left -= tied.size
    return parts


class BruteForce:
    """Selection rows of two groups, and what any quotas come to on them."""

    def __init__(self, scores, y, is_first, n_batch):
        self.groups = [(scores[own], y[own]) for own in (is_first, ~is_first)]
        self.n_batch = n_batch

    def rates(self, amounts):
        """Return by name the rates of each group, and of all with the batch's shares of groups."""
        rates, total = {}, sum(self.n_batch)
        sums = {"tp": 0.0, "positive": 0.0, "selected": 0.0, "wrong": 0.0}
        for name, (scores, y), amount, n_rows in zip("FM", self.groups, amounts, self.n_batch, strict=True):
            parts = selected_parts(scores, amount / n_rows)
            rates["selection", name] = parts.mean()
            rates["recall", name] = parts[y == 1].mean()
            rates["fpr", name] = parts[y == 0].mean()
            weight = n_rows / total / y.size
            sums["tp"] += weight * parts[y == 1].sum()
            sums["positive"] += weight * y.sum()
            sums["selected"] += weight * parts.sum()
            sums["wrong"] += weight * np.abs(parts - y).sum()
        rates["recall"], rates["error"] = sums["tp"] / sums["positive"], sums["wrong"]
        rates["precision margin"] = sums["tp"] - 0.5 * sums["selected"]
        return rates


GOALS = {  # each with what must be at least 0
    "max_difference(selection_rate, by=sex) <= 0.1": lambda r: 0.1 - abs(r["selection", "F"] - r["selection", "M"]),
    "max_difference(recall, by=sex) <= 0.15": lambda r: 0.15 - abs(r["recall", "F"] - r["recall", "M"]),
    "recall(sex=F) >= 0.6": lambda r: r["recall", "F"] - 0.6,
    "false_positive_rate(sex=M) <= 0.3": lambda r: 0.3 - r["fpr", "M"],
    "min_ratio(selection_rate, by=sex) >= 0.8": lambda r: min(
        r["selection", "F"] - 0.8 * r["selection", "M"], r["selection", "M"] - 0.8 * r["selection", "F"]
    ),
    "recall >= 0.5": lambda r: r["recall"] - 0.5,
    "precision >= 0.5": lambda r: r["precision margin"],
}


def small_problem(seed):
    """Return a classifier and some goals, its selection rows, a batch, its number and a brute force."""
    rng = np.random.default_rng(seed)
    n_rows, n_batch = int(rng.integers(24, 60)), int(rng.integers(10, 50))
    sex = np.array(["F", "M"])[np.append([0, 0, 1, 1], rng.integers(0, 2, n_rows - 4))]
    y = np.append([0, 1, 0, 1], rng.integers(0, 2, n_rows - 4))
    scores = np.clip(0.5 + 0.25 * (y - 0.5) + 0.2 * rng.normal(size=n_rows), 0.01, 0.99)
    scores = np.round(scores, 1) if seed % 3 == 0 else scores  # with many ties
    names = list(rng.choice(list(GOALS), int(rng.integers(1, 4)), replace=False))
    model = GoalClassifier(FirstColumn(), goals=names, by=Groups("sex", min_rows=1), cv="prefit", confidence=None)
    rows = (np.column_stack([scores, np.arange(n_rows)]), y, {"sex": sex})
    is_first = np.append([1, 0], rng.random(n_batch - 2) < rng.uniform(0.2, 0.8)).astype(bool)
    batch = (np.column_stack([rng.random(n_batch), np.arange(n_batch)]), {"sex": np.where(is_first, "F", "M")})
    force = BruteForce(scores, y, sex == "F", (int(is_first.sum()), int((~is_first).sum())))
    return model, names, rows, batch, int(rng.integers(0, n_batch + 1)), force


@pytest.mark.parametrize("first", some_fast(range(0, 40, 8)))
def test_quotas_are_those_of_a_brute_force(first):
    n_compared = 0
    for seed in range(first, first + 8):
        model, names, (X, y, columns), (batch, sexes), top, force = small_problem(seed)
        try:
            model.fit(X, y, sensitive_features=columns)
        except InfeasibleGoals:
            continue  # no thresholds meet the goals

        def slack_and_error(amount, names=names, force=force, top=top):
            rates = force.rates((amount, top - amount))
            return min(GOALS[name](rates) for name in names), rates["error"]

        low, high = max(0, top - force.n_batch[1]), min(top, force.n_batch[0])
        tried = [slack_and_error(amount) for amount in np.linspace(low, high, 401)]
        best = min((error for slack, error in tried if slack >= -1e-9), default=None)
        try:
            decisions = model.predict(batch, sensitive_features=sexes, top=top)
        except InfeasibleGoals as error:
            decisions, nearest = None, error.nearest_top
        if decisions is None:
            assert best is None, seed
            assert nearest != top
            assert nearest is None or model.predict(batch, sensitive_features=sexes, top=nearest).sum() == nearest
            continue
        assert decisions.sum() == top
        n_compared += best is not None
        quota = int(decisions[sexes["sex"] == "F"].sum())
        near = [slack_and_error(amount) for amount in np.linspace(max(low, quota - 1), min(high, quota + 1), 401)]
        # whole rows are a rounding of the best quotas, which the steps of 0.005 rows miss by little
        assert any(slack >= -3e-3 and (best is None or error <= best + 3e-3) for slack, error in near), seed
        for sex in "FM":
            chosen, scores = decisions[sexes["sex"] == sex] == 1, batch[sexes["sex"] == sex, 0]
            assert not 0 < chosen.sum() < chosen.size or scores[chosen].min() > scores[~chosen].max()
    assert n_compared


@pytest.mark.parametrize("top", [0, 1, 17, 400, 1000])
def test_exactly_so_many_rows_with_group_shares_inside_the_goals(top):
    model = fitted()
    X, _, columns = people(1000, 1)
    decisions = model.predict(X, sensitive_features=columns, top=top)
    assert decisions.sum() == top
    rates = [decisions[columns["sex"] == sex].mean() for sex in "FM"]
    assert abs(rates[0] - rates[1]) <= 0.05 + 2 / 350  # a row of each group is rounding


def test_without_groups_the_highest_scores_are_selected():
    model, (X, _, _) = fitted(["recall >= 0.2"], by=()), people(1000, 1)
    decisions = model.predict(X, top=300)
    assert decisions.sum() == 300
    assert X[decisions == 1, 0].min() > X[decisions == 0, 0].max()


def test_permuting_the_batch_permutes_the_decisions():
    model, (X, _, columns) = fitted(), people(1000, 1)
    X[:, 0] = np.round(X[:, 0], 1)  # ties
    order = np.random.default_rng(3).permutation(1000)
    for beside in ({}, {"ids": np.arange(1000) + 5}):
        decisions = model.predict(X, sensitive_features=columns, top=250, **beside)
        mixed = {name: values[order] for name, values in beside.items()}
        sexes = {"sex": columns["sex"][order]}
        assert np.array_equal(model.predict(X[order], sensitive_features=sexes, top=250, **mixed), decisions[order])
        assert decisions.sum() == 250


def test_ties_are_broken_by_ids_under_a_key():
    X = np.column_stack([np.full(100, 0.3), np.zeros(100)])
    columns, ids = {"sex": np.repeat(["F", "M"], 50)}, [f"person {number}" for number in range(100)]
    model, other = fitted(), fitted(random_state=1)
    decisions = model.predict(X, sensitive_features=columns, ids=ids, top=40)
    assert decisions.sum() == 40
    assert not np.array_equal(decisions, other.predict(X, sensitive_features=columns, ids=ids, top=40))  # another key
    assert not np.array_equal(np.sort(decisions[:50])[::-1], decisions[:50])  # not in the order of rows
    frame = pd.Series(ids)
    assert np.array_equal(model.predict(X, sensitive_features=columns, ids=frame, top=40), decisions)


def test_group_shares_follow_the_batch():
    model = fitted(["recall(sex=F) >= 0.5", "false_positive_rate(sex=M) <= 0.3"])
    X, _, columns = people(3000, 1)
    some = np.flatnonzero(columns["sex"] == "M")[:600]
    some = np.sort(np.append(some, np.flatnonzero(columns["sex"] == "F")[:60]))
    sexes = {"sex": columns["sex"][some]}
    assert model.predict(X[some], sensitive_features=sexes, top=200).sum() == 200


def test_unknown_groups_are_pooled_or_refused_as_in_predict():
    X, _, columns = people(1000, 1)
    sex = np.where(np.arange(1000) % 5 == 0, "X", columns["sex"])
    with pytest.raises(ValueError, match="hold the group 'sex=X', which has no threshold of its own"):
        fitted().predict(X, sensitive_features={"sex": sex}, top=10)
    model = fitted(by=Groups("sex", unknown="pool"))
    for top in (0, 10, 300, 1000):
        decisions = model.predict(X, sensitive_features={"sex": sex}, top=top)
        assert decisions.sum() == top
    decisions = model.predict(X, sensitive_features={"sex": sex}, top=300)
    assert 0.15 < decisions[sex == "X"].mean() < 0.45


def test_margins_do_not_count_and_the_model_that_decides_orders():
    X, y, columns = people(2000)
    models = [LogisticRegression().fit(X, y), FirstColumn()]
    model = GoalClassifier(models, goals=[PARITY], by="sex", cv="prefit", confidence=0.9, random_state=0)
    model.fit(X, y, sensitive_features=columns)
    plain = model.rebalance(confidence=None)
    batch, _, others = people(500, 1)
    decisions = model.predict(batch, sensitive_features=others, top=100)
    assert decisions.sum() == 100
    if model.rules_[0].model == plain.rules_[0].model:
        assert np.array_equal(decisions, plain.predict(batch, sensitive_features=others, top=100))
    scores = models[model.rules_[0].model].predict_proba(batch)[:, 1]
    for sex in "FM":
        own = others["sex"] == sex
        assert scores[own & (decisions == 1)].min() > scores[own & (decisions == 0)].max()


def test_labels_are_those_of_the_classes_and_the_positive_one_is_selected():
    X, y, columns = people(2000)
    labels = np.where(y == 1, "bad", "good")
    model = GoalClassifier(LogisticRegression(), goals=[PARITY], by="sex", pos_label="bad", cv=3, random_state=0)
    model.fit(X, labels, sensitive_features=columns)
    decisions = model.predict(X, sensitive_features=columns, top=70)
    assert (decisions == "bad").sum() == 70
    assert X[decisions == "bad", 0].mean() > 0.7


# Refusals.


def test_goals_that_fix_the_selection_rate_name_the_nearest_number():
    model, (X, _, columns) = fitted(["selection_rate <= 0.2", PARITY]), people(1000, 1)
    assert model.predict(X, sensitive_features=columns, top=200).sum() == 200
    with pytest.raises(
        InfeasibleGoals,
        match=re.escape(
            "No choice of 300 of the 1000 rows meets positive_rate <= 0.2. The least total violation is 0.1. The "
            "nearest number of rows that meets all goals: top=200."
        ),
    ) as refusal:
        model.predict(X, sensitive_features=columns, top=300)
    assert refusal.value.nearest_top == 200
    assert refusal.value.as_dict()["nearest_top"] == 200


@pytest.mark.parametrize(
    ("top", "error", "words"),
    [
        (
            1001,
            ValueError,
            "top must be at most the number of rows, 1000; got 1001. Pass a lower number, or more rows.",
        ),
        (-1, ValueError, "top must be at least 0; got -1."),
        (2.5, TypeError, "top must be a whole number of at least 0; got 2.5."),
        (True, TypeError, "top must be a whole number of at least 0; got True."),
        ("many", TypeError, "top must be a whole number of at least 0; got 'many'."),
    ],
)
def test_a_top_that_is_no_number_of_rows_is_refused(top, error, words):
    model, (X, _, columns) = fitted(), people(1000, 1)
    with pytest.raises(error, match=re.escape(words)):
        model.predict(X, sensitive_features=columns, top=top)


@pytest.mark.filterwarnings("ignore::counterpoise.rules.draws.SharedDraws")
def test_rows_that_nothing_tells_apart_are_refused():
    model, (X, _, columns) = fitted(), people(1000, 1)
    X[:] = [0.3, 1.0]
    with pytest.raises(ValueError, match="have the same score and the same features up to rounding, and top"):
        model.predict(X, sensitive_features=columns, top=10)
    with pytest.raises(ValueError, match=r"have the same score and the same id, .* Pass ids that differ"):
        model.predict(X, sensitive_features=columns, top=10, ids=np.zeros(1000))
    assert model.predict(X, sensitive_features=columns, top=1000).all()  # all of them are selected


@pytest.mark.slow
def test_classifiers_that_have_no_single_order_are_refused():
    X, y, columns = people(1000)
    deferring = fitted(deferral=Deferral(0.2))
    with pytest.raises(ValueError, match=r"this classifier defers some. Call rebalance\(deferral='never'\) first"):
        deferring.predict(X, sensitive_features=columns, top=10)
    drawn = fitted(["recall >= 0.6"], decision="sticky", alpha=0.2, by=(), confidence=None)
    assert np.count_nonzero(drawn.mixture_) > 1
    with pytest.raises(ValueError, match=r"draws one of \d+ rules for each row. Call rebalance\(decision='fixed'\)"):
        drawn.predict(X, top=10)
    assert drawn.rebalance(decision="fixed", alpha=1.0).predict(X, top=500).sum() == 500
    mixture = MixtureClassifier([FirstColumn(), LogisticRegression().fit(X, y)], random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="this MixtureClassifier mixes predictions, which have no order"):
        mixture.predict(X, top=10)
    flowers, kinds = load_iris(return_X_y=True)
    many = GoalClassifier(LogisticRegression(max_iter=1000), cv=3, random_state=0).fit(flowers, kinds)
    with pytest.raises(ValueError, match=r"top is for two classes, .* has 3: \[0, 1, 2\]"):
        many.predict(flowers, top=10)


def test_a_total_is_about_the_rows_of_fit_and_no_goal_for_a_batch():
    X, y, columns = people(1000)
    columns = columns | {"amount": np.ones(1000)}
    model = GoalClassifier(FirstColumn(), cv="prefit", goals=["total(value=amount) <= 400"])
    model.fit(X, y, sensitive_features=columns)
    with pytest.raises(ValueError, match=r"top cannot keep the goal total\(value=amount\) <= 400: a total is about"):
        model.predict(X, top=10)
    assert model.rebalance(goals=()).predict(X, top=10).sum() == 10
