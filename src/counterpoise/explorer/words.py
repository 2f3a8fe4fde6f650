"""Plain values for JSON: numbers with few digits, none that JSON does not have."""

import math
from collections.abc import Sequence
from itertools import count
from typing import Any

_DIGITS = 6


def number(value: Any) -> float | None:
    """Return a number with six digits; None for one that is not finite.

    Examples
    --------
    >>> from counterpoise.explorer.words import number
    >>> number(1 / 3), number(float("nan"))
    (0.333333, None)
    """
    found = float(value)
    return float(f"{found:.{_DIGITS}g}") if math.isfinite(found) else None


def numbers(values: Any) -> list[float | None]:
    """Return numbers of a sequence."""
    return [number(value) for value in values]


def told_apart(names: Sequence[str]) -> list[str]:
    """Return names of which no two are the same: the second of one name is numbered, and those after it.

    Examples
    --------
    >>> from counterpoise.explorer.words import told_apart
    >>> told_apart(["trees", "logistic", "trees"])
    ['trees', 'logistic', 'trees (2)']
    """
    found: list[str] = []
    for name in names:
        tried = (name if time == 1 else f"{name} ({time})" for time in count(1))
        found.append(next(one for one in tried if one not in found))
    return found


def threshold(value: float) -> float | str:
    """Return a threshold; a word for one that is above or below all scores."""
    if math.isinf(value):
        return "nobody" if value > 0 else "everybody"
    return number(value) or 0.0
