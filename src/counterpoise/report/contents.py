"""The page of a result: its template, and the listings of settings and versions by table."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from counterpoise.report import overview, rates, sections
from counterpoise.report.wording import fraction, number
from counterpoise.runs.result import RunResult
from counterpoise.runs.table import ResultTable

if TYPE_CHECKING:
    from counterpoise.auditing.impact import ImpactRatios
    from counterpoise.runs.monitoring import MonitorSummary


class Listing(NamedTuple):
    """Keys and values by the table of the goals file; those outside any are under an empty title."""

    caption: str
    groups: dict[str, list[tuple[str, str]]]


def listing(caption: str, shown: Mapping[str, Any]) -> Listing:
    """Return nested words as groups of dotted keys and values; what is empty is left out."""
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
            yield f"{path} {number}".strip(), _entry_text(entry)
    elif (text := _format_value(words)) != "":
        yield path, text


def _entry_text(entry: Any) -> str:
    """Return a small table as one line; where only one key is set, its value says enough."""
    lines = list(_lines(entry))
    return lines[0][1] if len(lines) == 1 else "; ".join(f"{key} = {text}" if key else text for key, text in lines)


def _format_value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(_format_value, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def page_environment() -> Environment:
    """Return what fills the templates of pages; each is compiled once."""
    environment = Environment(
        loader=PackageLoader("counterpoise.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = breakable
    environment.filters["cell"] = lambda cell: number(cell) if isinstance(cell, float) else cell
    return environment


def render_table(table: ResultTable) -> str:
    """Return the page of a table, such as a comparison of runs."""
    return page_environment().get_template("comparison.html").render(table=table)


def render_impact(ratios: "ImpactRatios") -> str:
    """Return the page of impact ratios."""
    caption = f"Applicants, {ratios.rate_name}s and impact ratios by"
    names = {name: ResultTable(f"{caption} {name}", ratios.heads(), ratios.lines(name)) for name in ratios.tables}
    return page_environment().get_template("impact.html").render(ratios=ratios, tables=names)


def render_monitoring(summary: "MonitorSummary") -> str:
    """Return the page of a monitored run."""
    from counterpoise.report import monitoring  # noqa: PLC0415 - needs the code that reads data

    return page_environment().get_template("monitoring.html").render(summary=summary, monitoring=monitoring)


def render(result: RunResult) -> str:
    """Return the page of a result; the template calls each section for its content."""
    shown = result.settings | ({"columns": result.data.columns} if result.data.columns else {})
    shown |= {name: result.checksums[name] for name in ("fingerprint", "origin") if name in result.checksums}
    template = page_environment().get_template("template.html")
    modules = {"overview": overview, "rates": rates, "sections": sections, "fraction": fraction}
    return template.render(
        result=result,
        settings=listing("Settings", shown),
        environment=listing("Environment", result.versions),
        **modules,
    )
