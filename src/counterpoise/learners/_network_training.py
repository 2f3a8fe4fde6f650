"""Stochastic gradient descent for networks, one step of it as one CUDA graph. This file needs torch.

All that a step needs lies on the device: the rows, tables of the rows and moves of each batch, the learning rates, a
counter of steps. So a step is the same sequence of kernels every time; captured once it is replayed without work of
the host, in all rounds. Where nothing is captured the same function runs as it is. ``PreparedRows`` is what the rounds
of boosting share: rows on the device, the warmed-up start, the captured step.
"""

import copy
import inspect
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.lazy import LazyModuleMixin

from counterpoise._base.types import AnyArray
from counterpoise.learners._network_data import (
    N_MOVES,
    Inputs,
    NetworkPlace,
    Sampler,
    Standard,
    TrainingTargets,
    epochs,
    find_place,
    is_host,
    is_small,
    make_generator,
    move_places,
    on,
    own_randomness,
    standard_of,
)
from counterpoise.learners._network_settings import Settings

State = dict[str, AnyArray]
Factory = Callable[[Any, int], Any]

_TABLE_DRAWS = 1 << 20  # rows drawn at once: a table of 8 MiB
_QUEUED_STEPS = 16  # between two looks at how far the device is: enough that it never waits for the host
_WARM_STEPS = 3  # before a capture, so that cuDNN has chosen its kernels and all buffers exist
_TRIAL_ROWS = 2  # rows whose output shows whether a network fits


def build(factory: Factory, shape: tuple[int, ...], n_classes: int, seed: int = 0) -> nn.Module:
    """Return a fresh network on the CPU, or say what is wrong with the factory."""
    _check_factory(factory)
    with own_randomness(seed, torch.device("cpu")):
        module = factory(shape[0] if len(shape) == 1 else shape, n_classes)
    if not isinstance(module, nn.Module):
        raise TypeError(
            f"module must be a factory that returns a torch.nn.Module when called with the shape of a row and the "
            f"number of classes; {factory!r} returned {type(module).__name__}."
        )
    for layer in module.modules():
        is_lazy = isinstance(layer, LazyModuleMixin)  # resets its counter when it learns its shape
        if isinstance(layer, _BatchNorm) and layer.momentum is not None and not is_lazy:
            layer.num_batches_tracked = None  # nothing reads it, and counting takes a kernel for each layer
    return module


def _check_factory(factory: Factory) -> None:
    """Say so where a network, or the class of a factory, is given in place of a factory."""
    got = f"a {type(factory).__name__} itself" if isinstance(factory, nn.Module) else repr(factory)
    try:
        inspect.signature(factory).bind(None, None)
        takes_two = not isinstance(factory, nn.Module)
    except TypeError:
        takes_two = False
    except ValueError:  # of a callable that does not tell its arguments
        takes_two = True
    if not takes_two:
        raise TypeError(
            "module must be a factory, called with the shape of a row and the number of classes; "
            f"got {got}. Write networks.Perceptron(), or a function that returns a torch.nn.Module."
        )


def check_output(module: nn.Module, factory: Factory, shape: tuple[int, ...], n_classes: int) -> None:
    """Say so where a network does not map rows to a column for each class."""
    trial = torch.zeros(_TRIAL_ROWS, *shape)
    if len(shape) == 3:  # noqa: PLR2004 - images
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
    if not any(parameter.requires_grad for parameter in module.parameters()):
        raise ValueError(f"The network of module={factory!r} has no parameters to train.")
    if not all(isinstance(value, torch.Tensor) for value in module.state_dict().values()):
        raise ValueError(f"The network of module={factory!r} must keep its state in tensors: make it buffers.")


def to_place(module: nn.Module, place: NetworkPlace, *, is_image: bool) -> nn.Module:
    """Move a network to its device; below float32, all but the batch norms compute in the lower precision."""
    module = module.to(place.device)
    if is_image:
        module = module.to(memory_format=torch.channels_last)
    if place.dtype != torch.float32:
        for layer in module.modules():
            if not isinstance(layer, _BatchNorm):  # their float32 statistics cost nothing
                for tensor in (*layer.parameters(recurse=False), *layer.buffers(recurse=False)):
                    tensor.data = tensor.data.to(place.dtype) if tensor.is_floating_point() else tensor.data
    return module


