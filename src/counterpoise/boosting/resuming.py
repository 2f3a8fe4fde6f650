"""Rounds of a booster that can be interrupted: what decides them, what is saved of each, how a fit goes on."""

from dataclasses import asdict
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from counterpoise.boosting.checkpoint import (
    NOT_OF_ROUNDS,
    CheckpointFolder,
    Run,
    SavedRound,
    Seeds,
    data_texts,
    setting_texts,
)
from counterpoise.boosting.inputs import Rows, check_predict_input, round_seed, seed_sequence, set_learner_tags
from counterpoise.boosting.inside import InsideFit
from counterpoise.boosting.learner import RoundsFit, base_learner
from counterpoise.boosting.rounds import IMPROVEMENT, History, Round, Rule, Standing, boost
from counterpoise.boosting.stopping import Stopping, stopping_of
from counterpoise.goals import Table
from counterpoise.goals.expressions import Rate
from counterpoise.mixtures.choosing import Aim
from counterpoise.mixtures.draws import make_key
from counterpoise.mixtures.pool import PooledClassifier


class Best(NamedTuple):
    """The least risk so far, as a part of its size, and its round."""

    value: float
    number: int

    def after(self, value: float, number: int) -> "Best":
        """Return the same after another round; as long as goals are not met, none has stalled."""
        return Best(value, number) if value < self.value - IMPROVEMENT or not np.isfinite(value) else self


def in_own_units(aim: Aim) -> Aim:
    """Return an aim whose risk is divided by its size, so that what is a tolerance for one is one for all."""
    size = aim.objective.size
    if isinstance(aim.objective, Rate) or size == 1:
        return aim
    return aim._replace(objective=aim.objective * (1 / size))


class ResumingBooster(PooledClassifier):
    """A booster whose rounds a checkpoint may hold."""

    default_stopping: ClassVar[Stopping] = Stopping()  # that stopping=None asks for

    def _saved_state(self) -> dict[str, Any]:
        """Return what ``save`` stores: no callbacks, which belong to one fit."""
        state: Any = self.__getstate__()
        return {**state, "callbacks": ()}

    def __sklearn_tags__(self) -> Any:
        return set_learner_tags(super().__sklearn_tags__(), base_learner(self.estimator))

    def _check_predict_input(self, X: Any) -> Any:
        return check_predict_input(self, base_learner(self.estimator), X)

    def _mixes_groups(self) -> bool:
        return False

    def _learner_for(self, n_samples: int) -> Any:
        raise NotImplementedError

    def _round_seed(self, number: int) -> int:
        return round_seed(self._seeds, number)

    _history: History
    _fit_round: RoundsFit | InsideFit
    _reweigh: Rule
    _train: Rows
    _held_out: Rows | None
    _best: Best

    def _after_round(self, done: Round, history: History, saved: CheckpointFolder | None) -> bool:
        raise NotImplementedError

    def _aim_of_fit(self) -> Aim:
        raise NotImplementedError

    def _trained_tables(self) -> dict[str, Table]:
        """Return other datasets whose rows decide the rounds too."""
        return {}

    def _watched(self, done: Any) -> Standing | None:  # noqa: ARG002 - for those that look at each round
        """Take note of a round that was fitted or restored, and return how the mixture stands where that is known."""
        return None

    def _draw_seeds(self, saved: CheckpointFolder | None) -> None:
        self._drawn_key, self._seeds = make_key(self.random_state), seed_sequence(self.random_state)
        if self.random_state is None and saved is not None and saved.seeds is not None:
            self._drawn_key, self._seeds = saved.seeds.key, np.random.SeedSequence(saved.seeds.entropy)
        self._generator = np.random.default_rng(self._seeds)

    def _run(self) -> Run:
        """Return what decides the rounds, for a checkpoint to compare."""
        settings = setting_texts(self._round_settings(self._learner_for(self._train.codes.size)))
        data = data_texts(self.classes_, self._train, self._held_out, self._trained_tables())
        return Run(settings, data, self._drawn_seeds())

    def _drawn_seeds(self) -> Seeds | None:
        """Return what the system drew, where no random state decides it."""
        return Seeds(cast("int", self._seeds.entropy), self._drawn_key) if self.random_state is None else None

    def _round_settings(self, learner: Any) -> dict[str, Any]:
        """Return the settings that decide the rounds, with the learner as it is for the samples."""
        params = self.get_params(deep=False)
        return {
            "booster": type(self),
            **{name: value for name, value in params.items() if name not in NOT_OF_ROUNDS},
            "estimator": learner,
            **asdict(stopping_of(self)),
            "alpha": self._aim_of_fit().alpha,
            "random_state": None if self.random_state is None else self._seeds.entropy,
            **({} if self.objective is None else {"objective": repr(self.objective)}),
        }

    def _run_rounds(self, n_rounds: int, saved: CheckpointFolder | None) -> None:
        def stop(done: Round, history: History) -> bool:
            return self._after_round(done, history, saved)

        n_left = n_rounds if saved is None else self._restore(saved, n_rounds)
        boost(self._fit_round, self._history, reweigh=self._reweigh, stop=stop, n_rounds=n_left)

    def _restore(self, saved: CheckpointFolder, n_rounds: int) -> int:
        """Take up to ``n_rounds`` further rounds from the checkpoint, and return how many are left to fit."""
        first, last = self._history.n_rounds + 1, self._history.n_rounds + n_rounds
        is_last = False
        for number in range(first, min(last, saved.n_rounds) + 1):
            done = saved.read(number)
            self._history.add(done.model, done.losses, done.weighted_loss, said=done.said, scores=done.scores)
            self._history.memory = done.memory
            self._best = Best(*done.best)
            if done.held_out is not None:
                self._history.held_out.append(done.held_out)
            self._watched(done)
            if done.uses_shared and self._shared() is None:
                self._fit_round.prepared.shared = saved.read_shared()
            is_last = done.is_last
            if is_last:
                break
        if self._history.n_rounds >= first:
            for callback in self.callbacks:
                if hasattr(callback, "resume"):
                    callback.resume(self._history.n_rounds)
        return 0 if is_last else last - self._history.n_rounds

    def _shared(self) -> Any:
        """Return what the learner learned once for all rounds, or None."""
        return getattr(self._fit_round.prepared, "shared", None)

    def _save(self, done: Round, is_last: bool, saved: CheckpointFolder) -> None:
        shared = self._shared()
        if shared is not None:
            saved.write_shared(shared)
        left = SavedRound(
            model=done.model,
            losses=done.losses,
            held_out=self._history.held_out[-1] if self._history.held_out else None,
            weighted_loss=done.weighted_loss,
            memory=self._history.memory,
            best=(self._best.value, self._best.number),
            is_last=is_last,
            uses_shared=shared is not None,
            said=done.said,
            scores=done.scores,
        )
        saved.write(done.number, left)
