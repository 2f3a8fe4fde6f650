"""Check a built site: every link and picture on it leads to a file, and to a place there, and no page fetches anything.

Called by ``make docs`` as ``python docs/check_links.py build/docs``.
"""

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {"script", "link", "img", "source", "iframe"}  # what a browser asks for without being told to


class _Page(HTMLParser):
    """The places of a page, and what it points to."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[tuple[str, str]] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in {"id", "name"} and value:
                self.places.add(value)
            if name in {"href", "src"} and value:
                self.links.append((tag, value))


read = cache(_Page)


def _wrong(file: Path, tag: str, link: str) -> str | None:
    """Return what is wrong with a link, if anything."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return "is fetched from elsewhere" if tag in FETCHED and parts.scheme != "data" else None
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    target = target / "index.html" if target.is_dir() else target
    if not target.is_file():
        return "leads to no file"
    if target.suffix == ".html" and parts.fragment and unquote(parts.fragment) not in read(target).places:
        return "leads to no place on its page"
    return None


def problems(site: Path) -> list[str]:
    """Return a sentence for each link that is wrong."""
    found = []
    for file in sorted(file for file in site.resolve().rglob("*.html") if "_static" not in file.parts):
        for tag, link in read(file).links:
            wrong = _wrong(file, tag, link)
            if wrong is not None:
                found.append(f"{file.relative_to(site.resolve())}: {link} {wrong}")
    return sorted(set(found))


def main() -> None:
    """Print what is wrong, and end with 1 where something is."""
    found = problems(Path(sys.argv[1]))
    print("\n".join(found) or "every link leads somewhere")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
