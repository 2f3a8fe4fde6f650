"""Steps of the network learner: compiled bfloat16 against eager float32 on CUDA, else against scikit-learn.

Usage: python bench/network.py [--full] [--output PATH]
Alone it needs neither highspy nor daqp, so that it runs on a bare machine with a GPU.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import harness
import numpy as np
import torch
from harness import Benchmark
from sklearn.base import clone
from sklearn.neural_network import MLPClassifier
from torch import nn

from counterpoise.learners import NetworkLearner, networks
from counterpoise.learners._network_data import TrainingTargets, make_generator
from counterpoise.learners._network_settings import check_settings
from counterpoise.learners._network_training import PreparedRows, Trainer, build, is_small, turn

BATCH = 128
N_CLASSES = 10
N_IMAGES = 8192
BACKWARD = 3  # a step multiplies three times what a forward pass does
FLOOR = "the multiplications of the layers, forward and backward, at the speed of one large product"


class Data(NamedTuple):
    """Rows and class codes."""

    X: np.ndarray
    codes: np.ndarray


def images(n_samples: int) -> Data:
    """Return byte images of 3 x 32 x 32 with a coarse pattern for each class under noise, seeded."""
    rng = np.random.default_rng(0)
    codes = rng.integers(N_CLASSES, size=n_samples)
    patterns = rng.integers(96, 160, size=(N_CLASSES, 3, 8, 8)).repeat(4, axis=2).repeat(4, axis=3)
    noise = rng.integers(-64, 64, size=(n_samples, 3, 32, 32))
    return Data((patterns[codes] + noise).astype(np.uint8), codes)


def table(n_samples: int, n_features: int) -> Data:
    """Return standard normal features with two classes by a quadratic rule, seeded."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_samples, n_features)).astype(np.float32)
    return Data(X, (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(np.int64))


class Run:
    """A network ready to train: rows on the device."""

    def __init__(self, learner: NetworkLearner, given: Data) -> None:
        self.codes, self.weights = given.codes, np.ones(len(given.codes))
        settings = check_settings(learner)
        rows = PreparedRows(given.X, settings, 0, None)
        n_classes = int(given.codes.max()) + 1
        self.module = build(learner.module, rows.shape, n_classes)
        self.trainer = Trainer(rows.inputs, self.module, n_classes, settings, rows.place)
        self.first = self.trainer.state()

    def train(self) -> dict[str, np.ndarray]:
        """Train from the first parameters for the learner's number of steps and return the last ones."""
        place = self.trainer.place
        with turn(place, 0, n_threads=1 if is_small(self.module) else None):
            self.trainer.start(self.first)
            self.trainer.train(TrainingTargets(self.codes, self.weights), make_generator(0, 1, place.device))
            return self.trainer.state()  # which waits for the device

    def accuracy(self, state: dict[str, np.ndarray]) -> float:
        """Return the accuracy of parameters on the training rows."""
        self.trainer.start(state)
        return float((self.trainer.predict_codes() == self.codes).mean())


def work(module: nn.Module, run: Run) -> float:
    """Return the multiplications and additions of all layers on a single row."""
    counts: list[float] = []

    def count(layer: Any, _given: Any, found: torch.Tensor) -> None:
        per_output = layer.weight[0].numel()
        counts.append(2 * per_output * found[0].numel())

    layers = [layer for layer in module.modules() if isinstance(layer, (nn.Conv2d, nn.Linear))]
    hooks = [layer.register_forward_hook(count) for layer in layers]
    run.trainer.module.eval()
    with torch.no_grad():
        run.trainer.module(next(run.trainer.inputs.batches(2)))
    for hook in hooks:
        hook.remove()
    return sum(counts)


def floor(run: Run, n_steps: int) -> float:
    """Return the time of the multiplications of all steps, at the speed of a large product, measured now."""
    place = run.trainer.place
    side = 8192 if place.device.type == "cuda" else 1024
    square = torch.randn(side, side, device=place.device).to(place.dtype)
    product_seconds = min(_seconds(lambda: square @ square) for _ in range(3))
    return n_steps * BATCH * BACKWARD * work(run.module, run) * product_seconds / (2 * side**3)


def _seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


def compiled_against_eager(name: str, network: Any, n_steps: int, precision: str = "float32") -> Benchmark:
    """Compare the compiled step in bfloat16 with an eager one, from the same start and draws."""
    given = images(N_IMAGES)
    learner = NetworkLearner(
        network, n_iterations=n_steps, batch_size=BATCH, learning_rate=0.1, weight_decay=5e-4, augment="crop-flip",
        decay_at=(2 * n_steps // 3,),
    )  # fmt: skip
    ours = Run(clone(learner), given)
    plain = Run(learner.set_params(precision=precision, compile=False), given)
    plain.train()
    return Benchmark(
        name=f"{n_steps} steps of {name}",
        size=f"batch {BATCH}, {torch.cuda.get_device_name()}",
        ours=ours.train,
        floor=lambda _: floor(ours, n_steps),
        floor_means=FLOOR,
        peer_name=f"eager {precision}",
        peer=plain.train,
        difference=lambda first, second: abs(plain.accuracy(first) - plain.accuracy(second)),
        tolerance=0.05,
        clock=time.perf_counter,  # the device works while the processor waits
    )


def perceptron_against_scikit_learn(n_samples: int, n_features: int, n_epochs: int) -> Benchmark:
    """Compare as many steps of the three-layer perceptron with those of scikit-learn's, on the CPU."""
    given = table(n_samples, n_features)
    n_steps = n_epochs * n_samples // BATCH
    network = networks.Perceptron((64, 64))
    ours = Run(NetworkLearner(network, n_iterations=n_steps, batch_size=BATCH, decay_at=(), device="cpu"), given)
    peer = MLPClassifier(
        network.hidden, solver="sgd", alpha=0.0, batch_size=BATCH, learning_rate_init=0.01, momentum=0.9,
        nesterovs_momentum=False, max_iter=n_epochs, tol=0.0, n_iter_no_change=n_epochs + 1, random_state=0,
    )  # fmt: skip

    def fit_peer() -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it has not converged, as was asked for
            return float(peer.fit(given.X, given.codes).score(given.X, given.codes))

    return Benchmark(
        name=f"{n_steps} steps of a perceptron",
        size=f"batch {BATCH}, {n_samples} x {n_features}",
        ours=ours.train,
        floor=lambda _: floor(ours, n_steps),
        floor_means=FLOOR,
        peer_name="scikit-learn MLP",
        peer=fit_peer,
        difference=lambda state, accuracy: abs(ours.accuracy(state) - accuracy),
        tolerance=0.03,
    )


def quick() -> Iterator[Benchmark]:
    """Yield what runs in about a minute."""
    if torch.cuda.is_available():
        yield compiled_against_eager("WRN-28-1", networks.WideResNet(28, 1), 300)
        yield compiled_against_eager("WRN-28-1", networks.WideResNet(28, 1), 300, "bfloat16")
    else:
        yield perceptron_against_scikit_learn(6400, 20, 10)


def full() -> Iterator[Benchmark]:
    """Yield the networks of the paper."""
    yield perceptron_against_scikit_learn(12_800, 50, 20)
    if torch.cuda.is_available():
        yield compiled_against_eager("WRN-28-1", networks.WideResNet(28, 1), 1000)
        yield compiled_against_eager("WRN-28-1", networks.WideResNet(28, 1), 1000, "bfloat16")
        yield compiled_against_eager("ResNet-18", networks.ResNet18(), 300)
        yield compiled_against_eager("WRN-28-10", networks.WideResNet(28, 10), 100)


def main() -> None:
    """Run this suite alone and print its table."""
    parser = argparse.ArgumentParser(description="Steps of the network learner; ratio is peer seconds over ours.")
    parser.add_argument("--full", action="store_true", help="all networks of the paper")
    options = parser.parse_args()
    print(harness.header(), flush=True)
    for benchmark in full() if options.full else quick():
        print(harness.show(harness.run(benchmark)), flush=True)


if __name__ == "__main__":
    main()
