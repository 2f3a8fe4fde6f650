"""Numbers and verdicts in words."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from counterpoise.auditing import audit

MISSING = "\N{EN DASH}"
_LEFT_OUT = "\N{HORIZONTAL ELLIPSIS}"
_LAST_DIGIT = 0.0001  # of a number as it is shown
_EQUAL = 5e-4  # shares that differ by less are shown as equal: half of the last digit


class Verdict(NamedTuple):
    """A verdict that needs no colour: a sign and a word; ``kind`` is its CSS class."""

    kind: str
    sign: str
    word: str


HOLDS = Verdict(audit.HOLDS, "\N{CHECK MARK}", audit.HOLDS)
FAILS = Verdict(audit.FAILS, "\N{BALLOT X}", audit.FAILS)
UNDECIDED = Verdict(audit.UNDECIDED, "?", audit.UNDECIDED)
UNKNOWN = Verdict("unknown", MISSING, "not measured")


class Noted(NamedTuple):
    """A verdict on the population, and beside it how the rows themselves stand."""

    verdict: Verdict
    note: str


def verdict_of(word: str) -> Verdict:
    """Return how a verdict is shown.

    >>> from counterpoise.report.wording import verdict_of
    >>> [verdict_of(word).word for word in ("undecided", "")]
    ['undecided', 'not measured']
    """
    return next((one for one in (HOLDS, UNDECIDED, FAILS) if one.word == word), UNKNOWN)


def stand_on_rows(violation: float) -> str:
    """Return how a goal stands on the rows themselves, given how far outside its bound they are.

    >>> from counterpoise.report.wording import stand_on_rows
    >>> stand_on_rows(0.0), stand_on_rows(0.0192), stand_on_rows(0.00001), stand_on_rows(float("nan"))
    ('met on these rows', 'missed by 0.0192', 'missed by less than 0.0001', '')
    """
    if not math.isfinite(violation):
        return ""
    if violation <= 0:
        return "met on these rows"
    return f"missed by {number(violation)}" if violation >= _LAST_DIGIT else f"missed by less than {_LAST_DIGIT}"


def number(value: float) -> str:
    """Return a number with four decimals, a dash where there is none.

    >>> from counterpoise.report.wording import number
    >>> number(0.91862), number(-0.00001), number(float("nan")) == "\N{EN DASH}"
    ('0.9186', '0.0000', True)
    """
    written = f"{value:.4f}".replace("-0.0000", "0.0000").replace("-", "\N{MINUS SIGN}")
    return written if math.isfinite(value) else MISSING


def percent(value: float) -> str:
    """Return a share in percent with one decimal, a dash where there is none.

    Rounding errors do not show: the sums 0.2765 and 0.2764999999999999 are one share.
    """
    return f"{round(100 * value, 9):.1f}\N{NO-BREAK SPACE}%" if math.isfinite(value) else MISSING


def fraction(alpha: float) -> str:
    """Return a tail fraction in percent, with up to three digits.

    >>> from counterpoise.report.wording import fraction
    >>> fraction(0.1).split(), fraction(0.025).split()
    (['10', '%'], ['2.5', '%'])
    """
    return f"{100 * alpha:.3g}\N{NO-BREAK SPACE}%"


def count(value: float) -> str:
    """Return a whole number with its thousands apart, a dash where there is none."""
    return f"{value:,.0f}" if math.isfinite(value) else MISSING


def points(value: float) -> str:
    """Return a difference of shares in percentage points, without sign."""
    return f"{100 * abs(value):.1f} points"


def many(value: int, noun: str) -> str:
    """Return a count with its noun.

    >>> from counterpoise.report.wording import many
    >>> many(1, "goal"), many(3, "goal")
    ('1 goal', '3 goals')
    """
    return f"{value:,} {noun}" + ("" if value == 1 else "s")


def shorten(text: str, length: int) -> str:
    """Return a text that fits beside an axis: on one line, its end left out where it is long."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line if len(line) <= length else line[: length - 1] + _LEFT_OUT


def shorten_apart(texts: Sequence[str], length: int) -> list[str]:
    """Return texts that fit beside an axis and differ as before: without their ends, their middles, or whole.

    >>> from counterpoise.report.wording import shorten_apart
    >>> shorten_apart(["status=never married", "status=never asked"], 12)
    ['status…rried', 'status…asked']
    """
    lines = [shorten(text, len(text)) for text in texts]
    head = length // 2
    middles = [line if len(line) <= length else line[:head] + _LEFT_OUT + line[head + 1 - length :] for line in lines]
    cuts = ([shorten(line, length) for line in lines], middles)
    return next((cut for cut in cuts if len(set(cut)) == len(set(lines))), lines)


def tail_sentence(
    *, mixture: float, first: float, alpha: float, rows: str, noun: str, cost: str = "", realised: float = math.nan
) -> str:
    """Return how wrong the model is on the worst-off rows; ``cost`` says as what a deferred row counts, if any.

    ``realised`` is the same number once decisions are drawn, where they are.
    """
    is_drawn = math.isfinite(realised)
    expects = "is expected to get" if is_drawn else "gets"
    head = f"On the worst-off {fraction(alpha)} of the {rows} rows the {noun} {expects} {percent(mixture)} wrong"
    head += f", where {cost}" if cost else ""
    drawn = f" Once decisions are drawn, those who are then worst off are {percent(realised)} wrong." * is_drawn
    gain = first - mixture
    if not math.isfinite(gain):
        return f"{head}.{drawn}" if math.isfinite(mixture) else ""
    if abs(gain) < _EQUAL:
        return f"{head}, as many as plain training.{drawn}"
    return f"{head}; plain training {percent(first)}, {points(gain)} {'more' if gain > 0 else 'less'}.{drawn}"
