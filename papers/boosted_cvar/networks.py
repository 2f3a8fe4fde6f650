"""Boosted CVaR Classification (Zhai et al., NeurIPS 2021), Appendix B: networks boosted on CIFAR-10 and CIFAR-100.

The boosting needs a GPU and hours, all the rest seconds. So this module only boosts, and keeps the zero-one losses of
every round on training, validation and test rows; ``losses`` makes results of them on any machine::

    python -m papers.boosted_cvar.networks --data DATA --state STATE --output OUTPUT --minutes 9 --seed 0 1 2 3 4

Several plans, seeds or alphas are boosted at once, each on a stream of the device: a small network does not fill it. It
ends after a round, before the given time, and the same command goes on from there. It needs torch, numpy, scipy,
scikit-learn and numba.
"""

import argparse
import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from counterpoise.datasets import DataNotAvailable
from counterpoise.datasets.folders import data_folders
from counterpoise.runs import ProgressCallback, RunProgress
from papers.boosted_cvar.curves import LP_ALPHAS
from papers.boosted_cvar.image_runs import ADALPBOOST, LPBOOST, Boosting, Images, Limit, Run, Say, split_images
from papers.boosted_cvar.images import load_images
from papers.boosted_cvar.losses import write_results
from papers.boosted_cvar.plans import PLANS, Plan
from papers.kept_losses import KeptLosses

_LP_ALPHA = 0.1  # where both methods are run


class Where(NamedTuple):
    """Where runs find what they need and leave what they make."""

    images: Callable[[str, int], Images]  # of a data set, cut by a seed
    state: Path
    output: Path | None = None
    device: str = "auto"
    compiled: bool = False


def run_at_once(runs: Sequence[Run], where: Where, limit: Limit, say: Say) -> list[KeptLosses]:
    """Boost several runs, each in a thread and on a stream of its own, and return the losses of each.

    Steps are captured one run after the other, before any starts: trials of the fastest kernels must not disturb each
    other. Where one fails, the others end after the round they are at.
    """
    boostings = [
        Boosting(
            run,
            where.images(run.plan.dataset, run.seed),
            run.plan.make_learner(where.device, compiled=where.compiled),
            where.state,
        )
        for run in runs
    ]
    for boosting in boostings:
        boosting.make_ready()
    return _Team(boostings, limit, where.output, say).go_on()


class _Team:
    """Boostings that share a device."""

    def __init__(self, boostings: Sequence[Boosting], limit: Limit, output: Path | None, say: Say) -> None:
        self.boostings, self.limit, self.output = boostings, limit, output
        self._say, self._talking, self._failed = say, threading.Lock(), threading.Event()
        self._n_running = len(boostings)

    def go_on(self) -> list[KeptLosses]:
        with ThreadPoolExecutor(len(self.boostings)) as pool:
            started = [pool.submit(self._run, boosting) for boosting in self.boostings]
            try:
                return [one.result() for one in started]
            except BaseException:
                self._failed.set()
                raise

    def _run(self, boosting: Boosting) -> KeptLosses:
        run = boosting.run
        name = f"{run.plan.name}, seed {run.seed}" + ("" if run.alpha is None else f", alpha {run.alpha:g}")
        try:
            with _own_stream(boosting):
                return boosting.go_on(
                    self.limit,
                    output=self.output,
                    say=lambda line: self._told(f"{name}: {line}"),
                    n_at_once=lambda: self._n_running,
                    is_stopped=self._failed.is_set,
                )
        except BaseException:
            self._failed.set()
            raise
        finally:
            with self._talking:
                self._n_running -= 1

    def _told(self, line: str) -> None:
        with self._talking:
            self._say(line)


def _own_stream(boosting: Boosting) -> AbstractContextManager[Any]:
    """Have all that this thread asks of a CUDA device run beside what others ask; what was asked before is done."""
    device = boosting.fit.prepared.place.device
    if device.type != "cuda":
        return nullcontext()
    import torch  # noqa: PLC0415 - optional, and heavy

    torch.cuda.synchronize(device)
    stream: AbstractContextManager[Any] = torch.cuda.stream(torch.cuda.Stream(device))
    return stream


def reproduce(
    output: Path, datasets: Sequence[str], *, n_seeds: int = 1, tell: ProgressCallback = lambda _progress: None
) -> Path | None:
    """Boost those data sets whose images are there, on CUDA, and return the table of all kept losses in ``output``.

    Returns
    -------
    Path or None
        None where there are no kept losses.
    """
    if datasets and _has_cuda():
        for plan in PLANS.values():
            if plan.dataset in datasets:
                _run_all(plan, n_seeds, output, tell)
    return write_results(output)


def _has_cuda() -> bool:
    if find_spec("torch") is None:
        return False
    import torch  # noqa: PLC0415 - optional, and heavy

    return bool(torch.cuda.is_available())


def _run_all(plan: Plan, n_seeds: int, output: Path, tell: ProgressCallback) -> None:
    """Boost with Hedge on all seeds, then with LPBoost at all alphas; do nothing where the images are not there."""
    try:
        images = _cut_images(None)
        images(plan.dataset, 0)
    except DataNotAvailable:
        return
    where = Where(images, output / "state", output, compiled=find_spec("triton") is not None)
    runs = [Run(plan, seed=seed) for seed in range(n_seeds)] + [Run(plan, LPBOOST, alpha) for alpha in LP_ALPHAS]
    started = time.monotonic()
    done, total = 0, len(runs) * plan.n_rounds

    def say(line: str) -> None:
        nonlocal done
        done += ": round " in line
        elapsed = time.monotonic() - started
        tell(RunProgress(done, total, line, elapsed, elapsed / max(done, 1) * (total - done)))

    for group in _groups(runs, plan.n_at_once):
        run_at_once(group, where, Limit(plan.n_rounds), say)


def _groups(runs: Sequence[Run], size: int) -> Iterator[Sequence[Run]]:
    return (runs[start : start + size] for start in range(0, len(runs), size))


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
    parser.add_argument("--compile", action="store_true", help="fuse the operations of a step (a minute; needs triton)")
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
        where = Where(_cut_images(options.data), options.state, options.output, options.device, options.compile)
        run_at_once(runs, where, Limit(n_rounds, 60 * options.minutes, started), _say)
    except (ValueError, OSError, ImportError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
