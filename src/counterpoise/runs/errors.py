"""What can be wrong with a goals file, with data and with a run folder: one sentence each."""

import difflib
from collections.abc import Iterable


class GoalsFileError(ValueError):
    """A goals file that cannot be read or does not fit together; names the file, the key, what was wanted and got."""


class DataError(ValueError):
    """A data file that cannot be read or used; names the file, the column, and what to do."""


class ColumnError(DataError):
    """A column of dates, lists or the like, which a run can do without."""


class RunFolderError(OSError):
    """A run folder that is not there, not whole, something else, or cannot be written."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a hint at the known word nearest to one that is not known, empty where none is near.

    Examples
    --------
    >>> from counterpoise.runs.errors import nearest
    >>> nearest("targt", ["target", "groups"]), nearest("zzz", ["target"])
    (" Did you mean 'target'?", '')
    """
    near = difflib.get_close_matches(word, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
