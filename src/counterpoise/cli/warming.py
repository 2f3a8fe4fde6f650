"""Compiling every kernel ahead of time, so that no later process waits for it."""

import time
from collections.abc import Iterator
from importlib import import_module
from typing import NamedTuple

from counterpoise._base.progress import watching_compilation

KERNEL_MODULES = (
    "solvers._kernels",
    "solvers._ball_kernels",
    "solvers._svm_kernels",
    "mixtures.scores._kernels",
    "boosting.robust_loss",
    "learners._bin_kernels",
    "learners._walk_kernels",
    "learners._tree_kernels",
    "learners._split_kernels",
    "learners._whole_tree",
    "learners._bernstein_kernels",
)


class Warmed(NamedTuple):
    """A kernel that is ready now."""

    name: str
    seconds: float
    was_compiled: bool  # else it came from the cache
    folder: str | None  # where it is kept; None where no folder can be written to
    done: int
    total: int

    def __str__(self) -> str:
        how = f"compiled in {self.seconds:.1f} s" if self.was_compiled else "was there"
        return f"{self.done} of {self.total}: {self.name} {how}"


def warm_up() -> Iterator[Warmed]:
    """Compile the kernels that the cache does not hold yet, one by one."""
    from counterpoise._base.compiled import KERNELS  # noqa: PLC0415 - needs numba: only where the command runs

    for module in KERNEL_MODULES:
        import_module(f"counterpoise.{module}")
    own = [one for one in KERNELS if one.__module__.startswith("counterpoise.")]
    for done, one in enumerate(own, start=1):
        started, told = time.monotonic(), list[str | None]()
        with watching_compilation(told.append):
            folder = one.compiled().stats.cache_path
        name = f"{one.__module__.removeprefix('counterpoise.')}.{one.__name__}"
        yield Warmed(name, time.monotonic() - started, bool(told), folder, done, len(own))
