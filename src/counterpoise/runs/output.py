"""Files where a user wants them: in a folder that is there, whole or not at all, by one writer at a time."""

import io
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from counterpoise.persist import write_atomically
from counterpoise.persist.locks import FolderLock, Held
from counterpoise.runs.errors import RunFolderError
from counterpoise.runs.keys import KEY
from counterpoise.runs.reading import is_parquet

_SETTINGS = "settings.json"  # by which a run folder is known
OWN = ("goals.toml", _SETTINGS, "model.cp", "results.csv", "texts.json", "environment.json", "log.txt", "done.json")
SAID = "said.cp"  # what the models of a pool said about the rows of the run: they need not be asked again
DRAWN = "drawn.csv"  # what the drawn decisions come to: other numbers with another key of the draws
REPORT = "report.html"
_WAIT = 10.0  # seconds for others: whoever writes one file, and not a whole run, has done so by then


@contextmanager
def alone_in(folder: Path, *, wait: float = 0.0) -> Iterator[FolderLock]:
    """Keep all others from writing to a run folder; refuse where another still does after ``wait`` seconds."""
    with ExitStack() as stack:
        try:
            with writing(folder):
                lock = stack.enter_context(FolderLock(folder, wait=wait))
        except Held as error:
            raise RunFolderError(
                f"Another process ({error.holder}) is writing to the run folder {folder}: wait for its end, or name "
                "another folder with output."
            ) from None
        yield lock


def check_place(path: Path, *, read: Path | None = None, option: str = "--output") -> None:
    """Check, before any work is done for it, that a file can be written at ``path`` and is not the one to be read."""
    if path.is_dir():
        raise RunFolderError(f"{path} is a folder; {option} must name a file.")
    if not path.parent.is_dir():
        raise RunFolderError(f"There is no folder {path.parent} for {path.name}. Make it first, or name another place.")
    if path.name in (*OWN, SAID, DRAWN, KEY) and _is_run(path.parent):
        raise RunFolderError(f"{path} is a part of the run itself; {option} must name another file.")
    if read is not None and path.exists() and read.exists() and path.samefile(read):
        raise RunFolderError(f"{path} is the data file itself; {option} must name another file.")


def write_output(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a file that a user asked for, a private one for its owner alone where it is new.

    Into a run folder it is written while nobody else writes there.
    """
    check_place(path)
    with alone_in(path.parent, wait=_WAIT) if _is_run(path.parent) else nullcontext():
        try:
            write_atomically(path, [content], private=private and not path.exists())
        except OSError as error:
            raise RunFolderError(f"{path} cannot be written: {error.strerror or error}.") from error


def write_frame(frame: Any, path: Path) -> None:
    """Write a data frame: Parquet by the ending of the path, else CSV."""
    buffer = io.BytesIO()
    if is_parquet(path):
        import pyarrow as pa  # noqa: PLC0415 - heavy, and optional
        from pyarrow import parquet  # noqa: PLC0415

        # Without the types of pandas beside those of the file: it cannot read all that it writes.
        table = pa.Table.from_pandas(_of_one_kind(frame), preserve_index=False)
        parquet.write_table(table.replace_schema_metadata(None), buffer)
    else:
        frame.to_csv(buffer, index=False)
    write_output(path, buffer.getvalue())


def _of_one_kind(frame: Any) -> Any:
    """Return a frame with columns of numbers and texts as texts, as CSV has them: a deferred row among numbers, say."""
    mixed = [name for name in frame if len({type(value) for value in frame[name].array}) > 1]
    return frame.astype(dict.fromkeys(mixed, str)) if mixed else frame


def _is_run(folder: Path) -> bool:
    return (folder / _SETTINGS).is_file()


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say of errors of the system that a part of a run cannot be written."""
    try:
        yield
    except (RunFolderError, BrokenPipeError):  # the other is told: nobody reads on
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise RunFolderError(
            f"{path} cannot be written: {reason}. The run goes on with the same command once it can."
        ) from error
