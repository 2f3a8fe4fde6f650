"""Goals between groups: the helpers that write them for every pair, and rows that belong to no group."""

import numpy as np
import pandas as pd
import pytest

from counterpoise import GoalClassifier, audit
from counterpoise.goals import (
    Dataset,
    Table,
    demographic_parity,
    eighty_percent_rule,
    equal_opportunity,
    equalized_odds,
    parse_goal,
    positive_rate,
    recall,
)

TRAIN, MAIL = Dataset("train"), Dataset("mail")


def test_helpers_compare_every_pair_of_groups():
    groups = TRAIN.by(sex=["F", "M"], race=["a", "b"])
    assert [str(group) for group in groups][1] == "train, race=b, sex=F"
    assert len(demographic_parity(groups)) == len(equal_opportunity(groups)) == len(eighty_percent_rule(groups)) == 12
    assert len(equalized_odds(groups)) == 24
    women, men = TRAIN.by(sex=["F", "M"])
    assert demographic_parity([women, men], within=0.1)[0] == (positive_rate(women) <= positive_rate(men) + 0.1)
    assert str(equal_opportunity([women, men])[1]) == "recall(sex=M) <= recall(sex=F) + 0.05"
    assert eighty_percent_rule([women, men], ratio=0.9)[0] == (positive_rate(women) >= 0.9 * positive_rate(men))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: demographic_parity([TRAIN]), "two Datasets or more"),
        (lambda: demographic_parity(["F", "M"]), "two Datasets or more"),
        (lambda: demographic_parity(TRAIN), "two Datasets or more"),
        (lambda: eighty_percent_rule([TRAIN, MAIL], ratio="most"), r"ratio must be a number in \(0, 1\]; got 'most'"),
        (lambda: demographic_parity([TRAIN, MAIL], within=1.5), r"within must lie in \[0, 1\)"),
        (lambda: eighty_percent_rule([TRAIN, MAIL], ratio=0), r"ratio must lie in \(0, 1\]"),
    ],
)
def test_helpers_refuse_what_makes_no_goals(call, text):
    with pytest.raises((TypeError, ValueError), match=text):
        call()


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT, ""])
@pytest.mark.parametrize("values", [["a", "a", "b", "b"], [1.0, 1.0, 2.0, 2.0]], ids=["texts", "numbers"])
def test_rows_without_a_group_are_a_group(missing, values):
    table = Table(None, [1] * 6, {"g": np.array([*values, missing, missing], dtype=object)})
    said, both = [1, 1, 1, 0, 0, 0], {"classes": [0, 1]}
    assert recall(g="(missing)").value(said, table, **both) == 0
    assert parse_goal("recall(g='(missing)') >= 0.5").evaluate(said, table, **both).violation == 0.5
    assert parse_goal("every_group(recall, by=g) >= 0.5").evaluate(said, table, **both).violation == 0.5
    assert parse_goal("max_difference(recall, by=g) <= 0.25").evaluate(said, table, **both).violation == 0.75


@pytest.mark.parametrize("other", ["1.0", "1e0", "01", "1.00"])
def test_equal_numbers_are_one_group_however_written(other):
    rng = np.random.default_rng(0)
    y, said, g = rng.integers(2, size=(3, 400))
    rows = audit(
        [f"positive_rate(g=1) - positive_rate({same}) <= 0.1" for same in (f"g={other}", "1<=g<=1")],
        said,
        Table(None, y, {"g": g}),
    )
    assert rows[0][1:4] == rows[1][1:4]  # as of two names of the same rows, and not of two independent samples
    assert (rows[0].high - rows[0].low) > 0.2
    assert Dataset("train").where(g=1).where(g=other) == Dataset("train").where(g=1)
    for column in (g, g.astype(float), g.astype(object), np.where(g == 1, 1.0, 0).astype(object)):
        assert recall(g=other).value(said, Table(None, y, {"g": column})) == recall(g=1).value(
            said, Table(None, y, {"g": g})
        )


def test_thousands_of_groups_are_refused():
    """Each row is looked at once: a list of rows for each group would take minutes."""
    n_groups = 20_000
    y, group = np.tile([0, 1], n_groups), np.arange(2 * n_groups) % n_groups
    table = Table(None, y, {"g": group, "h": group // 2})
    with pytest.raises(ValueError, match="over at most 50 groups; by 'g' there are 20000"):
        audit("every_group(recall, by=g) >= 0.5", y, table)
    with pytest.raises(ValueError, match="The group 'g=0, h=0' has 2 rows to choose a threshold on"):
        GoalClassifier([y / 2], cv="prefit", decision="sticky", alpha=1.0, by=["g", "h"]).fit(
            np.zeros((2 * n_groups, 1)), y, sensitive_features={"g": group, "h": group // 2}
        )


@pytest.mark.parametrize("labels", [np.array(["yes", "no", ""]), np.array(["yes", "no", ""], dtype=object)])
def test_an_empty_text_is_no_label(labels):
    with pytest.raises(ValueError, match="y must hold a label for each row; 1 of 3 are missing"):
        Table(None, labels)
