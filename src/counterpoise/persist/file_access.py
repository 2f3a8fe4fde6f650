"""Files: read safely, and written so that a reader sees the old content or the new one, never a part of it.

A file that is read may be anything: a pipe that never speaks, a device that never ends, more than was foreseen. And
all functions that write, remove or lock a file of ours announce it first, so that a test can stop them there:

>>> import tempfile
>>> from pathlib import Path
>>> from counterpoise.persist import watch_changes, write_atomically
>>> seen = []
>>> with tempfile.TemporaryDirectory() as folder, watch_changes(lambda what, path: seen.append((what, path.name))):
...     write_atomically(Path(folder) / "greeting.txt", [b"good day"])
>>> seen
[('write', 'greeting.txt'), ('rename', 'greeting.txt')]
"""

import errno
import glob
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO, TypeAlias

from counterpoise._base.contexts import set_within

Watcher: TypeAlias = Callable[[str, Path], None]


_watcher: ContextVar[Watcher] = ContextVar("counterpoise_watcher", default=lambda _what, _path: None)


def watch_changes(watcher: Watcher) -> AbstractContextManager[None]:
    """Call ``watcher(what, path)`` before each change of a file in this thread, until the context ends.

    ``what`` is "lock", "unlock", "write" (nothing is there yet), "rename" (the content lies beside its place, on disk),
    "append" or "remove". A watcher that waits stops the work there; one that raises an ``OSError`` is a disk that
    fails; a process that is killed while it waits leaves what a kill at that moment leaves.
    """
    return set_within(_watcher, watcher)


def step(what: str, path: Path) -> None:
    """Announce that a file is about to change."""
    _watcher.get()(what, path)


NEW_FILE = 0o666  # the mode of open() for a new file: the umask takes its share


@contextmanager
def open_regular(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file to read its bytes; anything else is an ``OSError`` whose ``strerror`` names it."""
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "no file has a zero byte in its name")
    with open(path, "rb", opener=without_waiting) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, not a file")
        yield stream


def read_file(path: Path, most: int) -> bytes:
    """Return the bytes of a regular file, of which there may be at most ``most``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from counterpoise.persist.file_access import read_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "greeting.txt"
    ...     _ = path.write_text("good day")
    ...     print(read_file(path, 8))
    ...     try:
    ...         read_file(path, 4)
    ...     except OSError as error:
    ...         print(error.strerror)
    b'good day'
    it has 8 bytes, and such a file may have at most 4
    """
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > most:
            raise OSError(errno.EFBIG, f"it has {size} bytes, and such a file may have at most {most}")
        content = stream.read(size + 1)
    if len(content) > size:
        raise OSError(errno.EAGAIN, "it grows while it is read")
    return content


def without_waiting(path: str, flags: int) -> int:
    """Open a file, and a pipe too, at once: by itself the system would wait until someone writes to it."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0), NEW_FILE)


def own_file(path: str, flags: int) -> int:
    """Open a file to add to it, and nothing that a link leads to: a folder from a stranger may hold such a link."""
    return without_waiting(path, flags | getattr(os, "O_NOFOLLOW", 0))


_PRIVATE = 0o600  # for the owner alone, where the system knows such a thing
_FORGOTTEN = 3600  # seconds after which nobody writes to a temporary file any more


def write_atomically(path: Path, chunks: Iterable[bytes], *, private: bool = False) -> None:
    """Write ``chunks`` to a temporary file beside ``path``, flush it to disk and rename it.

    The temporary file lies in the same folder, because a rename is atomic only inside one file system. A file that is
    replaced keeps its permissions; a private one is for its owner alone. What a process that was killed left of an
    earlier try is removed after an hour.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from counterpoise.persist import write_atomically
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "greeting.txt"
    ...     write_atomically(path, [b"good ", b"day"])
    ...     path.read_text(), len(list(Path(folder).iterdir()))
    ('good day', 1)
    """
    step("write", path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_forgotten(path)
    old_mode = None if private or not path.exists() else path.stat().st_mode & 0o777
    part = path.parent / f".{path.name}.{os.urandom(4).hex()}.part"
    try:
        # The system takes the umask's share of the mode; to read the umask, a program would have to set it.
        mode = _PRIVATE if private or old_mode is not None else NEW_FILE
        with open(part, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as stream:
            stream.writelines(chunks)
            stream.flush()
            os.fsync(stream.fileno())
        if old_mode is not None:
            part.chmod(old_mode)
        step("rename", path)
        part.replace(path)
    except BaseException:  # an interrupt too must leave no part behind
        part.unlink(missing_ok=True)
        raise
    _flush_names(path.parent)


def _remove_forgotten(path: Path) -> None:
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        try:
            if time.time() - part.stat().st_mtime > _FORGOTTEN:
                part.unlink()
        except OSError:  # another process was faster, or it is not ours
            continue


def _flush_names(folder: Path) -> None:
    """Let the new name too survive a crash of the machine, where a folder can be flushed; on Windows it cannot."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
