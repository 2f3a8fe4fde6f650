"""The commands on a table that holds scores or decisions: plan, choose rules, apply them, audit decisions."""

import io
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from counterpoise import runs
from counterpoise.cli.exit_codes import DONE, NOT_MET
from counterpoise.cli.printing import PRINTED, USUAL, Csv, Flag, Out, Read, Shown, write_csv, write_page
from counterpoise.runs.errors import DataError
from counterpoise.runs.places import check_data_file, check_goals_path, check_place

Several = Parameter(negative="")


def read_limits(texts: list[str] | None) -> Any:
    """Return the largest amounts of a population, of all columns (5000) or of each (amount=5000)."""
    if not texts:
        return None
    limits: dict[str, float] = {}
    for text in texts:
        column, _, number = text.rpartition("=")
        try:
            limits[column] = float(number)
        except ValueError:
            raise ValueError(
                f"--largest-value takes an amount, as 5000, or a column and its amount, as amount=5000; got {text!r}."
            ) from None
    if "" in limits and len(limits) > 1:
        raise ValueError(
            "--largest-value takes one amount for all columns, or one for each as amount=5000; got both. Name the "
            "column of each."
        )
    return limits.get("", limits)


_FIGURES = (".png", ".svg", ".pdf")


def choose(
    table: Path,
    /,
    *,
    target: str,
    score: Annotated[list[str], Several],
    goal: Annotated[list[str], Several],
    by: Annotated[list[str] | None, Several] = None,
    groups: Annotated[list[str] | None, Several] = None,
    baseline: str | None = None,
    weights: str | None = None,
    largest_weight: float | None = None,
    largest_value: Annotated[list[str] | None, Several] = None,
    positive: str | None = None,
    alpha: float | None = None,
    objective: str | None = None,
    budget: float | None = None,
    decision: Literal["fixed", "sticky"] = "fixed",
    defer_cost: float | None = None,
    defer_label: str | None = None,
    confidence: float | Literal["none"] = 0.9,
    proof: Annotated[bool, Flag] = False,
    ids: str | None = None,
    key: str | None = None,
    sql: Path | None = None,
    report: Path | None = None,
    output: Annotated[Path, Parameter(name=("--output", "-o"))],
    csv: Read = USUAL,
    shown: Out = PRINTED,
) -> None:
    """Choose thresholds for scores in a table, so that goals are met at the least error. Trains nothing.

    Writes the rules as plain JSON: thresholds by group, and for a mixture how often each rule decides and the key of
    the draws. `counterpoise apply` decides by them. With --sql one rule is an expression for a database, too.

    Parameters
    ----------
    table
        A CSV or Parquet file of rows that the scoring models were not trained on.
    target
        The column with the true labels.
    score
        A column of scores, higher for the positive class; give the option once for each.
    goal
        A goal as text, such as "recall >= 0.8", about the rows of the file. Give the option once for each.
    by
        A column that decisions may use: each of its values gets its own threshold.
    groups
        Columns by which the report groups rows.
    baseline
        The column with the predictions of the deployed model, for churn; `--by baseline` lets rules use it.
    weights
        The column of sample weights.
    largest_weight
        The most that a row of the population can weigh: needed where weights differ, for intervals and verdicts.
    largest_value
        The largest amount that a row of the population can have, as 5000 or amount=5000: needed for intervals and
        verdicts where goals count amounts.
    positive
        The class that scores and goals refer to. Default: the second of two.
    alpha
        The worst-off fraction that counts; 1, the default, is the plain error.
    objective
        What to minimise instead, such as "false_positive_rate", or maximise, such as "f1_score" and "precision".
    budget
        The most that the error may be above the least possible under the goals, where alpha is below 1.
    decision
        "fixed": one rule, a threshold for each group. "sticky": the best mixture of rules, one drawn for each person;
        tails (an alpha below 1) need it.
    defer_cost
        The loss of a row that is left to a person, from 0 to 1. Default: every row is decided about.
    defer_label
        The label of such rows. Default: "defer".
    confidence
        With which all goals hold together on new rows: the rule keeps a margin inside of each bound. "none": they are
        just met on these rows.
    proof
        Prove that by exact tests on a part of the rows, which the choice does not use. It costs more than margins, and
        holds for any number of rows.
    ids
        The column that identifies people, for the decisions that the report shows, and for margins, which count people
        and not rows. Default: the numbers of the rows.
    key
        Of the draws, at least 16 characters. Default: drawn by the system.
    sql
        Where the rule goes as one CASE expression of standard SQL, for a SELECT over the table.
    report
        Where a report of one page goes.
    output
        Where the rules go.
    """
    columns = [name for name in by or () if name != "baseline"]
    csv.check_columns(
        table, target=target, score=score, by=columns, groups=groups, baseline=baseline, weights=weights, ids=ids
    )
    shown.begin("choose", table, goals=goal)
    _check_page(report, table, output)
    from counterpoise.runs.fitting import report_cautions  # noqa: PLC0415 - heavy: only where the command runs
    from counterpoise.runs.tables import choose_table  # noqa: PLC0415

    with csv.reading(), report_cautions(shown.say):
        chosen = choose_table(
            table, output, target=target, scores=score, goals=goal, by=by or (), groups=groups or (), baseline=baseline,
            weights=weights, largest_weight=largest_weight, largest_value=read_limits(largest_value),
            positive=positive, alpha=alpha, objective=objective,
            budget=budget, decision=decision, defer_cost=defer_cost, defer_label=defer_label, ids=ids, key=key,
            confidence=_level(confidence, proof=proof), sql=sql,
        )  # fmt: skip
    page = write_page(chosen.answers.result, report)
    values: dict[str, Any] = {
        "positive": chosen.rules.positive,
        "rules": [one.model_dump(by_alias=True) for one in chosen.rules.rules],
    }
    parts = ("value", "bound", "holds")
    checks = [{"goal": str(one.goal)} | {name: getattr(one, name) for name in parts} for one in chosen.checks]
    proof_words = None if chosen.proof is None else chosen.proof._asdict() | {"is_proven": chosen.proof.is_proven}
    values |= {"value": chosen.value, "goals": checks, "confidence": chosen.confidence, "proof": proof_words}
    shown.answer(f"{chosen}\n\nrules: {output}{page}", values | {"output": output, "sql": sql, "report": report})


