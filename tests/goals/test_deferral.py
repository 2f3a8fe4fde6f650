"""Deferred rows in the language of goals: neither answer, in every denominator, and a third kind in audits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import random_decisions, rates_by_counting
from scipy.stats import binomtest

from counterpoise import Deferral, audit, certify, goals
from counterpoise.goals import (
    Dataset,
    Table,
    bind,
    defer_rate,
    parse_goal,
    parse_rate,
)
from counterpoise.goals.rates import METRICS, RATIOS
from counterpoise.metrics import rate_table

TRAIN = Dataset("train")
DEFER = 2
SEEDS = st.integers(0, 10_000)


def with_deferral(seed, *, weighted):
    """Return random decisions of which some are deferred, the first row of each group among the decided."""
    predicted, labels, baseline, sex, weight = random_decisions(seed, weighted=weighted)
    rng = np.random.default_rng(seed + 1)
    said = np.where(rng.random(len(sex)) < rng.uniform(0.1, 0.6), DEFER, predicted)
    return said, labels, baseline, sex, weight


@pytest.mark.parametrize("name", [*METRICS, *RATIOS])
@settings(max_examples=6)
@given(SEEDS, st.booleans(), st.sampled_from(["all", "F", "M"]))
def test_every_metric_counts_deferred_rows_as_neither(name, seed, weighted, group):
    said, labels, baseline, sex, weight = with_deferral(seed, weighted=weighted)
    kept = np.ones(len(sex), dtype=bool) if group == "all" else sex == group
    expected = rates_by_counting(said[kept], labels[kept], baseline[kept], weight[kept])[name]
    table = Table(None, labels, {"sex": sex}, baseline, sample_weight=weight)
    rate = getattr(goals, name)(TRAIN if group == "all" else TRAIN.where(sex=group))
    assert rate.value(said, table, defer_label=DEFER) == pytest.approx(expected, abs=1e-12, nan_ok=True)
    shares = np.eye(3)[said]
    assert rate.expected_value(shares, table, defer_label=DEFER) == pytest.approx(expected, abs=1e-12, nan_ok=True)
    found = rate_table(said, labels, sex, baseline=baseline, sample_weight=weight, defer_label=DEFER, rates=[name])
    row = found[["all", "F", "M"].index(group)]
    assert row.rates[name] == pytest.approx(expected if np.isfinite(expected) else np.nan, abs=1e-12, nan_ok=True)


@settings(max_examples=40)
@given(SEEDS, st.sampled_from([*METRICS]), st.sampled_from(["negatives", "baseline_positives", ""]))
def test_bound_weights_give_the_value_for_any_share_of_answers(seed, name, part):
    """Signed weights on the three answers of each row, against counting over draws of them."""
    said, labels, baseline, sex, weight = with_deferral(seed, weighted=True)
    labels[:4], baseline[:4] = [0, 0, 1, 1], [0, 1, 0, 1]
    table = Table(None, labels, {"sex": sex}, baseline, sample_weight=weight)
    try:
        rate = getattr(goals, name)(getattr(TRAIN, part) if part else TRAIN)
    except ValueError:  # false positives among the positives, say
        return
    shares = np.random.default_rng(seed).dirichlet(np.ones(3), len(said))
    bound = bind(rate <= 0.5, table, classes=[0, 1], defer_label=DEFER)
    expected = rate.expected_value(shares, table, defer_label=DEFER) - 0.5
    assert bound.violations({"train": shares.ravel()})[0] == pytest.approx(expected, abs=1e-12)


def test_rates_of_several_classes_leave_deferred_rows_out_of_every_class():
    y = np.array(["a", "a", "b", "b", "c", "c"])
    said = np.array(["a", "?", "b", "a", "?", "b"])
    old = np.array(["a", "a", "b", "b", "c", "b"])
    table = Table(None, y, baseline=old)

    def value(text):
        return parse_rate(text).value(said, table, defer_label="?")

    assert value("error_rate") == pytest.approx(2 / 6)
    assert value("accuracy") == pytest.approx(2 / 6)
    assert value("defer_rate") == pytest.approx(2 / 6)
    assert value("churn") == pytest.approx(3 / 6)
    assert value("recall(of=a)") == pytest.approx(1 / 2)
    assert value("false_negative_rate(of=a)") == 0.0
    assert value("negative_rate(of=a)") == pytest.approx(2 / 6)
    assert value("macro(recall)") == pytest.approx((1 / 2 + 1 / 2 + 0) / 3)
    assert value("defer_rate(train.positives, of=c)") == pytest.approx(1 / 2)
    decided = goals.decided_error_rate(TRAIN)
    assert decided.value(said, table, defer_label="?") == pytest.approx(2 / 4)


def test_the_texts_of_deferral_goals_are_read_back():
    for text in (
        "defer_rate(sex=F) <= 1.2 * defer_rate(sex=M)",
        "decided_error_rate(mail, age<=33) <= 0.1",
    ):
        assert str(parse_goal(text)) == text
        assert parse_goal(text) == parse_goal(text)
    assert defer_rate("train") != defer_rate("mail")
    assert defer_rate("train", of="cat") == defer_rate("train")


def test_rates_among_the_decided_stand_against_numbers_only():
    with pytest.raises(TypeError, match="not linear once multiplied through"):
        parse_goal("decided_error_rate(sex=F) <= decided_error_rate(sex=M)")
    assert parse_goal("max_difference(decided_positive_rate, by=sex) <= 0.1").compares_ratios
    assert parse_goal("every_group(decided_error_rate, by=sex) <= 0.1").is_ratio


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (1, "defer_label must not be mistaken for a class; got 1 beside the class 1"),
        ("1", "defer_label must not be mistaken for a class; got '1' beside the class 1"),
        (" 1.0", "taken for a class"),
        (True, "taken for a class"),
        ("", "must be a text or a number that no class has; got ''"),
        (float("nan"), "must be a text or a number"),
        ((1, 2), "must be a text or a number"),
    ],
)
def test_a_label_of_deferred_rows_that_could_be_a_class_is_refused(label, message):
    with pytest.raises((TypeError, ValueError), match=message):
        defer_rate().value([0, 1], Table(None, [0, 1]), defer_label=label)
    with pytest.raises((TypeError, ValueError), match=message):
        rate_table([0, 1], [0, 1], defer_label=label)
    with pytest.raises((TypeError, ValueError), match="defer_label must"):
        audit("defer_rate <= 0.5", [0, 1], [0, 1], defer_label=label)


def test_probabilities_have_a_column_for_deferral_where_there_is_some():
    table = Table(None, ["no", "yes"])
    shares = [[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]]  # no, yes, deferred
    assert goals.recall().expected_value(shares, table, defer_label="?") == 0.5
    assert goals.recall().expected_value(shares, table, pos_label="no", defer_label="?") == 0.5
    assert goals.defer_rate().expected_value(shares, table, defer_label="?") == pytest.approx(0.375)
    with pytest.raises(ValueError, match=r"must have shape \(2, 3\); got shape \(2, 2\)"):
        goals.recall().expected_value([[1.0, 0.0], [0.0, 1.0]], table, defer_label="?")


def people(n_rows=20_000):
    """Return labels, groups and answers, of which the third is deferral."""
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b"], n_rows, p=[0.6, 0.4])
    y = rng.integers(0, 2, n_rows)
    said = np.where(rng.random(n_rows) < 0.8, y, 1 - y)
    return y, group, np.where(rng.random(n_rows) < np.where(group == "a", 0.1, 0.16), DEFER, said)


def test_an_audit_of_deferral_is_an_exact_binomial():
    y, group, said = (part[:400] for part in people())
    table = Table(None, y, group)
    texts = ["defer_rate <= 0.2", "decided_error_rate <= 0.3", "error_rate <= 0.3"]
    found = audit(texts, said, table, defer_label=DEFER, confidence=0.94)
    wrong, deferred = int(((said != y) & (said != DEFER)).sum()), int((said == DEFER).sum())
    for row, hits, trials in zip(found, (deferred, wrong, wrong), (400, 400 - deferred, 400), strict=True):
        exact = binomtest(hits, trials).proportion_ci(1 - 2 * 0.02, "exact")
        assert (row.low, row.high) == pytest.approx((exact.low, exact.high), abs=1e-9)
        assert row.counts[0][1] == trials


def test_certify_asks_a_model_that_defers_for_its_label():
    class Asks:
        deferral = Deferral(0.1, "ask")

        def predict(self, X):
            return np.array([0, 1, "ask", 1] * (len(X) // 4), dtype=object)

    X, y = np.zeros((400, 1)), np.array([0, 1, 1, 0] * 100)
    found = certify(Asks(), ["defer_rate <= 0.4", "error_rate <= 0.4"], X, y)
    assert [row.estimate for row in found] == [0.25, 0.25]


def test_deferral_is_refused_where_every_row_is_decided():
    with pytest.raises(ValueError, match=r"defer_rate <= 0.1 uses deferred rows, but no row is deferred"):
        goals.validate_goals("defer_rate <= 0.1", defers=False)
