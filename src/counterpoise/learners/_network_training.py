"""Stochastic gradient descent for networks, a plain loop around one compiled step. This file needs torch.

On CUDA ``torch.compile(mode="reduce-overhead")`` fuses the operations of a step and replays them as one graph, in all
rounds of boosting. ``PreparedRows`` is what the rounds share: rows on the device, the warmed-up start, the compiled
step. torch's generators, flags and graphs are one for all threads, so fits in threads take turns.
"""

import copy
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from counterpoise._base.types import AnyArray
from counterpoise.learners._network_data import (
    IMAGES,
    N_MOVES,
    Inputs,
    NetworkPlace,
    Sampler,
    TrainingTargets,
    epochs,
    find_place,
    make_generator,
    standard_of,
)
from counterpoise.learners._network_settings import Settings

State = dict[str, AnyArray]
Factory = Callable[[Any, int], Any]

_DRAWN_STEPS = 1000  # whose batches are drawn at once
_TRIAL_ROWS = 2  # rows whose output shows whether a network fits
_SMALL = 1 << 16  # parameters: layers of a few thousand products a row, too little to share among threads
_MATRIX = 2  # dimensions
_TURNS = threading.RLock()


@contextmanager
def turn(place: NetworkPlace, seed: int, *, n_threads: int | None = None) -> Iterator[None]:
    """Have torch to oneself: its generators seeded, and put back at the end; on the CPU by so many threads."""
    devices = [] if place.device.type == "cpu" else [place.device]
    exact = torch.backends.cudnn.flags(enabled=True, benchmark=True, deterministic=False, allow_tf32=False)
    with _TURNS, torch.random.fork_rng(devices=devices, device_type="cuda"), exact:
        torch.manual_seed(seed)
        all_threads = torch.get_num_threads()
        torch.set_num_threads(n_threads or all_threads)
        try:
            yield
        finally:
            torch.set_num_threads(all_threads)


def build(factory: Factory, shape: tuple[int, ...], n_classes: int) -> nn.Module:
    """Return a fresh network on the CPU, or say what is wrong with the factory."""
    try:
        module = factory(shape[0] if len(shape) == 1 else shape, n_classes)
    except TypeError as error:
        raise TypeError(
            f"module must be a factory, called with the shape of a row and the number of classes; got {factory!r}, "
            f"which fails: {error}. Write networks.Perceptron(), or a function that returns a torch.nn.Module."
        ) from error
    if not isinstance(module, nn.Module):
        raise TypeError(f"module={factory!r} must return a torch.nn.Module; it returned {type(module).__name__}.")
    return module


def check_output(module: nn.Module, factory: Factory, shape: tuple[int, ...], n_classes: int) -> None:
    """Say so where a network does not map rows to a column for each class."""
    trial = torch.zeros(_TRIAL_ROWS, *shape)
    if len(shape) + 1 == IMAGES:
        trial = trial.contiguous(memory_format=torch.channels_last)
    try:
        with torch.no_grad():
            output = module.eval()(trial)
    except Exception as error:  # a network is anyone's code
        raise ValueError(
            f"The network of module={factory!r} fails on a batch of shape {tuple(trial.shape)}: {error}"
        ) from error
    if getattr(output, "shape", None) != (_TRIAL_ROWS, n_classes):
        raise ValueError(
            f"The network of module={factory!r} must return a column for each of {n_classes} classes, shape (batch, "
            f"{n_classes}); for a batch of {_TRIAL_ROWS} it returned "
            f"{tuple(output.shape) if isinstance(output, torch.Tensor) else f'a {type(output).__name__}'}."
        )
    if not all(isinstance(value, torch.Tensor) for value in module.state_dict().values()):
        raise ValueError(f"The network of module={factory!r} must keep its state in tensors: make it buffers.")


def is_small(module: nn.Module) -> bool:
    """Return whether a network is too small for several threads: few parameters, none of convolutions."""
    parameters = list(module.parameters())
    return all(one.ndim <= _MATRIX for one in parameters) and sum(one.numel() for one in parameters) < _SMALL


def to_place(module: nn.Module, place: NetworkPlace, *, is_image: bool) -> nn.Module:
    """Move a network to its device."""
    return module.to(place.device, memory_format=torch.channels_last if is_image else torch.preserve_format)


def with_state(module: nn.Module, state: State) -> nn.Module:
    """Return the network with the parameters and buffers of a state."""
    missing = module.load_state_dict(tensors_of(state), strict=False, assign=True).missing_keys
    if missing:
        raise ValueError(f"state_ does not hold all parameters of the network of module: {missing[0]} is missing.")
    return module.eval()


def tensors_of(state: State) -> dict[str, Any]:
    """Return a state as tensors, copies of its arrays."""
    return {name: torch.from_numpy(np.array(array)) for name, array in state.items()}


