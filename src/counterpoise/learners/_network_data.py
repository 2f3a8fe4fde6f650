"""Rows of a network on its device, and minibatches of them. This file needs torch.

Bytes stay bytes on the device and are standardized batch by batch there; floats are standardized once on their way to
it. Images lie channels last, the layout in which convolutions are fastest. ``NetworkPlace`` is where a network
computes, and in what precision.
"""

import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from counterpoise._base.shards import available_cpus
from counterpoise._base.types import AnyArray, FloatArray
from counterpoise.learners._network_settings import Settings

PADDING = 4  # of a random crop, in pixels: the field's habit for images of 32 x 32
_SIDE = 2 * PADDING + 1  # places that a crop can have along an axis
N_MOVES = 2 * _SIDE * _SIDE  # crops and flips
_IMAGES = 4  # dimensions of an array of images
_CHUNK = 4096  # rows standardized at once: what they need on the way stays small
_CONSTANT = 1e-10  # a feature that varies less than this part of its size is constant up to rounding
_ORDINARY = 300  # binary digits: squares of numbers between 2**-300 and 2**300 neither overflow nor vanish
_EXTREME = 1000  # binary digits: powers of two up to here are normal numbers
_FAR = 1e15  # deviations: no training row is as far, and sums of such values stay finite in float32
GLOBAL_STATE = threading.RLock()  # torch's generators and flags are one for all threads


class Standard(NamedTuple):
    """The mean and deviation of each feature, or of each channel of images, over the training rows."""

    centre: FloatArray
    scale: FloatArray


def standard_of(X: AnyArray) -> Standard:
    """Return mean and deviation along the second axis; a feature that is constant up to rounding has its own size."""
    axes = (0, *range(2, X.ndim))
    chunks = [X[start : start + _CHUNK] for start in range(0, len(X), _CHUNK)]
    n_values = X.size // X.shape[1]
    unit = _units(chunks, axes)
    if (unit != 1).any():
        chunks = [chunk / _along(unit, X.ndim) for chunk in chunks]
    centre = np.sum([chunk.sum(axis=axes, dtype=np.float64) for chunk in chunks], axis=0) / n_values
    middle = _along(centre, X.ndim)
    squares = np.sum([np.square(chunk - middle).sum(axis=axes) for chunk in chunks], axis=0)
    scale = np.sqrt(squares / n_values)
    size = np.abs(centre)
    own = np.where(size > 0, size * unit, 1.0)  # of a constant its own size; of one that is 0 there is no other than 1
    return Standard(centre * unit, np.where(scale <= _CONSTANT * size, own, scale * unit))


def _units(chunks: list[AnyArray], axes: tuple[int, ...]) -> FloatArray:
    """Return the number to measure each feature in: 1, or a power of two where squares leave the range of floats."""
    bounds = [chunk.astype(np.float64) for part in chunks for chunk in (part.min(axis=axes), part.max(axis=axes))]
    digits = np.frexp(np.abs(bounds).max(axis=0))[1]
    digits = np.where(np.abs(digits) > _ORDINARY, digits, 0).clip(-_EXTREME, _EXTREME)
    return np.asarray(np.ldexp(1.0, digits))


def _along(vector: FloatArray, ndim: int) -> FloatArray:
    return vector.reshape(1, -1, *[1] * (ndim - 2))


class Inputs:
    """Rows on a device as a network will see them."""

    def __init__(self, X: AnyArray, standard: Standard, device: Any, dtype: Any) -> None:
        self.is_image, self.dtype = X.ndim == _IMAGES, dtype
        self.centre: Any = None
        if X.dtype == np.uint8:
            shape = (1, 1, 1, -1) if self.is_image else (1, -1, *[1] * (X.ndim - 2))
            self.centre = torch.tensor(standard.centre, dtype=torch.float32, device=device).view(shape)
            self.gain = torch.tensor(1 / standard.scale, dtype=torch.float32, device=device).view(shape)
        else:
            X = _standardize(X, standard)
        values = torch.tensor(X, device=device) if X.dtype == np.uint8 else torch.from_numpy(X).to(device)
        self.values = values.permute(0, 2, 3, 1).contiguous() if self.is_image else values

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def batch(self, rows: Any, moves: Any = None, places: Any = None) -> Any:
        """Return some rows, by their numbers on the device; images cropped and flipped where ``moves`` are given."""
        values = self.values.index_select(0, rows)
        return self._as_input(values if moves is None else crop_and_flip(values, moves, places))

    def batches(self, size: int) -> Iterator[Any]:
        """Yield all rows in order, so many at once."""
        for start in range(0, len(self), size):
            yield self._as_input(self.values[start : start + size])

    def _as_input(self, values: Any) -> Any:
        if self.centre is not None:
            values = (values - self.centre) * self.gain
        values = values.to(self.dtype)
        return values.permute(0, 3, 1, 2) if self.is_image else values


