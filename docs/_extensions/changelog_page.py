"""The page of changes: what ``CHANGELOG.md`` says of releases, below what waits in ``changelog.d`` for the next."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
KINDS = {  # as in pyproject.toml
    "feature": "New",
    "removal": "Removed or renamed",
    "bugfix": "Mended",
    "doc": "Documentation and results",
    "misc": "Speed, structure and tests",
}
# Links in fragments and in the file start at the root of the project, those of the site at its own.
_FROM_ROOT = re.compile(r"\]\(docs/")


def _kind(fragment: Path) -> str:
    """Return the heading of a fragment, named ``ISSUE.KIND.md`` or with words and numbers between."""
    kinds = [part for part in fragment.name.split(".") if part in KINDS]
    if not kinds:
        raise ValueError(f"{fragment.name} must have one of {', '.join(KINDS)} in its name")
    return KINDS[kinds[-1]]


def _in_order(fragment: Path) -> tuple[int, str]:
    """Return a key that puts the latest first."""
    issue = fragment.name.split(".")[0]
    return (-int(issue) if issue.isdigit() else 0, fragment.name)


def unreleased() -> str:
    """Return the fragments under the headings of their kinds."""
    by_kind: dict[str, list[str]] = {heading: [] for heading in KINDS.values()}
    for fragment in sorted((ROOT / "changelog.d").glob("*.*.md"), key=_in_order):
        lines = fragment.read_text(encoding="utf-8").strip().splitlines()
        by_kind[_kind(fragment)].append("- " + "\n  ".join(lines))
    parts = [f"### {heading}\n\n" + "\n".join(entries) for heading, entries in by_kind.items() if entries]
    return "\n\n".join(["## Not released yet", *parts]) if parts else ""


def released() -> str:
    """Return the file of releases without its title, or nothing before the first."""
    file = ROOT / "CHANGELOG.md"
    return re.sub(r"^# .*\n", "", file.read_text(encoding="utf-8"), count=1) if file.exists() else ""


def _fill(_app: Any, docname: str, source: list[str]) -> None:
    """Put both below the text of the page."""
    if docname == "changelog":
        source[0] += _FROM_ROOT.sub("](", f"\n{unreleased()}\n\n{released()}\n")


def setup(app: "Sphinx") -> dict[str, bool]:
    """Connect it."""
    app.connect("source-read", _fill)
    return {"parallel_read_safe": True}
