"""A checkpoint of rounds over shards: the models. All else shards find again by asking them about their rows."""

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from counterpoise._base.types import FloatArray
from counterpoise.boosting.checkpoint import CheckpointFolder, Run, SavedRound, Seeds, setting_texts
from counterpoise.boosting.rounds import Round
from counterpoise.boosting.run import Best
from counterpoise.distributed.boosting import ELSEWHERE, ShardHistory, take
from counterpoise.distributed.rows import Cells
from counterpoise.learners.binning import as_floats, as_matrix

_NOTHING = np.empty(0, dtype=np.uint8)


def run_of(settings: dict[str, Any], seeds: Seeds, cells: Cells, sample: Any) -> Run:
    """Return what decides the rounds, for a checkpoint to compare: of the rows their cells, and the sample of bins."""
    data = {
        "rows": str(cells.known.n_rows),
        "classes": repr(cells.known.classes.tolist()),
        "groups": hashlib.sha256(repr(cells.values).encode() + cells.mass.tobytes()).hexdigest(),
        "X": hashlib.sha256(np.ascontiguousarray(as_floats(as_matrix(sample))).tobytes()).hexdigest(),
    }
    return Run(setting_texts(settings), data, seeds if settings["random_state"] is None else None)


def restored(saved: CheckpointFolder, run: Run, history: ShardHistory) -> Iterator[tuple[FloatArray, SavedRound]]:
    """Take the rounds that were saved, as many as are wanted, and yield each with what it tells cells."""
    saved.claim(run)
    for number in range(1, min(saved.n_rounds, history.n_planned) + 1):
        done = saved.read(number)
        said, _ = take(history.shards, history.cells, done.model, number)
        history.append(Round(number, done.model, ELSEWHERE, _NOTHING, done.weighted_loss, said=said))
        yield said, done


def save(saved: CheckpointFolder, done: Round, best: Best, *, is_last: bool) -> None:
    """Save the model of a round."""
    least = best.value, best.number
    saved.write(done.number, SavedRound(done.model, _NOTHING, None, done.weighted_loss, {}, least, is_last, False))
