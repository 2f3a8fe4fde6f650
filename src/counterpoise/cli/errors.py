"""What went wrong, as one sentence and an exit code."""

import errno
import importlib
from typing import Any

from counterpoise.cli import BAD_INPUT, NOT_MET

_EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError, UnicodeError)


def exit_code(error: Exception) -> int:
    """Return 1 where goals cannot be met together, else 2."""
    from counterpoise.goals import InfeasibleGoals  # noqa: PLC0415 - heavy

    return NOT_MET if isinstance(error, InfeasibleGoals) else BAD_INPUT


def sentence(error: Exception) -> str:
    """Return what the user reads in place of a traceback."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return f"The disk is full; nothing half-written was left behind ({_place(error)}). Make room and run it again."
    if isinstance(error, PermissionError):
        return f"No permission for {_place(error)}. Choose another place with --output, or change its rights."
    if isinstance(error, IsADirectoryError):
        return f"{_place(error)} is a folder; a file was expected."
    if isinstance(error, MemoryError):
        return f"There is not enough memory for this ({error}). Use fewer columns or rows, or a smaller max_bins."
    if isinstance(error, (*_EXPECTED, _parse_errors())):
        return str(error) or type(error).__name__
    return (
        f"Unexpected {type(error).__name__}: {error}. This is a fault of counterpoise; "
        "set COUNTERPOISE_TRACEBACK=1 and run it again to see where."
    )


def _place(error: OSError) -> str:
    return str(error.filename) if error.filename else "the file"


def _parse_errors() -> Any:
    return importlib.import_module("cyclopts").CycloptsError