def _level(confidence: float | str, *, proof: bool) -> Any:
    """Return the confidence as ``choose_table`` takes it."""
    from counterpoise.rules.options import Proof  # noqa: PLC0415 - heavy: only where the command runs

    if confidence == "none":
        if proof:
            raise ValueError("--proof needs a confidence; got --confidence none. Pass a number such as 0.9.")
        return None
    return Proof(float(confidence)) if proof else float(confidence)


def plan(
    goals: Path | None = None,
    /,
    *,
    goal: Annotated[list[str] | None, Several] = None,
    table: Path | None = None,
    score: str | None = None,
    ids: str | None = None,
    base_rate: str | None = None,
    recall: str | None = None,
    false_positive_rate: str | None = None,
    group: Annotated[list[str] | None, Several] = None,
    margin: float = 0.02,
    confidence: float | None = None,
    proof: Annotated[bool, Flag] = False,
    audit_confidence: float | None = None,
    power: float = 0.8,
    rows: Annotated[list[int] | None, Several] = None,
    curve: Path | None = None,
    csv: Read = USUAL,
    shown: Out = PRINTED,
) -> None:
    """Plan how many rows goals need: for margins of so much, and for an audit that says "holds". Trains nothing.

    From a pilot, a table with labels and the scores of a model that was not trained on it; or from assumptions about
    the model, without any rows. Prints how many rows each goal needs, and what to expect of several numbers of rows.

    Parameters
    ----------
    goals
        The goals file (TOML), whose goals, columns, rules and confidences count. Not needed with --goal and
        assumptions.
    goal
        A goal as text in place of those of the file; give the option once for each.
    table
        A CSV or Parquet file with the pilot. Default: the data file of the goals file.
    score
        The column of the pilot with the scores, higher for the positive class.
    ids
        The column of the pilot that identifies people, where some have several rows.
    base_rate
        Assumed: the share of positives, a number, or by group as in F:0.1,M:0.3.
    recall
        Assumed: the recall of the model at some threshold, a number or by group.
    false_positive_rate
        Assumed: its false positive rate at the same threshold, a number or by group.
    group
        Assumed: the shares of the groups of a column, as in sex=F:0.33,M:0.67; give the option once for each column.
    margin
        How far inside of its bound a goal may aim.
    confidence
        With which all goals hold together on new rows. Default: that of the goals file, else 0.9.
    proof
        Plan the rows of which some prove that the goals hold, as choose --proof and proof = true in a goals file do.
    audit_confidence
        Of the audit. Default: that of the goals file, else 0.95.
    power
        The probability with which the audit says "holds" of a goal that does hold.
    rows
        A number of rows to choose on that is looked at; give the option once for each. Default: eight from 300 to
        1,000,000.
    curve
        Where a figure of the margins over the rows goes: PNG, SVG or PDF by its ending.
    """
    is_assumed = any(value is not None for value in (base_rate, recall, false_positive_rate, group))
    if is_assumed == (score is not None):
        raise ValueError(
            "A plan needs either a pilot, --score with the column of its scores, or assumptions, --base-rate, --recall "
            f"and --false-positive-rate; got {'both' if is_assumed else 'neither'}."
        )
    if goals is not None:
        check_goals_path(goals)
    if table is not None:
        csv.check_columns(table, score=score, ids=ids)
    shown.begin("plan", *([] if table is None else [table]), goals=goal)
    if curve is not None:
        check_place(curve, read=table, option="--curve")
        if curve.suffix.lower() not in _FIGURES:
            raise ValueError(f"--curve must end with one of {', '.join(_FIGURES)}; got {curve}.")
    from counterpoise.runs.folder import write_output  # noqa: PLC0415
    from counterpoise.runs.planning import assume, plan_file  # noqa: PLC0415 - heavy: only where the command runs

    options: dict[str, Any] = {"margin": margin, "power": power, "rows": rows, "proof": proof}
    levels = {"confidence": confidence, "audit_confidence": audit_confidence}
    options |= {name: level for name, level in levels.items() if level is not None}
    assumed = assume(base_rate, recall, false_positive_rate, group or ())
    with csv.reading():
        made = plan_file(goals, goals=goal or (), table=table, score=score, ids=ids, assumed=assumed, **options)
    if curve is not None:
        figure = io.BytesIO()
        made.plot().figure.savefig(figure, format=curve.suffix[1:].lower())
        write_output(curve, figure.getvalue())
    line = "" if curve is None else f"\n\ncurve: {curve}"
    shown.answer(f"{made}{line}", made.as_dict() | {"curve": curve})


