"""The reproduction runs, can be resumed, and its page is made of its table."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from toy_tables import three_numbers_and_a_word

from papers.boosted_cvar import experiment as boosted_cvar
from papers.boosted_cvar import page as boosted_cvar_page
from papers.boosted_cvar.curves import METHODS
from papers.boosted_cvar.pattern import in_short, pattern_of, table
from papers.boosted_cvar.steps import ADAPTIVE, CONSTANT, MIXTURES, measured, section
from papers.results import ResultRow, ResultsTable, read_rows

TINY = boosted_cvar.Protocol("toy", "tree", 6, (0.5, 0.2, 0.3), lp_alphas=(0.1,))
TOYS = replace(
    boosted_cvar_page.STUDY,
    parts=partial(boosted_cvar.wanted, protocols=(TINY,)),
    measure=partial(boosted_cvar.measure, protocols=(TINY,)),
    datasets=("toy",),
)


def toy_data(_name):
    """Return a small noisy data set with a categorical column."""
    return three_numbers_and_a_word("toy", 600, np.random.default_rng(0), lambda X: X[:, 0] + (X[:, 3] == 2) - 0.5)


@pytest.fixture
def toy(monkeypatch):
    loaded = []
    monkeypatch.setattr(boosted_cvar, "load_dataset", lambda name: loaded.append(name) or toy_data(name))
    return loaded


@pytest.mark.slow
def test_a_run_writes_its_table_and_page_and_goes_on_where_it_was(toy, tmp_path):
    table = TOYS.run(tmp_path, n_seeds=1)
    first = read_rows(table).rows
    TOYS.run(tmp_path, n_seeds=2)
    both = read_rows(table).rows
    assert both[: len(first)] == first
    assert {row.seed for row in both} == {0, 1}
    TOYS.run(tmp_path, n_seeds=2)
    assert toy == ["toy", "toy"]
    assert len(read_rows(table).rows) == len(both)
    page = TOYS.write(table).read_text(encoding="utf-8")
    assert "| AdaLPBoost | " in page
    assert all((tmp_path / name).stat().st_size > 5000 for name in ("cvar.png", "error.png", "rounds.png"))


def test_measured_curves_are_what_theory_says(toy, tmp_path):
    rows = read_rows(TOYS.run(tmp_path, n_seeds=1))
    assert toy == ["toy"]
    erm = {row.alpha: row.value for row in rows.where(method="ERM", quantity="cvar")}
    error = rows.where(method="ERM", quantity="error").rows[0].value
    assert all(value == pytest.approx(min(1, error / alpha)) for alpha, value in erm.items())
    assert len(erm) == 50


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


SHOWS = made_up_rows([1.0, 0.9, 0.5], [0.6, 0.6, 0.6], [0.6, 0.6, 0.51], [0.61])
LACKS = made_up_rows([1.0, 0.8, 0.4], [0.9, 0.75, 0.5], [0.95, 0.76, 0.45], [0.9])


def test_what_the_page_says_of_the_pattern_follows_from_the_figures():
    shows, lacks = (pattern_of("toy", name, rows) for name, rows in (("tree", SHOWS), ("network", LACKS)))
    assert shows.lacks == []
    assert lacks.lacks == [
        "AdaLPBoost is 0.040 below ERM at alpha 0.1",
        "AdaLPBoost is 0.050 above the lower of ERM and the average at alpha 0.2",
        "Regularized LPBoost is 0.050 away from AdaLPBoost at alpha 0.05",
    ]
    assert in_short([shows]) == "All 1 runs here show it."
    assert in_short([shows, lacks]) == "Of 2 runs here 1 show it, and 1 not: toy with network."
    assert "1 of 2 do. The others:" in table([shows, lacks])
    assert "- toy with network: AdaLPBoost is 0.040 below" in table([shows, lacks])


def test_the_stored_page_says_what_its_tables_say():
    """Not a word of it is written by hand: the page is what its generator makes of the tables beside it."""
    folder = Path(__file__).parents[2] / "docs" / "results" / "boosted_cvar"
    if not (folder / "results.parquet").exists():
        pytest.skip("needs the stored tables of docs/results/boosted_cvar, which a source distribution is without")
    rows = [read_rows(folder / name) for name in ("results.parquet", "networks.parquet")]
    patterns = [
        boosted_cvar_page.measured_pattern(one, *pair) for one in rows for pair in boosted_cvar_page.pairs_of(one)
    ]
    page = (folder / "README.md").read_text(encoding="utf-8")
    assert table(patterns) in page
    assert in_short(patterns) in page
    without = {(one.dataset, one.learner) for one in patterns if one.lacks}
    assert {("cifar10", "WRN-28-1"), ("cifar10", "WRN-28-1, long warm-up")} <= without


def test_an_unknown_learner_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"learner must be 'tree'.*got 'forest'"):
        boosted_cvar.make_learner("forest", np.array([False]))


def test_both_steps_are_measured_and_differ_by_seed_and_seed():
    rows = [row for seed in (0, 1) for row in measured(TINY, seed, toy_data("toy"))]
    assert {row.method for row in rows} == {f"{name}, {step}" for name in MIXTURES for step in (CONSTANT, ADAPTIVE)}
    assert all(0 <= row.value <= 1 for row in rows)
    made_up = [row._replace(value=0.25 * row.seed + (0.125 if ADAPTIVE in row.method else 0.0)) for row in rows]
    assert "| toy | tree | AdaLPBoost | 0.1 | 0.125 | 0.250 | +0.125 ± 0.000 |" in section(ResultsTable(tuple(made_up)))
