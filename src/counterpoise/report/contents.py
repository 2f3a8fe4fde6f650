"""What the template of a report is filled with, settings and versions by table among it."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from counterpoise.report import overview, rates, sections
from counterpoise.report.record import Record
from counterpoise.report.wording import fraction
from counterpoise.runs.folder import SECONDS

_INNER = ("training", "sources")  # settings that others repeat, or that lead to places on a disk


class Listing(NamedTuple):
    """Keys and values by the table of the goals file; those outside any are under an empty title."""

    caption: str
    groups: dict[str, list[tuple[str, str]]]


def listing(caption: str, words: Mapping[str, Any], left_out: Collection[str]) -> Listing:
    """Return nested words as groups of dotted keys and values; what is empty is left out."""
    shown = {key: value for key, value in words.items() if key not in left_out}
    plain = {key: value for key, value in shown.items() if not _is_nested(value)}
    groups = {"": list(_lines(plain))}
    groups |= {str(key): list(_lines(value)) for key, value in shown.items() if _is_nested(value)}
    return Listing(caption, {title: lines for title, lines in groups.items() if lines})


def breakable(text: str) -> Markup:
    """Return a text that may go on in the next line after a dot or underscore before a letter.

    >>> from counterpoise.report.contents import breakable
    >>> print(breakable("data.max_rows <"))
    data.<wbr>max_<wbr>rows &lt;
    """
    return Markup(re.sub(r"(?<=[._])(?=[^\W\d_])", "<wbr>", str(escape(text))))  # noqa: S704 - escaped just here


def _is_nested(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list) and any(isinstance(entry, Mapping) for entry in value)
    )


def _lines(words: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield dotted keys with values; each entry of a list of tables is one line, numbered as people count."""
    if isinstance(words, Mapping):
        for key, value in words.items():
            yield from _lines(value, f"{path}.{key}" if path else str(key))
    elif _is_nested(words):
        for number, entry in enumerate(words, start=1):
            yield f"{path} {number}".strip(), _told(entry)
    elif (text := _shown(words)) != "":
        yield path, text


def _told(entry: Any) -> str:
    """Return a small table as one line; where only one key is set, its value says enough."""
    lines = list(_lines(entry))
    return lines[0][1] if len(lines) == 1 else "; ".join(f"{key} = {text}" if key else text for key, text in lines)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def render(record: Record) -> str:
    """Return the page of a record."""
    environment = Environment(
        loader=PackageLoader("counterpoise.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = breakable
    return environment.get_template("template.html").render(_contents(record))


def _contents(record: Record) -> dict[str, Any]:
    cards = sections.goal_cards(record)
    return {
        "record": record,
        "noun": sections.noun(record),
        "headline": overview.headline(record, cards),
        "facts": overview.facts(record, cards),
        "comparison": overview.comparison(record, cards),
        "recalls": rates.class_recalls(record),
        "worst_class": rates.worst_class(record),
        "confusions": rates.confusions(record),
        "decisions": rates.decision_table(record),
        "scores": rates.score_panels(record),
        "score_sentence": rates.score_sentence(record),
        "examples": overview.lines_of(record.texts.get("examples")),
        "calibration": rates.calibration_table(record),
        "asked": overview.asked(record, cards),
        "cards": cards,
        "verdicts": sections.verdict_table(record, cards),
        "curves": sections.curve_panels(record),
        "curve_table": sections.curve_table(record),
        "rates": rates.group_table(record),
        "rate_panels": rates.rate_panels(record),
        "left": rates.deferral_table(record),
        "left_sentence": rates.deferral_sentence(record),
        "bought": rates.deferral_panel(record),
        "cost_words": rates.cost_words(record),
        "aim": sections.reported_objective(record),
        "objective": sections.objective_table(record),
        "met_on": str(record.texts.get("met_on") or ""),
        "why": record.why,
        "source": str(record.texts.get("source") or ""),
        "frontiers": sections.frontier_panels(record),
        "mixture": sections.mixture(record),
        "drawn": overview.drawn_table(record, cards),
        "tail": sections.tail_table(record),
        "tail_part": "part" if record.tail is None else fraction(record.tail),
        "description": overview.description(record),
        "commands": overview.lines_of(record.texts.get("commands")),
        "data": overview.data_table(record),
        "classes": overview.class_table(record),
        "times": overview.times_table(record),
        "settings": listing("Settings", record.settings, _INNER),
        "environment": listing("Environment", record.environment, (SECONDS,)),
    }