def apply(
    rules: Path,
    table: Path | None = None,
    /,
    *,
    ids: str | None = None,
    output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None,
    sql: Path | None = None,
    csv: Read = USUAL,
    shown: Out = PRINTED,
) -> None:
    """Decide about the rows of a table by rules that `counterpoise choose` wrote.

    With --sql alone: write one rule as SQL, with which a database decides.

    Parameters
    ----------
    rules
        The JSON file of rules.
    table
        A CSV or Parquet file with the scores, and the groups that the rules use.
    ids
        The column that identifies people: the same person always gets the same decision.
    output
        Where the decisions go, one row for each of the table: CSV, or Parquet by its ending.
    sql
        In place of a table: where one rule goes as a CASE expression of standard SQL, for a SELECT over the table.
    """
    files = [] if table is None else [table]
    if (sql is not None) == (table is not None) or (table is not None and (ids is None or output is None)):
        raise ValueError("apply needs a table with --ids and --output, or --sql FILE and no table.")
    if not rules.is_file():
        raise DataError(f"There is no file of rules {rules}; counterpoise choose writes one.")
    if table is not None:
        csv.check_columns(table, ids=ids)
    shown.begin("apply", *files)
    from counterpoise.runs.tables import apply_rules, write_sql  # noqa: PLC0415

    if table is None or ids is None or output is None:
        shown.answer(f"rule as SQL: {sql}", {"sql": sql, "expression": write_sql(rules, str(sql))})
        return
    with csv.reading():
        n_rows = apply_rules(rules, table, output, ids=ids)
    shown.answer(f"{n_rows} decisions in {output}", {"decisions": output, "rows": n_rows})


