"""The report of a run: one self-contained HTML page made of its results table and its words."""

from collections.abc import Sequence
from pathlib import Path

from counterpoise.report.record import Record, Words, read_record
from counterpoise.runs.folder import REPORT, check_place, write_output
from counterpoise.runs.results import ResultRow

__all__ = ["write_report"]


def write_report(run_folder: str | Path, output: str | Path | None = None) -> Path:
    """Write the report of a run folder, and return its path.

    The page holds all it needs: no script, no network, no font. It is a function of ``results.csv``, ``drawn.csv``,
    ``texts.json``, ``settings.json`` and ``environment.json``, so the same files give the same bytes; no model and no
    data are read.

    Parameters
    ----------
    run_folder : path
        What ``counterpoise fit`` wrote.
    output : path, optional
        Where the page goes. Default: ``report.html`` in the run folder.

    Returns
    -------
    Path

    Raises
    ------
    FileNotFoundError
        Where the folder or one of its files is missing.
    ValueError, RunFolderError
        Where one of the files is something else, or the page cannot be written.
    ImportError
        Where jinja2 or matplotlib is not installed.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> from counterpoise.report import write_report
    >>> from counterpoise.runs.results import append_rows
    >>> row = {"experiment": "run", "dataset": "loans", "learner": "", "method": "mixture", "seed": 0,
    ...        "quantity": "error", "split": "test", "value": 0.1}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     append_rows(Path(folder) / "results.csv", [row])
    ...     for name in ("texts", "settings", "environment", "done"):
    ...         _ = (Path(folder) / f"{name}.json").write_text(json.dumps({}))
    ...     page = write_report(folder)
    ...     page.name, "Audit of a classifier on loans" in page.read_text(encoding="utf-8")
    ('report.html', True)
    """
    folder = Path(run_folder)
    record = read_record(folder)
    return _written(record, folder / REPORT if output is None else Path(output))


def write_page(
    rows: Sequence[ResultRow], texts: Words, settings: Words, output: str | Path, drawn: Sequence[ResultRow] = ()
) -> Path:
    """Write a report on numbers and words that are in no run folder, and return its path."""
    return _written(Record(tuple(rows), texts, settings, {}, tuple(drawn)), Path(output))


def _written(record: Record, path: Path) -> Path:
    check_place(path)
    try:
        from counterpoise.report.contents import render  # noqa: PLC0415 - needs optional packages

        page = render(record)
    except ModuleNotFoundError as error:
        raise ImportError(
            f'A report needs jinja2 and matplotlib: pip install "counterpoise[cli]" ({error}).'
        ) from error
    write_output(path, page.encode("utf-8", errors="replace"))  # a lone surrogate is no text
    return path
