"""The command line: parse, call one function, print.

Exit codes: 0 done; 1 the goals cannot be met together, or were not met and ``--strict`` asked for it; 2 bad input;
130 stopped by Ctrl-C.
"""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

DONE, NOT_MET, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
_NO_READER = 141  # what a shell shows for a program that ended because nobody read on
_TRACEBACK = "COUNTERPOISE_TRACEBACK"
_IMPORT = "--import"
_OVERVIEW: tuple[list[str], ...] = ([], ["--help"], ["-h"])


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
    _open_closed_streams()
    try:
        tokens = _without_imports(sys.argv[1:] if arguments is None else list(arguments))
        if tokens in _OVERVIEW:
            from counterpoise.cli.overview import OVERVIEW  # noqa: PLC0415 - only where asked

            sys.stdout.write(OVERVIEW)
            return DONE
        from counterpoise.cli.commands import app  # noqa: PLC0415 - needs an optional package

        return int(app(tokens, exit_on_error=False, print_error=False) or DONE)
    except KeyboardInterrupt:
        sys.stderr.write("\ncounterpoise: stopped. What was finished is kept: the same command goes on from there.\n")
        return INTERRUPTED
    except BrokenPipeError:  # as in: counterpoise data list | head -1
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains when it ends
        return _NO_READER
    except Exception as error:
        if os.environ.get(_TRACEBACK):
            raise
        return _refuse(error, sys.argv[1:] if arguments is None else arguments)


def _open_closed_streams() -> None:
    """Write to nowhere what a shell has closed, as in ``counterpoise --help >&-``: Python has nothing there."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - until the process ends


def _without_imports(tokens: list[str]) -> list[str]:
    """Run the files that ``--import`` names before the command, and return the other words.

    They are named here, by whoever runs the command, and not in a goals file: reading one never runs what it holds.
    """
    while tokens and tokens[0] == _IMPORT:
        if len(tokens) == 1:
            raise ValueError(f"{_IMPORT} needs the name of a Python file, which registers metrics of your own.")
        _run(tokens[1])
        tokens = tokens[2:]
    if _IMPORT in tokens:
        raise ValueError(
            f"{_IMPORT} FILE.py must stand before the command, as in counterpoise {_IMPORT} FILE.py fit GOALS."
        )
    return tokens


def _run(path: str) -> None:
    import runpy  # noqa: PLC0415 - only where asked

    if not Path(path).is_file():
        raise ValueError(f"{_IMPORT} must name a Python file; there is no file {path}.")
    try:
        runpy.run_path(path)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error


def _refuse(error: Exception, words: Sequence[str]) -> int:
    """Say what was wrong in one paragraph, with lines to copy where there is a way out, and return the exit code."""
    from counterpoise.cli.errors import exit_code, sentence, way_out, words_of  # noqa: PLC0415 - only where needed

    as_json = "--json" in words
    found = words_of(error) if as_json else {}
    if found:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
    sys.stderr.write(f"counterpoise: {sentence(error)}\n")
    if not as_json:
        sys.stderr.write(
            "".join(
                f"{line}\n" for line in way_out(error, from_file=not any(word.startswith("--goal") for word in words))
            )
        )
    return exit_code(error)
