"""Writing a file so that a reader sees the old content or the new one, never a part of it."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from counterpoise.persist.files import NEW_FILE
from counterpoise.persist.steps import step

_PRIVATE = 0o600  # for the owner alone, where the system knows such a thing


def write_atomically(path: Path, chunks: Iterable[bytes], *, private: bool = False) -> None:
    """Write ``chunks`` to a temporary file beside ``path``, flush it to disk and rename it.

    The temporary file lies in the same folder, because a rename is atomic only inside one file system. A file that is
    replaced keeps its permissions; a private one is for its owner alone.

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
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(chunks)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(_PRIVATE if private else _permissions(path))
        step("rename", path)
        Path(name).replace(path)
    except BaseException:  # an interrupt too must leave no part behind
        Path(name).unlink(missing_ok=True)
        raise
    _flush_names(path.parent)


def _permissions(path: Path) -> int:
    if path.exists():
        return path.stat().st_mode & 0o777
    umask = os.umask(0)  # the only way to read it is to set it
    os.umask(umask)
    return NEW_FILE & ~umask


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
