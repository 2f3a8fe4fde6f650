"""Audits of expectations over draws: bounds for means of chances, right as often as they say."""

import numpy as np
import pytest

from counterpoise import audit
from counterpoise.goals import Table

GOALS = [
    "recall >= 0.5",
    "precision >= 0.5",
    "churn <= 0.5",
    "positive_rate(sex=F) >= 0.8 * positive_rate(sex=M)",
    "max_difference(recall, by=sex) <= 0.2",
]


def population(rng, n_rows, chances):
    """Return labels, sexes, deployed answers and the chance that each row is called positive."""
    y, sex, old = rng.integers(0, 2, n_rows), rng.choice(["F", "M"], n_rows), rng.integers(0, 2, n_rows)
    return y, sex, old, np.clip(rng.choice(chances, n_rows) * 0.6 + 0.3 * y, 0.0, 1.0)


def table(y, sex, old, **more):
    return Table(None, y, {"sex": sex}, old, **more)


@pytest.mark.parametrize("weighted", [False, True])
def test_estimates_are_the_rates_in_expectation(weighted):
    rng = np.random.default_rng(0)
    y, sex, old, p = population(rng, 500, [0.0, 0.2, 0.9, 1.0])
    w = rng.uniform(1, 2, y.size) if weighted else np.ones(y.size)
    more = {"sample_weight": w, "largest_weight": 2.0} if weighted else {}
    found = [one.estimate for one in audit(GOALS, p, table(y, sex, old, **more), kind="probabilities")]
    mean = lambda values, rows: np.average(values[rows], weights=w[rows])  # noqa: E731 - of one line
    every, is_f = np.ones(y.size, dtype=bool), sex == "F"
    recalls = [mean(p, (y == 1) & one) for one in (is_f, ~is_f)]
    wanted = [
        mean(p, y == 1),
        (w * p * y).sum() / (w * p).sum(),
        mean(np.where(old == 1, 1 - p, p), every),
        mean(p, is_f) - 0.8 * mean(p, ~is_f),
        abs(recalls[0] - recalls[1]),
    ]
    assert found == pytest.approx(wanted)


def test_sure_answers_have_the_estimates_of_labels_and_intervals_that_hold_theirs():
    rng = np.random.default_rng(1)
    y, sex, old, _ = population(rng, 400, [0.0, 1.0])
    said = rng.integers(0, 2, y.size)
    rows = table(y, sex, old)
    for drawn, sure in zip(audit(GOALS, 1.0 * said, rows, kind="probabilities"), audit(GOALS, said, rows), strict=True):
        assert drawn.estimate == pytest.approx(sure.estimate)
        assert drawn.low <= sure.low + 1e-3  # their sums of two shares are searched for, to four digits
        assert drawn.high >= sure.high - 1e-3
        assert drawn.counts == sure.counts


def test_chances_that_are_close_have_narrower_intervals_than_the_decisions_that_are_drawn_by_them():
    rng = np.random.default_rng(2)
    y, sex, old, p = population(rng, 2000, [0.4, 0.6])
    rows = table(y, sex, old)
    drawn = audit(GOALS, (rng.random(p.size) < p).astype(int), rows)
    for expected, decided in zip(audit(GOALS, p, rows, kind="probabilities"), drawn, strict=True):
        assert expected.high - expected.low < decided.high - decided.low


@pytest.mark.slow
@pytest.mark.parametrize(
    ("goal", "chances", "n_times"),
    [
        (GOALS[0], [0.0, 1.0], 60),
        (GOALS[0], [0.0, 0.0, 0.0, 0.02], 60),
        (GOALS[0], [0.45, 0.5, 0.55], 60),
        (GOALS[1], [0.0, 0.03, 0.5, 1.0], 40),
        (GOALS[3], [0.0, 0.03, 1.0], 12),
    ],
)
def test_ends_of_intervals_fail_no_more_often_than_they_may(goal, chances, n_times):
    """Each end may fail in a fifth of the samples."""
    y, sex, old, p = population(np.random.default_rng(3), 20_000, chances)
    (truth,) = audit(goal, p, table(y, sex, old), kind="probabilities")
    rng, misses = np.random.default_rng(4), np.zeros(2)
    for _ in range(n_times):
        rows = rng.choice(y.size, 150, replace=False)
        (one,) = audit(goal, p[rows], table(y[rows], sex[rows], old[rows]), kind="probabilities", confidence=0.8)
        misses += one.low > truth.estimate + 1e-9, one.high < truth.estimate - 1e-9
    assert (misses <= 0.2 * n_times).all()


@pytest.mark.parametrize("n_chances", [3, 200])
def test_however_many_chances_there_are_the_estimate_is_theirs_and_inside(n_chances):
    rng = np.random.default_rng(5)
    y, sex, old, p = population(rng, 3000, rng.random(n_chances))
    (one,) = audit("recall >= 0.5", p, table(y, sex, old), kind="probabilities")
    assert one.estimate == pytest.approx(p[y == 1].mean())
    assert one.low < one.estimate < one.high


def test_several_classes_and_deferral_are_answers_with_chances_too():
    rng = np.random.default_rng(6)
    y, chances = rng.integers(0, 3, 600), rng.dirichlet(np.ones(4), 600)
    goals = ["recall(of=1) >= 0.1", "defer_rate <= 0.5", "decided_error_rate <= 0.9"]
    found = audit(goals, chances, Table(None, y), kind="probabilities", defer_label="ask")
    wrong = 1 - chances[np.arange(600), y] - chances[:, 3]
    wanted = [chances[y == 1, 1].mean(), chances[:, 3].mean(), wrong.sum() / (1 - chances[:, 3]).sum()]
    assert [one.estimate for one in found] == pytest.approx(wanted)
    assert all(one.low <= one.estimate <= one.high for one in found)


def test_words_for_what_predictions_are_others_are_refused():
    with pytest.raises(ValueError, match="kind must be one of 'labels', 'probabilities'; got 'scores'"):
        audit("recall >= 0.5", [0.2, 0.3], [0, 1], kind="scores")
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]; got 1.5"):
        audit("recall >= 0.5", [0.2, 1.5], [0, 1], kind="probabilities")
