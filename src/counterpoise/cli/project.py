"""The commands around the library itself: the demo, the papers' experiments, timings, public data sets."""

import importlib
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from cyclopts import App, Parameter

from counterpoise.cli import DONE
from counterpoise.cli.printing import PRINTED, Out, flowing


class Experiment(NamedTuple):
    """A paper's experiments: the module, beside which there is one for the page, and the usual number of repeats."""

    module: str
    n_seeds: int
    n_jobs: int


EXPERIMENTS = {
    "boosted-cvar": Experiment("boosted_cvar", 5, 1),
    "vadaboost": Experiment("vadaboost", 50, -1),
    "dro-boosting": Experiment("dro_boosting", 20, 1),
    "dataset-constraints": Experiment("dataset_constraints", 6, -1),
    "confidence": Experiment("confidence_coverage", 30, 1),
    "mixture-goals": Experiment("mixture_goals", 5, 1),
}
Name = Literal["boosted-cvar", "vadaboost", "dro-boosting", "dataset-constraints", "confidence", "mixture-goals"]


@flowing
def demo(
    *,
    output: Annotated[Path, Parameter(name=("--output", "-o"))] = Path("demo-output"),
    shown: Out = PRINTED,
) -> int:
    """Show the whole story on data that ships inside scikit-learn, in under two minutes.

    Boosts for the worst-off handwritten digits, then chooses among models for tumours: miss at most 2 % of the
    malignant ones, change at most 3 % of the old model's decisions, else raise as few false alarms as possible.

    Parameters
    ----------
    output
        Folder for the tables, the goals files and the run folders with their reports.
    """
    from counterpoise.demo import run_demo  # noqa: PLC0415 - heavy: only where the command runs

    found = run_demo(output, say=shown.say)
    shown.answer(f"\nReport: {found[-1]}", {"reports": found})
    return DONE


@flowing
def reproduce(
    name: Name,
    /,
    *,
    seeds: int | None = None,
    datasets: Annotated[list[str] | None, Parameter(negative="", consume_multiple=True)] = None,
    jobs: int | None = None,
    output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None,
    shown: Out = PRINTED,
) -> int:
    """Run a paper's experiments on real data: our figures beside the published ones.

    A run that was stopped goes on where it was. boosted-cvar: Zhai et al. 2021. vadaboost: Shivaswamy and Jebara 2011.
    dro-boosting: Blanchet, Zhang, Kang and Hu. dataset-constraints: Goh et al. 2016. confidence: goals certified
    against a population. mixture-goals: twenty models on ACS Income.

    Parameters
    ----------
    name
        Which experiments.
    seeds
        Repeats with other splits. Default: as many as the paper has.
    datasets
        Only these data sets. Default: all that the experiment has.
    jobs
        Processes, -1 for one a processor. Default: as many as the experiment gains from.
    output
        Folder for the table, the figures and the page. Default: results/NAME.
    """
    from counterpoise._checks import check_count  # noqa: PLC0415 - heavy: only where the command runs

    experiment = EXPERIMENTS[name]
    module = importlib.import_module(f"counterpoise.experiments.{experiment.module}")
    page = importlib.import_module(f"counterpoise.experiments.{experiment.module}_page")
    for dataset in datasets or ():
        if dataset not in module.DATASETS:
            raise ValueError(f"--datasets must be among {', '.join(sorted(module.DATASETS))}; got {dataset!r}.")
    if seeds is not None:
        check_count(seeds, "--seeds")
    if jobs is not None and jobs != -1:
        check_count(jobs, "--jobs")
    folder = output or Path("results") / name
    folder.mkdir(parents=True, exist_ok=True)
    with shown.progress() as tell:
        table = module.reproduce(
            folder,
            n_seeds=seeds or experiment.n_seeds,
            datasets=datasets or module.DATASETS,
            n_jobs=jobs or experiment.n_jobs,
            tell=tell,
        )
    written = page.write_page(table)
    shown.answer(f"page: {written}", {"page": written, "results": table})
    return DONE


@flowing
def bench(*, shown: Out = PRINTED) -> int:
    """Time the solver and the learners of this installation beside their peers, in about a minute.

    Ratios are the peer's seconds over ours. The full suites are in the folder bench of the project: make bench.
    """
    from counterpoise.experiments.quick_bench import measure, rows_as_text  # noqa: PLC0415

    rows = measure(say=shown.say)
    shown.answer(rows_as_text(rows), {"rows": [row._asdict() for row in rows]})
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
    from counterpoise.datasets import load  # noqa: PLC0415

    found = load(name)
    n_rows, n_columns = found.X.shape[0], found.X.shape[1]
    shown.answer(f"{name}: {n_rows} rows, {n_columns} columns", {"name": name, "rows": n_rows, "columns": n_columns})
    return DONE