def with_state(module: nn.Module, state: State) -> nn.Module:
    """Return the network with parameters that share their memory with the arrays."""
    own = module.state_dict()
    tensors = {
        name: torch.from_numpy(array if array.flags.writeable else array.copy()) for name, array in state.items()
    }
    for name in tensors.keys() & own.keys():  # a network may compute in another precision of its own
        tensors[name] = tensors[name].to(own[name].dtype)
    # Not strict: torch would ask for the counters of batches that ``build`` left out.
    missing = module.load_state_dict(tensors, strict=False, assign=True).missing_keys
    if missing:
        raise ValueError(f"state_ does not hold all parameters of the network of module: {missing[0]} is missing.")
    return module.eval()


def outputs(module: nn.Module, inputs: Inputs, size: int) -> Iterator[Any]:
    """Yield the outputs for all rows in order, batch by batch, in float32 or more."""
    module.eval()
    for batch in inputs.batches(size):
        with torch.no_grad():
            output = module(batch)
        yield output if output.dtype == torch.float64 else output.float()


class Trainer:
    """A network on its device with all that a step of SGD needs, kept over the rounds.

    Parameters are updated in float32. Where the network computes in a lower precision, those of its layers are
    copies, refreshed by one operation for all after each step, in place of a cast for each layer.
    """

    def __init__(
        self, inputs: Inputs, module: nn.Module, n_classes: int, settings: Settings, place: NetworkPlace
    ) -> None:
        self.inputs, self.settings, self.place, self.n_classes = inputs, settings, place, n_classes
        self.module = to_place(module, place, is_image=inputs.is_image)
        trained = [parameter for parameter in self.module.parameters() if parameter.requires_grad]
        self._copies = [parameter for parameter in trained if parameter.dtype != torch.float32]
        self._masters = [parameter.detach().float().requires_grad_() for parameter in self._copies]
        self._gradients = [torch.zeros_like(master) for master in self._masters]
        self._master_of = dict(zip(map(id, self._copies), self._masters, strict=True))
        self._rate = torch.zeros((), device=place.device)
        self._optimizer = torch.optim.SGD(
            [self._master_of.get(id(parameter), parameter) for parameter in trained],
            lr=self._rate,
            momentum=settings.momentum,
            nesterov=settings.nesterov,
            weight_decay=settings.weight_decay,
            fused=True,
        )
        self._make_tables()
        self._is_small = is_small(self.module)
        self._loss: Any = torch.compile(self._loss_of, dynamic=False) if settings.compile else self._loss_of
        self._graph: Any = None
        self._queue = _Queue() if place.captures else None
        self._runs_free = False  # needs none of what all threads share

    def _make_tables(self) -> None:
        size, device = self.settings.batch_size, self.place.device
        self._n_lines = max(1, min(self.settings.n_iterations, _TABLE_DRAWS // size))
        n_lines = max(self._n_lines, len(self.inputs) // size + 2)  # an epoch, and what the one before left
        self._step_number = torch.zeros(1, dtype=torch.int64, device=device)
        self._rows = torch.zeros(n_lines, size, dtype=torch.int64, device=device)
        self._rates = torch.zeros(n_lines, device=device)
        self._labels = torch.zeros_like(self._rows)
        self._moves = self._places = None
        if self.settings.augment is not None:
            self._moves = torch.zeros_like(self._rows)
            _, height, width, _ = self.inputs.values.shape
            self._places = move_places(height, width, device)

    def start(self, state: State) -> None:
        """Set all parameters, and momenta of zero."""
        with torch.no_grad():
            for name, tensor in self._tensors():
                tensor.copy_(torch.from_numpy(np.array(state[name])))
            _copy_all(self._copies, self._masters)
            for buffers in self._optimizer.state.values():
                buffers["momentum_buffer"].zero_()

    def state(self) -> State:
        """Return all parameters and buffers, in float32 on the host."""
        arrays = {}
        for name, tensor in self._tensors():
            value = tensor.detach().cpu()
            value = value.float() if value.is_floating_point() else value
            arrays[name] = np.array(value.numpy(), order="C")
        return arrays

    def _tensors(self) -> Iterator[tuple[str, Any]]:
        for name, tensor in self.module.state_dict(keep_vars=True).items():
            yield name, self._master_of.get(id(tensor), tensor)

    def warm_up(self, targets: TrainingTargets, generator: Any) -> None:
        """Train on all pairs alike, each once in an epoch."""
        settings = self.settings
        tables = epochs(len(targets.codes), settings.warmup_epochs, settings.batch_size, generator)
        self._run(targets, ((pairs, settings.warmup_rate(epoch)) for epoch, pairs in tables), generator)

    def train(self, targets: TrainingTargets, generator: Any) -> None:
        """Train on batches drawn by weight, with the learning rate falling on schedule."""
        n_iterations, size = self.settings.n_iterations, self.settings.batch_size
        sampler = Sampler.of(targets.weights, self.place.device)
        rates = torch.tensor([self.settings.rate(iteration) for iteration in range(n_iterations)])
        parts = rates.to(self.place.device).split(self._n_lines)
        self._run(targets, ((sampler.draw((len(part), size), generator), part) for part in parts), generator)

    def _run(self, targets: TrainingTargets, tables: Iterable[tuple[Any, Any]], generator: Any) -> None:
        self.module.train()
        rows, labels = targets.on(self.place.device)
        with self._on_device():
            for pairs, rates in tables:
                n_lines = len(pairs)
                self._labels[:n_lines], self._rows[:n_lines], self._rates[:n_lines] = labels[pairs], rows[pairs], rates
                if self._moves is not None:
                    moves = torch.randint(N_MOVES, pairs.shape, generator=generator, device=self.place.device)
                    self._moves[:n_lines] = moves
                self._step_number.zero_()
                for step in range(n_lines):
                    if self._graph is None:
                        self._step()
                    else:
                        self._graph.replay()
                    if self._queue is not None and step % _QUEUED_STEPS == 0:
                        self._queue.wait_for_earlier()

    def _on_device(self) -> AbstractContextManager[Any]:
        if self._runs_free:
            device: AbstractContextManager[Any] = torch.cuda.device(self.place.device)
            return device
        return on(self.place, small=self._is_small, trains=True)

    def turn(self, seed: int) -> AbstractContextManager[Any]:
        """Seed what layers draw from, and hold off other threads; a replayed step that draws nothing needs neither."""
        return nullcontext() if self._runs_free else own_randomness(seed, self.place.device)

    def make_ready(self) -> None:
        """Compile a step and make it a graph, where that is wanted. It trains on anything: ``start`` comes after it."""
        self.module.train()
        with on(self.place, small=self._is_small, trains=True):
            if self.settings.compile:
                self._compile()
            if self.place.captures:
                self._capture()

    def _compile(self) -> None:
        """Take a step, the first of which compiles."""
        from torch._dynamo.exc import TorchDynamoException  # noqa: PLC0415 - takes longer to load than torch itself

        try:
            self._step()
        except TorchDynamoException as error:
            raise RuntimeError(
                "compile=True needs a network that torch.compile takes and a C++ compiler, on CUDA triton too; "
                f"got {type(error).__name__}: {str(error).splitlines()[0]} Use compile=False."
            ) from error
        finally:
            self._step_number.zero_()

    def _capture(self) -> None:
        stream = torch.cuda.Stream(self.place.device)
        stream.wait_stream(torch.cuda.current_stream(self.place.device))
        drawn_before = torch.cuda.get_rng_state(self.place.device)
        with torch.cuda.stream(stream):
            for _ in range(_WARM_STEPS):
                self._step_number.zero_()
                self._step()
        self._runs_free = torch.equal(torch.cuda.get_rng_state(self.place.device), drawn_before)
        torch.cuda.current_stream(self.place.device).wait_stream(stream)
        self._step_number.zero_()
        self._graph = torch.cuda.CUDAGraph()
        # Other threads may be at steps of their own meanwhile: what they ask of the device is no part of this graph.
        with torch.cuda.graph(self._graph, stream=stream, capture_error_mode="thread_local"):
            self._step()

    def _step(self) -> None:
        """Take one step of SGD on the batch that the counter points to, without a word to the host."""
        rows, labels = (table.index_select(0, self._step_number).view(-1) for table in (self._rows, self._labels))
        moves = None if self._moves is None else self._moves.index_select(0, self._step_number).view(-1)
        self._loss(rows, labels, moves).backward()
        self._rate.copy_(self._rates.index_select(0, self._step_number).view(()))
        self._update()
        self._step_number.add_(1)

    def _loss_of(self, rows: Any, labels: Any, moves: Any) -> Any:
        return functional.cross_entropy(self.module(self.inputs.batch(rows, moves, self._places)).float(), labels)

    def _update(self) -> None:
        for master, twin, gradient in zip(self._masters, self._copies, self._gradients, strict=True):
            master.grad = None if twin.grad is None else gradient  # a layer that a step passed by stays as it is
        pairs = [pair for pair in zip(self._masters, self._copies, strict=True) if pair[0].grad is not None]
        _copy_all([master.grad for master, _ in pairs], [twin.grad for _, twin in pairs])
        self._optimizer.step()
        with torch.no_grad():
            _copy_all(self._copies, self._masters)
        self.module.zero_grad(set_to_none=True)  # so that a backward pass writes gradients and need not add to zeros

    def predict_codes(self) -> AnyArray:
        """Return the class code that the network predicts for each of its own rows."""
        with on(self.place, small=self._is_small):
            parts = [
                output.argmax(dim=1) for output in outputs(self.module, self.inputs, self.settings.predict_batch_size)
            ]
        return np.asarray(torch.cat(parts).cpu().numpy())


class _Queue:
    """Steps that a thread handed to the device and that are not done: few, for a full queue holds up all threads."""

    def __init__(self) -> None:
        self._older, self._newer = (torch.cuda.Event(blocking=True) for _ in range(2))

    def wait_for_earlier(self) -> None:
        """Wait for all that was queued at the call before the last, and remember what is queued now."""
        self._older.synchronize()
        self._older.record()
        self._older, self._newer = self._newer, self._older


def _copy_all(targets: list[Any], sources: list[Any]) -> None:
    """Copy many tensors by a kernel or two; torch has no public name for it."""
    if targets:
        torch._foreach_copy_(targets, sources)


_WARM_UP, _ROUND = 0, 1  # streams of random numbers
_IMAGES = 4  # dimensions


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
        self.warmup_codes: AnyArray | None = None
        self._trainer: Trainer | None = None
        self._in_use = threading.RLock()

    def fit(
        self, factory: Factory, settings: Settings, targets: TrainingTargets, n_classes: int, seed: int
    ) -> tuple[State, AnyArray]:
        """Train from the warmed-up start on rows drawn by weight; return the parameters and the predicted codes."""
        with self._in_use:
            trainer = self.warm_up(factory, settings, targets, n_classes)
            assert self.shared is not None  # noqa: S101 - the line before warmed up
            with trainer.turn(seed):
                trainer.start(self.shared)
                trainer.train(targets, make_generator(seed, _ROUND, self.place.device))
                return _finite_state(trainer), trainer.predict_codes()

    def trainer_for(self, factory: Factory, settings: Settings, n_classes: int) -> Trainer:
        """Return a network that is ready to train, the same in all rounds."""
        if find_place(settings) != self.place:
            raise ValueError("The rows were prepared for another device or precision: call prepare again.")
        with self._in_use:
            trainer = self._trainer
            if trainer is None or (trainer.settings, trainer.n_classes) != (settings, n_classes):
                with own_randomness(self.seed, self.place.device):
                    module = build(factory, self.shape, n_classes, self.seed)
                    check_output(module, factory, self.shape, n_classes)
                    trainer = Trainer(self.inputs, module, n_classes, settings, self.place)
                    first = trainer.state()
                    trainer.make_ready()
                    trainer.start(first)
                self._trainer = trainer
            return trainer

    def warm_up(self, factory: Factory, settings: Settings, targets: TrainingTargets, n_classes: int) -> Trainer:
        """Return a network that is ready to train, after the warm-up where there was none."""
        with self._in_use:
            trainer = self.trainer_for(factory, settings, n_classes)
            if self.shared is None:
                if self.warmup_codes is not None:  # then the warm-up learns that
                    labelled = np.flatnonzero(self.warmup_codes >= 0)
                    targets = TrainingTargets(self.warmup_codes[labelled], np.ones(labelled.size), labelled)
                with trainer.turn(self.seed):
                    trainer.warm_up(targets, make_generator(self.seed, _WARM_UP, self.place.device))
                    self.shared = _finite_state(trainer)
            return trainer


def _finite_state(trainer: Trainer) -> State:
    """Return the parameters and buffers after training; an error where it failed, as NaN predicts the first class."""
    state, settings = trainer.state(), trainer.settings
    for name, parameter in trainer.module.named_parameters():
        if parameter.requires_grad and not np.isfinite(state[name]).all():
            raise ValueError(
                f"The network must keep finite parameters, and {name!r} is no longer so: training diverged. Use a "
                f"learning_rate below {settings.learning_rate:g}, and in the warm-up below "
                f"{settings.warmup_learning_rate:g}."
            )
    return state


def in_double(module: nn.Module, place: NetworkPlace) -> tuple[nn.Module, NetworkPlace]:
    """Return a small network of plain layers to predict in float64, where that costs nothing; others as they are.

    Sums in float32 depend on the size of the batch, and so could an answer.
    """
    is_plain = all(type(layer).__module__.startswith("torch.nn.") for layer in module.modules())
    if not (is_plain and is_small(module) and is_host(place)):
        return module, place
    return copy.deepcopy(module).double(), place._replace(dtype=torch.float64)
