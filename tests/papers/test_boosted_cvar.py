"""The reproduction of boosted CVaR: curves, learners, and what a run shows of Figure 1."""

import numpy as np
import pytest
from toy_tables import three_numbers_and_a_word

from papers.boosted_cvar import experiment as boosted_cvar
from papers.boosted_cvar.curves import METHODS
from papers.boosted_cvar.page import blocks, pattern_of
from papers.boosted_cvar.steps import ADAPTIVE, CONSTANT, MIXTURES, gains, measured
from papers.tables import ResultRow, ResultsTable

TINY = boosted_cvar.Protocol("toy", "tree", 6, (0.5, 0.2, 0.3), lp_alphas=(0.1,))


def toy_data(_name):
    """Return a small noisy data set with a categorical column."""
    return three_numbers_and_a_word("toy", 600, np.random.default_rng(0), lambda X: X[:, 0] + (X[:, 3] == 2) - 0.5)


@pytest.fixture
def toy(monkeypatch):
    loaded = []
    monkeypatch.setattr(boosted_cvar, "load_dataset", lambda name: loaded.append(name) or toy_data(name))
    return loaded


@pytest.mark.parametrize("name", ["tree", "shallow tree", "logistic", "network"])
def test_every_learner_fits(name):
    if name == "network":
        pytest.importorskip("torch", reason="needs torch: pip install counterpoise[torch]")
    data = toy_data("toy")
    X = boosted_cvar.as_features(name, data, np.arange(400))
    model = boosted_cvar.make_learner(name, data.categorical).fit(X[:400], data.y[:400])
    assert model.score(X[400:], data.y[400:]) > 0.6


def test_the_network_gets_its_categories_as_zeros_and_ones():
    features = boosted_cvar.as_features("network", toy_data("toy"), np.arange(400))
    assert features.shape == (600, 7)  # three numbers and four categories
    assert set(np.unique(features[:, 3:])) == {0.0, 1.0}
    np.testing.assert_allclose(features[:400, :3].mean(axis=0), 0, atol=1e-6)


def made_up_rows(erm, average, ada, lp):
    """Return rows of CVaR at alphas 0.05, 0.1 and 0.2, two seeds around each mean."""
    for method, values in zip(METHODS, (erm, average, ada, lp), strict=True):
        for alpha, value in zip((0.05, 0.1, 0.2), values, strict=False):
            for seed, moved in enumerate((value - 0.01, value + 0.01)):
                yield ResultRow("boosted-cvar", "toy", "tree", method, seed, alpha, "cvar", "test", moved)


def test_an_unknown_learner_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"learner must be 'tree'.*got 'forest'"):
        boosted_cvar.make_learner("forest", np.array([False]))


@pytest.mark.usefixtures("toy")
def test_measured_curves_are_what_theory_says():
    (repeat,) = boosted_cvar.wanted(["toy"], 1, protocols=(TINY,))
    rows = ResultsTable(tuple(boosted_cvar.measure(repeat, protocols=(TINY,))))
    erm = {row.alpha: row.value for row in rows.where(method="ERM", quantity="cvar")}
    error = rows.where(method="ERM", quantity="error").rows[0].value
    assert all(value == pytest.approx(min(1, error / alpha)) for alpha, value in erm.items())
    assert len(erm) == 50


@pytest.mark.parametrize(
    ("ada", "shown", "excess", "beyond"),
    [([0.91, 0.75, 0.5], True, "0.010", "+0.000"), ([0.95, 0.76, 0.45], False, "0.050", "-0.050")],
)
def test_a_run_shows_the_figure_where_the_curve_follows_the_lower_of_the_two(ada, shown, excess, beyond):
    rows = ResultsTable(
        tuple(made_up_rows([1.0, 0.8, 0.5] if shown else [1.0, 0.8, 0.4], [0.9, 0.75, 0.6], ada, [0.61]))
    )
    found = pattern_of(rows, "toy", "tree")
    assert found.shows_figure_1 == (found.excess <= 0.02)
    assert f"| toy | tree | 2 | {found.excess + 0.0:.3f} |" in blocks(rows)["pattern"]
    assert (found.excess <= 0.02) is shown
    assert f"{found.excess:.3f}" == excess
    assert f"{found.beyond:+.3f}" == beyond


def test_both_steps_are_measured_and_differ_by_seed_and_seed():
    rows = [row for seed in (0, 1) for row in measured(TINY, seed, toy_data("toy"))]
    assert {row.method for row in rows} == {f"{name}, {step}" for name in MIXTURES for step in (CONSTANT, ADAPTIVE)}
    assert all(0 <= row.value <= 1 for row in rows)
    made_up = [row._replace(value=0.25 * row.seed + (0.125 if ADAPTIVE in row.method else 0.0)) for row in rows]
    assert gains(ResultsTable(tuple(made_up)), 0.1)["toy", "tree"] == pytest.approx([0.125, 0.125])
