"""Mixtures under goals: solving again after a change, against HiGHS on the whole linear program; a frontier."""

import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from harness import Benchmark
from mixture import pool

from counterpoise import MixtureClassifier, tradeoff
from counterpoise.goals import parse_goal
from counterpoise.rules.goal_rows import goal_rows
from counterpoise.solvers import bounds_path, minimize_cvar, solve_weights_lp

ALPHA = 0.1


@cache
def fitted(n_samples: int, n_models: int) -> MixtureClassifier:
    """Return a mixture of stored predictions under goals on two groups, false alarms and recall."""
    rng = np.random.default_rng(1)
    y = (rng.random(n_samples) < 0.4).astype(np.uint8)
    predicted = pool("uneven", n_samples, n_models) ^ y[:, None]
    sex = np.where(rng.random(n_samples) < 0.5, "F", "M")
    recalls, false_alarms = predicted[y == 1].mean(axis=0), predicted[y == 0].mean(axis=0)
    goals = [  # the last costs something, the first two nearly do
        "positive_rate(train, sex=F) >= 0.98 * positive_rate(train, sex=M)",
        f"false_positive_rate(train) <= {np.median(false_alarms):.4f}",
        f"recall(train) >= {np.quantile(recalls, 0.8):.4f}",
    ]
    model = MixtureClassifier(list(predicted.T), alpha=ALPHA, goals=goals)
    return model.fit(np.zeros((n_samples, 1)), y, sensitive_features={"sex": sex})


def floor(model: MixtureClassifier, _answer: Any) -> float:
    """Return the time of a solve that starts with the goals' rows at hand."""
    selection = model.selection_
    start = time.process_time()
    minimize_cvar(selection.losses, ALPHA, rows=selection.goals.rows, bounds=selection.goals.bounds)
    return time.process_time() - start


def again(n_samples: int, n_models: int, change: str, *, with_peer: bool) -> Benchmark:
    """Time rebalancing after a change of alpha or of a bound."""
    model = fitted(n_samples, n_models)
    recall = model.goals_[2]
    goals = [*model.goals_[:2], parse_goal(str(recall)).with_bound(recall.bound - 0.002)]
    given = {"alpha": 0.2} if change == "alpha" else {"goals": goals}
    other = model.rebalance(**given).selection_.goals
    return Benchmark(
        name=f"rebalance, other {change}, 3 goals",
        size=f"{n_samples} x {n_models}",
        ours=lambda: model.rebalance(**given).value_,
        floor=lambda answer: floor(model, answer),
        floor_means="the bundle method alone, with the goals' rows at hand",
        peer_name="HiGHS on the weights" if with_peer else "",
        peer=(
            lambda: (
                solve_weights_lp(
                    model.selection_.losses, given.get("alpha", ALPHA), rows=other.rows, bounds=other.bounds
                ).value
            )
        )
        if with_peer
        else None,
        difference=lambda ours, peer: abs(ours - peer),
        tolerance=2e-4,
    )


def frontier(n_samples: int, n_models: int, n_points: int) -> Benchmark:
    """Time a frontier; the peer solves every point from the start."""
    model = fitted(n_samples, n_models)
    found = tradeoff(model, model.goals_[2], n_points=n_points)

    def cold() -> Any:
        answers = model.family_.selection_data.answers
        rows = [goal_rows(answers, (*model.goals_[:2], found.goal.with_bound(point.bound))) for point in found]
        losses = model.selection_.losses
        return [bounds_path(losses, ALPHA, [(one.rows, one.bounds)], tol=1e-6)[0] for one in rows]

    return Benchmark(
        name=f"tradeoff, {n_points} bounds, tol=1e-06",
        size=f"{n_samples} x {n_models}",
        ours=lambda: tradeoff(model, model.goals_[2], n_points=n_points),
        floor=lambda answer: floor(model, answer),
        floor_means="one solve of the bundle method",
        peer_name="one by one, cold",
        peer=cold,
        difference=lambda ours, peer: max(
            abs(one.value - other.value) for one, other in zip(ours, peer, strict=True) if other is not None
        ),
        tolerance=1e-5,
        repeats=1,
    )


def quick() -> Iterator[Benchmark]:
    """Yield what runs in seconds."""
    for change in ("alpha", "bound"):
        yield again(20_000, 20, change, with_peer=True)
    yield frontier(20_000, 20, 20)


def full() -> Iterator[Benchmark]:
    """Yield the sizes that the project promises."""
    for change in ("alpha", "bound"):
        yield again(100_000, 20, change, with_peer=True)
        yield again(1_000_000, 100, change, with_peer=False)
    yield frontier(100_000, 50, 50)
