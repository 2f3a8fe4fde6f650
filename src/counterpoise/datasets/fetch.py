"""Data sets from their public homes: the publisher's file with a checksum, OpenML, or scikit-learn's own fetcher.

A ``Fetch`` takes the cache folder and returns the columns that the file of a data folder would give. Nothing is fetched
twice: the cache keeps publishers' files as they are, and OpenML's tables as npz.
"""

import io
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from urllib.request import urlopen

import numpy as np

from counterpoise.datasets.columns import Category, Column, Columns, Fetch, as_category, as_strings, read_csv, stack
from counterpoise.datasets.folders import ChecksumMismatch, check_sha256, verify_file
from counterpoise.persist import write_atomically

_TIMEOUT = 60  # seconds without a byte before a publisher counts as unreachable


def from_publisher(files: Mapping[str, str], read: Callable[[list[Path]], Columns]) -> Fetch:
    """Fetch files from their publisher, check them, keep them in the cache, and read them.

    ``files`` has the sha256 of each web address.
    """

    def fetch(cache: Path) -> Columns:
        paths = [cache / url.rsplit("/", 1)[-1] for url in files]
        for (url, sha256), path in zip(files.items(), paths, strict=True):
            if path.is_file():
                verify_file(path, sha256)
            else:
                content = download(url)
                check_sha256(content, sha256, f"the file at {url}")
                write_atomically(path, [content])
        return read(paths)

    return fetch


def download(url: str) -> bytes:
    """Return the bytes at a web address."""
    if not url.startswith("https://"):
        raise ValueError(f"url must start with https://; got {url!r}.")
    with urlopen(url, timeout=_TIMEOUT) as answer:  # noqa: S310 - the scheme was checked
        content: bytes = answer.read()
    return content


def openml(data_id: int, names: Sequence[str] | None = None) -> Fetch:
    """Fetch a table from OpenML by its number; ``names`` are those of its last columns, without the target."""

    def fetch(cache: Path) -> Columns:
        path = cache / f"openml-{data_id}.npz"
        if not path.is_file():
            write_atomically(path, [_pack(_rename_columns(openml_table(data_id), data_id, names))])
        return _unpack(path)

    return fetch


def openml_table(data_id: int) -> Columns:
    """Return OpenML's table, columns under its own names and the target as ``y``."""
    from sklearn.datasets import fetch_openml  # noqa: PLC0415 - heavy

    # liac-arff needs no pandas, and codes nominal columns by their list of names.
    bunch = fetch_openml(data_id=data_id, as_frame=False, parser="liac-arff", cache=False)
    table: Columns = {
        name: _decode_column(bunch.data[:, at], bunch.categories.get(name))
        for at, name in enumerate(bunch.feature_names)
    }
    names, codes = np.unique(bunch.target.astype(str), return_inverse=True)
    return table | {"y": Category(codes.astype(np.int64), names.tolist())}


def _decode_column(numbers: Any, names: Sequence[str] | None) -> Column:
    if names is None:
        return np.asarray(numbers)
    return Category(np.nan_to_num(numbers, nan=-1).astype(np.int64), list(names))


def _rename_columns(table: Columns, data_id: int, names: Sequence[str] | None) -> Columns:
    own_names = [name for name in table if name != "y"]
    if names is None:
        return {unquote(name).rstrip("?"): column for name, column in table.items()}
    if len(own_names) < len(names):
        raise ValueError(f"OpenML table {data_id} must have at least {len(names)} columns; got {len(own_names)}.")
    last = own_names[len(own_names) - len(names) :]  # any before them are ids
    return {name: table[old] for name, old in zip(names, last, strict=True)} | {"y": table["y"]}


def _pack(table: Columns) -> bytes:
    """Return the bytes of an npz file without pickles; columns by place, as a name may hold any character."""
    arrays: dict[str, Any] = {"columns": np.array(list(table))}
    for at, column in enumerate(table.values()):
        if isinstance(column, Category):
            arrays[f"codes{at}"], arrays[f"names{at}"] = column.codes, np.array(column.names)
        else:
            arrays[f"numbers{at}"] = column
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def _unpack(path: Path) -> Columns:
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            return {name: _unpack_column(arrays, at) for at, name in enumerate(arrays["columns"].tolist())}
    except (ValueError, LookupError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ChecksumMismatch(
            f"the file {path} is not the OpenML table that was fetched. It is damaged, incomplete or another file: "
            "delete it and fetch it again."
        ) from error


def _unpack_column(arrays: Any, at: int) -> Column:
    if f"numbers{at}" in arrays:
        return np.asarray(arrays[f"numbers{at}"])
    return Category(arrays[f"codes{at}"], arrays[f"names{at}"].tolist())


def covertype(cache: Path) -> Columns:
    """Fetch Covertype with scikit-learn, which checks the publisher's file and keeps it in the cache."""
    from sklearn.datasets import fetch_covtype  # noqa: PLC0415 - heavy

    bunch = fetch_covtype(data_home=str(cache))
    measurements = (  # the names of the UCI file, in its order
        *("Elevation", "Aspect", "Slope", "Horizontal_Distance_To_Hydrology", "Vertical_Distance_To_Hydrology"),
        *("Horizontal_Distance_To_Roadways", "Hillshade_9am", "Hillshade_Noon", "Hillshade_3pm"),
        "Horizontal_Distance_To_Fire_Points",
    )
    wilderness, soils = (f"Wilderness_Area{at}" for at in range(1, 5)), (f"Soil_Type{at}" for at in range(1, 41))
    names = (*measurements, *wilderness, *soils)
    return {name: bunch.data[:, at] for at, name in enumerate(names)} | {"y": bunch.target}


_A9A_FEATURES = 123
_A9A_MALE = 72  # counted from 0

ADULT_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country"),
)


def read_compas(paths: list[Path]) -> Columns:
    """Read ProPublica's two-year file; of its repeated column names only ones that no recipe uses are lost."""
    return read_csv(paths[0])


def read_adult(paths: list[Path]) -> Columns:
    """Read UCI's training and test files; the test file writes its labels with a full stop."""
    both = stack([_with(read_csv(path, (*ADULT_COLUMNS, "income")), "split", part) for path, part in _parts(paths)])
    income = as_strings(both.pop("income"))
    return both | {"y": np.char.startswith(income, ">50K").astype(np.int64)}


def read_a9a(paths: list[Path]) -> Columns:
    """Read LIBSVM's training and test files."""
    arrays: Columns = {"n_features": np.array(_A9A_FEATURES), "male_column": np.array([_A9A_MALE])}
    for path, part in _parts(paths):
        arrays |= read_sparse_rows(path, _A9A_FEATURES, f"_{part}")
    return arrays


def _parts(paths: list[Path]) -> list[tuple[Path, str]]:
    return list(zip(paths, ("train", "test"), strict=True))


def _with(columns: Columns, name: str, value: str) -> Columns:
    n_rows = len(as_strings(next(iter(columns.values()))))
    return columns | {name: as_category([value] * n_rows)}


def read_sparse_rows(path: Path, n_features: int, part: str = "") -> dict[str, Any]:
    """Read a file of LIBSVM as the arrays of its rows, whose names end in ``part``."""
    from sklearn.datasets import load_svmlight_file  # noqa: PLC0415 - heavy

    X, y = load_svmlight_file(str(path), n_features=n_features)
    return {f"X{part}_indptr": X.indptr, f"X{part}_indices": X.indices, f"y{part}": y.astype(np.int64)}
