"""Values as a flat list of nodes, each of which refers only to nodes before it, and nodes as values.

A child of a node is a JSON scalar, or ``[number]``, which is the node of that number. So shared parts are stored once
and stay shared, cycles cannot be written, and reading needs no recursion. Every node of a file is checked: its
writer may have meant harm.

An object is stored as its class, by the name that ``classes`` lists, and its attributes: those that its
``stored_state()`` returns, where its class has that method, else those of ``__getstate__``. The models in an attribute
that the tuple ``stored_apart`` of its class names lie in files of their own, so that each is read when it is wanted. A
file must hold the attributes that the tuple ``stored_fields`` of the class names, else its fields or parameters. An
object is put together without ``__init__``; then its ``check_loaded()``, where its class has that method, raises an
error if its attributes are not those of a fitted one.
"""

import dataclasses
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from counterpoise._base.types import AnyArray
from counterpoise.persist.boosted import BOOSTED, UNCHECKED, boosted_form_of
from counterpoise.persist.container import Packer, Unpacker, UnreadableModel, UnstorableModel
from counterpoise.persist.estimators import is_estimator, refuse_untrusted
from counterpoise.persist.known_classes import is_known, known_class
from counterpoise.persist.values import VALUES, LazyModel, ModelFile, value_form_of

_MOST_KEYS = 2000  # of a dict that are no texts: numbers can be chosen so that all of them collide
_DEEPEST = 100  # models are some ten deep
_LARGEST = 10**8  # parts


def check_keys(keys: Iterable[Any]) -> None:
    """Raise a ValueError where the keys of a dict might take a time that grows with the square of their number."""
    if sum(type(key) is not str for key in keys) > _MOST_KEYS:
        raise ValueError(f"a dict has more than {_MOST_KEYS} keys that are not strings")


class Extents:
    """Keeps account of nodes, each of which refers only to nodes before it."""

    def __init__(self) -> None:
        self._known: list[tuple[int, int]] = []

    def add(self, node: list[Any]) -> None:
        """Count a node, and raise a ValueError where it is too deep or too large."""
        inner = [self._known[child[0]] for child in node if isinstance(child, list)]
        depth = 1 + max((depth for depth, _ in inner), default=0)
        size = len(node) + sum(size for _, size in inner)
        if depth > _DEEPEST or size > _LARGEST:
            raise ValueError("it is nested too deeply")
        self._known.append((depth, size))


FORMS = VALUES | BOOSTED  # every value that is stored as plain parts


def form_of(value: Any) -> str | None:
    """Return the name of the form of a value, or None where it has none."""
    return value_form_of(value) or boosted_form_of(value)


Child = Any  # None, bool, int, float, str or [number]
_MOST_BITS = 4096  # of a whole number in decimal digits: Python refuses to read many more


