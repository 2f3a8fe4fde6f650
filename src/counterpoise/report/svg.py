"""Figures as inline SVG: text stays text, colours follow the page, nothing in it clashes with another figure."""

import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from markupsafe import Markup, escape

# matplotlib draws with these; the page's CSS variables take their place. No two are alike, and none is pure black,
# which matplotlib leaves out of the SVG.
INK, MUTED, FAINT = "#010101", "#020202", "#030303"
SERIES = ("#040404", "#050505", "#060606")
_VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    FAINT: "var(--faint)",
    SERIES[0]: "var(--series-1)",
    SERIES[1]: "var(--series-2)",
    SERIES[2]: "var(--series-3)",
}
_WIDTH = 3.5  # inches: about 330 pixels on the page, so that a phone shows text at nearly its full size
_POINTS_PER_INCH = 72
_SETTINGS: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.labelsize": 9.0,
    "axes.titlesize": 9.0,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.h_pad": 0.02,
    "figure.constrained_layout.w_pad": 0.02,
    "font.size": 9.0,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "counterpoise",
    "text.color": INK,
    "text.parse_math": False,  # names may hold dollar signs
    "xtick.color": MUTED,
    "xtick.labelsize": 8.5,
    "xtick.labelcolor": INK,
    "ytick.color": MUTED,
    "ytick.labelsize": 8.5,
    "ytick.labelcolor": INK,
}
_TAG = re.compile(r"<[^<>]+>")  # text has &lt; and &gt; in their place
_NAME = re.compile(r'(\sid="|href="#|url\(#)')
_FONT = re.compile(r"font-family: [^;\"]+;? ?|font: ")


def draw(name: str, title: str, message: str, fill: Callable[[Any], None], *, height: float = 2.2) -> Markup:
    """Return the figure that ``fill`` draws into its axes.

    Parameters
    ----------
    name : str
        Of letters and hyphens, unlike that of any other figure on the page: the prefix of all names inside.
    title, message : str
        What a reader hears who does not see the figure.
    fill : callable
        Draws into the axes it is given, in the colours of this module.
    height : float
        In inches.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 - heavy, and optional

    with _plain_style():
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        fill(figure.subplots())
        stream = io.StringIO()
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    body = stream.getvalue().partition("</metadata>")[2].rpartition("</svg>")[0]
    body = re.sub(r"<style.*?</style>|<!--.*?-->", "", body, flags=re.DOTALL)
    return Markup(
        '<svg role="img" aria-labelledby="{0}-title {0}-desc" viewBox="0 0 {1:g} {2:g}">'
        '<title id="{0}-title">{3}</title><desc id="{0}-desc">{4}</desc>{5}</svg>'
    ).format(
        name,
        _WIDTH * _POINTS_PER_INCH,
        height * _POINTS_PER_INCH,
        escape(title),
        escape(message),
        Markup(_TAG.sub(lambda tag: _adapted(tag[0], name), _compact(body))),  # noqa: S704 - matplotlib escaped the text inside
    )


@contextmanager
def _plain_style() -> Iterator[None]:
    """Draw the same whatever style the user has set."""
    import matplotlib as mpl  # noqa: PLC0415 - heavy, and optional

    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        # Text is drawn by the browser, with fonts of its own.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def _adapted(tag: str, name: str) -> str:
    for colour, variable in _VARIABLES.items():
        tag = tag.replace(colour, variable)
    tag = _NAME.sub(rf"\g<1>{name}-", tag)
    return _FONT.sub("", tag).replace("xlink:href", "href")


def _compact(body: str) -> str:
    return re.sub(r"\s*\n\s*", " ", body).strip()
