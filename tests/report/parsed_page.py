"""Reads a page as a browser would, and keeps what tests ask about."""

from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "link", "input", "col", "wbr"}
OUTSIDE = ("src", "srcset", "action", "data", "poster", "background", "xlink:href")


class Page(HTMLParser):
    """Tags, ids, references and text of a page; raises where tags are not balanced."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.inside, self.outside, self.named, self.svgs = [], [], [], [], [], [], []
        self.words, self.headings, self.handlers = [], [], []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        self._keep(tag, dict(attributes))

    def handle_startendtag(self, tag, attributes):
        self._keep(tag, dict(attributes))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another"

    def handle_data(self, data):
        if self.tags and self.tags[-1][0] == "wbr" and self.words:  # a word goes on
            self.words[-1] += data
        elif not self.open or self.open[-1] != "style":
            self.words.append(data)

    def _keep(self, tag, found):
        self.tags.append((tag, found))
        self.ids += [found["id"]] if "id" in found else []
        self.named += found.get("aria-labelledby", "").split()
        self.handlers += [name for name in found if name.startswith("on")]
        link = found.get("href")
        if link is not None:
            (self.inside if link.startswith("#") else self.outside).append(link.removeprefix("#"))
        self.outside += [found[name] for name in OUTSIDE if name in found]
        if tag == "svg":
            self.svgs.append(found)
        if tag in {"h1", "h2", "h3", "h4"}:
            self.headings.append(int(tag[1]))


class Tables(HTMLParser):
    """The tables of a page by their captions: of each the heads, and the rows by their first cells."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.found, self.into = {}, None
        self.feed(text)
        self.close()

    def heads(self, caption):
        """Return what the columns of a table are called."""
        return self.found[caption][0]

    def columns(self, caption):
        """Return a table by column and row: what stands under a head beside a name."""
        heads, *rows = self.found[caption]
        return {
            head: {row[0]: row[place] for row in rows} for place, head in enumerate(heads) if head not in heads[:place]
        }

    def handle_starttag(self, tag, _attributes):
        if tag == "table":
            self.lines, self.caption = [], ""
        elif tag == "tr":
            self.lines.append([])
        elif tag in {"td", "th"}:
            self.lines[-1].append("")
            self.into = "cell"
        elif tag == "caption":
            self.into = "caption"

    def handle_endtag(self, tag):
        if tag in {"td", "th", "caption"}:
            self.into = None
        elif tag == "table":
            assert self.caption not in self.found, f"two tables are called {self.caption}"
            self.found[self.caption] = [[" ".join(cell.split()) for cell in line] for line in self.lines]

    def handle_data(self, data):
        if self.into == "caption":
            self.caption += data
        elif self.into == "cell":
            self.lines[-1][-1] += data
