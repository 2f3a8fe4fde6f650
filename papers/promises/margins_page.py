"""The blocks and figures of ``margins``: held share against cost (a), and both against the number of rows (e)."""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from papers.experiments import Blocks, Experiment, panels
from papers.markdown import markdown_table
from papers.promises.margins import (
    BROKEN,
    CONFIDENCE,
    COST,
    COST_SQUARED,
    DATASETS,
    DRAWS,
    FOUND,
    HELD,
    MARGINS,
    MET,
    N_BLOCKS,
    NAME,
    OURS,
    PEERS,
    PLAIN,
    REACHED,
    ROOM,
    SIZES,
    measure,
    parts,
)
from papers.promises.populations import GOALS
from papers.tables import ResultsTable

_ERRORS = 2.0
_MET_OFTEN = 0.9
_COLORS = {OURS: "#0a7d91"} | dict(zip(PEERS, ("#c2571a", "#7b4fa3", "#1b7837", "#8c6d31", "#d62728"), strict=True))


class Cell(NamedTuple):
    """One data set, size, set of goals, method and way: shares of the draws in which a rule was found."""

    dataset: str
    size: int
    goals: str
    method: str
    way: str
    n_draws: float
    n_found: float
    held: float
    reached: float
    broken: float
    met: float
    cost: float  # points of error above our plain rule
    cost_error: float
    room: float  # points of the first goal

    @property
    def held_error(self) -> float:
        """Return the standard error of the held share, by a share that is never 0 or 1."""
        share = (self.held * self.n_found + 1 / 2) / (self.n_found + 1)
        return math.sqrt(share * (1 - share) / self.n_found)

    @property
    def below(self) -> bool:
        """Tell whether the held share is more than two standard errors below the confidence."""
        return self.held + _ERRORS * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / self.n_found) < CONFIDENCE


def cells(rows: ResultsTable) -> list[Cell]:
    """Return all cells in which a rule was found."""
    totals: dict[tuple[str, str, str, str], dict[tuple[str, str], float]] = {}
    for row in rows:
        own = totals.setdefault((row.dataset, row.learner, row.split, row.method), {})
        own[row.settings, row.quantity] = own.get((row.settings, row.quantity), 0.0) + row.value
    found = []
    for (dataset, size, goals, method), own in totals.items():
        for way in (PLAIN, MARGINS):
            n_found = own.get((way, FOUND), 0.0)
            if n_found:
                shares = {name: own[way, name] / n_found for name in (HELD, REACHED, BROKEN, MET, COST, ROOM)}
                spread = max(own[way, COST_SQUARED] / n_found - shares[COST] ** 2, 0.0)
                cell = Cell(
                    dataset=dataset,
                    size=int(size),
                    goals=goals,
                    method=method,
                    way=way,
                    n_draws=own[PLAIN, DRAWS],
                    n_found=n_found,
                    held=shares[HELD],
                    reached=shares[REACHED],
                    broken=shares[BROKEN],
                    met=shares[MET],
                    cost=shares[COST],
                    cost_error=math.sqrt(spread / n_found),
                    room=shares[ROOM],
                )
                found.append(cell)
    return found


def blocks(rows: ResultsTable) -> Blocks:
    """Return the blocks of what was measured."""
    found = cells(rows)
    first = [cell for cell in found if cell.size == SIZES[0]]
    return {"methods": _methods(first), "cells": _cells(first), "below": _below(first), "rows": _rows(found)}


def _methods(found: list[Cell]) -> str:
    lines = []
    for method in (OURS, *PEERS):
        for way in (PLAIN, MARGINS):
            own = [cell for cell in found if (cell.method, cell.way) == (method, way)]
            if own:
                held, cost, met = (np.array([getattr(cell, name) for cell in own]) for name in ("held", "cost", "met"))
                n_draws = f"{min(cell.n_draws for cell in own):.0f}"
                shown = [f"{held.mean():.3f}", f"{held.min():.2f} to {held.max():.2f}", f"{cost.mean():+.2f}"]
                met_often = "" if met.min() >= _MET_OFTEN else f"{met.min():.2f}"
                lines.append(
                    [method, way, str(len(own)), n_draws, *shown, f"{cost.min():+.2f} to {cost.max():+.2f}", met_often]
                )
    heads = [
        "method",
        "bounds",
        "cells",
        "draws a cell",
        "held",
        "range",
        "cost, points",
        "range",
        "met where chosen, least",
    ]
    return markdown_table(heads, lines, n_words=2)


def _cells(found: list[Cell]) -> str:
    """Return ours by cell."""
    lines = []
    by_way = {(cell.dataset, cell.goals, cell.way): cell for cell in found if cell.method == OURS}
    for dataset, goals in dict.fromkeys((cell.dataset, cell.goals) for cell in found):
        plain, safe = (by_way.get((dataset, goals, way)) for way in (PLAIN, MARGINS))
        if plain is not None and safe is not None:
            cells_of = [f"{cell.held:.2f} ± {cell.held_error:.2f}" for cell in (plain, safe)]
            mark = "below" if safe.below else ""
            cost = f"{safe.cost:.2f} ± {safe.cost_error:.2f}"
            lines.append(
                [
                    dataset,
                    goals,
                    f"{safe.n_draws:.0f}",
                    *cells_of,
                    f"{safe.reached:.2f}",
                    f"{safe.broken:.2f}",
                    cost,
                    mark,
                ]
            )
    heads = [
        "set",
        "goals",
        "draws",
        "plain holds",
        "with margins",
        "reached",
        "reached and broken",
        "cost, points",
        "",
    ]
    return markdown_table(heads, lines, n_words=2)


