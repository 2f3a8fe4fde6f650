"""The study of goals that hold for new people, on a small population made up here, and its page."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from counterpoise import GoalClassifier
from counterpoise.goals import Table, as_goals
from papers.comparison.questions import PARITY, RECALL
from papers.holding import experiment, page, peers, persons, planned, trained
from papers.holding.page import sections
from papers.results import ResultRow, ResultsTable


@pytest.fixture(scope="module")
def known():
    rng = np.random.default_rng(0)
    group = np.where(rng.random(20_000) < 0.4, "A", "B")
    x = rng.normal(size=20_000) - 0.3 * (group == "A")
    y = (rng.random(20_000) < 1 / (1 + np.exp(1 - 1.5 * x))).astype(int)
    return experiment.Population(1 / (1 + np.exp(1 - 1.3 * x)), y, group, (x > 0.4).astype(int))


def test_a_draw_says_of_each_way_of_choosing_whether_it_held_and_what_it_cost(known):
    goals = as_goals(["recall >= 0.7", "max_difference(positive_rate, by=group) <= 0.08"])
    rows = np.random.default_rng(1).choice(20_000, 1500, replace=False)
    results = {(way, quantity): value for way, quantity, value in experiment.run_draw(known, rows, goals, ("group",))}
    ways = [str(level) for level in experiment.CONFIDENCES]
    assert results[experiment.PLAIN, experiment.FEASIBLE] == 1
    for way in (experiment.PLAIN, *ways):
        held, reached = results[way, experiment.HOLDS], results[way, experiment.REACHED]
        assert results[way, experiment.VIOLATED] == (reached and not held)
    costs = [results[way, experiment.COST] for way in (experiment.PLAIN, *ways)]
    assert costs[0] <= min(costs[1:]) + 0.02
    assert 0 < costs[0] < 0.5


def test_goals_that_are_out_of_reach_leave_no_rows(known):
    goals = as_goals(["recall >= 0.99", "positive_rate <= 0.05"])
    assert not list(experiment.run_draw(known, np.arange(1000), goals, ()))


def test_thresholds_decide_about_the_population_as_its_rows_do(known):
    goals = as_goals(["recall >= 0.5", "max_difference(positive_rate, by=group) <= 0.2", "churn <= 0.5"])
    levels = [0.45, 0.35]
    holds, error = known.outcome(levels, goals)
    decisions = (known.scores > np.where(known.group == "A", *levels)).astype(int)
    table = Table(None, known.y, {"group": known.group}, known.deployed)
    assert holds == all(goal.evaluate(decisions, table).holds for goal in goals)
    assert error == pytest.approx((decisions != known.y).mean(), abs=1e-12)


def test_the_page_has_a_verdict_and_a_line_for_each_cell_and_confidence():
    def row(way, quantity, value, name="holding", learner="3000"):
        return ResultRow(name, "made", learner, way, 0, None, quantity, "one rate", value)

    rows = []
    for more in ({}, {"name": trained.EXPERIMENT, "learner": "LightGBM, 3000"}):
        rows += [
            row(experiment.PLAIN, experiment.FEASIBLE, 5.0, **more),
            row(experiment.PLAIN, experiment.HOLDS, 2.0, **more),
        ]
        rows += [row(experiment.PLAIN, experiment.COST, 1.0, **more)]
        for level in experiment.CONFIDENCES:
            for way in (str(level), f"{experiment.BONFERRONI} {level}"):
                rows += [row(way, experiment.HOLDS, 4.0, **more), row(way, experiment.REACHED, 5.0, **more)]
                rows += [row(way, experiment.VIOLATED, 1.0, **more), row(way, experiment.COST, 1.1, **more)]
    head, verdicts, ends, *tables = page.sections(ResultsTable(tuple(rows)), None)
    assert head.startswith("# Goals that hold")
    assert "| 0.8 | 1 of 1 | 0.400 | 0.800: met | 0.0: met | 0.0: met | 1.00: **missed** |" in verdicts
    assert "0.800 hold, and 0.400 of the plain rules" in ends
    assert len(tables) == len(experiment.CONFIDENCES)
    for table in tables:
        line = table.splitlines()[-1]
        assert [cell.strip() for cell in line.strip("|").split("|")][:9] == [
            "made", "3,000", "one rate", "5", "0.40", "0.80", "1.00", "0.20", "2.00",
        ]  # fmt: skip


def test_scores_decide_as_predict_does():
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(600, 3)), np.where(rng.random(600) < 0.5, "A", "B")
    y = (X[:, 0] + rng.normal(size=600) > 0).astype(int)
    model = GoalClassifier(LogisticRegression(), goals=["recall >= 0.8"], by="group", confidence=None, random_state=0)
    model.fit(X, y, sensitive_features={"group": group})
    scores = model.estimators_[0].predict_proba(X)[:, 1]
    expected = model.predict(X, sensitive_features={"group": group})
    np.testing.assert_array_equal(trained.decide(model, scores, group), expected)


def test_persons_have_up_to_twenty_rows_that_are_the_same_or_partly_so():
    for share in persons.ALIKE.values():
        rows, ids = persons.draw_persons(20_000, 3000, share, np.random.default_rng(0))
        assert rows.shape == ids.shape == (3000,)
        assert np.bincount(ids).max() == 20
        commonest = [np.unique(rows[ids == one], return_counts=True)[1].max() for one in range(ids.max() + 1)]
        assert sum(commonest) / 3000 == pytest.approx(share, abs=0.05)


@pytest.mark.slow
def test_margins_with_ids_hold_more_often_than_without(known, monkeypatch):
    goals = (as_goals(["recall >= 0.7"]), ())
    monkeypatch.setattr(persons, "population", lambda _: known)
    monkeypatch.setattr(persons, "goal_sets", lambda _: {"one rate": goals})
    monkeypatch.setattr(persons, "_SETS", ("one rate",))
    rows = persons.measure(persons.Block("made", "2000, all alike", 0))
    (cell,) = page.cells_of(ResultsTable(tuple(rows)), persons.WITH_IDS, "")
    (other,) = page.cells_of(ResultsTable(tuple(rows)), persons.WITHOUT_IDS, "")
    assert cell.n_draws == persons.DRAWS_IN_BLOCK
    assert cell.plain <= other.holds < cell.holds
    assert other.cost < cell.cost
    text = page.sections(ResultsTable(tuple(rows)), None)[2]
    assert text.startswith("## Persons with several rows")
    assert f"{other.holds:.3f}" in text


@pytest.fixture(scope="module")
def draw(known):
    rows = np.random.default_rng(1).integers(0, 20_000, 1500)
    return peers.choose_ours(known, rows, as_goals(["recall >= 0.7"]), ())


def highest_threshold(case, bounds):
    """Choose the highest threshold that has the recall, as a peer does."""
    positives = np.sort(case.fit.scores[case.fit.y == 1, 1])[::-1]
    threshold = positives[int(np.ceil(bounds[0] * positives.size - 1e-9)) - 1]
    return (case.test.scores[:, 1] >= threshold).astype(float)


def outcome_of(known, draw, peer):
    goals = as_goals(["recall >= 0.7"])
    return {(way, quantity): value for way, quantity, value in peers.run_draw(known, draw, goals, RECALL, peer, 0)}


@pytest.mark.slow
def test_ours_beside_peers_is_the_choice_of_the_study(known):
    goals = as_goals(["recall >= 0.7", "max_difference(positive_rate, by=group) <= 0.08"])
    rows = np.random.default_rng(2).integers(0, 20_000, 1500)
    ours = peers.choose_ours(known, rows, goals, ("group",))
    beside = {(way, name): value for way, name, value in peers.run_draw(known, ours, goals, peers.BOTH, None, 0)}
    study = {(way, name): value for way, name, value in experiment.run_draw(known, rows, goals, ("group",))}
    for way, level in ((peers.PLAIN, experiment.PLAIN), (peers.OUR_MARGINS, str(peers.CONFIDENCE))):
        assert beside[way, peers.MET] == 1
        assert beside[way, peers.HOLDS] == study[level, experiment.HOLDS]
        cost = study[level, experiment.COST] - study[experiment.PLAIN, experiment.COST]
        assert beside[way, peers.COST] == pytest.approx(cost, abs=1e-12)


def test_a_peer_given_our_margins_aims_at_their_values(known, draw):
    peer = peers.Peer("made", "numpy", {RECALL: highest_threshold})
    results, ours = outcome_of(known, draw, peer), outcome_of(known, draw, None)
    for way in (peers.PLAIN, peers.OUR_MARGINS):
        assert results[way, peers.FEASIBLE] == results[way, peers.MET] == 1
        assert results[way, peers.COST] == pytest.approx(ours[way, peers.COST], abs=2e-3)
    assert draw.aims[0] > 0.71
    assert results[peers.OUR_MARGINS, peers.HOLDS] == 1


def test_a_peer_without_a_rule_is_infeasible_and_one_without_bounds_has_no_margins(known, draw):
    def refuse(case, bounds):
        if bounds[0] > 0.7:
            raise ValueError("There is no valid threshold.")
        return highest_threshold(case, bounds)

    results = outcome_of(known, draw, peers.Peer("made", "numpy", {RECALL: refuse}))
    assert results[peers.OUR_MARGINS, peers.FEASIBLE] == 0
    assert (peers.OUR_MARGINS, peers.HOLDS) not in results
    results = outcome_of(known, draw, peers.Peer("made", "numpy", {RECALL: highest_threshold}, frozenset({RECALL})))
    assert (peers.OUR_MARGINS, peers.FEASIBLE) not in results


def test_a_peer_that_randomises_is_judged_in_expectation(known):
    chances = np.random.default_rng(0).random(20_000) * (known.scores > 0.3)
    table = Table(None, known.y, {"group": known.group})
    texts = "recall >= 0.5", "equalized_odds_difference(by=group) <= 0.05"
    for goal in as_goals(list(texts)):
        value = goal.evaluate_expected(np.column_stack([1 - chances, chances]), table).value
        for side in (-1e-4, 1e-4):
            near = goal.with_bound(value + side)
            outcome = peers.judge(chances, known, (near,))
            assert outcome.holds == near.evaluate_expected(np.column_stack([1 - chances, chances]), table).holds
            assert outcome.slack == pytest.approx(1e-4 if outcome.holds else -1e-4, abs=1e-9)
    assert outcome.error == pytest.approx(np.abs(known.y - chances).mean(), abs=1e-12)


def test_a_peer_that_is_not_installed_is_left_out_with_a_warning(monkeypatch):
    monkeypatch.setattr(
        peers, "PEERS", {name: peers.Peer(name, name, {}) for name in ("numpy", "no_such_package_of_peers")}
    )
    with pytest.warns(UserWarning, match="no_such_package_of_peers is left out, as it cannot be imported"):
        blocks = peers.wanted(1)
    assert {block.learner for block in blocks} == {
        f"{n}, {size}" for n in (peers.OURS, "numpy") for size in peers.SIZES
    }


def test_every_set_of_goals_has_peers_and_only_fairlearn_takes_no_bound_for_odds():
    titles = [title for peer in peers.PEERS.values() for title in peer.choose]
    assert {title: titles.count(title) for title in titles} == {
        "recall floor": 3, "demographic parity": 3, "equalized odds": 3, peers.BOTH: 1,
    }  # fmt: skip
    assert [peer.name for peer in peers.PEERS.values() if peer.unbounded] == [peers.THRESHOLDS]


def test_the_page_says_of_each_peer_what_our_margins_do():
    rows = []
    for name, held, met in (("OxonFair", (3, 9), 10), ("error-parity", (9, 8), 10), ("TunedThreshold", (3, 9), 5)):
        counts = [(peers.PLAIN, peers.DRAWS, 10), (peers.OUR_MARGINS, peers.REACHED, 10)]
        for way, n_held in zip((peers.PLAIN, peers.OUR_MARGINS), held, strict=True):
            counts += [(way, peers.FEASIBLE, 10), (way, peers.MET, met), (way, peers.HOLDS, n_held)]
            counts += [(way, peers.COST, 0.05), (way, peers.SLACK, 0.1)]
        rows += [
            ResultRow(peers.EXPERIMENT, "made", f"{name}, 3000", way, 0, None, quantity, PARITY, value)
            for way, quantity, value in counts
        ]
    text = sections(ResultsTable(tuple(rows)), None)[2]
    assert "| OxonFair | 1 | 1.000 | 0.010 | 0.300: met | 0.900: met |" in text
    assert "| error-parity | 1 | 1.000 | 0.010 | 0.900: **missed** | 0.800: **missed** |" in text
    assert "| TunedThreshold | 1 | 0.500 | 0.010 | 0.300: outside of the rule | 0.900: outside of the rule |" in text
    assert "| made | 3,000 | demographic parity | OxonFair | 1.00 | 0.30 | 0.90 | 0.50 | 0.50 | 0.00 | 0.00 |" in text


def test_plans_are_compared_with_fits_where_goals_bind():
    def row(way, quantity, value):
        return ResultRow(planned.EXPERIMENT, "made", "3000", way, 0, None, quantity, "two rates", value)

    plans = [row(planned.PREDICTED, experiment.REACHED, 1.0), row(planned.PREDICTED, "margin 0", 0.033)]
    plans += [row(planned.PREDICTED, "margin 1", 0.9)]
    fits = [row(planned.ACTUAL, experiment.REACHED, 4.0), row(planned.ACTUAL, "margin 0", 4 * 0.03)]
    fits += [row(planned.ACTUAL, "standard error 0", 4 * 0.015), row(planned.ACTUAL, "margin 1", 4 * 0.5)]
    fits += [row(planned.ACTUAL, "standard error 1", 4 * 0.01)]  # which does not bind
    section = planned.section(ResultsTable(tuple(plans + fits)))
    assert section.splitlines()[-1] == "| made | 3,000 | 1 | 1.10: met | 1.10 to 1.10 |"


@pytest.mark.slow
def test_a_block_of_plans_has_margins_of_both_kinds(monkeypatch):
    rng = np.random.default_rng(0)
    y = (rng.random(6000) < 0.3).astype(int)
    scores = 1 / (1 + np.exp(-rng.normal(size=6000) - 1.5 * y))
    known = experiment.Population(scores, y, np.where(rng.random(6000) < 0.5, "A", "B"), (scores > 0.7).astype(int))
    goals = {"one rate": (as_goals(["recall >= 0.7"]), ())}
    monkeypatch.setattr(planned, "population", lambda _name: known)
    monkeypatch.setattr(planned, "goal_sets", lambda _name: goals)
    rows = planned.measure(planned.Block("made", "3000", 0))
    assert {(one.method, one.quantity) for one in rows} >= {("plan", "margin 0"), ("fit", "margin 0")}
