"""A minute of timings for one installation: our solver and learners beside their peers, answers compared.

The suites of the project's folder ``bench`` are wider; this needs nothing but the installed library.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.text_table import text_table
from counterpoise._base.types import ByteArray

N_SAMPLES, N_MODELS, N_FEATURES, N_ROUNDS, DEPTH = 20_000, 30, 20, 20, 5
ALPHA, TOLERANCE = 0.1, 1e-4  # a gap of zero-one losses
_ERROR_ROOM = 0.02  # by which our test error may be above the peer's before the ratio says nothing


class Timing(NamedTuple):
    """Seconds of both for one task; ``difference`` is how much worse our answer is."""

    task: str
    size: str
    peer: str
    seconds: float
    peer_seconds: float
    difference: float

    @property
    def ratio(self) -> float:
        """Return the peer's seconds over ours."""
        return self.peer_seconds / self.seconds


def measure(say: Callable[[str], None] = lambda _text: None) -> list[Timing]:
    """Return the timings; an answer worse than the peer's by more than its tolerance raises."""
    say("Each task runs once to compile and load, then is timed.")
    return [_mixture_against_highs(), _boosting_against_scikit_learn()]


def rows_as_text(rows: Sequence[Timing]) -> str:
    """Return timings as a table."""
    heads = ("task", "size", "peer", "ours (s)", "peer (s)", "ratio")
    lines = [
        (row.task, row.size, row.peer, f"{row.seconds:.3f}", f"{row.peer_seconds:.3f}", f"{row.ratio:.1f}")
        for row in rows
    ]
    return text_table([heads, *lines], "<" * len(heads))


def _mixture_against_highs() -> Timing:
    from counterpoise.solvers import minimize_cvar, solve_weights_lp  # noqa: PLC0415 - heavy

    losses = _losses()
    minimize_cvar(losses, ALPHA)
    seconds, found = _timed(lambda: minimize_cvar(losses, ALPHA, tol=TOLERANCE))
    peer_seconds, reference = _timed(lambda: solve_weights_lp(losses, ALPHA))
    size = f"{N_SAMPLES} x {N_MODELS}"
    timing = Timing("best mixture", size, "HiGHS", seconds, peer_seconds, found.value - reference.value)
    return _agreed(timing, 2 * TOLERANCE)


def _boosting_against_scikit_learn() -> Timing:
    from sklearn.datasets import make_classification  # noqa: PLC0415 - heavy
    from sklearn.ensemble import AdaBoostClassifier as PeerBooster  # noqa: PLC0415
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415

    from counterpoise.boosting.adaboost import AdaBoostClassifier  # noqa: PLC0415
    from counterpoise.learners import HistogramTree  # noqa: PLC0415

    X, y = make_classification(2 * N_SAMPLES, N_FEATURES, n_informative=10, flip_y=0.05, random_state=0)
    train, test = slice(N_SAMPLES), slice(N_SAMPLES, None)
    ours = AdaBoostClassifier(HistogramTree(max_depth=DEPTH), n_estimators=N_ROUNDS)
    peer = PeerBooster(DecisionTreeClassifier(max_depth=DEPTH), n_estimators=N_ROUNDS, random_state=0)
    ours.fit(X[:500], y[:500])
    seconds, _ = _timed(lambda: ours.fit(X[train], y[train]))
    peer_seconds, _ = _timed(lambda: peer.fit(X[train], y[train]))
    worse = float(peer.score(X[test], y[test]) - ours.score(X[test], y[test]))
    size = f"{N_SAMPLES} x {N_FEATURES}, {N_ROUNDS} trees of depth {DEPTH}"
    return _agreed(Timing("AdaBoost", size, "scikit-learn", seconds, peer_seconds, worse), _ERROR_ROOM)


def _agreed(timing: Timing, tolerance: float) -> Timing:
    if timing.difference > tolerance:
        raise ValueError(
            f"{timing.task} must be as good as that of {timing.peer} within {tolerance:g} before times are compared; "
            f"it was worse by {timing.difference:g}. Please report it."
        )
    return timing


def _losses() -> ByteArray:
    """Return zero-one losses of models of uneven skill on samples of uneven difficulty."""
    rng = np.random.default_rng(0)
    difficulty = rng.beta(0.3, 1.5, size=(N_SAMPLES, 1))
    skill = rng.uniform(0.6, 1.4, size=N_MODELS)
    return (rng.random((N_SAMPLES, N_MODELS)) < difficulty * skill).astype(np.uint8)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result
