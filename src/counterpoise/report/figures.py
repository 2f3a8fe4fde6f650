"""The figures of a report: small, one message each, drawn by the displays as inline SVG.

Text stays text, colours follow the page, and nothing in a figure clashes with another.
"""

import io
import math
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup, escape

from counterpoise._base.types import ArrayLike
from counterpoise.displays import CVaRCurveDisplay, RateDisplay, TradeoffDisplay
from counterpoise.report.wording import fraction, number, percent, shorten, shorten_apart
from counterpoise.rules.tradeoff import Tradeoff, TradeoffPoint
from counterpoise.runs.result import Cut
from counterpoise.theory.risks import Mean

# matplotlib draws with these; the page's CSS variables take their place. No two are alike, and none is pure black,
# which matplotlib leaves out of the SVG.
INK, MUTED, FAINT = "#010101", "#020202", "#030303"
SERIES = ("#040404", "#050505", "#060606")
_NAMES = ("ink", "muted", "faint", "series-1", "series-2", "series-3")
_VARIABLES = {one: f"var(--{name})" for one, name in zip((INK, MUTED, FAINT, *SERIES), _NAMES, strict=True)}
_WIDTH = 3.5  # inches: about 330 pixels on the page, so that a phone shows text at nearly its full size
_POINTS_PER_INCH = 72
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
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415 - heavy, and optional
    from matplotlib.figure import Figure  # noqa: PLC0415

    with _plain_style():
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        axes = figure.subplots()
        fill(axes)
        for patch in (figure.patch, axes.patch):
            patch.set(facecolor="none", edgecolor="none")
        stream = io.StringIO()
        # Not by savefig, which draws each figure twice: the first time into nothing, for its layout.
        FigureCanvasSVG(figure).print_svg(stream, metadata={"Date": None, "Creator": None})  # type: ignore[no-untyped-call]
    body = stream.getvalue().partition("</metadata>")[2].rpartition("</svg>")[0]
    body = re.sub(r"<style.*?</style>|<!--.*?-->", "", body, flags=re.DOTALL)
    body = re.sub(r"\s*\n\s*", " ", body).strip()
    drawn = Markup(_TAG.sub(lambda tag: _adapt(tag[0], name), body))  # noqa: S704 - matplotlib escaped the text inside
    return Markup(
        '<svg role="img" aria-labelledby="{0}-title {0}-desc" viewBox="0 0 {1:g} {2:g}">'
        '<title id="{0}-title">{3}</title><desc id="{0}-desc">{4}</desc>{5}</svg>'
    ).format(name, _WIDTH * _POINTS_PER_INCH, height * _POINTS_PER_INCH, escape(title), escape(message), drawn)


@contextmanager
def _plain_style() -> Iterator[None]:
    """Draw the same whatever style the user has set."""
    import matplotlib as mpl  # noqa: PLC0415 - heavy, and optional

    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rc_file(Path(__file__).with_suffix(".mplstyle"), use_default_template=False)
        # Text is drawn by the browser, with fonts of its own.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def _adapt(tag: str, name: str) -> str:
    for colour, variable in _VARIABLES.items():
        tag = tag.replace(colour, variable)
    tag = _NAME.sub(rf"\g<1>{name}-", tag)
    return _FONT.sub("", tag).replace("xlink:href", "href")


_LABEL = 20  # letters of a name beside an axis
_UPRIGHT = 25  # letters along the upright axis, which is short
_FAINTEST = 0.25  # line of a threshold
_ROW = 0.2  # inches, for each dot
_FRAME = 0.62  # inches, for the axis below
_STYLES = ({"linestyle": "-"}, {"linestyle": "--"}, {"linestyle": ":"})  # lines differ without colour too
MOST_CURVES = len(_STYLES)
_MOST_DOTS, _MOST_LABELS, _SHORT = 40, 3, 12  # batches that get a dot, and a label beside the axis of so many letters
_TICKS = (0.01, 0.03, 0.1, 0.3, 1.0)
_LEAST_SPAN = 0.05  # of an upright axis, as a part of its largest value
_SWAPS = ("new one is right", "old one was right", "neither")
_SIDE = {">=": "at least", "<=": "at most"}


