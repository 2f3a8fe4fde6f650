"""The report of a run: one self-contained HTML page, a function of its result."""

from pathlib import Path
from typing import TYPE_CHECKING

from counterpoise.auditing.impact import ImpactRatios
from counterpoise.runs.folder import write_output
from counterpoise.runs.places import DONE, REPORT, RESULT, check_place
from counterpoise.runs.result import RunResult, read_result

if TYPE_CHECKING:
    from counterpoise.classifiers.alternatives import Alternatives
    from counterpoise.runs.monitoring import MonitorSummary
    from counterpoise.runs.table import ResultTable

__all__ = ["write_report"]


def write_report(run_folder: str | Path, output: str | Path | None = None) -> Path:
    """Write the report of a run folder, and return its path.

    The page holds all it needs: no script, no network, no font. It is a function of ``result.json``, so the same file
    gives the same bytes; no model and no data are read.

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
        If the folder or one of its files is missing.
    ValueError, RunFolderError
        If the result is something else, or the page cannot be written.
    ImportError
        Where jinja2 or matplotlib is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from counterpoise.report import write_report
    >>> from counterpoise.runs.result import DataSummary, RunResult
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "result.json").write_text(RunResult(data=DataSummary(name="loans")).model_dump_json())
    ...     _ = (Path(folder) / "done.json").write_text("{}")
    ...     page = write_report(folder)
    ...     page.name, "Audit of a classifier on loans" in page.read_text(encoding="utf-8")
    ('report.html', True)
    """
    folder = Path(run_folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"run_folder must be the folder of a run; there is no folder {folder}.")
    missing = [name for name in (DONE, RESULT) if not (folder / name).is_file()]
    if missing:
        raise FileNotFoundError(
            f"run_folder must be the folder of a finished run, with {RESULT}; {folder} lacks {', '.join(missing)}. "
            "Run counterpoise fit first."
        )
    return write_page(read_result(folder / RESULT), folder / REPORT if output is None else Path(output))


def write_page(
    shown: "RunResult | ResultTable | ImpactRatios | MonitorSummary | Alternatives", output: str | Path
) -> Path:
    """Write the page of a result, a comparison, impact ratios, a monitored run or alternatives; return its path."""
    path = Path(output)
    check_place(path)  # before figures are drawn for it
    try:
        page = page_of(shown)
    except ModuleNotFoundError as error:
        raise ImportError(
            f'A report needs jinja2 and matplotlib: pip install "counterpoise[cli]" ({error}).'
        ) from error
    write_output(path, page.encode("utf-8", errors="replace"))  # a lone surrogate is no text
    return path


def page_of(shown: "RunResult | ResultTable | ImpactRatios | MonitorSummary | Alternatives") -> str:
    """Return the page of a value that has one."""
    from counterpoise.report import contents  # noqa: PLC0415 - needs optional packages
    from counterpoise.runs.table import ResultTable  # noqa: PLC0415 - as above

    if isinstance(shown, RunResult):
        return contents.render(shown)
    if isinstance(shown, ImpactRatios):
        return contents.render_impact(shown)
    if isinstance(shown, ResultTable):
        return contents.render_table(shown)
    from counterpoise.classifiers.alternatives import Alternatives  # noqa: PLC0415 - heavy
    from counterpoise.report.alternatives import alternatives_document  # noqa: PLC0415 - as above

    if isinstance(shown, Alternatives):
        return alternatives_document(shown).html()
    return contents.render_monitoring(shown)