def outputs(module: nn.Module, inputs: Inputs, place: NetworkPlace, size: int) -> Iterator[Any]:
    """Yield the outputs for all rows in order, batch by batch, in float32 or more."""
    module.eval()
    for batch in inputs.batches(size):
        with torch.no_grad(), lower_precision(place):
            output = module(batch)
        yield output if output.dtype == torch.float64 else output.float()


def lower_precision(place: NetworkPlace) -> Any:
    """Let the layers that bear it compute in bfloat16, where the place says so; parameters stay in float32."""
    return torch.autocast(place.device.type, dtype=torch.bfloat16, enabled=place.dtype == torch.bfloat16)


def in_double(module: nn.Module, place: NetworkPlace) -> tuple[nn.Module, NetworkPlace]:
    """Return a small network of plain layers to predict in float64, where that costs nothing; others as they are.

    Sums in float32 depend on the size of the batch, and so could a decision.
    """
    is_plain = all(type(layer).__module__.startswith("torch.nn.") for layer in module.modules())
    if not (is_plain and is_small(module) and place.device.type == "cpu" and place.dtype == torch.float32):
        return module, place
    return copy.deepcopy(module).double(), place._replace(dtype=torch.float64)


def in_main_thread() -> bool:
    """Return whether this is the thread that torch keeps the graphs of compiled steps for; others replay none."""
    return threading.current_thread() is threading.main_thread()


