"""Where the bytes come from: folders, checksums, and the two errors when they are missing or damaged."""

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from counterpoise._base.folders import user_cache_folder

DATA_VARIABLE = "COUNTERPOISE_DATA"
CACHE_VARIABLE = "COUNTERPOISE_CACHE"


class DataNotAvailable(FileNotFoundError):  # noqa: N818 - named for the state it reports
    """A data set is in none of the folders and could not be fetched."""

    __module__ = "counterpoise.datasets"


class ChecksumMismatch(ValueError):  # noqa: N818 - named for the state it reports
    """A file is there, but it is not the file that the loader knows."""

    __module__ = "counterpoise.datasets"


class DataFolder(NamedTuple):
    """A folder to look in, and who named it."""

    folder: Path
    named_by: str

    def __str__(self) -> str:
        return f"{self.folder} ({self.named_by})"


def data_folders(folder: str | os.PathLike[str] | None) -> list[DataFolder]:
    """Return the folders to look in, first choice first.

    Examples
    --------
    >>> from counterpoise.datasets.folders import data_folders
    >>> data_folders(".")[0].named_by
    'folder='
    """
    folders = []
    if folder is not None:
        if not Path(folder).is_dir():
            raise NotADirectoryError(
                f"folder must be an existing folder with data files; got {os.fspath(folder)!r}. "
                f"Leave it out to use {DATA_VARIABLE} or the cache."
            )
        folders.append(DataFolder(Path(folder), "folder="))
    if os.environ.get(DATA_VARIABLE):
        folders.append(DataFolder(Path(os.environ[DATA_VARIABLE]), DATA_VARIABLE))
    return [*folders, DataFolder(cache_folder(), "cache")]


def cache_folder() -> Path:
    """Return the folder for fetched files: ``COUNTERPOISE_CACHE``, or one under the user's cache directory."""
    return Path(os.environ[CACHE_VARIABLE]) if os.environ.get(CACHE_VARIABLE) else user_cache_folder()


def find_file(file: str, sha256: str, folders: list[DataFolder]) -> Path | None:
    """Return the first of the folders' copies of ``file``, verified, or None where there is none."""
    for place in folders:
        path = place.folder / file
        if path.is_file():
            return verify_file(path, sha256)
    return None


def verify_file(path: Path, sha256: str) -> Path:
    """Return ``path`` after checking that its bytes are those that the loader knows."""
    check_sha256(path.read_bytes(), sha256, f"the file {path}")
    return path


def check_sha256(content: bytes, sha256: str, meaning: str) -> None:
    """Raise ``ChecksumMismatch`` unless ``content`` has the expected sha256."""
    got = hashlib.sha256(content).hexdigest()
    if got != sha256:
        raise ChecksumMismatch(
            f"{meaning} must have the sha256 {sha256}; got {got} ({len(content)} bytes). "
            "It is damaged, incomplete or another version: delete it and fetch it again."
        )


def not_available(name: str, file: str, folders: list[DataFolder], reason: str) -> DataNotAvailable:
    """Return the error for a missing file: its name, the folders searched, and how to provide it."""
    return DataNotAvailable(
        f"data set {name!r} needs the file {file}, which is in none of these folders: {', '.join(map(str, folders))}. "
        f"{reason} To provide it, put {file} into one of them, or set {DATA_VARIABLE} to the folder that holds it."
    )
