"""Comparisons of groups inside strata: their language, values, what they leave out, audits, and wrong uses."""

from itertools import permutations

import numpy as np
import pytest

from counterpoise import audit
from counterpoise.goals import (
    NoRows,
    Table,
    demographic_parity_ratio,
    equalized_odds_difference,
    max_difference,
    min_ratio,
    parse_goal,
    selection_rate,
    validate_goals,
)

WRITTEN = {
    "max_difference(positive_rate, by=sex, within=job) <= 0.05": (
        max_difference(selection_rate, by="sex", within="job") <= 0.05
    ),
    "min_ratio(recall, mail, by=sex, within=job, within='within', min_rows=5) >= 0.8": (
        min_ratio("recall", "mail", by="sex", within=["job", "within"], min_rows=5) >= 0.8
    ),
    "equalized_odds_difference(by=sex, within=job, average=True) <= 0.1": (
        equalized_odds_difference(by="sex", within="job", average=True) <= 0.1
    ),
    "demographic_parity_ratio(age<=60, by=sex, within=job, average=True, min_rows=3) >= 0.8": (
        demographic_parity_ratio("age<=60", by="sex", within="job", average=True, min_rows=3) >= 0.8
    ),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_text_and_python_are_one_goal_which_prints(text):
    goal = parse_goal(text)
    assert goal == WRITTEN[text]
    assert str(goal) == text
    without = parse_goal(text.replace(", within=job", "", 1).replace(", average=True", ""))
    assert goal != without
    assert hash(goal) == hash(WRITTEN[text])


WRONG = {
    "max_difference(recall, by=sex, within=sex) <= 0.1": "a column is in one of them; got 'sex' in both",
    "max_difference(recall, by=sex, average=true) <= 0.1": "average=True averages over strata.* needs their columns",
    "max_difference(recall, by=sex, within=job, average=maybe) <= 0.1": "average must be True or False; got 'maybe'",
    "max_difference(recall, by=sex, within=job, average=1, average=0) <= 0.1": "average must stand once in max_diff",
    "every_group(recall, by=sex, within=job) >= 0.1": "every_group compares no groups, so it has no strata: name all",
    "every_class(recall, within=job) >= 0.1": "every_class compares no groups, so it has no strata",
    "max_difference(recall, within=job) <= 0.1": "max_difference is over the groups of a column, as by=sex",
    "max_difference(recall, by=sex, within=job) >= 0.1": "can be bounded with <= only",
    "min_ratio(recall, by=sex, within=job) >= 1.5": "cannot hold|from 0 to 1|conflict",
    "recall(within=job) >= 0.1": "within is a word of the language of goals, for the columns that make strata",
    "macro(recall, average=true) >= 0.1": "average is a word of the language of goals, for averages over strata",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_text_is_answered_in_a_sentence(text):
    with pytest.raises((ValueError, TypeError), match=WRONG[text]):
        validate_goals(text, trains=True)


def test_wrong_arguments_are_refused_in_python():
    with pytest.raises(TypeError, match="within must be the name of a column, or a list of names, as within='job'"):
        max_difference("recall", by="sex", within=3)
    with pytest.raises(TypeError, match="average must be True or False; got 1"):
        max_difference("recall", by="sex", within="job", average=1)


def random_rows(seed):
    """Return labels, predictions, three groups, strata with odd names, weights and the least number of rows."""
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(20, 150))
    columns = {
        "sex": rng.choice(["F", "M", "X"], n_rows, p=[0.5, 0.35, 0.15]),
        "job": rng.choice(["NA", "None", "true", "it's", ""], n_rows),
        "year": rng.integers(1, 3, n_rows),
    }
    y, said = rng.integers(0, 2, n_rows), rng.integers(0, 2, n_rows)
    weights = rng.integers(1, 4, n_rows).astype(float) if rng.random() < 0.5 else None
    return y, said, columns, weights, int(rng.integers(0, 6))


def compared(y, columns, weights, within, least, metric):
    """Return the masks of the groups of each stratum, and its weight, without those that are too small or alone."""
    weights = np.ones(len(y)) if weights is None else weights
    counts = y == 1 if metric == "recall" else np.ones(len(y), bool)
    key = np.array(["|".join(one) for one in zip(*(columns[name].astype(str) for name in within), strict=True)])
    strata = {}
    for stratum in np.unique(key):
        masks = {sex: (key == stratum) & (columns["sex"] == sex) & counts for sex in "FMX"}
        kept = {sex: mask for sex, mask in masks.items() if mask.sum() >= max(least, 1)}
        if len(kept) > 1:
            strata[stratum] = kept, sum(weights[mask].sum() for mask in kept.values())
    return strata


def by_hand(shares, strata, *, average, ratio):
    """Return every comparison, a row for each; ``shares(mask)`` is a rate, or one of each of several rules."""

    def compare(one, other):
        with np.errstate(invalid="ignore", divide="ignore"):
            return one / other if ratio else one - other

    if not average:
        pairs = [pair for kept, _ in strata.values() for pair in permutations(kept.values(), 2)]
        return [compare(shares(one), shares(other)) for one, other in pairs]
    rows = []
    for pair in permutations("FMX", 2):
        common = [(kept, size) for kept, size in strata.values() if all(sex in kept for sex in pair)]
        whole = sum(size for _, size in common)
        if common:
            rows.append(compare(*(sum(size / whole * shares(kept[sex]) for kept, size in common) for sex in pair)))
    return rows


@pytest.mark.parametrize("seed", range(20))
def test_values_are_those_of_groups_inside_strata(seed):
    y, said, columns, weights, least = random_rows(seed)
    table = Table(None, y, columns, sample_weight=weights)
    metric, average = ["recall", "positive_rate"][seed % 2], bool(seed // 2 % 2)
    within = ["job", "year"][: 1 + seed // 4 % 2]
    strata = compared(y, columns, weights, within, least, metric)

    def share(mask):
        return np.average(said[mask], weights=None if weights is None else weights[mask])

    phrase = max_difference(metric, by="sex", within=within, average=average, min_rows=least)
    if not strata:
        with pytest.raises(NoRows, match="no stratum has two groups"):
            (phrase <= 0.1).evaluate(said, table, classes=[0, 1])
        return
    check = (phrase <= 0.1).evaluate(said, table, classes=[0, 1])
    assert check.value == pytest.approx(max(by_hand(share, strata, average=average, ratio=False)), abs=1e-12)
    assert ("averaged over strata" in check.worst) == average
    ratios = min_ratio(metric, by="sex", within=within, average=average, min_rows=least)
    values = np.array(by_hand(share, strata, average=average, ratio=True))
    if np.isfinite(values).all():
        assert (ratios >= 0.1).evaluate(said, table, classes=[0, 1]).value == pytest.approx(values.min())


def test_small_alone_and_apart_groups_are_listed():
    sex = np.array(list("FFMM" + "FFM" + "MMXX" + "FFF"))
    job = np.array(["nurse"] * 4 + ["cook"] * 3 + ["smith"] * 4 + ["pilot"] * 3)
    y = np.arange(14) % 2
    goal = parse_goal("max_difference(positive_rate, by=sex, within=job, min_rows=2) <= 1")
    check = goal.evaluate(y, Table(None, y, {"sex": sex, "job": job}))
    assert check.left_out == (
        "job=cook, sex=M (1 row)",
        "job=cook (of its groups only sex=F)",
        "job=pilot (of its groups only sex=F)",
        "sex=F beside sex=X (in no stratum together)",
    )
    (row,) = audit(goal, y, Table(None, y, {"sex": sex, "job": job}))
    assert row.left_out == check.left_out


def test_one_group_in_every_stratum_is_refused_and_cannot_be_audited():
    columns = {"sex": np.repeat(["F", "M"], 20), "job": np.repeat(["nurse", "cook"], 20)}
    y = np.arange(40) % 2
    goal = parse_goal("max_difference(positive_rate, by=sex, within=job) <= 0.1")
    with pytest.raises(NoRows, match="by 'sex' within 'job' no stratum has two groups"):
        goal.evaluate(y, Table(None, y, columns))
    (row,) = audit(goal, y, Table(None, y, columns))
    assert row.verdict == "undecided"
