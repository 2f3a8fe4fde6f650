"""Where the bytes come from: folders, checksums, and the two errors when they are missing or damaged."""

import hashlib
import os
import sys
from pathlib import Path
from typing import NamedTuple

from counterpoise.datasets.checksums import SHA256

DATA_VARIABLE = "COUNTERPOISE_DATA"
CACHE_VARIABLE = "COUNTERPOISE_CACHE"


class DataNotAvailable(FileNotFoundError):  # noqa: N818 - named for the state it reports
    """A data set is in none of the folders and could not be fetched."""

    __module__ = "counterpoise.datasets"


class ChecksumMismatch(ValueError):  # noqa: N818 - named for the state it reports
    """A file is there, but it is not the file that the loader knows."""

    __module__ = "counterpoise.datasets"


class Place(NamedTuple):
    """A folder to look in, and who named it."""

    folder: Path
    named_by: str

    def __str__(self) -> str:
        return f"{self.folder} ({self.named_by})"


def places(folder: str | os.PathLike[str] | None) -> list[Place]:
    """Return the folders to look in, first choice first.

    Examples
    --------
    >>> from counterpoise.datasets.files import places
    >>> places(".")[0].named_by
    'folder='
    """
    found = []
    if folder is not None:
        if not Path(folder).is_dir():
            raise NotADirectoryError(
                f"folder must be an existing folder with data files; got {os.fspath(folder)!r}. "
                f"Leave it out to use {DATA_VARIABLE} or the cache."
            )
        found.append(Place(Path(folder), "folder="))
    if os.environ.get(DATA_VARIABLE):
        found.append(Place(Path(os.environ[DATA_VARIABLE]), DATA_VARIABLE))
    return [*found, Place(cache_folder(), "cache")]


def cache_folder() -> Path:
    """Return the folder for fetched files: ``COUNTERPOISE_CACHE``, or one under the user's cache directory."""
    if os.environ.get(CACHE_VARIABLE):
        return Path(os.environ[CACHE_VARIABLE])
    return _user_cache() / "counterpoise"


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def find_file(file: str, looked_in: list[Place]) -> Path | None:
    """Return the first of the folders' copies of ``file``, verified, or None where there is none."""
    for place in looked_in:
        path = place.folder / file
        if path.is_file():
            return verified(path)
    return None


def verified(path: Path) -> Path:
    """Return ``path`` after checking that its bytes are those that the loader knows."""
    with path.open("rb") as stream:
        got = hashlib.file_digest(stream, "sha256").hexdigest()
    _check_digest(got, path.stat().st_size, path.name, f"the file {path}")
    return path


def check_sha256(content: bytes, file: str, meaning: str) -> None:
    """Raise ``ChecksumMismatch`` unless ``content`` has the sha256 that the table holds for ``file``."""
    _check_digest(hashlib.sha256(content).hexdigest(), len(content), file, meaning)


def _check_digest(got: str, size: int, file: str, meaning: str) -> None:
    if got != SHA256[file]:
        raise ChecksumMismatch(
            f"{meaning} must have the sha256 {SHA256[file]}; got {got} ({size} bytes). "
            "It is damaged, incomplete or another version: delete it and get it again."
        )


def not_available(name: str, file: str, looked_in: list[Place], reason: str) -> DataNotAvailable:
    """Return the error that says what was looked for, where, and how to provide it."""
    folders = ", ".join(map(str, looked_in))
    return DataNotAvailable(
        f"data set {name!r} needs the file {file}, which is in none of these folders: {folders}. {reason} "
        f"To provide it, put {file} into one of them, or set {DATA_VARIABLE} to the folder that holds it."
    )
