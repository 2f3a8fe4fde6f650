"""The mixture problem over shards: the same solution however the rows are cut, and that of one array."""

from operator import itemgetter

import numpy as np
import pytest
from engines import COUNTS, EACH, cut, opened

from counterpoise.solvers import InfeasibleRows, minimize_cvar
from counterpoise.solvers.mixture import minimize_cvar_over
from counterpoise.solvers.rows import load_rows, whole_masses
from counterpoise.solvers.tail import TailOracle, TailRows

N_ROWS, N_MODELS, ALPHA = 1501, 6, 0.13
RNG = np.random.default_rng(3)
LOSSES = (RNG.random((N_ROWS, N_MODELS)) < RNG.random((N_ROWS, 1)) ** 2).astype(np.uint8)
WEIGHTS = whole_masses(RNG.random(N_ROWS))
LIMITS = {"rows": RNG.random((1, N_MODELS)), "bounds": [0.4]}


def _load(shard):
    shard["tail"] = TailRows(load_rows(shard["losses"]), shard.get("mass"))


def _solved(engine, n_shards, **given):
    mass = {"mass": given.pop("mass")} if "mass" in given else {}
    with opened(engine, cut(n_shards, losses=given.pop("losses", LOSSES), **mass)) as shards:
        shards.change("load", _load)
        found = minimize_cvar_over(shards, ALPHA, tol=1e-6, **given)
        return found, np.concatenate(shards.map(itemgetter("weights")))


@pytest.mark.parametrize("engine", EACH)
@pytest.mark.parametrize("given", [{}, {"mass": WEIGHTS, **LIMITS}], ids=["equal", "weighted within limits"])
def test_mixture_and_weights_are_the_same_to_the_last_bit_over_any_number_of_shards(engine, given):
    first, weights = _solved("threads", 1, **given)
    for n_shards in COUNTS if engine == "threads" else (7,):
        found, own = _solved(engine, n_shards, **given)
        assert found.mixture.tolist() == first.mixture.tolist()
        assert found.n_iter == first.n_iter
        assert own.tolist() == weights.tolist()
        np.testing.assert_allclose([found.value, found.lower], [first.value, first.lower], rtol=1e-12)


@pytest.mark.parametrize("mass", [None, WEIGHTS])
def test_it_is_the_least_cvar_of_the_whole_linear_program(mass):
    found, weights = _solved("threads", 4, **({} if mass is None else {"mass": mass}), **LIMITS)
    direct = minimize_cvar(LOSSES, ALPHA, sample_weight=mass, method="highs", **LIMITS)
    assert found.lower - 1e-9 <= direct.value <= found.value + 1e-9
    assert found.gap <= 1e-6
    share = np.full(N_ROWS, 1 / N_ROWS) if mass is None else mass / mass.sum()
    assert (weights <= share / ALPHA * (1 + 1e-9)).all()
    np.testing.assert_allclose(weights.sum(), 1.0)


def test_real_losses_over_shards_reach_the_same_value():
    losses = RNG.random((300, 4))
    found, _ = _solved("threads", 3, losses=losses)
    np.testing.assert_allclose(found.value, minimize_cvar(losses, ALPHA, method="highs").value, atol=2e-6)


def test_limits_that_no_mixture_keeps_are_refused_as_everywhere():
    with pytest.raises(InfeasibleRows, match="No mixture satisfies"):
        _solved("threads", 2, rows=np.ones((1, N_MODELS)), bounds=[0.5])


def test_ties_and_the_fractional_sample_at_the_edge_are_the_same_over_shards():
    losses = np.repeat(np.eye(3, dtype=np.uint8), 7, axis=0)  # three scores only
    mixture = np.array([0.5, 0.3, 0.2])
    for n_shards in COUNTS:
        with opened("threads", cut(n_shards, losses=losses)) as shards:
            shards.change("load", _load)
            oracle = TailOracle(shards, 0.5)  # 10.5 of 21 rows: seven of 0.5, three and a half of 0.3
            np.testing.assert_allclose(oracle.value(mixture), (7 * 0.5 + 3.5 * 0.3) / 10.5)
            np.testing.assert_allclose(oracle.cut(mixture).slope, np.array([7, 3.5, 0]) / 10.5)


def test_whole_masses_sum_exactly_in_any_order():
    masses = whole_masses(RNG.random(10_001) * 1e-7)
    assert (masses == np.rint(masses)).all()
    assert masses.sum() == masses[::-1].cumsum()[-1] == sum(map(int, masses))
    assert masses.sum() <= 2**52
    np.testing.assert_array_equal(whole_masses(np.zeros(3)), np.zeros(3))
