"""How loops are compiled: by numba, on first use, for given types, without the interpreter lock.

numba belongs to the extra ``boosting``. Only this module and the modules of boosters and their learners import it, so
all else works where it is not installed, and a kernel that is called nevertheless says what to install.

Types are explicit, so a loop is compiled once whatever a caller hands in, a read-only array or one that can be written.
Nothing is compiled when a module is imported: the first call takes the kernel from numba's cache or compiles it, and
``progress.watch_compilation`` reports it to those who show progress.
"""

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

from counterpoise._base import progress
from counterpoise._base.extras import require_boosting
from counterpoise._base.types import AnyArray

Function = TypeVar("Function", bound=Callable[..., Any])

# One for all, because a kernel that is being compiled may ask for others; taken before numba's own.
_lock = threading.RLock()


@cache
def _numba() -> Any:
    """Return numba, which then knows kernels inside of kernels."""
    require_boosting("This computation", modules=("numba",))
    import numba  # noqa: PLC0415 - an optional package
    from numba.extending import typeof_impl  # noqa: PLC0415

    def type_inside_of_kernels(kernel: Kernel, _context: Any) -> Any:
        return numba.typeof(kernel.dispatcher())

    typeof_impl.register(Kernel, type_inside_of_kernels)
    return numba


class Kernel:
    """A loop for arguments of given types, a signature of numba's or its text, compiled on its first call."""

    def __init__(self, function: Callable[..., Any], signature: Any) -> None:
        self.function, self.signature = function, signature
        self.__name__, self.__module__, self.__doc__ = function.__name__, function.__module__, function.__doc__
        self._run: Callable[..., Any] = self._first
        self._dispatcher: Any = None

    def __call__(self, *arguments: Any) -> Any:
        return self._run(*arguments)

    def _first(self, *arguments: Any) -> Any:
        return self.dispatcher()(*arguments)

    def dispatcher(self) -> Any:
        """Return numba's dispatcher of the compiled loop; of several threads that ask for it at once, one compiles."""
        with _lock:
            if self._dispatcher is None:
                dispatcher = _cached_dispatcher(self.function)
                with _compilation_listener(dispatcher):
                    dispatcher.compile(self.signature)
                dispatcher.disable_compile()  # for this signature and no other
                self._run = self._dispatcher = dispatcher
            return self._dispatcher


def _cached_dispatcher(function: Callable[..., Any]) -> Any:
    """Return numba's dispatcher of a function, with numba's cache where that finds a folder to write to."""
    options = {"nogil": True, "no_cfunc_wrapper": True}
    try:
        return _numba().njit(cache=True, **options)(function)
    except RuntimeError:  # no folder can be written to: each process compiles
        return _numba().njit(**options)(function)


def _compilation_listener(dispatcher: Any) -> Any:
    """Return a context in which the compilation of a kernel is reported; one from the cache makes no event."""
    from numba.core.event import Event, Listener, install_listener  # noqa: PLC0415 - an optional package

    class CompilationListener(Listener):  # type: ignore[misc, unused-ignore]
        def on_start(self, event: Event) -> None:
            if event.data["dispatcher"] is dispatcher:
                progress.report_compilation(dispatcher.__name__)

        def on_end(self, event: Event) -> None:
            if event.data["dispatcher"] is dispatcher:
                progress.report_compilation(None)

    return install_listener("numba:compile", CompilationListener())


class _Family:
    """A loop for several types of its first argument, a tuple of arrays: a kernel for each that is met."""

    def __init__(self, function: Callable[..., Any], signatures: list[Any]) -> None:
        from numba.np.numpy_support import as_dtype  # noqa: PLC0415 - an optional package

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
    compiler = _numba().njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
    return compiler if function is None else compiler(function)


def kernel(signature: Any) -> Callable[[Function], Function]:
    """Compile a function for the types of a signature when it is first called."""

    def decorate(function: Function) -> Function:
        return cast("Function", Kernel(function, signature))

    return decorate


def kernel_family(signatures: list[Any]) -> Callable[[Function], Function]:
    """Compile a function for the types of the first argument, a tuple of arrays, when they are first met."""

    def decorate(function: Function) -> Function:
        return cast("Function", _Family(function, signatures))

    return decorate
