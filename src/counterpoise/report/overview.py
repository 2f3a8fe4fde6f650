"""What a report says first and last: the verdict in words, what was asked, data, settings, commands."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from counterpoise.report.record import FIRST, MIXTURE, Record
from counterpoise.report.sections import GoalCard, Table, measured, noun
from counterpoise.report.wording import (
    FAILS,
    HOLDS,
    UNDECIDED,
    UNKNOWN,
    Verdict,
    cost_sentence,
    count,
    fraction,
    many,
    percent,
    tail_sentence,
)

_INNER = ("asked", "training", "sources")  # settings that others repeat, or that lead to places on a disk


class Headline(NamedTuple):
    """The verdict on all goals together, and the paragraph on top of the page."""

    verdict: Verdict
    title: str
    sentences: Sequence[str]


class Fact(NamedTuple):
    """One number to see at a glance, and what it stands beside."""

    label: str
    value: str
    note: str


def headline(record: Record, cards: Sequence[GoalCard]) -> Headline:
    """Return whether the goals hold and what the tail costs, in plain words."""
    verdict, title, told = _goals_in_words(cards, record.judged)
    mixture, first = (record.value("error", method=method, split=record.judged) for method in (MIXTURE, FIRST))
    sentences = [
        *told,
        _tail(record),
        cost_sentence(mixture=mixture, first=first, rows=record.judged, noun=noun(record)),
    ]
    return Headline(verdict, title, [sentence for sentence in sentences if sentence])


def _tail(record: Record) -> str:
    alpha = record.alpha
    if alpha is None:
        return ""
    mixture, first = (
        record.value("cvar", method=method, split=record.judged, alpha=alpha) for method in (MIXTURE, FIRST)
    )
    return tail_sentence(mixture=mixture, first=first, alpha=alpha, rows=record.judged, noun=noun(record))


def _goals_in_words(cards: Sequence[GoalCard], split: str) -> tuple[Verdict, str, list[str]]:
    if not cards:
        return UNKNOWN, "No goals were asked for", []
    tally = Counter(card.verdict for card in cards)
    worst = next(verdict for verdict in (FAILS, UNDECIDED, UNKNOWN, HOLDS) if tally[verdict])
    if worst is HOLDS:
        title = f"All {many(len(cards), 'goal')} hold" if len(cards) > 1 else "The goal holds"
        return worst, title, [f"The {split} rows show it{_confidence(cards)}."]
    words = {FAILS: "fails" if tally[FAILS] == 1 else "fail", UNDECIDED: "undecided", UNKNOWN: "not measured"}
    title = ", ".join(
        [
            f"{tally[HOLDS]} of {many(len(cards), 'goal')} {'holds' if tally[HOLDS] == 1 else 'hold'}",
            *(f"{tally[verdict]} {word}" for verdict, word in words.items() if tally[verdict]),
        ]
    )
    told = {
        FAILS: f"shown by the {split} rows to fail{_confidence(cards)}",
        UNDECIDED: f"undecided: the {split} rows leave both possible",
        UNKNOWN: f"not measured on the {split} rows",
    }
    sentences = [
        f"{_listed([card.name for card in cards if card.verdict is verdict])} {text}."
        for verdict, text in told.items()
        if tally[verdict]
    ]
    return worst, title, sentences


def _confidence(cards: Sequence[GoalCard]) -> str:
    levels = {card.confidence for card in cards}
    return f", with confidence {levels.pop()}" if len(levels) == 1 and "" not in levels else ""


def _listed(names: Sequence[str]) -> str:
    """Return names as the subject of a sentence."""
    *others, last = names
    subject = f"{', '.join(others)} and {last} are" if others else f"{last} is"
    return subject[0].upper() + subject[1:]


def facts(record: Record, cards: Sequence[GoalCard]) -> list[Fact]:
    """Return the numbers to see at a glance."""
    split, found = record.judged, []
    if cards:
        holding = sum(card.verdict is HOLDS for card in cards)
        found.append(Fact("Goals that hold", f"{holding} of {len(cards)}", f"on the {split} rows"))
    quantities: list[tuple[str, str, float | None]] = [("Wrong, all rows", "error", None)]
    if record.alpha is not None:
        quantities.insert(0, (f"Wrong, worst-off {fraction(record.alpha)}", "cvar", record.alpha))
    for label, quantity, alpha in quantities:
        ours, first = (record.value(quantity, method=method, split=split, alpha=alpha) for method in (MIXTURE, FIRST))
        if math.isfinite(ours):
            found.append(
                Fact(label, percent(ours), f"plain training: {percent(first)}" if math.isfinite(first) else "")
            )
    rows = record.value("rows", method="data", split=split)
    if math.isfinite(rows):
        found.append(Fact(f"{split.capitalize()} rows", count(rows), "the judgement rests on these"))
    return found


def asked(record: Record, cards: Sequence[GoalCard]) -> list[tuple[str, str]]:
    """Return what the run was asked for, as terms and their meaning."""
    lines = [("Data", record.dataset)]
    known = {
        "Predict": _part(record.settings, "data", "target"),
        "Positive class": _part(record.settings, "data", "positive"),
        "Method": str(record.texts.get("method") or _part(record.settings, "method", "name")),
    }
    lines += [(term, text) for term, text in known.items() if text]
    if record.alpha is not None:
        lines.append(
            ("Least wrong for", f"the worst-off {fraction(record.alpha)} of the rows (alpha = {record.alpha:g})")
        )
    return [*lines, *((f"Inside {card.name}", card.text) for card in cards)]


def _part(settings: Mapping[str, Any], table: str, key: str) -> str:
    """Return one setting of a table of the goals file, nothing where it is not set."""
    part = settings.get(table)
    value = part.get(key) if isinstance(part, Mapping) else None
    return "" if value is None else str(value)


def data_table(record: Record) -> Table:
    """Return how many rows each split has, of which classes, and the plain errors there."""
    shares = list(dict.fromkeys(row.settings for row in record.named("class share")))
    methods = measured(record)
    rows = [
        [
            split,
            count(record.value("rows", method="data", split=split)),
            *(percent(record.value("class share", method="data", split=split, settings=label)) for label in shares),
            *(percent(record.value("error", method=method, split=split)) for method in methods),
        ]
        for split in record.splits
    ]
    heads = (
        "rows of",
        "rows",
        *(f"class {label}" for label in shares),
        *(f"wrong: {name}" for name in methods.values()),
    )
    return Table("Rows, classes and plain errors", heads, rows)


def times_table(record: Record) -> Table | None:
    """Return how long the run took."""
    rows = [[row.method, f"{row.value:,.2f}"] for row in record.named("seconds")]
    return Table("Time", ("part", "seconds"), rows) if rows else None


def settings_table(record: Record) -> Table:
    """Return all settings; of those that a run keeps for itself only the fingerprint."""
    shown = {key: value for key, value in record.settings.items() if key not in _INNER}
    return listing("Settings", shown)


def listing(caption: str, words: Mapping[str, Any]) -> Table:
    """Return nested settings as a table of dotted keys and values."""
    return Table(caption, ("key", "value"), [list(line) for line in _flat(words)], wide=(1,))


def description(record: Record) -> list[str]:
    """Return what the data are."""
    columns = record.value("columns", method="data", split="")
    told = [f"The model sees {many(int(columns), 'column')}."] if math.isfinite(columns) else []
    return [*lines_of(record.texts.get("data")), *told]


def lines_of(words: Any) -> list[str]:
    """Return a text, or a list of them, as lines; none where there is nothing."""
    if words is None:
        return []
    return [str(line) for line in (words if isinstance(words, list) else [words])]


def _flat(words: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(words, Mapping):
        for key, value in words.items():
            yield from _flat(value, f"{path}.{key}" if path else str(key))
    elif isinstance(words, list) and any(isinstance(entry, (Mapping, list)) for entry in words):
        for place, entry in enumerate(words):
            yield from _flat(entry, f"{path}[{place}]")
    elif isinstance(words, list):
        yield path, ", ".join(map(str, words))
    else:
        yield path, "" if words is None else str(words)
