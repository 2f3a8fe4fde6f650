"""The watch for changes: rows until its first false alarm, where the truth is exactly at the bound all the time.

At every batch a test starts. Here all of them are kept, of which the library drops some: so alarms are at least as
frequent as those of the library, and are compared with the number of rows that is promised between them. Runs end after
a multiple of it, and such a run counts with the rows that it had: the means are at most those of runs without an end.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from counterpoise import Monitor
from papers.promises.alarms import KINDS, METHODS, cells_of
from papers.promises.together import GOALS, make_batch
from papers.tables import ResultRow

EXPERIMENT = "run length"
PROMISED = {"batches of 1": (1000, 1), "batches of 100": (10_000, 100)}  # rows between alarms, rows of a batch
LIBRARY = "whole monitor"
STREAMS, ROWS, SQUARES = "streams", "rows", "squares of rows"
_STREAMS_IN_BLOCK, MOST = 250, 20  # runs, and times the promised rows after which they end
OF_LIBRARY = 1000, 250, 10  # promised rows, rows of a batch, runs of a block


class Block(NamedTuple):
    """Some runs of one kind of goals, or of a whole monitor."""

    dataset: str
    learner: str
    method: str
    seed: int


def wanted(n_blocks: int) -> list[Block]:
    """Return the blocks in order."""
    blocks = [
        Block(dataset, kind, method, seed)
        for dataset in PROMISED
        for kind in KINDS
        for method in METHODS
        for seed in range(n_blocks)
    ]
    return blocks + [Block(LIBRARY, f"{len(GOALS)} goals", METHODS[0], seed) for seed in range(n_blocks)]


@njit(cache=True, fastmath=True)
def _run_lengths(ends, streams, factors, scale, is_product, n_streams, n_in_batch, promised, n_repeats, seed):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202 - compiled
    """Return the rows of each run until its alarm, or until it ends.

    The sum over all tests is kept for each stake of each stream, of a product for each pair of stakes: a batch adds its
    number of rows to it, and a row multiplies it.
    """
    np.random.seed(seed)  # noqa: NPY002 - the generator of compiled code
    n_stakes = factors.shape[2]
    n_first, n_second = (n_stakes, n_stakes) if is_product else (n_streams, n_stakes)
    share = n_in_batch / n_stakes**2 if is_product else scale * n_in_batch / n_stakes
    lengths = np.full(n_repeats, MOST * promised)
    for repeat in range(n_repeats):
        money = np.zeros((n_first, n_second))
        for batch in range(MOST * promised // n_in_batch):
            money += share
            for _ in range(n_in_batch):
                cell = np.searchsorted(ends, np.random.random() * ends[-1])  # noqa: NPY002 - the same
                stream = streams[cell]
                if stream < 0:
                    continue
                for one in range(n_first):
                    if not is_product and one != stream:
                        continue
                    for other in range(n_second):
                        money[one, other] *= factors[0, cell, one if is_product and stream == 0 else other]
            if money.sum() >= promised:
                lengths[repeat] = (batch + 1) * n_in_batch
                break
    return lengths


def measure(block: Block) -> list[ResultRow]:
    """Return the sums of a block."""
    lengths = _of_library(block.seed) if block.dataset == LIBRARY else _of_kind(block)
    values = {STREAMS: lengths.size, ROWS: lengths.sum(), SQUARES: (lengths**2).sum()}
    place = block.dataset, block.learner, block.method, block.seed
    return [ResultRow(EXPERIMENT, *place, None, name, "", float(value)) for name, value in values.items()]


def _of_kind(block: Block) -> np.ndarray:
    kind, (promised, n_in_batch) = KINDS[block.learner], PROMISED[block.dataset]
    cells = cells_of(kind, are_weighted=block.method == "weighted")
    numbers = list(PROMISED).index(block.dataset), list(KINDS).index(block.learner), METHODS.index(block.method)
    seed = int(np.dot((*numbers, block.seed), (100_000, 1000, 100, 1)))
    options = kind.factor, kind.is_product, len(kind.sources), n_in_batch, promised
    return np.asarray(_run_lengths(*cells, *options, _STREAMS_IN_BLOCK, seed), dtype=np.float64)


def _of_library(seed: int) -> np.ndarray:
    """Watch all goals of the joint study by one monitor, each exactly at its bound."""
    rng = np.random.default_rng([530, seed])
    promised, n_in_batch, n_runs = OF_LIBRARY
    options: dict[str, Any] = {
        "classes": [0, 1],
        "defer_label": 2,
        "largest_value": 1000,
        "groups": {"sex": ["F", "M"]},
    }
    lengths = []
    for _ in range(n_runs):
        monitor, n_rows = Monitor(GOALS, run_length=promised, **options), 0
        while n_rows < MOST * promised and not any(one.changed_at for one in monitor.verdicts):
            monitor.update(**make_batch(rng, n_in_batch))
            n_rows += n_in_batch
        lengths.append(n_rows)
    return np.array(lengths, dtype=np.float64)
