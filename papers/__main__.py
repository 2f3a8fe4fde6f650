"""Run an experiment: ``python -m papers NAME``, as ``make reproduce PAPER=NAME`` does, and print what comes of it."""

import argparse
import sys
import warnings
from importlib import import_module
from pathlib import Path

from counterpoise.persist.locks import FolderInUse
from counterpoise.runs import RunProgress
from papers.experiments import Experiment
from papers.tables import read_rows

MODULES = {  # of each experiment; its name is the key
    "margins": "papers.promises.margins_page",
    "proof": "papers.promises.proof",
    "audits": "papers.promises.audits",
    "watching": "papers.promises.watching",
    "comparison": "papers.comparison.page",
    "by-hand": "papers.comparison.by_hand",
    "ratios": "papers.comparison.ratios",
    "tails": "papers.tails.tails",
    "defaults": "papers.tails.defaults",
    "published": "papers.published",
    "boosted-cvar": "papers.boosted_cvar.page",
    "boosted-cvar-steps": "papers.boosted_cvar.steps",
    "boosted-cvar-images": "papers.boosted_cvar.images_page",
    "vadaboost": "papers.vadaboost.page",
    "dro-boosting": "papers.dro_boosting.page",
    "dataset-constraints": "papers.dataset_constraints.page",
    "ramp-threshold": "papers.dataset_constraints.ramp_threshold",
    "inside-goals": "papers.training.inside_goals",
    "network-inside-goals": "papers.training.network",
    "unseen-groups": "papers.training.unseen_groups",
    "alternatives": "papers.training.alternatives",
    "amounts": "papers.guides.amounts",
    "deferral": "papers.guides.deferral",
    "many-classes": "papers.guides.many_classes",
    "jobs": "papers.guides.jobs",
}


def experiment(name: str) -> Experiment:
    """Return an experiment by its name."""
    found: Experiment = import_module(MODULES[name]).EXPERIMENT
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line names, and print its blocks."""
    asked = _parser().parse_args(arguments)
    chosen = experiment(asked.experiment)
    for name in asked.datasets or ():
        if name not in chosen.datasets:
            sys.exit(f"--datasets must be among {', '.join(sorted(chosen.datasets))}; got {name!r}.")
    folder = asked.output or Path("results") / ("quick" if asked.quick else "")
    if asked.quick:
        chosen = chosen.quick_form()
    _check_table(chosen.table(folder))
    warnings.simplefilter("ignore")  # of thousands of fits and of foreign packages; what they come to is in the table
    try:
        if not asked.page:
            chosen.run(folder, n_seeds=asked.seeds, datasets=asked.datasets, n_jobs=asked.jobs, tell=_tell)
        blocks = chosen.write(folder)
    except FolderInUse as error:
        sys.exit(f"Another process ({error.holder}) writes to {folder}: wait for its end, or name another --output.")
    for title, text in blocks.items():
        print(f"{chosen.name}: {title}\n\n{text}\n")
    print(f"table: {chosen.table(folder)}")
    return 0


def _check_table(table: Path) -> None:
    """End in a sentence where the table of a stopped run cannot be read."""
    try:
        if table.exists():
            read_rows(table)
    except (OSError, ValueError) as error:
        sys.exit(f"{error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m papers",
        description="Run an experiment on real data. A run that was stopped goes on where it was.",
        epilog="papers/README.md says what each of them measures.",
    )
    parser.add_argument("experiment", type=_name, choices=MODULES, help="which one")
    parser.add_argument("--quick", action="store_true", help="a reduced form, of about a minute, into results/quick")
    parser.add_argument("--seeds", type=_count, help="repeats with other splits; default: those of the stored table")
    parser.add_argument("--datasets", nargs="+", help="only these data sets; default: all that the experiment has")
    parser.add_argument("--jobs", type=_jobs, default=1, help="processes, -1 for one a processor")
    parser.add_argument("--page", action="store_true", help="measure nothing: blocks and figures of the table there")
    parser.add_argument(
        "--output", "-o", type=Path, help="folder of table and figures; docs/results adds to the stored ones"
    )
    return parser


def _name(text: str) -> str:
    return text.replace("_", "-")


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
