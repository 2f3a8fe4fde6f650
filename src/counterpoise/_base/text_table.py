"""One table as text, for whatever is printed."""

from collections.abc import Sequence


def text_table(lines: Sequence[Sequence[str]], sides: str, *, least: int = 0) -> str:
    """Return lines of cells as aligned columns.

    Parameters
    ----------
    lines : sequence of sequences of str
        The heads first.
    sides : str
        ``<`` or ``>`` for each column: its texts begin on the left, or end on the right.
    least : int, default=0
        Letters that a column has room for, at least.

    Examples
    --------
    >>> from counterpoise._base.text_table import text_table
    >>> print(text_table([("goal", "estimate"), ("recall(train) >= 0.9", "0.93")], "<>"))
    goal                  estimate
    recall(train) >= 0.9      0.93
    """
    widths = [max(least, *map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(line, sides, widths, strict=True)).rstrip()
        for line in lines
    )
