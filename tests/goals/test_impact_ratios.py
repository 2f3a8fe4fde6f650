"""Impact ratios: against counts by hand, fairlearn, exact tests in fractions, and in simulation."""

import os
from fractions import Fraction
from itertools import combinations
from math import comb, sqrt

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp

SETS = ["compas", "adult", pytest.param("acs-income", marks=pytest.mark.slow)]
TESTS = ("deviations", "fisher", "holm")


@pytest.fixture
def public(request):
    if not os.environ.get("COUNTERPOISE_DATA"):
        pytest.skip("needs real data: set COUNTERPOISE_DATA to a folder that holds the files")
    data = cp.datasets.load_dataset(request.param)
    return data.y, pd.DataFrame(data.sensitive)[["sex", "race"]]


def by_name(result, table):
    return {one.category: one for one in result.tables[table]}


@pytest.mark.parametrize("public", SETS, indirect=True)
def test_ratios_on_public_data_are_those_computed_by_hand(public):
    y, people = public
    result = cp.impact_ratios(y, people)
    assert list(result.tables) == ["sex", "race", "sex and race"]
    for table, columns in {"sex": ["sex"], "race": ["race"], "sex and race": ["sex", "race"]}.items():
        counted = people.assign(y=y).groupby(columns)["y"].agg(["size", "sum"])
        rates = {key: Fraction(int(row["sum"]), int(row["size"])) for key, row in counted.iterrows()}
        lines = by_name(result, table)
        assert len(lines) == len(rates)
        for key, rate in rates.items():
            one = lines[" / ".join([key] if isinstance(key, str) else key)]
            assert (one.applicants, one.selected) == tuple(counted.loc[key])
            assert (one.rate, one.ratio) == (float(rate), float(rate / max(rates.values())))
            assert one.low <= one.ratio <= one.high


@pytest.mark.parametrize("public", SETS, indirect=True)
def test_ratios_on_public_data_are_those_of_fairlearn(public):
    metrics = pytest.importorskip("fairlearn.metrics", reason="needs fairlearn, of the group bench")
    y, people = public
    frame = metrics.MetricFrame(metrics=metrics.selection_rate, y_true=y, y_pred=y, sensitive_features=people)
    lines = by_name(cp.impact_ratios(y, people), "sex and race")
    for key, rate in frame.by_group.dropna().items():
        assert lines[" / ".join(key)].rate == pytest.approx(rate, abs=1e-12)
    if not frame.by_group.isna().any():
        worst = min(one.ratio for one in lines.values())
        assert worst == pytest.approx(frame.ratio(method="between_groups"), abs=1e-12)


def exact_test(one, other):
    """Return Fisher's two-sided p-value as a fraction."""
    n, m, hits = one.applicants, other.applicants, one.selected + other.selected
    weights = [comb(n, k) * comb(m, hits - k) for k in range(min(n, hits) + 1)]
    return Fraction(sum(w for w in weights if w <= weights[one.selected]), comb(n + m, hits))


def test_tests_are_those_in_exact_fractions():
    rng = np.random.default_rng(0)
    for _ in range(20):
        group, hits = rng.integers(0, 4, 60), rng.integers(0, 2, 60)
        lines = list(by_name(cp.impact_ratios(hits, group), "group").values())
        most = max(lines, key=lambda one: one.rate)
        pairs = {frozenset(pair): float(exact_test(*pair)) for pair in combinations(lines, 2)}
        falling, corrected, largest = sorted(pairs, key=pairs.get), {}, 0.0
        for place, pair in enumerate(falling):
            largest = corrected[pair] = max(largest, min(1.0, (len(pairs) - place) * pairs[pair]))
        for one in lines:
            if one is most:
                assert np.isnan([getattr(one, name) for name in TESTS]).all()
                continue
            pooled = (one.selected + most.selected) / (one.applicants + most.applicants)
            spread = sqrt(pooled * (1 - pooled) * (1 / one.applicants + 1 / most.applicants))
            expected = (one.rate - most.rate) / spread, pairs[frozenset([one, most])], corrected[frozenset([one, most])]
            assert [getattr(one, name) for name in TESTS] == pytest.approx(expected)


