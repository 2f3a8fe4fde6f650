"""Words of the language of goals that stand where a column would, and the number of rows that groups must have."""

from numbers import Integral
from typing import Any

from counterpoise._base.text import shown

# Words that stand where a column would and are none, and what for; a name in quotes is always a column.
RESERVED = {
    "of": "for the class that a rate is about, as in recall(of=cat)",
    "by": "for the columns that make groups, as in max_difference(recall, by=sex)",
    "called": "for the class that is predicted, as in confusion(of=cat, called=dog)",
    "min_rows": "for the least number of rows of a group, as in max_difference(recall, by=sex, min_rows=50)",
    "value": "for the column of amounts that rows count with, as in recall(value=amount)",
    "within": "for the columns that make strata, as in max_difference(selection_rate, by=sex, within=job)",
    "average": "for averages over strata, as in max_difference(selection_rate, by=sex, within=job, average=True)",
    "twin": "for the dataset with the same rows changed, as in flip_rate(train, twin=other)",
}


def not_reserved(column: str) -> str:
    """Return the name of a column that is not in quotes, after checking that it is no word of the language."""
    if column in RESERVED:
        raise ValueError(
            f"{column} is a word of the language of goals, {RESERVED[column]}, and never a column: put the name of a "
            f"column called {column!r} in quotes, as in recall('{column}'=x), or in Python "
            f"recall(**{{\"'{column}'\": 'x'}})."
        )
    return column


def with_size(name: str, n_rows: int) -> str:
    """Return a group with its number of rows."""
    return f"{name} ({n_rows} row{'' if n_rows == 1 else 's'})"


def min_rows_text(min_rows: int) -> list[str]:
    """Return the argument of a phrase for the least number of rows of a group, where there is one."""
    return [f"min_rows={min_rows}"] if min_rows else []


def check_min_rows(min_rows: Any) -> int:
    """Return the least number of rows of a group after checking it; 0 for none."""
    if isinstance(min_rows, bool) or not isinstance(min_rows, Integral) or min_rows < 0:
        raise ValueError(
            f"min_rows must be a whole number, the least number of rows of a group that counts, as min_rows=50; got "
            f"{shown(min_rows)}."
        )
    return int(min_rows)
