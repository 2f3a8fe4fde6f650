"""Where the bytes come from: folders, checksums, and the two errors when they are missing or damaged."""

import hashlib
import os
import sys
from pathlib import Path
from typing import NamedTuple

SHA256 = {
    "compas.parquet": "6c80f01073ad38a8cdb11c85d13fe1f3d906780126997eae24e77263e2df6a0b",
    "adult.parquet": "0ccc3dffdb0c72c222940b2705f39def6f04f372cee7e5017c6a49693e00a3a5",
    "a9a.npz": "50ec0e8bdd4e35823d1842837cbe2d2f24b1db8f6070e999e330db76ae5d50b0",
    "w8a.npz": "0c47d6a8cda12855e36176e40d6c9d0185bae5cbfd2cff9d34b74400e3b33304",
    "credit_default_taiwan.parquet": "6880e2287d9726c4454710ee12cbca9b48c41b87485a6b777c95411296c50746",
    "abalone.parquet": "36d971378e63d151b7fd312eedd174e0c0428f0879b2e9e28ddf8195685f7ceb",
    "image_segment.parquet": "8b7ae49523876cc39c92717ac949a1c3bc23335b41e1952b431e74a5f9ca4da2",
    "mushrooms.parquet": "1c8986c151f9837f3215999131b7b9a3c6caa22481d5bc1152a7a7fce9b2c418",
    "musk2.parquet": "49fc79685e7f0e22b3e33ec02307c231d25e51d72b14b5e2ebbf747331109dbd",
    "spambase.parquet": "84afb36315a429f5b2e2d488a801752daddc920b37466bf81a2c1920f794d2e8",
    "splice.parquet": "f9e2326ea5f74982a46e17da0b9dae90dc0d0a1d5370d266439a6403efe81aad",
    "wine_quality.parquet": "e769850f3fc9bcb1a633ce8f6d2f91e907061c8551a817273706998c59dba93d",
    "wisc_breast_cancer.parquet": "a8f374d3104017ab6fd4963453b3ec4ca9478e41eab3300cadfdbffda711b570",
    "twonorm.parquet": "740ccd9ef18a190b400d0a5afc3557b9ae8ab9bbbcc30ad1b62ef7ae443cbd04",
    "ringnorm.parquet": "76009fb5737bf8ade5e0b960b46793eb7c222a6494e8945f4d292e7f48ab14ea",
    "census_income_kdd.parquet": "c79ee69b2b79be624bd035d234e5081a14a6bb5fadddd3ca08d326266f22a94e",
    "covertype.parquet": "ca498e5f32fd6973494def64147cd3193a68350ae1e6614b18347b4d18d9fdf4",
    "folktables_ACSIncome.parquet": "d2e8f28f33a83a6609e0b363ff9857291be71fa17568cdfc9a7c21df9968eb65",
    "donors.parquet": "896b585c3954a5277cf356559705407547c618da56524df05281759044c5caa1",
    "mnist.npz": "9621549210676b1e20be7daaa21d4b4730acb32631089c4c08b48990c3b0ab78",
    # at their public home
    "compas-scores-two-years.csv": "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    "a9a": "7ba53cccb27e2e525f0fb173e1f446d49856e3fb007eb43be4ec6d0f5b3335ca",
    "a9a.t": "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9",
    "w8a": "b464b4f6ce6a5d9e181ffc793e19a04751036273722312398ef7673705014902",
    "winequality-red.csv": "c9614512e980f1cbd221c796daa97f00c4898c3cd1716863abac60f6cd1a522e",
    "winequality-white.csv": "659d419fff887f225bf977d20520bb64a64cae203e460087f809721d4430ba27",
    "11_donors.npz": "5824ec854465f2763b4bfe3da1ae9f25ed5433b5c6e265d42e37da4f82a58679",
}


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
    if os.environ.get(CACHE_VARIABLE):
        return Path(os.environ[CACHE_VARIABLE])
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local", "counterpoise")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "counterpoise"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "counterpoise")


def find_file(file: str, folders: list[DataFolder]) -> Path | None:
    """Return the first of the folders' copies of ``file``, verified, or None where there is none."""
    for place in folders:
        path = place.folder / file
        if path.is_file():
            return verify_file(path)
    return None


def verify_file(path: Path) -> Path:
    """Return ``path`` after checking that its bytes are those that the loader knows."""
    check_sha256(path.read_bytes(), path.name, f"the file {path}")
    return path


def check_sha256(content: bytes, file: str, meaning: str) -> None:
    """Raise ``ChecksumMismatch`` unless ``content`` has the sha256 that the table holds for ``file``."""
    got = hashlib.sha256(content).hexdigest()
    if got != SHA256[file]:
        raise ChecksumMismatch(
            f"{meaning} must have the sha256 {SHA256[file]}; got {got} ({len(content)} bytes). It is damaged, "
            "incomplete or another version: delete it and fetch it again."
        )


def not_available(name: str, file: str, folders: list[DataFolder], reason: str) -> DataNotAvailable:
    """Return the error for a missing file: its name, the folders searched, and how to provide it."""
    return DataNotAvailable(
        f"data set {name!r} needs the file {file}, which is in none of these folders: {', '.join(map(str, folders))}. "
        f"{reason} To provide it, put {file} into one of them, or set {DATA_VARIABLE} to the folder that holds it."
    )
