"""Goals watched over time."""

import json
import math

import numpy as np
import pytest

from counterpoise import Monitor, audit
from counterpoise.goals import Table

GOALS = [
    "selection_rate <= 0.6",
    "recall(sex=F) >= 0.6",
    "positive_rate(sex=F) >= 0.8 * positive_rate(sex=M)",
    "precision >= 0.6",
    "max_difference(recall, by=sex) <= 0.2",
    "min_ratio(selection_rate, by=sex) >= 0.7",
    "every_group(false_positive_rate, by=sex) <= 0.4",
    "churn <= 0.15",
    "cost({1->0: amount}) <= 300",
    "recall(value=amount) >= 0.5",
    "selection_rate == 0.5 +- 0.1",
    "abs(recall - true_negative_rate) <= 0.2",
    "balanced_accuracy >= 0.6",
    "defer_rate <= 0.2",
    "recall(sex=F) <= recall + 0.3",
]
OPTIONS = {"classes": [0, 1], "largest_value": 2000, "defer_label": "ask", "groups": {"sex": ["F", "M"]}}


def make_rows(n_rows, seed=0, flip=0.2):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    answers = np.where(rng.random(n_rows) < flip, 1 - y, y).astype(object)
    baseline = np.where(rng.random(n_rows) < 0.05, 1 - y, np.where(answers == y, y, 1 - y))
    answers[rng.random(n_rows) < 0.05] = "ask"
    columns = {
        "sex": np.where(rng.random(n_rows) < 0.4, "F", "M"),
        "amount": rng.exponential(300, n_rows).clip(0, 2000),
    }
    return {"answers": answers, "y": y, "sensitive_features": columns, "baseline": baseline}


def part_of(rows, places):
    columns = {name: values[places] for name, values in rows["sensitive_features"].items()}
    return {name: values[places] for name, values in rows.items() if name != "sensitive_features"} | {
        "sensitive_features": columns
    }


def test_a_batch_is_as_its_rows_one_by_one_and_restored_as_never_stopped():
    rows = make_rows(20)
    whole, single = Monitor(GOALS, **OPTIONS), Monitor(GOALS, **OPTIONS)
    whole.update(**rows)
    for place in range(20):
        one = part_of(rows, place)
        single.update(**one)
        single = Monitor.restore(json.loads(json.dumps(single.state(), allow_nan=False)))
    for one, other in zip(whole.verdicts, single.verdicts, strict=True):
        assert (one.verdict, one.n_rows, one.worst) == (other.verdict, other.n_rows, other.worst)
        assert one[2:5] == pytest.approx(other[2:5], abs=1e-12, nan_ok=True)


def test_estimates_are_those_of_an_audit_and_intervals_a_little_wider():
    rows = make_rows(3000)
    verdicts = Monitor(GOALS, **OPTIONS).update(**rows)
    columns = rows["sensitive_features"]
    table = Table(None, rows["y"], columns, rows["baseline"], largest_value=2000)
    known = audit(GOALS, rows["answers"], table, classes=[0, 1], defer_label="ask")
    for one, other in zip(verdicts, known, strict=True):
        accuracy = 2.0 if "amount" in str(one.goal) else 1e-9  # amounts are kept at few marks
        assert one.estimate == pytest.approx(other.estimate, abs=accuracy)
        assert one.low <= one.estimate <= one.high
        assert one.verdict == other.verdict or "undecided" in {one.verdict, other.verdict}
        assert one.high - one.low <= 3.0 * (other.high - other.low)


def test_the_order_of_goals_and_of_rows_in_a_batch_plays_no_role():
    rows = make_rows(500)
    order = np.random.default_rng(3).permutation(500)
    one = Monitor(GOALS, **OPTIONS).update(**rows)
    other = Monitor(GOALS[::-1], **OPTIONS).update(**part_of(rows, order))[::-1]
    for a, b in zip(one, other, strict=True):
        assert a.verdict == b.verdict
        assert a[2:5] == pytest.approx(b[2:5], abs=1e-9)


def test_labels_that_come_later_count_when_they_come_and_go_to_their_rows():
    rows, ids = make_rows(200), np.arange(200)
    at_once, later = Monitor(GOALS, **OPTIONS), Monitor(GOALS, **OPTIONS)
    known = at_once.update(**rows)
    first = later.update(**{**rows, "y": None}, ids=ids)
    assert first[0].estimate == known[0].estimate  # the selection rate needs no labels
    assert math.isnan(first[1].estimate)
    assert (first[1].n_waiting, later.n_waiting) == (200, 200)
    order = np.random.default_rng(1).permutation(200)
    later.update(None, rows["y"][order[:150]], ids=ids[order[:150]].astype(str))
    later = Monitor.restore(json.loads(json.dumps(later.state(), allow_nan=False)))
    last = later.update(None, rows["y"][order[150:]], ids=ids[order[150:]])
    assert later.n_waiting == 0
    for a, b in zip(known, last, strict=True):
        assert a[2:5] == pytest.approx(b[2:5], abs=1e-9)