Point = tuple[float, float, float]  # of a frontier: bound, least value, proven lower value


class Dot(NamedTuple):
    """An estimate with its interval, and what it is compared with."""

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    other: float = math.nan  # of plain training


def goal_figure(name: str, text: str, dots: Sequence[Dot], bound: float, sense: str) -> Markup:
    """Draw the estimates of a goal on each split with their intervals, and the side of the bound that is allowed."""

    def fill(ax: Any) -> None:
        _dots(ax, dots, "")
        others = [dot.other for dot in dots]
        ax.plot(others, range(len(dots)), "D", color=SERIES[1], fillstyle="none")
        ax.axvline(bound, color=INK, linewidth=1, linestyle=(0, (3, 2)))
        low, high = _limits([bound, *others, *(end for dot in dots for end in (dot.value, dot.low, dot.high))])
        ax.set_xlim(low, high)
        if sense:
            ax.axvspan(*((bound, high) if sense == ">=" else (low, bound)), color=FAINT, alpha=0.35, linewidth=0)
        ax.set_xlabel(f"shaded: allowed, {_SIDE[sense]} {number(bound)}" if sense else f"bound {number(bound)}")

    values = "; ".join(f"{dot.name} {number(dot.value)}, from {number(dot.low)} to {number(dot.high)}" for dot in dots)
    message, height = f"{values}. The bound is {number(bound)}.", _FRAME + _ROW * len(dots)
    return draw(name, f"Estimates and intervals of {text}", message, fill, height=height)


def inside_figure(dots: Sequence[Dot], rows: str) -> Markup:
    """Draw how far inside of its bound each goal is, with its interval; what is left of 0 misses it."""

    def fill(ax: Any) -> None:
        _dots(ax, dots, "")
        low, high = _limits([0.0, *(end for dot in dots for end in (dot.value, dot.low, dot.high))])
        ax.axvspan(0.0, high, color=FAINT, alpha=0.35, linewidth=0)
        ax.axvline(0.0, color=INK, linewidth=1, linestyle=(0, (3, 2)))
        ax.set_xlim(low, high)
        ax.set_xlabel(f"missed | inside of the bound by, {rows} rows")

    values = "; ".join(f"{dot.name} {number(dot.value)}, from {number(dot.low)} to {number(dot.high)}" for dot in dots)
    message = f"Inside of the bound, or below 0 outside: {values}."
    return draw(
        "inside", "How far inside of their bounds the goals are", message, fill, height=_FRAME + _ROW * len(dots)
    )


def swap_figure(changes: Mapping[str, tuple[float, float, float]]) -> Markup:
    """Draw how many decisions change, and for how many of these the new one, or the old one, is right."""

    def fill(ax: Any) -> None:
        names, left = list(changes), np.zeros(len(changes))
        for place, (label, colour) in enumerate(zip(_SWAPS, SERIES, strict=True)):
            counts = np.array([change[place] for change in changes.values()])
            if counts.any():
                ax.barh(range(len(names)), counts, left=left, color=colour, label=label, height=0.6)
            left = left + counts
        ax.set_yticks(range(len(names)), labels=[shorten(name, _LABEL) for name in names])
        ax.invert_yaxis()
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        ax.locator_params(axis="x", nbins=4)
        ax.set_xlabel("people whose decision changes")
        ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize="small")

    words = "; ".join(
        f"{name}: {sum(change):,.0f} people, of whom {change[0]:,.0f} rightly" for name, change in changes.items()
    )
    return draw("swaps", "Decisions that change", f"{words}.", fill, height=_FRAME + 0.35 + 1.6 * _ROW * len(changes))