_AS_TEXT: dict[type, Callable[[Any], str]] = {bytes: bytes.hex, int: hex, float: repr}


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
    estimators, paths_of_estimators : list
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
        self.estimators: list[Any] = []
        self.paths_of_estimators: list[str] = []
        self.files: dict[str, bytes] = {}
        self._known: dict[int, Child] = {}  # by identity
        self._alive: list[Any] = []  # alive until the end, so that no identity is used twice
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
        place = self._known.get(id(value), ())
        if place:
            return place
        self._path.append(step)
        if place is None:
            raise self._refusal("a part that holds itself")
        self._known[id(value)] = None  # until its node is there
        self._alive.append(value)
        self._append(self._node(value, kind), value)
        self._path.pop()
        return self._known[id(value)]

    def _append(self, node: list[Any], value: Any) -> None:
        """Append the node of a value."""
        try:
            self._extents.add(node)
        except ValueError as error:
            raise UnstorableModel(str(error)) from error
        self._known[id(value)] = [len(self.nodes)]
        self.nodes.append(node)

    def _node(self, value: Any, kind: type) -> list[Any]:  # noqa: PLR0911 - one for each kind of value
        if kind in (list, tuple, dict):
            return [kind.__name__, *(self._pairs(value) if kind is dict else self._all(value))]
        if kind in _AS_TEXT:
            return [kind.__name__, _AS_TEXT[kind](value)]
        if kind in (ModelFile, LazyModel):
            return self._file(value.content, value.suffix if kind is ModelFile else "")
        if kind is np.ndarray:
            is_of_objects = value.dtype.kind == "O"
            return self._objects(value) if is_of_objects else ["array", *self._take_apart(self.arrays.add, value)]
        if isinstance(value, np.generic):
            return ["scalar", self.encode(np.atleast_1d(np.asarray(value)))]
        form = form_of(value)
        if form is not None:
            return ["form", form, *self._all(self._take_apart(FORMS[form].apart, value))]
        return self._object(value, kind) if is_known(kind) else self._estimator(value)

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

    def _take_apart(self, take_apart: Callable[[Any], Iterable[Any]], value: Any) -> Iterable[Any]:
        try:
            return take_apart(value)
        except (TypeError, UnstorableModel) as error:
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

    def _file(self, content: bytes, suffix: str = "") -> list[Any]:
        """Add a file of another library, which has a suffix, or a model in a file of its own."""
        name = f"models/{len(self.files)}.{suffix}" if suffix else f"parts/{len(self.files)}.cp"
        self.files[name] = content
        return ["file" if suffix else "part", name]

    def _store_apart(self, models: Sequence[Any], step: str) -> None:
        """Store models in files of their own, so that each can be read when it is wanted."""
        for place, model in enumerate(models):
            if type(model) is not LazyModel and is_estimator(model) and id(model) not in self._known:
                self._alive.append(model)
                inner = Encoder(self._pack, [*self._path, f"{step}[{place}]"])
                self._append(self._file(self._pack(inner, model)), model)

    def _estimator(self, value: Any) -> list[Any]:
        if not is_estimator(value):
            raise self._refusal(_description(value))
        self.estimators.append(value)
        self.paths_of_estimators.append(self._place())
        return ["estimator", len(self.estimators) - 1]

    def _object(self, value: Any, kind: type) -> list[Any]:
        state = state_of(value)
        for name in getattr(kind, "stored_apart", ()):
            self._store_apart(state.get(name, ()), f".{name.rstrip('_')}")
        key = (kind.__name__, *state)
        if key not in self._layout_of:
            self._layout_of[key] = len(self.layouts)
            self.layouts.append([kind.__name__, list(state)])
        return ["object", self._layout_of[key], *(self.encode(part, f".{name}") for name, part in state.items())]

    def _place(self) -> str:
        return "".join(self._path).removeprefix(".") or "it"

    def _refusal(self, what: str) -> UnstorableModel:
        return UnstorableModel(f"{self._place()} is {what}")


def state_of(value: Any) -> dict[str, Any]:
    """Return the attributes of an object that are stored: those of ``stored_state`` or ``__getstate__``."""
    if isinstance(value, tuple):
        return value._asdict()  # type: ignore[attr-defined,no-any-return]
    state = value.stored_state() if hasattr(value, "stored_state") else value.__getstate__()
    return {name: part for name, part in (state or {}).items() if name != "_sklearn_version"}


def _description(value: Any) -> str:
    kind = type(value)
    if callable(value) and not hasattr(value, "predict"):
        return f"a function or callable ({getattr(value, '__qualname__', kind.__qualname__)}), which no file can hold"
    return f"of the type {kind.__module__}.{kind.__qualname__}, which cp.save does not know"


_FAILURES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)  # of parts of a wrong kind


