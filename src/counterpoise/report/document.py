"""Documents: a title, paragraphs, tables and figures, as one page of HTML."""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from counterpoise.report.contents import page_environment
from counterpoise.runs.table import ResultTable


class Section(NamedTuple):
    """A part of a document."""

    title: str
    text: Sequence[str] = ()
    tables: Sequence[ResultTable] = ()
    figure: Markup | None = None


class Document(NamedTuple):
    """What a reader sees from top to bottom."""

    title: str
    lead: Sequence[str]
    sections: Sequence[Section]

    def html(self) -> str:
        """Return the page: no script, no network."""
        return page_environment().get_template("document.html").render(document=self)
