"""One boosting of networks on images: its settings, its rounds, and what of them is on disk to go on from."""

import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from counterpoise.boosting.learner import LearnerFit
from counterpoise.boosting.rounds import Fitted, History, Round, Rule, boost
from counterpoise.boosting.row_store import RowStore
from counterpoise.boosting.rules import hedge, regularized_dual
from counterpoise.datasets import split_rows
from counterpoise.learners import NetworkLearner
from counterpoise.persist import write_atomically
from counterpoise.rules.pool import predict_codes
from papers.arrays import AnyArray, ByteArray, FloatArray, IntArray
from papers.boosted_cvar.curves import BETA, ETA
from papers.boosted_cvar.images import ImageData
from papers.boosted_cvar.plans import Plan
from papers.kept_losses import DAMAGED, KeptLosses, Took, losses_file

ADALPBOOST, LPBOOST = "adalpboost", "lpboost"
_MARGIN = 1.1  # how much longer than the last round the next may take
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


class Boosting:
    """A run with its rows on the device, from where ``state`` is.

    Parameters
    ----------
    run : Run
        What is boosted.
    data : Images
        The rows.
    learner : NetworkLearner
        The plan's, for some device.
    state : Path
        Folder of the losses so far and of the warmed-up network. It must not be removed between calls.
    """

    def __init__(self, run: Run, data: Images, learner: NetworkLearner, state: Path) -> None:
        self.run, self.data, self.learner, self.state = run, data, learner, state
        self.kept = _restored(run, data, state)
        self.warm_up = _WarmUp(run, state)
        self.fit: Any = LearnerFit(learner, data.train.X, data.train.codes, data.classes, run.round_seed)
        self._clock = _Clock()

    def go_on(self, limit: Limit, *, output: Path | None = None, say: Say) -> KeptLosses:
        """Boost up to the limit, and return all losses.

        Parameters
        ----------
        limit : Limit
            Rounds and seconds.
        output : Path, optional
            Folder that gets a copy of the losses after every round.
        say : callable
            Told a line after every round.

        Returns
        -------
        KeptLosses
        """
        kept = self.kept
        n_left = max(limit.n_rounds - kept.n_rounds, 0)
        if output is not None and kept.n_rounds:
            kept.write(output / self.run.file)
        say(f"{self.run.file}: {kept.n_rounds} rounds are there, {n_left} are left")
        if n_left == 0:
            return kept
        self._warm_up(say)

        def after_round(done: Round, history: History) -> bool:
            self._record(done, history, output, say)
            return limit.is_reached(kept.took[-1].seconds)

        self._clock.lap()
        history = _history_of(kept, limit.n_rounds)
        boost(self._fitted, history, reweigh=self.run.rule(), stop=after_round, n_rounds=n_left)
        return kept

    def _warm_up(self, say: Say) -> None:
        """Take the warmed-up network of the folder, or make it."""
        prepared: Any = self.fit.prepared
        found = self.warm_up.read()
        if found is None:
            self._clock.lap()
            self.fit.learner.warm_up(prepared, self.data.train.codes, len(self.data.classes))
            seconds = self._clock.lap()
            self.warm_up.write(prepared.shared, seconds)
            say(f"{self.warm_up.path.name}: warmed up in {seconds:.1f} s")
        else:
            prepared.shared = found
        self.kept.warmup_seconds = self.warm_up.seconds

    def _fitted(self, weights: FloatArray, number: int) -> Fitted:
        self._weighing = self._clock.lap()
        fitted: Fitted = self.fit(weights, number)
        self._training = self._clock.lap()
        return fitted

    def _record(self, done: Round, history: History, output: Path | None, say: Say) -> None:
        data, kept = self.data, self.kept
        losses = {"train": done.losses} | {
            name: (predict_codes(done.model, part.X, data.classes) != part.codes).view(np.uint8)
            for name, part in (("validation", data.validation), ("test", data.test))
        }
        took = Took(self._weighing, self._training, self._clock.lap())
        kept.append(losses, done.weighted_loss, took)
        kept.memory = dict(history.memory)
        for folder in (self.state, output):
            if folder is not None:
                kept.write(folder / self.run.file)
        say(_told(done, losses, took, took.training / self.run.plan.n_iterations))
        history.models[-1] = None  # its losses are all that is needed of it


def run_rounds(
    run: Run, data: Images, limit: Limit, learner: NetworkLearner, *, state: Path, output: Path | None = None, say: Say
) -> KeptLosses:
    """Boost one run up to the limit from where ``state`` is, and return all losses; see ``Boosting``."""
    return Boosting(run, data, learner, state).go_on(limit, output=output, say=say)


def _told(done: Round, losses: dict[str, ByteArray], took: Took, step: float) -> str:
    accuracy = {name: 1 - float(column.mean()) for name, column in losses.items()}
    return (
        f"round {done.number}: {took.seconds:.1f} s, {1000 * step:.2f} ms a step; "
        f"weighted loss {done.weighted_loss:.3f}; "
        f"accuracy {accuracy['train']:.4f} train, {accuracy['validation']:.4f} validation, {accuracy['test']:.4f} test"
    )


class _Clock:
    """How long it is since the last look."""

    def __init__(self) -> None:
        self._looked = time.monotonic()

    def lap(self) -> float:
        last, self._looked = self._looked, time.monotonic()
        return self._looked - last


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
    history = History(RowStore(np.full(size, 1 / size), max(n_rounds, kept.n_rounds)))
    for number, known in enumerate(zip(kept.losses("train").T, kept.weighted_losses, strict=True), 1):
        history.append(Round(number, None, history.rows.start, *known))
    history.memory = dict(kept.memory)
    return history


class _WarmUp:
    """The warmed-up network on disk, the same for all methods of one plan and seed."""

    def __init__(self, run: Run, state: Path) -> None:
        self.path = state / f"warmup_{run.plan.name}_seed{run.seed}.npz"
        self.about = json.dumps([run.plan.learner, run.plan.schedule])
        self.seconds = float("nan")  # where they are known

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
        self.seconds = float(found.pop("seconds", np.array(np.nan)))
        return found

    def write(self, shared: dict[str, FloatArray], seconds: float) -> None:
        self.seconds = seconds
        stream = io.BytesIO()
        arrays: dict[str, Any] = {"about": np.array(self.about), "seconds": np.array(seconds)} | shared
        np.savez(stream, **arrays)
        write_atomically(self.path, [stream.getvalue()])
