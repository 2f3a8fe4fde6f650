"""The zero-one losses of boosted models on all rows, a bit each, in one file: what is left of a run on another machine.

Mixtures, curves and tables are functions of these losses, so nothing else need be kept of a hundred networks. The file
is also where an interrupted run goes on: the weights of the next round follow from the losses so far.
"""

import io
import json
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from counterpoise.persist import write_atomically
from papers.arrays import ByteArray, FloatArray

# What numpy and zipfile raise where the bytes of a file of arrays are others than were written.
DAMAGED = (ValueError, KeyError, TypeError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
PARTS = ("train", "validation", "test")
_FORMAT = "counterpoise losses 1"
_MEMORY = "memory_"  # before the names of what a rule keeps for the next round


class Took(NamedTuple):
    """The seconds of a round, NaN where they are not known, and how many runs shared the device."""

    weighing: float = float("nan")
    training: float = float("nan")
    judging: float = float("nan")
    n_at_once: int = 1

    @property
    def seconds(self) -> float:
        """Return those of the whole round."""
        return self.weighing + self.training + self.judging

    @property
    def on_device(self) -> float:
        """Return the share of a run in the seconds of training."""
        return self.training / self.n_at_once


@dataclass
class KeptLosses:
    """Rounds of boosting: settings, the losses on each part, and what a rule keeps from round to round.

    Examples
    --------
    >>> import numpy as np
    >>> from papers.kept_losses import KeptLosses
    >>> kept = KeptLosses({"dataset": "toy"}, {"train": 3, "validation": 2, "test": 1})
    >>> kept.append({"train": np.array([0, 1, 1]), "validation": np.array([0, 1]), "test": np.array([1])}, 0.5)
    >>> kept.n_rounds, kept.losses("train").tolist()
    (1, [[0], [1], [1]])
    """

    settings: dict[str, Any]
    sizes: dict[str, int]  # rows of each part
    weighted_losses: list[float] = field(default_factory=list)
    memory: dict[str, FloatArray] = field(default_factory=dict)
    took: list[Took] = field(default_factory=list)
    warmup_seconds: float = float("nan")  # of the device, its share where several runs had it
    packed: dict[str, list[ByteArray]] = field(default_factory=lambda: {part: [] for part in PARTS})

    @property
    def n_rounds(self) -> int:
        """Return the number of rounds so far."""
        return len(self.weighted_losses)

    def losses(self, part: str) -> ByteArray:
        """Return the losses on a part, shape (n_rows, n_rounds), one byte each."""
        bits = np.array(self.packed[part], dtype=np.uint8).reshape(self.n_rounds, -(-self.sizes[part] // 8))
        return np.unpackbits(bits, axis=1, count=self.sizes[part]).T

    def append(self, losses: dict[str, ByteArray], weighted_loss: float, took: Took = Took()) -> None:  # noqa: B008
        """Record a round by its losses on each part."""
        for part in PARTS:
            self.packed[part].append(np.packbits(losses[part].astype(np.uint8)))
        self.weighted_losses.append(weighted_loss)
        self.took.append(took)

    def write(self, path: Path) -> None:
        """Write all of it to a file; an interrupt leaves the old one."""
        arrays: dict[str, Any] = {part: np.array(self.packed[part], dtype=np.uint8) for part in PARTS}
        about = json.dumps({"format": _FORMAT, "settings": self.settings, "sizes": self.sizes}, sort_keys=True)
        arrays |= {"took": np.array(self.took, dtype=float), "warmup_seconds": np.array(self.warmup_seconds)}
        arrays |= {f"{_MEMORY}{name}": values for name, values in self.memory.items()}
        stream = io.BytesIO()
        np.savez_compressed(stream, about=about, weighted_losses=np.array(self.weighted_losses), **arrays)
        write_atomically(path, [stream.getvalue()])

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return what a file holds; raise ``ValueError`` where it is torn or another kind of file."""
        content = io.BytesIO(path.read_bytes())
        try:
            with np.load(content, allow_pickle=False) as arrays:
                about = json.loads(str(arrays["about"]))
                kept = cls(about["settings"], about["sizes"], arrays["weighted_losses"].tolist())
                kept.packed = {part: list(arrays[part]) for part in PARTS}
                kept.memory = {
                    name.removeprefix(_MEMORY): arrays[name] for name in arrays.files if name.startswith(_MEMORY)
                }
                kept.took = _took(arrays, kept.n_rounds)
                kept.warmup_seconds = float(arrays["warmup_seconds"]) if "warmup_seconds" in arrays else float("nan")
                _check_whole(kept, about["format"])
        except DAMAGED as error:
            raise ValueError(
                f"the file {path} must hold kept losses of this version; it is damaged or another file ({error}). "
                "Delete it to start from the first round."
            ) from error
        return kept


def _took(arrays: Any, n_rounds: int) -> list[Took]:
    """Return what the file says of seconds; the first files did not."""
    if "took" not in arrays:
        return [Took()] * n_rounds
    return [
        Took(weighing, training, judging, int(n_at_once))
        for weighing, training, judging, n_at_once in arrays["took"].tolist()
    ]


def _check_whole(kept: KeptLosses, found: str) -> None:
    if found != _FORMAT:
        raise ValueError(f"its format is {found!r}")
    if len(kept.took) != kept.n_rounds:
        raise ValueError(f"seconds of {len(kept.took)} rounds, not {kept.n_rounds}")
    for part in PARTS:
        wanted = (kept.n_rounds, -(-kept.sizes[part] // 8))
        got = (len(kept.packed[part]), *(len(bits) for bits in kept.packed[part][:1]))
        if wanted[: len(got)] != got:
            raise ValueError(f"losses on {part} of shape {got}, not {wanted}")


def losses_file(settings: dict[str, Any]) -> str:
    """Return the name of the file for a run with these settings."""
    alpha = "" if settings["alpha"] is None else f"_{settings['alpha']:g}"
    return f"losses_{settings['plan']}_{settings['method']}{alpha}_seed{settings['seed']}.npz"
