"""What the rounds of boosting share of a network: rows on the device, the warmed-up start, the captured step.

This file needs torch.
"""

import copy
import threading

import numpy as np
import torch
from torch import nn

from counterpoise._base.types import AnyArray
from counterpoise.learners._network_data import (
    Asked,
    Inputs,
    Standard,
    make_generator,
    own_randomness,
    standard_of,
)
from counterpoise.learners._network_place import Place, find_place, is_host, is_small
from counterpoise.learners._network_settings import Settings
from counterpoise.learners._network_training import (
    Factory,
    State,
    Trainer,
    build,
    check_output,
)

_WARM_UP, _ROUND = 0, 1  # streams of random numbers
_IMAGES = 4  # dimensions


class PreparedRows:
    """Training rows as ``NetworkLearner.prepare`` returns them, for all rounds of one learner and its clones.

    Attributes
    ----------
    shared : dict of arrays, or None
        The parameters after the warm-up, from which all rounds start; None before the first round. A run that goes
        on elsewhere may set it.
    lesson : array of shape (n_rows,), or None
        The codes that the warm-up learns, -1 for rows without a label, which it leaves out. None: it learns those of
        the first round.
    """

    def __init__(self, X: AnyArray, settings: Settings, seed: int, feature_names: AnyArray | None) -> None:
        if settings.augment is not None and X.ndim != _IMAGES:
            raise ValueError(
                f"augment={settings.augment!r} is for images of shape (n_samples, channels, height, width); "
                f"got X of shape {X.shape}."
            )
        if X.size == 0:
            raise ValueError(f"X must have rows with something in them; got an array of shape {X.shape}.")
        self.place = find_place(settings)
        self.shape: tuple[int, ...] = X.shape[1:]
        self.standard: Standard = standard_of(X)
        self.inputs = Inputs(X, self.standard, self.place.device, self.place.dtype)
        self.seed, self.feature_names = seed, feature_names
        self.shared: State | None = None
        self.lesson: AnyArray | None = None
        self._trainer: Trainer | None = None
        self._in_use = threading.RLock()

    def fit(
        self, factory: Factory, settings: Settings, asked: Asked, n_classes: int, seed: int
    ) -> tuple[State, AnyArray]:
        """Train from the warmed-up start on rows drawn by weight; return the parameters and the predicted codes."""
        with self._in_use:
            trainer = self.warm_up(factory, settings, asked, n_classes)
            assert self.shared is not None  # noqa: S101 - the line before warmed up
            with trainer.turn(seed):
                trainer.start(self.shared)
                trainer.train(asked, make_generator(seed, _ROUND, self.place.device))
                return _finite_state(trainer), trainer.predict_codes()

    def trainer_for(self, factory: Factory, settings: Settings, n_classes: int) -> Trainer:
        """Return a network that is ready to train, the same in all rounds."""
        if find_place(settings) != self.place:
            raise ValueError("The rows were prepared for another device or precision: call prepare again.")
        with self._in_use:
            kept = self._trainer
            if kept is None or (kept.settings, kept.n_classes) != (settings, n_classes):
                kept = self._trainer = self._new_trainer(factory, settings, n_classes)
            return kept

    def _new_trainer(self, factory: Factory, settings: Settings, n_classes: int) -> Trainer:
        with own_randomness(self.seed, self.place.device):
            module = build(factory, self.shape, n_classes, self.seed)
            check_output(module, factory, self.shape, n_classes)
            made = Trainer(self.inputs, module, n_classes, settings, self.place)
            first = made.state()
            made.make_ready()
            made.start(first)
        return made

    def warm_up(self, factory: Factory, settings: Settings, asked: Asked, n_classes: int) -> Trainer:
        """Return a network that is ready to train, after the warm-up where there was none."""
        with self._in_use:
            trainer = self.trainer_for(factory, settings, n_classes)
            if self.shared is None:
                with trainer.turn(self.seed):
                    trainer.warm_up(self._lesson(asked), make_generator(self.seed, _WARM_UP, self.place.device))
                    self.shared = _finite_state(trainer)
            return trainer

    def _lesson(self, asked: Asked) -> Asked:
        """Return what the warm-up learns."""
        if self.lesson is None:
            return asked
        labelled = np.flatnonzero(self.lesson >= 0)
        return Asked(self.lesson[labelled], np.ones(labelled.size), labelled)


def _finite_state(trainer: Trainer) -> State:
    """Return the parameters and buffers after training, or say that it failed: NaN would predict the first class."""
    state, settings = trainer.state(), trainer.settings
    for name, parameter in trainer.module.named_parameters():
        if parameter.requires_grad and not np.isfinite(state[name]).all():
            raise ValueError(
                f"The network must keep finite parameters, and {name!r} is no longer so: training diverged. Use a "
                f"learning_rate below {settings.learning_rate:g}, and in the warm-up below "
                f"{settings.warmup_learning_rate:g}."
            )
    return state


def in_double(module: nn.Module, place: Place) -> tuple[nn.Module, Place]:
    """Return a small network of plain layers to predict in float64, where that costs nothing; others as they are.

    Sums in float32 depend on the size of the batch, and so could an answer.
    """
    is_plain = all(type(layer).__module__.startswith("torch.nn.") for layer in module.modules())
    if not (is_plain and is_small(module) and is_host(place)):
        return module, place
    return copy.deepcopy(module).double(), place._replace(dtype=torch.float64)
