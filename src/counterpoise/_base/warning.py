"""Warnings at the line of whoever called the library, however deep in it they are found."""

import os
import sys
import warnings
from pathlib import Path

_LIBRARY = f"{Path(__file__).parents[1]}{os.sep}"


def warn_caller(text: str, kind: type[Warning]) -> None:
    """Warn at the last line before the library."""
    frame, level = sys._getframe(), 1  # noqa: SLF001 - as warnings does; skip_file_prefixes is of Python 3.12
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LIBRARY):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, kind, stacklevel=level)
