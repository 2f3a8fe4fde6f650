"""The explorer of a run or a model: served to a browser, mounted in a notebook, or written as one file."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np

from counterpoise import runs
from counterpoise._base.checks import check_number
from counterpoise._base.types import ArrayLike
from counterpoise.explorer.conversation import Conversation, Exporter, as_json, asset, describe
from counterpoise.explorer.session import Session
from counterpoise.explorer.setting import Setting, SettingGoal
from counterpoise.explorer.source import session_of_model
from counterpoise.explorer.views import show_view, tail_lines
from counterpoise.runs.places import check_place


def explore_run(
    folder: str | Path,
    *,
    output: str | Path = ".",
    host: str = "127.0.0.1",
    port: int = 0,
    say: Callable[[str], None] = lambda _: None,
    ready: Callable[[Any], None],
) -> None:
    """Serve the explorer of a run until Ctrl-C.

    Parameters
    ----------
    folder : path
        A folder that ``counterpoise fit`` wrote.
    output : path, default="."
        The folder that models and reports are exported to.
    host : str, default="127.0.0.1"
        The address that the server listens on. By default other machines cannot reach it.
    port : int, default=0
        The port; 0 for any free one.
    say : callable, optional
        Called with a line of text before each step.
    ready : callable
        Called with the server, once it listens: ``ready(server)`` may show ``server.address``.
    """
    try:
        from counterpoise.explorer.server import Serving  # noqa: PLC0415 - needs optional packages
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f'The explorer needs {error.name}, which is not installed: pip install "counterpoise[explorer]"'
        ) from error
    from counterpoise.explorer.of_run import RunExporter, read_run  # noqa: PLC0415 - needs more of them

    check_number(port, "port", "[0, 65535]", "0 for any that is free")
    logging.getLogger("counterpoise.explorer").setLevel(logging.INFO)
    say("reads the run, its models and its data files")
    run = read_run(runs.open_run(folder))
    say("solves its setting, which compiles what is not compiled yet")
    session = Session(run.parts)
    session.answer(session.start)  # whatever compiles, compiles now
    serving = Serving(Conversation(session, RunExporter(session, run, output)), host=host, port=port)
    ready(serving)
    with suppress(KeyboardInterrupt):  # that is how it ends
        serving.run()


def explore(
    model: Any, X: Any = None, y: ArrayLike | None = None, *, output: str | Path | None = None, **held_out: Any
) -> Any:
    """Explore a fitted model in a notebook: move the bounds of its goals, and watch who gets which decision.

    Parameters
    ----------
    model : fitted classifier that mixes models or rules of scores
        Of two classes, such as ``GoalClassifier``, ``MixtureClassifier`` or ``AdaLPBoostClassifier``; or a run folder,
        which is explored with its own test rows and confidence: pass only ``output`` with it.
    X, y : held-out rows and labels, optional
        Rows that took no part in fitting or choosing. Verdicts and rates by group are computed on them.
    output : path, optional
        A folder that the page may export model files to, and reports of a run. Default: none; ``widget.model()``
        returns the model.
    **held_out : optional
        What belongs to these rows, as for ``Table``: ``sensitive_features``, ``baseline`` (decisions of the deployed
        model), ``sample_weight``, ``largest_weight``, ``largest_value``; ``datasets``, held-out rows of other datasets
        that goals use; and ``confidence`` (default 0.95), that of verdicts on goals that carry none.

    Returns
    -------
    widget
        Shown where a notebook shows the value of a cell, in Jupyter, marimo, Colab or VS Code. ``widget.setting`` is
        the current setting, ``widget.model()`` the classifier of that setting.

    Examples
    --------
    In a notebook::

        decided = cp.GoalClassifier(goals=["recall >= 0.9"]).fit(X_train, y_train)
        page = cp.explore(decided, X_test, y_test)
        page                # move alpha and the bounds
        page.model()        # the classifier of what the page shows
    """
    try:
        from counterpoise.explorer.mounted import ExplorerWidget  # noqa: PLC0415 - needs an optional package
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f'In a notebook the explorer needs {error.name}, which is missing: pip install "counterpoise[notebook]"'
        ) from error
    if isinstance(model, (str, Path)):
        return ExplorerWidget(_of_run(Path(model), output, {"X": X, "y": y, **held_out}))
    return ExplorerWidget(Exporter(session_of_model(model, X, y, **held_out), output))


def _of_run(folder: Path, output: str | Path | None, rows: Mapping[str, Any]) -> Any:
    """Return the exporter of a run folder, whose held-out rows are the run's own; refuse others."""
    from counterpoise.explorer.of_run import RunExporter, read_run  # noqa: PLC0415 - heavy, and needs optional packages

    beside = [name for name, value in rows.items() if value is not None]
    if beside:
        raise ValueError(
            f"A run folder is explored with its own test rows; got {', '.join(beside)} too. Pass the folder alone, "
            f"or the model in it: counterpoise.runs.open_run({str(folder)!r}).model()."
        )
    run = read_run(runs.open_run(folder))
    return RunExporter(Session(run.parts), run, output)


def session_of_run(folder: str | Path) -> Session:
    """Return a session of a finished run: its models, the rows they were chosen on, and its test rows.

    Parameters
    ----------
    folder : path
        A folder that ``counterpoise fit`` wrote. Its data files must still be in their places.

    Returns
    -------
    Session
    """
    from counterpoise.explorer.of_run import read_run  # noqa: PLC0415 - heavy, and needs optional packages

    return Session(read_run(runs.open_run(folder)).parts)


PAGE = "explorer.html"
_MOST_ANSWERS = 240
_ALPHAS = np.geomspace(0.05, 1.0, 7)
_CURVE = np.geomspace(0.01, 1.0, 20)
_LEVELS = 5, 4, 3  # bounds from the tightest to where a goal costs nothing: as many as can be combined with all others
_Goals = tuple[SettingGoal, ...]


