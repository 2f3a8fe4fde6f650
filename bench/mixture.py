"""The mixture problem against HiGHS, and the regularized weights against cvxpy."""

import time
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from harness import Benchmark
from scipy.optimize import linprog

from counterpoise.solvers import (
    cvar_path,
    minimize_cvar,
    minimize_risk,
    regularized_weights,
    solve_weights_lp,
)
from counterpoise.solvers.rows import load_rows
from counterpoise.theory.risks import KL

POOLS = ("uneven", "boosted", "grouped")


def pool(kind: str, n_samples: int, n_models: int) -> np.ndarray:
    """Return zero-one losses of a pool of models, seeded.

    ``uneven``: samples differ in difficulty and models in skill, else independent. ``boosted``: each model errs less
    where those before it erred, as after reweighting. ``grouped``: models fail on half-spaces of a latent
    space, so that their errors are strongly dependent and few of them carry the optimal mixture.
    """
    rng = np.random.default_rng(0)
    losses = np.empty((n_samples, n_models), dtype=np.uint8)
    difficulty = rng.beta(0.3, 1.5, size=n_samples)
    skill = rng.uniform(0.6, 1.4, size=n_models)
    latent = rng.standard_normal((n_samples, 5)).astype(np.float32)
    errors = np.zeros(n_samples, dtype=np.float32)
    for model in range(n_models):
        if kind == "uneven":
            losses[:, model] = rng.random(n_samples) < difficulty * skill[model]
        elif kind == "boosted":
            losses[:, model] = rng.random(n_samples) < difficulty / (1 + 0.3 * errors) + 0.05 * rng.random(n_samples)
            errors += losses[:, model]
        else:
            side = latent @ rng.standard_normal(5).astype(np.float32)
            losses[:, model] = side + 0.7 * rng.standard_normal(n_samples) > rng.uniform(1.5, 3)
    return losses


def floor(losses: np.ndarray, found: Any) -> float:
    """Return the time to read the losses once, and the packed losses once an iteration, in one thread."""
    start = time.process_time()
    rows = load_rows(losses)
    packing = time.process_time() - start
    scores = np.empty(len(losses))
    start = time.process_time()
    rows.scores(found.mixture, scores)
    return packing + found.n_iter * (time.process_time() - start)


FLOOR = "pack once + one table look-up pass an iteration, one thread"


def solve_with_slacks(losses: np.ndarray, alpha: float) -> Any:
    """Solve the program over mixtures with a slack for each sample, as most people write it (and LPBoost does)."""
    n_samples, n_models = losses.shape
    found = linprog(
        np.concatenate([np.zeros(n_models), [1.0], np.full(n_samples, 1 / (alpha * n_samples))]),
        A_ub=sp.hstack([sp.csr_array(losses.astype(float)), -np.ones((n_samples, 1)), -sp.eye_array(n_samples)]),
        b_ub=np.zeros(n_samples),
        A_eq=np.concatenate([np.ones(n_models), np.zeros(n_samples + 1)])[None],
        b_eq=[1.0],
        bounds=[(0, None)] * n_models + [(None, None)] + [(0, None)] * n_samples,
    )
    return SimpleNamespace(value=found.fun, gap=0.0)


def against_highs(
    kind: str, n_samples: int, n_models: int, alpha: float, peer: Any = solve_weights_lp, tol: float = 1e-4
) -> Benchmark:
    """Compare one solve with HiGHS on the whole linear program."""
    losses = pool(kind, n_samples, n_models)
    form = "weights" if peer is solve_weights_lp else "mixture and slacks"
    return Benchmark(
        name=f"minimize_cvar {kind} alpha={alpha} tol={tol:g}",
        size=f"{n_samples} x {n_models}",
        ours=partial(minimize_cvar, losses, alpha, tol=tol, method="bundle"),
        floor=partial(floor, losses),
        floor_means=FLOOR,
        peer_name=f"HiGHS on {form}" if peer else "",
        peer=partial(peer, losses, alpha) if peer else None,
        difference=lambda ours, other: abs(ours.value - other.value),
        tolerance=2 * tol,
    )


