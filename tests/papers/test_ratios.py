"""Ratios beside peers: the experiment on rows that are drawn here, and its page."""

import numpy as np
import pytest

from papers.comparison import ratios as experiment
from papers.tables import ResultsTable


def drawn(n_rows=400):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n_rows)
    scores = 1 / (1 + np.exp(-(1.5 * y - 0.75 + rng.normal(size=n_rows))))
    return experiment.Rows(scores, y, rng.choice(["A", "B"], n_rows))


def test_what_is_measured_is_the_metric_of_the_question():
    rows = drawn()
    said = rows.scores > 0.5
    hits = (said & (rows.y == 1)).sum()
    value = experiment._measured(experiment.F1, rows, said)["value"]
    assert value == pytest.approx(2 * hits / (said.sum() + rows.y.sum()))
    own = experiment._measured(experiment.PRECISION, rows, said)
    assert own["value"] == pytest.approx(hits / said.sum())
    assert own["goal met"] == float(hits >= 0.6 * rows.y.sum())


def test_gains_are_those_over_each_peer_and_the_rule_is_kept():
    rows = [row for question in (experiment.F1, experiment.PRECISION) for row in
            experiment.measure_on(drawn(), experiment.Part("drawn", question, 0))]  # fmt: skip
    assert {experiment.OURS, experiment.OURS_BY_GROUP, experiment.TUNED} <= {row.method for row in rows}
    blocks = experiment.blocks(ResultsTable(tuple(rows)))
    assert "The rule is **kept**" in blocks["gains"]
    assert "| TunedThreshold | F1 | 1 | +0." in blocks["gains"]
