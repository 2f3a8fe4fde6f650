"""How kernels are compiled: on first use, for given types, without the interpreter lock, kept on disk where possible.

Types are explicit, so a loop is compiled once whatever a caller hands in, a read-only array or one that can be written.
Nothing is compiled when a module is imported: the first call takes the kernel from numba's cache or compiles it, and
``progress.watching_compilation`` tells those who show progress.
"""

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from numba import njit, typeof
from numba.core.event import Event, Listener, install_listener
from numba.extending import typeof_impl
from numba.np.numpy_support import as_dtype

from counterpoise._base import kernel_cache, progress
from counterpoise._base.types import AnyArray

Function = TypeVar("Function", bound=Callable[..., Any])
KERNELS: list["Kernel"] = []  # of the modules imported so far

# One for all, because a kernel that is being compiled may ask for others; taken before numba's own.
_lock = threading.RLock()


class Kernel:
    """A loop for arguments of given types, compiled on its first call."""

    def __init__(self, function: Callable[..., Any], signature: Any) -> None:
        self.function, self.signature = function, signature
        self.__name__, self.__module__, self.__doc__ = function.__name__, function.__module__, function.__doc__
        self._run: Callable[..., Any] = self._first
        self._dispatcher: Any = None
        KERNELS.append(self)

    def __call__(self, *arguments: Any) -> Any:
        return self._run(*arguments)

    @property
    def is_compiled(self) -> bool:
        """Whether it was called, or asked for, in this process."""
        return self._dispatcher is not None

    def _first(self, *arguments: Any) -> Any:
        return self.compiled()(*arguments)

    def compiled(self) -> Any:
        """Return numba's dispatcher; of several threads that ask for it at once, one compiles."""
        with _lock:
            if self._dispatcher is None:
                dispatcher = kernel_cache.cached(self.function)
                teller = install_listener("numba:compile", _Teller(dispatcher))
                with kernel_cache.one_compiler(dispatcher), teller, _without_garbage_collection():
                    kernel_cache.compile_or_load(dispatcher, self.signature)
                self._run = self._dispatcher = dispatcher
            return self._dispatcher


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Leave the many small objects of a compiler alone: to look through them takes a twelfth of its time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _type_inside_of_kernels(kernel: Kernel, _context: Any) -> Any:
    return typeof(kernel.compiled())


typeof_impl.register(Kernel, _type_inside_of_kernels)


class _Teller(Listener):
    """Tells that a kernel is compiled; one that comes from the cache makes no event."""

    def __init__(self, dispatcher: Any) -> None:
        self.dispatcher = dispatcher

    def on_start(self, event: Event) -> None:
        if event.data["dispatcher"] is self.dispatcher:
            progress.tell_of_compilation(self.dispatcher.__name__)

    def on_end(self, event: Event) -> None:
        if event.data["dispatcher"] is self.dispatcher:
            progress.tell_of_compilation(None)


class _Family:
    """A loop for several types of its first argument, a tuple of arrays: a kernel for each that is met."""

    def __init__(self, function: Callable[..., Any], signatures: list[Any]) -> None:
        self._kernels = {
            tuple((as_dtype(array.dtype), array.ndim) for array in signature.args[0].types): Kernel(function, signature)
            for signature in signatures
        }

    def __call__(self, arrays: tuple[AnyArray, ...], *arguments: Any) -> Any:
        return self._kernels[tuple((array.dtype, array.ndim) for array in arrays)](arrays, *arguments)


def helper(function: Any = None, **options: Any) -> Any:
    """Compile a function as a part of the kernels that call it; it cannot be called from Python.

    What numba wraps around a function for callers in Python and in C takes half the time to compile it.
    """
    made = njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
    return made if function is None else made(function)


def kernel(signature: Any) -> Callable[[Function], Function]:
    """Compile a function for the types of a signature when it is first called."""

    def made(function: Function) -> Function:
        return cast("Function", Kernel(function, signature))

    return made


def kernel_family(signatures: list[Any]) -> Callable[[Function], Function]:
    """Compile a function for the types of the first argument, a tuple of arrays, when they are first met."""

    def made(function: Function) -> Function:
        return cast("Function", _Family(function, signatures))

    return made