def band_figure(
    name: str,
    text: str,
    standings: Sequence[Mapping[str, float]],
    labels: Sequence[str],
    bound: float,
    sense: str,
    marks: Mapping[str, int],
) -> Markup:
    """Draw the estimate of a goal and its confidence sequence after each batch, and the side of the bound allowed.

    ``standings`` have ``estimate``, ``low`` and ``high``; ``marks`` are the numbers of batches, by what happened there.
    """
    places = np.arange(1, len(standings) + 1)
    estimate, low, high = (np.array([one[part] for one in standings]) for part in ("estimate", "low", "high"))

    def fill(ax: Any) -> None:
        settled = slice(len(places) // 4, None)  # the first intervals are wide
        ends = _limits([bound, *estimate, *low[settled], *high[settled]])
        ax.fill_between(places, np.clip(low, *ends), np.clip(high, *ends), color=SERIES[0], alpha=0.25, linewidth=0)
        ax.plot(places, estimate, color=SERIES[0], marker="." if len(places) < _MOST_DOTS else "")
        ax.axhline(bound, color=INK, linewidth=1, linestyle=(0, (3, 2)))
        if sense:
            ax.axhspan(*((bound, ends[1]) if sense == ">=" else (ends[0], bound)), color=FAINT, alpha=0.35, linewidth=0)
        for (what, place), style in zip(marks.items(), _STYLES, strict=False):
            ax.axvline(place, color=SERIES[1], linewidth=1.2, label=what, **style)
        shown = np.unique(np.linspace(0, len(places) - 1, _MOST_LABELS).round().astype(int))
        ax.set_xticks(places[shown], labels=[shorten(labels[place], _SHORT) for place in shown.tolist()])
        ax.set(ylim=ends, xlim=(0.5, len(places) + 0.5))
        ax.set_xlabel(f"shaded grey: allowed, {_SIDE.get(sense, 'near')} {number(bound)}")
        if marks:
            ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(marks))

    values = f"after {labels[-1]}: {number(estimate[-1])}, from {number(low[-1])} to {number(high[-1])}"
    happened = "".join(f" {what.capitalize()}: {labels[place - 1]}." for what, place in marks.items())
    return draw(name, f"{text} over time", f"Estimate {values}. The bound is {number(bound)}.{happened}", fill)


def cvar_figure(
    name: str,
    rows: str,
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    alpha: float | None,
    loss: str = "share wrong",
) -> Markup:
    """Draw the CVaR curves of several methods, and the requested tail fraction."""

    def fill(ax: Any) -> None:
        for (label, (alphas, values)), colour, style in zip(curves.items(), SERIES, _STYLES, strict=False):
            CVaRCurveDisplay(alphas=alphas, cvar=values, name=label).plot(ax, color=colour, **style)
        if alpha is not None:
            ax.axvline(alpha, color=MUTED, linewidth=0.8, zorder=0)
        ax.set_xticks(_TICKS, labels=[f"{100 * tick:g} %" for tick in _TICKS], minor=False)
        ax.set_xticks([], minor=True)
        ax.set(xlim=(0.0095, 1.02), title=f"{rows} rows", ylabel=f"{loss} there (CVaR)")
        ax.set_xlabel("worst-off part of the rows")

    levels = sorted({level for level in (0.01, alpha, 1.0) if level is not None})
    sentences = []
    for level in levels:
        values = ", ".join(f"{label} {percent(_at(curve, level))}" for label, curve in curves.items())
        sentences.append(f"Worst-off {fraction(level)}: {values}.")
    return draw(name, f"CVaR of the {loss} on the {rows} rows", " ".join(sentences), fill)


