"""Reading JSON so that every reader sees the same: an object that has a key twice is refused."""

import json
from typing import Any


def load_json(text: str | bytes, **options: Any) -> Any:
    """Return what a JSON text holds, after checking that no object names a key twice.

    Python, JavaScript and databases differ in which of two values they keep, and none of them says so.

    Parameters
    ----------
    text : str or bytes
    **options
        As for ``json.loads``.

    Returns
    -------
    Any

    Raises
    ------
    ValueError
        Where the text is no JSON, or an object has a key twice.

    Examples
    --------
    >>> from counterpoise._base.json_text import load_json
    >>> load_json('{"share": 1, "from": "00"}')
    {'share': 1, 'from': '00'}
    >>> load_json('{"share": 1, "share": 0}')
    Traceback (most recent call last):
    ...
    ValueError: each key must occur once in an object; 'share' occurs 2 times
    """
    return json.loads(text, object_pairs_hook=_once, **options)


_LONG = 200  # characters of a key in a message


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"each key must occur once in an object; {twice[:_LONG]!r} occurs {names.count(twice)} times")
    return found
