"""Images: batches of both forms, and files that are missing, torn or foreign."""

import hashlib
import io
import json
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from counterpoise.datasets import ChecksumMismatch, DataNotAvailable
from counterpoise.datasets.folders import data_folders
from papers.boosted_cvar import images
from papers.boosted_cvar.images import ImageData, load_images, read_png

SIGNATURE = b"\x89PNG\r\n\x1a\n"
N_ROWS = 6  # of a made-up batch


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_bytes(pixels):
    """Return a PNG file."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


PIXELS = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)


def test_pixels_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "batch.png"
    path.write_bytes(png_bytes(PIXELS))
    np.testing.assert_array_equal(read_png(path), PIXELS)


@pytest.mark.parametrize(
    "content",
    [
        b"GIF89a, not a PNG",
        png_bytes(PIXELS)[:-40],
        png_bytes(PIXELS)[:8],
        png_bytes(PIXELS[..., 0]),
        png_bytes(PIXELS).replace(b"IDAT", b"IDOT", 1),
        SIGNATURE + chunk(b"IEND", b""),
    ],
)
def test_a_torn_or_foreign_image_is_one_sentence(content, tmp_path):
    path = tmp_path / "batch.png"
    path.write_bytes(content)
    with pytest.raises(
        ChecksumMismatch, match=r"batch.png must be a whole PNG image of 8-bit RGB pixels; .* get it again"
    ):
        read_png(path)


@pytest.fixture
def small(monkeypatch, cache):  # noqa: ARG001 - no data from outside
    """Both data sets with few images and checksums of their own."""
    rng = np.random.default_rng(0)
    rows, sums = {}, {}
    for name, recipe in list(images.IMAGES.items()):
        batches = tuple(batch._replace(n_rows=N_ROWS) for batch in recipe.batches)
        monkeypatch.setitem(images.IMAGES, name, recipe._replace(batches=batches))
        for batch in batches:
            content = rng.integers(0, 256, (N_ROWS, recipe.label_bytes + 3072)).astype(np.uint8)
            content[:, : recipe.label_bytes] %= 10
            rows[batch.name], sums[f"{batch.name}.bin"] = content, hashlib.md5(content.tobytes()).hexdigest()  # noqa: S324
    monkeypatch.setattr(images, "MD5", sums)
    return rows


def write_bin(folder, name, rows):
    folder.mkdir(exist_ok=True)
    for batch in images.IMAGES[name].batches:
        (folder / f"{batch.name}.bin").write_bytes(rows[batch.name].tobytes())


def write_png(folder, rows):
    labels = {False: [], True: []}
    for batch in images.IMAGES["cifar10"].batches:
        content = rows[batch.name]
        pixels = content[:, 1:].reshape(N_ROWS, 3, 1024).transpose(0, 2, 1)
        (folder / f"{batch.name}.png").write_bytes(png_bytes(pixels))
        labels[batch.is_test] += content[:, 0].tolist()
    (folder / "train_lables.json").write_text(json.dumps(labels[False]))
    (folder / "test_lables.json").write_text(json.dumps(labels[True]))


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_binary_files_give_planes_labels_and_split(name, small, tmp_path):
    write_bin(tmp_path / name, name, small)  # in a folder of its own
    data = load_images(name, data_folders(tmp_path))
    batches = images.IMAGES[name].batches
    first = 2 if name == "cifar100" else 1
    content = np.concatenate([small[batch.name] for batch in batches])
    np.testing.assert_array_equal(data.X, content[:, first:].reshape(-1, 3, 32, 32))
    np.testing.assert_array_equal(data.y, content[:, first - 1])
    assert data.is_test.tolist() == [False] * (N_ROWS * (len(batches) - 1)) + [True] * N_ROWS
    np.testing.assert_array_equal(data.part("test").X, data.X[-N_ROWS:])


def test_png_batches_give_the_same_as_binary_files(small, tmp_path):
    write_png(tmp_path, small)
    found = load_images("cifar10", data_folders(tmp_path))
    write_bin(tmp_path / "cifar10", "cifar10", small)
    expected = load_images("cifar10", data_folders(tmp_path))
    np.testing.assert_array_equal(found.X, expected.X)
    np.testing.assert_array_equal(found.y, expected.y)


@pytest.mark.usefixtures("small")
def test_data_that_are_nowhere_are_named_with_the_folders(tmp_path):
    with pytest.raises(DataNotAvailable, match=r"'cifar100' needs the file train.bin, .*binary version"):
        load_images("cifar100", data_folders(tmp_path))


def test_a_missing_file_of_a_set_is_named(small, tmp_path):
    write_png(tmp_path, small)
    (tmp_path / "data_batch_4.png").unlink()
    with pytest.raises(DataNotAvailable, match=r"needs the file data_batch_4.png, .*which has 7 of 8 files"):
        load_images("cifar10", data_folders(tmp_path))


def test_an_altered_pixel_is_found_by_the_published_checksum(small, tmp_path):
    write_bin(tmp_path, "cifar10", small)
    small["test_batch"][3, 100] ^= 1
    write_bin(tmp_path, "cifar10", small)
    with pytest.raises(ChecksumMismatch, match=r"test_batch.bin must have the published md5"):
        load_images("cifar10", data_folders(tmp_path))


def test_parts_and_lengths_are_checked():
    with pytest.raises(ValueError, match="y must have 2 entries, one for each image of X; got 3"):
        ImageData("toy", np.zeros((2, 3, 32, 32), np.uint8), np.zeros(3, int), np.zeros(2, bool), "")
    toy = ImageData("toy", np.zeros((2, 3, 32, 32), np.uint8), np.zeros(2, int), np.zeros(2, bool), "")
    with pytest.raises(ValueError, match="part must be one of 'train', 'test'; got 'valid'"):
        toy.part("valid")


def test_real_images_have_their_published_counts_and_means():
    folder = os.environ.get("COUNTERPOISE_DATA", "")
    try:
        data = load_images("cifar10", data_folders(folder if Path(folder).is_dir() and folder else None))
    except DataNotAvailable:
        pytest.skip("needs CIFAR-10: set COUNTERPOISE_DATA to a folder that holds its files")
    assert data.X.shape == (60_000, 3, 32, 32)
    assert np.bincount(data.part("train").y).tolist() == [5_000] * 10
    assert np.bincount(data.part("test").y).tolist() == [1_000] * 10
    means = data.part("train").X.mean(axis=(0, 2, 3)) / 255
    np.testing.assert_allclose(means, [0.4914, 0.4822, 0.4465], atol=1e-4)  # as everyone normalizes them
