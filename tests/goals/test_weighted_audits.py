"""Audits of weighted rows: right as often as promised whatever rows were not drawn, or refused with one sentence."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from weighted_populations import GOALS, POPULATIONS, wrong_ends

from counterpoise import (
    AdaLPBoostClassifier,
    ConstrainedClassifier,
    MixtureClassifier,
    Stopping,
    audit,
    certify,
    load,
    save,
)
from counterpoise.auditing.audit import tighten
from counterpoise.goals import Table, bind
from counterpoise.learners import Stump
from tests.inside import kept_table

CONFIDENT = "error_rate <= 0.3 with confidence 0.9"


def monte_carlo(risk, n_samples):
    """Return how many of the samples may be wrong, three standard deviations of them allowed."""
    return n_samples * risk + 3 * np.sqrt(n_samples * risk * (1 - risk))


@pytest.mark.parametrize("n_rows", [50, 100, 200])
def test_heavy_rows_that_were_not_drawn_do_not_make_a_goal_hold(n_rows):
    """A hundredth of the rows weighs 20 and is wrong: without a limit "holds" in 60, 38 and 12 % of the samples."""
    people = POPULATIONS["heavy, wrong and unseen"]
    assert people.truth("error_rate <= 0.1") > 0.15
    seeds = range(40)
    found = [
        audit("error_rate <= 0.1", *people.drawn(np.random.default_rng(seed), n_rows))[0].verdict for seed in seeds
    ]
    assert found.count("holds") <= monte_carlo(0.05, len(seeds))


@pytest.mark.slow
@pytest.mark.parametrize("text", GOALS.values(), ids=GOALS.keys())
def test_each_end_of_each_interval_fails_as_seldom_as_promised(text):
    """At confidence 0.8, on eleven populations: where an end fails, some bound gets a wrong verdict."""
    n_samples = 3 if " + " in text else 10
    seeds = np.arange(n_samples)
    misses = np.array(
        [
            wrong_ends(people, text, n_rows=150, confidence=0.8, seeds=seeds + place * n_samples)
            for place, people in enumerate(POPULATIONS.values())
        ]
    )
    assert (misses <= monte_carlo(0.2, n_samples)).all()
    assert (misses.sum(axis=0) <= monte_carlo(0.2, n_samples * len(POPULATIONS))).all()


@pytest.mark.parametrize("text", GOALS.values(), ids=GOALS.keys())
def test_enough_rows_decide(text):
    """Verdicts are right, and there are some."""
    people = POPULATIONS["frequencies"]
    truth = people.truth(text)
    for away, sense in ((0.12, "<="), (-0.12, ">=")):
        left, _, right = text.replace(" >= ", " <= ").partition(" <= ")
        goal = f"{left} {sense} {''.join(right.rpartition('+ ')[:2])}{truth + away}"
        (row,) = audit(goal, *people.drawn(np.random.default_rng(0), 6000))
        assert row.verdict == "holds", goal


ROWS = {"y": [1, 0] * 30, "sample_weight": [1.0, 2.0, 3.0] * 20}


@pytest.mark.parametrize("goal", ["recall >= 0.5", "recall(group=a) >= recall(group=b)"])
def test_weights_that_differ_need_a_limit(goal):
    told = (
        r"Dataset 'train' needs largest_weight, the largest weight that a row .* "
        r"\(the lightest is 0.333 times the heaviest\).*leave the weights out\. Needed by recall"
    )
    groups = {"sensitive_features": ["a", "a", "b"] * 20}
    with pytest.raises(ValueError, match=told):
        certify([1] * 60, goal, **ROWS, **groups)
    with pytest.raises(ValueError, match=told):
        audit(goal, [1] * 60, Table(None, **ROWS, **groups))
    with pytest.raises(ValueError, match=told):
        tighten(goal, Table(None, **ROWS, **groups))
    assert certify([1] * 60, goal, **ROWS, **groups, largest_weight=3)[0].largest_weights == (("train", 3.0),)


def test_weights_of_zero_differ_from_others():
    table = Table(None, [1, 0] * 30, sample_weight=[1.0, 0.0, 1.0] * 20)
    with pytest.raises(ValueError, match="needs largest_weight"):
        audit("recall >= 0.5", [1] * 60, table)


def test_a_dataset_that_no_goal_speaks_of_needs_nothing():
    mail = Table(None, **ROWS)
    assert certify([1, 0] * 30, "recall >= 0.5", y=[1, 0] * 30, datasets={"mail": mail}).holds


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"sample_weight": [1, 7, 2], "largest_weight": 5},
            "every weight .* got 5, but row 1 weighs 7",
        ),
        ({"largest_weight": 5}, "got 5 and no sample_weight"),
        ({"sample_weight": [1, 7, 2], "largest_weight": 0}, "largest_weight must be finite and above 0; got 0"),
        ({"sample_weight": [1, 7, 2], "largest_weight": float("nan")}, "largest_weight must be finite and above 0"),
    ],
)
def test_a_limit_that_is_none_is_refused(given, told):
    with pytest.raises(ValueError, match=told):
        Table(None, [0, 1, 1], **given)
    with pytest.raises(ValueError, match=told):
        certify([0, 1, 1], "recall >= 0.5", None, [0, 1, 1], **given)


def test_a_limit_is_a_number():
    with pytest.raises(TypeError, match="largest_weight must be a number above 0; got '20'"):
        Table(None, [0, 1], sample_weight=[1, 2], largest_weight="20")


def test_only_the_ratio_of_weights_and_limit_matters():
    decided, table = POPULATIONS["lognormal"].drawn(np.random.default_rng(0), 200)
    scaled = Table(None, table.y, table.column("group"), sample_weight=1e12 * table.sample_weight, largest_weight=4e12)
    again = Table(None, table.y, table.column("group"), sample_weight=table.sample_weight, largest_weight=4)
    for text in GOALS.values():
        one, other = audit(text, decided, scaled)[0], audit(text, decided, again)[0]
        np.testing.assert_allclose(one[1:6], other[1:6], atol=1e-9)


def test_an_audit_says_which_limit_it_rests_on():
    decided, table = POPULATIONS["by group"].drawn(np.random.default_rng(0), 200)
    told = str(audit([*GOALS.values()], decided, table)).splitlines()[-1]
    assert told.endswith("with confidence 0.95 if no row of train weighs more than 5.")
    assert repr(table) == "Table(n_samples=200, labelled, largest_weight=5, columns=['group'])"
    plain = Table(None, table.y, table.column("group"))
    assert str(audit(GOALS["one rate"], decided, plain)).endswith("with confidence 0.95.")


@pytest.mark.parametrize(("text", "most"), [("recall >= 0.9", 1), ("error_rate <= 0.05", 10)])
def test_so_many_rows_as_the_note_says_are_enough_and_no_fewer(text, most):
    def judged(n_rows):
        return audit(
            text, [1] * n_rows, Table(None, [1] * n_rows, sample_weight=[2] * n_rows, largest_weight=2 * most)
        )[0]

    few = judged(20)
    assert few.verdict == "undecided"
    needed = next(int(word) for word in few.note.split() if word.isdigit())
    assert [judged(needed - 1).verdict, judged(needed).verdict] == ["undecided", "holds"]


def test_so_many_rows_of_two_groups_as_the_note_says_are_enough():
    def judged(times):
        y, weights = [1] * 24 * times, [1.0, 2.0, 1.0, 2.0] * 6 * times
        table = Table(None, y, ["a", "a", "b"] * 8 * times, sample_weight=weights, largest_weight=4)
        return audit("recall(group=a) + recall(group=b) >= 1.7", y, table)[0]

    needed = [int(word) for word in judged(1).note.split() if word.isdigit()]
    times = -(-needed[0] // 16)
    assert judged(times).verdict == "holds"
    assert judged(times - 1).verdict == "undecided"


@pytest.mark.slow
@pytest.mark.parametrize("bound", [0.03, 0.1, 0.3])
def test_a_tightened_rate_is_met_where_the_audit_passes_if_failures_fall_on_all_weights_alike(bound):
    weights = np.repeat([1.0, 2.0, 5.0], 200)
    table = Table(None, np.ones(600, int), sample_weight=weights, largest_weight=6)
    for goal in (f"error_rate <= {bound}", f"recall >= {1 - bound}"):
        asked = tighten(goal, table)
        for n_failures in range(0, 200, 4):
            decided = np.tile(np.arange(200) >= n_failures, 3).astype(int)
            (row,) = audit(goal, decided, table, classes=[0, 1])
            assert asked.evaluate(decided, table, classes=[0, 1]).holds == (row.verdict == "holds")


def labelled_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + 0.7 * rng.normal(size=400) > 0).astype(int)
    return X, y, rng.integers(1, 4, size=400).astype(float)


def boosted(X, y, **given):
    return AdaLPBoostClassifier(Stump(), n_estimators=5, alpha=1.0, goals=CONFIDENT, random_state=0).fit(X, y, **given)


def boosted_apart(X, y, **given):
    model = AdaLPBoostClassifier(Stump(), n_estimators=5, alpha=1.0, goals=CONFIDENT, random_state=0)
    return model.set_params(stopping=Stopping(validation_fraction=0.5)).fit(X, y, **given)


def mixed(X, y, **given):
    model = LogisticRegression().fit(X, y)
    return MixtureClassifier([model, 1 - y], alpha=1.0, goals=CONFIDENT, random_state=0).fit(X, y, **given)


def rebalanced(X, y, **given):
    pool = [LogisticRegression().fit(X, y), LogisticRegression(C=1e-4).fit(X, y)]
    return MixtureClassifier(pool, alpha=1.0).fit(X, y).rebalance(X, y, goals=CONFIDENT, **given)


def constrained(X, y, **given):
    return ConstrainedClassifier(goals=CONFIDENT).fit(X, y, **given)


@pytest.mark.parametrize("fit", [boosted, boosted_apart, mixed, rebalanced, constrained])
def test_fits_inside_goals_with_a_confidence_need_the_limit_too(fit):
    X, y, weights = labelled_rows()
    with pytest.raises(ValueError, match="Dataset 'train' needs largest_weight"):
        fit(X, y, sample_weight=weights)
    with pytest.raises(ValueError, match=r"got 2, but row \d+ weighs 3"):
        fit(X, y, sample_weight=weights, largest_weight=2)
    model = fit(X, y, sample_weight=weights, largest_weight=3)
    assert np.average(model.predict(X) != y, weights=weights) < 0.3
    fit(X, y, sample_weight=np.full(400, 2.0))


def test_a_refused_fit_trains_nothing():
    X, y, weights = labelled_rows()
    rounds = []
    model = AdaLPBoostClassifier(Stump(), n_estimators=5, goals=CONFIDENT, callbacks=[rounds.append])
    with pytest.raises(ValueError, match="needs largest_weight"):
        model.fit(X, y, sample_weight=weights)
    assert rounds == []


def test_a_fit_aims_farther_inside_for_a_far_limit():
    _, y, weights = labelled_rows()
    limits = [
        bind(CONFIDENT, Table(None, y, sample_weight=weights, largest_weight=most)).bounds[0] for most in (3, 6, 30)
    ]
    plain = bind(CONFIDENT.partition(" with")[0], Table(None, y, sample_weight=weights)).bounds[0]
    assert plain > max(limits[:2]) > min(limits[:2]) > limits[2]
    asked = tighten(CONFIDENT, Table(None, y, sample_weight=weights, largest_weight=6)).bound
    assert limits[1] - plain == pytest.approx(asked - 0.3)


def test_the_limit_stays_with_a_saved_model(tmp_path):
    X, y, weights = labelled_rows()
    for given in ({"sample_weight": weights, "largest_weight": 6}, {"sample_weight": np.ones(400)}):
        model = boosted(X, y, **given)
        save(model, tmp_path / "model.cp")
        for again in (load(tmp_path / "model.cp"), pickle.loads(pickle.dumps(model))):  # noqa: S301 - our own bytes
            assert kept_table(again).largest_weight == given.get("largest_weight")
            np.testing.assert_array_equal(again.rebalance(goals=CONFIDENT).mixture_, model.mixture_)
