"""The command line: parse, call one function, print."""

import argparse
import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from counterpoise.experiments.running import Progress, Tell


class Experiment(NamedTuple):
    """A paper's experiments: the module, beside which there is one for the page, and the usual number of repeats."""

    module: str
    paper: str
    n_seeds: int
    n_jobs: int


EXPERIMENTS = {
    "boosted-cvar": Experiment("boosted_cvar", "Zhai et al. 2021, Figures 1 to 4", 5, 1),
    "vadaboost": Experiment("vadaboost", "Shivaswamy and Jebara 2011, Tables 1 and 2, Figures 1 and 2", 50, -1),
    "dro-boosting": Experiment("dro_boosting", "Blanchet, Zhang, Kang and Hu, Table 1, and shift", 20, 1),
    "dataset-constraints": Experiment("dataset_constraints", "Goh et al. 2016, Figures 2 and 3", 6, -1),
    "confidence": Experiment("confidence_coverage", "goals certified against a population, 10 splits a repeat", 30, 1),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 2 bad input."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (ValueError, OSError, ImportError) as error:
        sys.stderr.write(f"counterpoise: {error}\n")
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="counterpoise", description="Classifiers that meet real-world goals.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    reproduce = commands.add_parser(
        "reproduce",
        help="run a paper's experiments",
        description="Run a paper's experiments on real data. A run that was stopped goes on where it was.",
        epilog="names: " + "; ".join(f"{name}: {one.paper}" for name, one in EXPERIMENTS.items()),
    )
    reproduce.add_argument("name", choices=list(EXPERIMENTS), help="which experiments, see below")
    counts = ", ".join(f"{one.n_seeds} for {name}" for name, one in EXPERIMENTS.items())
    reproduce.add_argument("--seeds", type=int, metavar="N", help=f"repeats with other splits (default: {counts})")
    reproduce.add_argument(
        "--datasets", nargs="+", metavar="NAME", help="only these data sets (default: all that the experiment has)"
    )
    reproduce.add_argument("--jobs", type=int, metavar="N", help="processes, -1 for one a processor")
    reproduce.add_argument(
        "--output",
        type=Path,
        metavar="FOLDER",
        help="folder for the table, the figures and the page; a run goes on from what is there (default: results/NAME)",
    )
    reproduce.set_defaults(run=_reproduce)
    return parser


def _reproduce(options: argparse.Namespace) -> int:
    experiment = EXPERIMENTS[options.name]
    module = importlib.import_module(f"counterpoise.experiments.{experiment.module}")
    page = importlib.import_module(f"counterpoise.experiments.{experiment.module}_page")
    datasets = _checked_datasets(options.datasets, module.DATASETS)
    output = options.output or Path("results") / experiment.module
    output.mkdir(parents=True, exist_ok=True)
    with _progress() as tell:
        table = module.reproduce(
            output,
            n_seeds=options.seeds or experiment.n_seeds,
            datasets=datasets,
            n_jobs=options.jobs or experiment.n_jobs,
            tell=tell,
        )
    _say(f"page: {page.write_page(table)}")
    return 0


def _checked_datasets(names: Sequence[str] | None, known: Sequence[str]) -> Sequence[str]:
    for name in names or ():
        if name not in known:
            raise ValueError(f"--datasets must be among {', '.join(sorted(known))}; got {name!r}.")
    return names or known


@contextmanager
def _progress() -> "Iterator[Tell]":
    """Show progress: a bar in a terminal where rich is there, else a line for each part."""
    bar = _bar() if sys.stdout.isatty() else None
    if bar is None:
        yield lambda progress: _say(str(progress))
        return
    with bar:
        task = bar.add_task("starting", total=None)

        def tell(progress: "Progress") -> None:
            bar.update(task, completed=progress.done, total=progress.total, description=progress.part)

        yield tell


def _bar() -> Any:
    try:
        from rich.progress import Progress  # noqa: PLC0415 - an optional package
    except ImportError:
        return None
    return Progress()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
