"""Run a paper's experiments: ``python -m papers NAME``, as ``make reproduce PAPER=NAME`` does."""

import argparse
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from counterpoise.runs import RunProgress
from papers.boosted_cvar import experiment as boosted_cvar
from papers.boosted_cvar import page as boosted_cvar_page
from papers.confidence import experiment as confidence
from papers.confidence import page as confidence_page
from papers.dataset_constraints import experiment as dataset_constraints
from papers.dataset_constraints import page as dataset_constraints_page
from papers.dro_boosting import experiment as dro_boosting
from papers.dro_boosting import page as dro_boosting_page
from papers.inside_goals import experiment as inside_goals
from papers.inside_goals import page as inside_goals_page
from papers.mixture_goals import experiment as mixture_goals
from papers.mixture_goals import page as mixture_goals_page
from papers.risks_under_shift import experiment as risks_under_shift
from papers.risks_under_shift import page as risks_under_shift_page
from papers.vadaboost import experiment as vadaboost
from papers.vadaboost import page as vadaboost_page


class Paper(NamedTuple):
    """What makes the table, what makes the page, and whose experiments they are."""

    experiment: ModuleType
    page: ModuleType
    about: str


PAPERS = {
    "boosted-cvar": Paper(boosted_cvar, boosted_cvar_page, "Zhai, Dan, Suggala, Kolter and Ravikumar 2021"),
    "vadaboost": Paper(vadaboost, vadaboost_page, "Shivaswamy and Jebara 2011"),
    "dro-boosting": Paper(dro_boosting, dro_boosting_page, "Blanchet, Zhang, Kang and Hu"),
    "dataset-constraints": Paper(
        dataset_constraints,
        dataset_constraints_page,
        "Goh, Cotter, Gupta and Friedlander 2016",
    ),
    "confidence": Paper(confidence, confidence_page, "goals certified against a population"),
    "mixture-goals": Paper(mixture_goals, mixture_goals_page, "twenty models on ACS Income under goals"),
    "inside-goals": Paper(inside_goals, inside_goals_page, "frontiers of training inside goals, beside peers"),
    "risks-under-shift": Paper(risks_under_shift, risks_under_shift_page, "one pool chosen for several risks"),
}


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line names, and print where its page is."""
    asked = _parser().parse_args(arguments)
    paper = PAPERS[asked.paper]
    known = sorted(paper.experiment.DATASETS)
    for name in asked.datasets or ():
        if name not in known:
            sys.exit(f"--datasets must be among {', '.join(known)}; got {name!r}.")
    folder = asked.output or Path("results") / asked.paper
    folder.mkdir(parents=True, exist_ok=True)
    given = {"n_seeds": asked.seeds, "datasets": asked.datasets, "n_jobs": asked.jobs}
    chosen = {name: value for name, value in given.items() if value is not None}
    table = paper.experiment.reproduce(folder, tell=_tell, **chosen)
    print(f"page: {paper.page.write_page(table)}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m papers",
        description="Run a paper's experiments on real data: our figures beside the published ones. A run that was "
        "stopped goes on where it was.",
        epilog="; ".join(f"{name}: {paper.about}" for name, paper in PAPERS.items()) + ".",
    )
    parser.add_argument("paper", type=_name, choices=PAPERS, help="which experiments")
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
