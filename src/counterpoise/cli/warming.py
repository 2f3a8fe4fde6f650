"""Compiling every kernel ahead of time, so that no later process waits for it."""

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, suppress
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from counterpoise._base.progress import watch_compilation
from counterpoise._base.threads import available_cpus

if TYPE_CHECKING:
    from counterpoise._base.compiled import Kernel

_PACKAGE = "counterpoise."

KERNEL_MODULES = (
    "solvers.rows",
    "solvers._ball_kernels",
    "solvers._pair_kernels",
    "solvers._svm_kernels",
    "rules.class_scores._kernels",
    "boosting.robust_loss",
    "learners.binning",
    "learners._tree_kernels",
    "learners._split_kernels",
    "learners._whole_tree",
    "learners.bernstein_stump",
)


class Warmed(NamedTuple):
    """A kernel that is ready now."""

    name: str
    seconds: float
    compiled: bool  # else it came from the cache
    folder: str | None  # where it is kept; None where no folder can be written to


def compile_all(say: Callable[[str], None] = lambda _text: None) -> list[Warmed]:
    """Compile the kernels that the cache does not hold yet, and say how long each took.

    Where there is something to compile and another processor, a process begins at the other end of the list.
    """
    made, helper = [], None
    with ExitStack() as until_done:
        for kernel in _kernels():
            made.append(_compile_kernel(kernel))
            if made[-1].compiled:
                helper = helper or _begin_at_the_end(until_done)
                say(_line(made[-1]))
        there: list[Warmed] = []
        with suppress(BrokenProcessPool):  # where it broke off, all was made here
            there = helper.result()[::-1] if helper else []  # in the order of the list
    for one in there:
        if one.compiled:
            say(_line(one))
    return [other if other.compiled else one for one, other in zip(made, there or made, strict=True)]


def _kernels() -> "list[Kernel]":
    from counterpoise._base.compiled import KERNELS  # noqa: PLC0415 - needs numba: only where the command runs

    for module in KERNEL_MODULES:
        import_module(f"{_PACKAGE}{module}")
    return [one for one in KERNELS if one.__module__.startswith(_PACKAGE)]


def _line(made: Warmed) -> str:
    return f"{made.seconds:5.1f} s  {made.name}"


def _begin_at_the_end(until_done: ExitStack) -> Future[list[Warmed]] | None:
    """Return what a process will have made; None where there can be no other one, and this one makes all."""
    if available_cpus() == 1:
        return None
    with suppress(OSError, ImportError, NotImplementedError):  # no processes here, or no locks that they share
        pool = until_done.enter_context(ProcessPoolExecutor(1, multiprocessing.get_context("spawn")))
        return pool.submit(_compile_backwards)
    return None


def _compile_backwards() -> list[Warmed]:
    return [_compile_kernel(kernel) for kernel in reversed(_kernels())]


def _compile_kernel(kernel: "Kernel") -> Warmed:
    started, compilations = time.monotonic(), list[str | None]()
    with watch_compilation(compilations.append):
        folder = kernel.dispatcher().stats.cache_path
    name = f"{kernel.__module__.removeprefix(_PACKAGE)}.{kernel.__name__}"
    return Warmed(name, time.monotonic() - started, bool(compilations), folder)


def summary(made: list[Warmed]) -> str:
    """Return how many kernels there are, how many of them were compiled now, and where they are kept."""
    new = [one.seconds for one in made if one.compiled]
    kept = sorted({one.folder for one in made if one.folder is not None})
    where = "\n".join(f"kept in {folder}" for folder in kept) or "kept nowhere: no folder can be written to"
    return f"{len(made)} kernels: {len(new)} compiled in {sum(new):.0f} s, {len(made) - len(new)} were there\n{where}"
