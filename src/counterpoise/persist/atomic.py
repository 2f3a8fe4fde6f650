"""Writing a file so that a reader sees the old content or the new one, never a part of it."""

import glob
import os
import secrets
import time
from collections.abc import Iterable
from pathlib import Path

from counterpoise.persist.files import NEW_FILE
from counterpoise.persist.steps import step

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
    kept = None if private or not path.exists() else path.stat().st_mode & 0o777
    part = path.parent / f".{path.name}.{secrets.token_hex(4)}.part"
    try:
        # The system takes the umask's share of what is asked for; to read it, a program would have to set it.
        mode = _PRIVATE if private or kept is not None else NEW_FILE
        with open(part, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as stream:
            stream.writelines(chunks)
            stream.flush()
            os.fsync(stream.fileno())
        if kept is not None:
            part.chmod(kept)
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
