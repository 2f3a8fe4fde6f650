"""Many small arrays as few large ones: all arrays of one type lie one after the other in one ``.npy`` member.

A forest has thousands of arrays of a hundred bytes. As members of their own each would cost more for its name and its
header than for its values.
"""

import io
import math
from typing import Any, Literal

import numpy as np

from counterpoise._base.types import AnyArray, ByteArray
from counterpoise.persist.errors import UnreadableModel, UnstorableModel

_KINDS = "biufcUSMm"  # of numpy's types: those that np.save writes without pickle
_BITS = "bits"  # the pack of zero-one bytes, eight to the byte
_FEW = 512  # bytes below which packing to bits saves nothing
_MOST_DIMENSIONS = 32


class Packer:
    """Takes arrays and says where they lie."""

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
        if _is_zero_one(flat):
            name, kind, flat = _BITS, f"{order} {array.dtype.str}", np.packbits(flat.view(np.uint8))
        start = self._sizes.get(name, 0)
        self._parts.setdefault(name, []).append(flat)
        self._sizes[name] = start + flat.size
        return [name, start, kind, *array.shape]

    def members(self) -> dict[str, bytes]:
        """Return the packs as files of one-dimensional arrays."""
        return {
            f"arrays/{_file_name(name)}.npy": _npy(np.concatenate(parts, dtype=parts[0].dtype))
            for name, parts in self._parts.items()
        }


def _file_name(pack: str) -> str:
    """Return the name of a pack in letters that any file system takes."""
    return pack.translate({ord("<"): "little-", ord(">"): "big-", ord("|"): "", ord("["): "-", ord("]"): ""})


def _is_zero_one(flat: AnyArray) -> bool:
    return flat.dtype == np.bool_ or (flat.dtype == np.uint8 and flat.size > _FEW and int(flat.max()) <= 1)


def _npy(array: AnyArray) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()


class Unpacker:
    """Gives the arrays back; each pack is checked when it is first asked for."""

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
                raise UnreadableModel(f"{member!r} holds another type than its name says")
            self._packs[name] = pack
        return self._packs[name]


def _read_npy(data: bytes, member: str) -> AnyArray:
    """Return a one-dimensional array; its size is checked before room is made for it."""
    stream = io.BytesIO(data)
    try:
        np.lib.format.read_magic(stream)
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)  # as any array of one plain type has
    except Exception as error:  # the header is a literal, and may fail to be one in many ways
        raise UnreadableModel(f"{member!r} is no array of a known format") from error
    if dtype.hasobject or dtype.kind not in _KINDS or dtype.itemsize == 0:
        raise UnreadableModel(f"{member!r} holds objects ({dtype}), which only pickle could read")
    values: ByteArray = np.frombuffer(bytearray(data[stream.tell() :]), dtype=np.uint8)  # which can be written to
    if len(shape) != 1 or shape[0] * dtype.itemsize != values.size:
        raise UnreadableModel(f"{member!r} has another size than it says")
    return values.view(dtype)
