"""Runs side by side, with decisions in tables: goals, errors, margins and costs in one table."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from counterpoise.goals import parse_goal
from counterpoise.runs.errors import DataError, twice_in
from counterpoise.runs.folder import open_run
from counterpoise.runs.result import RunResult, SplitStanding
from counterpoise.runs.results import DEPLOYED, FIRST, TRAIN
from counterpoise.runs.table import ResultTable
from counterpoise.runs.tables import audit_table

_OTHER_ROWS = "Not all were measured on the same rows: small differences may be chance."


def compare_runs(places: Sequence[str | Path], *, prediction: str = "prediction") -> ResultTable:
    """Compare runs, and decisions in tables, by the goals of the runs.

    Parameters
    ----------
    places : sequence of paths
        Run folders and, beside at least one of them, CSV or Parquet files with the target of the first run and
        decisions, of a person or of any model.
    prediction : str
        The column of such files that holds the decisions.

    Returns
    -------
    ResultTable
        A column for each run. A goal that a run does not have has no numbers there.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from counterpoise.datasets import loans
    >>> from counterpoise.runs import compare_runs, fit_run
    >>> text = '''
    ... goals = ["recall >= 0.6"]
    ... data = { files = "loans.csv", target = "default", positive = "yes" }
    ... method = { models = [{ name = "logistic" }], parameters = { cv = 2 } }
    ... '''
    >>> with tempfile.TemporaryDirectory() as place:
    ...     table = Path(place) / "loans.csv"
    ...     loans(300, random_state=0)[0].to_csv(table, index=False)
    ...     _ = (Path(place) / "goals.toml").write_text(text)
    ...     run = fit_run(Path(place) / "goals.toml")
    ...     beside = compare_runs([run.folder, table], prediction="last_year")
    >>> list(beside.columns), beside.rows[0][0], beside.rows[-1]
    (['', 'goals', 'loans.csv'], 'recall >= 0.6', ['rows', '60 test', '300 test'])
    """
    paths = list(dict.fromkeys(map(Path, places)))
    tables = [path for path in paths if path.is_file()]
    if len(paths) < 2 or len(tables) == len(paths):  # noqa: PLR2004 - one beside another
        raise ValueError(
            f"A comparison needs at least two run folders, or a run folder and tables of decisions; got "
            f"{', '.join(map(str, paths)) or 'nothing'}."
        )
    results = {path: open_run(path).result() for path in paths if path not in tables}
    first = next(iter(results.values()))
    goals = list(dict.fromkeys(goal.text for result in results.values() for goal in result.goals))
    known = {path: _audit_table(path, first, goals, prediction) if path in tables else results[path] for path in paths}
    names = [path.name if path in tables else path.resolve().name for path in paths]
    names = [str(path) for path in paths] if twice_in(names) else names
    rows = [_rows_measured(result) for result in known.values()]
    columns = [_column(result, goals) for result in known.values()]
    lines = [[label, *(column[label, place] for column in columns)] for label, place in columns[0]]
    lines = [line for line in lines if any(cell != "" and cell == cell for cell in line[1:])]  # noqa: PLR0124 - no NaN
    notes = [_OTHER_ROWS] if any(one != rows[0] for one in rows) else []
    return ResultTable("Runs side by side", ["", *names], lines, notes)


def _column(result: RunResult, goals: list[str]) -> dict[tuple[str, int], float | str]:
    """Return what a comparison shows of a run, by what it is and by the goal that it is of."""
    judged, losses, plain = result.judged, result.losses(), result.losses(FIRST).error
    known = {goal.text: goal for goal in result.goals}
    cells: dict[tuple[str, int], float | str] = {}
    for place, text in enumerate(goals):
        standing = known[text].on(judged) if text in known else SplitStanding(verdict="not asked")
        cells[text, place] = standing.estimate
        cells["    verdict", place] = standing.verdict
        cells["    margin", place] = standing.margin
        cells["    costs", place] = known[text].cost if text in known else math.nan
    numbers: dict[str, float | str] = {
        "share wrong": losses.error,
        "    beyond plain training": losses.error - plain,
        "    deployed model": result.losses(DEPLOYED).error,
        "loss of the tail": math.nan if result.tail is None else losses.tail(result.tail).value,
        "deferred": losses.defer_rate,
        "objective": losses.objective,
        "rows": f"{result.splits[judged].rows:.0f} {judged}",
    }
    return cells | {(label, 0): value for label, value in numbers.items()}


def _rows_measured(result: RunResult) -> Any:
    """Return what decides which rows a result was measured on: the data files, and how they were split."""
    files = {name: one for name, one in result.checksums.items() if name not in ("fingerprint", "origin")}
    return files, result.judged, result.settings.get("splits"), result.settings.get("seed")


def _audit_table(path: Path, run: RunResult, goals: list[str], prediction: str) -> RunResult:
    """Return the result of decisions in a table, by the goals of a run on its own rows."""
    data = run.settings.get("data", {})
    options: dict[str, Any] = {"target": data.get("target", ""), "prediction": prediction}
    options["goals"] = [text for text in goals if set(parse_goal(text).datasets) <= {TRAIN}]
    if not options["goals"]:
        raise DataError(f"{path} can be compared by goals on 'train' only; the runs have none.")
    options |= {name: data.get(name) for name in ("baseline", "weights", "largest_weight", "positive")}
    options["defer_label"] = None if run.deferral is None else run.deferral.label
    return audit_table(path, **options, confidence=run.settings.get("audit_confidence")).result
