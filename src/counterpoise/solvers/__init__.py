"""Pure functions: arrays in, a result with its certificate out.

Each name loads its module on first use, because the kernels need numba.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)
