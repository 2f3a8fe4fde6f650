"""Draw the recall of each month of the guide to health screening, with its interval.

Run as ``python docs/figures/months.py``; it runs the code of the page, and writes ``months.svg`` beside itself.
"""

import doctest
from pathlib import Path
from typing import Any

import matplotlib as mpl

HERE = Path(__file__).parent


def main() -> None:
    """Run the page up to its display, and draw that again."""
    page = (HERE.parent / "guide" / "jobs" / "screening.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples(page):
        exec(compile(example.source, "screening.md", "exec"), names)  # noqa: S102 - our own page
        if "display" in names:
            break
    mpl.rcParams["svg.hashsalt"] = "months"  # the same file each time
    display = names["display"].plot(color="#0a7d91")
    display.ax_.axvline(0.85, color="#c2571a", linestyle="--")
    display.figure_.set_size_inches(6.0, 2.8)
    display.figure_.savefig(HERE / "months.svg", metadata={"Date": None})


if __name__ == "__main__":
    mpl.use("svg")
    main()
