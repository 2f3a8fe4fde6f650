"""Words of messages: the name that was meant."""

import difflib
from collections.abc import Iterable
from itertools import islice

_LOOKED_AT = 10_000  # names: a table may have a hundred thousand columns


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint at the known word nearest to one that is not known, empty where none is near.

    Upper and lower case are the same; of words that are not alike, one that begins with what was written will do.

    Examples
    --------
    >>> from counterpoise._base.words import did_you_mean
    >>> [did_you_mean(word, ["target", "f1_score"]) for word in ("Targt", "f1", "recall")]
    [" Did you mean 'target'?", " Did you mean 'f1_score'?", '']
    """
    names = {name.lower(): name for name in islice(known, _LOOKED_AT)}
    near = difflib.get_close_matches(word.lower(), names, n=1)
    near = near or [name for name in names if len(word) > 1 and name.startswith(word.lower())]
    return f" Did you mean {names[near[0]]!r}?" if near else ""
