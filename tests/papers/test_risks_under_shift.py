"""One pool under several risks: the experiment on rows that are drawn here, and its page."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_classification

from counterpoise.datasets import TableData
from papers.risks_under_shift import experiment, page


@pytest.mark.slow
def test_the_experiment_measures_every_objective_and_its_page_shows_them(tmp_path):
    X, y = make_classification(5500, 4, n_informative=3, n_redundant=0, random_state=0)
    data = TableData("drawn", X, y, list("abcd"), np.zeros(4, bool), {}, None, "")
    rows = experiment.measure_on(data, experiment.Split("drawn", 0))
    assert len(rows) == 2 * 2 * (2 + len(experiment.OBJECTIVES)) * 4
    assert all(0 <= row.value <= 1 for row in rows)
    for family in (experiment.POOL, experiment.THRESHOLDS):
        own = [row for row in rows if row.learner == family and row.settings.endswith("2000")]
        tails = {row.method: row.value for row in own if row.quantity == experiment.TAIL}
        assert tails["CVaR, alpha 0.1"] <= tails["mean"] + 0.05
        errors = {row.method: row.value for row in own if row.quantity == experiment.ERROR}
        least = max(errors[experiment.BALL], errors[experiment.PLAIN])  # a coin makes a model no better
        assert errors[experiment.COIN] == pytest.approx(least)
    study = replace(page.STUDY, measure=lambda _split: rows, datasets=("drawn",), n_seeds=1)
    text = study.write(study.run(tmp_path)).read_text(encoding="utf-8")
    assert all(f"| {name} |" in text for name in experiment.OBJECTIVES)
    assert "## drawn, chosen on 300 rows: the thresholds of its first model" in text


def test_sub_populations_are_large_enough():
    X = np.column_stack([np.arange(100), np.zeros(100)])
    found = list(experiment.sub_populations(X))
    assert len(found) == 2
    assert all(0.05 <= is_inside.mean() < 1 for is_inside in found)
