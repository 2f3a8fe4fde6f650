"""The commands on a user's own data: from a table and a goals file to a model, an audit and a report."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from counterpoise import __version__, datasets, explorer, runs
from counterpoise import report as pages
from counterpoise.cli import monitoring, tables
from counterpoise.cli.exit_codes import DONE, NOT_MET, OVERVIEW
from counterpoise.cli.printing import PRINTED, USUAL, Csv, Flag, Out, Read, Shown, flowing, write_csv, write_page
from counterpoise.runs.places import check_data_file, check_goals_path, check_place, check_run_folder

app = App(
    name="counterpoise",
    help=OVERVIEW.split("\n\n")[1],
    version=__version__,
    help_format="plaintext",
    result_action="return_value",
    suppress_keyboard_interrupt=False,  # main says what is kept
)


def command(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add a command whose docstring flows: the terminal's width breaks its lines, not the source's."""
    app.command(flowing(function))
    return function


@app.command(name="--install-completion")
@flowing
def install_completion(
    *,
    shell: Literal["bash", "zsh", "fish", "powershell"] | None = None,
    output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None,
    shown: Out = PRINTED,
) -> None:
    """Install shell completion, so that the tab key completes commands and options.

    Parameters
    ----------
    shell
        Default: the one that runs now.
    output
        Where the script goes. Default: where the shell looks for it.
    """
    path = app.install_completion(shell=shell, output=output)  # cyclopts has a command for it, which loads slowly
    shown.answer(f"completion script: {path}. Start a new shell to use it.", {"script": path})


@command
def init(
    data: Path,
    /,
    *,
    target: str,
    groups: Annotated[list[str] | None, Parameter(negative="", consume_multiple=True)] = None,
    baseline: str | None = None,
    output: Annotated[Path, Parameter(name=("--output", "-o"))] = Path("goals.toml"),
    csv: Read = USUAL,
    shown: Out = PRINTED,
) -> None:
    """Write a commented goals file for a table.

    Comments in the file explain each setting. Edit it, then run `counterpoise fit` on it. An existing file is never
    overwritten. Every guess is printed, with how to change it.

    Parameters
    ----------
    data
        A CSV or Parquet file.
    target
        The column to predict.
    groups
        Columns that goals use, such as sex; give the option once for each.
    baseline
        The column with the predictions of the deployed model, for goals on churn. It is never guessed.
    output
        Where the goals file goes.
    """
    csv.check_columns(data, target=target, groups=groups, baseline=baseline)
    shown.begin("init", data)
    from counterpoise.runs.starting import start_from  # noqa: PLC0415

    with csv.reading():
        made = start_from(data, target, groups=tuple(groups or ()), baseline=baseline, beside=output.parent)
    runs.write_new(output, made.text)
    next_step = f"{output}: read it, set your goals, then run: counterpoise fit {output}"
    text = "\n".join([next_step, "", "What was guessed:", *map(str, made.guesses)])
    shown.answer(text, {"goals_file": output, "guesses": [one._asdict() for one in made.guesses]})


