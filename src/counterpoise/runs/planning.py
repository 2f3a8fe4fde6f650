"""Plans of a goals file: how many rows its goals need, from a table of scores or from assumed rates."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from counterpoise.classifiers.pilots import AssumedScores
from counterpoise.classifiers.planning import Plan, plan
from counterpoise.goals import as_goals
from counterpoise.goals.expressions import terms_of
from counterpoise.rules.options import Proof, as_groups
from counterpoise.rules.scores.table import BASELINE
from counterpoise.runs.errors import DataError
from counterpoise.runs.goals_file import goals_of, read_goals_file
from counterpoise.runs.methods import GOALS, as_values, split_parameters
from counterpoise.runs.settings import RunSettings, written_as
from counterpoise.runs.tables import TableRoles, check_table_goals, group_columns, id_texts, read_table, score_column


def plan_file(
    path: str | Path | None,
    *,
    goals: Sequence[str] = (),
    table: str | Path | None = None,
    score: str | None = None,
    ids: str | None = None,
    assumed: AssumedScores | None = None,
    proof: bool = False,
    **options: Any,
) -> Plan:
    """Return how many rows the goals of a goals file need; nothing is trained.

    Parameters
    ----------
    path : path, optional
        A goals file, whose goals, columns, rules and confidences count. It is not needed for goals and assumptions.
    goals : sequence of str
        Goals in the place of those of the file.
    table : path, optional
        A CSV or Parquet file with the pilot; default: the one data file of the goals file.
    score : str, optional
        The column of the pilot with the scores of a model that was not trained on these rows.
    ids : str, optional
        The column of the pilot that identifies people, where some have several rows.
    assumed : AssumedScores, optional
        In the place of a pilot.
    proof : bool, default=False
        Whether the rows are those that a proof takes; a goals file with ``proof = true`` asks for it too.
    **options
        As for ``plan``; the confidences are by default those of the file.

    Returns
    -------
    Plan

    Examples
    --------
    >>> from counterpoise import AssumedScores
    >>> from counterpoise.runs.planning import plan_file
    >>> assumed = AssumedScores(base_rate=0.3, recall=0.8, false_positive_rate=0.1)
    >>> found = plan_file(None, goals=["recall >= 0.7"], assumed=assumed, rows=[1000, 100_000])
    >>> [point.is_reached for point in found.points]
    [True, True]
    """
    if path is None:
        if assumed is None:
            raise ValueError("A pilot needs a goals file, which names its columns; got none.")
        return plan(as_goals(list(goals)), scores=assumed, **_with_proof(options, proof=proof))
    settings = read_goals_file(path)
    chosen = as_goals(list(goals)) if goals else goals_of(settings)
    options = {"audit_confidence": settings.audit_confidence, **_rules(settings), **options}
    if settings.confidence != "none":
        options.setdefault("confidence", settings.confidence)
    options = _with_proof(options, proof=proof or settings.proof)
    if assumed is not None:
        missing = [name for name in as_groups(options["by"]).names if name not in assumed.groups]
        if missing:
            way = (
                "Plan from a pilot: --score" if missing[0] == BASELINE else f"Add --group {missing[0]}=VALUE:SHARE,..."
            )
            raise ValueError(f"The rules of {path} use {missing[0]!r}, of which nothing is assumed. {way}.")
        return plan(chosen, scores=assumed, **options)
    data, folder = settings.data, Path(path).parent
    if table is None and len(data.files) > 1:
        raise DataError(f"{path} names {len(data.files)} data files. Name the one with the pilot: --table FILE.")
    place = folder / data.files[0] if table is None else Path(table)
    by = [name for name in as_groups(options["by"]).names if name != BASELINE]
    groups = tuple(dict.fromkeys([*data.groups, *by]))
    positive = None if data.positive is None else str(data.positive)
    roles = TableRoles(data.target, check_table_goals(chosen), groups, data.baseline, data.weights, None, positive)
    with written_as(data.written):
        pilot = read_table(place, roles, {"score": [str(score)], "ids": [] if ids is None else [ids]})
        part, scores = pilot.part(roles), score_column(pilot.frame, str(score), place)
        rows_of_goals = [term.rows for goal in chosen for term in terms_of(goal)]
        used = {one.column for rows in rows_of_goals for one in rows.ranges}
        used |= {name for goal in chosen for name in goal.compared_columns}
        columns = {name: pilot.frame[name] for name in pilot.frame if name in used}
        columns |= part.groups | group_columns(place, by)
        people = None if ids is None else id_texts(place, ids)
    options |= {"baseline": part.baseline, "sample_weight": part.weights, "ids": people, "pos_label": pilot.positive}
    return plan(chosen, part.labels, scores, sensitive_features=columns or None, **options)


def assume(
    base_rate: str | None, recall: str | None, false_positive_rate: str | None, groups: Sequence[str]
) -> AssumedScores | None:
    """Return the assumptions that options describe: numbers, or numbers by group; None where there are none."""
    rates = {"base-rate": base_rate, "recall": recall, "false-positive-rate": false_positive_rate}
    missing = [name for name, value in rates.items() if value is None]
    if len(missing) == len(rates) and not groups:
        return None
    if missing:
        raise ValueError(f"Assumptions need all of --{', --'.join(rates)}; --{missing[0]} is missing.")
    columns = {}
    for text in groups:
        name, equals, shares = text.partition("=")
        if not equals or ":" not in shares:
            raise ValueError(f"--group must have the form sex=F:0.33,M:0.67; got {text!r}.")
        columns[name] = _by_value(shares, "group")
    base, hits, alarms = (
        _by_value(str(text), name) if ":" in str(text) else _number(str(text), name) for name, text in rates.items()
    )
    return AssumedScores(base, hits, alarms, columns)


def _by_value(text: str, option: str) -> dict[str, float]:
    """Return numbers by value, as in ``F:0.33,M:0.67``."""
    pairs = (part.rpartition(":") for part in text.split(","))
    return {value: _number(number, option) for value, _, number in pairs}


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        example = "sex=F:0.33,M:0.67" if option == "group" else "0.2, or by group F:0.1,M:0.3"
        raise ValueError(f"--{option} must be numbers, as in {example}; got {text!r}.") from None


def _with_proof(options: dict[str, Any], *, proof: bool) -> dict[str, Any]:
    return options | {"confidence": Proof(options.get("confidence", Proof().confidence))} if proof else options


def _rules(settings: RunSettings) -> dict[str, Any]:
    """Return what the goals file says of the rules, and whether the models will be trained in folds."""
    if settings.method.name != GOALS:
        raise ValueError(
            f"A plan is of one rule of a score, the method {GOALS!r}; the goals file names {settings.method.name!r}. "
            "Other methods have no margins."
        )
    later = as_values(split_parameters(settings.method)[1])
    has_validation = bool(settings.splits.validation) or settings.splits.validation_files is not None
    rules = {"by": later.get("by", ()), "objective": later.get("objective"), "deferral": later.get("deferral")}
    return rules | {"in_folds": not has_validation}
