"""How kernels are compiled: on first use, for given types, without the interpreter lock, kept on disk where possible.

Types are explicit, so a loop is compiled once whatever a caller hands in, a read-only array or one that can be written.
Nothing is compiled when a module is imported: the first call takes the kernel from numba's cache or compiles it, and
``progress.watch_compilation`` reports it to those who show progress.

Compiled kernels are kept beside the package, else in a folder of the user's, else among temporary files. The first two
are numba's choice, and ``NUMBA_CACHE_DIR`` comes before both. What is loaded from a cache is run, so the
folder among temporary files, where everybody can write, must belong to the user alone.
"""

import gc
import os
import stat
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from filelock import FileLock
from numba import njit, typeof
from numba.core.event import Event, Listener, install_listener
from numba.extending import typeof_impl
from numba.np.numpy_support import as_dtype

from counterpoise._base import progress
from counterpoise._base.types import AnyArray

_PATIENCE = 120.0  # seconds that another process may compile for before this one does so too

_has_warned = False


def _cached_dispatcher(function: Callable[..., Any]) -> Any:
    """Return numba's dispatcher of a function, with a cache on disk where one can be kept."""
    try:
        return _dispatcher(function, cache=True)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
    try:
        with _numba_folder(own_temporary_folder()):
            return _dispatcher(function, cache=True)
    except (OSError, RuntimeError) as error:
        _warn_once(error)
    return _dispatcher(function, cache=False)


def _dispatcher(function: Callable[..., Any], *, cache: bool) -> Any:
    return numba.njit(nogil=True, no_cfunc_wrapper=True, cache=cache)(function)


@contextmanager
def _numba_folder(folder: Path) -> Iterator[None]:
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


def own_temporary_folder() -> Path:
    """Return a folder among temporary files that nobody else can write to, or raise PermissionError."""
    if not hasattr(os, "getuid"):  # Windows, where each user has temporary files of their own
        return Path(tempfile.gettempdir()) / "counterpoise-kernels"
    folder = Path(tempfile.gettempdir()) / f"counterpoise-kernels-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(f"{folder} must be a folder that belongs to this user alone")
    return folder


def _warn_once(error: Exception) -> None:
    global _has_warned  # noqa: PLW0603 - once for each process
    if not _has_warned:
        _has_warned = True
        warnings.warn(
            f"counterpoise cannot store its compiled kernels ({error}), so every process compiles them again, which "
            "takes some seconds. Set the environment variable NUMBA_CACHE_DIR to a folder that you can write to.",
            RuntimeWarning,
            stacklevel=2,
        )


@contextmanager
def one_compiler(dispatcher: Any) -> Iterator[None]:
    """Let one process at a time compile a function for a cache: the others then find what it made.

    Two that add to the index of a function at once could also mix up their files. Who compiles one that calls others
    waits for theirs: no function calls itself by way of others, so nobody waits in a circle.
    """
    folder, function = dispatcher.stats.cache_path, dispatcher.py_func
    name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}.lock"
    lock = None if folder is None else FileLock(Path(folder) / name, is_singleton=True)  # re-entrant
    try:
        if lock is not None:
            lock.acquire(timeout=_PATIENCE)
    except (OSError, NotImplementedError):  # no locks on this disk, or the other process takes too long
        lock = None
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


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
        """Whether it was compiled or read from the cache in this process."""
        return self._dispatcher is not None

    def _first(self, *arguments: Any) -> Any:
        return self.dispatcher()(*arguments)

    def dispatcher(self) -> Any:
        """Return numba's dispatcher; of several threads that ask for it at once, one compiles."""
        with _lock:
            if self._dispatcher is None:
                dispatcher = _cached_dispatcher(self.function)
                listener = install_listener("numba:compile", _CompilationListener(dispatcher))
                with one_compiler(dispatcher), listener, _without_garbage_collection():
                    try:
                        dispatcher.compile(self.signature)
                    except OSError as error:  # a full disk: what was compiled is there, but not kept
                        if not dispatcher.signatures:
                            raise
                        _warn_once(error)
                dispatcher.disable_compile()  # for this signature and no other
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
    return typeof(kernel.dispatcher())


typeof_impl.register(Kernel, _type_inside_of_kernels)


class _CompilationListener(Listener):
    """Reports that a kernel is compiled; one that comes from the cache makes no event."""

    def __init__(self, dispatcher: Any) -> None:
        self.dispatcher = dispatcher

    def on_start(self, event: Event) -> None:
        if event.data["dispatcher"] is self.dispatcher:
            progress.report_compilation(self.dispatcher.__name__)

    def on_end(self, event: Event) -> None:
        if event.data["dispatcher"] is self.dispatcher:
            progress.report_compilation(None)


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
    compiler = njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
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
