"""Rules of a score: the best mixture over every threshold, against HiGHS on the program written out in full."""

import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from harness import Benchmark

from counterpoise import GoalClassifier
from counterpoise.goals import bind
from counterpoise.rules.goal_rows import TRAIN
from counterpoise.solvers.linear_program import solve_linear_program

GOALS = [
    "positive_rate(train, sex=F) - positive_rate(train, sex=M) <= 0.02",
    "positive_rate(train, sex=M) - positive_rate(train, sex=F) <= 0.02",
    "recall(train) >= 0.7",
    "recall(train, sex=F) >= recall(train, sex=M) - 0.05",
    "false_positive_rate(train) <= 0.3",
]


@cache
def fitted(n_samples: int) -> GoalClassifier:
    """Return the rules of one score, stored, under five goals on two groups."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, n_samples)
    truth = rng.normal(size=n_samples) + 0.5 * group
    y = (rng.random(n_samples) < 1 / (1 + np.exp(1 - 2 * truth))).astype(np.int64)
    score = 1 / (1 + np.exp(-(truth + 0.7 * rng.normal(size=n_samples))))
    model = GoalClassifier([score], cv="prefit", decision="sticky", by="sex", alpha=1.0, goals=GOALS, confidence=None)
    return model.fit(np.zeros((n_samples, 1)), y, sensitive_features={"sex": np.array(["F", "M"])[group]})


def written_out(model: GoalClassifier, alpha: float) -> float:
    """Return the least risk: how likely each row is called positive, falling with the score within each group.

    That is what all mixtures of all thresholds are, with a variable for each row instead of one for each threshold.
    """
    evidence = model.family_.selection_data
    table, is_positive = evidence.answers.tables[TRAIN], evidence.is_positive
    n_rows, score, sex = table.n_samples, evidence.scores[TRAIN][:, 0], table.column("sex")
    order = np.lexsort((-score, sex))
    above, below = order[:-1], order[1:]
    is_pair = sex[above] == sex[below]
    above, below = above[is_pair], below[is_pair]
    falls = sp.csr_array(sp.eye_array(n_rows, format="csr")[below] - sp.eye_array(n_rows, format="csr")[above])
    bound = bind(GOALS, table)
    sign = np.where(is_positive, -1.0, 1.0)
    held = sp.vstack([falls, bound.weights[TRAIN]])
    most = np.concatenate([np.zeros(len(above)), bound.bounds])
    if alpha == 1.0:
        found = solve_linear_program(
            sign / n_rows, held, (np.full(most.size, -np.inf), most), lower=np.zeros(n_rows), upper=np.ones(n_rows)
        )
        assert found is not None  # noqa: S101 - it has a solution
        return float(sign @ found.point / n_rows + is_positive.mean())
    excess = sp.hstack([sp.diags_array(sign), -np.ones((n_rows, 1)), -sp.eye_array(n_rows)])
    matrix = sp.vstack([sp.hstack([held, sp.csr_array((held.shape[0], n_rows + 1))]), excess])
    most = np.concatenate([most, -is_positive.astype(float)])
    cost = np.concatenate([np.zeros(n_rows), [1.0], np.full(n_rows, 1 / (alpha * n_rows))])
    free = np.full(n_rows, np.inf)
    found = solve_linear_program(
        cost,
        matrix,
        (np.full(most.size, -np.inf), most),
        lower=np.concatenate([np.zeros(n_rows), [-np.inf], np.zeros(n_rows)]),
        upper=np.concatenate([np.ones(n_rows), [np.inf], free]),
    )
    assert found is not None  # noqa: S101 - it has a solution
    return float(cost @ found.point)


def sorting(model: GoalClassifier) -> float:
    """Return the time of one sort of the scores."""
    score = model.family_.selection_data.scores[TRAIN][:, 0]
    start = time.process_time()
    np.argsort(score)
    return time.process_time() - start


def choosing(n_samples: int, alpha: float, *, with_peer: bool) -> Benchmark:
    """Time the choice from kept scores: groups, sorting, goals and the program."""
    model = fitted(n_samples)
    peer: dict[str, Any] = {}
    if with_peer:
        peer = {"peer_name": "HiGHS, written out", "peer": lambda: written_out(model, alpha)}
    return Benchmark(
        name=f"rules of a score, 2 groups, 5 goals, alpha={alpha:g}",
        size=f"{n_samples}",
        ours=lambda: model.rebalance(alpha=alpha).value_,
        floor=lambda _: sorting(model),
        floor_means="one sort of the scores",
        difference=lambda ours, other: abs(ours - other),
        tolerance=2e-4,
        repeats=1 if with_peer else 3,
        **peer,
    )


def quick() -> Iterator[Benchmark]:
    """Yield what runs in seconds."""
    for alpha in (1.0, 0.1):
        yield choosing(100_000, alpha, with_peer=False)


def full() -> Iterator[Benchmark]:
    """Yield the sizes that the project promises."""
    for alpha in (1.0, 0.1):
        yield choosing(20_000, alpha, with_peer=True)
        yield choosing(100_000, alpha, with_peer=False)
        yield choosing(1_000_000, alpha, with_peer=False)