@app.command(usage="Usage: counterpoise fit [OPTIONS] GOALS | --from RUN --output NEW")
@flowing
def fit(
    goals: Path | None = None,
    /,
    *,
    from_: Annotated[Path | None, Parameter(name="--from")] = None,
    output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None,
    alpha: float | None = None,
    objective: str | None = None,
    goal: Annotated[list[str] | None, Parameter(negative="")] = None,
    budget: float | None = None,
    by: Annotated[list[str] | None, Parameter(negative="")] = None,
    defer_cost: float | Literal["never"] | None = None,
    decision: Literal["fixed", "sticky"] | None = None,
    confidence: float | Literal["none"] | None = None,
    proof: bool | None = None,
    strict: Annotated[bool, Flag] = False,
    shown: Out = PRINTED,
) -> int:
    """Fit what a goals file asks for, audit it on test rows and write a report.

    The result is a run folder: the goals file as read, the model, a table of results, the report. If a run was
    stopped (Ctrl-C, a crash), the same command resumes it; a finished run is left as it is.

    With --from: choose again among the models of a run, for other goals, another tail or objective. Nothing is trained.

    Parameters
    ----------
    goals
        The goals file (TOML); `counterpoise init` writes one.
    from_
        In place of a goals file: a run folder whose method mixes models. The options from --alpha to --proof say what
        is other than there.
    output
        The run folder. Default: the one that the goals file names, else the file's name without its ending.
    alpha
        The worst-off fraction that counts.
    objective
        What to minimise instead, such as "KL(0.1)" or "false_positive_rate", or maximise, such as "f1_score".
    goal
        A goal as text, such as "recall >= 0.9"; give the option once for each. They replace those of the run.
    budget
        The most that the error may be above the least possible under the goals, where alpha is below 1; 1 for no limit.
    by
        A column that rules of scores may use; give the option once for each, or "" for none.
    defer_cost
        Another loss of a row that is left to a person, from 0 to 1, or "never".
    decision
        "fixed": one rule without draws. "sticky": a mixture of rules, one drawn for each person, which a tail (an alpha
        below 1) needs.
    confidence
        With which all goals hold together on new rows, or "none" for no margins.
    proof
        Whether exact tests prove that, on a part of the rows which the choice does not use.
    strict
        Exit with code 1 unless every goal is shown to hold on the test rows.
    """
    changes: dict[str, Any] = {"alpha": alpha, "objective": objective, "goal": goal, "budget": budget, "by": by}
    changes |= {"defer_cost": defer_cost, "decision": decision, "confidence": confidence, "proof": proof}
    if from_ is not None:
        if goals is not None or output is None:
            raise ValueError("--from needs --output with the new run folder, and no goals file.")
        opened = shown.open_run("fit", from_, goal)
        changes |= {"goals": changes.pop("goal"), "by": None if by is None else [name for name in by if name]}
        chosen = runs.rebalance_run(opened, **changes, output=output, on_event=shown.say)
        return _show_run(chosen, shown, strict=strict)
    if goals is None:
        raise ValueError("fit needs a goals file, or --from RUN. counterpoise init writes a goals file.")
    tables.refuse_options(changes, "{option} is for fit --from RUN. Write it into the goals file.")
    check_goals_path(goals)
    from counterpoise.runs.goals_file import check_goals_file  # noqa: PLC0415

    check_goals_file(goals)
    shown.begin("fit")
    with shown.progress() as tell:
        run = runs.fit_run(goals, output=output, tell=tell, on_event=shown.say)
    return _show_run(run, shown, strict=strict)


def _read_top(_: Any, words: Any) -> int:
    """Return the number behind --top: whole, as 1.5 would be rounded."""
    (word,) = words
    if not word.value.lstrip("-").isdecimal():
        raise ValueError(f"write a whole number of at least 0, as in --top 500; got {word.value!r}.")
    return int(word.value)


@command
def predict(
    run: Path,
    data: Path,
    /,
    *,
    output: Annotated[Path, Parameter(name=("--output", "-o"), allow_leading_hyphen=True)],
    probabilities: Annotated[bool, Flag] = False,
    ids: str | None = None,
    top: Annotated[int | None, Parameter(converter=_read_top)] = None,
    csv: Read = USUAL,
    shown: Out = PRINTED,
) -> None:
    """Predict the rows of a table with a run's model.

    The same row always gets the same decision. A mixture draws one of its models for each row, by a keyed hash of it.
    With --top a row competes with the others of the table for the positive decisions.

    Parameters
    ----------
    run
        A run folder.
    data
        A CSV or Parquet file with the columns of the run.
    output
        Where the predictions go, one row for each of the table: CSV, or Parquet by its ending; - prints CSV.
    probabilities
        Add a column for the probability of each class, by the model that decides.
    ids
        For a mixture: a column that identifies people. The same person then gets the same decision, whatever the other
        columns hold. With --top: the column that breaks ties of scores.
    top
        Capacity: decide positive for exactly so many rows of the table. How many of each group follows from the goals,
        without margins; inside a group the highest scores are taken. For runs that decide by one rule.
    """
    if str(output).startswith("-") and str(output) != "-":
        raise ValueError(f"--output must name a file, or be - to print; got the option {str(output)!r}.")
    check_run_folder(run)
    check_data_file(data)
    opened = shown.open_run("predict", run)
    with csv.reading():
        from counterpoise.runs.use import predictions_of  # noqa: PLC0415 - heavy

        if str(output) == "-":
            frame = predictions_of(opened, data, probabilities=probabilities, ids=ids, top=top)
            frame.to_csv(sys.stdout, index=False)
            return
        n_rows = runs.predict_run(opened, data, output, probabilities=probabilities, ids=ids, top=top)
    shown.answer(f"{n_rows} predictions in {output}", {"predictions": output, "rows": n_rows})