def test_labels_before_their_rows_are_kept_and_missing_ones_wait():
    monitor = Monitor("recall >= 0.5", classes=[0, 1])
    monitor.update(None, [1, 1], ids=["a", "b"])
    assert monitor.n_early == 2
    monitor.update([1, 0, 1, 1], [None, None, None, 1], ids=["a", "b", "c", "d"])
    (verdict,) = monitor.verdicts
    assert (monitor.n_early, monitor.n_waiting, verdict.n_rows) == (0, 1, 3)
    assert verdict.estimate == pytest.approx(2 / 3)


def test_rows_without_a_label_and_without_an_id_are_counted_apart():
    monitor = Monitor(["recall >= 0.5", "selection_rate <= 0.9"], classes=[0, 1])
    monitor.update([1, 0, 1], [1, np.nan, np.nan])
    assert (monitor.n_unlabelled, monitor.n_waiting) == (2, 0)
    assert [one.n_rows for one in monitor.verdicts] == [1, 3]


def test_rows_of_one_person_count_as_one():
    monitor = Monitor("selection_rate <= 0.5", classes=[0, 1])
    (verdict,) = monitor.update([1] * 50 + [0], ids=["a"] * 50 + ["b"])
    assert (verdict.estimate, verdict.n_rows, verdict.verdict) == (0.5, 2, "undecided")


def test_a_violation_is_proven_and_dated_and_stays():
    rng = np.random.default_rng(0)
    monitor = Monitor("selection_rate <= 0.3", classes=[0, 1])
    for week in range(20):
        share = 0.25 if week < 10 else 0.45
        (verdict,) = monitor.update((rng.random(500) < share).astype(int), time=f"2026-{week:02}")
    assert verdict.verdict == "fails"
    assert verdict.began.time in {"2026-09", "2026-10"}
    assert verdict.changed_at.n_rows < verdict.failed_at.n_rows
    assert verdict.low > 0.3
    (verdict,) = monitor.update(np.zeros(50_000, dtype=int))
    assert verdict.verdict == "fails"
    assert verdict.estimate < 0.3


def test_groups_that_appear_late_are_judged_too():
    monitor = Monitor("every_group(selection_rate, by=sex) <= 0.5", classes=[0, 1])
    monitor.update([0, 1, 0, 0, 0, 0] * 200, sensitive_features={"sex": ["F", "M"] * 600})
    assert monitor.verdicts.holds
    (verdict,) = monitor.update([1] * 3, sensitive_features={"sex": ["X"] * 3})
    assert (verdict.verdict, verdict.worst) == ("undecided", "positive_rate(sex=X)")
    (verdict,) = monitor.update([1] * 60, sensitive_features={"sex": ["X"] * 60})
    assert verdict.verdict == "fails"


def test_weights_count_and_need_a_limit():
    rng = np.random.default_rng(0)
    weights = rng.choice([1.0, 10.0], 4000)
    answers = (rng.random(4000) < np.where(weights > 1, 0.6, 0.2)).astype(int)
    monitor = Monitor("selection_rate <= 0.4", classes=[0, 1], largest_weight=10)
    (verdict,) = monitor.update(answers, sample_weight=weights)
    assert verdict.verdict == "fails"
    assert verdict.estimate == pytest.approx(np.average(answers, weights=weights), abs=1e-3)
    with pytest.raises(ValueError, match="largest_weight must be at least as large as every weight"):
        monitor.update([1], sample_weight=[11.0])
    with pytest.raises(ValueError, match="pass largest_weight to Monitor and sample_weight to each update"):
        monitor.update([1])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            {"answers": [0, 2], "sensitive_features": {"amount": [1.0, 1.0]}},
            "predictions for dataset 'train' hold the label 2",
        ),
        ({"answers": []}, "answers must be the decisions about one row or more"),
        ({"answers": [0, 1], "y": [0, 1, 1]}, "y must have an entry for each of the 2 answers"),
        ({"answers": [0, 1], "y": [0, 1]}, "The goals name the column 'amount'"),
        ({"answers": None, "y": [1]}, "Without answers an update needs y and ids"),
        ({"answers": [1], "y": [1], "sensitive_features": {"amount": [np.nan]}}, "Amounts must be finite"),
        ({"answers": [1], "y": [1], "sensitive_features": {"amount": [9.0]}}, "largest_value must be at least"),
        ({"answers": [1], "y": [1], "sensitive_features": {"amount": [1.0]}, "time": [1]}, "time is one value"),
        ({"answers": [1], "y": [1], "sensitive_features": {"amount": [1.0]}, "ids": [None]}, "ids must name each row"),
    ],
)
def test_a_batch_that_is_refused_changes_nothing(rows, message):
    monitor = Monitor("recall(value=amount) >= 0.5", classes=[0, 1], largest_value=5)
    monitor.update([1], [1], sensitive_features={"amount": [1.0]})
    before = monitor.state()
    with pytest.raises((ValueError, TypeError), match=message):
        monitor.update(**rows)
    assert monitor.state() == before


