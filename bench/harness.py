"""Side-by-side benchmarks: ours and a peer in one run, answers compared, one row a benchmark in one table."""

import csv
import ctypes
import importlib.metadata
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Before a library starts its threads: one that spins while it waits would count other work on the machine.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
sys.path.insert(0, str(Path(__file__).parent.parent))
from papers.experiments import filled

PACKAGES = ("counterpoise", "numpy", "numba", "highspy", "daqp", "scikit-learn", "lightgbm", "fairlearn", "torch")


@dataclass(frozen=True)
class Benchmark:
    """One comparison. ``difference`` measures by how much the two answers disagree."""

    name: str
    size: str
    ours: Callable[[], Any]
    floor: Callable[[Any], float]  # seconds that the answer costs at the least, measured here and now
    floor_means: str
    peer_name: str = ""
    peer: Callable[[], Any] | None = None
    difference: Callable[[Any, Any], float] = lambda _ours, _peer: 0.0
    tolerance: float = 0.0
    repeats: int = 3
    clock: Callable[[], float] = time.process_time  # of all threads, whatever else the machine does


@dataclass
class Peak:
    """The most memory held above the start, in MiB; not a number where the system does not tell."""

    mib: float = float("nan")


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Watch the resident memory of this process from a thread, as native libraries allocate there too."""
    _trim()
    peak, done = Peak(), threading.Event()
    start = _resident_mib()
    seen = [start]

    def watch() -> None:
        while not done.wait(0.002):
            seen.append(_resident_mib())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()
        peak.mib = max([*seen, _resident_mib()]) - start


def _trim() -> None:
    """Hand free memory back, where the C library can, so that reuse of it does not hide what a call needs."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def _resident_mib() -> float:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return float("nan")
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def run(benchmark: Benchmark) -> dict[str, Any]:
    """Run both sides and return the row; raise where the answers disagree."""
    benchmark.ours()  # compile, and fault in the data
    with peak_memory() as ours_peak:
        answer = benchmark.ours()
    seconds = min(_timed(benchmark, benchmark.ours) for _ in range(benchmark.repeats))
    row = {
        "benchmark": benchmark.name,
        "size": benchmark.size,
        "seconds": seconds,
        "floor_seconds": benchmark.floor(answer),
        "floor_means": benchmark.floor_means,
        "peak_mib": ours_peak.mib,
        "peer": benchmark.peer_name,
    }
    if benchmark.peer is not None:
        row |= _run_peer(benchmark, benchmark.peer, answer, seconds)
    row["versions"] = ", ".join(filter(None, map(_version, PACKAGES)))
    row["machine"] = f"{platform.machine()}, {_cores()}, Python {platform.python_version()}, {_CLOCKS[benchmark.clock]}"
    return row


def _version(package: str) -> str:
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return ""


def _run_peer(benchmark: Benchmark, peer: Callable[[], Any], answer: Any, seconds: float) -> dict[str, Any]:
    with peak_memory() as peak:
        start = benchmark.clock()
        other = peer()
        peer_seconds = benchmark.clock() - start
    difference = benchmark.difference(answer, other)
    if not difference <= benchmark.tolerance:
        raise RuntimeError(
            f"{benchmark.name} ({benchmark.size}): the answers of counterpoise and {benchmark.peer_name} differ by "
            f"{difference:.3g}, more than {benchmark.tolerance:.3g}; the times mean nothing."
        )
    if peer_seconds < _SHORT:
        peer_seconds = min(_timed(benchmark, peer) for _ in range(benchmark.repeats))
    return {
        "peer_seconds": peer_seconds,
        "ratio": peer_seconds / seconds,
        "peer_peak_mib": peak.mib,
        "difference": difference,
    }


def _timed(benchmark: Benchmark, function: Callable[[], Any]) -> float:
    start = benchmark.clock()
    function()
    return benchmark.clock() - start


def _cores() -> str:
    affinity = getattr(os, "sched_getaffinity", None)  # Linux has it
    used = len(affinity(0)) if affinity else os.cpu_count()
    return f"{used} of {os.cpu_count()} cores"


def children_time() -> float:
    """Return the processor time of the processes that this one has started and waited for."""
    times = os.times()
    return times.children_user + times.children_system


_CLOCKS = {
    children_time: "seconds of the processor",
    time.process_time: "seconds of the processor",
    time.perf_counter: "seconds of the clock",
}
_SHORT = 10.0  # seconds: a peer that takes longer is timed once


COLUMNS = (
    *("benchmark", "size", "seconds", "floor_seconds", "peak_mib", "peer", "peer_seconds", "ratio"),
    *("peer_peak_mib", "difference", "floor_means", "machine", "versions"),
)
SHOWN = 10  # of the columns


def write_table(rows: list[dict[str, Any]], path: Path) -> None:
    """Write the rows of a run, in the place of those of an earlier one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        writer.writerows({name: _text(value) for name, value in row.items()} for row in rows)


def write_page(rows: list[dict[str, Any]], page: Path, summary: str, notes: list[str]) -> None:
    """Put what was measured between its marks in the page of results."""
    machines = sorted({f"{row['machine'].rpartition(', ')[0]}: {row['versions']}" for row in rows})
    blocks = {"machine": "\n\n".join(machines), "summary": summary, "notes": " ".join(notes) or "Nothing was left out."}
    page.write_text(filled(page.read_text(encoding="utf-8"), "benchmarks", blocks), encoding="utf-8")


def show(row: dict[str, Any]) -> str:
    """Return a line of the printed table."""
    return "  ".join(f"{_text(row.get(name, '')):>{width(name)}}" for name in COLUMNS[:SHOWN])


def header() -> str:
    """Return the head of the printed table."""
    return "  ".join(f"{name:>{width(name)}}" for name in COLUMNS[:SHOWN])


def width(name: str) -> int:
    """Return the width of a printed column."""
    return {"benchmark": 34, "size": 22, "peer": 22}.get(name, 13)


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
