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
