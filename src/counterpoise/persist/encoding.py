"""Values as a flat list of nodes, each of which refers only to nodes before it.

A child of a node is a JSON scalar, or ``[number]``, which is the node of that number. So shared parts are stored once
and stay shared, cycles cannot be written, and reading needs no recursion.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from counterpoise._base.types import AnyArray
from counterpoise.persist.classes import is_known
from counterpoise.persist.errors import UnstorableModel
from counterpoise.persist.extents import Extents, check_keys
from counterpoise.persist.foreign import is_foreign
from counterpoise.persist.forms import FORMS, form_of
from counterpoise.persist.packs import Packer
from counterpoise.persist.scikit_learn import estimator_state, is_of_scikit_learn
from counterpoise.persist.values import ModelFile
from counterpoise.persist.waiting import Waiting

Child = Any  # None, bool, int, float, str or [number]
_MOST_BITS = 4096  # of a whole number in decimal digits: Python refuses to read many more


class Encoder:
    """Turns values into nodes.

    Attributes
    ----------
    nodes : list
        A node is a list of its kind and its children.
    layouts : list
        Class names with attribute names, which the nodes of objects refer to: a forest repeats few of them.
    arrays : Packer
        The arrays.
    foreign, foreign_paths : list
        Models of scikit-learn and of other libraries, which nodes refer to by their place, and where they are in ours.
    files : dict
        Model files of other libraries, and models in files of their own, by their names, which nodes refer to.
    """

    def __init__(self, pack: "Callable[[Encoder, Any], bytes]", path: Sequence[str] = ()) -> None:
        """Begin; ``pack`` returns the bytes of a file of one value, given a fresh encoder, ``path`` leads here."""
        self._pack = pack
        self.nodes: list[list[Any]] = []
        self.layouts: list[list[Any]] = []
        self.arrays = Packer()
        self.foreign: list[Any] = []
        self.foreign_paths: list[str] = []
        self.files: dict[str, bytes] = {}
        self._known: dict[int, Child] = {}  # by identity
        self._kept: list[Any] = []  # alive until the end, so that no identity is used twice
        self._layout_of: dict[tuple[str, ...], int] = {}
        self._path: list[str] = list(path)
        self._extents = Extents()

    def encode(self, value: Any, step: str = "") -> Child:
        """Return a value as a child; ``step`` leads to it from its parent, for messages."""
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int and value.bit_length() <= _MOST_BITS:
            return value
        if kind is float and math.isfinite(value):
            return value
        found = self._known.get(id(value), ())
        if found:
            return found
        self._path.append(step)
        if found is None:
            raise self._refusal("a part that holds itself")
        self._known[id(value)] = None  # until its node is there
        self._kept.append(value)
        node = self._node(value, kind)
        self._count(node)
        self.nodes.append(node)
        self._known[id(value)] = [len(self.nodes) - 1]
        self._path.pop()
        return self._known[id(value)]

    def _node(self, value: Any, kind: type) -> list[Any]:
        if kind in _PLAIN:
            return [kind.__name__, *_PLAIN[kind](self, value)]
        if kind in (ModelFile, Waiting):
            return self._file(value) if kind is ModelFile else self._apart(value.content)
        if kind is np.ndarray:
            return self._objects(value) if value.dtype.kind == "O" else self._array(value)
        if isinstance(value, np.generic):
            return ["scalar", self.encode(np.atleast_1d(np.asarray(value)))]
        if form_of(value) is not None:
            return self._parts(value)
        is_ours = is_known(kind) and (not is_of_scikit_learn(kind) or holds_known_only(value))
        return self._object(value, kind) if is_ours else self._foreign(value)

    def _all(self, values: Iterable[Any]) -> list[Child]:
        return [self.encode(part, f"[{place}]") for place, part in enumerate(values)]

    def _pairs(self, values: dict[Any, Any]) -> Iterator[Child]:
        try:
            check_keys(values)
        except ValueError as error:
            raise self._refusal(f"more than a file can hold: {error}") from error
        for key, value in values.items():
            yield self.encode(key, "key")
            yield self.encode(value, f"[{key!r}]")

    def _array(self, array: AnyArray) -> list[Any]:
        try:
            return ["array", *self.arrays.add(array)]
        except UnstorableModel as error:
            raise self._refusal(str(error)) from error

    def _objects(self, array: AnyArray) -> list[Any]:
        """Return an array of objects as its distinct values and which of them stands where."""
        levels: dict[Any, int] = {}
        values, codes = [], []
        for value in array.ravel().tolist():
            if value is not None and not isinstance(value, (str, int, float)):
                raise self._refusal(f"an array of objects with {_description(value)}")
            key = (type(value), value if value == value else "nan")  # noqa: PLR0124 - only NaN differs from itself
            if key not in levels:
                levels[key] = len(levels)
                values.append(value)
            codes.append(levels[key])
        places = np.array(codes, dtype=np.min_scalar_type(len(values)))
        return ["objects", self.encode(places.reshape(array.shape)), *self._all(values)]

    def _parts(self, value: Any) -> list[Any]:
        form = str(form_of(value))
        try:
            parts = FORMS[form].apart(value)
        except TypeError as error:
            raise self._refusal(str(error)) from error
        return ["form", form, *self._all(parts)]

    def _file(self, file: ModelFile) -> list[Any]:
        name = f"models/{len(self.files)}.{file.suffix}"
        self.files[name] = file.content
        return ["file", name]

    def _apart(self, content: bytes) -> list[Any]:
        name = f"parts/{len(self.files)}.cp"
        self.files[name] = content
        return ["part", name]

    def _store_apart(self, models: Sequence[Any], step: str) -> None:
        """Store models in files of their own, so that each can be read when it is wanted."""
        for place, model in enumerate(models):
            if type(model) is not Waiting and is_foreign(model) and id(model) not in self._known:
                self._kept.append(model)
                inner = Encoder(self._pack, [*self._path, f"{step}[{place}]"])
                self.nodes.append(self._apart(self._pack(inner, model)))
                self._count(self.nodes[-1])
                self._known[id(model)] = [len(self.nodes) - 1]

    def _foreign(self, value: Any) -> list[Any]:
        if not is_foreign(value):
            raise self._refusal(_description(value))
        self.foreign.append(value)
        self.foreign_paths.append(self._place())
        return ["foreign", len(self.foreign) - 1]

    def _object(self, value: Any, kind: type) -> list[Any]:
        state = state_of(value)
        for name in getattr(kind, "stored_apart", ()):
            self._store_apart(state.get(name, ()), f".{name.rstrip('_')}")
        key = (kind.__name__, *state)
        if key not in self._layout_of:
            self._layout_of[key] = len(self.layouts)
            self.layouts.append([kind.__name__, list(state)])
        return ["object", self._layout_of[key], *(self.encode(part, f".{name}") for name, part in state.items())]

    def _count(self, node: list[Any]) -> None:
        try:
            self._extents.add(node)
        except ValueError as error:
            raise UnstorableModel(str(error)) from error

    def _place(self) -> str:
        return "".join(self._path).removeprefix(".") or "it"

    def _refusal(self, what: str) -> UnstorableModel:
        return UnstorableModel(f"{self._place()} is {what}")


_PLAIN: dict[type, Callable[[Encoder, Any], Iterable[Child]]] = {
    list: Encoder._all,  # noqa: SLF001 - its own
    tuple: Encoder._all,  # noqa: SLF001 - its own
    dict: Encoder._pairs,  # noqa: SLF001 - its own
    bytes: lambda _, value: [value.hex()],
    int: lambda _, value: [hex(value)],
    float: lambda _, value: [repr(value)],
}


def state_of(value: Any) -> dict[str, Any]:
    """Return the attributes of an object that are stored: those that ``stored_state`` or ``__getstate__`` tells."""
    if isinstance(value, tuple):
        return value._asdict()  # type: ignore[attr-defined,no-any-return]
    if is_of_scikit_learn(type(value)):
        return estimator_state(value)
    state = value.stored_state() if hasattr(value, "stored_state") else value.__getstate__()
    return {name: part for name, part in (state or {}).items() if name != "_sklearn_version"}


def holds_known_only(root: Any) -> bool:
    """Tell whether everything inside of a value can be stored here; else skops may be able to."""
    waiting, seen = [root], {id(root)}
    while waiting:
        part = waiting.pop()
        inner = _inside(part)
        if inner is None:
            return False
        for one in inner:
            if id(one) not in seen:
                seen.add(id(one))
                waiting.append(one)
    return True


def _inside(part: Any) -> Iterable[Any] | None:
    """Return what is inside of a value; None where it is of a kind that cannot be stored here."""
    kind = type(part)
    if kind is dict:
        return [*part, *part.values()]
    if kind in (list, tuple):
        return list(part)
    if kind is np.ndarray:
        return part.ravel().tolist() if part.dtype.kind == "O" else ()
    if part is None or kind in (bool, int, float, str, bytes) or isinstance(part, np.generic) or form_of(part):
        return ()
    return list(state_of(part).values()) if is_known(kind) else None


def _description(value: Any) -> str:
    kind = type(value)
    if callable(value) and not hasattr(value, "predict"):
        return f"a function or callable ({getattr(value, '__qualname__', kind.__qualname__)}), which no file can hold"
    return f"of the type {kind.__module__}.{kind.__qualname__}, which cp.save does not know"
