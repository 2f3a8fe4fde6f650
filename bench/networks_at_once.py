"""Steps of several networks that share a GPU, each in a thread and on a stream of its own, against one alone.

Usage: python bench/networks_at_once.py [--steps N] [--counts N ...] [--compile] [--output PATH] [--rehearse]

A step of WRN-28-1 at batch 128 does not fill the device. All networks start alike and see the same draws, so the
accuracy that each reaches tells whether they disturb each other. ``--rehearse`` does it with a small network on the
CPU.
"""

import argparse
import csv
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
from network import BATCH, N_IMAGES, Run, images
from sklearn.base import clone

from counterpoise.learners import NetworkLearner, networks


def seconds_and_states(runs: Sequence[Run]) -> tuple[float, list[dict[str, np.ndarray]]]:
    """Train all of them at once; return the seconds until the last is done, and the parameters of each."""
    begins = threading.Barrier(len(runs) + 1)

    def train(run: Run) -> dict[str, np.ndarray]:
        with torch.cuda.stream(torch.cuda.Stream()) if torch.cuda.is_available() else nullcontext():
            begins.wait()
            return run.train()

    with ThreadPoolExecutor(len(runs)) as pool:
        started = [pool.submit(train, run) for run in runs]
        begins.wait()
        start = time.perf_counter()
        states = [one.result() for one in started]
        return time.perf_counter() - start, states


def measure(learner: NetworkLearner, counts: Sequence[int], n_images: int) -> list[dict[str, float | str]]:
    """Return a line for each number of networks: milliseconds a step and network, and the accuracies."""
    given, runs = images(n_images), []
    lines: list[dict[str, float | str]] = []
    for count in counts:
        start = time.perf_counter()
        runs += [Run(clone(learner), given) for _ in range(count - len(runs))]
        ready = time.perf_counter() - start
        seconds, states = seconds_and_states(runs[:count])
        accuracies = [runs[0].accuracy(state) for state in states]
        lines.append(
            {
                "networks": count,
                "compiled": str(learner.compile),
                "ms a step and network": round(1000 * seconds / learner.n_iterations / count, 3),
                "least accuracy": round(min(accuracies), 4),
                "largest accuracy": round(max(accuracies), 4),
                "seconds to get ready": round(ready, 1),
                "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
            }
        )
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 5, 8])
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--rehearse", action="store_true")
    options = parser.parse_args()
    learner = NetworkLearner(
        networks.WideResNet(10 if options.rehearse else 28, 1),
        n_iterations=options.steps,
        batch_size=BATCH,
        learning_rate=0.1,
        weight_decay=5e-4,
        augment="crop-flip",
        decay_at=(2 * options.steps // 3,),
        compile=options.compile,
    )
    lines = measure(learner, options.counts, 512 if options.rehearse else N_IMAGES)
    if options.output is not None:
        is_new = not options.output.exists()
        with options.output.open("a", newline="") as file:
            writer = csv.DictWriter(file, list(lines[0]))
            if is_new:
                writer.writeheader()
            writer.writerows(lines)


if __name__ == "__main__":
    main()
