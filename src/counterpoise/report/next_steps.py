"""What to do next: how many rows would decide, which bound to aim at, which goal costs most."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from counterpoise.report.aims import told_aim
from counterpoise.report.frontiers import frontier_points, points_at
from counterpoise.report.record import Record
from counterpoise.report.sections import GoalCard, is_at_least, is_ratio
from counterpoise.report.wording import FAILS, HOLDS, UNDECIDED, count, number
from counterpoise.runs.quantities import of_goal

_MOST_TIMES = 1000.0  # as many rows: more is no advice
_DIGITS = 2  # of a number of rows that is a guess


class _Standing(NamedTuple):
    """A goal on the rows that count."""

    estimate: float
    bound: float
    width: float  # of the interval, on the side of the bound
    rows: float

    @property
    def gap(self) -> float:
        return abs(self.estimate - self.bound)


def next_steps(record: Record, cards: Sequence[GoalCard]) -> list[str]:
    """Return what can be done, in sentences, the most urgent first."""
    open_ones = [card for card in cards if card.verdict in (FAILS, UNDECIDED)]
    steps = [step for card in open_ones for step in _steps(record, card)]
    if any(card.is_met is not True for card in open_ones) or any(card.verdict is FAILS for card in open_ones):
        steps += _aim(record)
    elif open_ones and _may_have_room(record):
        steps.append("Or set room_for_audit = true, which meets the goals with room for the rows there are.")
    if cards and all(card.verdict is HOLDS for card in cards):
        steps.append("Audit it again on fresh rows now and then.")
    return [*steps, *_room(record), *_dearest(record, cards)]


def _steps(record: Record, card: GoalCard) -> Iterator[str]:
    """Yield what would decide about an undecided goal that is met, as far as the rows tell."""
    stands = _standing(record, card)
    if card.verdict is FAILS or not card.is_met or not stands.gap > 0 or not math.isfinite(stands.width):
        return
    needed = stands.rows * (stands.width / stands.gap) ** 2
    if stands.rows < needed < _MOST_TIMES * stands.rows:
        about = count(float(f"{needed:.{_DIGITS}g}"))
        yield (
            f"{_upper(card.name)} is inside its bound by {number(stands.gap)}: about {about} rows in place of "
            f"{count(stands.rows)} would show it, if it stays there."
        )


def _aim(record: Record) -> Iterator[str]:
    """Yield how to get on the right side of bounds."""
    if record.settings.get("room_for_audit"):
        yield "Loosen a bound, give more rows, or let decisions look at more (method.parameters.by)."
    elif _reads_parts(record):
        yield "Ask for bounds that are tighter by the width of an interval, so that new rows show the goals to hold."
    elif record.is_mixture or record.texts.get("met_on"):
        yield "Set room_for_audit = true, which aims at tighter bounds, so that new rows show the goals to hold."


def _may_have_room(record: Record) -> bool:
    """Tell whether room for the audit can be asked for, and is not."""
    return not record.settings.get("room_for_audit") and not _reads_parts(record)


def _reads_parts(record: Record) -> bool:
    """Tell whether rows were read in parts, where no room is left."""
    return (record.settings.get("data") or {}).get("sample") is not None


def _room(record: Record) -> Iterator[str]:
    """Yield what room for the audit costs, where that shows."""
    cost, aim = record.texts.get("room_cost"), told_aim(record)
    if isinstance(cost, float) and aim.show(cost) != aim.show(0.0):
        yield f"Of the price, {aim.show(cost)} is room for the audit."


def _dearest(record: Record, cards: Sequence[GoalCard]) -> Iterator[str]:
    """Yield which goal costs most of what was made small, where the decisions were chosen."""
    aim, found = told_aim(record), []
    for card in cards:
        points = frontier_points(record, card.name)
        at = [value for _, value, _ in points_at(card.aimed, points)]
        if at:
            changed, least = _loosened(record, card, points)
            found.append((at[0] - least, at[0], card.name, changed))
    cost, value, name, changed = max(found, default=(0.0, 0.0, "", ""))
    if len(found) > 1 and cost > 0 and aim.show(value) != aim.show(value - cost):
        yield (
            f"{_upper(name)} costs most: {changed} {aim.text} could be {aim.show(value - cost)} in place of "
            f"{aim.show(value)} where decisions were chosen."
        )


def _loosened(record: Record, card: GoalCard, points: Sequence[tuple[float, float, float]]) -> tuple[str, float]:
    """Return how a goal is loosened, and the least value then: a frontier ends where all is as without its goal.

    A loosest bound can cost more than others: of a lower average loss a budget allows less for the tail.
    """
    if record.certificate or is_ratio(card.text):  # of which a few bounds near the asked one were tried
        bound, least, _ = min(points, key=lambda point: point[1])
        return f"with the bound {number(bound)}", least
    return "without it", points[0 if is_at_least(card.text) else -1][1]


def _standing(record: Record, card: GoalCard) -> _Standing:
    estimate, low, high, bound, rows = (
        record.value(of_goal(part), split=record.judged, settings=card.name)
        for part in ("estimate", "low", "high", "bound", "rows")
    )
    return _Standing(estimate, bound, estimate - low if estimate >= bound else high - estimate, rows)


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
