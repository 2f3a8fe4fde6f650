"""What travels in a round of boosting over shards, by the number of rows: it should not depend on it.

    python bench/shards.py [N_ROWS ...]

Counts, over shards in this process, the pickled bytes of all that functions are given and hand back, as an engine with
other processes would send them, for each of four shards.
"""

import pickle
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from counterpoise import AdaLPBoostClassifier
from counterpoise._base.shards import LocalShards
from counterpoise.distributed.fitting import fit_over
from counterpoise.learners import HistogramTree

N_SHARDS, N_FEATURES, N_ROUNDS = 4, 20, 5
SIZES = (100_000, 1_000_000)


class Counted(LocalShards):
    """Shards that count what would travel."""

    is_here = False
    sent, received = 0, 0

    def map(self, function: Callable[..., Any], *given: Any, light: bool = False) -> list[Any]:
        """Map, and count."""
        found = super().map(function, *given, light=light)
        if function.__name__ != "_fill":
            self.sent += self.n_shards * len(pickle.dumps(given))
            self.received += sum(len(pickle.dumps(one)) for one in found)
        return found


def main() -> None:
    """Print a line for each number of rows."""
    for n_rows in [int(float(text)) for text in sys.argv[1:]] or SIZES:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n_rows, N_FEATURES), dtype=np.float32)
        y = (X[:, 0] * X[:, 1] + X[:, 2] + rng.standard_normal(n_rows) > 0).astype(np.int8)
        parts = zip(np.array_split(X, N_SHARDS), np.array_split(y, N_SHARDS), strict=True)
        with Counted([partial(dict, X=own, y=labels) for own, labels in parts]) as shards:
            marks = []
            model = AdaLPBoostClassifier(
                HistogramTree(5), n_estimators=N_ROUNDS, callbacks=[partial(note, marks, shards)], random_state=0
            )
            fit_over(model, shards)
            marks.append((time.perf_counter(), shards.sent, shards.received))
        told = [f"{(after - before) / 2**20:.2f}" for before, after in zip(marks[1][1:], marks[2][1:], strict=True)]
        last = [f"{(after - before) / 2**20:.2f}" for before, after in zip(marks[-2][1:], marks[-1][1:], strict=True)]
        print(
            f"{n_rows:>12,} rows: a round {marks[2][0] - marks[1][0]:.2f} s, to shards {told[0]} MiB, from them "
            f"{told[1]} MiB; the mixture {last[0]} and {last[1]} MiB",
            flush=True,
        )


def note(marks: list[tuple[float, int, int]], shards: Counted, _done: object) -> None:
    """Note what travelled so far."""
    marks.append((time.perf_counter(), shards.sent, shards.received))


if __name__ == "__main__":
    main()