def audit(
    table_or_run: Path,
    data: Path | None = None,
    /,
    *,
    target: str | None = None,
    prediction: str | None = None,
    goal: Annotated[list[str] | None, Several] = None,
    groups: Annotated[list[str] | None, Several] = None,
    baseline: str | None = None,
    weights: str | None = None,
    largest_weight: float | None = None,
    largest_value: Annotated[list[str] | None, Several] = None,
    positive: str | None = None,
    confidence: float | None = None,
    defer_label: str | None = None,
    impact: Annotated[bool, Flag] = False,
    score: str | None = None,
    unknown: Annotated[list[str] | None, Several] = None,
    min_share: float | None = None,
    exclude_small: str | None = None,
    output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None,
    report: Path | None = None,
    drawn: Annotated[bool, Flag] = False,
    strict: Annotated[bool, Flag] = False,
    csv: Read = USUAL,
    shown: Out = PRINTED,
) -> int:
    """Audit decisions in a table, or the model of a run: which goals hold on the population, with what confidence.

    All verdicts are right together with the requested confidence, if the rows are independent draws from the population
    and were not used to fit or choose the model.

    Of a run, the error and the loss of the worst-off fraction are printed too. A run knows its goals and its columns:
    only --goal, --confidence, --largest-weight, --largest-value, --drawn and --strict are for runs.

    With --impact: how often each category of people is selected, and its impact ratio, by each column of --groups and
    by their intersections. That needs no labels and no goals.

    Parameters
    ----------
    table_or_run
        A CSV or Parquet file with true labels and decisions, or a run folder.
    data
        Of a run: a CSV or Parquet file of rows that were not used to fit or choose the model. Default: its test rows.
    target
        The column with the true labels. Not needed with --impact.
    prediction
        The column with the decisions.
    goal
        A goal as text, such as "recall(sex=F) >= 0.8", about the rows of the file. Give the option once for each.
        Default for a run: its own goals. Not with --impact.
    groups
        Columns by which the report groups rows; goals may refer to any column. With --impact: the columns whose values
        are categories of people.
    baseline
        The column with the predictions of another model, for churn, wins and losses.
    weights
        The column of sample weights.
    largest_weight
        The most that a row of the population can weigh: needed where weights differ, for intervals and verdicts.
        Default for a run: what its goals file says.
    largest_value
        The largest amount that a row of the population can have, as 5000 or amount=5000: needed for intervals and
        verdicts where goals count amounts. Default for a run: as above.
    positive
        The class that goals call positive, or the decision that selects. Default: the second of two.
    confidence
        Between 0 and 1, for goals that carry none. Default: that of the run, else 0.95.
    defer_label
        The label of rows that a person decides about: neither right nor wrong.
    impact
        Print selection rates and impact ratios in the layout of Local Law 144, which defines no mark to pass.
    score
        With --impact, in place of --prediction: a column of scores. A person whose score is above the median of all
        counts as selected.
    unknown
        With --impact: a value that means that the category is unknown, as empty fields do. Give the option once for
        each.
    min_share
        With --impact: categories with a smaller share of the people are listed as small. Default: 0.02.
    exclude_small
        With --impact: the reason, which is printed, why small categories are left out of the ratios. Default: they take
        part.
    output
        With --impact: where the ratios go as CSV.
    report
        Where a report of one page goes.
    drawn
        Of a run: audit the drawn decisions, as its key draws them, in place of expectations over the draws.
    strict
        Exit with code 1 unless every goal is shown to hold.
    """
    table = table_or_run
    of_impact: dict[str, Any] = {"score": score, "unknown": unknown, "min_share": min_share}
    of_impact |= {"exclude_small": exclude_small}
    of_goals: dict[str, Any] = {"target": target, "baseline": baseline, "defer_label": defer_label}
    of_both = {"groups": groups, "weights": weights, "prediction": prediction, "positive": positive, "report": report}
    if table.is_dir() or data is not None:
        of_tables = {**of_goals, **of_both, "impact": impact or None, **of_impact, "output": output}
        refuse_options(of_tables, f"{{option}} is for tables; {table} is a run, which knows its columns.")
        options: dict[str, Any] = {"confidence": confidence, "goals": goal, "largest_weight": largest_weight}
        options |= {"largest_value": read_limits(largest_value), "drawn": drawn}
        return _audit_run(table, data, options, csv, shown, strict=strict)
    check_data_file(table)
    refuse_options({"drawn": drawn or None}, f"{{option}} is for runs; {table} is a table.")
    _check_page(report, table, output)
    if impact:
        of_goals |= {"goal": goal, "largest_value": largest_value}
        refuse_options(of_goals, "{option} is not for impact ratios. Run the command again without --impact.")
        if strict:
            raise ValueError("--strict is not for impact ratios: no law defines an impact ratio that passes.")
        options = {"positive": positive, "confidence": confidence, **of_impact}
        options |= {"weights": weights, "largest_weight": largest_weight}
        _audit_impact(table, prediction, tuple(groups or ()), options, output, report, csv, shown)
        return DONE
    refuse_options(of_impact | {"output": output}, "{option} is for impact ratios. Pass --impact too.")
    if target is None or prediction is None or not goal:
        raise ValueError("An audit of goals needs --target, --prediction and --goal. For impact ratios pass --impact.")
    csv.check_columns(table, target=target, prediction=prediction, groups=groups, baseline=baseline, weights=weights)
    shown.begin("audit", table, goals=goal)
    from counterpoise.runs.summary import audit_text, audit_words  # noqa: PLC0415
    from counterpoise.runs.tables import audit_table  # noqa: PLC0415

    with csv.reading():
        table_audit = audit_table(
            table, target=target, prediction=prediction, goals=goal, groups=tuple(groups or ()), baseline=baseline,
            weights=weights, largest_weight=largest_weight, largest_value=read_limits(largest_value),
            positive=positive, confidence=confidence,
            defer_label=defer_label,
        )  # fmt: skip
    page = write_page(table_audit.result, report)
    called = "" if table_audit.positive is None else f"positive class: {table_audit.positive!r}\n"
    words = audit_words(table_audit.audit) | {"positive": table_audit.positive, "report": report}
    shown.answer(called + audit_text(table_audit.audit) + page, words)
    return NOT_MET if strict and not table_audit.audit.holds else DONE


