"""The log of the server: one line for each refusal, plain text, and not more lines than someone could read."""

import logging
import time
from collections.abc import Callable

LINES_PER_SECOND, LINES_AT_ONCE = 5.0, 200.0


class Rate:
    """A bucket that fills as time goes by."""

    def __init__(self, per_second: float, burst: float, now: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._burst, self._now = per_second, burst, now
        self._left, self._last = burst, now()

    def take(self) -> bool:
        """Take one, and tell whether there was one."""
        now = self._now()
        self._left = min(self._left + (now - self._last) * self._per_second, self._burst)
        self._last = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class PlainLines(logging.Filter):
    """Lets so many lines pass, with how many were left out before, and without characters that steer a terminal."""

    def __init__(self, rate: Rate) -> None:
        super().__init__()
        self._rate, self._left_out = rate, 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a line passes, as plain text."""
        if not self._rate.take():
            self._left_out += 1
            return False
        before = f" ({self._left_out} lines before were left out)" if self._left_out else ""
        record.msg, record.args = f"{plain(record.getMessage())}{before}", None
        self._left_out = 0
        return True


def plain(text: str) -> str:
    r"""Return a text with everything that is no printable character written out.

    Examples
    --------
    >>> from counterpoise.explorer.log import plain
    >>> print(plain("red \x1b[31m, next\nline"))
    red \x1b[31m, next\nline
    """
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


LOG = logging.getLogger("counterpoise.explorer")
LOG.addFilter(PlainLines(Rate(LINES_PER_SECOND, LINES_AT_ONCE)))
