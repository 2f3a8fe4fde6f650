"""Audits on labels that are known in part, against masses and against populations that are known."""

import numpy as np
import pytest

import counterpoise as cp

GOALS = ["recall >= 0.7", "false_positive_rate <= 0.3", "precision >= 0.7", "error_rate <= 0.3", "f1_score >= 0.5"]


def draw(rng, n_rows):
    """Return decisions, labels, a proxy and a score of rows."""
    score = rng.normal(size=n_rows)
    proxy = 1 / (1 + np.exp(-2 * score))
    return (score + 0.3 * rng.normal(size=n_rows) > 0).astype(int), (rng.random(n_rows) < proxy).astype(int), proxy


def some(y, known):
    return np.where(known, y, np.nan)


def test_all_labels_known_are_those_labels():
    decisions, y, proxy = draw(np.random.default_rng(0), 800)
    assert str(cp.audit(GOALS, decisions, cp.PartialLabels(y, proxy))) == str(cp.audit(GOALS, decisions, y))
    assert str(cp.certify(decisions, GOALS, y=cp.PartialLabels(y))) == str(cp.audit(GOALS, decisions, y))


def test_labels_alone_are_the_labelled_rows():
    rng = np.random.default_rng(1)
    decisions, y, _ = draw(rng, 2000)
    known, sex = rng.random(2000) < 0.3, rng.choice(["F", "M"], 2000)
    goals = [*GOALS, "recall(sex=F) >= 0.5"]
    partial = cp.audit(goals, decisions, cp.PartialLabels(some(y, known)), sensitive_features={"sex": sex})
    alone = cp.audit(goals, decisions[known], y[known], sensitive_features={"sex": sex[known]})
    assert str(partial) == str(alone)


def test_estimates_are_ratios_of_masses():
    rng = np.random.default_rng(2)
    decisions, y, proxy = draw(rng, 3000)
    known, sex = rng.random(3000) < 0.2, rng.choice(["F", "M"], 3000)
    labels = cp.PartialLabels(some(y, known), proxy, 0.2)
    goals = [*GOALS, "recall(sex=F) - recall(sex=M) <= 0.1"]
    result = cp.audit(goals, decisions, labels, sensitive_features={"sex": sex})
    masses = labels.masses(np.array([0, 1]), np.eye(2)[decisions], looks_ahead=False)
    called, women, one, zero = decisions == 1, sex == "F", masses[:, 1], masses[:, 0]
    recalls = [one[called & is_in].sum() / one[is_in].sum() for is_in in (women, ~women)]
    total = masses.sum()
    expected = [
        one[called].sum() / one.sum(),
        zero[called].sum() / zero.sum(),
        one[called].sum() / masses[called].sum(),
        (zero[called].sum() + one[~called].sum()) / total,
        2 * one[called].sum() / (masses[called].sum() + one.sum()),
        recalls[0] - recalls[1],
    ]
    assert [row.estimate for row in result] == pytest.approx(expected)
    assert all(row.low <= row.estimate <= row.high for row in result)


@pytest.mark.parametrize("least", [0.3, 0.05])
@pytest.mark.parametrize("proxy_kind", ["model", "noise"])
def test_goals_just_missed_rarely_seem_to_hold(least, proxy_kind):
    rng = np.random.default_rng(3)
    decisions, y, _ = draw(rng, 200_000)
    truth = {"recall": decisions[y == 1].mean(), "precision": y[decisions == 1].mean()}
    n_wrong, n_runs = 0, 30
    for _ in range(n_runs):
        decisions, y, proxy = draw(rng, 1000)
        proxy = proxy if proxy_kind == "model" else rng.random(1000)
        chance = np.where(proxy > 0.5, 2 * least, least)
        labels = cp.PartialLabels(some(y, rng.random(1000) < chance), proxy, chance)
        goals = [f"recall >= {truth['recall'] + 0.001}", f"precision >= {truth['precision'] + 0.001}"]
        n_wrong += any(row.verdict == "holds" for row in cp.audit(goals, decisions, labels, confidence=0.9))
    assert n_wrong <= 6


def test_a_good_proxy_narrows_the_interval():
    rng = np.random.default_rng(4)
    decisions, y, _ = draw(rng, 4000)
    known = rng.random(4000) < 0.15
    good = np.where(rng.random(4000) < 0.03, 1 - y, y)
    widths = [
        [row.high - row.low for row in cp.audit(GOALS[:2], decisions, cp.PartialLabels(some(y, known), proxy, 0.15))]
        for proxy in (rng.random(4000), good)
    ]
    assert np.less(widths[1], np.multiply(widths[0], 0.8)).all()


def test_three_classes_and_models():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, 3000)
    decisions = np.where(rng.random(3000) < 0.8, y, rng.integers(0, 3, 3000))
    known = rng.random(3000) < 0.2
    answers = np.where(rng.random(3000) < 0.9, y, 0)
    labels = cp.PartialLabels(some(y, known), answers, 0.2)
    result = cp.certify(decisions, ["recall(of=2) >= 0.7", "error_rate <= 0.25"], y=labels)
    assert result[0].estimate == pytest.approx((decisions == 2)[y == 2].mean(), abs=0.06)
    assert result[1].estimate == pytest.approx((decisions != y).mean(), abs=0.04)
    assert result.holds


@pytest.mark.parametrize(
    ("audit", "message"),
    [
        (lambda labels: cp.audit(GOALS, [0, 1] * 10, labels, sample_weight=[1, 2] * 10), "without sample_weight"),
        (lambda labels: cp.audit(GOALS, [0, 1] * 10, labels, labelled=[True] * 20), "say what is labelled"),
        (lambda labels: cp.audit(GOALS, [0, 1], labels), "one label for each of the 20 rows"),
        (lambda _: cp.PartialLabels([1, None], propensity=[0.5, 0.0]), "could never be known"),
    ],
)
def test_what_is_refused(audit, message):
    labels = cp.PartialLabels([0, 1, None, 1] * 5, [0.5] * 20, 0.75)
    with pytest.raises(ValueError, match=message):
        audit(labels)
