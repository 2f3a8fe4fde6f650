"""What can be wrong with a goals file, with data and with a run folder: one sentence each."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from counterpoise._base.text import Advice, did_you_mean, load_json, short
from counterpoise.persist.file_access import read_file


class GoalsFileError(ValueError):
    """A goals file that cannot be read or does not fit together; names the file, the key, what was wanted and got."""

    __module__ = "counterpoise.runs"


class DataError(ValueError):
    """A data file that cannot be read or used; names the file, the column, and what to do."""

    __module__ = "counterpoise.runs"


@contextmanager
def as_data_error(before: str, after: str = "") -> Iterator[None]:
    """Say of a ``ValueError`` which data it is about, in words before and after its own."""
    try:
        yield
    except ValueError as error:
        words = error.args[0] if error.args and isinstance(error.args[0], Advice) else Advice(str(error))
        raise DataError(Advice(before, *words.parts, after)) from error


class ColumnError(DataError):
    """A column of dates, lists or the like, which a run can do without."""


class RunFolderError(OSError):
    """A run folder that is not there, not whole, something else, or cannot be written."""

    __module__ = "counterpoise.runs"


def load_json_file(path: Path, most: int, kind: type[Exception], wrong: str, after: str = "") -> Any:
    """Return what a JSON file of at most so many bytes holds; an error of that kind says what is wrong with it."""
    try:
        return load_json(read_file(path, most))
    except OSError as error:
        raise kind(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:  # no JSON, no UTF-8, digits without end or lists in lists in lists
        raise kind(f"{path} {wrong} ({short(error)}).{after}") from error


def first_fault(error: Any) -> str:
    """Return the first fault that pydantic found in a file, and where."""
    fault = error.errors(include_url=False)[0]
    place = ".".join(map(str, fault["loc"]))
    message = f"{fault['msg'][:1].lower()}{fault['msg'][1:]}".removeprefix("value error, ")
    got = f"; got {short(repr(fault['input']), 60)}" if place and fault["type"] != "missing" else ""
    return f"{place + ': ' if place else ''}{message}{got}"


def check_columns(names: Iterable[str], known: Sequence[str], path: Path, key: str = "") -> None:
    """Check that a file has columns, which a key of the goals file names."""
    there = set(known)
    for name in names:
        if name not in there and "," in name and there.issuperset(name.split(",")):
            each = (
                f"give the option once for each of {listed(name.split(','))}"
                if key.startswith("--")
                else "name each by itself"
            )
            raise DataError(f"{key}{path} has no column {name!r}: {each}.")
        if name not in there:
            raise DataError(f"{key}{path} has no column {name!r}.{did_you_mean(name, known)} It has: {listed(known)}.")


def twice_in(names: Sequence[str]) -> str | None:
    """Return the first name that is there more than once, or None.

    Examples
    --------
    >>> from counterpoise.runs.errors import twice_in
    >>> twice_in(["age", "sex", "job", "sex", "age"]), twice_in(["age", "sex"])
    ('age', None)
    """
    return next((name for name, count in Counter(names).items() if count > 1), None)


def oddest(foreign: Collection[Any], known: Iterable[Any]) -> Any:
    """Return the label to name where some are no classes: beside a word, labels that are numbers are read as texts.

    Examples
    --------
    >>> from counterpoise.runs.errors import oddest
    >>> oddest({"0", "1", "NA"}, [0, 1])
    'NA'
    """
    from counterpoise.goals.classes import reads_as  # noqa: PLC0415 - heavy

    texts = set(map(reads_as, known))
    return min([label for label in foreign if reads_as(label) not in texts] or foreign, key=str)


def refuse_foreign(
    labels: Iterable[Any], known: Collection[Any], must: str, *, got: str = "got", after: str = ""
) -> None:
    """Refuse labels that are none of those that are known; ``must`` says what is labelled, ``after`` what to do."""
    foreign = set(labels) - set(known)
    if foreign:
        raise DataError(f"{must} {listed(known, most=10)}; {got} {oddest(foreign, known)!r}.{after}")


def listed(names: Iterable[Any], most: int = 20) -> str:
    """Return names for a message, the first of them where there are many."""
    shown = list(names)
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(map(repr, shown[:most])) + more
