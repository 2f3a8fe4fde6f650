"""What a run made as small as possible: in words, and how small it is."""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from counterpoise.report.record import Record
from counterpoise.report.sections import PageTable, noun
from counterpoise.report.wording import fraction, number, percent
from counterpoise.runs.quantities import CVAR, DEPLOYED, FIRST, MIXTURE, OWN, RATE, RISK, WORST_GROUP

_TAIL, _ERROR = "tail", "error"  # the two kinds of CVaR


class Aim(NamedTuple):
    """What was made small: the loss of the tail, of all rows or of the worst group, a risk, a rate, or its own."""

    kind: str
    text: str  # as the subject of a sentence

    @property
    def is_tail(self) -> bool:
        """Tell whether the worst-off were the aim."""
        return self.kind == _TAIL

    @property
    def has_values(self) -> bool:
        """Tell whether the results table has it as a quantity of its own."""
        return self.kind in {RATE, RISK, WORST_GROUP}

    @property
    def least(self) -> str:
        """Return its least value in words."""
        return f"least {self.text.removeprefix('the ')}"

    @property
    def is_code(self) -> bool:
        """Tell whether the text is that of a rate or a risk."""
        return self.kind in {RATE, RISK}

    @property
    def show(self) -> Callable[[float], str]:
        """Return how its values are written: rates and risks may be any sum of them, the others are shares."""
        return number if self.is_code else percent


def told_aim(record: Record) -> Aim:
    """Return the aim of a run; of one that does not tell, the tail."""
    told = record.texts.get("objective")
    words = told if isinstance(told, Mapping) else {"kind": CVAR}
    share = "the share wrong" if record.defer_cost is None else "the loss"  # which counts deferred rows too
    if words.get("kind") in {RATE, RISK}:
        return Aim(str(words["kind"]), str(words.get("text", "")))
    if words.get("kind") == WORST_GROUP:
        by = f" by {words['text']}" if words.get("text") else ""
        return Aim(WORST_GROUP, f"{share} in the worst group{by}")
    if words.get("kind") != CVAR or record.alpha is None:
        return Aim(OWN, "")
    if record.tail is None:
        return Aim(_ERROR, f"{share} of all rows")
    return Aim(_TAIL, f"{share} of the worst-off {fraction(record.tail)}")


def asked_lines(record: Record) -> list[tuple[str, str]]:
    """Return what was to be small, as terms and their meaning."""
    aim = told_aim(record)
    tail = "" if record.tail is None else f"the worst-off {fraction(record.tail)} of the rows (alpha = {record.tail:g})"
    if aim.is_tail:
        return [("Least wrong for", tail)]
    lines = [("As small as possible", aim.text)] if aim.text else []
    return [*lines, ("Also measured for", tail)] if tail else lines


def objective_table(record: Record) -> PageTable | None:
    """Return the objective on every split, for each method it was measured for."""
    aim = told_aim(record)
    methods = _methods(record)
    if not aim.has_values or not methods:
        return None
    rows = [
        [split, *(aim.show(record.value("objective", method=method, split=split)) for method in methods)]
        for split in record.splits
    ]
    return PageTable(aim.text, ("rows of", *methods.values()), rows)


def objective_sentence(record: Record) -> str:
    """Return how small the objective is on the rows that count, and beside it for others."""
    aim, split = told_aim(record), record.judged
    ours = record.value("objective", split=split)
    if not aim.has_values or not math.isfinite(ours):
        return ""
    others = ", ".join(_others(record, aim))
    return f"The objective, {aim.text}, is {aim.show(ours)} on the {split} rows{f' ({others})' if others else ''}."


def objective_fact(record: Record) -> tuple[str, str, str] | None:
    """Return the objective on the rows that count as label, value and what is beside it."""
    aim = told_aim(record)
    ours = record.value("objective", split=record.judged)
    if not aim.has_values or not math.isfinite(ours):
        return None
    label = aim.text if aim.is_code else f"{loss_word(record)}, worst group"
    return label, aim.show(ours), ", ".join(_others(record, aim))


def loss_word(record: Record) -> str:
    """Return what is counted, as a label: wrong answers, or with deferred rows a loss."""
    return "Wrong" if record.defer_cost is None else "Loss"


def _others(record: Record, aim: Aim) -> list[str]:
    values = {
        name: record.value("objective", method=method, split=record.judged)
        for method, name in _methods(record).items()
        if method != MIXTURE
    }
    return [f"{name}: {aim.show(value)}" for name, value in values.items() if math.isfinite(value)]


def _methods(record: Record) -> dict[str, str]:
    names = {MIXTURE: noun(record), FIRST: "plain training", DEPLOYED: "deployed model"}
    known = {row.method for row in record.named("objective")}
    return {method: name for method, name in names.items() if method in known}
