"""Pure functions: arrays in, a result with its certificate out.

Each name loads its module on first use, because the kernels need numba.
"""

from typing import TYPE_CHECKING

from counterpoise._lazy import lazy

if TYPE_CHECKING:
    from counterpoise.solvers.entropic import RegularizedSolution, regularized_weights
    from counterpoise.solvers.mixture import cvar_path, minimize_cvar
    from counterpoise.solvers.reference import solve_mixture_lp, solve_weights_lp
    from counterpoise.solvers.result import InfeasibleRows, MixtureSolution, Progress
    from counterpoise.solvers.simplex import capped_softmax, project_capped, worst_mean, worst_weights

__all__ = [
    "InfeasibleRows",
    "MixtureSolution",
    "Progress",
    "RegularizedSolution",
    "capped_softmax",
    "cvar_path",
    "minimize_cvar",
    "project_capped",
    "regularized_weights",
    "solve_mixture_lp",
    "solve_weights_lp",
    "worst_mean",
    "worst_weights",
]

_HOME = {
    "InfeasibleRows": "result",
    "MixtureSolution": "result",
    "Progress": "result",
    "RegularizedSolution": "entropic",
    "capped_softmax": "simplex",
    "cvar_path": "mixture",
    "minimize_cvar": "mixture",
    "project_capped": "simplex",
    "regularized_weights": "entropic",
    "solve_weights_lp": "reference",
    "solve_mixture_lp": "reference",
    "worst_mean": "simplex",
    "worst_weights": "simplex",
}

__getattr__, __dir__ = lazy(__name__, _HOME)
