"""The one file: a zip of stored members, the manifest first, with a checksum of every byte at its end.

The writer of a file can also write its checksum: it guards against damage, not against intent. So nothing in the
manifest is trusted, here and in ``nodes``.

All arrays of one type lie one after the other in one ``.npy`` member. A forest has thousands of arrays of a hundred
bytes; as members of their own each would cost more for its name and its header than for its values.
"""

import hashlib
import io
import json
import math
import zipfile
import zlib
from typing import Any, Literal

import numpy as np

from counterpoise._base.text import load_json, short
from counterpoise._base.types import AnyArray, ByteArray


class UnreadableModel(ValueError):  # noqa: N818 - named for the state it reports
    """A file that is no whole, unaltered model of a known format; the message names the fault and the remedy."""

    __module__ = "counterpoise.persist"


class UnstorableModel(ValueError):  # noqa: N818 - as above
    """A model with a part that cannot be stored; the message names the part."""

    __module__ = "counterpoise.persist"


FORMAT, VERSION = "counterpoise", 6  # a file of another version is refused
_MANIFEST = "manifest.json"
_START = b"PK\x03\x04"
_NAME_AT = 30  # bytes before the name of a zip's first member
_DIGEST = 64  # hexadecimal digits of a SHA-256
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # no time of writing: equal models are equal files
_MOST_MEMBERS = 10_000  # a model of another library is one
_MOST_RATIO = 20  # by which the manifest may grow when unpacked, where models have 5 or 6; nothing else is packed
_MOST_INNER_RATIO = 100  # by which a zip inside may grow: skops' files of many small models have 15
_MOST_MANIFEST = 1 << 27  # bytes, of which 2,000 trees take less than a million
_STORED, _DEFLATED = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
_ENCRYPTED = 1  # bit of the flags


def write_container(manifest: dict[str, Any], members: dict[str, bytes]) -> bytes:
    """Return the file's bytes."""
    if len(members) >= _MOST_MEMBERS:
        raise UnstorableModel(
            f"It has {len(members)} arrays and models, and a file can hold at most {_MOST_MEMBERS - 1}."
        )
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    head = {"format": FORMAT, "format_version": VERSION, **manifest, "members": sums}
    text = json.dumps(head, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        # Where it would get smaller by a suspicious factor, as it is.
        packing = _DEFLATED if len(text) <= _MOST_RATIO * len(zlib.compress(text)) else _STORED
        archive.writestr(zipfile.ZipInfo(_MANIFEST, _LONG_AGO), text, packing)
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, _LONG_AGO), content, _STORED)
        archive.comment = b"0" * _DIGEST
    body = stream.getvalue()[:-_DIGEST]
    return body + hashlib.sha256(body).hexdigest().encode()


