"""Run a paper's experiments: ``python -m papers NAME``, as ``make reproduce PAPER=NAME`` does."""

import argparse
import sys
from pathlib import Path

from counterpoise.persist.locks import FolderInUse
from counterpoise.runs import RunProgress
from papers.boosted_cvar.page import STUDY as BOOSTED_CVAR
from papers.comparison.page import STUDY as COMPARISON
from papers.confidence.page import STUDY as CONFIDENCE
from papers.dataset_constraints.page import STUDY as DATASET_CONSTRAINTS
from papers.dro_boosting.page import STUDY as DRO_BOOSTING
from papers.holding.page import STUDY as HOLDING
from papers.inside_goals.page import STUDY as INSIDE_GOALS
from papers.proof.page import STUDY as PROOF
from papers.ratios.page import STUDY as RATIOS
from papers.results import read_rows
from papers.study import TABLE, Study
from papers.vadaboost.page import STUDY as VADABOOST
from papers.watching.page import STUDY as WATCHING

_ALL = (
    BOOSTED_CVAR,
    VADABOOST,
    DRO_BOOSTING,
    DATASET_CONSTRAINTS,
    CONFIDENCE,
    HOLDING,
    PROOF,
    RATIOS,
    WATCHING,
    INSIDE_GOALS,
    COMPARISON,
)
STUDIES = {study.name: study for study in _ALL}


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line names, and print where its page is."""
    asked = _parser().parse_args(arguments)
    study, name = STUDIES[asked.study], asked.study
    for one in asked.datasets or ():
        if one not in study.datasets:
            sys.exit(f"--datasets must be among {', '.join(sorted(study.datasets))}; got {one!r}.")
    n_seeds = asked.seeds
    if asked.quick or asked.full:
        study, n_seeds = _variant(study, quick=asked.quick, n_seeds=n_seeds)
        name += "-quick" if asked.quick else ""
    folder = asked.output or Path("results") / name
    _check_table(folder)
    try:
        table = study.run(folder, n_seeds=n_seeds, datasets=asked.datasets, n_jobs=asked.jobs, tell=_tell)
    except FolderInUse as error:
        sys.exit(f"Another process ({error.holder}) writes to {folder}: wait for its end, or name another --output.")
    print(f"page: {study.write(table)}")
    return 0


def _check_table(folder: Path) -> None:
    """End in a sentence where the table of a stopped run cannot be read."""
    table = folder / TABLE
    try:
        if table.exists():
            read_rows(table)
    except (OSError, ValueError) as error:
        sys.exit(f"{error}")


def _variant(study: Study, *, quick: bool, n_seeds: int | None) -> tuple[Study, int | None]:
    """Return the quick form of a study, or its largest number of repeats."""
    if quick and study.quick is not None:
        return study.quick, n_seeds
    if not quick and study.full_seeds is not None:
        return study, n_seeds or study.full_seeds
    sys.exit(f"--{'quick' if quick else 'full'} is not of {study.name}: set --seeds and --datasets instead.")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m papers",
        description="Run a paper's experiments on real data: our figures beside the published ones. A run that was "
        "stopped goes on where it was.",
        epilog="; ".join(f"{name}: {study.about}" for name, study in STUDIES.items()) + ".",
    )
    parser.add_argument("study", type=_name, choices=STUDIES, help="which experiments")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="minutes instead of hours, into results/PAPER-quick")
    size.add_argument("--full", action="store_true", help="more repeats, beyond those of a plain run")
    parser.add_argument("--seeds", type=_count, help="repeats with other splits; default: as many as the paper has")
    parser.add_argument("--datasets", nargs="+", help="only these data sets; default: all that the experiment has")
    parser.add_argument("--jobs", type=_jobs, help="processes, -1 for one a processor")
    parser.add_argument("--output", "-o", type=Path, help="folder for table, figures and page; default: results/PAPER")
    return parser


def _name(text: str) -> str:
    return text.replace("_", "-")  # as the folders are written


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1; got {text!r}")
    return int(text)


def _jobs(text: str) -> int:
    return -1 if text == "-1" else _count(text)


def _tell(progress: RunProgress) -> None:
    print(progress, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
