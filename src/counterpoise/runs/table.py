"""The one kind of table that commands print, pages show, and files hold."""

import csv
import io
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from counterpoise._base.text import plain_values, text_table


class ResultTable(NamedTuple):
    """A table with a name, heads of columns, rows of texts and numbers, and notes on how to read it.

    Examples
    --------
    >>> from counterpoise.runs.table import ResultTable
    >>> table = ResultTable("Errors", ["rows of", "error"], [["test", 0.25], ["train", float("nan")]], ["In shares."])
    >>> print(table)
    rows of   error
    test     0.2500
    train         -
    In shares.
    >>> table.as_csv().splitlines()
    ['rows of,error', 'test,0.25', 'train,']
    """

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = ()

    def __str__(self) -> str:
        cells = [list(self.columns), *([_text(cell) for cell in row] for row in self.rows)]
        return "\n".join([text_table(cells, "<" + ">" * (len(self.columns) - 1)), *self.notes])

    @property
    def word_columns(self) -> list[int]:
        """Return the places of columns of words, which are aligned left."""
        texts = (map(str, column) for column in zip(*self.rows, strict=True))
        return [place for place, column in enumerate(texts) if any(sign.isalpha() for cell in column for sign in cell)]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return plain_values(self._asdict())  # type: ignore[no-any-return]

    def as_csv(self) -> str:
        """Return the rows as CSV, with numbers in full; what was not measured is empty."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(["" if _is_nothing(cell) else cell for cell in row] for row in self.rows)
        return stream.getvalue()


def _is_nothing(cell: Any) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _text(cell: Any) -> str:
    return "-" if _is_nothing(cell) else f"{cell:.4f}" if isinstance(cell, float) else str(cell)