def rate_figure(name: str, rate: str, dots: Sequence[Dot], show: Callable[[float], str]) -> Markup:
    """Draw one rate of every group; the first is that of all rows."""

    def fill(ax: Any) -> None:
        _dots(ax, dots, rate)
        ax.axvline(dots[0].value, color=MUTED, linewidth=0.8, linestyle=":", zorder=0)
        values = [dot.value for dot in dots]
        inside = (min(0.0, *values), max(1.0, *values))  # shares, but for some metrics of a user's own
        ax.set_xlim(*_limits([end for dot in dots for end in (dot.value, dot.low, dot.high)], inside))

    rates = "; ".join(f"{dot.name} {show(dot.value)}" for dot in dots)
    return draw(name, f"{rate} by group".capitalize(), f"{rates}.", fill, height=_FRAME + _ROW * len(dots))


def score_figure(
    name: str, text: str, counts: Mapping[str, Sequence[float]], ends: tuple[float, float], rules: Sequence[Cut]
) -> Markup:
    """Draw how the scores of each class are spread in a group, and where rules cut and defer, the likelier the darker.

    Of intervals that are deferred the shades add up.
    """
    defers = any(math.isfinite(one.lower) for one in rules)

    def fill(ax: Any) -> None:
        for (label, bars), colour, style in zip(counts.items(), SERIES, _STYLES, strict=False):
            total = sum(bars) or 1.0
            edges = np.linspace(*ends, len(bars) + 1)
            ax.stairs([bar / total for bar in bars], edges, color=colour, label=label, linewidth=1.4, **style)
        for one in rules:
            faint = max(one.share, _FAINTEST)
            ax.axvline(one.threshold, color=INK, linewidth=1.2, alpha=faint)
            if math.isfinite(one.lower):
                ax.axvline(one.lower, color=INK, linewidth=1.2, alpha=faint, linestyle=(0, (2, 2)))
                ax.axvspan(one.lower, one.threshold, color=FAINT, alpha=0.6 * one.share, linewidth=0, zorder=0)
        ax.set(title=shorten(text, 2 * _LABEL), ylabel="part of its class")
        ax.set_xlabel("score; shaded: deferred" if defers else "score; upright: thresholds")
        ax.set_yticks([])
        ax.legend(frameon=False, loc="upper center")

    cuts = "; ".join(f"{_cut_text(one)} for {percent(one.share)} of the people" for one in rules)
    return draw(name, f"Scores of {text} by class", f"Thresholds: {cuts or 'none inside'}.", fill)


def _cut_text(one: Cut) -> str:
    return number(one.threshold) + (f" (deferred from {number(one.lower)})" if math.isfinite(one.lower) else "")


def deferral_figure(
    name: str, rows: str, limits: Sequence[float], lines: Mapping[str, Sequence[float]], now: float
) -> Markup:
    """Draw losses against how many rows may be deferred, and how many are."""

    def fill(ax: Any) -> None:
        for (label, values), colour, style in zip(lines.items(), SERIES, _STYLES, strict=False):
            ax.plot([100 * limit for limit in limits], values, marker=".", color=colour, label=label, **style)
        if math.isfinite(now):
            ax.axvline(100 * now, color=MUTED, linewidth=0.8, zorder=0)
        ax.set(xlabel="deferred at most, % of the rows", ylabel=f"on the {rows} rows")
        ax.set_ylim(bottom=0.0)
        ax.legend(frameon=False)

    sentences = []
    for place in (0, -1):
        values = ", ".join(f"{label} {percent(some[place])}" for label, some in lines.items())
        sentences.append(f"At most {percent(limits[place])} deferred: {values}.")
    return draw(name, f"Losses on the {rows} rows against deferred rows", " ".join(sentences), fill)


