"""Plain values as TOML, and a goals file that asks for something else than the one it came from."""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from counterpoise.runs.settings import GoalSettings, RunSettings

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LONG = 80  # characters of a line with a list
_FILES = {"data": ("files", "baseline_model"), "splits": ("validation_files", "test_files")}  # keys that name files


def as_toml(words: Mapping[str, Any]) -> str:
    """Return plain values as TOML: values first, then tables, then lists of tables; what is None is left out.

    Examples
    --------
    >>> from counterpoise.runs.toml_text import as_toml
    >>> print(as_toml({"alpha": 0.3, "goals": [{"goal": "recall(train) >= 0.9"}]}), end="")
    alpha = 0.3
    <BLANKLINE>
    [[goals]]
    goal = "recall(train) >= 0.9"
    """
    return "\n".join(_lines(words, "")).lstrip("\n") + "\n"


def rewritten(content: bytes, settings: RunSettings, *, sources: Path) -> str:
    """Return a goals file that asks for settings, given that of the run whose models they are for.

    What may be chosen anew, alpha, goals and the parameters of the method, is as the settings have it; all else is as
    the file has it, but for comments and for ``output``, where the other run is. Data files are named by their whole
    paths, so that the file can be anywhere.

    Parameters
    ----------
    content : bytes
        Of the goals file of the run.
    settings : RunSettings
        Of the same run but for what may be chosen anew.
    sources : path
        The folder that the settings name data files from.
    """
    words = tomllib.loads(content.decode())
    before = RunSettings.model_validate(words)
    words.pop("output", None)
    if before.alpha != settings.alpha:
        words["alpha"] = settings.alpha
    if before.goals != settings.goals:
        words["goals"] = [_as_written(goal) for goal in settings.goals]
    if before.method.parameters != settings.method.parameters:
        words["method"] = words.get("method", {}) | {"parameters": dict(settings.method.parameters) or None}
    return as_toml(_with_whole_paths(words, settings, sources))


def _as_written(asked: GoalSettings) -> str | dict[str, Any]:
    return asked.goal if asked.confidence is None else {"goal": asked.goal, "confidence": asked.confidence}


def _with_whole_paths(words: dict[str, Any], settings: RunSettings, sources: Path) -> dict[str, Any]:
    """Name files by where the settings say they are now: what the words name may be where they were once."""
    tables: list[tuple[dict[str, Any], Any, tuple[str, ...]]] = [
        (words.get(table, {}), getattr(settings, table), keys) for table, keys in _FILES.items()
    ]
    tables += [(one, settings.datasets[name], ("files",)) for name, one in words.get("datasets", {}).items()]
    for table, asked, keys in tables:
        for key in keys:
            if key in table:
                table[key] = _whole(getattr(asked, key), sources)
    return words


def _whole(names: str | list[str], sources: Path) -> str | list[str]:
    """Return whole paths, of one file as a text."""
    paths = [str((sources / name).resolve()) for name in ([names] if isinstance(names, str) else names)]
    return paths[0] if len(paths) == 1 else paths


def _lines(words: Mapping[str, Any], place: str) -> list[str]:
    lines, later = [], []
    for name, value in words.items():
        key = _key(name)
        if isinstance(value, Mapping):
            later += ["", f"[{place}{key}]", *_lines(value, f"{place}{key}.")]
        elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            later += [line for one in value for line in ("", f"[[{place}{key}]]", *_lines(one, f"{place}{key}."))]
        elif value is not None:
            lines += _value_lines(key, value)
    return lines + later


def _value_lines(key: str, value: Any) -> list[str]:
    """Return a key and its value; of a long list each entry is on a line of its own."""
    line = f"{key} = {in_toml(value)}"
    if not isinstance(value, list) or len(line) <= _LONG:
        return [line]
    return [f"{key} = [", *(f"    {in_toml(one)}," for one in value), "]"]


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else in_toml(name)


def in_toml(value: Any) -> str:
    """Return a value on one line; basic strings of TOML and of JSON are the same but for one character."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {in_toml(one)}" for name, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(in_toml, value)) + "]"
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)  # of numbers, inf and nan among them, and of dates both languages have the same text
