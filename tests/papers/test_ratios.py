"""Ratios beside peers: the experiment on rows that are drawn here, and its page."""

from dataclasses import replace

import numpy as np
import pytest

from papers.ratios import experiment, page


def drawn(n_rows=400):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n_rows)
    scores = 1 / (1 + np.exp(-(1.5 * y - 0.75 + rng.normal(size=n_rows))))
    return experiment.Rows(scores, y, rng.choice(["A", "B"], n_rows))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:OxonFair is left out")
def test_the_experiment_measures_every_method_and_its_page_has_the_verdict(tmp_path):
    parts = [experiment.Part("drawn", question, 0) for question in (experiment.F1, experiment.PRECISION)]
    rows = {part: experiment.measure_on(drawn(), part) for part in parts}
    methods = {row.method for own in rows.values() for row in own}
    assert {experiment.OURS, experiment.OURS_BY_GROUP, experiment.TUNED} <= methods
    study = replace(page.STUDY, parts=lambda *_: parts, measure=rows.__getitem__)
    text = study.write(study.run(tmp_path)).read_text(encoding="utf-8")
    assert "## Verdict: kept" in text
    assert "| TunedThreshold | F1 | 1 | 0 |" in text


def test_what_is_measured_is_the_metric_of_the_question():
    rows = drawn()
    said = rows.scores > 0.5
    hits = (said & (rows.y == 1)).sum()
    value = experiment._measured(experiment.F1, rows, said)["value"]
    assert value == pytest.approx(2 * hits / (said.sum() + rows.y.sum()))
    own = experiment._measured(experiment.PRECISION, rows, said)
    assert own["value"] == pytest.approx(hits / said.sum())
    assert own["goal met"] == float(hits >= 0.6 * rows.y.sum())
