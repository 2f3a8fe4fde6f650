"""One writer at a time in a folder: a lock that the system itself lets go when its holder dies, killed or not.

A file that exists only while someone works would outlive a kill, and whether its process still lives is not known for
sure: process ids are used again, and other machines have their own.
"""

import errno
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from counterpoise.persist.file_access import step

LOCK = ".counterpoise.lock"  # hidden, and of a name that no one else gives a file
_ID_BYTES = 32  # more than any process id has digits
_MOST_TRIES = 100  # to make a folder that others take away as often


class FolderInUse(Exception):  # noqa: N818 - a fact, which the caller turns into its own error
    """Another process, or another thread of this one, writes to the folder; ``holder`` is its process id as text."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.holder = holder


class FolderLock:
    """A folder for one writer between ``__enter__`` and ``__exit__``; made where there is none.

    The lock lies inside the folder, so that it is the same one by whatever path the folder is named. At the end its
    file is removed, and so are the folders that were made for it and are still empty.

    Parameters
    ----------
    folder : Path
    wait : float, default=0
        Seconds to wait for another writer before ``FolderInUse`` is raised.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from counterpoise.persist.locks import FolderLock, FolderInUse
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = Path(place) / "run"
    ...     with FolderLock(folder) as mine:
    ...         try:
    ...             FolderLock(folder).__enter__()
    ...         except FolderInUse:
    ...             print("someone else writes there; the folder is there:", mine.is_there())
    ...     folder.exists()
    someone else writes there; the folder is there: True
    False
    """

    def __init__(self, folder: Path, *, wait: float = 0.0) -> None:
        from filelock import FileLock  # noqa: PLC0415 - for writers only

        self.folder = folder
        self._path = folder / LOCK
        # A lock that is no more than a file would outlive a kill: where the system has no other, none is taken.
        self._lock = FileLock(self._path, timeout=wait, fallback_to_soft=False, on_acquired=self._sign)

    def __enter__(self) -> Self:
        step("lock", self._path)
        self._new_folders = [folder for folder in (self.folder, *self.folder.parents) if not folder.exists()]
        try:
            self._acquire()
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            step("unlock", self._path)
            if self.is_there():
                with suppress(OSError):  # on Windows the lock itself removes it, once it is open no longer
                    self._path.unlink()
            else:  # the folder of that name, and a lock in it, is of another
                self._new_folders = []
        finally:
            self._release()

    def is_there(self) -> bool:
        """Return whether the folder is still the one that was locked, neither removed nor moved."""
        try:
            return os.path.samestat(self._file, self._path.stat())
        except OSError:
            return False

    def _acquire(self) -> None:
        from filelock import Timeout  # noqa: PLC0415

        for _ in range(_MOST_TRIES):
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                self._lock.acquire()
            except Timeout:
                raise FolderInUse(self._holder()) from None
            except FileNotFoundError:  # another writer took away the folder that it had made
                continue
            return
        raise OSError(errno.ENOENT, "the folder is removed again and again")

    def _sign(self, handle: int) -> None:
        """Remember which file is locked, and write into it who did."""
        self._file = os.fstat(handle)
        os.ftruncate(handle, 0)
        os.write(handle, f" {os.getpid()}\n".encode())  # Windows lets no one else read the first byte

    def _holder(self) -> str:
        try:
            with self._path.open("rb", buffering=0) as stream:
                stream.seek(1)
                return stream.read(_ID_BYTES).decode(errors="replace").strip() or "unknown"
        except OSError:
            return "unknown"

    def _release(self) -> None:
        self._lock.release()
        for folder in self._new_folders:
            try:
                folder.rmdir()
            except OSError:  # it holds something
                return
