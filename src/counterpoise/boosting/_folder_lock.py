"""One process at a time: a lock that the system itself lets go when its holder dies, killed or not."""

import os
from pathlib import Path

_PID_BYTES = 32  # more than any process id has digits


class Held(Exception):  # noqa: N818 - a fact, which the caller turns into its own error
    """Another process, or another fit of this one, holds the lock; ``holder`` is its process id as text."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.holder = holder


def lock(path: Path) -> int:
    """Lock a file, made where it is not there, and return the handle that holds the lock until it is closed.

    A file that exists only while someone works would outlive a kill, and whether its process still lives cannot be
    told for sure: process ids are used again, and other machines have their own.
    """
    try:
        import fcntl  # noqa: PLC0415 - not on every system
    except ImportError as error:
        raise OSError(
            "checkpoint needs file locks (the module fcntl), which this system does not have: use checkpoint=None."
        ) from error
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    except BlockingIOError:
        holder = os.pread(handle, _PID_BYTES, 0).decode(errors="replace").strip()
        os.close(handle)
        raise Held(holder or "unknown") from None
    except BaseException:
        os.close(handle)
        raise
    return handle
