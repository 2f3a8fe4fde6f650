"""Time limits of work that may be cut short: advice on goals that cannot be met, and the answers of the explorer.

Solvers call ``check_budget`` at the heads of their loops. What they find does not depend on time unless it is cut
short: on a slow machine an error may then have fewer hints.
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from counterpoise._base.contexts import set_within
from counterpoise._base.progress import RunProgress, progress_callback

ADVICE_SECONDS = 5.0  # that advice may take, beside the time of the choice before it
ADVISING = "no rule meets the goals; searching for bounds that can be met"


class OutOfTime(Exception):  # noqa: N818 - named for what is the case
    """The time of a budget is spent, or its work was cancelled."""


class TimeLimit:
    """A time limit, which another thread may end early."""

    def __init__(self, seconds: float = math.inf) -> None:
        self.started = time.monotonic()
        self._ends = self.started + seconds

    def cancel(self) -> None:
        """Spend all that is left."""
        self._ends = -math.inf

    @property
    def is_spent(self) -> bool:
        """Return whether the time is over."""
        return time.monotonic() >= self._ends


class _Choice:
    """When a choice of rules began, and the budget of advice on it, once its goals turn out to be out of reach."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.advice: TimeLimit | None = None


_budgets: ContextVar[tuple[TimeLimit, ...]] = ContextVar("counterpoise_budgets", default=())
_choice: ContextVar[_Choice | None] = ContextVar("counterpoise_choice", default=None)


def check_budget() -> None:
    """Raise ``OutOfTime`` where a budget of the contexts around is spent."""
    if any(budget.is_spent for budget in _budgets.get()):
        raise OutOfTime


@contextmanager
def within(budget: TimeLimit) -> Iterator[None]:
    """Limit the work inside to a budget and those of the contexts around; threads begun inside do not inherit it."""
    with set_within(_budgets, (*_budgets.get(), budget)):
        yield


@contextmanager
def choosing() -> Iterator[None]:
    """Choose rules: advice inside, all together, takes at most as long as the choice before it and 5 s."""
    with set_within(_choice, _Choice()):
        yield


@contextmanager
def advice() -> Iterator[None]:
    """Search for advice on goals that cannot be met, and leave the search where its time is spent.

    What was assigned inside by then remains.
    """
    choice = _choice.get() or _Choice()
    if choice.advice is None:
        elapsed = time.monotonic() - choice.started
        choice.advice = TimeLimit(elapsed + ADVICE_SECONDS)
        progress_callback()(RunProgress(0, 0, ADVISING, elapsed, 0.0))
    try:
        with set_within(_choice, choice), within(choice.advice):
            yield
    except OutOfTime:
        check_budget()  # of the contexts around: they end for good


def is_advice_cut() -> bool:
    """Return whether the time for advice on the present choice is spent."""
    choice = _choice.get()
    return choice is not None and choice.advice is not None and choice.advice.is_spent