def write_interactive(run_folder: str | Path, output: str | Path | None = None) -> Path:
    """Write the explorer of a run as one file that needs no server, and return its path.

    Parameters
    ----------
    run_folder : path
        A folder that ``counterpoise fit`` wrote. Its data files must still be in their places.
    output : path, optional
        The path of the page. Default: ``explorer.html`` in the run folder.

    Returns
    -------
    Path
        The path of the page. It needs no network, and holds no rows, only sums over groups of ten or more.
    """
    from counterpoise.runs.folder import write_output  # noqa: PLC0415 - needs optional packages

    path = runs.open_run(run_folder).folder / PAGE if output is None else Path(output)
    check_place(path)
    write_output(path, page_of(session_of_run(run_folder)).encode())
    return path


def page_of(session: Session) -> str:
    """Return the page of a session, with the results for a grid of settings around the model's own."""
    answers = list(_answers(session))
    start = session.start
    fixed = {"settings": len(answers), "by": list(start.by), "budget": start.budget, "defer": start.defer}
    fixed["confidence"] = start.confidence
    hello = describe(session) | {"type": "hello", "exports": [], "by": [], "is_file": True, "file": fixed}
    # a page that is read from a file must not end its script early, whatever texts it holds
    payload = as_json({"hello": hello, "answers": answers}).replace("<", "\\u003c")
    text = asset("index.html").decode()
    style, script = asset("explorer.css").decode(), asset("explorer.js").decode()
    text = text.replace('<link rel="stylesheet" href="explorer.css">', f"<style>\n{style}</style>")
    text = text.replace('data-socket="socket"', 'data-static="explorer-data"')
    text = text.replace('<script type="module" src="explorer.js"></script>\n', "")
    data = f'<script type="application/json" id="explorer-data">{payload}</script>'
    return text.replace("</body>", f'{data}\n<script type="module">\n{script}</script>\n</body>')


def _settings(session: Session) -> list[Setting]:
    """Return the setting of the model first, then others around it: all bounds together where they are few."""
    start = session.start
    alphas: Sequence[float | None] = [start.alpha]
    if start.alpha is not None and not session.decides_by_one_rule:
        alphas = sorted({float(f"{one:.3g}") for one in _ALPHAS} | {start.alpha})
    some = _goals(session, _MOST_ANSWERS // len(alphas))
    others = [replace(start, alpha=alpha, goals=goals) for alpha in alphas for goals in some]
    return list(dict.fromkeys([start, *others]))


def _goals(session: Session, most: int) -> list[_Goals]:
    """Return the goals of the model with other bounds, and with each of them off."""
    own = session.start.goals
    off = _one_at_a_time(own, [[one._replace(on=False)] for one in own])
    ends = _ends(session)
    together = (product(*_vary_bounds(own, ends, n_levels)) for n_levels in _LEVELS)
    enough = (some_goals for some in together if len(some_goals := list(islice(some, most + 1))) + len(off) <= most)
    variants = next(enough, None) or _one_at_a_time(own, _vary_bounds(own, ends, _LEVELS[0]))
    return list(dict.fromkeys([own, *variants, *off]))[:most]


def _one_at_a_time(own: _Goals, others: Sequence[Sequence[SettingGoal]]) -> list[_Goals]:
    """Return the goals with one of them replaced, once for each replacement."""
    return [(*own[:place], one, *own[place + 1 :]) for place, some in enumerate(others) for one in some]


def _ends(session: Session) -> list[tuple[float, float] | None]:
    """Return for each goal its tightest bound that can be met and where it costs nothing; None where hidden."""
    start = session.start
    ranges = {one["place"]: one for one in show_view(session, start, "ranges").get("ranges", [])}
    own_ranges = [ranges.get(place, {}) for place in range(len(start.goals))]
    ends = [(one.get("tightest"), one.get("free")) for one in own_ranges]
    return [None if tight is None or free is None else (float(tight), float(free)) for tight, free in ends]


def _vary_bounds(own: _Goals, ends: Sequence[tuple[float, float] | None], n_levels: int) -> list[list[SettingGoal]]:
    """Return each goal with bounds evenly between its ends, and with its own."""
    varied = []
    for one, between in zip(own, ends, strict=True):
        levels = [] if between is None else [float(f"{level:.6g}") for level in np.linspace(*between, n_levels)]
        bounds = sorted({*levels, one.goal.bound})
        varied.append([one._replace(goal=one.goal.with_bound(bound)) for bound in bounds])
    return varied


def _answers(session: Session) -> Iterator[dict[str, Any]]:
    """Yield the answer to each setting; whether goals can be met does not depend on the tail, so it is checked once."""
    unmet: dict[_Goals, dict[str, Any]] = {}
    for setting in _settings(session):
        answer = unmet.get(setting.goals) or session.answer(setting, exact=True)
        if answer["kind"] == "unmet":
            answer = session.conflict(setting, with_ways=False)  # of the bounds that the file has, the page finds them
        if answer["kind"] == "answer":
            # the loss of every tail of ten rows or more, and the verdicts that the page shows when nothing moves
            lines = tail_lines(session, session.recent(setting), _CURVE)
            views = {"curve": lines, "verdicts": show_view(session, setting, "verdicts")}
            # the first verdicts shown are those of the library's own audit, as in the run, and no quick ones
            exact = zip(answer["goals"], views["verdicts"]["verdicts"], strict=True)
            yield answer | {"goals": [goal | {"held_out": verdict} for goal, verdict in exact], "views": views}
        else:
            unmet[setting.goals] = answer
            yield answer | {"setting": setting.as_words()}