@command
def explain(
    run: Path,
    data: Path,
    /,
    *,
    row: Annotated[list[int] | None, Parameter(negative="")] = None,
    ids: str | None = None,
    reasons: Annotated[bool, Flag] = False,
    groups: Annotated[list[str] | None, Parameter(negative="")] = None,
    adverse: str | None = None,
    output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None,
    csv: Read = USUAL,
    shown: Out = PRINTED,
) -> None:
    """Explain the decisions about rows of a table.

    Prints score, threshold, the goals that set it, which change of the score would change the decision, and,
    where the model provides them, the largest contributions of features.

    Parameters
    ----------
    run
        A run folder.
    data
        A CSV or Parquet file with the columns of the run.
    row
        The number of a row, the first is 1; give the option once for each. Default: the first ten rows.
    ids
        A column that identifies people, as for predict.
    reasons
        Print the principal reasons of all adverse decisions about the table instead, most frequent first.
    groups
        With --reasons: columns by whose values together the reasons are also listed.
    adverse
        With --reasons: the decision that needs reasons. Default: the negative one.
    output
        With --reasons: where they go as CSV.
    """
    if reasons:
        _explain_batch(run, data, row, {"groups": groups or (), "adverse": adverse, "ids": ids}, output, csv, shown)
        return
    if groups or adverse is not None or output is not None:
        raise ValueError(
            "--groups, --adverse and --output are for the principal reasons of a batch. Pass --reasons too."
        )
    check_run_folder(run)
    check_data_file(data)
    opened = shown.open_run("explain", run)
    with csv.reading():
        explanations = runs.explain_run(opened, data, rows=row, ids=ids)
    text = "\n\n".join(f"Row {number}\n{one}" for number, one in explanations.items())
    shown.answer(text, {"rows": [{"row": number, **one.as_dict()} for number, one in explanations.items()]})


def _explain_batch(
    run: Path, data: Path, row: list[int] | None, options: dict[str, Any], output: Path | None, csv: Csv, shown: Shown
) -> None:
    """Print the principal reasons of the adverse decisions about all rows of a table."""
    if row:
        raise ValueError("--reasons are of all rows of the table. Leave --row out.")
    if output is not None:
        check_place(output, read=data)
    opened = shown.open_run("explain", run)
    with csv.reading():
        reasons = runs.reasons_of_run(opened, data, **options)
    shown.answer(f"{reasons}{write_csv(reasons, output)}", reasons.as_dict() | {"output": output})


@command
def alternatives(
    run: Path,
    /,
    *,
    disparity: str | None = None,
    incumbent: Literal["plain", "rule", "deployed"] | None = None,
    other: Annotated[list[Path] | None, Parameter(negative="")] = None,
    by: Annotated[list[str] | None, Parameter(negative="")] = None,
    within: float = 0.01,
    points: int = 9,
    confidence: float = 0.95,
    html: Path | None = None,
    table: Annotated[Path | None, Parameter(name="--csv")] = None,
    shown: Out = PRINTED,
) -> None:
    """Search for less discriminatory alternatives: rules with less disparity at nearly the same performance.

    Every threshold of every model of the run is a candidate; by default decisions are blind to groups. Prints the
    alternatives near the incumbent with intervals on the test rows, and what is proven not to exist.

    Parameters
    ----------
    run
        A run folder.
    disparity
        A column of groups, such as sex, or a phrase, such as "min_ratio(selection_rate, by=sex)". Default: that of the
        first goal that has one, else the first column of groups.
    incumbent
        What alternatives are compared with. Default: the deployed model where its predictions are known, else plain,
        the best model at its usual threshold; rule is that of the run.
    other
        The folder of a further run on the same data, as one trained inside goals; give the option once for each.
    by
        A column that rules may use; give the option once for each. Default: none.
    within
        How much worse than the incumbent an alternative may perform.
    points
        Number of bounds on the disparity.
    confidence
        With which all intervals hold together.
    html
        Where the report goes as a page.
    table
        Where all numbers go as a CSV file.
    """
    for place, option in ((html, "--html"), (table, "--csv")):
        if place is not None:
            check_place(place, option=option)
    options: dict[str, Any] = {"disparity": disparity, "incumbent": incumbent, "within": within, "n_points": points}
    opened = shown.open_run("alternatives", run)
    found = runs.alternatives_run(opened, others=other or (), by=by or (), confidence=confidence, **options)
    lines = write_page(found, html, "page") + write_csv(found, table)
    shown.answer(f"{found}{lines}", found.as_dict() | {"page": html, "table": table})


