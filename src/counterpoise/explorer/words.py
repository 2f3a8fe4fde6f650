"""Plain values for JSON: numbers with few digits, none that JSON does not have."""

import math
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


def threshold(value: float) -> float | str:
    """Return a threshold; a word for one that is above or below all scores."""
    if math.isinf(value):
        return "nobody" if value > 0 else "everybody"
    return number(value) or 0.0
