"""What is wrong with a copy of the table, the goals file or the run of these tests, and how a command must say so."""

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from counterpoise.cli import main

FIT = "fit goals.toml -o new"
PREDICT = "predict run tumours.csv -o said.csv"


def nothing(_monkeypatch):
    """Leave the folder as it is."""


def goals(old, new):
    """Return what replaces a part of the goals file."""

    def spoil(_monkeypatch):
        text = Path("goals.toml").read_text()
        assert old in text
        Path("goals.toml").write_text(text.replace(old, new))

    return spoil


def written(name, content):
    """Return what writes a file."""

    def spoil(_monkeypatch):
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return spoil


def table(change):
    """Return what changes the table of the run."""

    def spoil(_monkeypatch):
        change(pd.read_csv("tumours.csv")).to_csv("tumours.csv", index=False)

    return spoil


def changed(name, change):
    """Return what changes the bytes of a file."""

    def spoil(_monkeypatch):
        Path(name).write_bytes(change(Path(name).read_bytes()))

    return spoil


def gone(name):
    """Return what removes a file."""
    return lambda _monkeypatch: Path(name).unlink()


def folder(name):
    """Return what makes a folder."""
    return lambda _monkeypatch: Path(name).mkdir()


def full(monkeypatch):
    """Let the disk be full."""

    def refuse(_handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)


def read_only(monkeypatch):
    """Let nobody begin a file in any folder, as in one without the right to write."""
    usual = os.open

    def refuse(path, *given, **named):
        if str(path).endswith(".part"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return usual(path, *given, **named)

    monkeypatch.setattr(os, "open", refuse)


def altered(content):
    """Return the bytes with one in the middle changed."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


class Case(NamedTuple):
    """A command, what is wrong, and words of the sentence."""

    command: str
    words: str
    spoil: Callable = nothing
    code: int = 2


def everything(place):
    """Return the names and bytes of all files of a folder; of one that says to be enormous, its size."""
    return {str(path.relative_to(place)): _content(path) for path in sorted(place.rglob("*"))}


def _content(path):
    if not path.is_file():
        return None
    return path.read_bytes() if path.stat().st_size < 1 << 30 else path.stat().st_size


def without_start(told):
    """Return what a command wrote to stderr, without the line that it starts."""
    return re.sub(r"\Acounterpoise [a-z]+ starts\n", "", told)


def assert_refused(case, here, monkeypatch, capsys):
    """Check that a command answers with one sentence and its exit code, and leaves everything as it was."""
    case.spoil(monkeypatch)
    before = everything(here)
    arguments = case.command.split() if isinstance(case.command, str) else case.command
    code = main(arguments)
    shown = capsys.readouterr()
    assert code == case.code, shown
    told = without_start(shown.err)
    assert told.startswith("counterpoise: ")
    assert told.count("\n") == 1 or case.code == 1  # goals that cannot be met come with lines to copy
    assert case.words in shown.err
    assert not [word for word in ("Traceback", "Unexpected", "Errno", str(here)) if word in shown.err]
    assert everything(here) == before
