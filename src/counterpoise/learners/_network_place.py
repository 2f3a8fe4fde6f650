"""Where a network computes, in what precision and by how many threads. This file needs torch."""

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import nn

from counterpoise._base.cpus import available_cpus
from counterpoise.learners._network_data import GLOBAL_STATE, find_device
from counterpoise.learners._network_settings import Settings

_MATRIX = 2  # dimensions
_SMALL = 1 << 16  # parameters: layers of a few thousand products a row, too little to share among threads
_THREADS_A_CORE = 2  # where waiting threads must sleep: the fewest that share the work evenly


class Place(NamedTuple):
    """Where and in what precision a network computes."""

    device: Any
    dtype: Any
    captures: bool


def find_place(settings: Settings) -> Place:
    """Return where a network computes by its settings."""
    device = find_device(settings.device)
    is_cuda = device.type == "cuda"
    if settings.cuda_graphs is True and not is_cuda:
        raise ValueError("cuda_graphs=True needs a CUDA device; with 'auto' they are used where there is one.")
    halves = settings.precision == "bfloat16" or (settings.precision == "auto" and is_cuda)
    return Place(device, torch.bfloat16 if halves else torch.float32, is_cuda and settings.cuda_graphs is not False)


def is_host(place: Place) -> bool:
    """Tell whether a network as it was built is in its place."""
    return bool(place.device.type == "cpu" and place.dtype == torch.float32)


def is_small(module: nn.Module) -> bool:
    """Tell whether a network is too small for several threads: few parameters, none of convolutions."""
    parameters = list(module.parameters())
    return all(one.ndim <= _MATRIX for one in parameters) and sum(one.numel() for one in parameters) < _SMALL


@contextmanager
def on(place: Place, *, small: bool, trains: bool = False) -> Iterator[None]:
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
    if 1 < n_threads == available_cpus():  # not where someone asked for fewer
        torch.set_num_threads(_THREADS_A_CORE * n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
