"""The command line: parse, call one function, print."""

import errno
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from counterpoise._base.text import Advice, AdvisedValue, did_you_mean
from counterpoise.cli.exit_codes import BAD_INPUT, DONE, INTERRUPTED, NO_READER, NOT_MET, OVERVIEW, help_by_command

_TRACEBACK = "COUNTERPOISE_TRACEBACK"
_IMPORT, _GOAL, _FROM = "--import", "--goal", "--from"
_LONGEST = 10_000  # characters: a name in a hostile file may have a million
_INSTALL = "pip install"
_NOW = {  # what has become of the commands of 0.2
    "certify": "audit RUN",
    "evaluate": "audit RUN DATA",
    "rebalance": "fit --from RUN",
    "compare": "report RUN RUN",
    "pack": "report RUN --pack FILE.zip",
}
_RESUMES = " Finished parts are kept: run the same command again to resume."
_EXTRAS = {"numba": "boosting", "daqp": "boosting"}  # of packages that not every command needs
_EXPECTED = (ValueError, TypeError, OSError, ImportError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those that the process was started with.

    Returns
    -------
    int
    """
    for name in ("stdout", "stderr"):  # one that a shell has closed, as in counterpoise --help >&-, writes to nowhere
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - until the process ends
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        tokens = _without_imports(given)
        if (screen := _help_for(tokens)) is not None:
            sys.stdout.write(screen)
            return DONE
        tokens = ["--help" if word == "--help-all" else word for word in tokens]
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # to look for them takes a tenth of a second
        # Threads of OpenMP and BLAS that wait then sleep: beside other work a fit took four times as long.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # 2 to the power of it is for how long they spin
        from counterpoise.cli.commands import app  # noqa: PLC0415 - needs an optional package

        return int(app(tokens, exit_on_error=False, print_error=False) or DONE)
    except KeyboardInterrupt:
        sys.stderr.write(f"\ncounterpoise: stopped.{_RESUMES if _command(given) == 'fit' else ''}\n")
        return INTERRUPTED
    except BrokenPipeError:  # as in: counterpoise data list | head -1
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains when it ends
        return NO_READER
    except Exception as error:
        if os.environ.get(_TRACEBACK):
            raise
        return _refuse(error, given)


def _help_for(tokens: list[str]) -> str | None:
    """Return the help that is asked for, None for another request; refuse a command that there is not."""
    if tokens in ([], ["--help"], ["-h"]):
        return OVERVIEW
    command, screens = tokens[0], help_by_command()
    if command in _NOW:
        raise ValueError(f"`{command}` is `{_NOW[command]}` since 0.3.")
    if command not in screens and not command.startswith("-"):
        raise ValueError(f"Unknown command {command!r}.{did_you_mean(command, screens)} Known: {', '.join(screens)}.")
    return screens.get(command) if {"--help", "-h"} & set(tokens) else None


def _without_imports(tokens: list[str]) -> list[str]:
    """Run the files that ``--import`` names before the command, and return the other words.

    They are named here, on the command line, and not in a goals file: reading one never runs what it holds.
    """
    while tokens and tokens[0] == _IMPORT:
        if len(tokens) == 1:
            raise ValueError(f"{_IMPORT} needs the name of a Python file, which registers metrics of your own.")
        _, path, *tokens = tokens
        if not Path(path).is_file():
            raise ValueError(f"{_IMPORT} must name a Python file; there is no file {path}.")
        import runpy  # noqa: PLC0415 - only with --import

        try:
            runpy.run_path(path)
        except (Exception, SystemExit) as error:
            raise ValueError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    if _IMPORT in tokens:
        raise ValueError(
            f"{_IMPORT} FILE.py must come before the command, as in counterpoise {_IMPORT} FILE.py fit GOALS."
        )
    return tokens


def _refuse(error: Exception, words: Sequence[str]) -> int:
    """Say what was wrong in one paragraph, with lines to copy where there is a way out, and return the exit code."""
    has_options = bool(_goals_in(words)) or any(word.split("=")[0] == _FROM for word in words)  # else a file has them
    said = sentence(error, _as_option if has_options else _as_key)
    message, goals = f"counterpoise: {said}\n", sys.modules.get("counterpoise.goals")  # heavy: it may wait
    if goals is None or not isinstance(error, goals.InfeasibleGoals):
        sys.stderr.write(message)
        return BAD_INPUT
    if "--json" in words:
        sys.stdout.write(json.dumps({"infeasible": error.as_dict(), "error": said}, indent=2) + "\n")
        sys.stderr.write(message)
    else:
        sys.stderr.writelines(
            [message, *(f"{line}\n" for line in _way_out(error, _goals_in(words), has_options=has_options))]
        )
    return NOT_MET


def _as_option(setting: AdvisedValue) -> str:
    """Return a setting as options of a command, where one can say it."""
    if isinstance(setting.value, dict):
        return f"{_as_key(setting)} of a goals file"
    values = setting.value if isinstance(setting.value, list) else [setting.value]
    return " ".join(shlex.join([f"--{setting.name}", str(value)]) for value in values)


def _as_key(setting: AdvisedValue) -> str:
    """Return a setting as a line of a goals file."""
    value = json.dumps(setting.value)
    if isinstance(setting.value, dict):
        value = "{ " + ", ".join(f"{name} = {json.dumps(part)}" for name, part in setting.value.items()) + " }"
    return f"{setting.name} = {value}{'' if setting.name == 'alpha' else ' in [method.parameters]'}"


def _command(words: Sequence[str]) -> str:
    """Return the command among the words, behind files to import."""
    rest = list(words)
    while rest[:1] == [_IMPORT]:
        rest = rest[2:]
    return rest[0] if rest else ""


def _goals_in(words: Sequence[str]) -> list[str]:
    """Return the goals among the words of a command."""
    after = [word for option, word in pairwise(words) if option == _GOAL]
    return [*after, *(word.removeprefix(f"{_GOAL}=") for word in words if word.startswith(f"{_GOAL}="))]


def _way_out(error: Any, given: Sequence[str], *, has_options: bool) -> Iterator[str]:
    """Yield goals to copy: lines of a goals file for those that change, or all options where a command takes them."""
    parse_goal = sys.modules["counterpoise.goals"].parse_goal
    goals = [parse_goal(text) for text in given]
    outcomes = [f": {one}" for one in error.outcomes] or [""] * len(error.ways_out)
    place = "as options" if has_options else "as lines for goals = [...] in the goals file"
    others = "" if given or not has_options else ", beside one for each other goal of the run"
    first = f"A way out, {place}{others}:"
    ways = [
        (first if number == 0 else "Or:", way, does)
        for number, (way, does) in enumerate(zip(error.ways_out, outcomes, strict=True))
    ]
    if error.sure:
        ways.append(("Or, with room for the confidence:", error.sure, ""))
    for head, way, does in ways:
        yield head
        before, after = (f"{_GOAL} ", "") if has_options else ("", ",")
        for old, new in way.items():
            yield f"    {before}{json.dumps(str(new))}{after}    # instead of {old}{does}"
        kept = (text for text, goal in zip(given, goals, strict=True) if goal not in way)
        yield from (f"    {before}{json.dumps(text)}" for text in kept)


def sentence(error: Exception, write: Callable[[AdvisedValue], str] = str) -> str:
    """Return what the user reads in place of a traceback; ``write`` is how settings that it advises are written."""
    words = _words(error, write)
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."


def _words(error: Exception, write: Callable[[AdvisedValue], str]) -> str:
    if isinstance(error, ModuleNotFoundError) and _INSTALL not in str(error):  # others say what to install
        extra = _EXTRAS.get(error.name or "", "cli")
        return f'{error}. This needs more packages: {_INSTALL} "counterpoise[{extra}]"'
    if isinstance(error, MemoryError):
        return f"There is not enough memory for this ({error}). Use fewer columns or rows, or a smaller max_bins."
    if isinstance(error, OSError) and error.errno is not None:  # of the system: ours carry no number
        return _of_system(error)
    if isinstance(error, _EXPECTED) or type(error).__module__.startswith("cyclopts"):
        # below the first line a goal's text is shown with a mark at the place
        first, *more = _text(error, write).splitlines() or [type(error).__name__]
        goal = more[0].strip() if more and first.startswith("Cannot read the goal") else ""
        return " ".join([f"{first} In: {goal}" if goal else first, *getattr(error, "__notes__", ())])
    return (
        f"Unexpected {type(error).__name__}: {error}. This is a bug in counterpoise; "
        "set COUNTERPOISE_TRACEBACK=1 and run it again to see where."
    )


def _text(error: Exception, write: Callable[[AdvisedValue], str]) -> str:
    """Return the message of an error, with the settings that it advises as the user writes them."""
    advice = error.args[0] if error.args and isinstance(error.args[0], Advice) else error
    return str(advice.written(write)) if hasattr(advice, "written") else str(error)


def _of_system(error: OSError) -> str:
    place = str(error.filename) if error.filename else "the file"
    if error.errno == errno.ENOSPC:
        return f"The disk is full; nothing half-written was left behind ({place}). Make room and run it again."
    if isinstance(error, PermissionError):
        return f"No permission for {place}. Choose another place with --output, or change its rights."
    if isinstance(error, IsADirectoryError):
        return f"{place} is a folder; a file was expected."
    return f"{place}: {error.strerror}."