class Decoder:
    """Turns nodes into values, one after the other: each refers only to those before it."""

    def __init__(
        self,
        layouts: Any,
        members: dict[str, bytes],
        estimators: list[Any],
        trusted: "Sequence[str]",
        read: "Callable[[bytes], Any]",
    ) -> None:
        arrays = Unpacker(members)
        self._layouts = [_check_layout(layout) for layout in _check_list(layouts)]
        self._members, self._trusted = members, trusted
        self._read = cache(lambda name: read(self._member(name)))  # a model in a file of its own, once
        self._values: list[Any] = []
        self._extents = Extents()
        self._kinds: dict[str, Callable[..., Any]] = {
            "list": lambda *children: self._all(children),
            "tuple": lambda *children: tuple(self._all(children)),
            "dict": self._dict,
            "bytes": bytes.fromhex,
            "int": lambda text: int(text, 16),
            "float": float,
            "array": arrays.get,
            "objects": self._objects,
            "scalar": lambda child: self._get(child)[0],
            "form": self._form,
            "object": self._object,
            "file": self._file,
            "part": self._part,
            "estimator": lambda place: estimators[_place(place, estimators)],
        }

    def decode(self, nodes: Any, root: Any) -> Any:
        """Return the value of the root."""
        for node in _check_list(nodes):
            kind, *children = _check_list(node) or [None]
            if not isinstance(kind, str) or kind not in self._kinds:
                raise UnreadableModel(f"it holds a part of the unknown kind {kind!r}")
            try:
                value = self._kinds[kind](*children)
                self._extents.add(node)
            except UnreadableModel:
                raise
            except _FAILURES as error:
                raise UnreadableModel(f"a part of the kind {kind!r} is malformed ({error})") from error
            self._values.append(value)
        return self._get(root)

    def _get(self, child: Any) -> Any:
        if not isinstance(child, list | dict):
            return child
        if isinstance(child, dict) or len(child) != 1:
            raise UnreadableModel("it refers to a part in an unknown way")
        return self._values[_place(child[0], self._values)]

    def _all(self, children: Any) -> list[Any]:
        return [self._get(child) for child in children]

    def _dict(self, *children: Any) -> dict[Any, Any]:
        values = self._all(children)
        check_keys(values[::2])
        return dict(zip(values[::2], values[1::2], strict=True))

    def _form(self, form: Any, *children: Any) -> Any:
        unchecked = [UNCHECKED[form]] if form in UNCHECKED else []
        refuse_untrusted([name for name in unchecked if name not in self._trusted])
        return FORMS[form].together(*self._all(children))

    def _file(self, name: Any) -> ModelFile:
        content = self._member(name)
        return ModelFile(name.rpartition("/")[2].partition(".")[2], content)

    def _part(self, name: Any) -> Any:
        self._member(name)
        return self._read(name)

    def _member(self, name: Any) -> bytes:
        if not isinstance(name, str) or name not in self._members:
            raise UnreadableModel(f"it refers to the file {name!r}, which it does not hold")
        return self._members[name]

    def _objects(self, codes: Any, *children: Any) -> AnyArray:
        levels = np.empty(len(children), dtype=object)
        levels[:] = self._all(children)
        return np.asarray(levels[self._get(codes)])

    def _object(self, layout: Any, *children: Any) -> Any:
        name, attributes = self._layouts[_place(layout, self._layouts)]
        state = dict(zip(attributes, self._all(children), strict=True))
        kind = known_class(name)
        instance = _build_object(kind, state)
        if hasattr(instance, "check_loaded"):
            try:
                instance.check_loaded()
            except _FAILURES as error:
                raise UnreadableModel(f"its {name} does not look like a fitted one ({error})") from error
        return instance


def _build_object(kind: Any, state: dict[str, Any]) -> Any:
    """Return an object with that state, made without ``__init__``."""
    if issubclass(kind, tuple):
        if tuple(state) != kind._fields:
            raise UnreadableModel(
                f"its {kind.__name__} has unexpected parts, so another version may have written it; fit or save the "
                "model again"
            )
        return tuple.__new__(kind, state.values())
    missing = _required_attributes(kind) - state.keys()
    if missing:
        raise UnreadableModel(f"its {kind.__name__} lacks {', '.join(sorted(missing))}")
    instance = kind.__new__(kind)
    instance.__dict__.update(state)
    return instance


@cache
def _required_attributes(kind: Any) -> set[str]:
    """Return the attributes that every object of a class has: those it names, fields, or parameters of an estimator."""
    if hasattr(kind, "stored_fields"):
        return set(kind.stored_fields)
    if dataclasses.is_dataclass(kind):
        return {field.name for field in dataclasses.fields(kind)}
    return set(inspect.signature(kind).parameters) if hasattr(kind, "get_params") else set()


def _place(number: Any, among: list[Any]) -> int:
    """Return a number after checking that it is the place of something that is there already."""
    if type(number) is not int or not 0 <= number < len(among):
        raise UnreadableModel(f"it refers to part {number!r}, which is not there")
    return number


def _check_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise UnreadableModel("its manifest lacks a list where one is expected")
    return value


def _check_layout(layout: Any) -> tuple[str, list[str]]:
    if len(_check_list(layout)) != 2:  # noqa: PLR2004 - name and attributes
        raise UnreadableModel("it describes a class in an unknown way")
    name, attributes = layout
    for attribute in _check_list(attributes):
        if not isinstance(attribute, str) or not attribute.isidentifier() or attribute.startswith("__"):
            raise UnreadableModel(f"it names the impossible attribute {attribute!r}")
    return name, attributes