def path(n_samples: int, n_models: int) -> Benchmark:
    """Time the 2021 paper's curve: 50 alphas; the peer solves them one by one without warm start."""
    losses, alphas = pool("boosted", n_samples, n_models), np.linspace(0.01, 0.5, 50)
    return Benchmark(
        name="cvar_path, 50 alphas",
        size=f"{n_samples} x {n_models}",
        ours=partial(cvar_path, losses, alphas),
        floor=lambda found: sum(floor(losses, one) for one in found),
        floor_means=FLOOR,
        peer_name="minimize_cvar, cold",
        peer=lambda: [minimize_cvar(losses, float(alpha)) for alpha in alphas],
        difference=lambda ours, other: max(abs(a.value - b.value) for a, b in zip(ours, other, strict=True)),
        tolerance=2e-4,
    )


def regularized(n_samples: int, n_models: int, beta: float, *, with_peer: bool) -> Benchmark:
    """Compare the regularized weights with an exponential-cone solver."""
    losses = pool("boosted", n_samples, n_models)
    return Benchmark(
        name=f"regularized_weights beta={beta:g}",
        size=f"{n_samples} x {n_models}",
        ours=partial(regularized_weights, losses, 0.1, beta),
        floor=partial(floor, losses),
        floor_means=FLOOR,
        peer_name="cvxpy with Clarabel" if with_peer else "",
        peer=partial(conic_value, losses.astype(float), 0.1, beta) if with_peer else None,
        difference=lambda ours, value: abs(ours.value - value),
        tolerance=1e-5,
    )


def conic_value(losses: np.ndarray, alpha: float, beta: float) -> float:
    """Return the optimal value by cvxpy."""
    weights, least = cp.Variable(len(losses)), cp.Variable()
    held = [weights @ losses >= least, cp.sum(weights) == 1, weights <= 1 / (alpha * len(losses)), weights >= 0]
    cp.Problem(cp.Maximize(least + cp.sum(cp.entr(weights)) / beta), held).solve(solver=cp.CLARABEL)
    found = np.maximum(weights.value, 1e-300)
    return float((found @ losses).min() - found @ np.log(found) / beta)


def robust(n_samples: int, n_models: int, radius: float, *, with_peer: bool) -> Benchmark:
    """Compare the mixture of least risk over a Kullback-Leibler ball with an exponential-cone solver."""
    losses = pool("boosted", n_samples, n_models)
    return Benchmark(
        name=f"minimize_risk KL({radius:g})",
        size=f"{n_samples} x {n_models}",
        ours=partial(minimize_risk, losses, KL(radius)),
        floor=partial(floor, losses),
        floor_means=FLOOR,
        peer_name="cvxpy with Clarabel" if with_peer else "",
        peer=partial(ball_value, losses.astype(float), radius) if with_peer else None,
        difference=lambda ours, value: abs(ours.value - value),
        tolerance=2e-4,
    )


def ball_value(losses: np.ndarray, radius: float) -> float:
    """Return the optimal value by cvxpy, from the side of the weights."""
    weights, least = cp.Variable(len(losses), nonneg=True), cp.Variable()
    inside = cp.sum(cp.kl_div(weights, np.full(len(losses), 1 / len(losses)))) <= radius
    problem = cp.Problem(cp.Maximize(least), [weights @ losses >= least, cp.sum(weights) == 1, inside])
    return float(problem.solve(solver=cp.CLARABEL))


def quick() -> Iterator[Benchmark]:
    """Yield what runs in about a minute."""
    for kind in POOLS:
        yield against_highs(kind, 20_000, 50, 0.1)
    yield against_highs("boosted", 5_000, 50, 0.1, peer=solve_with_slacks)
    yield path(10_000, 50)
    yield regularized(2_000, 20, 100.0, with_peer=True)
    yield robust(2_000, 20, 0.1, with_peer=True)


def full() -> Iterator[Benchmark]:
    """Yield the sizes that the project promises."""
    for kind in POOLS:
        for alpha in (0.05, 0.2):
            yield against_highs(kind, 100_000, 100, alpha)
    yield against_highs("grouped", 100_000, 100, 0.1, peer=solve_with_slacks)
    for kind in POOLS:
        yield against_highs(kind, 100_000, 100, 0.05, peer=None, tol=1e-6)
    for kind in POOLS:
        for alpha in (0.05, 0.2):
            yield against_highs(kind, 1_000_000, 100, alpha, peer=None)
    for n_samples in (1_000_000, 10_000_000):
        yield against_highs("uneven", n_samples, 50, 0.1, peer=None)
    yield path(45_000, 100)
    yield regularized(2_000, 20, 100.0, with_peer=True)
    yield regularized(45_000, 50, 100.0, with_peer=False)
    yield robust(10_000, 50, 0.1, with_peer=True)
    yield robust(1_000_000, 50, 0.1, with_peer=False)