@app.command(usage="Usage: counterpoise report [OPTIONS] RUN [RUN | TABLE ...]")
@flowing
def report(
    run: Path,
    /,
    *others: Path,
    output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None,
    prediction: str = "prediction",
    interactive: Annotated[bool, Flag] = False,
    pack: Path | None = None,
    shown: Out = PRINTED,
) -> None:
    """Write a run's report again: one HTML page with everything in it. Or compare runs, or pack one for a validator.

    With further runs, or tables of decisions: prints goals, errors, margins and costs side by side.

    Parameters
    ----------
    run
        A run folder.
    others
        Run folders, and CSV or Parquet files with the target and decisions, made by hand or by any model.
    output
        Where the page goes. Default: report.html in the run folder, explorer.html where it is interactive. A comparison
        is written only where this names a file.
    prediction
        The column of tables that holds the decisions.
    interactive
        Write the explorer as a file instead, which works without a server: solutions for a grid of tails and bounds.
    pack
        Where a zip goes instead that can be read and checked without this package and the data: a model card, the
        report, every number, the goals file, and checksums with verify.py, which checks them.
    """
    ways = {"further runs": others, "--interactive": interactive, "--pack": pack}
    asked = [name for name, value in ways.items() if value]
    if len(asked) > 1 or (pack is not None and output is not None):
        raise ValueError(f"{' and '.join(asked)} cannot go with {'each other' if len(asked) > 1 else '--output'}.")
    if others:
        _compare((run, *others), prediction, output, shown)
        return
    opened = shown.open_run("report", run)
    if interactive:
        page = explorer.write_interactive(run, output)
        shown.answer(f"explorer: {page}", {"explorer": page})
    elif pack is not None:
        path = pages.write_pack(opened, pack)
        shown.answer(f"pack: {path}", {"pack": path})
    else:
        path = pages.write_report(opened.folder, output)
        shown.answer(f"report: {path}", {"report": path})


def _compare(places: tuple[Path, ...], prediction: str, output: Path | None, shown: Shown) -> None:
    """Print runs, and decisions in tables, side by side, and write the page where one is named."""
    if output is not None:
        check_place(output)
    for place in places:
        if not place.is_file():
            check_run_folder(place)  # before more is loaded
    shown.begin("report")
    comparison = runs.compare_runs(places, prediction=prediction)
    shown.answer(f"{comparison}{write_page(comparison, output, 'page')}", comparison.as_dict() | {"page": output})


@command
def explore(
    run: Path,
    /,
    *,
    output: Annotated[Path, Parameter(name=("--output", "-o"))] = Path(),
    host: str = "127.0.0.1",
    port: int = 0,
    open_: Annotated[bool, Parameter(name="--open", negative="", show_default=False)] = False,
    shown: Out = PRINTED,
) -> None:
    """Explore a run in a browser: move the tail and the bounds of its goals, and watch the trade-off.

    Prints an address with a secret token, and serves it until Ctrl-C. Nothing is trained. Give the address only to
    people who may see the data.

    Parameters
    ----------
    run
        A run folder whose method mixes models. Its data files must be where they were.
    output
        The folder that models and reports are exported to.
    host
        The address to listen on. Default: 127.0.0.1, so that nobody else can reach it.
    port
        The port to listen on; 0 for any free one.
    open_
        Open the page in the browser of this machine.
    """

    def ready(server: Any) -> None:
        shown.answer(f"explorer: {server.address}\nCtrl-C ends it.", {"address": server.address})
        if open_:
            import webbrowser  # noqa: PLC0415 - only with --open

            webbrowser.open(server.address)

    check_run_folder(run)
    shown.begin("explore")
    explorer.explore_run(run, output=output, host=host, port=port, say=shown.say, ready=ready)


