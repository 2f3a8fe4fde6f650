"""Ours against every peer: rows that are drawn here, made-up tables, and what the stored page must say."""

import numpy as np
import pytest

from counterpoise.datasets import TableData
from counterpoise.goals import Table, parse_goal
from papers.comparison import experiment, page, peers
from papers.comparison.methods import OURS_NAME, Method
from papers.comparison.questions import GOALS, PARITY, PRECISION, RATIO, RECALL, tail_of
from papers.comparison.rows import Sizes, Source, split
from papers.comparison.verdicts import Measured, in_all, verdicts
from papers.tables import ResultRow, ResultsTable


@pytest.fixture(scope="module")
def case():
    pytest.importorskip("lightgbm", reason="the shared model")
    rng = np.random.default_rng(0)
    man = rng.random(1500) < 0.6
    X = np.column_stack([man, rng.normal(size=(1500, 2)) + 0.3 * man[:, None], rng.integers(0, 3, 1500)])
    y = (X[:, 1] + 0.6 * man + 0.3 * X[:, 3] + 0.7 * rng.normal(size=1500) > 1.0).astype(int)
    sex = {"sex": np.where(man, "Male", "Female")}
    data = TableData("drawn", X, y, ["sex", "a", "b", "kind"], np.array([True, False, False, True]), sex, None, "")
    return split(data, Source("drawn", 1500, "sex"), 0, Sizes(100, 800, 500))


def rows_of(case, method):
    part = experiment.Part("drawn", method.name, 0)
    return ResultsTable(tuple(experiment.measure_on(case, part, method)))


def test_the_parts_of_a_split_share_no_row(case):
    parts = (case.fit, case.test)
    assert [len(part.y) for part in parts] == [800, 500]
    assert len(np.unique(np.concatenate([part.X[:, 1] for part in parts]))) == 1300


def test_scores_of_the_rows_to_fit_are_out_of_fold(case):
    of_all = case.new().fit(case.fit.X, case.fit.y)
    assert case.test.scores == pytest.approx(of_all.predict_proba(case.test.X))
    seen, unseen = (
        np.abs(case.fit.y - scores[:, 1]).mean() for scores in (of_all.predict_proba(case.fit.X), case.fit.scores)
    )
    assert seen < unseen


@pytest.mark.parametrize("question", GOALS.values(), ids=list(GOALS))
def test_values_are_what_the_goals_say(case, question):
    rows, rng = case.test, np.random.default_rng(1)
    table = Table(None, rows.y, {"group": rows.group}, baseline=rows.deployed)
    for _ in range(5):
        said = rng.integers(0, 2, rows.y.size)
        value = question.value(rows, said.astype(float))
        for near in (value - 1e-3, value + 1e-3):
            goal = parse_goal(question.limit.format(bound=-near if question.is_floor else near))
            assert goal.evaluate(said, table).holds == (value <= near)


def test_groups_of_whom_nobody_is_selected_are_equal(case):
    assert GOALS[RATIO].value(case.test, np.zeros(case.test.y.size)) == -1.0


@pytest.mark.slow
def test_ours_meets_its_bounds_on_the_rows_that_it_chose_on(case):
    method = experiment.METHODS[OURS_NAME]._replace(asks=(PARITY, RECALL), tails=None)
    chosen = rows_of(case._replace(test=case.fit), method)
    for name in method.asks:
        sign = -1 if GOALS[name].is_floor else 1
        for bound in GOALS[name].frontier:
            (row,) = chosen.where(learner=name, quantity=experiment.VALUE, settings=f"bound={bound:g}")
            assert row.value <= sign * bound + 1e-6
    costs = [row.value for row in chosen.where(learner=PARITY, quantity=experiment.COST)]
    least = np.minimum.accumulate(costs)
    assert (np.array(costs) <= least + 0.01).all()  # a looser bound costs no more, but for what is not surely better


@pytest.mark.slow
def test_one_threshold_finds_what_a_tuned_one_finds(case):
    tuned = experiment.METHODS["TunedThreshold"]._replace(asks=(RECALL, PRECISION))
    ours = experiment.METHODS[OURS_NAME]._replace(asks=tuned.asks, tails=None)
    other, found = (rows_of(case._replace(test=case.fit), method) for method in (tuned, ours))
    for row in other.where(quantity=experiment.COST):
        (same,) = found.where(learner=row.learner, quantity=experiment.COST, settings=row.settings)
        assert same.value <= row.value + 1e-6


def test_threshold_optimizer_is_within_its_bound_on_the_rows_that_it_chose_on(case):
    pytest.importorskip("fairlearn", reason="a peer")
    method = experiment.METHODS["ThresholdOptimizer"]
    rows = peers.quietly(lambda: rows_of(case._replace(test=case.fit), method))
    values = {row.settings: row.value for row in rows.where(learner=PARITY, quantity=experiment.VALUE)}
    assert all(values[f"bound={bound:g}"] <= bound + 0.01 for bound in GOALS[PARITY].bounds)


