"""The commands around the library itself: the demo, timings, public data sets."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from counterpoise.cli import DONE
from counterpoise.cli.printing import PRINTED, Out, flowing


@flowing
def demo(
    *,
    output: Annotated[Path, Parameter(name=("--output", "-o"))] = Path("demo-output"),
    shown: Out = PRINTED,
) -> int:
    """Show the whole story on data that is made here or ships inside scikit-learn, in about a minute.

    Decides about loans inside three goals, of a population whose truth is known and told beside the audit; then finds
    as many malignant tumours as a bound on false alarms allows.

    Parameters
    ----------
    output
        Folder for the tables, the goals files and the run folders with their reports.
    """
    from counterpoise.cli.demo import run_demo  # noqa: PLC0415 - heavy: only where the command runs

    found = run_demo(output, say=shown.say, progress=shown.progress)
    shown.answer("\n".join(["", *(f"report: {path}" for path in found)]), {"reports": found})
    return DONE


@flowing
def goals(
    *goal: str,
    list_: Annotated[bool, Parameter(name="--list", negative="")] = False,
    shown: Out = PRINTED,
) -> int:
    """List all metrics that goals can be made of, or read goals back to see how they are understood.

    Parameters
    ----------
    goal
        Goals as text, each of which is read and written anew.
    list_
        Show every metric and phrase with its formula and what it needs of the data.
    """
    from counterpoise._base.text import text_table  # noqa: PLC0415
    from counterpoise.goals import asked_goals  # noqa: PLC0415
    from counterpoise.goals.catalogue import LEGEND, Entry, catalogue  # noqa: PLC0415

    read = [str(one) for one in asked_goals(goal, trains=True)]
    entries = catalogue() if list_ or not goal else []
    table = text_table([Entry._fields, *entries], "<" * len(Entry._fields)) if entries else ""
    text = "\n".join([*read, *([table, "", LEGEND] if entries else [])])
    shown.answer(text, {"goals": read, "metrics": [entry._asdict() for entry in entries]})
    return DONE


@flowing
def warm_up(*, shown: Out = PRINTED) -> int:
    """Compile all kernels now, so that no later command waits for it: for images and CI.

    They are kept beside the package, else in a cache folder of the user, else among temporary files; the variable
    NUMBA_CACHE_DIR names another folder. A kernel is compiled for the processor that compiles it: where an image is
    built on one kind and run on others, set NUMBA_CPU_NAME=generic in both.
    """
    from counterpoise.cli.warming import compile_all, summary  # noqa: PLC0415 - heavy: only where the command runs

    with shown.progress():
        made = compile_all(shown.say)
    shown.answer(summary(made), {"kernels": [one._asdict() for one in made]})
    return DONE


data = App(name="data", help="Public data sets: list them, fetch them.", help_format="plaintext")


@data.command(name="list")
@flowing
def list_names(*, shown: Out = PRINTED) -> int:
    """List the public data sets that counterpoise knows by name."""
    from counterpoise.datasets import dataset_names  # noqa: PLC0415

    names = dataset_names()
    shown.answer("\n".join(names), {"names": names})
    return DONE


@data.command
@flowing
def fetch(name: str, /, *, shown: Out = PRINTED) -> int:
    """Fetch a public data set, check it, and keep it for later.

    Looks first in the folder that the variable COUNTERPOISE_DATA names, then in the cache, then at the public home.

    Parameters
    ----------
    name
        As `counterpoise data list` has it.
    """
    from counterpoise.datasets import load_dataset  # noqa: PLC0415

    found = load_dataset(name)
    n_rows, n_columns = found.X.shape
    shown.answer(f"{name}: {n_rows} rows, {n_columns} columns", {"name": name, "rows": n_rows, "columns": n_columns})
    return DONE