def _below(found: list[Cell]) -> str:
    """Say in how many cells of ours the held share is below the confidence, and whether it was reached there."""
    own = [cell for cell in found if (cell.method, cell.way) == (OURS, MARGINS)]
    below = [cell for cell in own if cell.below]
    named = "; ".join(
        f"{cell.dataset}, {cell.goals}: held {cell.held:.2f}, reached in {cell.reached:.0%}" for cell in below
    )
    held = np.mean([cell.held for cell in own]) if own else math.nan
    return (
        f"Ours with margins: mean held share {held:.3f} over {len(own)} cells; more than two standard errors below "
        f"{CONFIDENCE:g} in {len(below)}{': ' + named if named else ''}."
    )


def _rows(found: list[Cell]) -> str:
    """Return margin, cost and held share of ours against the number of rows, means over sets."""
    lines = []
    for goals in GOALS:
        for size in sorted(SIZES):
            own = [cell for cell in found if (cell.goals, cell.size, cell.method) == (goals, size, OURS)]
            plain, safe = ([cell for cell in own if cell.way == way] for way in (PLAIN, MARGINS))
            if safe:
                means = [
                    float(np.mean([getattr(cell, name) for cell in safe]))
                    for name in ("room", "cost", "held", "reached")
                ]
                held = float(np.mean([cell.held for cell in plain]))
                n_draws = sum(cell.n_draws for cell in safe)
                cells_of = [f"{means[0]:.2f}", f"{means[1]:.2f}", f"{held:.2f}", f"{means[2]:.2f}", f"{means[3]:.2f}"]
                lines.append([goals, f"{size:,}", f"{len(safe)}", f"{n_draws:.0f}", *cells_of])
    heads = [
        "goals",
        "rows",
        "sets",
        "draws",
        "margin of the first goal, points",
        "cost, points",
        "plain holds",
        "holds",
        "reached",
    ]
    return markdown_table(heads, lines)


def figures(rows: ResultsTable) -> dict[str, Any]:
    """Return figure (a), which README shows, and figure (e)."""
    found = cells(rows)
    figure, axes = panels(2, size=(4.4, 3.6))
    for axis, way in zip(axes, (PLAIN, MARGINS), strict=True):
        axis.axhline(CONFIDENCE, color="#3a6b60", lw=1)
        for method, color in _COLORS.items():
            own = [cell for cell in found if (cell.size, cell.method, cell.way) == (SIZES[0], method, way)]
            if own:
                style = {"color": color, "markersize": 5, "alpha": 0.85, "label": method}
                axis.plot(
                    [cell.cost for cell in own], [cell.held for cell in own], "o" if method == OURS else "^", **style
                )
        axis.set(title=f"{'the bounds themselves' if way == PLAIN else 'our margins inside them'}", ylim=(0.0, 1.03))
        axis.set_xlabel("points of error above the plain rule")
        axis.set_xscale("symlog", linthresh=0.5)
    axes[0].set_ylabel("share of draws in which all goals hold")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False, fontsize="small")
    return {"promises.svg": figure, "rows.svg": _draw_rows(found)}


def _draw_rows(found: list[Cell]) -> Any:
    figure, axes = panels(2, size=(4.2, 3.2))
    for goals in GOALS:
        for axis, name in zip(axes, ("room", "cost"), strict=True):
            points = []
            for size in sorted(SIZES):
                own = [
                    cell
                    for cell in found
                    if (cell.goals, cell.size, cell.method, cell.way) == (goals, size, OURS, MARGINS)
                ]
                points += [(size, np.mean([getattr(cell, name) for cell in own]))] if own else []
            if points:
                axis.plot(*zip(*points, strict=True), "o-", markersize=4, label=goals)
    for axis, words in zip(axes, ("margin of the first goal, points", "cost, points of error"), strict=True):
        axis.set(xscale="log", xlabel="selection rows", ylabel=words, ylim=(0, None))
    axes[0].legend(frameon=False, fontsize="small")
    return figure


EXPERIMENT = Experiment(
    NAME, "held share against cost, ours and every peer", parts, measure, blocks, DATASETS, N_BLOCKS, figures
)


def _few(datasets: Any, n_seeds: int) -> list[Any]:
    """Return ours at 3,000 rows, one set of goals."""
    return [part for part in parts(datasets, n_seeds) if part.method == OURS and part.learner == str(SIZES[0])][:1]


EXPERIMENT = replace(EXPERIMENT, quick=replace(EXPERIMENT, parts=_few, datasets=("wine-quality",), n_seeds=1))
