"""Boosted CVaR Classification (Zhai et al., NeurIPS 2021), Appendix B: networks boosted on CIFAR-10 and CIFAR-100.

The boosting needs a GPU and hours, all the rest seconds. So this module only boosts, and keeps the zero-one losses of
every round on training, validation and test rows; ``losses`` makes results of them on any machine::

    python -m papers.boosted_cvar.networks --data DATA --state STATE --output OUTPUT --minutes 9

It ends after a round, before the given time, and the same command goes on from there. It needs torch, numpy, scipy,
scikit-learn and numba.
"""

import argparse
import io
import json
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from counterpoise.boosting.learner import make_fit
from counterpoise.boosting.rounds import History, Round, Rule, boost
from counterpoise.boosting.rules import hedge, regularized_dual
from counterpoise.datasets import DataNotAvailable, ImageData, split_rows
from counterpoise.datasets.files import places
from counterpoise.datasets.images import load_images
from counterpoise.learners import NetworkLearner
from counterpoise.mixtures.pool import predict_codes
from counterpoise.persist import write_atomically
from counterpoise.runs import RunProgress, Tell
from papers.arrays import AnyArray, ByteArray, FloatArray, IntArray
from papers.boosted_cvar.curves import BETA, ETA
from papers.boosted_cvar.losses import write_results
from papers.boosted_cvar.plans import BATCH, PLANS, Plan
from papers.kept_losses import DAMAGED, KeptLosses, losses_file

ADALPBOOST, LPBOOST = "adalpboost", "lpboost"
_LP_ALPHA = 0.1  # where both methods are run
_MARGIN = 1.25  # how much longer than the last round the next may take
_VALIDATION = 0.1  # of the training rows

Say = Callable[[str], None]


class Part(NamedTuple):
    """Images and the codes of their classes."""

    X: ByteArray
    codes: IntArray


class Images(NamedTuple):
    """A data set cut into the parts of the experiment."""

    train: Part
    validation: Part
    test: Part
    classes: AnyArray

    def sizes(self) -> dict[str, int]:
        """Return the number of rows of each part."""
        return {name: len(getattr(self, name).codes) for name in ("train", "validation", "test")}


def split_images(data: ImageData, seed: int) -> Images:
    """Cut the official training part into training and validation rows."""
    classes, codes = np.unique(data.y, return_inverse=True)
    given = np.flatnonzero(~data.is_test)
    kept, held_out = split_rows(codes[given], (1 - _VALIDATION, _VALIDATION), seed=seed)
    rows = (given[kept], given[held_out], np.flatnonzero(data.is_test))
    train, validation, test = (Part(data.X[part], codes[part].astype(np.int64)) for part in rows)
    return Images(train, validation, test, classes)


class Run(NamedTuple):
    """One boosting: its plan, the rule of the weights, and the seed of split and networks."""

    plan: Plan
    method: str = ADALPBOOST
    alpha: float | None = None  # of LPBoost's weights
    seed: int = 0

    @property
    def settings(self) -> dict[str, Any]:
        """Return what decides the rounds."""
        step = {"eta": ETA} if self.method == ADALPBOOST else {"beta": BETA}
        plan = self.plan
        names = {"plan": plan.name, "dataset": plan.dataset, "learner": plan.learner, "schedule": plan.schedule}
        return names | {"method": self.method, "alpha": self.alpha, "seed": self.seed} | step

    @property
    def file(self) -> str:
        """Return the name of the file of losses."""
        return losses_file(self.settings)

    def rule(self) -> Rule:
        """Return how the next weights follow from the losses so far."""
        return hedge(ETA) if self.alpha is None else regularized_dual(self.alpha, BETA)

    def round_seed(self, number: int) -> int:
        """Return the seed of a round, 0 for the warm-up; the warm-up is the same for all methods."""
        return int(np.random.SeedSequence(self.seed, spawn_key=(number,)).generate_state(1)[0]) >> 1


class Limit(NamedTuple):
    """When to stop: so many rounds in all, or before so many seconds since the start."""

    n_rounds: int
    seconds: float = float("inf")
    started: float = 0.0  # as time.monotonic has it

    def is_reached(self, last_round: float) -> bool:
        """Tell whether a further round might take too long."""
        return time.monotonic() - self.started + _MARGIN * last_round > self.seconds


