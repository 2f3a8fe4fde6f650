"""How far long work is: the value that runs and experiments tell, and its words."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

_MINUTE, _HOUR = 60, 3600


class RunProgress(NamedTuple):
    """How far a run is.

    Examples
    --------
    >>> from counterpoise._base.progress import RunProgress
    >>> print(RunProgress(3, 12, "tree 3", elapsed=30.0, left=90.0))
    3 of 12: tree 3; 30 s so far, about 2 min left
    """

    done: int
    total: int
    part: str  # the newest
    elapsed: float  # seconds
    left: float  # seconds, as the mean over the parts so far has it

    def __str__(self) -> str:
        left = f", about {duration(self.left)} left" if self.done < self.total else ""
        return f"{self.done} of {self.total}: {self.part}; {duration(self.elapsed)} so far{left}"


Tell: TypeAlias = Callable[[RunProgress], None]


def duration(seconds: float) -> str:
    """Return a time as people say it."""
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < _HOUR:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds / _HOUR:.1f} h"
