"""Figure (b): ours and every peer at equal values, as an equivalence test; a function of the table."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from papers.arrays import FloatArray
from papers.comparison.experiment import (
    DATASETS,
    METHODS,
    N_SEEDS,
    NAME,
    QUICK_SIZES,
    SECONDS,
    is_final,
    measure,
    wanted,
)
from papers.comparison.methods import OURS_NAME, Method
from papers.comparison.peers import PEERS
from papers.comparison.questions import GOALS, Question
from papers.comparison.verdicts import WIDTH, WORDS, Measured, Verdict, bound_of, counted, in_all, verdicts
from papers.experiments import Blocks, Experiment, panels
from papers.markdown import markdown_table
from papers.tables import ResultsTable

_COLORS = {"equivalent": "#0a7d91", "ours less": "#1b7837", "ours more": "#c2571a", "undecided": "#999999"}
_SHOWN = 5.0  # points


def blocks(rows: ResultsTable) -> Blocks:
    """Return the blocks of what was measured."""
    found = counted(verdicts(Measured(rows)))
    return {"ran": _ran(rows), "equivalence": _equivalence(found), "kept": _kept(Measured(in_all(rows)), rows)}


def _ran(rows: ResultsTable) -> str:
    """Say which sets were run, and how many splits they have: a stopped run has fewer of both."""
    by_set = {name: len({row.seed for row in rows.where(dataset=name)}) for name in DATASETS}
    some = ", ".join(f"{name} {count}" for name, count in by_set.items() if count)
    absent = ", ".join(name for name, count in by_set.items() if not count) or "none"
    return f"Splits: {some}. Sets not run: {absent}."


def _equivalence(found: list[Verdict]) -> str:
    lines = []
    for peer in PEERS:
        own = [verdict for verdict in found if verdict.peer == peer.name]
        if own:
            cells = [str(sum(verdict.word == word for verdict in own)) for word in WORDS]
            widest = max((verdict.high - verdict.low) / 2 for verdict in own)
            chooses = "the same scores" if peer.on_scores else "training"
            lines.append([peer.name, chooses, str(len(own)), *cells, f"{widest:.1f}"])
    alike = [verdict for verdict in found if METHODS[verdict.peer].on_scores]
    n_alike = sum(verdict.word == WORDS[0] for verdict in alike)
    heads = ["peer", "chooses by", "pairs", *WORDS, "widest interval, ±"]
    return (
        f"{markdown_table(heads, lines, n_words=2)}\n\nOf the {len(alike)} pairs with a peer on the same scores "
        f"{n_alike} are equivalent within {WIDTH:g} point."
    )


def _kept(measured: Measured, rows: ResultsTable) -> str:
    """Say how often bounds hold on test rows, of methods that take them, and what an answer takes."""
    lines = []
    for method in METHODS.values():
        inside = [_excess(measured, question, method) <= 0 for question in GOALS.values()]
        asked = [kept for kept in inside if kept.size]
        if asked:
            seconds = [row.value for row in rows.where(method=method.name, quantity=SECONDS) if row.learner in GOALS]
            share = f"{np.mean([kept.mean() for kept in asked]):.2f}"
            lines.append([method.name, str(len(asked)), share, f"{np.median(seconds):.2g}"])
    return markdown_table(["method", "questions", "bounds that hold on test rows", "seconds an answer"], lines)


def _excess(measured: Measured, question: Question, method: Method) -> FloatArray:
    """Return by how much the values of all sets, splits and bounds are beyond the bounds that everyone is asked for."""
    if question.name not in method.bounded:
        return np.empty(0)
    sign = -1 if question.is_floor else 1
    found = [
        next(iter(split.values())) - sign * bound_of(point)
        for dataset in measured.datasets
        for point, splits in measured.points(dataset, question.name, method.name).items()
        if bound_of(point) in question.bounds
        for split in splits.values()
    ]
    return np.array(found)


def figures(rows: ResultsTable) -> dict[str, Any]:
    """Return all pairs as intervals."""
    found = sorted(
        counted(verdicts(Measured(rows))), key=lambda verdict: (list(METHODS).index(verdict.peer), verdict.mean)
    )
    figure, (axis,) = panels(1, size=(7.5, 6.0))
    axis.axvspan(-WIDTH, WIDTH, color="#e3f1ee", lw=0)
    ticks: dict[str, list[int]] = {}
    for place, verdict in enumerate(found):
        ends = np.clip([verdict.low, verdict.high], -_SHOWN, _SHOWN)
        axis.plot(ends, [place, place], color=_COLORS[verdict.word], lw=1.2)
        axis.plot(np.clip(verdict.mean, -_SHOWN, _SHOWN), place, ".", color=_COLORS[verdict.word], markersize=3)
        ticks.setdefault(verdict.peer, []).append(place)
    axis.set_yticks([float(np.mean(places)) for places in ticks.values()], list(ticks))
    for word, color in _COLORS.items():
        axis.plot([], [], color=color, label=word)
    axis.legend(frameon=False, fontsize="small")
    axis.set(xlabel=f"cost of ours less the peer's at equal value, points (95 %); shaded: within {WIDTH:g}")
    return {"comparison.svg": figure}


EXPERIMENT = Experiment(
    NAME, f"{OURS_NAME} against every peer", wanted, measure, blocks, DATASETS, N_SEEDS, figures, is_final=is_final
)
EXPERIMENT = replace(
    EXPERIMENT,
    quick=replace(EXPERIMENT, measure=partial(measure, sizes=QUICK_SIZES), datasets=("COMPAS",), n_seeds=1),
)
