"""Trees over shards: the same tree to the last bit however the rows are cut, and that of one machine."""

import numpy as np
import pytest
from engines import COUNTS, cut, opened

from counterpoise.distributed.boosting import bin_over
from counterpoise.learners import HistogramTree, Stump
from counterpoise.learners._growing import Target, grow_over
from counterpoise.solvers.rows import whole_masses
from tests.tiers import slow

RNG = np.random.default_rng(1)
N_ROWS = 701
X = np.column_stack([RNG.normal(size=(N_ROWS, 4)), RNG.integers(0, 6, N_ROWS), RNG.integers(0, 3, N_ROWS)])
X[RNG.random(X.shape) < 0.05] = np.nan
X[600:, 1] = np.nan_to_num(X[600:, 1])  # a part without missing values
WEIGHTS = RNG.exponential(size=N_ROWS) * (RNG.random(N_ROWS) < 0.9)
Y = (np.nan_to_num(X[:, 0] * X[:, 1]) + (X[:, 4] == 3) + RNG.normal(size=N_ROWS) > 0).astype(np.int64)

LEARNERS = {
    "tree": (HistogramTree(4), Y),
    "large leaves": (HistogramTree(5, min_samples_leaf=20, max_bins=16), Y),
    "categories": (HistogramTree(3, categorical_features=[4, 5], min_samples_split=40), Y),
    "three classes": (HistogramTree(4, categorical_features=[4]), Y + (np.nan_to_num(X[:, 2]) > 1)),
    "stump": (Stump(), Y),
    "one class": (HistogramTree(3), np.zeros_like(Y)),
}


def _aim(shard):
    shard["target"] = Target(shard["binned"], shard["y"].astype(np.uint16), shard["weights"])


def _grown(engine, n_shards, learner, y):
    with opened(engine, cut(n_shards, X=X, y=y, weights=whole_masses(WEIGHTS))) as shards:
        layout = bin_over(shards, learner)
        shards.change("target", _aim)
        return grow_over(shards, layout, int(y.max()) + 1, learner.growth_limits())[0]


@pytest.mark.parametrize(
    ("engine", "name"), [*(("threads", name) for name in LEARNERS), slow("processes", "large leaves")]
)
def test_trees_are_the_same_over_any_number_of_shards_and_on_one_machine(engine, name):
    learner, y = LEARNERS[name]
    learner.fit_codes(learner.prepare(X), y, np.arange(y.max() + 1), WEIGHTS)
    for n_shards in COUNTS if engine == "threads" else (3,):
        tree = _grown(engine, n_shards, learner, y)
        for own, other in zip(learner.tree_, tree, strict=True):
            np.testing.assert_array_equal(own, other)


def test_quantiles_of_many_rows_are_those_of_the_same_sample():
    many = np.round(RNG.normal(size=(200_500, 1)), 4)
    with opened("threads", cut(3, X=many)) as shards:
        layout = bin_over(shards, Stump())
    np.testing.assert_array_equal(layout.edges[0], Stump().prepare(many).edges[0])


def test_infinity_in_one_shard_is_refused_with_its_feature():
    bad = X.copy()
    bad[650, 2] = np.inf
    refused = pytest.raises(ValueError, match="finite numbers or NaN in feature 2; got infinity")
    with refused, opened("threads", cut(4, X=bad)) as shards:
        bin_over(shards, Stump())