def _standardize(X: AnyArray, standard: Standard) -> AnyArray:
    """Return the rows in float32, with values that no layer could add up brought to where it can."""
    result = np.empty(X.shape, dtype=np.float32)
    centre, scale = _along(standard.centre, X.ndim), _along(standard.scale, X.ndim)
    for start in range(0, len(X), _CHUNK):
        with np.errstate(over="ignore"):
            values = (X[start : start + _CHUNK] - centre) / scale
        result[start : start + _CHUNK] = values.clip(-_FAR, _FAR)
    return result


def move_places(height: int, width: int, device: Any) -> Any:
    """Return for each crop and flip where each pixel comes from, shape (N_MOVES, height * width).

    Places are counted in an image padded on all sides. The move ``(flip * side + down) * side + right`` takes the part
    that starts at ``down`` and ``right`` and mirrors it if ``flip`` is 1.
    """
    flips, downs, rights = torch.meshgrid(*(torch.arange(n, device=device) for n in (2, _SIDE, _SIDE)), indexing="ij")
    columns = torch.arange(width, device=device)
    columns = torch.where(flips.reshape(-1, 1) == 1, width - 1 - columns, columns) + rights.reshape(-1, 1)
    lines = torch.arange(height, device=device) + downs.reshape(-1, 1)
    return (lines[:, :, None] * (width + 2 * PADDING) + columns[:, None, :]).reshape(N_MOVES, -1)


def crop_and_flip(images: Any, moves: Any, places: Any) -> Any:
    """Return images, channels last, each padded with zeros and then moved by its entry of ``moves``."""
    padded = functional.pad(images, (0, 0, PADDING, PADDING, PADDING, PADDING))
    n_images, height, width, n_channels = padded.shape
    starts = torch.arange(0, n_images * height * width, height * width, device=images.device)
    index = places.index_select(0, moves) + starts[:, None]
    return padded.reshape(-1, n_channels).index_select(0, index.reshape(-1)).view(images.shape)


class TrainingTargets(NamedTuple):
    """The targets of a network: pairs of a row and a class code, and the weight of each."""

    codes: AnyArray
    weights: AnyArray
    rows: AnyArray | None = None  # None: all rows in their order; else some, perhaps several times

    def on(self, device: Any) -> tuple[Any, Any]:
        """Return rows and codes there."""
        rows = np.arange(len(self.codes)) if self.rows is None else self.rows
        numbers = [torch.from_numpy(part.astype(np.int64)).to(device) for part in (rows, self.codes)]
        return numbers[0], numbers[1]


class Sampler(NamedTuple):
    """Rows drawn with replacement in proportion to their weights, by the inverse of their distribution function.

    Sums are made on the host: a parallel sum may give a row of no weight a chance of 1e-16.
    """

    edges: Any  # float64, on the device: the sums of the weights up to each row
    last: int  # the last row of positive weight, where rounding at the upper end must stop

    @classmethod
    def of(cls, weights: AnyArray, device: Any) -> "Sampler":
        """Return the sampler of some weights, of any scale."""
        # By a power of two, which rounds nothing: sums of the largest floats overflow, parts of the least vanish.
        edges = np.cumsum(np.ldexp(weights, -int(np.frexp(weights.max())[1])), dtype=np.float64)
        return cls(torch.from_numpy(edges).to(device), int(np.flatnonzero(weights)[-1]))

    def draw(self, shape: tuple[int, ...], generator: Any) -> Any:
        """Return row numbers, on the device."""
        uniforms = torch.rand(shape, generator=generator, dtype=torch.float64, device=self.edges.device)
        return torch.searchsorted(self.edges, uniforms * self.edges[-1], right=True).clamp_(max=self.last)


