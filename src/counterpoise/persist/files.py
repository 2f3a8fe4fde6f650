"""Reading a file that may be anything: a pipe that never speaks, a device that never ends, more than was foreseen."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

NEW_FILE = 0o666  # what open() asks for where it makes a file: the umask takes its share


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file to read its bytes; anything else is an ``OSError`` whose ``strerror`` says what it is."""
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "no file has a zero byte in its name")
    with open(path, "rb", opener=without_waiting) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, and only files are read")
        yield stream


def read_file(path: Path, most: int) -> bytes:
    """Return the bytes of a regular file, of which there may be at most ``most``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from counterpoise.persist.files import read_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "greeting.txt"
    ...     _ = path.write_text("good day")
    ...     print(read_file(path, 8))
    ...     try:
    ...         read_file(path, 4)
    ...     except OSError as error:
    ...         print(error.strerror)
    b'good day'
    it has 8 bytes, and of such a file at most 4 are read
    """
    with opened(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > most:
            raise OSError(errno.EFBIG, f"it has {size} bytes, and of such a file at most {most} are read")
        content = stream.read(size + 1)
    if len(content) > size:
        raise OSError(errno.EAGAIN, "it grows while it is read")
    return content


def without_waiting(path: str, flags: int) -> int:
    """Open a file, and a pipe too, at once: by itself the system would wait until someone writes to it."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0), NEW_FILE)
