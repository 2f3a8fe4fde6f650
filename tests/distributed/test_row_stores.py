"""Row stores: what rounds ask of rows in shards is what they ask of rows in arrays, to the last digit over any cut."""

from functools import partial

import numpy as np
import pytest
from engines import COUNTS, EACH, cut, opened

from counterpoise.boosting.rounds import History, Round
from counterpoise.boosting.row_store import ArrayRows
from counterpoise.boosting.rules import dual_of, hedge, hedge_groups
from counterpoise.distributed.boosting import ShardRows, apply_model
from counterpoise.distributed.fitting import prepare
from counterpoise.solvers.tail import WEIGHTS
from counterpoise.theory.risks import CVaR, RiskRows, WorstGroup

rng = np.random.default_rng(7)
N_ROWS = 900
X = rng.normal(size=(N_ROWS, 3))
Y = (X[:, 0] + 0.6 * rng.normal(size=N_ROWS) > 0).astype(int)
SEX = np.where(rng.random(N_ROWS) < 0.4, "F", "M")
MASS = rng.integers(1, 4, N_ROWS).astype(float)


def above(feature, threshold, rows):
    """Say 1 where a feature is above a threshold."""
    return (rows[:, feature] > threshold).astype(int)


MODELS = [partial(above, feature, threshold) for feature, threshold in ((0, 0.0), (0, 0.5), (1, 0.0), (2, -0.3))]


def _name_columns(shard):
    shard["columns"] = {"sex": shard.pop("sex")}


def _weights(shard):
    return shard[WEIGHTS]


class Member:
    """A function as a model that was fitted."""

    def __init__(self, function):
        self.function = function
        self.classes_ = np.array([0, 1])

    def predict(self, rows):
        return self.function(rows)


def in_arrays():
    """Return the rounds of the models on rows in arrays."""
    history = History(ArrayRows(MASS / MASS.sum(), 1))
    for number, model in enumerate(MODELS, 1):
        losses = (model(X) != Y).astype(np.uint8)
        history.append(Round(number, model, history.rows.start, losses, 0.0))
    return history


def in_shards(shards):
    """Return the same on rows in shards."""
    shards.change("columns", _name_columns)
    cells = prepare(shards).cells
    history = History(ShardRows(shards, cells, len(MODELS)))
    for number, model in enumerate(map(Member, MODELS), 1):
        said, _ = apply_model(shards, cells, model, number)
        history.append(Round(number, model, np.empty(0), np.empty(0, dtype=np.uint8), 0.0, answers=said))
    return history


@pytest.mark.parametrize("engine", EACH)
@pytest.mark.parametrize("n_shards", COUNTS)
def test_sums_and_weights_are_those_of_arrays(engine, n_shards):
    known = in_arrays()
    with opened(engine, cut(n_shards, X=X, y=Y, sex=SEX, sample_weight=MASS)) as shards:
        history = in_shards(shards)
        rows, cells = history.rows, history.rows.cells
        groups, own, total = (
            (cells.table().column("sex") == "M").astype(int),
            (SEX == "M").astype(int),
            cells.facts.total,
        )
        np.testing.assert_allclose(rows.mass_by_failures() / total, known.rows.mass_by_failures(), rtol=1e-12)
        by_group = [np.bincount(groups, rows.failures) / total, np.bincount(own, known.rows.failures)]
        np.testing.assert_allclose(*by_group, rtol=1e-12)
        for over, plain in ((hedge(0.7), hedge(0.7)), (hedge_groups(0.7, groups), hedge_groups(0.7, own))):
            over(history)
            np.testing.assert_allclose(np.concatenate(shards.map(_weights)), plain(known), rtol=1e-9, atol=1e-15)
        worst, its = (WorstGroup().bind(RiskRows(N_ROWS, 1, lambda _, codes=codes: codes)) for codes in (groups, own))
        dual_of(worst)(history)
        np.testing.assert_allclose(np.concatenate(shards.map(_weights)), dual_of(its)(known), atol=1e-4)
        for risk in (CVaR(0.3), CVaR(1.0)):
            assert rows.least_risk(risk) == pytest.approx(known.rows.least_risk(risk), abs=2e-4)


@pytest.mark.parametrize("n_shards", COUNTS)
def test_the_dual_of_a_tail_proves_its_value_and_is_the_same_over_any_cut(n_shards):
    def found(n_cuts):
        with opened("threads", cut(n_cuts, X=X, y=Y, sex=SEX, sample_weight=MASS)) as shards:
            history = in_shards(shards)
            dual_of(CVaR(0.3))(history)
            weights = np.concatenate(shards.map(_weights))
            return weights, history.rows.newest_loss(None)

    weights, loss = found(n_shards)
    losses = in_arrays().rows.losses
    assert weights.sum() == pytest.approx(1)
    assert (weights <= MASS / MASS.sum() / 0.3 + 1e-12).all()
    assert (weights @ losses).min() == pytest.approx(in_arrays().rows.least_risk(CVaR(0.3)), abs=2e-4)
    assert loss == pytest.approx(weights @ losses[:, -1], abs=1e-9)
    assert loss == found(1)[1]