# After those of a run: of commands as near to an unknown word the first is suggested.


@command
def demo(
    *, output: Annotated[Path, Parameter(name=("--output", "-o"))] = Path("demo-output"), shown: Out = PRINTED
) -> None:
    """Show the whole workflow on made-up loans, in less than a minute.

    Decides about loans inside three goals, audits them on test rows, and shows what was asked for beside what came on
    people who were not there, whose truth is known. Ends with a report and with the command that opens the explorer.

    Parameters
    ----------
    output
        Folder for the table, the goals file and the run folder with its report.
    """
    from counterpoise.cli.demo import run_demo  # noqa: PLC0415 - heavy: only where the command runs

    page, folder = run_demo(output, say=shown.say, progress=shown.progress)
    shown.answer(
        f"\nreport: {page}\nmove the goals in a browser: counterpoise explore {folder}", {"report": page, "run": folder}
    )


@command
def goals(
    *goal: str, list_: Annotated[bool, Parameter(name="--list", negative="")] = False, shown: Out = PRINTED
) -> None:
    """List all metrics for goals, or parse goals to see how they are understood.

    Parameters
    ----------
    goal
        Goals as text; each is parsed and printed.
    list_
        Show every metric and phrase with its formula and the data it needs.
    """
    from counterpoise._base.text import text_table  # noqa: PLC0415
    from counterpoise.goals import validate_goals  # noqa: PLC0415
    from counterpoise.goals.catalogue import LEGEND, Entry, catalogue  # noqa: PLC0415

    read = [str(one) for one in validate_goals(goal, trains=True)]
    entries = catalogue() if list_ or not goal else []
    table = text_table([Entry._fields, *entries], "<" * len(Entry._fields)) if entries else ""
    text = "\n".join([*read, *([table, "", LEGEND] if entries else [])])
    shown.answer(text, {"goals": read, "metrics": [entry._asdict() for entry in entries]})


data = App(name="data", help="Public data sets: list them, fetch them.", help_format="plaintext")
app.command(data)


@data.command(name="list")
@flowing
def list_names(*, shown: Out = PRINTED) -> None:
    """List the public data sets that counterpoise knows by name."""
    names = datasets.dataset_names()
    shown.answer("\n".join(names), {"names": names})


@data.command
@flowing
def fetch(name: str, /, *, shown: Out = PRINTED) -> None:
    """Fetch a public data set, check it, and keep it for later.

    Looks first in the folder that the variable COUNTERPOISE_DATA names, then in the cache, then at the public home.

    Parameters
    ----------
    name
        As `counterpoise data list` has it.
    """
    dataset = datasets.load_dataset(name)
    n_rows, n_columns = dataset.X.shape
    shown.answer(f"{name}: {n_rows} rows, {n_columns} columns", {"name": name, "rows": n_rows, "columns": n_columns})


for one in (tables.plan, tables.choose, tables.apply, monitoring.monitor):
    command(one)
app.command(flowing(tables.audit), usage="Usage: counterpoise audit [OPTIONS] TABLE | RUN [DATA]")


def _show_run(run: Any, shown: Shown, *, strict: bool) -> int:
    """Write the report where there is none yet, print what a run came to, and return its exit code."""
    from counterpoise.runs.summary import all_hold, summary_text, summary_words  # noqa: PLC0415 - heavy

    result, report = run.result(), run.report
    if not report.is_file():
        pages.write_report(run.folder)
    words = summary_words(result) | {"folder": run.folder, "report": report}
    shown.answer(f"{summary_text(result)}\n\nreport: {report}", words)
    return NOT_MET if strict and not all_hold(result) else DONE
