"""Nodes as values. Everything that a node says is checked: whoever wrote the file may have meant harm."""

import dataclasses
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise._base.types import AnyArray
from counterpoise.persist.classes import known_class
from counterpoise.persist.errors import UnreadableModel
from counterpoise.persist.extents import Extents, check_keys
from counterpoise.persist.foreign import refuse_untrusted
from counterpoise.persist.forms import FORMS, UNCHECKED
from counterpoise.persist.packs import Unpacker
from counterpoise.persist.scikit_learn import is_of_scikit_learn, made_estimator
from counterpoise.persist.values import ModelFile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FAILURES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)  # of parts of a wrong kind


class Decoder:
    """Turns nodes into values, one after the other: each refers only to those before it."""

    def __init__(
        self,
        layouts: Any,
        members: dict[str, bytes],
        foreign: list[Any],
        trusted: "Sequence[str]",
        read: "Callable[[bytes], Any]",
    ) -> None:
        arrays = Unpacker(members)
        self._layouts = [_checked_layout(layout) for layout in _listed(layouts)]
        self._members, self._foreign, self._trusted = members, foreign, trusted
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
            "foreign": lambda place: self._foreign[_place(place, self._foreign)],
        }

    def decode(self, nodes: Any, root: Any) -> Any:
        """Return the value of the root."""
        for node in _listed(nodes):
            kind, *children = _listed(node) or [None]
            if not isinstance(kind, str) or kind not in self._kinds:
                raise UnreadableModel(f"it holds a part of the unknown kind {kind!r}")
            try:
                value = self._kinds[kind](*children)
                self._extents.add(node)
            except UnreadableModel:
                raise
            except _FAILURES as error:
                raise UnreadableModel(f"a part of the kind {kind!r} is not as it must be ({error})") from error
            self._values.append(value)
        return self._get(root)

    def _get(self, child: Any) -> Any:
        if isinstance(child, list):
            if len(child) != 1:
                raise UnreadableModel("it refers to a part in an unknown way")
            return self._values[_place(child[0], self._values)]
        if isinstance(child, dict):
            raise UnreadableModel("it refers to a part in an unknown way")
        return child

    def _all(self, children: Any) -> list[Any]:
        return [self._get(child) for child in children]

    def _dict(self, *children: Any) -> dict[Any, Any]:
        values = self._all(children)
        check_keys(values[::2])
        return dict(zip(values[::2], values[1::2], strict=True))

    def _form(self, form: Any, *children: Any) -> Any:
        refuse_untrusted([name for one, name in UNCHECKED.items() if one == form and name not in self._trusted])
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
        made = _restored(kind, state)
        if hasattr(made, "check_loaded"):
            try:
                made.check_loaded()
            except _FAILURES as error:
                raise UnreadableModel(f"its {name} is not as a fitted one ({error})") from error
        return made


def _restored(kind: Any, state: dict[str, Any]) -> Any:
    """Return an object with that state, made without ``__init__``."""
    if issubclass(kind, tuple):
        if tuple(state) != kind._fields:
            raise UnreadableModel(
                f"its {kind.__name__} has other parts than it must have, as if another version had written it; fit or "
                "save the model again"
            )
        return tuple.__new__(kind, state.values())
    if is_of_scikit_learn(kind):
        return made_estimator(kind, state)
    missing = _needed(kind) - state.keys()
    if missing:
        raise UnreadableModel(f"its {kind.__name__} lacks {', '.join(sorted(missing))}")
    made = kind.__new__(kind)
    made.__dict__.update(state)
    return made


def _needed(kind: Any) -> set[str]:
    """Return the attributes that every object of a class has: fields, or the parameters of an estimator."""
    if dataclasses.is_dataclass(kind):
        return {field.name for field in dataclasses.fields(kind)}
    return set(kind._get_param_names()) if hasattr(kind, "_get_param_names") else set()  # noqa: SLF001 - its contract


def _place(number: Any, among: list[Any]) -> int:
    """Return a number after checking that it is the place of something that is there already."""
    if type(number) is not int or not 0 <= number < len(among):
        raise UnreadableModel(f"it refers to part {number!r}, which is not there")
    return number


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise UnreadableModel("its manifest holds something else where a list must be")
    return value


def _checked_layout(layout: Any) -> tuple[str, list[str]]:
    if len(_listed(layout)) != 2:  # noqa: PLR2004 - name and attributes
        raise UnreadableModel("it describes a class in an unknown way")
    name, attributes = layout
    for attribute in _listed(attributes):
        if not isinstance(attribute, str) or not attribute.isidentifier() or attribute.startswith("__"):
            raise UnreadableModel(f"it names the impossible attribute {attribute!r}")
    return name, attributes
