"""How kernels are compiled: for given types, without the interpreter lock, kept on disk where that is possible."""

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def kernel(signatures: list[Any]) -> Callable[[Kernel], Kernel]:
    """Compile a function at once for the given signatures.

    Types are explicit so that compilation happens at import, from numba's cache after the first time, and never inside
    a fit. Where no folder can be written to, numba refuses to cache; the kernel is then compiled in every process.
    """

    def compile_now(function: Kernel) -> Kernel:
        try:
            compiled: Kernel = njit(signatures, nogil=True, cache=True)(function)
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            compiled = njit(signatures, nogil=True)(function)
        return compiled

    return compile_now
