"""Settings and versions in a report: what was set, by table, each value on one line."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from counterpoise.report.record import Record
from counterpoise.runs.folder import SECONDS

_INNER = ("asked", "training", "sources")  # settings that others repeat, or that lead to places on a disk


class Group(NamedTuple):
    """Lines of one table of the goals file; the title is empty for keys outside any."""

    title: str
    lines: Sequence[tuple[str, str]]


class Listing(NamedTuple):
    """Keys and values, in groups."""

    caption: str
    groups: Sequence[Group]


def settings_listing(record: Record) -> Listing:
    """Return the settings that have a value; of those that a run keeps for itself only the fingerprint."""
    return listing("Settings", {key: value for key, value in record.settings.items() if key not in _INNER})


def environment_listing(record: Record) -> Listing:
    """Return what the run was made with; how long it took has a table of its own."""
    return listing("Environment", {key: value for key, value in record.environment.items() if key != SECONDS})


def listing(caption: str, words: Mapping[str, Any]) -> Listing:
    """Return nested words as groups of dotted keys and values; what is empty is left out."""
    plain = {key: value for key, value in words.items() if not _is_nested(value)}
    groups = [Group("", list(_lines(plain)))]
    groups += [Group(str(key), list(_lines(value))) for key, value in words.items() if _is_nested(value)]
    return Listing(caption, [group for group in groups if group.lines])


def breakable(text: str) -> Markup:
    """Return a text that may go on in the next line after a dot or underscore before a letter.

    >>> from counterpoise.report.listings import breakable
    >>> print(breakable("data.max_rows <"))
    data.<wbr>max_<wbr>rows &lt;
    """
    return Markup(re.sub(r"(?<=[._])(?=[^\W\d_])", "<wbr>", str(escape(text))))  # noqa: S704 - escaped just here


def _is_nested(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list) and any(isinstance(entry, Mapping) for entry in value)
    )


def _lines(words: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield dotted keys with values; each entry of a list of tables is one line, numbered as people count."""
    if isinstance(words, Mapping):
        for key, value in words.items():
            yield from _lines(value, f"{path}.{key}" if path else str(key))
    elif _is_nested(words):
        for number, entry in enumerate(words, start=1):
            yield f"{path} {number}".strip(), _told(entry)
    elif (text := _shown(words)) != "":
        yield path, text


def _told(entry: Any) -> str:
    """Return a small table as one line; where only one key is set, its value says enough."""
    lines = list(_lines(entry))
    return lines[0][1] if len(lines) == 1 else "; ".join(f"{key} = {text}" if key else text for key, text in lines)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