def run_rounds(
    run: Run, data: Images, limit: Limit, learner: NetworkLearner, *, state: Path, output: Path | None = None, say: Say
) -> KeptLosses:
    """Boost up to the limit from where ``state`` is, and return all losses.

    Parameters
    ----------
    run : Run
        What is boosted.
    data : Images
        The rows.
    limit : Limit
        Rounds and seconds.
    learner : NetworkLearner
        The plan's, for some device.
    state : Path
        Folder of the losses so far and of the warmed-up network. It must not be removed between calls.
    output : Path, optional
        Folder that gets a copy of the losses after every round.
    say : callable
        Told a line after every round.

    Returns
    -------
    KeptLosses
    """
    kept = _restored(run, data, state)
    warm = _WarmUp(run, state)
    fit: Any = make_fit(learner, data.train.X, data.train.codes, data.classes, run.round_seed)
    fit.prepared.shared = warm.read()
    history = _history_of(kept, limit.n_rounds)
    clock = _Clock(run.plan, len(data.train.codes), is_warm=fit.prepared.shared is not None)
    if output is not None and kept.n_rounds:
        kept.write(output / run.file)
    say(f"{run.file}: {kept.n_rounds} rounds are there, {max(limit.n_rounds - kept.n_rounds, 0)} are left")

    def after_round(done: Round, history: History) -> bool:
        seconds, step = clock.lap()
        warm.write(fit.prepared.shared)
        losses = {"train": done.losses} | {
            name: (predict_codes(done.model, part.X, data.classes) != part.codes).view(np.uint8)
            for name, part in (("validation", data.validation), ("test", data.test))
        }
        kept.append(losses, done.weighted_loss)
        kept.memory = dict(history.memory)
        for folder in (state, output):
            if folder is not None:
                kept.write(folder / run.file)
        say(_told(done, losses, seconds, step))
        history.models[-1] = None  # its losses are all that is needed of it
        clock.start()
        return limit.is_reached(seconds)

    clock.start()
    boost(fit, history, reweigh=run.rule(), stop=after_round, n_rounds=max(limit.n_rounds - kept.n_rounds, 0))
    return kept


def _told(done: Round, losses: dict[str, ByteArray], seconds: float, step: float) -> str:
    accuracy = {name: 1 - float(column.mean()) for name, column in losses.items()}
    return (
        f"round {done.number}: {seconds:.1f} s, {1000 * step:.2f} ms a step; weighted loss {done.weighted_loss:.3f}; "
        f"accuracy {accuracy['train']:.4f} train, {accuracy['validation']:.4f} validation, {accuracy['test']:.4f} test"
    )


