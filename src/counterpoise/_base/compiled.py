"""How kernels are compiled: on first use, for given types, without the interpreter lock, kept on disk where possible.

Types are explicit, so a loop is compiled once whatever a caller hands in, a read-only array or one that can be written.
Nothing is compiled when a module is imported: the first call takes the kernel from the cache or compiles it, and
``progress.watch_compilation`` reports it to those who show progress.

A compiled kernel is kept under a digest of all that it is made of, in a folder of the user's: every installation of
equal sources finds it. ``NUMBA_CACHE_DIR`` names another folder; where neither can be written, one among temporary
files is taken. What is loaded from a cache is run, so a folder that the user did not name must be the user's alone.
"""

import gc
import hashlib
import inspect
import os
import stat
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, TypeVar, cast

import llvmlite
import numba
import numpy as np
from filelock import FileLock
from numba import njit, typeof
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.event import Event, Listener, install_listener
from numba.extending import typeof_impl
from numba.np.numpy_support import as_dtype

from counterpoise._base import progress
from counterpoise._base.folders import user_cache_folder
from counterpoise._base.types import AnyArray

_PATIENCE = 120.0  # seconds that another process may compile for before this one does so too
_LIBRARIES = {"builtins", "math", "numba", "numpy"}  # known by their versions, which name the folder
_VERSIONS = f"numba-{numba.__version__}-llvmlite-{llvmlite.__version__}-numpy-{np.__version__}"  # numba adds Python's

_has_warned = False


def _cached_dispatcher(function: Callable[..., Any]) -> Any:
    """Return numba's dispatcher of a function, with a cache on disk where one can be kept."""
    dispatcher = njit(nogil=True, no_cfunc_wrapper=True)(function)
    try:
        dispatcher._cache = _Cache(function)  # noqa: SLF001 - as enable_caching does, which knows no other cache
    except (OSError, RuntimeError) as error:
        _warn_once(error)
    return dispatcher


class _Locator(_CacheLocator):
    """Where a kernel is kept: the first folder that is fit for it, under a digest of what it is made of."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._py_file, self._digest, self._folder = file, source_digest(function), _kernel_folder()

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> "_Locator | None":
        return cls(py_func, py_file) if Path(py_file).exists() else None

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._digest

    def get_disambiguator(self) -> str:
        return self._digest[:16]


class _Placement(CompileResultCacheImpl):
    _locator_classes = (_Locator,)


class _Cache(FunctionCache):
    _impl_class = _Placement

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what is kept, or None; a file that a crash has left damaged is written again."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # noqa: BLE001 - whatever unpickling makes of damaged bytes
            with suppress(OSError):
                self.flush()
            return None


def source_digest(function: Callable[..., Any]) -> str:
    """Return a digest of what a function is compiled from: sources of all that it calls, and constants.

    Numba looks at the function's own file alone, and would run an old form of a function called from another.
    """
    digest, seen = hashlib.sha256(_source(__file__)), set()
    waiting: list[Any] = [function]
    while waiting:
        one = waiting.pop()
        one = one.function if isinstance(one, Kernel) else getattr(one, "py_func", one)
        if isinstance(one, ModuleType):
            if one.__name__.partition(".")[0] not in _LIBRARIES:
                raise TypeError(f"A kernel must name what it calls; import that from {one.__name__}, not the module.")
            continue
        if not isinstance(one, (FunctionType, BuiltinFunctionType, type)):
            digest.update(one.tobytes() if isinstance(one, np.ndarray) else repr(one).encode())
            continue
        digest.update(f"{one.__module__} {one.__qualname__}".encode())
        if (one.__module__ or "").partition(".")[0] in _LIBRARIES or id(one) in seen:
            continue
        seen.add(id(one))
        digest.update(_source(inspect.getfile(one)))
        if isinstance(one, FunctionType):
            names = [name for code in _codes(one.__code__) for name in code.co_names]
            waiting += [one.__globals__[name] for name in names if name in one.__globals__]
            waiting += [cell.cell_contents for cell in one.__closure__ or ()]
    return digest.hexdigest()


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function and of those inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


@cache
def _source(file: str) -> bytes:
    return hashlib.sha256(Path(file).read_bytes()).digest()


def _kernel_folder() -> Path:
    """Return the first folder that kernels can be kept in, or raise OSError."""
    if numba.config.CACHE_DIR:
        with suppress(OSError):
            return _writable(Path(numba.config.CACHE_DIR) / _VERSIONS)
    user = str(os.getuid()) if hasattr(os, "getuid") else ""  # Windows gives each user temporary files of their own
    with suppress(OSError, RuntimeError):  # nobody's home
        return _writable(own_folder(user_cache_folder() / "kernels") / _VERSIONS)
    return _writable(own_folder(Path(tempfile.gettempdir()) / f"counterpoise-kernels-{user}") / _VERSIONS)


def _writable(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()
    return folder


def own_folder(folder: Path) -> Path:
    """Return a folder, made where it is missing, that nobody else can read or write, or raise PermissionError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    is_own = not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o077)
    if not stat.S_ISDIR(status.st_mode) or not is_own:
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