def test_what_fails_and_what_is_missing_are_rows(case):
    def fails(_case):
        def ask(_question, bound):
            if bound < 0.05:
                raise ValueError("no such threshold")
            return np.zeros(500)

        return ask

    def lacks(_case):
        raise ModuleNotFoundError("No module named 'peer'")

    rows = rows_of(case, Method("OxonFair", fails, (PARITY,), (PARITY,)))
    (failed,) = rows.where(quantity=experiment.FAILED)
    assert failed.settings == "bound=0.02 ValueError: no such threshold"
    assert len(rows.where(quantity=experiment.COST)) == 2
    (missing,) = rows_of(case, Method("dro", lacks, (PARITY,), needs="peer"))
    assert missing.settings == "peer: No module named 'peer'"
    assert not experiment.is_final(missing)
    assert all(map(experiment.is_final, rows))


def test_a_tail_is_no_less_than_the_average():
    average, tail = tail_of(np.array([1.0, 0.0, 0.0, 0.0]), 0.5)
    assert (average, tail) == (0.25, 0.5)


def made_up(ours, peer, peer_name="LightGBM", n_splits=6):
    """Return a table in which costs lie on a line, and the peer's so far from it; a little noise is shared by all."""
    rng = np.random.default_rng(0)
    rows = []
    for seed in range(n_splits):
        noise = 0.01 * rng.normal()
        for method, settings, value, cost in (
            (OURS_NAME, "bound=0", 0.0, 0.3),
            (OURS_NAME, "bound=1", 0.2, 0.2),
            (peer_name, "", 0.1, 0.25 + peer - ours),
        ):
            where = experiment.NAME, "drawn", PARITY, method, seed, None
            jitter = 0.001 * rng.normal()
            rows.append(ResultRow(*where, experiment.VALUE, "test", value, settings))
            rows.append(ResultRow(*where, experiment.COST, "test", cost + noise + jitter, settings))
    return ResultsTable(tuple(rows))


def test_where_one_is_stricter_and_the_other_cheaper_nothing_is_decided():
    table = made_up(0.0, 0.2)  # the peer costs far more
    beyond = [
        row._replace(value=-0.1) if (row.method, row.quantity) == ("LightGBM", experiment.VALUE) else row
        for row in table
    ]
    (found,) = verdicts(Measured(ResultsTable(tuple(beyond))))
    assert (found.word, found.n_apart, found.n_splits) == ("undecided", 1, 0)
    cheaper = [row._replace(value=row.value - 0.4) if row.method == "LightGBM" else row for row in beyond]
    (found,) = verdicts(Measured(ResultsTable(tuple(cheaper))))
    assert found.word == "ours more"  # the peer is stricter and cheaper


def test_tables_at_the_bounds_count_splits_that_all_methods_have():
    where = experiment.NAME, "drawn"
    rows = [
        ResultRow(*where, question, method, seed, None, experiment.VALUE, "test", 0.5, "bound=0.1")
        for method, n_splits in ((OURS_NAME, 4), ("OxonFair", 3), ("MAPIE", 1))
        for seed in range(n_splits)
        for question in ((RECALL,) if method == "MAPIE" else (PARITY, RECALL))
    ]
    kept = in_all(ResultsTable(tuple(rows)))
    assert {row.seed for row in kept.where(learner=PARITY)} == {0, 1, 2}
    assert {row.seed for row in kept.where(learner=RECALL)} == {0}


def test_all_splits_of_the_first_seed_come_first():
    seeds = [part.seed for part in experiment.wanted(experiment.DATASETS, 2)]
    assert seeds == sorted(seeds)
    tails = {part.method for part in experiment.wanted(("covertype",), 1)}
    assert tails == {OURS_NAME, "LightGBM", "HistGradientBoosting"}


@pytest.mark.parametrize(
    ("ahead", "n_splits", "word"),
    [(0.02, 6, "ours less"), (0.0, 6, "equivalent"), (-0.02, 6, "ours more"), (0.0, 4, "undecided")],
)
def test_a_pair_is_equivalent_where_its_interval_lies_within_a_point(ahead, n_splits, word):
    (found,) = verdicts(Measured(made_up(0.0, ahead, n_splits=n_splits)))
    assert (found.peer, found.dataset, found.question, found.word) == ("LightGBM", "drawn", PARITY, word)
    assert found.low < -100 * ahead < found.high


def test_shares_of_bounds_that_hold_are_over_the_bounds_that_everyone_is_asked_for():
    where = experiment.NAME, "drawn", PARITY, "error-parity", 0, None
    points = ("bound=0.02", 0.05), ("bound=0.05", 0.01), ("bound=0.3", 0.9)  # nobody is asked for the last
    rows = [ResultRow(*where, what, "test", value, bound) for bound, value in points for what in ("value", "cost")]
    rows.append(ResultRow(*where, experiment.SECONDS, "", 1.0))
    assert "| error-parity | 1 | 0.50 | 1 |" in page.blocks(ResultsTable(tuple(rows)))["kept"]