@pytest.mark.parametrize(
    ("goals", "options", "message"),
    [
        ([], {}, "needs at least one goal"),
        ("total(value=profit) >= 3", {"largest_value": 3}, "is on a total"),
        ("recall(test) >= 0.5", {}, "names the dataset 'test'"),
        ("recall(value=amount) >= 0.5", {}, "largest_value="),
        ("macro(recall, min_rows=5) >= 0.5", {}, "averages over the classes"),
        ("recall / (recall - 1) >= 0.5", {}, "cannot be multiplied through"),
        ("recall >= 0.5", {"run_length": 0}, "run_length must be finite and at least 1"),
    ],
)
def test_what_cannot_be_watched_is_refused(goals, options, message):
    with pytest.raises(ValueError, match=message):
        Monitor(goals, classes=[0, 1], **options).update([1], [1])


def test_classes_are_those_of_the_first_update():
    monitor = Monitor("selection_rate <= 0.9")
    monitor.update(["yes", "no", "yes"])
    assert monitor.classes == ["no", "yes"]
    with pytest.raises(ValueError, match="Name all classes"):
        Monitor("selection_rate <= 0.9").update(["yes"])


def test_a_state_of_weights_amounts_and_several_rates_is_restored_whole():
    goals = [
        "recall(value=amount) >= 0.2",
        "every_group(precision, by=sex) >= 0.1",
        "min_ratio(positive_rate, by=sex) >= 0.5",
        "churn <= 0.9",
        "f1_score >= 0.3",
    ]
    limits = {"largest_weight": 2.0, "largest_value": {"amount": 9.0}, "groups": {"sex": np.array(["F", "M"])}}
    monitor = Monitor(goals, classes=[0, 1], defer_label=2, **limits)
    rng = np.random.default_rng(0)
    answers, y, baseline = rng.integers(0, 3, 60), rng.integers(0, 2, 60), rng.integers(0, 2, 60)
    columns = {"sex": rng.choice(["F", "M"], 60), "amount": rng.uniform(0, 9, 60)}
    parts = {"baseline": baseline, "sample_weight": rng.uniform(0.1, 2, 60), "ids": np.arange(60) % 50}
    monitor.update(answers, [*y[:50].tolist(), *[None] * 10], sensitive_features=columns, **parts)
    state = json.loads(json.dumps(monitor.state(), allow_nan=False))
    again = Monitor.restore(state)
    assert again.state() == state
    assert again.verdicts == monitor.verdicts
    for one in (monitor, again):
        one.update(None, y[:10], ids=np.arange(10))
    assert again.verdicts == monitor.verdicts
    assert again.state() == monitor.state()


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("watched", 0, 1), 2**53, "number of first limits must be a whole number from 0 to 0"),
        (("streams",), {"another": [1.0]}, "must not have the key 'another'"),
        (("starts", 0, 1, 0), 7.0, r"\['starts'\]\[0\]\[1\]\[0\] must be a finite number from 0 to 2"),
        (("waiting",), [{"a": []}, {}], r"\['waiting'\]\[0\]\['a'\] must be a list of at least 1"),
        (("numbers", 0), 1, "must be a finite number from 0 to 1"),
        (("groups",), {name: list(range(100)) for name in ("sex", "job")}, "groups must make at most 1000"),
    ],
)
def test_a_state_that_does_not_fit_together_is_refused(place, value, message):
    monitor = Monitor("max_difference(positive_rate, by=sex, by=job) <= 0.5", classes=[0, 1])
    monitor.update([0, 1], sensitive_features={"sex": ["F", "F"], "job": ["a", "a"]})
    state = monitor.state()
    holder = state
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    with pytest.raises(ValueError, match=message):
        Monitor.restore(state)
