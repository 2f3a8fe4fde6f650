"""False alarms: streams whose truth is exactly at the bound, looked at after every row.

The evidence after every row is a product of factors that depend on the row's cell alone: its stream, its value and its
weight. So the factors are tables, made by the library, and thousands of streams are multiplied up in a compiled loop.
Where a goal is on two streams the library takes the least evidence over all pairs of means; here it is that at the true
pair, which is never less: the shares of false verdicts are then at least those of the library.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from counterpoise.auditing.streams import LEVELS
from counterpoise.theory.confidence import WeightedSample
from counterpoise.theory.sequential import log_factors
from papers.tables import ResultRow

EXPERIMENT = "false alarms"
DATASETS = {"20,000 rows": (20_000, 500), "100,000 rows": (100_000, 50)}  # rows of a stream, streams of a block
METHODS = ("equal", "weighted")
STREAMS, FAILS, HOLDS = "streams", "ever fails", "ever holds"
RISK = 0.05
_WEIGHTS = LEVELS[[-1, -4, -7]]  # 1, 0.3 and 0.09


class Source(NamedTuple):
    """Rows of one stream: how often they come, which values they have and how often."""

    share: float
    values: tuple[float, ...]
    chances: tuple[float, ...]
    span: tuple[float, float]


class Kind(NamedTuple):
    """A kind of goal: the evidence that it fails is a factor times the product or the sum of that of its streams."""

    sources: tuple[Source, ...]
    factor: float = 1.0
    is_product: bool = False


def _rate(rate: float, share: float = 1.0, sign: float = 1.0) -> Source:
    """Return rows of which a share counts, with that sign and size."""
    return Source(share, (0.0, sign), (1.0 - rate, rate), (min(sign, 0.0), max(sign, 0.0)))


_AMOUNTS = Source(1.0, (0.0, 0.01, 0.05, 0.2, 1.0), (0.7, 0.15, 0.1, 0.04, 0.01), (-1.0, 1.0))
KINDS = {
    "selection rate": Kind((_rate(0.3),)),
    "recall of a group": Kind((_rate(0.8, 0.15),)),
    "precision": Kind((_rate(0.9, 0.3),)),
    "churn": Kind((_rate(0.03),)),
    "difference of two groups": Kind((_rate(0.35, 0.3), _rate(0.25, 0.7, -1.0)), is_product=True),
    "ratio of two groups": Kind((_rate(0.24, 0.3), _rate(0.3, 0.7, -0.8)), is_product=True),
    "every group of three": Kind(tuple(_rate(0.2, share) for share in (0.6, 0.3, 0.1)), 0.9 / 3),
    "cost in amounts": Kind((_AMOUNTS,)),
    "equality": Kind((_rate(0.52),), 0.5),
}


class Block(NamedTuple):
    """Some streams of one kind."""

    dataset: str
    learner: str
    method: str
    seed: int


def wanted(datasets: Sequence[str], n_blocks: int) -> list[Block]:
    """Return the blocks in order."""
    return [
        Block(dataset, kind, method, seed)
        for dataset in DATASETS
        if dataset in datasets
        for kind in KINDS
        for method in METHODS
        for seed in range(n_blocks)
    ]


class Cells(NamedTuple):
    """All kinds of rows of a stream of rows: what each happens with, and what it does to the evidence."""

    ends: np.ndarray  # (n_cells,): sums of chances
    streams: np.ndarray  # (n_cells,): of which stream, -1 outside of all
    factors: np.ndarray  # (2, n_cells, n_stakes): for more than the truth, and for less


def cells_of(kind: Kind, *, are_weighted: bool) -> Cells:
    """Return the cells of a kind. Light rows have large values more often, so that weights matter."""
    chances, streams, factors = [], [], []
    for number, source in enumerate(kind.sources):
        values, share = np.array(source.values), np.array(source.chances)
        weights, parts = np.ones(1), np.ones((values.size, 1))
        if are_weighted:
            weights = _WEIGHTS
            tilt = (np.abs(values) > 0)[:, None] * np.array([-0.1, 0.0, 0.1])
            parts = 1.0 / 3.0 + tilt
        joint = (share[:, None] * parts).ravel()
        cells = np.repeat(values, weights.size), np.tile(weights, values.size)
        mean = float((joint * cells[1]) @ cells[0] / (joint @ cells[1]))
        both = []
        for sign in (1.0, -1.0):
            span = source.span if sign > 0 else (-source.span[1], -source.span[0])
            rows = WeightedSample(sign * cells[0], cells[1], np.ones(joint.size), span)
            both.append(np.exp(log_factors(rows, np.array([sign * mean]))[:, 0]).T)
        chances.append(source.share * joint)
        streams.append(np.full(joint.size, number))
        factors.append(np.array(both))
    inside = np.concatenate(chances)
    n_stakes = factors[0].shape[2]
    return Cells(
        np.cumsum(np.append(inside, max(1.0 - inside.sum(), 0.0))),
        np.append(np.concatenate(streams), -1),
        np.concatenate([*factors, np.ones((2, 1, n_stakes))], axis=1),
    )


@njit(cache=True, fastmath=True)
def _count_ever(ends, streams, factors, scale, is_product, n_streams, n_rows, n_repeats, level, seed):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202 - compiled
    """Return how many streams ever reach the level: for "fails", for "holds"."""
    np.random.seed(seed)  # noqa: NPY002 - the generator of compiled code
    n_stakes = factors.shape[2]
    reached = np.zeros(2)
    for _ in range(n_repeats):
        money = np.full((2, n_streams, n_stakes), 1.0 / n_stakes)
        sums = np.ones((2, n_streams))
        ever = np.zeros(2)
        for _ in range(n_rows):
            cell = np.searchsorted(ends, np.random.random() * ends[-1])  # noqa: NPY002 - the same
            stream = streams[cell]
            if stream < 0:
                continue
            for side in range(2):
                total = 0.0
                for stake in range(n_stakes):
                    money[side, stream, stake] *= factors[side, cell, stake]
                    total += money[side, stream, stake]
                sums[side, stream] = total
                evidence = sums[side].prod() if is_product else scale * sums[0].sum() if side == 0 else sums[1].min()
                if evidence >= level:
                    ever[side] = 1.0
            if ever.all():
                break
        reached += ever
    return reached


def measure(block: Block) -> list[ResultRow]:
    """Return the counts of a block."""
    kind, (n_rows, n_repeats) = KINDS[block.learner], DATASETS[block.dataset]
    cells = cells_of(kind, are_weighted=block.method == "weighted")
    numbers = list(DATASETS).index(block.dataset), list(KINDS).index(block.learner), block.seed
    n_streams, seed = len(kind.sources), int(np.dot(numbers, (77, 1000, 1)))
    fails, holds = _count_ever(*cells, kind.factor, kind.is_product, n_streams, n_rows, n_repeats, 1.0 / RISK, seed)
    values = {STREAMS: float(n_repeats), FAILS: float(fails), HOLDS: float(holds)}
    return [ResultRow(EXPERIMENT, *block, None, name, "", value) for name, value in values.items()]
