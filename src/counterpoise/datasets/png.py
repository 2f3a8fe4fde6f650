"""Reading PNG images without an image library: the kind that holds a batch of CIFAR-10, 8-bit RGB."""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from counterpoise._base.types import ByteArray
from counterpoise.datasets.files import ChecksumMismatch

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HEADER = struct.Struct(">IIBBBBB")  # width, height, depth, color, compression, filtering, interlacing
_RGB_8 = (8, 2, 0, 0, 0)  # the last five of these
_CHANNELS = 3
_MOST_PIXELS = 1 << 26  # a batch of images has 10 million
_FRAME = 12  # bytes of a chunk beside its content: length, kind, checksum


def read_png(path: Path) -> ByteArray:
    """Return the pixels of an 8-bit RGB image, shape (height, width, 3).

    Raises
    ------
    ChecksumMismatch
        If the file is not such an image, or not whole.
    """
    try:
        chunks = list(_chunks(path.read_bytes()))
        width, height = _size(chunks)
        data = b"".join(content for kind, content in chunks if kind == b"IDAT")
        image = _unfiltered(_inflated(data, height * (1 + _CHANNELS * width)).reshape(height, -1))
    except (ValueError, OverflowError, zlib.error) as error:
        raise ChecksumMismatch(
            f"the file {path} must be a whole PNG image of 8-bit RGB pixels; {error}. "
            "It is damaged, incomplete or another kind of file: delete it and get it again."
        ) from error
    return image.reshape(height, width, _CHANNELS)


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield kind and content of the chunks up to the last, each after checking its sum."""
    if not content.startswith(_SIGNATURE):
        raise ValueError(f"it begins with {content[:8]!r}")
    at, kind = len(_SIGNATURE), b""
    while kind != b"IEND":
        length = int.from_bytes(content[at : at + 4], "big")
        if at + _FRAME + length > len(content):
            raise ValueError(f"it ends after {len(content)} bytes, inside a chunk")
        kind, data = content[at + 4 : at + 8], content[at + 8 : at + 8 + length]
        if zlib.crc32(data, zlib.crc32(kind)) != int.from_bytes(content[at + 8 + length : at + _FRAME + length], "big"):
            raise ValueError(f"the chunk {kind!r} at byte {at} has another checksum than it states")
        yield kind, data
        at += _FRAME + length


def _size(chunks: list[tuple[bytes, bytes]]) -> tuple[int, int]:
    kind, header = chunks[0]
    if kind != b"IHDR" or len(header) != _HEADER.size:
        raise ValueError(f"its first chunk is {kind!r} with {len(header)} bytes")
    width, height, *form = _HEADER.unpack(header)
    if tuple(form) != _RGB_8 or not 0 < width * height <= _MOST_PIXELS:
        raise ValueError(f"its header says {width} x {height} pixels of depth {form[0]}, color {form[1]}, {form[2:]}")
    return width, height


def _inflated(data: bytes, size: int) -> ByteArray:
    """Return the decompressed bytes after checking their number, without ever making more of them."""
    stream = zlib.decompressobj()
    content = stream.decompress(data, size + 1)
    if len(content) != size or not stream.eof:
        raise ValueError(f"its pixels must take {size} bytes and take {'more' if len(content) > size else 'fewer'}")
    return np.frombuffer(content, dtype=np.uint8)


def _unfiltered(filtered: ByteArray) -> ByteArray:
    from counterpoise.datasets._png_kernels import unfilter_rows  # noqa: PLC0415 - numba loads on use

    image = np.empty((filtered.shape[0], filtered.shape[1] - 1), dtype=np.uint8)
    bad = unfilter_rows(filtered, image, _CHANNELS)
    if bad >= 0:
        raise ValueError(f"row {bad} has the unknown filter {filtered[bad, 0]}")
    return image
