"""Runs side by side, with decisions that stand in a table: goals, errors, margins and costs in one table."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from counterpoise._base.text import text_table
from counterpoise.goals import parse_goal
from counterpoise.runs.errors import DataError, twice_in
from counterpoise.runs.folder import open_run
from counterpoise.runs.result import RunResult, SplitStanding
from counterpoise.runs.results import DEPLOYED, FIRST, TRAIN
from counterpoise.runs.tables import audit_table

_OTHER_ROWS = "Not all were measured on the same rows: small differences may be chance."


class ComparedGoal(NamedTuple):
    """A goal in one run; NaN where the run does not have it."""

    goal: str
    estimate: float
    bound: float
    margin: float  # by which the near end of its interval is inside the bound
    verdict: str
    violation: float
    cost: float  # of the bound, in terms of the objective of the run


class ComparedRun(NamedTuple):
    """One column of a comparison."""

    name: str
    split: str
    rows: float
    error: float
    plain_error: float
    cost: float  # errors beyond those of plain training
    deployed_error: float
    alpha: float
    cvar: float
    defer_rate: float
    objective: str
    value: float
    goals: tuple[ComparedGoal, ...]


class Comparison(NamedTuple):
    """Runs side by side; ``print`` shows them."""

    runs: tuple[ComparedRun, ...]
    notes: tuple[str, ...] = ()

    def table(self) -> list[list[str]]:
        """Return the heads, and a line for each quantity that some run has."""
        lines = [["", *(run.name for run in self.runs)]]
        for place, goal in enumerate(self.runs[0].goals):
            goals = [run.goals[place] for run in self.runs]
            lines.append([goal.goal, *(f"{_number(one.estimate)} {one.verdict}".strip() for one in goals)])
            lines.append(["    margin", *(_number(one.margin) for one in goals)])
            lines.append(["    costs", *(_number(one.cost) for one in goals)])
        numbers = {
            "share wrong": "error",
            "    beyond plain training": "cost",
            "    deployed model": "deployed_error",
            "loss of the tail": "cvar",
            "deferred": "defer_rate",
            "objective": "value",
        }
        lines += [[label, *(_number(getattr(run, name)) for run in self.runs)] for label, name in numbers.items()]
        lines = [line for line in lines if any(cell not in ("", "-") for cell in line[1:])]
        return [*lines, ["rows", *(f"{run.rows:.0f} {run.split}" for run in self.runs)]]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        runs = [run._asdict() | {"goals": [goal._asdict() for goal in run.goals]} for run in self.runs]
        return {"runs": runs, "notes": list(self.notes)}

    def __str__(self) -> str:
        return "\n".join([text_table(self.table(), "<" + ">" * len(self.runs)), *self.notes])


def compare_runs(places: Sequence[str | Path], *, prediction: str = "prediction") -> Comparison:
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
    Comparison
        A goal that a run does not have has no numbers there.

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
    ...     comparison = compare_runs([run.folder, table], prediction="last_year")
    >>> [(one.name, one.rows, one.goals[0].goal) for one in comparison.runs]
    [('goals', 60.0, 'recall >= 0.6'), ('loans.csv', 300.0, 'recall >= 0.6')]
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
    runs = tuple(_summarize(name, result, goals) for name, result in zip(names, known.values(), strict=True))
    return Comparison(runs, (_OTHER_ROWS,) if any(one != rows[0] for one in rows) else ())


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


def _summarize(name: str, result: RunResult, goals: list[str]) -> ComparedRun:
    judged, losses, plain = result.judged, result.losses(), result.losses(FIRST).error
    known, compared_goals = {goal.text: goal for goal in result.goals}, []
    for text in goals:
        one, cost = SplitStanding(verdict="not asked"), math.nan
        if text in known:
            one, cost = known[text].on(judged), known[text].cost
        compared_goals.append(ComparedGoal(text, one.estimate, one.bound, one.margin, one.verdict, one.violation, cost))
    return ComparedRun(
        name=name,
        split=judged,
        rows=result.splits[judged].rows,
        error=losses.error,
        plain_error=plain,
        cost=losses.error - plain,
        deployed_error=result.losses(DEPLOYED).error,
        alpha=1.0 if result.alpha is None else result.alpha,
        cvar=math.nan if result.tail is None else losses.tail(result.tail).value,
        defer_rate=losses.defer_rate,
        objective="" if result.objective is None else result.objective.text or result.objective.kind,
        value=losses.objective,
        goals=tuple(compared_goals),
    )


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"
