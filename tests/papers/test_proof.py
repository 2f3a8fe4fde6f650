"""Proofs: populations are what they say, and counts are counted."""

import numpy as np
import pytest
from scipy.special import ndtr

from papers.promises import beside_mapie, proof, simulated
from papers.promises.populations import Population
from papers.tables import ResultRow, ResultsTable


def test_rates_of_a_simulated_population_are_those_of_many_rows():
    known = simulated.Population(0.4, (0.3, 0.5), ((0.0, 1.5), (0.3, 1.6)), 0.9)
    decisions, table = known.cells((0.8, 0.6))
    scores, rows = known.sample(400_000, np.random.default_rng(0))
    sampled = (scores > np.where(rows.column("group") == "A", 0.8, 0.6)).astype(int)
    for text in ("recall", "precision", "churn", "max_difference(positive_rate, by=group)"):
        (goal,) = simulated.as_goals([f"{text} <= 0.5"])
        assert goal.evaluate(decisions, table).value == pytest.approx(goal.evaluate(sampled, rows).value, abs=0.005)
    (goal,) = simulated.as_goals(["recall(group=A) <= 0.5"])
    assert goal.evaluate(decisions, table).value == pytest.approx(ndtr(1.5 - 0.8))


@pytest.mark.slow
def test_goals_are_tighter_than_what_the_rule_of_least_error_has_and_some_are_proven():
    known = simulated.Population.draw(np.random.default_rng(1))
    assert len(known.goals(simulated.KINDS["three together"])) == 3
    proven = [simulated.run_draw("recall", seed)[0] for seed in range(4)]
    assert any(proven)


def test_errors_are_compared_where_both_prove_the_goal():
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.3).astype(int)
    scores = ndtr(rng.normal(size=4000) + 1.5 * y - 0.7)
    known = Population(scores, y, rng.integers(0, 2, 4000))

    def peer(*_case):
        return 0.05

    rows = rng.integers(0, 4000, 1500)
    counts = {(who, name): value for who, name, value in beside_mapie.run_draw(known, rows, "recall", peer)}
    assert counts["counterpoise", "proven"] == counts["MAPIE", "proven"] == 1
    assert counts["counterpoise", "cost where both prove"] < counts["MAPIE", "cost where both prove"]


def test_shares_are_of_all_populations_and_errors_of_draws_in_which_both_prove():
    def row(experiment, learner, who, quantity, value):
        return ResultRow(experiment, "simulated", learner, who, 0, None, quantity, "", value)

    rows = [
        row(simulated.EXPERIMENT, "churn", "proof", name, value)
        for name, value in ((simulated.DRAWS, 100.0), (simulated.PROVEN, 80.0), (simulated.VIOLATED, 9.0))
    ]
    for who, error in ((beside_mapie.OURS, 6.0), (beside_mapie.MAPIE, 5.0)):
        values = {"draws": 25.0, "proven": 20.0, "violated": 1.0, "both prove": 20.0, "cost where both prove": error}
        rows += [row(beside_mapie.EXPERIMENT, "recall, 1000", who, name, value) for name, value in values.items()]
    blocks = proof.blocks(ResultsTable(tuple(rows)))
    assert "| churn | 100 | 0.800 | 0.090 | 0.160 |" in blocks["simulated"]
    assert "| counterpoise | 25 | 0.800 | 0.040 | 30.00 |" in blocks["beside MAPIE"]
