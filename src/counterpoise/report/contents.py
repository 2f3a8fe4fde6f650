"""What the template of a report is filled with."""

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from counterpoise.report import aims, classes, deferrals, frontiers, group_rates, listings, overview, scores, sections
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
    environment.filters["breakable"] = listings.breakable
    return environment.get_template("template.html").render(_contents(record))


def _contents(record: Record) -> dict[str, Any]:
    cards = sections.goal_cards(record)
    return {
        "record": record,
        "noun": sections.noun(record),
        "headline": overview.headline(record, cards),
        "facts": overview.facts(record, cards),
        "comparison": overview.comparison(record, cards),
        "recalls": classes.class_recalls(record),
        "worst_class": classes.worst_class(record),
        "confusions": classes.confusions(record),
        "decisions": scores.decision_table(record),
        "scores": scores.score_panels(record),
        "score_sentence": scores.score_sentence(record),
        "examples": overview.lines_of(record.texts.get("examples")),
        "calibration": scores.calibration_table(record),
        "asked": overview.asked(record, cards),
        "cards": cards,
        "verdicts": sections.verdict_table(record, cards),
        "curves": sections.curve_panels(record),
        "curve_table": sections.curve_table(record),
        "rates": group_rates.group_table(record),
        "rate_panels": group_rates.rate_panels(record),
        "left": deferrals.deferral_table(record),
        "left_sentence": deferrals.deferral_sentence(record),
        "bought": deferrals.deferral_panel(record),
        "cost_words": deferrals.cost_words(record),
        "aim": aims.told_aim(record),
        "objective": aims.objective_table(record),
        "met_on": str(record.texts.get("met_on") or ""),
        "why": record.why,
        "source": str(record.texts.get("source") or ""),
        "frontiers": frontiers.frontier_panels(record),
        "mixture": sections.mixture(record),
        "drawn": overview.drawn_table(record, cards),
        "tail": sections.tail_table(record),
        "tail_part": "part" if record.tail is None else fraction(record.tail),
        "description": overview.description(record),
        "commands": overview.lines_of(record.texts.get("commands")),
        "data": overview.data_table(record),
        "classes": overview.class_table(record),
        "times": overview.times_table(record),
        "settings": listings.settings_listing(record),
        "environment": listings.environment_listing(record),
    }
