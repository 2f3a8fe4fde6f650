"""Goals on groups of which probabilities are known: against sums by hand, and on populations whose groups are known."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import counterpoise as cp
from counterpoise.goals import Table, parse_goal, proxy_goals
from counterpoise.goals.proxies import ProxyAssumption, weighted_goals

PROXIES = {"race": {"a": "p_a", "b": "p_b", "other": "p_o"}}


def draw(rng, n_rows, *, effect=0.0):
    """Return chances of groups, groups, labels and decisions; these depend on the group itself by an effect."""
    chances = rng.dirichlet([1.0, 1.0, 0.5], n_rows)
    group = (rng.random((n_rows, 1)) > chances.cumsum(axis=1)).sum(axis=1)
    label = rng.random(n_rows) < 0.2 + 0.5 * chances[:, 0]
    decision = rng.random(n_rows) < 0.3 + 0.4 * chances[:, 1] * label + effect * (group == 0)
    columns = dict(zip(PROXIES["race"].values(), chances.T, strict=True))
    return columns, group, label.astype(int), decision.astype(int)


def weighted(goals, columns):
    with pytest.warns(ProxyAssumption, match="only if, given what the probabilities were computed from"):
        return proxy_goals(goals, PROXIES, columns)


def test_rates_are_the_weighted_ones():
    columns, _, label, decision = draw(np.random.default_rng(0), 500)
    table = Table(None, label, columns)
    for text, counted, out_of in [
        ("positive_rate(race=a) <= 1", decision == 1, np.ones(500)),
        ("recall(race=b) <= 1", (decision == 1) & (label == 1), label == 1),
        ("precision(race=other) <= 1", (decision == 1) & (label == 1), decision == 1),
        ("false_positive_rate(race=a) <= 1", (decision == 1) & (label == 0), label == 0),
    ]:
        (goal,) = weighted(text, columns)
        weights = columns[PROXIES["race"][parse_goal(text).left.members()[0].__str__().split("race=")[1][:-1]]]
        expected = (weights * counted).sum() / (weights * out_of).sum()
        assert goal.left.value(decision, table) == pytest.approx(expected)


PHRASES = {
    "max_difference(positive_rate, by=race) <= 0.1": 6,
    "min_ratio(positive_rate, by=race) >= 0.8": 6,
    "every_group(recall, by=race) >= 0.3": 3,
    "equal(recall(race=a), 0.5)": 1,
    "abs(recall(race=a) - recall(race=b)) <= 0.1": 1,
    "positive_rate(race=a, job=x) <= 0.5": 1,
    "recall >= 0.5": 1,
}


@pytest.mark.parametrize(("text", "number"), PHRASES.items(), ids=PHRASES)
def test_phrases_become_a_goal_for_each_pair(text, number):
    goal = cp.goals.equal(parse_goal("recall(race=a) <= 1").left, 0.5) if text.startswith("equal") else text
    found = weighted_goals(cp.goals.as_goals(goal), PROXIES)
    assert len(found) == number
    assert not any("race" in str(one) for one in found)
    assert all(parse_goal(str(one)) == one for one in found)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["positive_rate(race=a) <= {}", "recall(race=b) - recall(race=a) <= {}"])
def test_audits_are_right_where_decisions_depend_on_the_inputs_alone_and_wrong_elsewhere(text):
    columns, group, label, decision = draw(np.random.default_rng(1), 400_000)
    groups = {"race": np.array(["a", "b", "other"])[group]}

    def truth(columns, groups, label, decision):  # noqa: ARG001 - as they are drawn
        rate = parse_goal(text.format(0.5)).left
        return rate.value(decision, Table(None, label, groups))

    true = truth(columns, groups, label, decision)
    (goal,) = weighted(text.format(0.5), columns)
    assert goal.left.value(decision, Table(None, label, columns)) == pytest.approx(true, abs=0.01)
    misses = 0
    for seed in range(40):
        columns, _, label, decision = draw(np.random.default_rng(seed), 600)
        (row,) = cp.audit(goal, decision, label, sensitive_features=columns, largest_value=1, confidence=0.9)
        misses += not row.low <= true <= row.high
    assert misses <= 8  # each end fails in a tenth at most
    columns, group, label, decision = draw(np.random.default_rng(2), 100_000, effect=0.3)
    groups = {"race": np.array(["a", "b", "other"])[group]}
    own = truth(columns, groups, label, decision)
    assert abs(goal.left.value(decision, Table(None, label, columns)) - own) > 0.05


def test_rules_are_chosen_inside_such_goals():
    rng = np.random.default_rng(3)
    columns, *_, label, _ = draw(rng, 3000)
    X = np.column_stack([label + rng.standard_normal(3000), columns["p_a"]])
    goals = weighted("max_difference(positive_rate, by=race) <= 0.1", columns)
    model = cp.GoalClassifier(LogisticRegression(), goals=goals, confidence=None, random_state=0)
    plain = cp.GoalClassifier(LogisticRegression(), confidence=None, random_state=0).fit(X, label)
    model.fit(X, label, sensitive_features=pd.DataFrame(columns))
    table = Table(X, label, columns)
    gaps = [max(goal.left.value(one.predict(X), table) for goal in goals) for one in (plain, model)]
    assert gaps[0] > 0.2
    assert gaps[1] <= 0.12


REFUSED = {
    "sum": ({"p_a": [0.5, 0.5], "p_b": [0.5, 0.4], "p_o": [0.0, 0.0]}, "recall >= 0.5", "those of row 1 sum to 0.9"),
    "range": ({"p_a": [1.5, 0.5], "p_b": [-0.5, 0.5], "p_o": [0.0, 0.0]}, "recall >= 0.5", "row 0 holds 1.5"),
    "missing": (
        {"p_a": [0.5, np.nan], "p_b": [0.5, 0.5], "p_o": [0.0, 0.0]},
        "recall >= 0.5",
        "holds nothing at row 1",
    ),
    "column": ({"p_a": [0.5], "p_b": [0.5]}, "recall >= 0.5", "Unknown column 'p_o'"),
    "group": (None, "recall(race=c) >= 0.5", "Unknown value 'c' of column 'race'"),
    "amounts": (None, "recall(race=a, value=loan) >= 0.5", "Rows count with one column"),
    "strata": (None, "max_difference(recall, by=race, within=job) <= 0.1", "only probabilities are known"),
    "two": (None, "max_difference(recall, by=race, by=sex) <= 0.1", "only probabilities are known"),
}


@pytest.mark.parametrize(("columns", "goal", "words"), REFUSED.values(), ids=REFUSED)
def test_what_are_no_probabilities_is_refused(columns, goal, words):
    with pytest.raises(ValueError, match=words):
        proxy_goals(goal, PROXIES, columns or {"p_a": [1.0], "p_b": [0.0], "p_o": [0.0]})


def test_one_group_is_none():
    with pytest.raises(ValueError, match="for each group of 'race', two or more"):
        proxy_goals("recall >= 0.5", {"race": {"a": "p_a"}}, {"p_a": [1.0]})
