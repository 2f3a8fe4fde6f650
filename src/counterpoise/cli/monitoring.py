"""The command that watches the goals of a run over time."""

from pathlib import Path
from typing import Annotated

from counterpoise import runs
from counterpoise.cli.exit_codes import DONE, NOT_MET
from counterpoise.cli.printing import PRINTED, USUAL, Flag, Out, Read
from counterpoise.runs.places import MONITOR_PAGE


def monitor(
    run: Path,
    batch: Path | None = None,
    /,
    *,
    name: str | None = None,
    prediction: str | None = None,
    ids: str | None = None,
    time: str | None = None,
    strict: Annotated[bool, Flag] = False,
    csv: Read = USUAL,
    shown: Out = PRINTED,
) -> int:
    """Watch the goals of a run over time: count a batch of decided rows, and say which goals hold, fail or changed.

    All verdicts at all times are right together with the audit confidence of the run, however often you look. The run
    folder keeps a log, one line a batch, and a page with a band for each goal. Each batch is counted once: the same
    command again changes nothing.

    Parameters
    ----------
    run
        A run folder.
    batch
        A CSV or Parquet file of decided rows, with the columns that the goals use. Labels may be missing. A file with
        nothing but ids and labels has those that came late. Default: show how the goals stand.
    name
        The name of the batch. Default: the name of the file.
    prediction
        The column with the decisions. Default: "prediction" where there is one; else the run decides.
    ids
        The column that identifies people, by which labels that come late find their rows. Default: data.ids of the
        goals file.
    time
        When the rows were decided, such as 2026-11, for the page. Default: the number of the batch.
    strict
        Exit with code 1 where a goal fails.
    """
    opened = shown.open_run("monitor", run)
    from counterpoise.report.page import write_page  # noqa: PLC0415 - heavy: errors come first

    with csv.reading():
        summary = runs.monitor_run(opened, batch, name=name, prediction=prediction, ids=ids, time=time)
    page = write_page(summary, opened.folder / MONITOR_PAGE)
    shown.answer(f"{summary}\n\npage: {page}", summary.as_dict() | {"page": page})
    return NOT_MET if strict and summary.fails else DONE
