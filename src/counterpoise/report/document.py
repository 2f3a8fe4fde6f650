"""Documents: a title, paragraphs, tables and figures, as one page of HTML or as Markdown."""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from counterpoise.report.contents import page_environment
from counterpoise.report.sections import PageTable


class Section(NamedTuple):
    """A part of a document."""

    title: str
    text: Sequence[str] = ()
    tables: Sequence[PageTable] = ()
    figure: Markup | None = None  # in the page alone
    code: str = ""


class Document(NamedTuple):
    """What a reader sees from top to bottom."""

    title: str
    lead: Sequence[str]
    sections: Sequence[Section]

    def html(self) -> str:
        """Return the page: no script, no network."""
        return page_environment().get_template("document.html").render(document=self)

    def markdown(self) -> str:
        """Return the same as Markdown, without figures."""
        head = "\n\n".join([f"# {plain_line(self.title)}", *map(plain_line, self.lead)])
        return "\n\n".join([head, *(f"## {title}\n\n{body}" for title, body in self.parts().items())]) + "\n"

    def parts(self) -> dict[str, str]:
        """Return the body of each section as Markdown, by its title."""
        bodies = {}
        for section in self.sections:
            blocks = [*map(plain_line, section.text), *map(_markdown_table, section.tables)]
            if section.code:
                fence = "`" * max(3, section.code.count("`") + 1)
                blocks.append(f"{fence}\n{section.code.rstrip()}\n{fence}")
            bodies[plain_line(section.title)] = "\n\n".join(blocks)
        return bodies


def plain_line(text: object) -> str:
    r"""Return a text on one line in which nothing is markup.

    >>> from counterpoise.report.document import plain_line
    >>> print(plain_line("a <b> | [c]"))
    a \<b\> \| \[c\]
    """
    line = " ".join(str(text).split())
    return "".join(f"\\{sign}" if sign in "\\<>|[]*`#" else sign for sign in line)


def _markdown_table(table: PageTable) -> str:
    rows = [[plain_line(cell) for cell in row] for row in (table.heads, *table.rows)]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([f"**{plain_line(table.caption)}**", "", lines[0], "|" + "---|" * len(table.heads), *lines[1:]])
