"""Where compiled kernels are kept: beside the package, else in a folder of the user's, else among temporary files.

The first two are numba's choice, and ``NUMBA_CACHE_DIR`` comes before both. What is loaded from a cache is run, so the
folder among temporary files, where everybody can write, must belong to the user alone.
"""

import os
import stat
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
from filelock import FileLock

_PATIENCE = 120.0  # seconds that another process may compile for before this one does so too

_has_warned = False


def cached(function: Callable[..., Any]) -> Any:
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
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{folder} must be a folder that belongs to this user alone")
    return folder


def _warn_once(error: Exception) -> None:
    global _has_warned  # noqa: PLW0603 - once for each process
    if not _has_warned:
        _has_warned = True
        warnings.warn(
            f"Compiled kernels cannot be kept ({error}), so every process compiles them again, for some seconds. Set "
            "the variable NUMBA_CACHE_DIR to a folder that can be written to.",
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


def compile_or_load(dispatcher: Any, signature: Any) -> None:
    """Make a dispatcher ready for one signature and no other."""
    try:
        dispatcher.compile(signature)
    except OSError as error:  # a full disk: what was compiled is there, but not kept
        if not dispatcher.signatures:
            raise
        _warn_once(error)
    dispatcher.disable_compile()
