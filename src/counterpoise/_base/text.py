"""Texts: JSON whose keys are unique, tables, the nearest known name, and bytes that are never printed."""

import difflib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, Self


def load_json(text: str | bytes, **options: Any) -> Any:
    """Return what a JSON text holds, after checking that no object names a key twice.

    Python, JavaScript and databases differ in which of two values they keep, without a warning.

    Parameters
    ----------
    text : str or bytes
    **options
        As for ``json.loads``.

    Returns
    -------
    Any

    Raises
    ------
    ValueError
        If the text is no JSON, or an object has a key twice.

    Examples
    --------
    >>> from counterpoise._base.text import load_json
    >>> load_json('{"share": 1, "from": "00"}')
    {'share': 1, 'from': '00'}
    >>> load_json('{"share": 1, "share": 0}')
    Traceback (most recent call last):
    ...
    ValueError: each key must occur once in an object; 'share' occurs 2 times
    """
    return json.loads(text, object_pairs_hook=_once, **options)


def short(value: Any, most: int = 200) -> str:
    """Return a value as text for a message, the first characters of it where there are many."""
    words = str(value)
    return words if len(words) <= most else f"{words[:most]}..."


def shown(value: Any, most: int = 200) -> str:
    """Return a value as Python writes it, for a message, the first characters of it where there are many."""
    try:
        return short(repr(value), most)
    except (ValueError, RecursionError):  # an integer of thousands of digits, lists in lists in lists
        return f"a value of type {type(value).__name__} that is too long to show"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"each key must occur once in an object; {shown(twice)} occurs {names.count(twice)} times")
    return content


def text_table(lines: Sequence[Sequence[str]], sides: str, *, least: int = 0) -> str:
    """Return lines of cells as aligned columns.

    Parameters
    ----------
    lines : sequence of sequences of str
        The heads first.
    sides : str
        ``<`` or ``>`` for each column: its texts begin on the left, or end on the right.
    least : int, default=0
        The least width of a column, in characters.

    Examples
    --------
    >>> from counterpoise._base.text import text_table
    >>> print(text_table([("goal", "estimate"), ("recall >= 0.9", "0.93")], "<>"))
    goal           estimate
    recall >= 0.9      0.93
    """
    widths = [max(least, *map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(line, sides, widths, strict=True)).rstrip()
        for line in lines
    )


_LOOKED_AT = 10_000  # names: a table may have a hundred thousand columns


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint at the known word nearest to one that is not known, empty where none is near.

    Upper and lower case are the same; of words that are not alike, one that begins with what was written will do.

    Examples
    --------
    >>> from counterpoise._base.text import did_you_mean
    >>> [did_you_mean(word, ["target", "f1_score"]) for word in ("Targt", "f1", "recall")]
    [" Did you mean 'target'?", " Did you mean 'f1_score'?", '']
    """
    names = {name.lower(): name for name in islice(known, _LOOKED_AT)}
    near = difflib.get_close_matches(word.lower(), names, n=1)
    near = near or [name for name in names if len(word) > 1 and name.startswith(word.lower())]
    return f" Did you mean {names[near[0]]!r}?" if near else ""


class AdvisedValue(NamedTuple):
    """A parameter and the value that it should have."""

    name: str
    value: Any
    code: str = ""  # of the value in Python, where its ``repr`` is another

    def __str__(self) -> str:
        return f"{self.name}={self.code or repr(self.value)}"


class Advice(str):
    """A sentence about parameters, as Python writes them; ``written`` has them in the words of a command or a file.

    Examples
    --------
    >>> from counterpoise._base.text import Advice, AdvisedValue
    >>> advice = Advice("Set ", AdvisedValue("decision", "sticky"), ", which mixes rules.")
    >>> print(advice, advice.written(lambda setting: f"--{setting.name} {setting.value}"))
    Set decision='sticky', which mixes rules. Set --decision sticky, which mixes rules.
    """

    __slots__ = ("parts",)
    parts: "tuple[str | AdvisedValue, ...]"

    def __new__(cls, *parts: "str | AdvisedValue") -> Self:
        """Return the sentence that the parts make."""
        advice = super().__new__(cls, "".join(map(str, parts)))
        advice.parts = parts
        return advice

    def written(self, write: Callable[[AdvisedValue], str]) -> str:
        """Return the sentence with each setting as ``write`` has it."""
        return "".join(write(part) if isinstance(part, AdvisedValue) else part for part in self.parts)


class Secret(bytes):
    """Bytes that are hidden wherever they are printed: in ``repr``, logs, HTML or an error.

    Examples
    --------
    >>> from counterpoise._base.text import Secret
    >>> Secret(b"0123456789abcdef"), Secret(b"0123456789abcdef") == b"0123456789abcdef"
    (<hidden>, True)
    """

    def __repr__(self) -> str:
        return "<hidden>"

    __str__ = __repr__


def plain_values(value: Any) -> Any:
    """Return the value as JSON has it: NaN and infinity, which it has not, become null."""
    if isinstance(value, Mapping):
        return {str(key): plain_values(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(entry) for entry in value]
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
