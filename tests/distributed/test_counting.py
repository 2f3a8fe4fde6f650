"""Audits from counts: those of rows in one place, to the last digit, however rows are cut."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from counterpoise import audit, certify
from counterpoise._base.shards import LocalShards
from counterpoise.distributed.counting import audit_over
from counterpoise.goals import Table
from counterpoise.metrics import rate_table
from tests.distributed.engines import COUNTS, opened
from tests.tiers import slow

RNG = np.random.default_rng(7)
N_ROWS = 900
X = RNG.normal(size=(N_ROWS, 2))
SEX = np.where(RNG.random(N_ROWS) < 0.4, "F", "M")
AGE = RNG.integers(20, 60, N_ROWS)
Y = np.where(X[:, 0] + (SEX == "F") * X[:, 1] + RNG.normal(size=N_ROWS) > 0, "yes", "no")
BASELINE = np.where(X[:, 0] > 0, "yes", "no")
MODEL = LogisticRegression().fit(X[:200], Y[:200])
GOALS = [
    "recall >= 0.7",  # one share, exact
    "abs(positive_rate(sex=F) - positive_rate(sex=M)) <= 0.3",  # two groups
    "precision(age<=33) >= 0.5",  # a ratio on a range
    "churn <= 0.2",
    "f1_score >= 0.5",
]


def sources(n_shards):
    edges = np.linspace(0, N_ROWS, n_shards + 1).astype(int)
    rows = [slice(*ends) for ends in pairwise(edges)]
    held = [
        {"X": X[one], "y": Y[one], "columns": {"sex": SEX[one], "age": AGE[one]}, "baseline": BASELINE[one]}
        for one in rows
    ]
    return [partial(dict, **one) for one in held]


@pytest.fixture(scope="module")
def in_one_place():
    table = Table(X, Y, {"sex": SEX, "age": AGE}, BASELINE)
    return certify(MODEL, GOALS, datasets={"train": table})


@pytest.mark.parametrize(("engine", "n_shards"), [*(("threads", count) for count in COUNTS), slow("processes", 2)])
def test_an_audit_over_shards_is_that_of_rows_in_one_place_to_the_last_digit(engine, n_shards, in_one_place):
    with opened(engine, sources(n_shards)) as shards:
        found = audit_over(GOALS, shards, MODEL)
    assert tuple(found) == tuple(in_one_place)


def test_rows_with_weights_are_refused():
    weighed = partial(dict, X=X, y=Y, sample_weight=np.ones(N_ROWS))
    with LocalShards([weighed]) as shards, pytest.raises(ValueError, match="counts every row once; got sample_weight"):
        audit_over(GOALS[:1], shards, MODEL)


def test_a_shard_without_rows_counts_for_nothing_and_no_rows_at_all_are_refused():
    empty = partial(dict, X=X[:0], y=Y[:0])
    whole = partial(dict, X=X, y=Y)
    with LocalShards([empty, whole]) as shards:
        assert audit_over(GOALS[:1], shards, MODEL) == certify(MODEL, GOALS[:1], X, Y)
    with LocalShards([empty]) as shards, pytest.raises(ValueError, match="no rows in any shard"):
        audit_over(GOALS[:1], shards, MODEL)


def test_counts_of_a_table_are_rows_that_stand_there_as_often():
    said, true, sex, counts = [1, 0, 1, 0], [1, 1, 0, 0], ["F", "M", "F", "M"], [40, 7, 3, 50]
    long = [np.repeat(one, counts) for one in (said, true, sex)]
    short = Table(None, true, {"sex": sex}, counts=counts)
    goals = ["recall >= 0.6", "positive_rate(sex=F) >= 0.5 * positive_rate(sex=M)"]
    assert audit(goals, said, short) == audit(goals, long[0], Table(None, long[1], {"sex": long[2]}))
    table, whole = rate_table(said, true, {"sex": sex}, counts=counts), rate_table(*long[:2], {"sex": long[2]})
    assert str(table) == str(whole)
    assert [one.trials for one in table] == [one.trials for one in whole]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"counts": [1, 2]}, r"counts must have shape \(3,\), how many rows each stands for"),
        ({"counts": [1, 2, 0.5]}, "whole numbers of at least 0, some above it; got 0.5 in row 2"),
        ({"counts": [0, 0, 0]}, "got zeros only"),
        ({"counts": [1, 1, 1], "sample_weight": [1, 2, 3]}, "got sample_weight beside them"),
    ],
)
def test_counts_that_are_none_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Table(None, [0, 1, 1], **given)
