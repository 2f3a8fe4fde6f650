"""The solver that Goh et al. (2016) describe beside ours: the same least values, and the time that each takes.

``python -m papers.dataset_constraints.beside_sdca`` prints the table that is on the page of the paper.
"""

import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from counterpoise.solvers import OracleAnswer, maximize_concave, solve_svm
from papers.arrays import FloatArray
from papers.dataset_constraints.sdca import HingeProgram, cutting_plane, svm_optimizer
from papers.markdown import markdown_table

ACCURACY = 1e-6
SIZES = ((100, 5), (300, 10), (1000, 10))  # rows, columns
_REGULARIZATION, _REACH, _LARGEST = 0.02, 20.0, 10.0
_PRICE = 0.3  # of each constraint where multipliers are given


class Timed(NamedTuple):
    """A proven lower bound on a least value, and the seconds of processor time that it took."""

    lower: float
    seconds: float


def first_program(seed: int, n_rows: int, n_columns: int) -> HingeProgram:
    """Return Problem 3 at the scores zero: the least error where two groups have like positive rates, and recall."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    y = X @ rng.normal(size=n_columns) + rng.normal(size=n_rows) > 0
    is_a = X[:, 0] + rng.normal(size=n_rows) < 0
    none = np.zeros(n_rows)
    rising = np.array([~y / n_rows, none, 0.8 * ~is_a / (~is_a).sum()])
    falling = np.array([y / n_rows, y / y.sum(), is_a / is_a.sum()])
    return HingeProgram(X, rising, falling, np.array([0.4, 1.0]), _REGULARIZATION)


def our_svm(program: HingeProgram, v: FloatArray, accuracy: float) -> OracleAnswer:
    """Return the least value for given multipliers by the library's support vector machine, and its slope in them."""
    shares = np.append(1.0, v)
    up, down = shares @ program.falling, shares @ program.rising
    solution = solve_svm(program.X, up, down, program.regularization, tol=accuracy)
    excess = program.hinges(program.X @ solution.coefficients - solution.bias)[1:] - program.bounds
    constant = float(v @ program.bounds)
    return OracleAnswer(solution.lower - constant, solution.value - constant, excess)


def timed(solve: Callable[[], float]) -> Timed:
    """Return a value and the processor time that it took; a solve before it compiles and warms up."""
    solve()
    start = time.process_time()
    return Timed(solve(), time.process_time() - start)


def inner(program: HingeProgram) -> tuple[Timed, Timed]:
    """Return ours and the paper's: Algorithm 3 with SDCA, for given multipliers."""
    v = np.full(program.bounds.size, _PRICE)
    ours = timed(lambda: our_svm(program, v, ACCURACY / 2).lower)
    return ours, timed(lambda: svm_optimizer(program, v, ACCURACY / 2, reach=_REACH).lower)


def outer(program: HingeProgram) -> tuple[Timed, Timed]:
    """Return ours and the paper's: Algorithm 2 with Algorithm 3 inside."""

    def answer(v: FloatArray, accuracy: float) -> OracleAnswer:
        return our_svm(program, v, accuracy)

    def ours() -> float:
        size, accuracy = program.bounds.size, ACCURACY / 2
        return maximize_concave(answer, size, radius=_LARGEST, tol=accuracy, chooser="level").lower

    theirs = timed(lambda: cutting_plane(program, largest=_LARGEST, reach=_REACH, accuracy=ACCURACY / 2)[1])
    return timed(ours), theirs


def table() -> str:
    """Return the table of the page."""
    lines = []
    for n_rows, n_columns in SIZES:
        program = first_program(0, n_rows, n_columns)
        for name, compare in (("SVM (Algorithm 3)", inner), ("dual (Algorithm 2)", outer)):
            ours, theirs = compare(program)
            apart = f"{abs(ours.lower - theirs.lower):.1e}"
            times = [f"{one.seconds:.3g}" for one in (ours, theirs)]
            lines.append([name, f"{n_rows} x {n_columns}", f"{ours.lower:.6f}", f"{theirs.lower:.6f}", apart, *times])
    heads = ["problem", "rows x columns", "ours", "the paper's", "apart", "seconds, ours", "seconds, the paper's"]
    return markdown_table(heads, lines)


if __name__ == "__main__":
    sys.stdout.write(f"{table()}\n")