def read_container(data: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the manifest and the other members, after all checks that need no knowledge of models."""
    _check_bytes(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            _check_members(members, len(data))
            contents = {info.filename: archive.read(info) for info in members}
    except UnreadableModel:
        raise
    except Exception as error:  # zipfile raises a dozen kinds for a crafted directory
        raise UnreadableModel(f"its directory of members is broken ({error})") from error
    manifest = _read_manifest(contents.pop(_MANIFEST))
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    if manifest.get("members") != sums:
        raise UnreadableModel("its members were altered, or differ from the list in its manifest")
    return manifest, contents


def check_inner_zip(data: bytes) -> None:
    """Check the sizes of a zip inside of the file before anything in it is unpacked."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
    if sum(info.file_size for info in members) > _MOST_INNER_RATIO * len(data):
        raise UnreadableModel("a file inside it would unpack to far more bytes than it has")
    if sum(info.compress_size for info in members) > len(data):
        raise UnreadableModel("files inside it overlap")


def _check_bytes(data: bytes) -> None:
    if not data:
        raise UnreadableModel("it is empty (0 bytes)")
    if not data.startswith(_START):
        hint = ", but perhaps a pickle, which could run any program" if data.startswith(b"\x80") else ""
        raise UnreadableModel(f"it was not written by cp.save{hint}")
    name = data[_NAME_AT : _NAME_AT + len(_MANIFEST)]
    if name != _MANIFEST.encode()[: len(name)]:
        raise UnreadableModel("it is a zip file, but cp.save did not write it")
    if hashlib.sha256(data[:-_DIGEST]).hexdigest().encode() != data[-_DIGEST:]:
        raise UnreadableModel(
            "it was cut short or altered: its checksum does not match; copy it again from its source, or save the "
            "model again"
        )


def _check_members(members: list[zipfile.ZipInfo], n_bytes: int) -> None:
    """Check the directory before anything is unpacked."""
    names = [info.filename for info in members]
    if len(names) > _MOST_MEMBERS:
        raise UnreadableModel(f"it has {len(names)} members, which is more than any model needs")
    if len(set(names)) < len(names):
        raise UnreadableModel("two of its members have the same name")
    for info in members:
        if info.filename.startswith("/") or "\\" in info.filename or ".." in info.filename.split("/"):
            raise UnreadableModel(f"its member {info.filename!r} points out of the file")
        allowed = {_STORED: 1, _DEFLATED: _MOST_RATIO} if info.filename == _MANIFEST else {_STORED: 1}
        if info.compress_type not in allowed or info.flag_bits & _ENCRYPTED:
            raise UnreadableModel(f"its member {info.filename!r} is packed in a way that cp.save does not use")
        if info.file_size > info.compress_size * allowed[info.compress_type]:
            raise UnreadableModel(f"its member {info.filename!r} would unpack to far more bytes than it has")
    if sum(info.compress_size for info in members) > n_bytes:
        raise UnreadableModel("its members overlap")
    if _MANIFEST not in names or members[names.index(_MANIFEST)].file_size > _MOST_MANIFEST:
        raise UnreadableModel("its manifest is missing, or has an impossible size")


def _read_manifest(text: bytes) -> dict[str, Any]:
    try:
        manifest = load_json(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise UnreadableModel(f"its manifest is not valid JSON ({short(error)})") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise UnreadableModel("its manifest has another format")
    version = manifest.get("format_version")
    if type(version) is not int or version < 1:
        raise UnreadableModel(f"its manifest has the impossible format version {version!r}")
    if version != VERSION:
        what_to_do = "upgrade counterpoise" if version > VERSION else "fit the model again and save it"
        raise UnreadableModel(
            f"it has format version {version}, written by counterpoise {manifest.get('library')}, and this version "
            f"of counterpoise reads only format version {VERSION}: {what_to_do}"
        )
    return manifest


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


_KINDS = "biufcUSMm"  # of numpy's types: those that np.save writes without pickle
_BITS = "bits"  # the pack of zero-one bytes, eight to the byte
_FEW = 512  # bytes below which packing to bits saves nothing
_MOST_DIMENSIONS = 32


class Packer:
    """Collects arrays, and returns where each lies."""

    def __init__(self) -> None:
        self._parts: dict[str, list[AnyArray]] = {}
        self._sizes: dict[str, int] = {}

    def add(self, array: AnyArray) -> list[Any]:
        """Take an array, and return its pack, its first entry there, its layout in memory and its shape."""
        if array.dtype.kind not in _KINDS or array.dtype.itemsize == 0:
            raise UnstorableModel(f"an array of type {array.dtype}")
        order: Literal["C", "F"] = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        flat = np.asarray(array).ravel(order)
        name, kind = array.dtype.str, str(order)
        if flat.dtype == np.bool_ or (flat.dtype == np.uint8 and flat.size > _FEW and int(flat.max()) <= 1):
            name, kind, flat = _BITS, f"{order} {array.dtype.str}", np.packbits(flat.view(np.uint8))
        start = self._sizes.get(name, 0)
        self._parts.setdefault(name, []).append(flat)
        self._sizes[name] = start + flat.size
        return [name, start, kind, *array.shape]

    def members(self) -> dict[str, bytes]:
        """Return the packs as files of one-dimensional arrays."""
        members = {}
        for name, parts in self._parts.items():
            stream = io.BytesIO()
            np.lib.format.write_array(stream, np.concatenate(parts, dtype=parts[0].dtype), allow_pickle=False)
            members[f"arrays/{_file_name(name)}.npy"] = stream.getvalue()
        return members


def _file_name(pack: str) -> str:
    """Return the name of a pack in letters that any file system takes."""
    return pack.translate({ord("<"): "little-", ord(">"): "big-", ord("|"): "", ord("["): "-", ord("]"): ""})


class Unpacker:
    """Gives the arrays back; each pack is checked when it is first used."""

    def __init__(self, members: dict[str, bytes]) -> None:
        self._members = members
        self._packs: dict[str, AnyArray] = {}

    def get(self, name: Any, start: Any, kind: Any, *shape: Any) -> AnyArray:
        """Return an array that ``Packer.add`` placed."""
        whole_numbers = all(type(number) is int and number >= 0 for number in (start, *shape))
        if not isinstance(name, str) or not whole_numbers or len(shape) > _MOST_DIMENSIONS:
            raise UnreadableModel("an array is described in an unknown way")
        order, _, small = kind.partition(" ") if isinstance(kind, str) else ("", "", "")
        if order not in ("C", "F") or (name == _BITS) != (small in ("|b1", "|u1")):
            raise UnreadableModel("an array is described in an unknown way")
        size = math.prod(shape)
        n_stored = -(-size // 8) if name == _BITS else size
        pack = self._pack(name)
        if start + n_stored > pack.size:
            raise UnreadableModel("an array lies outside of the stored ones")
        flat = pack[start : start + n_stored]
        if name == _BITS:
            flat = np.unpackbits(flat, count=size).view(np.dtype(small))
        return np.reshape(flat, shape, order="F" if order == "F" else "C")

    def _pack(self, name: str) -> AnyArray:
        if name not in self._packs:
            member = f"arrays/{_file_name(name)}.npy"
            if member not in self._members:
                raise UnreadableModel(f"it refers to {member!r}, which it does not hold")
            pack = _read_npy(self._members[member], member)
            if pack.dtype.str != ("|u1" if name == _BITS else name):
                raise UnreadableModel(f"{member!r} has a name for another type than it holds")
            self._packs[name] = pack
        return self._packs[name]


def _read_npy(data: bytes, member: str) -> AnyArray:
    """Return a one-dimensional array; its size is checked before room is made for it."""
    stream = io.BytesIO(data)
    try:
        np.lib.format.read_magic(stream)
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)  # as any array of one plain type has
    except Exception as error:  # the header is a literal, and may fail to be one in many ways
        raise UnreadableModel(f"{member!r} is not an array of a known format") from error
    if dtype.hasobject or dtype.kind not in _KINDS or dtype.itemsize == 0:
        raise UnreadableModel(f"{member!r} holds objects ({dtype}), which only pickle could read")
    values: ByteArray = np.frombuffer(bytearray(data[stream.tell() :]), dtype=np.uint8)  # which can be written to
    if len(shape) != 1 or shape[0] * dtype.itemsize != values.size:
        raise UnreadableModel(f"{member!r} has another size than its header gives")
    return values.view(dtype)