def frontier_figure(
    name: str, text: str, points: Sequence[Point], least: str, show: Callable[[float], str], bound: float
) -> Markup:
    """Draw how small the objective can be against a goal's bound: triples of bound, value and proven lower value."""
    curve = Tradeoff(tuple(TradeoffPoint(*point, math.nan, 0, None) for point in points), None, Mean())

    def fill(ax: Any) -> None:
        TradeoffDisplay(tradeoff=curve).plot(ax, color=SERIES[0])
        ax.locator_params(axis="x", nbins=5)
        values = [value for _, value, _ in points]
        middle, half = (min(values) + max(values)) / 2, _LEAST_SPAN * max(map(abs, values)) / 2
        if max(values) - min(values) < 2 * half:  # else noise looks like a slope
            ax.set_ylim(middle - half, middle + half)
        if math.isfinite(bound):
            ax.axvline(bound, color=INK, linewidth=1, linestyle=(0, (3, 2)))
        ax.set_xlabel("bound of the goal" + (f"; requested: {number(bound)}" if math.isfinite(bound) else ""))
        ax.set_ylabel(textwrap.fill(shorten(least, 2 * _UPRIGHT), _UPRIGHT), parse_math=False)

    values = "; ".join(f"bound {number(edge)}: {show(value)}" for edge, value, _ in some(points))
    return draw(name, f"The {least} against the bound of {text}", f"{values}.", fill)


def alternatives_figure(
    name: str, series: Mapping[str, Sequence[tuple[Dot, Dot]]], disparity: str, performance: str
) -> Markup:
    """Draw performance against disparity, both with intervals where there are some."""

    def fill(ax: Any) -> None:
        for (label, pairs), colour, marker in zip(series.items(), SERIES, "Do^", strict=False):
            across, up = ([pair[place] for pair in pairs] for place in (0, 1))
            places = [dot.value for dot in across], [dot.value for dot in up]
            ends = [np.abs([[dot.value - dot.low, dot.high - dot.value] for dot in dots]).T for dots in (across, up)]
            if all(np.isfinite(end).all() for end in ends):
                ax.errorbar(*places, xerr=ends[0], yerr=ends[1], fmt="none", color=colour, alpha=0.35, linewidth=0.8)
            ax.plot(*places, linestyle="none", marker=marker, markersize=4, color=colour, label=label)
        ax.set_xlabel(textwrap.fill(shorten(disparity, 2 * _LABEL + _UPRIGHT), 2 * _LABEL), parse_math=False)
        ax.set_ylabel(textwrap.fill(shorten(performance, 2 * _UPRIGHT), _UPRIGHT), parse_math=False)
        ax.legend(frameon=False, fontsize="small")

    dots = [(label, pair) for label, pairs in series.items() for pair in pairs]
    values = "; ".join(f"{label}: {number(one.value)}, {number(other.value)}" for label, (one, other) in dots)
    return draw(name, f"{performance} against {disparity}", f"{values}.", fill, height=2.6)


def some(points: Sequence[Point], most: int = 5) -> list[Point]:
    """Return a few of many points: the ends and some between."""
    places = np.unique(np.linspace(0, len(points) - 1, most).round().astype(int))
    return [points[place] for place in places.tolist()]


def _dots(ax: Any, dots: Sequence[Dot], rate: str) -> None:
    names = shorten_apart([dot.name for dot in dots], _LABEL)
    values, low, high = (np.array([getattr(dot, part) for dot in dots]) for part in ("value", "low", "high"))
    display = RateDisplay(groups=names, rates=values, low=low, high=high, rate=rate)
    display.plot(ax, color=SERIES[0], elinewidth=1.4)
    ax.tick_params(axis="y", length=0)
    ax.locator_params(axis="x", nbins=5)
    ax.spines["left"].set_visible(False)


def _limits(values: Sequence[float], inside: tuple[float, float] = (-math.inf, math.inf)) -> tuple[float, float]:
    """Return the range of the numbers there are, with some air, and not beyond what is possible."""
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    air = 0.06 * (high - low) or 0.05
    return max(low - air, inside[0] - 0.02), min(high + air, inside[1] + 0.02)


def _at(curve: tuple[ArrayLike, ArrayLike], alpha: float) -> float:
    alphas, values = np.asarray(curve[0]), np.asarray(curve[1])
    near = int(np.abs(alphas - alpha).argmin())
    return float(values[near]) if math.isclose(alphas[near], alpha) else math.nan
