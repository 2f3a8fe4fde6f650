"""Tables with decisions or scores: audits of decisions, rules chosen and written as JSON, decisions by such rules."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from counterpoise._base.checks import check_choice, check_confidence, check_number, check_positive
from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.auditing.audit import Audit
from counterpoise.classifiers.goal import GoalClassifier
from counterpoise.goals import Goal, GoalCheck, Table, as_goals
from counterpoise.goals.classes import check_defer_label, reads_as, where_equal
from counterpoise.goals.tables import check_largest_value
from counterpoise.rules.choosing import FIXED
from counterpoise.rules.deciding import with_label
from counterpoise.rules.margins import Margin
from counterpoise.rules.options import Deferral, Proof
from counterpoise.rules.proving import GoalProof
from counterpoise.rules.scores.table import BASELINE, RuleGroups
from counterpoise.runs.data import Data, RunRows, check_classes, groups_of, labels_of, odd_cell, positive_of, weights_of
from counterpoise.runs.decisions import Decisions, RowDecisions, with_deployed
from counterpoise.runs.errors import DataError, as_data_error, check_columns, listed, refuse_foreign
from counterpoise.runs.evaluate import (
    Evaluation,
    answer_cells,
    data_summary,
    drawn_result,
    goal_results,
    group_results,
    split_result,
    swap_results,
)
from counterpoise.runs.folder import write_frame, write_output
from counterpoise.runs.places import check_place
from counterpoise.runs.reading import column_names, is_text, read_column, read_frame, read_usable
from counterpoise.runs.result import DeferralResult, ObjectiveResult, RuleResult, RunResult
from counterpoise.runs.results import MIXTURE, TEST, TRAIN
from counterpoise.runs.rule_file import DEFERRING, FORMAT, RuleFile, as_file_rules, check_text_key, read_rules
from counterpoise.runs.rule_sql import check_one_rule, rule_sql
from counterpoise.runs.settings import RunColumns, RunSettings


class TableRoles(NamedTuple):
    """The roles of the columns of a table, and the goals of the decisions in it."""

    target: str
    goals: tuple[Goal, ...]
    groups: tuple[str, ...] = ()
    baseline: str | None = None
    weights: str | None = None
    largest_weight: float | None = None
    positive: Any = None
    confidence: float | None = None
    deferral: Deferral | None = None  # the cost of deferring a row, and the label of deferred rows
    largest_value: float | dict[str, float] | None = None


class TableAudit(NamedTuple):
    """An audit of decisions, and every number about them."""

    audit: Audit
    result: RunResult
    positive: Any  # the class that goals call so; None where there is none


class LabelledTable(NamedTuple):
    """A table with labels, the classes there are, and which is the positive one."""

    path: Path
    frame: Any
    labels: AnyArray
    baseline: AnyArray | None
    classes: AnyArray
    positive: Any

    def part(self, roles: TableRoles) -> RunRows:
        """Return the rows as they are measured; goals may refer to every column that holds numbers or texts."""
        groups, limit = groups_of(self.frame, roles.groups, self.path), roles.largest_weight
        weights = None if roles.weights is None else weights_of(self.frame, roles.weights, self.path, limit)
        return RunRows(self.frame, self.labels, groups, weights, self.baseline, limit, roles.largest_value)


def read_table(path: Path, roles: TableRoles, others: dict[str, list[str]]) -> LabelledTable:
    """Read a labelled table, after checking that it has all columns that are named."""
    if roles.largest_weight is not None:
        check_positive(roles.largest_weight, "largest_weight")
        if roles.weights is None:
            raise ValueError(f"--largest-weight is for weighted rows; got {roles.largest_weight:g} and no --weights.")
    known, columns = column_names(path), {"groups": list(roles.groups), "target": [roles.target]}
    single = {"baseline": roles.baseline, "weights": roles.weights}
    columns |= {key: [name] for key, name in single.items() if name is not None} | others
    for key, names in columns.items():
        check_columns(names, known, path, f"--{key}: ")
    named = [name for names in columns.values() for name in names]
    compared = [name for goal in roles.goals for name in goal.compared_columns]
    frame, refused = read_usable(path, known, values=frozenset([*named, *compared]))
    wrong = [name for name in named if name in refused]
    if wrong:
        raise DataError(f"Column {wrong[0]!r} of {path} must hold numbers or texts; it holds dates, lists or the like.")
    labels = labels_of(frame, roles.target, path)
    baseline = None if roles.baseline is None else labels_of(frame, roles.baseline, path)
    classes = check_classes(labels, None, roles.target, path)
    if baseline is not None:
        must = f"The predictions in column {roles.baseline!r} of {path} must be classes of column {roles.target!r},"
        refuse_foreign(baseline.tolist(), classes.tolist(), must)
    positive, texts = positive_of(classes, None), {str(label): label for label in classes.tolist()}
    if roles.positive is not None:  # the command line has no types, as a CSV file has none
        if str(roles.positive) not in texts:
            raise DataError(
                f"--positive must be a class of column {roles.target!r} of {path}: {listed(texts, most=10)}; got "
                f"{str(roles.positive)!r}."
            )
        positive = texts[str(roles.positive)]
    return LabelledTable(path, frame, labels, baseline, classes, positive)


def audit_table(
    path: str | Path,
    *,
    target: str,
    prediction: str,
    goals: Any,
    groups: tuple[str, ...] = (),
    baseline: str | None = None,
    weights: str | None = None,
    largest_weight: float | None = None,
    largest_value: float | Mapping[str, float] | None = None,
    positive: Any = None,
    confidence: float | None = None,
    defer_label: str | None = None,
) -> TableAudit:
    """Audit decisions in a column of a table: no run and no model is needed.

    Parameters
    ----------
    path : path
        A CSV or Parquet file of rows that were not used to fit or choose the model that decided.
    target, prediction : str
        The columns with the true labels and with the decisions.
    goals : goals or their texts
        They refer to these rows as ``train``.
    groups : tuple of str
        Columns by which the report groups rows; goals may refer to any column.
    baseline : str, optional
        The column with the predictions of another model, for churn, wins and losses.
    weights, largest_weight : optional
        The column of sample weights, and the most that a row of the population can weigh.
    largest_value : float or dict from columns to floats, optional
        The largest amount that a row of the population can have, where goals count amounts.
    positive : label, optional
        The class that goals call positive; by default the second of two.
    confidence : float in (0, 1), optional
        For goals that carry none; default 0.95.
    defer_label : str, optional
        The label of rows that a person decides about, which are neither right nor wrong.

    Returns
    -------
    TableAudit
        ``audit``, and what a report needs.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from counterpoise.datasets import loans
    >>> from counterpoise.runs.tables import audit_table
    >>> goals = ["recall >= 0.5", "false_positive_rate(sex=F) <= 0.1"]
    >>> roles = {"target": "default", "prediction": "last_year", "positive": "yes", "goals": goals}
    >>> with tempfile.TemporaryDirectory() as place:
    ...     loans(2000, random_state=0)[0].to_csv(Path(place) / "loans.csv", index=False)
    ...     result = audit_table(Path(place) / "loans.csv", **roles)
    >>> [(str(row.goal.left), row.verdict) for row in result.audit]
    [('recall', 'holds'), ('false_positive_rate(sex=F)', 'fails')]
    """
    deferral = (
        None if defer_label is None else Deferral(0.0, defer_label)
    )  # at no loss: this table does not know its cost
    roles = TableRoles(
        target, check_table_goals(goals), groups, baseline, weights, largest_weight, positive, confidence, deferral,
        check_largest_value(largest_value),
    )  # fmt: skip
    table = read_table(Path(path), roles, {"prediction": [prediction]})
    predictions = labels_of(table.frame, prediction, table.path)
    if deferral is not None:  # as classes are written: a column of numbers is one of texts where some rows are deferred
        known = {reads_as(label): label for label in (*table.classes.tolist(), deferral.label)}
        predictions = np.array([known.get(reads_as(label), label) for label in predictions.tolist()], dtype=object)
    words = {"method": f"decisions in the column {prediction}", "source": table.path.name}
    return evaluate_decisions(table, predictions, roles, TEST, words)


def check_table_goals(goals: Any) -> tuple[Goal, ...]:
    """Return goals after checking that there are some and that they refer to the rows of the table only."""
    listed_goals = tuple(as_goals(goals))
    if not listed_goals:
        raise ValueError('Name at least one goal, as in --goal "recall >= 0.8"; got none.')
    for goal in listed_goals:
        other = next((name for name in goal.datasets if name != TRAIN), None)
        if other is not None:
            raise ValueError(f"Goals on a table refer to its rows, which are called 'train'; got {other!r} in: {goal}.")
    return listed_goals


def evaluate_decisions(
    table: LabelledTable,
    decisions: AnyArray,
    roles: TableRoles,
    split: str,
    words: dict[str, Any],
    chances: FloatArray | None = None,
) -> TableAudit:
    """Return an audit of decisions, and every number about them, as of rows of a split; ``words`` are added to these.

    Where decisions were drawn by rules, ``chances`` are the probabilities of each label in each row: the numbers are
    then expectations over the draws.
    """
    left = np.zeros(decisions.size, dtype=np.bool_)
    if roles.deferral is not None:
        check_defer_label(roles.deferral.label, table.classes.tolist())
        left = where_equal(decisions, roles.deferral.label)
    classes = table.classes.tolist()
    must = f"The decisions in {table.path} must be classes of column {roles.target!r},"
    after = " If it stands for rows that a person decides about, name it with --defer-label."
    refuse_foreign(decisions[~left].tolist(), classes, must, after=after)
    positive = None if table.positive is None else np.asarray(table.positive).item()
    columns = {"groups": list(roles.groups), "baseline": roles.baseline, "weights": roles.weights, "positive": positive}
    names: dict[str, Any] = {"files": [table.path.name], "target": roles.target, "largest_weight": roles.largest_weight}
    names["largest_value"] = roles.largest_value
    level = {} if roles.confidence is None else {"confidence": check_confidence(roles.confidence)}
    goals = [str(goal.with_confidence(None)) for goal in roles.goals]
    # what a goals file would say of the table
    settings = RunSettings.model_validate({"data": names | columns, "alpha": 1.0, "goals": goals} | level)
    parts = {split: table.part(roles)}
    data = Data(table.path.stem, RunColumns([], []), table.classes, table.positive, parts, {}, {})
    answers = table.classes if roles.deferral is None else with_label(table.classes, roles.deferral.label)
    ours = Decisions(answers, decisions) if chances is None else Decisions(answers, None, chances, lambda: decisions)
    known = {split: with_deployed(RowDecisions({MIXTURE: ours}, {}, []), parts[split], roles.deferral)}
    run = Evaluation(settings, data, None, roles.goals, deferral=roles.deferral, known=known)
    with as_data_error(f"The goals cannot be measured on the rows of {table.path}: "):
        audit = run.audit(split)
    deferral = None
    if roles.deferral is not None:
        deferral = DeferralResult(cost=roles.deferral.loss, label=str(roles.deferral.label))
    run_result = RunResult(
        settings=settings.model_dump(mode="json", exclude_defaults=True),
        data=data_summary(run),
        objective=ObjectiveResult(),
        is_drawn=chances is not None,
        splits={split: split_result(run, split)},
        goals=goal_results(run, [split]),
        groups=group_results(run, split),
        answers=answer_cells(run, split),
        swaps=swap_results(run, split),
        deferral=deferral,
        drawn=drawn_result(run, split),
        why={"frontier": "there is no model whose thresholds could be moved"},
        **words,
    )
    assert audit is not None  # noqa: S101 - all rows have decisions
    return TableAudit(audit, run_result, positive)


DECISIONS = (FIXED, "sticky")
DECISION_COLUMN = "said"  # the column of decisions


class TableRules(NamedTuple):
    """Rules of scores, how the goals stand in expectation over the draws, and every number about their decisions."""

    rules: RuleFile
    checks: list[GoalCheck]
    value: float  # of what was minimised
    answers: TableAudit  # of the same rows, by their ids, or their numbers where there are none
    confidence: float | None = None  # with which the goals hold together on new rows, where it was reached
    margins: tuple[Margin, ...] = ()
    proof: GoalProof | None = None

    def __str__(self) -> str:
        lines = [f"{one.share:.4f}  {one}" for one in self.rules.rules]
        positive, negative = self.rules.positive, self.rules.negative
        called = f"positive class: {positive!r}, with high scores; negative class: {negative!r}"
        margins = list(map(str, self.margins))
        if self.proof is not None:
            margins.append(str(self.proof))
        if self.confidence is not None and (self.proof is None or not self.proof.is_proven):
            which = "goals that have a margin" if any(one.reason for one in self.margins) else "goals"
            margins.append(f"The {which} hold together on new rows with a confidence of about {self.confidence:g}.")
        return "\n".join([called, *map(str, self.checks), *margins, "", "share   rule", *lines])


def choose_table(
    path: str | Path,
    output: str | Path,
    *,
    target: str,
    scores: Sequence[str],
    goals: Any,
    by: Sequence[str] = (),
    groups: Sequence[str] = (),
    baseline: str | None = None,
    weights: str | None = None,
    largest_weight: float | None = None,
    largest_value: float | Mapping[str, float] | None = None,
    positive: Any = None,
    alpha: float | None = None,
    objective: str | None = None,
    budget: float | None = None,
    decision: str = FIXED,
    defer_cost: float | None = None,
    defer_label: str | None = None,
    confidence: float | Proof | None = 0.9,
    ids: str | None = None,
    key: str | None = None,
    sql: str | Path | None = None,
) -> TableRules:
    """Choose the best mixture of all thresholds of scores in a table, and write its rules as JSON.

    Parameters
    ----------
    path : path
        A CSV or Parquet file of rows that the models which scored them were not trained on.
    output : path
        Where the rules go.
    target : str
        The column with the true labels.
    scores : sequence of str
        Columns of scores: the higher, the more likely positive.
    goals : goals or their texts
        They refer to these rows as ``train``, and to any of their columns.
    by : sequence of str
        Columns that decisions may use; ``baseline`` stands for the column of that part.
    groups : sequence of str
        Columns by which the report groups rows, beside those of ``by``.
    baseline : str, optional
        The column with the predictions of the deployed model.
    weights, largest_weight : optional
        The column of sample weights, and the most that a row of the population can weigh, which intervals and verdicts
        need where weights differ.
    positive : label, optional
        The class that scores refer to; by default the second of two.
    alpha, objective, budget, decision
        As for ``GoalClassifier``; the decision is ``"fixed"`` or ``"sticky"``.
    defer_cost, defer_label : optional
        The loss of a row that is left to a person, and the label of such rows; default: no row is deferred.
    confidence : float in (0, 1) or Proof, optional
        As for ``GoalClassifier``: with which the goals hold together on new rows; None for no margins.
    ids : str, optional
        The column that identifies people, for the decisions that the report shows, and for margins, which count people
        and not rows. Default: the numbers of the rows.
    key : str, optional
        Of the draws, at least 16 characters; default: drawn by the system.
    sql : path, optional
        Where the rule goes as an expression of SQL too, as ``rule_sql`` returns it.

    Returns
    -------
    TableRules

    Raises
    ------
    InfeasibleGoals
        If no mixture of any thresholds meets the goals.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from counterpoise.datasets import loans
    >>> from counterpoise.runs.tables import apply_rules, choose_table
    >>> frame, chance = loans(2000, random_state=0)
    >>> roles = {"target": "default", "scores": ["chance"], "positive": "yes", "goals": ["recall >= 0.7"]}
    >>> with tempfile.TemporaryDirectory() as place:
    ...     table, rules = Path(place) / "loans.csv", Path(place) / "rules.json"
    ...     frame.assign(chance=chance, id=range(2000)).to_csv(table, index=False)
    ...     chosen = choose_table(table, rules, **roles)
    ...     [check.holds for check in chosen.checks], apply_rules(rules, table, Path(place) / "decided.csv", ids="id")
    ([True], 2000)
    """
    table_path, place, text_key = Path(path), Path(output), check_text_key(key)
    check_place(place, read=table_path)
    check_choice(decision, "decision", DECISIONS)
    if sql is not None:
        check_place(Path(sql), read=table_path, option="--sql")
        check_one_rule(2 if decision != FIXED else 1)
    by = tuple(baseline if name == BASELINE and baseline is not None else name for name in by)
    roles = TableRoles(
        target, check_table_goals(goals), tuple(dict.fromkeys([*groups, *by])), baseline, weights, largest_weight,
        positive, deferral=make_deferral(defer_cost, defer_label), largest_value=check_largest_value(largest_value),
    )  # fmt: skip
    others = {"score": list(scores), "by": list(by), "ids": [] if ids is None else [ids]}
    table = read_table(table_path, roles, others)
    if len(table.classes) != 2:  # noqa: PLR2004 - a threshold separates two classes
        raise DataError(
            f"Column {target!r} of {table.path} must hold two classes, which a threshold separates; it holds "
            f"{len(table.classes)}: {listed(table.classes.tolist(), most=10)}. "
            "For more, fit a goals file: counterpoise init."
        )
    columns = {name: score_column(table.frame, name, table_path) for name in scores}
    tail = 1.0 if alpha is None and objective is None else alpha
    problem: dict[str, Any] = {"alpha": tail, "objective": objective, "budget": budget, "decision": decision}
    problem |= {"confidence": confidence, "deferral": roles.deferral}
    label = None if roles.deferral is None else roles.deferral.label
    part, names = table.part(roles), {"goals": roles.goals, "pos_label": table.positive, "by": by}
    model = GoalClassifier(list(columns.values()), cv="prefit", **names, **problem)
    features: dict[str, Any] = {"baseline": part.baseline, "largest_weight": part.largest_weight}
    features["largest_value"] = part.largest_value
    features["sensitive_features"] = part.groups | group_columns(table_path, by)
    people = [str(number) for number in range(len(table.labels))] if ids is None else id_texts(table_path, ids)
    model.fit(table.frame, part.labels, part.weights, **features, ids=None if ids is None else people)
    negative = next(label for label in table.classes.tolist() if label != table.positive)
    rules = as_file_rules(model.rules_, model.mixture_, list(columns), defers=label is not None)
    rule_file = RuleFile(
        format=FORMAT if label is None else DEFERRING,
        positive=np.asarray(table.positive).item(),
        negative=negative,
        deferred=label,
        by=list(by),
        key=text_key,
        rules=rules,
    )
    expression = None if sql is None else rule_sql(rule_file)
    codes = file_groups(rule_file, table_path, len(people))
    decisions = rule_file.decide(columns, codes, people)
    chances = rule_file.chances(columns, codes) if len(rules) > 1 else None
    words: dict[str, Any] = {"method": f"rules of the scores {', '.join(rule_file.scores)}", "source": table_path.name}
    words["rules"] = [
        RuleResult(title=f"rule {number}", description=str(one), share=one.share)
        for number, one in enumerate(rules, start=1)
    ]
    words["met_on"] = TRAIN if len(rules) > 1 else ""
    answers = evaluate_decisions(table, decisions, roles, TRAIN, words, chances)
    chosen_on = {"table": table_path.name, "goals": [str(goal) for goal in roles.goals]}
    write_output(place, rule_file.as_json(chosen_on=chosen_on).encode(), private=True)  # it holds the key of draws
    if sql is not None and expression is not None:
        write_output(Path(sql), f"{expression}\n".encode())
    return TableRules(
        rule_file, model.check_goals(), model.value_, answers, model.confidence_, model.margins_, model.proof_
    )


def make_deferral(cost: float | None, label: str | None) -> Deferral | None:
    """Return the cost and the label of deferred rows; None where no row is deferred."""
    if cost is not None:
        cost = check_number(cost, "defer_cost", "[0, 1]", "the loss of a row that a person decides about")
        return Deferral(cost) if label is None else Deferral(cost, label)
    if label is not None:
        raise ValueError(
            f"defer_label is the label of deferred rows, which need a defer_cost; got {label!r} and no defer_cost."
        )
    return None


def apply_rules(rules: str | Path, path: str | Path, output: str | Path, *, ids: str) -> int:
    """Decide about the rows of a table by a file of rules, write one row for each, and return how many there are.

    ``choose_table`` has an example.

    Parameters
    ----------
    rules : path
        What ``choose_table`` wrote.
    path : path
        A CSV or Parquet file with the columns of scores and groups that the rules name.
    output : path
        Parquet by its ending, else CSV: the column of ids, and ``said``.
    ids : str
        The column that identifies people, whole numbers or texts: the same person always gets the same decision.

    Returns
    -------
    int
    """
    rule_file, table_path = read_rules(Path(rules)), Path(path)
    check_place(Path(output), read=table_path)
    check_columns([ids, *rule_file.scores, *rule_file.by], column_names(table_path), table_path)
    if ids == DECISION_COLUMN:
        raise DataError(f"The id column of {table_path} must not be named {ids!r}, as the decisions are. Rename it.")
    people = id_texts(table_path, ids)
    frame = read_frame(table_path, rule_file.scores, values=rule_file.scores)
    scores = {name: score_column(frame, name, table_path) for name in rule_file.scores}
    codes = file_groups(rule_file, table_path, len(people))
    decisions = rule_file.decide(scores, codes, people)
    write_frame(pd.DataFrame({ids: people, DECISION_COLUMN: decisions}), Path(output))
    return len(people)


def write_sql(rules: str | Path, output: str | Path) -> str:
    """Write the one rule of a file as an expression of SQL, and return it."""
    check_place(Path(output), read=Path(rules), option="--sql")
    expression = rule_sql(read_rules(Path(rules)))
    write_output(Path(output), f"{expression}\n".encode())
    return expression


def file_groups(rules: RuleFile, path: Path, n_rows: int) -> IntArray:
    """Return the group of each row of a file, as rules name them."""
    columns = group_columns(path, rules.by)
    table = Table(np.empty((n_rows, 0)), None, columns or None, columns.get(BASELINE))  # a column may have that name
    return RuleGroups(tuple(rules.by), tuple(rules.groups)).codes(table, f"The rows of {path}")


def group_columns(path: Path, by: Sequence[str]) -> dict[str, AnyArray]:
    """Return columns as texts, as they stand in the file: ``01`` is not 1."""
    return groups_of(read_frame(path, by, texts=by), by, path) if by else {}


def id_texts(path: Path, name: str) -> list[str]:
    """Return a column of ids as texts: whole numbers or texts, none missing."""
    column = read_column(path, name)
    kind = column.type
    if not (is_text(kind) or pa.types.is_integer(kind)):
        raise DataError(f"Column {name!r} of {path} must hold ids, whole numbers or texts; it holds {kind}.")
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise DataError(f"Column {name!r} of {path} must hold an id in each row; row {row + 1} has none.")
    return [str(value) for value in column.to_pylist()]


def score_column(frame: Any, name: str, path: Path) -> FloatArray:
    """Return a column of scores: finite numbers."""
    if frame[name].dtype.name == "category":
        raise DataError(f"Column {name!r} of {path} must hold scores, numbers; {odd_cell(frame[name])}.")
    values = np.asarray(frame[name].to_numpy(), dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise DataError(
            f"Column {name!r} of {path} must hold a finite score in each row; {bad.size} of {values.size} have none, "
            f"the first is row {bad[0] + 1}. Score those rows, or leave them out."
        )
    return values
