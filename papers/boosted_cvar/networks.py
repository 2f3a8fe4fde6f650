"""Boosted CVaR Classification (Zhai et al., NeurIPS 2021), Appendix B: networks boosted on CIFAR-10 and CIFAR-100.

The boosting needs a GPU and hours, all the rest seconds. So this module only boosts, and keeps the zero-one losses of
every round on training, validation and test rows. ``python -m papers boosted-cvar-images`` makes results of those in
``docs/results/losses`` on any machine::

    python -m papers.boosted_cvar.networks --data DATA --state STATE --output OUTPUT --minutes 9 --seed 0 1 2 3 4

Several plans, seeds or alphas are boosted one after the other. It ends after a round, before the given time, and the
same command goes on from there. It needs torch, numpy, scipy, scikit-learn and numba.
"""

import argparse
import functools
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

from counterpoise.datasets.folders import data_folders
from papers.boosted_cvar.image_runs import ADALPBOOST, LPBOOST, Boosting, Images, Limit, Run, Say, split_images
from papers.boosted_cvar.images import load_images
from papers.boosted_cvar.plans import PLANS
from papers.kept_losses import KeptLosses

_LP_ALPHA = 0.1  # where both methods are run


class Where(NamedTuple):
    """Where runs find what they need and leave what they make."""

    images: Callable[[str, int], Images]  # of a data set, cut by a seed
    state: Path
    output: Path | None = None
    device: str = "auto"


def run_all(runs: Sequence[Run], where: Where, limit: Limit, say: Say) -> list[KeptLosses]:
    """Boost runs one after the other, and return the losses of each."""
    kept = []
    for run in runs:
        name = f"{run.plan.name}, seed {run.seed}" + ("" if run.alpha is None else f", alpha {run.alpha:g}")
        images, learner = where.images(run.plan.dataset, run.seed), run.plan.make_learner(where.device)
        boosting = Boosting(run, images, learner, where.state)
        kept.append(boosting.go_on(limit, output=where.output, say=partial(_say_of, name, say)))
    return kept


def _say_of(name: str, say: Say, line: str) -> None:
    say(f"{name}: {line}")


def _cut_images(folder: Path | None) -> Callable[[str, int], Images]:
    """Return what loads a data set and cuts it by a seed, either once."""
    load = functools.cache(lambda name: load_images(name, data_folders(folder)))
    return functools.cache(lambda name, seed: split_images(load(name), seed))


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m papers.boosted_cvar.networks", description=__doc__)
    parser.add_argument(
        "--plan", nargs="+", choices=list(PLANS), default=["cifar10"], help="data set, network and schedule"
    )
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="where the images are")
    parser.add_argument("--state", type=Path, required=True, metavar="FOLDER", help="kept from one call to the next")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="gets a copy of the losses after every round")
    parser.add_argument("--rounds", type=int, help="in all, those of earlier calls included (default: as the paper)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after a round before this time")
    parser.add_argument("--method", choices=(ADALPBOOST, LPBOOST), default=ADALPBOOST)
    parser.add_argument("--alpha", type=float, nargs="+", help="tail fractions of LPBoost's weights (default: 0.1)")
    parser.add_argument("--seed", type=int, nargs="+", default=[0])
    parser.add_argument("--device", default="auto")
    options = parser.parse_args(arguments)
    if options.method == ADALPBOOST and options.alpha is not None:
        parser.error("--alpha is for --method lpboost: the weights of adalpboost have none")
    for alpha in options.alpha or ():
        if not 0 < alpha <= 1:
            parser.error(f"--alpha must lie above 0 and be at most 1; got {alpha:g}")
    for name, value in (("rounds", options.rounds), ("minutes", options.minutes)):
        if value is not None and not value > 0:
            parser.error(f"--{name} must be above 0; got {value:g}")
    for name in ("plan", "alpha", "seed"):
        given = getattr(options, name) or ()
        if len(set(given)) < len(given):
            parser.error(f"--{name} must name each once; got {' '.join(map(str, given))}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Boost for some minutes; return 0, or 2 after one sentence where something is wrong with what is given."""
    started = time.monotonic()
    options = _parsed(arguments)
    alphas = (None,) if options.method == ADALPBOOST else options.alpha or (_LP_ALPHA,)
    plans = [PLANS[name] for name in options.plan]
    runs = [Run(plan, options.method, alpha, seed) for plan, seed, alpha in product(plans, options.seed, alphas)]
    n_rounds = max(plan.n_rounds for plan in plans) if options.rounds is None else options.rounds
    try:
        where = Where(_cut_images(options.data), options.state, options.output, options.device)
        run_all(runs, where, Limit(n_rounds, 60 * options.minutes, started), _say)
    except (ValueError, OSError, ImportError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
