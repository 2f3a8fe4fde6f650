"""The explorer as one file that works from disk: answers for a grid of tails and bounds, computed beforehand."""

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from counterpoise.explorer.assets import asset
from counterpoise.explorer.description import describe
from counterpoise.explorer.session import Session
from counterpoise.explorer.setting import AskedGoal, Setting
from counterpoise.explorer.told import curve
from counterpoise.explorer.views import shown
from counterpoise.explorer.words import number, numbers
from counterpoise.mixtures.answers import TRAIN

PAGE = "explorer.html"
_MOST_ANSWERS = 240
_ALPHAS = np.geomspace(0.05, 1.0, 7)
_CURVE = np.geomspace(0.01, 1.0, 20)
_LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the way from the tightest bound to where a goal costs nothing
_NOT_MET = "No mixture meets these bounds together. Move one of them back."


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
    from counterpoise.runs.output import check_place, write_output  # noqa: PLC0415 - as above

    path = Path(run_folder) / PAGE if output is None else Path(output)
    check_place(path)
    write_output(path, page_of(session_of_run(run_folder)).encode())
    return path


def page_of(session: Session) -> str:
    """Return the page of a session, with answers for a grid of settings around that of its model."""
    hello = describe(session) | {"type": "hello", "exports": [], "by": [], "is_file": True}
    answers = [_answer(session, setting) for setting in _settings(session)]
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


def _settings(session: Session) -> Iterator[Setting]:
    """Yield the setting of the model first, then others around it: all bounds together where they are few."""
    start = session.start
    yield start
    alphas = [start.alpha] if start.alpha is None else sorted({float(f"{one:.3g}") for one in _ALPHAS} | {start.alpha})
    levels = _levels(session, start)
    n_all = len(alphas) * int(np.prod([len(one) for one in levels]))
    if n_all <= _MOST_ANSWERS:
        chosen = list(product(*levels))
    else:  # one at a time
        own = tuple(one.goal.bound for one in start.goals)
        moved = [(*own[:place], bound, *own[place + 1 :]) for place, one in enumerate(levels) for bound in one]
        chosen = list(dict.fromkeys([own, *moved]))[: _MOST_ANSWERS // len(alphas)]
    for alpha in alphas:
        for bounds in chosen:
            goals = zip(start.goals, bounds, strict=True)
            moved_goals = tuple(AskedGoal(one.goal.with_bound(bound), one.on) for one, bound in goals)
            yield Setting(alpha, start.budget, moved_goals, start.by, start.defer)


def _levels(session: Session, start: Setting) -> list[list[float]]:
    """Return for each goal the bounds to compute: from the tightest that can be met to where it costs nothing."""
    ranges = {one["place"]: one for one in shown(session, start, "ranges").get("ranges", [])}
    n_goals = len(start.goals)
    steps = _LEVELS if n_goals <= 2 else _LEVELS[::2]  # noqa: PLR2004 - more of them would be too many together
    found = []
    for place, one in enumerate(start.goals):
        own, known = one.goal.bound, ranges.get(place)
        if known is None or known["tightest"] is None or known["free"] is None:
            found.append([own])
            continue
        tight, free = float(known["tightest"]), float(known["free"])
        moved = {float(f"{tight + step * (free - tight):.4g}") for step in steps}
        found.append(sorted(moved | {own}))
    return found


def _answer(session: Session, setting: Setting) -> dict[str, Any]:
    told = session.answer(setting, exact=True)
    if told["kind"] != "answer":
        return {"kind": "infeasible", "setting": setting.as_words(), "message": _NOT_MET, "ways": []}
    found = session.recent(setting)
    rows = "chosen_on" if session.parts.held_out is None else "held_out"
    own = getattr(found.state, rows)[TRAIN]
    lines = {
        "mixture": numbers(curve(own, found.solved, _CURVE)),
        "plain": numbers(curve(own, found.state.usual, _CURVE)),
    }
    points = {"alphas": [number(one) for one in _CURVE], "best": [], "rows": rows}
    return told | {"views": {"curve": points | lines}}
