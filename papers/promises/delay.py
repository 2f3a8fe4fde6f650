"""Delay: rows until a violation is proven, beside a test that knows when to look, MAPIE, and a naive daily test.

A rate may be at most 0.3, or a difference of two rates at most 0.05, and is 1, 2 or 5 points above that from the first
row on. The test that knows when to look has a fixed number of rows, as many as show the violation with a stated
probability; the naive one looks at all rows so far after every day of 500 rows, each time at 5 %.
"""

import math
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from counterpoise.theory.confidence import WeightedSample
from counterpoise.theory.sequential import log_evidence, log_wealth
from papers.arrays import AnyArray, FloatArray
from papers.tables import ResultRow

EXPERIMENT, DATASET = "delay", "delay"
RISK, DAY = 0.05, 500
OURS, MAPIE, NAIVE = "counterpoise", "MAPIE", "daily test at 5 %"
METHODS = OURS, MAPIE, NAIVE
BOUND, GAP, SHARE = 0.3, 0.05, 0.4  # of a rate, of a difference, and of the rows that are of the first group
STREAMS_IN_BLOCK = 25
MAPIE_ROWS = 4000  # it takes milliseconds a row
_OF_MAPIE = 3, MAPIE_ROWS  # streams of a block, and their rows
POINTS = {0: 20_000, 1: 150_000, 2: 50_000, 5: 20_000}  # above the bound, in hundredths, and the most rows
RATE, DIFFERENCE = "a rate", "a difference of two groups"


class Block(NamedTuple):
    """Some streams of one violation, watched in one way."""

    dataset: str
    learner: str
    method: str
    seed: int


def wanted(n_blocks: int) -> list[Block]:
    """Return the blocks; those of MAPIE are left out where it is not installed."""
    methods = METHODS if find_spec("mapie") is not None else (OURS, NAIVE)
    return [
        Block(DATASET, f"{what}, {points}", method, seed)
        for what in (RATE, DIFFERENCE)
        for points in POINTS
        for method in methods
        if method != MAPIE or (what, points) == (RATE, max(POINTS))
        for seed in range(n_blocks)
    ]


def measure(block: Block) -> list[ResultRow]:
    """Return the rows of each stream until the violation is proven; infinity where it never is."""
    what, points = block.learner.rsplit(", ", 1)
    n_rows, rng = POINTS[int(points)], np.random.default_rng([block.seed, int(points)])
    n_streams, n_rows = _OF_MAPIE if block.method == MAPIE else (STREAMS_IN_BLOCK, n_rows)
    delays = []
    for _ in range(n_streams):
        if what == RATE:
            hits = rng.random(n_rows) < BOUND + int(points) / 100
            delays.append(_OF_RATE[block.method](hits))
        else:
            is_first = rng.random(n_rows) < SHARE
            hits = rng.random(n_rows) < np.where(is_first, BOUND + GAP + int(points) / 100, BOUND)
            delays.append(_of_difference(hits, is_first, is_naive=block.method == NAIVE))
    return [
        ResultRow(EXPERIMENT, *block, None, "rows", str(number), delay if math.isfinite(delay) else -1.0)
        for number, delay in enumerate(delays)
    ]


def fixed_rows(what: str, points: int, power: float) -> float:
    """Return the rows that a test at 5 % needs to find the violation with that probability (normal approximation)."""
    above = BOUND + points / 100
    at_bound, at_truth = BOUND * (1 - BOUND), above * (1 - above)
    if what == DIFFERENCE:
        first = BOUND + GAP + points / 100
        others = BOUND * (1 - BOUND) / (1 - SHARE)
        at_bound = at_truth = first * (1 - first) / SHARE + others
    width = norm.ppf(1 - RISK) * math.sqrt(at_bound) + norm.ppf(power) * math.sqrt(at_truth)
    return float((100 * width / points) ** 2)


def _first(is_proven: AnyArray, step: int = 1) -> float:
    return float((is_proven.argmax() + 1) * step) if is_proven.any() else math.inf


def _ours(hits: AnyArray) -> float:
    """Look after every row, in pieces, as most streams end early."""
    seen, ones = np.arange(1.0, hits.size + 1), hits.cumsum().astype(np.float64)
    for start in range(0, hits.size, 4096):
        part = slice(start, start + 4096)
        counts = np.column_stack([seen[part] - ones[part], ones[part]])
        logs = log_wealth(WeightedSample(np.array([0.0, 1.0]), np.ones(2), counts, (0.0, 1.0)), np.array([BOUND]))
        if (logs >= -math.log(RISK)).any():
            return start + _first(logs[:, 0] >= -math.log(RISK))
    return math.inf


def _mapie(hits: AnyArray) -> float:
    """Watch the false positive rate of rows that are all negative; of its level MAPIE takes one half for the stream."""
    monitoring = import_module("mapie.exchangeability_testing").RiskMonitoring
    monitor = monitoring("fpr", test_level=2 * RISK, threshold=BOUND, warn=False)
    monitor.update(np.zeros(hits.size, dtype=int), hits.astype(int))
    return _first(monitor.online_risk_lower_bound_sequence_history > BOUND)


def _daily(hits: AnyArray) -> float:
    seen = np.arange(DAY, hits.size + 1, DAY)
    scores = (hits.cumsum()[seen - 1] / seen - BOUND) / np.sqrt(BOUND * (1 - BOUND) / seen)
    return _first(scores > norm.ppf(1 - RISK), DAY)


_OF_RATE = {OURS: _ours, MAPIE: _mapie, NAIVE: _daily}


def _of_difference(hits: AnyArray, is_first: AnyArray, *, is_naive: bool) -> float:
    """Look after every day."""
    counts = [np.cumsum(one)[DAY - 1 :: DAY].astype(np.float64) for one in _parts(hits, is_first)]
    misses, ones, others_missed, others = counts
    rates = ones / (ones + misses), others / (others + others_missed)
    variance = sum(
        rate * (1 - rate) / n for rate, n in zip(rates, (ones + misses, others + others_missed), strict=True)
    )
    scores = (rates[0] - rates[1] - GAP) / np.sqrt(variance)
    if is_naive:
        return _first(scores > norm.ppf(1 - RISK), DAY)
    for day in np.flatnonzero(scores > 1.0).tolist():  # before that no evidence is enough
        samples = [_sample(misses[day], ones[day], 1.0), _sample(others_missed[day], others[day], -1.0)]
        if log_evidence(samples, GAP, are_disjoint=True, level=-math.log(RISK)) >= -math.log(RISK):
            return (day + 1.0) * DAY
    return math.inf


def _parts(hits: AnyArray, is_first: AnyArray) -> Sequence[AnyArray]:
    return is_first & ~hits, is_first & hits, ~is_first & ~hits, ~is_first & hits


def _sample(misses: float, ones: float, sign: float) -> WeightedSample:
    span = (min(sign, 0.0), max(sign, 0.0))
    values: FloatArray = np.array([0.0, sign])
    return WeightedSample(values, np.ones(2), np.array([misses, ones]), span)
