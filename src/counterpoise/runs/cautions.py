"""What classifiers and readers of files warn of, as lines of a run."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from counterpoise.mixtures.cautions import Caution
from counterpoise.runs.reading import WordsAmongNumbers


@contextmanager
def told_cautions(say: Callable[[str], None]) -> Iterator[None]:
    """Say in a line what classifiers warn of, as it was the last time: earlier choices were tries."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", Caution)
        yield
    cautions = {str(one.category): str(one.message) for one in heard if issubclass(one.category, Caution)}
    for text in cautions.values():
        say(text)
    for other in heard:
        if not issubclass(other.category, Caution):
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)


@contextmanager
def heard_words() -> Iterator[list[str]]:
    """Collect what is said of words among the numbers of files that are read, in the place of warnings."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", WordsAmongNumbers)
        yield texts
    for one in heard:
        if issubclass(one.category, WordsAmongNumbers):
            texts.append(str(one.message))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
