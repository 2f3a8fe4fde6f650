"""The explorer as one file that works from disk: answers for a grid of tails and bounds, computed beforehand."""

import json
from collections.abc import Iterator, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np

from counterpoise.explorer.assets import asset
from counterpoise.explorer.description import describe
from counterpoise.explorer.session import Session
from counterpoise.explorer.setting import AskedGoal, Setting
from counterpoise.explorer.told import curve
from counterpoise.explorer.views import shown
from counterpoise.explorer.words import numbers
from counterpoise.mixtures.answers import TRAIN

PAGE = "explorer.html"
_MOST_ANSWERS = 240
_ALPHAS = np.geomspace(0.05, 1.0, 7)
_CURVE = np.geomspace(0.01, 1.0, 20)
_LEVELS = 5, 4, 3  # bounds from the tightest to where a goal costs nothing: as many as can be combined with all others
_Goals = tuple[AskedGoal, ...]


def write_interactive(run_folder: str | Path, output: str | Path | None = None) -> Path:
    """Write the explorer of a run as one file that needs no server, and return its path.

    Parameters
    ----------
    run_folder : path
        What ``counterpoise fit`` wrote. Its data files must be where they were.
    output : path, optional
        Where the page goes. Default: ``explorer.html`` in the run folder.

    Returns
    -------
    Path
        Of a page that holds all it needs: no network, and of the rows only sums over groups of ten or more.
    """
    from counterpoise.explorer.source import session_of_run  # noqa: PLC0415 - heavy: only where asked
    from counterpoise.runs import open_run  # noqa: PLC0415 - as above
    from counterpoise.runs.output import check_place, write_output  # noqa: PLC0415 - as above

    path = open_run(run_folder).folder / PAGE if output is None else Path(output)
    check_place(path)
    write_output(path, page_of(session_of_run(run_folder)).encode())
    return path


def page_of(session: Session) -> str:
    """Return the page of a session, with answers for a grid of settings around that of its model, and for no others."""
    answers = list(_answers(session))
    start = session.start
    fixed = {"settings": len(answers), "by": list(start.by), "budget": start.budget, "defer": start.defer}
    hello = describe(session) | {"type": "hello", "exports": [], "by": [], "is_file": True, "file": fixed}
    # a page that is read from a file must not end its script early, whatever texts it holds
    kept = json.dumps({"hello": hello, "answers": answers}, allow_nan=False, separators=(",", ":")).replace(
        "<", "\\u003c"
    )
    text = asset("index.html").decode()
    style, script = asset("explorer.css").decode(), asset("explorer.js").decode()
    text = text.replace('<link rel="stylesheet" href="explorer.css">', f"<style>\n{style}</style>")
    text = text.replace('data-socket="socket"', 'data-static="explorer-data"')
    text = text.replace('<script type="module" src="explorer.js"></script>\n', "")
    data = f'<script type="application/json" id="explorer-data">{kept}</script>'
    return text.replace("</body>", f'{data}\n<script type="module">\n{script}</script>\n</body>')


def _settings(session: Session) -> list[Setting]:
    """Return the setting of the model first, then others around it: all bounds together where they are few."""
    start = session.start
    alphas: Sequence[float | None] = [start.alpha]
    if start.alpha is not None and not session.decides_by_one_rule:
        alphas = sorted({float(f"{one:.3g}") for one in _ALPHAS} | {start.alpha})
    some = _goals(session, _MOST_ANSWERS // len(alphas))
    others = [Setting(alpha, start.budget, goals, start.by, start.defer) for alpha in alphas for goals in some]
    return list(dict.fromkeys([start, *others]))


def _goals(session: Session, most: int) -> list[_Goals]:
    """Return the goals of the model with other bounds, and with each of them off."""
    own = session.start.goals
    off = _one_at_a_time(own, [[one._replace(on=False)] for one in own])
    ends = _ends(session)
    together = (product(*_moved(own, ends, n_levels)) for n_levels in _LEVELS)
    enough = (found for some in together if len(found := list(islice(some, most + 1))) + len(off) <= most)
    chosen = next(enough, None) or _one_at_a_time(own, _moved(own, ends, _LEVELS[0]))
    return list(dict.fromkeys([own, *chosen, *off]))[:most]


def _one_at_a_time(own: _Goals, others: Sequence[Sequence[AskedGoal]]) -> list[_Goals]:
    """Return the goals with one of them replaced, by each of those that may stand in its place."""
    return [(*own[:place], one, *own[place + 1 :]) for place, some in enumerate(others) for one in some]


def _ends(session: Session) -> list[tuple[float, float] | None]:
    """Return for each goal its tightest bound that can be met and where it costs nothing; None where not told."""
    start = session.start
    found = {one["place"]: one for one in shown(session, start, "ranges").get("ranges", [])}
    known = [found.get(place, {}) for place in range(len(start.goals))]
    ends = [(one.get("tightest"), one.get("free")) for one in known]
    return [None if tight is None or free is None else (float(tight), float(free)) for tight, free in ends]


def _moved(own: _Goals, ends: Sequence[tuple[float, float] | None], n_levels: int) -> list[list[AskedGoal]]:
    """Return each goal with bounds evenly between its ends, and with its own."""
    found = []
    for one, between in zip(own, ends, strict=True):
        levels = [] if between is None else [float(f"{level:.6g}") for level in np.linspace(*between, n_levels)]
        bounds = sorted({*levels, one.goal.bound})
        found.append([one._replace(goal=one.goal.with_bound(bound)) for bound in bounds])
    return found


def _answers(session: Session) -> Iterator[dict[str, Any]]:
    """Yield the answer to each setting; whether goals can be met does not depend on the tail, so it is found once."""
    unmet: dict[_Goals, dict[str, Any]] = {}
    for setting in _settings(session):
        told = unmet.get(setting.goals) or session.answer(setting, exact=True)
        if told["kind"] == "unmet":
            told = session.conflict(setting)
        if told["kind"] == "answer":
            views = _views(session, setting)
            # what is seen first is the verdict of the library's own audit, as the run says it, and no quick one
            exact = zip(told["goals"], views["verdicts"]["verdicts"], strict=True)
            yield told | {"goals": [goal | {"held_out": verdict} for goal, verdict in exact], "views": views}
        else:
            unmet[setting.goals] = told
            yield told | {"setting": setting.as_words(), "ways": []}  # whose bounds the file has no answers for


def _views(session: Session, setting: Setting) -> dict[str, Any]:
    """Return the loss of every tail of ten rows or more, and the verdicts that the page shows when nothing moves."""
    found = session.recent(setting)
    rows = "chosen_on" if session.parts.held_out is None else "held_out"
    own = getattr(found.state, rows)[TRAIN]
    tails = _CURVE[session.least_alpha <= _CURVE]
    lines = {"mixture": found.solved, "plain": found.state.usual}
    points = {"alphas": numbers(tails), "best": [], "rows": rows}
    points |= {name: numbers(curve(own, solved, tails)) for name, solved in lines.items()}
    return {"curve": points, "verdicts": shown(session, setting, "verdicts")}