def refuse_options(options: dict[str, Any], text: str) -> None:
    """Refuse the options that are given, in a sentence that says what they are for."""
    for name, value in options.items():
        if value is not None:
            raise ValueError(text.format(option="--" + name.replace("_", "-")))


def _audit_run(
    folder: Path, data: Path | None, options: dict[str, Any], csv: Csv, shown: Shown, *, strict: bool
) -> int:
    """Print the audit of a run's model."""
    run = shown.open_run("audit", folder, options["goals"])
    with csv.reading():
        found = runs.audit_run(run, data, **options)
    is_drawn = options["drawn"] and run.result().drawn is not None  # else each decision is the same whatever the key
    head = "Of the drawn decisions; another key draws others.\n\n" if is_drawn else ""
    shown.answer(f"{head}{found}", found.as_dict() | ({"drawn": True} if is_drawn else {}))
    return NOT_MET if strict and not found.audit.holds else DONE


def _audit_impact(
    table: Path,
    prediction: str | None,
    groups: tuple[str, ...],
    options: dict[str, Any],
    output: Path | None,
    report: Path | None,
    csv: Csv,
    shown: Shown,
) -> None:
    """Print impact ratios, and write them as CSV and as a page."""
    csv.check_columns(table, prediction=prediction, groups=groups)
    shown.begin("audit", table)
    if output is not None:
        check_place(output, read=table)
    from counterpoise.runs.impact import impact_of_table  # noqa: PLC0415 - heavy: only where the command runs

    options = {name: value for name, value in options.items() if value is not None}
    with csv.reading():
        ratios = impact_of_table(table, prediction=prediction, groups=groups, **options)
    lines = write_csv(ratios, output) + write_page(ratios, report)
    shown.answer(f"{ratios}{lines}", ratios.as_dict() | {"output": output, "report": report})


def _check_page(report: Path | None, table: Path, output: Path | None = None) -> None:
    """Check, before any work is done, that a report can be written, and over nothing that is read or written too."""
    if report is None:
        return
    check_place(report, read=table, option="--report")
    if output is not None and report.resolve() == output.resolve():
        raise ValueError(f"--report and --output must name two files; both name {report}.")