@pytest.mark.parametrize("size", [30, 1000])
def test_intervals_of_two_categories_are_nearly_those_of_an_audit(size):
    hits, sex = np.repeat([1, 0, 1, 0], np.array([3, 7, 4, 6]) * size // 10), np.repeat(["F", "M"], size)
    low = by_name(cp.impact_ratios(hits, sex), "group")["F"].low
    for factor, is_shown in ((0.96, True), (1.04, False)):
        goal = f"positive_rate(group=F) >= {factor * low} * positive_rate(group=M)"
        (row,) = cp.audit(goal, hits, hits, sensitive_features=sex, confidence=0.975)
        assert (row.verdict == "holds") == is_shown


SHARES, RATES = np.array([0.45, 0.3, 0.2, 0.05]), np.array([0.4, 0.4, 0.3, 0.22])


@pytest.mark.parametrize("n_rows", [100, *(pytest.param(n, marks=pytest.mark.slow) for n in (400, 1600, 6400))])
def test_intervals_cover_and_corrected_tests_rarely_reject_equal_rates(n_rows):
    rng, n_draws = np.random.default_rng(n_rows), 200 if n_rows > 100 else 100
    misses, errors = np.zeros((2, 4)), 0
    for _ in range(n_draws):
        group = rng.choice(4, n_rows, p=SHARES)
        for one in cp.impact_ratios(rng.random(n_rows) < RATES[group], group).ratios:
            truth = RATES[int(one.category)] / RATES.max()
            misses[:, int(one.category)] += one.low > truth, one.high < truth
        errors += any(one.holm < 0.05 for one in cp.impact_ratios(rng.random(n_rows) < 0.3, group).ratios)
    limit = 3 * sqrt(n_draws * 0.025)
    assert misses.max() <= 0.025 * n_draws + limit
    assert errors <= 0.05 * n_draws + 3 * sqrt(n_draws * 0.05)


def test_unknown_people_are_counted_apart_in_each_table():
    people = {"sex": ["F", "M", None, "n/a", "F", "M"], "race": ["a", "a", "a", "b", None, "b"]}
    result = cp.impact_ratios([1, 1, 0, 1, 0, 0], people, unknown=["n/a"])
    counts = {
        name: [(one.category, one.applicants, one.selected) for one in result.tables[name]] for name in result.tables
    }
    assert counts["sex"] == [("F", 2, 1), ("M", 2, 1), ("(unknown)", 2, 1)]
    assert counts["race"] == [("a", 3, 2), ("b", 2, 1), ("(unknown)", 1, 0)]
    assert counts["sex and race"] == [("F / a", 1, 1), ("M / a", 1, 1), ("M / b", 1, 0), ("(unknown)", 3, 1)]
    assert "(unknown): not in the ratios." in str(result)


def test_small_categories_are_listed_and_left_out_for_a_reason():
    hits = np.repeat([1, 0, 1, 0, 1], [40, 60, 30, 69, 1])
    group = np.repeat(["M", "F", "X"], [100, 99, 1])
    listed = cp.impact_ratios(hits, group)
    assert by_name(listed, "group")["X"].ratio == 1.0
    assert "X: below 2% of the people." in str(listed)
    result = cp.impact_ratios(hits, group, exclude_small="One person says nothing.")
    lines = by_name(result, "group")
    assert (lines["X"].applicants, lines["X"].rate) == (1, 1.0)
    assert np.isnan(lines["X"].ratio)
    assert lines["M"].ratio == 1.0
    assert "X: below 2% of the people; left out of the ratios: One person says nothing." in str(result)
    none = cp.impact_ratios(np.tile([0, 1], 50), np.arange(100), exclude_small="too few")
    assert np.isnan([one.ratio for one in none.ratios]).all()
    assert not any(one.note for one in cp.impact_ratios(np.tile([0, 1], 50), np.repeat(["a", "b"], [98, 2])).ratios)


def test_scores_count_above_the_median_of_all_people():
    result = cp.impact_ratios([1, 2, 3, 3, 4, 9.5, 0], ["a", "a", "b", "b", "b", "a", None], kind="scores")
    assert [(one.category, one.selected, one.applicants) for one in result.ratios] == [
        ("a", 1, 3),
        ("b", 1, 3),
        ("(unknown)", 0, 1),
    ]
    assert "above 3, the median of these 7 scores" in str(result)
    assert "2 scores are equal to the median" in str(result)


@pytest.mark.parametrize("hits", [[0, 0, 0, 0], [1, 1, 1, 1]])
def test_nobody_or_everybody_selected(hits):
    lines = cp.impact_ratios(hits, ["a", "a", "b", "b"]).ratios
    assert [(one.low <= 1.0, one.high) for one in lines] == [(True, 1.0)] * 2
    assert [one.ratio for one in lines] == pytest.approx([1.0 if hits[0] else np.nan] * 2, nan_ok=True)
    assert cp.impact_ratios(hits, ["a"] * 4).ratios[0].note == ""


REFUSED = {
    "infinite": (([1.0, np.inf], ["a", "b"]), {"kind": "scores"}, "answers must"),
    "missing": (([1, None], ["a", "b"]), {}, "1 of 2 are missing"),
    "length": (([1, 0, 1], ["a", "b"]), {}, "one for each of the 2 people"),
    "several": ((["x", "y", "z"], list("abc")), {}, "Name the decision that selects with pos_label; got 3 decisions"),
    "measurement": ((np.arange(300) % 2, np.arange(300)), {}, "at most 100; there are 300"),
    "no reason": (([1, 0], ["a", "b"]), {"exclude_small": ""}, "must be the reason"),
    "nothing known": (([1, 0], [None, None]), {}, "No row has a known category"),
    "no number": ((["1", "x"], ["a", "b"]), {"kind": "scores"}, "answers must"),
    "kind": (([1, 0], ["a", "b"]), {"kind": "score"}, "kind must be"),
    "columns": (([1, 0], {str(name): ["a", "b"] for name in range(5)}), {}, "would be 31 tables"),
}


@pytest.mark.parametrize(("given", "options", "words"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_ratio_is_refused(given, options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        cp.impact_ratios(*given, **options)


@pytest.mark.parametrize("selects", [None, "hired"])
def test_the_decision_that_selects_is_named(selects):
    ratios = cp.impact_ratios(["hired", "rejected"] * 4, ["a"] * 4 + ["b"] * 4, pos_label=selects)
    assert f"The decision that selects is {selects or 'rejected'!r}." in str(ratios)


@pytest.mark.parametrize("kind", ["decisions", "scores"])
def test_weighted_ratios_are_those_in_exact_fractions(kind):
    rng, n = np.random.default_rng(1), 240
    weights, race = rng.integers(0, 5, n) / 4, rng.choice(["a", "b", "c"], n)
    sex, answers = np.where(rng.random(n) < 0.1, None, rng.choice(["F", "M"], n)), rng.integers(0, 2, n)
    answers = answers if kind == "decisions" else rng.permutation(n)
    result = cp.impact_ratios(answers, {"sex": sex, "race": race}, kind=kind, sample_weight=weights)
    assert list(result.tables) == ["sex", "race", "sex and race"]
    hits = answers == 1
    if kind == "scores":  # above the score that half of the weight does not exceed
        half = min(k for k in range(n) if 2 * weights[answers <= k].sum() >= weights.sum())
        hits = answers > half
    exact = {(None, None): [Fraction(0), Fraction(0)]}
    for person in zip(sex, race, weights, hits, strict=True):
        for key in [(person[0], person[1]), (person[0], None), ("all", person[1])]:
            total = exact.setdefault(key, [Fraction(0), Fraction(0)])
            total[0] += Fraction(person[2])
            total[1] += Fraction(person[2]) * int(person[3])
    known = {
        "sex": {one: exact[one, None] for one in "FM"},
        "race": {race: exact["all", race] for race in "abc"},
        "sex and race": {f"{one} / {race}": exact[one, race] for one in "FM" for race in "abc"},
    }
    for table, sums in known.items():
        lines = by_name(result, table)
        most = max(hit / total for total, hit in sums.values())
        for name, (total, hit) in sums.items():
            one = lines[name]
            expected = [float(total), float(hit), float(hit / total), float(hit / total / most)]
            assert [one.applicants, one.selected, one.rate, one.ratio] == pytest.approx(expected, rel=1e-12)
            assert np.isnan([one.low, one.high, one.deviations, one.fisher, one.holm]).all()
        assert ("(unknown)" in lines) == (table != "race")
    assert lines["(unknown)"].applicants == pytest.approx(float(exact[None, None][0]))
    assert "pass largest_weight" in str(result)
    assert "no Fisher's test, which are about counts" in str(result)


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [100, 1000])
def test_weighted_intervals_cover(n_rows):
    rng, n_draws, misses = np.random.default_rng(n_rows), 200, np.zeros((2, 2))
    # people of kind 0 weigh 2; of the others some weigh 1 and some 4, and are selected less often
    masses, shares, rates = np.array([2.0, 1.0, 4.0]), np.array([0.5, 0.3, 0.2]), np.array([0.5, 0.25, 0.15])
    truth = {"True": 1.0, "False": (0.3 * 0.25 + 0.8 * 0.15) / 1.1 / 0.5}
    for _ in range(n_draws):
        kind = rng.choice(3, n_rows, p=shares)
        people, hits = {"kind": (kind == 0).astype(str)}, rng.random(n_rows) < rates[kind]
        result = cp.impact_ratios(hits, people, sample_weight=masses[kind], largest_weight=5)
        for place, (name, one) in enumerate(by_name(result, "kind").items()):
            misses[place] += one.low > truth[name], one.high < truth[name]
    assert misses.max() <= 0.025 * n_draws + 3 * sqrt(n_draws * 0.025)
