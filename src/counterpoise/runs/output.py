"""Files where a user wants them: in a folder that is there, whole or not at all."""

from pathlib import Path

from counterpoise.persist import write_atomically
from counterpoise.runs.errors import RunFolderError

REPORT = "report.html"  # in a run folder


def check_place(path: Path, *, read: Path | None = None) -> None:
    """Check, before any work is done for it, that a file can be written at ``path`` and is not the one to be read."""
    if path.is_dir():
        raise RunFolderError(f"{path} is a folder; --output must name a file.")
    if not path.parent.is_dir():
        raise RunFolderError(f"There is no folder {path.parent} for {path.name}. Make it first, or name another place.")
    if read is not None and path.exists() and path.samefile(read):
        raise RunFolderError(f"{path} is the data file itself; --output must name another file.")


def write_output(path: Path, content: bytes) -> None:
    """Write a file that a user asked for."""
    check_place(path)
    try:
        write_atomically(path, [content])
    except OSError as error:
        raise RunFolderError(f"{path} cannot be written: {error.strerror or error}.") from error
