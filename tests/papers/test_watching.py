"""The study of watched goals: truths are at the bounds, factors are the library's, and the page is written."""

import numpy as np
import pytest

from counterpoise import audit
from counterpoise.goals import Table
from counterpoise.theory.confidence import WeightedSample
from counterpoise.theory.sequential import log_wealth
from papers.promises import alarms, delay, together, watching
from papers.tables import ResultRow, ResultsTable


@pytest.mark.parametrize("method", alarms.METHODS)
def test_no_bet_gains_on_average_at_the_bound(method):
    for kind in alarms.KINDS.values():
        cells = alarms.cells_of(kind, are_weighted=method == "weighted")
        chances = np.diff(cells.ends, prepend=0.0)
        assert chances.sum() == pytest.approx(1.0)
        for number, source in enumerate(kind.sources):
            own = cells.streams == number
            assert chances[own].sum() == pytest.approx(source.share)
            gains = chances[own] @ cells.factors[:, own] / source.share
            np.testing.assert_allclose(gains, 1.0, rtol=1e-12)


def test_money_multiplied_up_row_by_row_is_the_evidence_of_the_library():
    cells = alarms.cells_of(alarms.KINDS["selection rate"], are_weighted=False)
    rows = np.array([0, 1, 1, 0, 1])
    money = cells.factors[0, rows].prod(axis=0).mean()
    sample = WeightedSample(np.array([0.0, 1.0]), np.ones(2), np.array([2.0, 3.0]), (0.0, 1.0))
    assert money == pytest.approx(np.exp(log_wealth(sample, np.array([0.3]))[0]))


def test_goals_of_the_joint_part_have_their_bounds_as_values():
    rows = together.make_batch(np.random.default_rng(0), 200_000)
    table = Table(None, rows["y"], rows["sensitive_features"], rows["baseline"], largest_value=1000)
    for one in audit(together.GOALS, rows["answers"], table, classes=[0, 1], defer_label=2):
        assert one.estimate == pytest.approx(one.bound, abs=0.5 if "cost" in str(one.goal) else 0.02)


def test_violations_are_found_and_delays_of_a_fixed_test_are_those_of_the_normal_approximation():
    (row, *_) = delay.measure(delay.Block(delay.DATASET, f"{delay.RATE}, 5", delay.OURS, 0))
    assert 0 < row.value <= 20_000
    (row, *_) = delay.measure(delay.Block(delay.DATASET, f"{delay.DIFFERENCE}, 5", delay.NAIVE, 0))
    assert row.value % delay.DAY == 0
    assert delay.fixed_rows(delay.RATE, 5, 0.5) == pytest.approx(1.645**2 * 0.21 / 0.05**2, rel=1e-3)


def test_the_rule_is_missed_where_too_many_streams_ever_fail():
    rows = [
        ResultRow(alarms.EXPERIMENT, "20,000 rows", "churn", "equal", 0, None, name, "", value)
        for name, value in ((alarms.STREAMS, 500.0), (alarms.FAILS, 45.0), (alarms.HOLDS, 10.0))
    ]
    rows += [
        ResultRow(delay.EXPERIMENT, delay.DATASET, "a rate, 5", delay.OURS, 0, None, "rows", str(number), value)
        for number, value in enumerate((500.0, 700.0, -1.0))
    ]
    blocks = watching.blocks(ResultsTable(tuple(rows)))
    assert "| churn | 0.0900 | 500 | **missed** |" in blocks["false alarms"]
    assert "| a rate | 5 | counterpoise | 700 | " in blocks["delay"]