def epochs(n_rows: int, n_epochs: int, batch_size: int, generator: Any) -> Iterator[tuple[int, Any]]:
    """Yield the number of an epoch and a table of shuffled rows, a batch a line, with each row once in each epoch.

    Epochs follow each other within a batch; the very last batch is filled up with further rows, so that all
    batches have one size.
    """
    left = torch.empty(0, dtype=torch.int64, device=generator.device)
    for number in range(n_epochs):
        parts = [left, torch.randperm(n_rows, generator=generator, device=generator.device)]
        if number == n_epochs - 1:
            missing = -(len(left) + n_rows) % batch_size
            n_more = -(-missing // n_rows)
            more = [torch.randperm(n_rows, generator=generator, device=generator.device) for _ in range(n_more)]
            parts += [torch.cat(more)[:missing]] if more else []
        stream = torch.cat(parts)
        n_whole = len(stream) // batch_size
        left = stream[n_whole * batch_size :]
        if n_whole:
            yield number, stream[: n_whole * batch_size].view(n_whole, batch_size)


def make_generator(seed: int, key: int, device: Any) -> Any:
    """Return a generator on the device that seed and key determine; other keys give independent streams."""
    state = np.random.SeedSequence([seed, key]).generate_state(1, np.uint64)[0]
    return torch.Generator(device).manual_seed(int(state >> np.uint64(1)))


@contextmanager
def own_randomness(seed: int, device: Any) -> Iterator[None]:
    """Seed torch's global generators inside the block and put them back after it.

    Initial parameters and layers such as dropout draw from nothing else. One thread at a time.
    """
    devices = [] if device.type == "cpu" else [device.index]
    with GLOBAL_STATE, torch.random.fork_rng(devices=devices, device_type="cuda"):
        torch.default_generator.manual_seed(seed)
        for index in devices:
            torch.cuda.default_generators[index].manual_seed(seed)
        yield


def find_device(name: str) -> Any:
    """Return the device of that name, or raise an error where there is none."""
    n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        name = "cuda" if n_devices else "cpu"
    device = torch.device("cuda", torch.cuda.current_device()) if name == "cuda" and n_devices else torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= n_devices:
        raise ValueError(
            f"device={name!r} does not exist: torch sees {n_devices} CUDA devices here. Use device='auto', which "
            "takes a CUDA device if there is one."
        )
    return device


_MATRIX = 2  # dimensions
_SMALL = 1 << 16  # parameters: layers of a few thousand products a row, too little to share among threads
_THREADS_A_CORE = 2  # where waiting threads must sleep: the fewest that share the work evenly


class NetworkPlace(NamedTuple):
    """Where and in what precision a network computes."""

    device: Any
    dtype: Any
    captures: bool


def find_place(settings: Settings) -> NetworkPlace:
    """Return where a network computes by its settings."""
    device = find_device(settings.device)
    is_cuda = device.type == "cuda"
    if settings.cuda_graphs is True and not is_cuda:
        raise ValueError("cuda_graphs=True needs a CUDA device; with 'auto' they are used where there is one.")
    halves = settings.precision == "bfloat16" or (settings.precision == "auto" and is_cuda)
    return NetworkPlace(
        device, torch.bfloat16 if halves else torch.float32, is_cuda and settings.cuda_graphs is not False
    )


def is_host(place: NetworkPlace) -> bool:
    """Return whether a network as it was built is in its place."""
    return bool(place.device.type == "cpu" and place.dtype == torch.float32)


def is_small(module: nn.Module) -> bool:
    """Return whether a network is too small for several threads: few parameters, none of convolutions."""
    parameters = list(module.parameters())
    return all(one.ndim <= _MATRIX for one in parameters) and sum(one.numel() for one in parameters) < _SMALL


@contextmanager
def on(place: NetworkPlace, *, small: bool, trains: bool = False) -> Iterator[None]:
    """Compute there, as fast as it goes; torch's flags are one for all threads, which therefore take turns.

    Trials choose the fastest kernels of cuDNN for a shape. They are for training, whose batches have one size: each
    further size needs its own.
    """
    if place.device.type == "cuda":  # where float32 means full precision, not TF32
        flags = torch.backends.cudnn.flags(enabled=True, benchmark=trains, deterministic=False, allow_tf32=False)
        with GLOBAL_STATE, torch.cuda.device(place.device), flags:
            yield
    elif small:
        with GLOBAL_STATE, _one_thread_of_blas():
            yield
    elif trains and platform.machine() == "aarch64":
        with GLOBAL_STATE, _threads_that_sleep():
            yield
    else:
        yield


@contextmanager
def _one_thread_of_blas() -> Iterator[None]:
    """Compute small layers in one thread, whatever the machine, and by BLAS: oneDNN on ARM takes ten times as long."""
    n_threads, with_mkldnn = torch.get_num_threads(), torch.backends.mkldnn.enabled
    torch.set_num_threads(1)
    torch.backends.mkldnn.enabled = False
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
        torch.backends.mkldnn.enabled = with_mkldnn


@contextmanager
def _threads_that_sleep() -> Iterator[None]:
    """Let threads that wait for each other sleep, where all processors are used.

    On ARM the gradients of many convolutions are made image by image, and all threads meet twice for each. OpenMP of
    GCC lets those that came first spin 300,000 times before they sleep, but 100 times where there are more threads than
    processors (its manual on GOMP_SPINCOUNT, which is read once, when torch loads). A step of WRN-10-1 at batch 128, on
    two cores shared with other work: 2.0 s of CPU time by two threads, 0.75 s by four, 0.65 s by one. The layout
    matters less: by one thread 1.1 s channels first, 0.8 s in either without oneDNN.
    """
    n_threads = torch.get_num_threads()
    if 1 < n_threads == available_cpus():  # not where fewer are set
        torch.set_num_threads(_THREADS_A_CORE * n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