class _Clock:
    """How long a round took, and a step of it; the first has the steps of the warm-up too."""

    def __init__(self, plan: Plan, n_rows: int, *, is_warm: bool) -> None:
        self._n_steps = plan.n_iterations
        self._extra = 0 if is_warm else plan.warmup_epochs * -(-n_rows // BATCH)
        self._began = time.monotonic()

    def start(self) -> None:
        self._began = time.monotonic()

    def lap(self) -> tuple[float, float]:
        seconds = time.monotonic() - self._began
        step = seconds / (self._n_steps + self._extra)
        self._extra = 0
        return seconds, step


def _restored(run: Run, data: Images, state: Path) -> KeptLosses:
    path = state / run.file
    fresh = KeptLosses(run.settings, data.sizes())
    if not path.is_file():
        return fresh
    kept = KeptLosses.read(path)
    if (kept.settings, kept.sizes) != (fresh.settings, fresh.sizes):
        raise ValueError(
            f"{path} must be of this run, with {fresh.settings} and rows {fresh.sizes}; it has {kept.settings} and "
            f"{kept.sizes}. Use another --state folder."
        )
    return kept


def _history_of(kept: KeptLosses, n_rounds: int) -> History:
    """Return the rounds so far, without their models."""
    size = kept.sizes["train"]
    history = History(np.full(size, 1 / size), max(n_rounds, kept.n_rounds))
    for losses, weighted_loss in zip(kept.losses("train").T, kept.weighted_losses, strict=True):
        history.add(None, losses, weighted_loss)
    history.memory = dict(kept.memory)
    return history


class _WarmUp:
    """The warmed-up network on disk, the same for all methods of one plan and seed."""

    def __init__(self, run: Run, state: Path) -> None:
        self.path = state / f"warmup_{run.plan.name}_seed{run.seed}.npz"
        self.about = json.dumps([run.plan.learner, run.plan.schedule])

    def read(self) -> dict[str, FloatArray] | None:
        if not self.path.is_file():
            return None
        content = io.BytesIO(self.path.read_bytes())
        try:
            with np.load(content, allow_pickle=False) as arrays:
                found = {name: arrays[name] for name in arrays.files}
        except DAMAGED as error:
            raise ValueError(
                f"the file {self.path} must hold a warmed-up network; it is damaged or another file ({error}). "
                "Use another --state folder."
            ) from error
        about = str(found.pop("about", ""))
        if about != self.about:
            raise ValueError(f"{self.path} must be of {self.about}; it is of {about}. Use another --state folder.")
        return found

    def write(self, shared: dict[str, FloatArray]) -> None:
        if not self.path.is_file():
            stream = io.BytesIO()
            arrays: dict[str, Any] = {"about": np.array(self.about)} | shared
            np.savez(stream, **arrays)
            write_atomically(self.path, [stream.getvalue()])


def reproduce(
    output: Path, datasets: Sequence[str], *, n_seeds: int = 1, tell: Tell = lambda _progress: None
) -> Path | None:
    """Boost those data sets whose images are there, on CUDA, and return the table of all kept losses in ``output``.

    Returns
    -------
    Path or None
        None where there are no kept losses.
    """
    if datasets and _has_cuda():
        for plan in PLANS.values():
            for seed in range(n_seeds if plan.dataset in datasets else 0):
                _run_all(plan, seed, output, tell)
    return write_results(output)


def _has_cuda() -> bool:
    if find_spec("torch") is None:
        return False
    import torch  # noqa: PLC0415 - optional, and heavy

    return bool(torch.cuda.is_available())


def _run_all(plan: Plan, seed: int, output: Path, tell: Tell) -> None:
    """Boost with both rules; do nothing where the images are not there."""
    try:
        data = split_images(load_images(plan.dataset, places(None)), seed)
    except DataNotAvailable:
        return
    learner = plan.make_learner(compiled=find_spec("triton") is not None)
    started = time.monotonic()
    done, total = 0, 2 * plan.n_rounds

    def say(line: str) -> None:
        nonlocal done
        done += line.startswith("round")
        elapsed = time.monotonic() - started
        tell(
            RunProgress(
                done, total, f"{plan.name}, seed {seed}, {line}", elapsed, elapsed / max(done, 1) * (total - done)
            )
        )

    for run in (Run(plan, seed=seed), Run(plan, LPBOOST, _LP_ALPHA, seed)):
        run_rounds(run, data, Limit(plan.n_rounds), learner, state=output / "state", output=output, say=say)


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m papers.boosted_cvar.networks", description=__doc__)
    parser.add_argument("--plan", choices=list(PLANS), default="cifar10", help="data set, network and schedule")
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="where the images are")
    parser.add_argument("--state", type=Path, required=True, metavar="FOLDER", help="kept from one call to the next")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="gets a copy of the losses after every round")
    parser.add_argument("--rounds", type=int, help="in all, those of earlier calls included (default: as the paper)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after a round before this time")
    parser.add_argument("--method", choices=(ADALPBOOST, LPBOOST), default=ADALPBOOST)
    parser.add_argument("--alpha", type=float, help="tail fraction of LPBoost's weights (default: 0.1)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--compile", action="store_true", help="fuse the operations of a step (a minute; needs triton)")
    options = parser.parse_args(arguments)
    if options.method == ADALPBOOST and options.alpha is not None:
        parser.error("--alpha is for --method lpboost: the weights of adalpboost have none")
    if options.alpha is not None and not 0 < options.alpha <= 1:
        parser.error(f"--alpha must lie above 0 and be at most 1; got {options.alpha:g}")
    for name, value in (("rounds", options.rounds), ("minutes", options.minutes)):
        if value is not None and not value > 0:
            parser.error(f"--{name} must be above 0; got {value:g}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Boost for some minutes; return 0, or 2 after one sentence where something is wrong with what is given."""
    started = time.monotonic()
    options = _parsed(arguments)
    alpha = None if options.method == ADALPBOOST else _LP_ALPHA if options.alpha is None else options.alpha
    plan = PLANS[options.plan]
    limit = Limit(plan.n_rounds if options.rounds is None else options.rounds, 60 * options.minutes, started)
    try:
        data = split_images(load_images(plan.dataset, places(options.data)), options.seed)
        run_rounds(
            Run(plan, options.method, alpha, options.seed),
            data,
            limit,
            plan.make_learner(options.device, compiled=options.compile),
            state=options.state,
            output=options.output,
            say=_say,
        )
    except (ValueError, OSError, ImportError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
