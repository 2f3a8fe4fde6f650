"""Rows of a network on its device: standardized, drawn by weight, cropped and flipped. This file needs torch.

Bytes stay bytes on the device, where a batch of them is standardized; other numbers are standardized once on their way
to it. Images lie channels last, the layout in which convolutions are fastest.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional

from counterpoise._base.types import AnyArray, FloatArray

PADDING = 4  # of a random crop, in pixels: the field's habit for images of 32 x 32
_SIDE = 2 * PADDING + 1  # places that a crop can have along an axis
N_MOVES = 2 * _SIDE * _SIDE  # crops and flips
IMAGES = 4  # dimensions of an array of images
_CHUNK = 4096  # rows standardized at once: what they need on the way stays small
_CONSTANT = 1e-10  # a feature that varies less than this part of its size is constant up to rounding
_FAR = 1e15  # deviations: no training row is as far, and sums of such values stay finite in float32


class Standard(NamedTuple):
    """The mean and deviation of each feature, or of each channel of images, over the training rows."""

    centre: FloatArray
    scale: FloatArray


def standard_of(X: AnyArray) -> Standard:
    """Return mean and deviation along the second axis; a feature that is constant up to rounding has its own size."""
    axes, n_values = (0, *range(2, X.ndim)), X.size // X.shape[1]
    chunks = [X[start : start + _CHUNK] for start in range(0, len(X), _CHUNK)]
    with np.errstate(over="ignore"):
        centre = np.sum([chunk.sum(axis=axes, dtype=np.float64) for chunk in chunks], axis=0) / n_values
        deviations = (chunk - _along(centre, X.ndim) for chunk in chunks)
        scale = np.sqrt(np.sum([np.square(one).sum(axis=axes) for one in deviations], axis=0) / n_values)
    if not np.isfinite(scale).all():
        raise ValueError("X must hold features whose squares are finite: divide features above 1e150 by their size.")
    size = np.abs(centre)
    own = np.where(size > 0, size, 1.0)  # of a constant its own size; of one that is 0 there is no other than 1
    return Standard(centre, np.where(scale <= _CONSTANT * size, own, scale))


def _along(vector: FloatArray, ndim: int) -> FloatArray:
    return vector.reshape(1, -1, *[1] * (ndim - 2))


class Inputs:
    """Rows on a device as a network will see them."""

    def __init__(self, X: AnyArray, standard: Standard, place: "NetworkPlace") -> None:
        self.is_image, self.dtype, self.centre = X.ndim == IMAGES, place.dtype, None
        if X.dtype == np.uint8:
            shape = (1, 1, 1, -1) if self.is_image else (1, -1, *[1] * (X.ndim - 2))
            self.centre, self.gain = (
                torch.tensor(vector, dtype=torch.float32, device=place.device).view(shape)
                for vector in (standard.centre, 1 / standard.scale)
            )
        else:
            X = _standardize(X, standard)
        values = torch.tensor(X, device=place.device)
        self.values = values.permute(0, 2, 3, 1).contiguous() if self.is_image else values

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def batch(self, rows: Any, moves: Any = None) -> Any:
        """Return some rows, by their numbers on the device; images cropped and flipped where ``moves`` are given."""
        values = self.values[rows]
        values = values if moves is None else crop_and_flip(values, moves)
        if self.centre is not None:
            values = (values - self.centre) * self.gain
        values = values.to(self.dtype)
        return values.permute(0, 3, 1, 2) if self.is_image else values

    def batches(self, size: int) -> Iterator[Any]:
        """Yield all rows in order, so many at once."""
        for start in range(0, len(self), size):
            yield self.batch(slice(start, start + size))


def _standardize(X: AnyArray, standard: Standard) -> AnyArray:
    """Return the rows in float32, with values that no layer could add up brought to where it can."""
    result = np.empty(X.shape, dtype=np.float32)
    centre, scale = _along(standard.centre, X.ndim), _along(standard.scale, X.ndim)
    for start in range(0, len(X), _CHUNK):
        with np.errstate(over="ignore"):
            values = (X[start : start + _CHUNK] - centre) / scale
        result[start : start + _CHUNK] = values.clip(-_FAR, _FAR)
    return result


def crop_and_flip(images: Any, moves: Any) -> Any:
    """Return images, channels last, each padded with zeros, cropped to its size and perhaps mirrored.

    The move ``(flip * side + down) * side + right`` takes the part of the padded image that starts at ``down`` and
    ``right``, and mirrors it if ``flip`` is 1.
    """
    n_images, height, width, _ = images.shape
    moves = moves[:, None, None]
    flips, downs, rights = moves // _SIDE**2, moves // _SIDE % _SIDE, moves % _SIDE
    lines = torch.arange(height, device=images.device)[None, :, None]
    columns = torch.arange(width, device=images.device)[None, None, :]
    columns = torch.where(flips == 1, width - 1 - columns, columns)
    padded = functional.pad(images, (0, 0, PADDING, PADDING, PADDING, PADDING))
    return padded[torch.arange(n_images, device=images.device)[:, None, None], lines + downs, columns + rights]


class TrainingTargets(NamedTuple):
    """The targets of a network: pairs of a row and a class code, and the weight of each."""

    codes: AnyArray
    weights: AnyArray
    rows: AnyArray | None = None  # None: all rows in their order; else some, perhaps several times

    def on(self, device: Any) -> tuple[Any, Any]:
        """Return rows and codes there."""
        rows = np.arange(len(self.codes)) if self.rows is None else self.rows
        numbers = [torch.from_numpy(array.astype(np.int64)).to(device) for array in (rows, self.codes)]
        return numbers[0], numbers[1]


class Sampler(NamedTuple):
    """Rows drawn with replacement in proportion to their weights, by the inverse of their distribution function.

    Sums are made on the host: a parallel sum may give a row of no weight a chance of 1e-16.
    """

    edges: Any  # float64, on the device: the sums of the weights up to each row
    last: int  # the last row of positive weight, where rounding at the upper end must stop

    @classmethod
    def of(cls, weights: AnyArray, device: Any) -> "Sampler":
        """Return the sampler of some weights."""
        edges = np.cumsum(weights / weights.max(), dtype=np.float64)
        return cls(torch.from_numpy(edges).to(device), int(np.flatnonzero(weights)[-1]))

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        """Return row numbers, on the device."""
        uniforms = torch.rand(shape, generator=generator, dtype=torch.float64, device=self.edges.device)
        return torch.searchsorted(self.edges, uniforms * self.edges[-1], right=True).clamp_(max=self.last)


def epochs(n_rows: int, n_epochs: int, batch_size: int, generator: Any) -> Any:
    """Return a table of shuffled rows, a batch a line, in which each row comes once in each epoch.

    Epochs follow each other within a batch; the last batch is filled up with further rows, so that all have one size.
    """
    n_batches = -(-n_rows * n_epochs // batch_size)
    n_shuffles = -(-n_batches * batch_size // n_rows)
    shuffles = [torch.randperm(n_rows, generator=generator, device=generator.device) for _ in range(n_shuffles)]
    nothing = torch.empty(0, dtype=torch.int64, device=generator.device)
    return torch.cat([nothing, *shuffles])[: n_batches * batch_size].view(n_batches, batch_size)


def make_generator(seed: int, key: int, device: Any) -> Any:
    """Return a generator on the device that seed and key determine; other keys give independent streams."""
    state = np.random.SeedSequence([seed, key]).generate_state(1, np.uint64)[0]
    return torch.Generator(device).manual_seed(int(state >> np.uint64(1)))


class NetworkPlace(NamedTuple):
    """Where and in what precision a network computes, and whether its step is compiled."""

    device: Any
    dtype: Any
    compiles: bool


def find_place(device: str, precision: str, compiles: bool | str) -> NetworkPlace:
    """Return where a network computes by its settings, or raise an error where there is no such device."""
    n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    name = ("cuda" if n_devices else "cpu") if device == "auto" else device
    found = torch.device("cuda", torch.cuda.current_device()) if name == "cuda" and n_devices else torch.device(name)
    if found.type == "cuda" and (found.index or 0) >= n_devices:
        raise ValueError(
            f"device={device!r} does not exist: torch sees {n_devices} CUDA devices here. Use device='auto', which "
            "takes a CUDA device if there is one."
        )
    is_cuda = found.type == "cuda"
    halves = precision == "bfloat16" or (precision == "auto" and is_cuda)
    return NetworkPlace(
        found, torch.bfloat16 if halves else torch.float32, compiles is True or (compiles == "auto" and is_cuda)
    )
