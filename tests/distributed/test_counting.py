"""Audits from counts: those of rows in one place, to the last digit, however rows are cut."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from counterpoise import audit, certify
from counterpoise.distributed import audit_over
from counterpoise.goals import Table
from counterpoise.metrics import rate_table
from tests.distributed.cuts import COUNTS, cut

pytest.importorskip("dask.dataframe")

RNG = np.random.default_rng(7)
N_ROWS = 900
X = RNG.normal(size=(N_ROWS, 2))
SEX = np.where(RNG.random(N_ROWS) < 0.4, "F", "M")
AGE = RNG.integers(20, 60, N_ROWS)
Y = np.where(X[:, 0] + (SEX == "F") * X[:, 1] + RNG.normal(size=N_ROWS) > 0, "yes", "no")
BASELINE = np.where(X[:, 0] > 0, "yes", "no")
MODEL = LogisticRegression().fit(pd.DataFrame(X[:200], columns=["0", "1"]), Y[:200])
GOALS = [
    "recall >= 0.7",  # one share, exact
    "abs(positive_rate(sex=F) - positive_rate(sex=M)) <= 0.3",  # two groups
    "precision(age<=33) >= 0.5",  # a ratio on a range
    "churn <= 0.2",
    "f1_score >= 0.5",
]


FRAME = pd.DataFrame({"0": X[:, 0], "1": X[:, 1], "y": Y, "sex": SEX, "age": AGE, "deployed": BASELINE})
NAMES = {"sensitive_features": ["sex", "age"], "baseline": "deployed"}


@pytest.fixture(scope="module")
def in_one_place():
    table = Table(FRAME[["0", "1"]], Y, {"sex": SEX, "age": AGE}, BASELINE)
    return certify(MODEL, GOALS, datasets={"train": table})


@pytest.mark.parametrize("n_parts", COUNTS)
def test_an_audit_over_dask_is_that_of_rows_in_one_place_to_the_last_digit(n_parts, in_one_place):
    assert tuple(audit_over(GOALS, MODEL, cut(FRAME, n_parts), "y", **NAMES)) == tuple(in_one_place)


def test_a_partition_without_rows_counts_for_nothing_and_no_rows_at_all_are_refused():
    found = audit_over(GOALS[:1], MODEL, cut(FRAME[:2], 7), "y", **NAMES)
    assert found == certify(MODEL, GOALS[:1], FRAME[:2][["0", "1"]], Y[:2])
    with pytest.raises(ValueError, match="no rows in any partition"):
        audit_over(GOALS[:1], MODEL, cut(FRAME[:0], 2), "y", **NAMES)


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
