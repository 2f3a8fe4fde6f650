"""What went wrong, as one sentence and an exit code."""

import errno
import importlib
import json
from collections.abc import Iterator
from typing import Any

from counterpoise.cli import BAD_INPUT, NOT_MET

_LONGEST = 10_000  # characters: a name in a hostile file may have a million
_INSTALL = "pip install"
_EXPECTED = (ValueError, TypeError, OSError, ImportError)


def exit_code(error: Exception) -> int:
    """Return 1 where goals cannot be met together, else 2."""
    from counterpoise.goals import InfeasibleGoals  # noqa: PLC0415 - heavy

    return NOT_MET if isinstance(error, InfeasibleGoals) else BAD_INPUT


def words_of(error: Exception) -> dict[str, Any]:
    """Return what ``--json`` prints of an error: which goals conflict, and how they could be met; else nothing."""
    from counterpoise.goals import InfeasibleGoals  # noqa: PLC0415 - heavy

    return {"infeasible": error.as_dict(), "error": sentence(error)} if isinstance(error, InfeasibleGoals) else {}


def way_out(error: Exception, *, from_file: bool) -> Iterator[str]:
    """Yield goals to copy in the place of those that conflict: lines of a goals file, or options where they are."""
    from counterpoise.goals import InfeasibleGoals  # noqa: PLC0415 - heavy

    ways = error.ways_out if isinstance(error, InfeasibleGoals) else []
    for number, way in enumerate(ways):
        place = "as lines for goals = [...] in the goals file" if from_file else "as options"
        yield "Or:" if number else f"A way out, {place}:"
        before, after = ("", ",") if from_file else ("--goal ", "")
        yield from (f"    {before}{json.dumps(str(new))}{after}    # instead of {old}" for old, new in way.items())


def sentence(error: Exception) -> str:
    """Return what the user reads in place of a traceback."""
    words = _words(error)
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."


def _words(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and _INSTALL not in str(error):  # others say what to install
        return f'{error}. The command line needs more packages: {_INSTALL} "counterpoise[cli]"'
    if isinstance(error, MemoryError):
        return f"There is not enough memory for this ({error}). Use fewer columns or rows, or a smaller max_bins."
    if isinstance(error, OSError) and error.errno is not None:  # of the system: ours carry no number
        return _of_system(error)
    if isinstance(error, (*_EXPECTED, importlib.import_module("cyclopts").CycloptsError)):
        return " ".join([_first_line(error), *getattr(error, "__notes__", ())])
    return (
        f"Unexpected {type(error).__name__}: {error}. This is a fault of counterpoise; "
        "set COUNTERPOISE_TRACEBACK=1 and run it again to see where."
    )


def _of_system(error: OSError) -> str:
    place = str(error.filename) if error.filename else "the file"
    if error.errno == errno.ENOSPC:
        return f"The disk is full; nothing half-written was left behind ({place}). Make room and run it again."
    if isinstance(error, PermissionError):
        return f"No permission for {place}. Choose another place with --output, or change its rights."
    if isinstance(error, IsADirectoryError):
        return f"{place} is a folder; a file was expected."
    return f"{place}: {error.strerror}."


def _first_line(error: Exception) -> str:
    """Return the first line of a message; below it a goal's text is shown with a mark at the place."""
    first, *more = str(error).splitlines() or [type(error).__name__]
    goal = more[0].strip() if more and first.startswith("Cannot read the goal") else ""
    return f"{first} In: {goal}" if goal else first
