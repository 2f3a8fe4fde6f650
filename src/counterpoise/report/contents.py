"""What the template of a report is filled with."""

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from counterpoise.report import group_rates, overview, sections
from counterpoise.report.record import Record
from counterpoise.report.wording import fraction


def render(record: Record) -> str:
    """Return the page of a record."""
    environment = Environment(
        loader=PackageLoader("counterpoise.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("template.html").render(_contents(record))


def _contents(record: Record) -> dict[str, Any]:
    cards = sections.goal_cards(record)
    return {
        "record": record,
        "noun": sections.noun(record),
        "headline": overview.headline(record, cards),
        "facts": overview.facts(record, cards),
        "asked": overview.asked(record, cards),
        "cards": cards,
        "verdicts": sections.verdict_table(record, cards),
        "curves": sections.curve_panels(record),
        "curve_table": sections.curve_table(record),
        "rates": group_rates.rate_table(record),
        "rate_panels": group_rates.rate_panels(record),
        "frontiers": sections.frontier_panels(record),
        "mixture": sections.mixture(record),
        "tail": sections.tail_table(record),
        "tail_part": "rows" if record.alpha is None else fraction(record.alpha),
        "description": overview.description(record),
        "commands": overview.lines_of(record.texts.get("commands")),
        "data": overview.data_table(record),
        "times": overview.times_table(record),
        "settings": overview.settings_table(record),
        "environment": overview.listing("Environment", record.environment),
    }