class Trainer:
    """A network on its device with its optimizer and its step, kept over the rounds."""

    def __init__(
        self, inputs: Inputs, module: nn.Module, n_classes: int, settings: Settings, place: NetworkPlace
    ) -> None:
        self.inputs, self.settings, self.place, self.n_classes = inputs, settings, place, n_classes
        self.module = to_place(module, place, is_image=inputs.is_image)
        self._loss: Any = self._loss_of
        self.is_main_thread = in_main_thread()
        if place.compiles:
            replays = place.device.type == "cuda" and self.is_main_thread
            self._loss = torch.compile(self._loss_of, dynamic=False, mode="reduce-overhead" if replays else "default")

    def start(self, state: State) -> None:
        """Set all parameters, and momenta of zero."""
        self.module.load_state_dict(tensors_of(state))
        settings = self.settings
        self._optimizer = torch.optim.SGD(
            [parameter for parameter in self.module.parameters() if parameter.requires_grad],
            lr=settings.learning_rate,
            momentum=settings.momentum,
            nesterov=settings.nesterov,
            weight_decay=settings.weight_decay,
            fused=True,
        )

    def state(self) -> State:
        """Return all parameters and buffers, on the host; an error where training failed: NaN predicts a class too."""
        state = {
            name: np.array(tensor.detach().cpu().numpy(), order="C")
            for name, tensor in self.module.state_dict(keep_vars=True).items()
        }
        for name, parameter in self.module.named_parameters():
            if parameter.requires_grad and not np.isfinite(state[name]).all():
                raise ValueError(
                    f"The network must keep finite parameters, and {name!r} is no longer so: training diverged. Use a "
                    f"learning_rate below {self.settings.learning_rate:g}, and in the warm-up below "
                    f"{self.settings.warmup_learning_rate:g}."
                )
        return state

    def warm_up(self, targets: TrainingTargets, generator: Any) -> None:
        """Train on all pairs alike, each once in an epoch."""
        settings, n_pairs = self.settings, len(targets.codes)
        batches = epochs(n_pairs, settings.warmup_epochs, settings.batch_size, generator)
        rates = [settings.warmup_rate(step * settings.batch_size // n_pairs) for step in range(len(batches))]
        self._run(targets, batches, rates, generator)

    def train(self, targets: TrainingTargets, generator: Any) -> None:
        """Train on batches drawn by weight, with the learning rate falling on schedule."""
        settings, sampler = self.settings, Sampler.of(targets.weights, self.place.device)
        for first in range(0, settings.n_iterations, _DRAWN_STEPS):
            steps = range(first, min(first + _DRAWN_STEPS, settings.n_iterations))
            batches = sampler.draw((len(steps), settings.batch_size), generator)
            self._run(targets, batches, map(settings.rate, steps), generator)

    def _run(self, targets: TrainingTargets, batches: Any, rates: Iterable[float], generator: Any) -> None:
        """Take a step of SGD on each batch of pairs, at its learning rate."""
        self.module.train()
        rows, labels = (column[batches] for column in targets.on(self.place.device))
        moves: Any = [None] * len(batches)
        if self.settings.augment is not None:
            moves = torch.randint(N_MOVES, batches.shape, generator=generator, device=self.place.device)
        for step, rate in enumerate(rates):
            self._loss_at(rows[step], labels[step], moves[step]).backward()
            for group in self._optimizer.param_groups:
                group["lr"] = rate
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=True)

    def _loss_of(self, rows: Any, labels: Any, moves: Any) -> Any:
        with lower_precision(self.place):
            output = self.module(self.inputs.batch(rows, moves))
        return functional.cross_entropy(output.float(), labels)

    def _loss_at(self, rows: Any, labels: Any, moves: Any) -> Any:
        """Return the loss; the first call compiles, where that is wanted."""
        if not self.place.compiles:
            return self._loss(rows, labels, moves)
        from torch._dynamo.exc import TorchDynamoException  # noqa: PLC0415 - takes longer to load than torch itself

        try:
            torch.compiler.cudagraph_mark_step_begin()
            return self._loss(rows, labels, moves)
        except TorchDynamoException as error:
            raise RuntimeError(
                "compile=True needs a network that torch.compile takes and a C++ compiler, on CUDA triton too; "
                f"got {type(error).__name__}: {str(error).splitlines()[0]} Use compile=False."
            ) from error

    def predict_codes(self) -> AnyArray:
        """Return the class code that the network predicts for each of its own rows."""
        found = outputs(self.module, self.inputs, self.place, self.settings.predict_batch_size)
        return np.asarray(torch.cat([output.argmax(dim=1) for output in found]).cpu().numpy())


_WARM_UP, _ROUND = 0, 1  # streams of random numbers


class PreparedRows:
    """Training rows as ``NetworkLearner.prepare`` returns them, for all rounds of one learner and its clones.

    Attributes
    ----------
    shared : dict of arrays, or None
        The parameters after the warm-up, from which all rounds start; None before the first round. A run that goes
        on elsewhere may set it.
    warmup_codes : array of shape (n_rows,), or None
        The codes that the warm-up learns, -1 for rows without a label, which it leaves out. None: it learns those of
        the first round.
    """

    def __init__(self, X: AnyArray, settings: Settings, seed: int, feature_names: AnyArray | None) -> None:
        if settings.augment is not None and X.ndim != IMAGES:
            raise ValueError(
                f"augment={settings.augment!r} is for images of shape (n_samples, channels, height, width); "
                f"got X of shape {X.shape}."
            )
        if X.size == 0:
            raise ValueError(f"X must have rows with something in them; got an array of shape {X.shape}.")
        self.place = find_place(settings.device, settings.precision, settings.compile)
        self.shape: tuple[int, ...] = X.shape[1:]
        self.standard = standard_of(X)
        self.inputs = Inputs(X, self.standard, self.place)
        self.seed, self.feature_names = seed, feature_names
        self.shared: State | None = None
        self.warmup_codes: AnyArray | None = None
        self._trainer: Trainer | None = None

    def fit(
        self, factory: Factory, settings: Settings, targets: TrainingTargets, n_classes: int, seed: int
    ) -> tuple[State, AnyArray]:
        """Train from the warmed-up start on rows drawn by weight; return the parameters and the predicted codes."""
        with _TURNS:
            trainer = self.warm_up(factory, settings, targets, n_classes)
            assert self.shared is not None  # noqa: S101 - the line before warmed up
            with turn(self.place, seed, n_threads=1 if is_small(trainer.module) else None):
                trainer.start(self.shared)
                trainer.train(targets, make_generator(seed, _ROUND, self.place.device))
                return trainer.state(), trainer.predict_codes()

    def warm_up(self, factory: Factory, settings: Settings, targets: TrainingTargets, n_classes: int) -> Trainer:
        """Return a network that is ready to train, after the warm-up where there was none."""
        if find_place(settings.device, settings.precision, settings.compile) != self.place:
            raise ValueError("The rows were prepared for another device or precision: call prepare again.")
        with turn(self.place, self.seed):
            trainer, key = self._trainer, (settings, n_classes, in_main_thread())
            if trainer is None or (trainer.settings, trainer.n_classes, trainer.is_main_thread) != key:
                module = build(factory, self.shape, n_classes)
                check_output(module, factory, self.shape, n_classes)
                self._trainer = trainer = Trainer(self.inputs, module, n_classes, settings, self.place)
        with turn(self.place, self.seed, n_threads=1 if is_small(trainer.module) else None):
            if self.shared is None:
                if self.warmup_codes is not None:  # then the warm-up learns that
                    labelled = np.flatnonzero(self.warmup_codes >= 0)
                    targets = TrainingTargets(self.warmup_codes[labelled], np.ones(labelled.size), labelled)
                trainer.start(trainer.state())
                trainer.warm_up(targets, make_generator(self.seed, _WARM_UP, self.place.device))
                self.shared = trainer.state()
        return trainer
