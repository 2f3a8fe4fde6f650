"""Pure functions: arrays in, a result with its certificate out.

Each name loads its module on first use, because the kernels need numba.
"""

from typing import TYPE_CHECKING

from counterpoise._lazy import lazy

if TYPE_CHECKING:
    from counterpoise.solvers.cutting_plane import Answer, MultiplierSolution, maximize_concave
    from counterpoise.solvers.entropic import RegularizedSolution, regularized_weights
    from counterpoise.solvers.mixture import cvar_path, limits_path, minimize_cvar
    from counterpoise.solvers.reference import solve_mixture_lp, solve_weights_lp
    from counterpoise.solvers.result import InfeasibleRows, MixtureSolution, Progress
    from counterpoise.solvers.simplex import capped_softmax, project_capped, worst_mean, worst_weights
    from counterpoise.solvers.soft_margin import (
        HingeSolution,
        SoftMarginSolution,
        hinge_path,
        maximize_soft_margin,
        minimize_hinge,
        soft_margin_path,
    )
    from counterpoise.solvers.svm import solve_kernel_svm, solve_svm
    from counterpoise.solvers.svm_bounds import SVMSolution
    from counterpoise.solvers.worst_case import worst_case_weights

__all__ = [
    "Answer",
    "HingeSolution",
    "InfeasibleRows",
    "MixtureSolution",
    "MultiplierSolution",
    "Progress",
    "RegularizedSolution",
    "SVMSolution",
    "SoftMarginSolution",
    "capped_softmax",
    "cvar_path",
    "hinge_path",
    "limits_path",
    "maximize_concave",
    "maximize_soft_margin",
    "minimize_cvar",
    "minimize_hinge",
    "project_capped",
    "regularized_weights",
    "soft_margin_path",
    "solve_kernel_svm",
    "solve_mixture_lp",
    "solve_svm",
    "solve_weights_lp",
    "worst_case_weights",
    "worst_mean",
    "worst_weights",
]

_HOME = {
    "Answer": "cutting_plane",
    "HingeSolution": "soft_margin",
    "InfeasibleRows": "result",
    "MixtureSolution": "result",
    "MultiplierSolution": "cutting_plane",
    "Progress": "result",
    "RegularizedSolution": "entropic",
    "SVMSolution": "svm_bounds",
    "SoftMarginSolution": "soft_margin",
    "capped_softmax": "simplex",
    "cvar_path": "mixture",
    "hinge_path": "soft_margin",
    "limits_path": "mixture",
    "maximize_concave": "cutting_plane",
    "maximize_soft_margin": "soft_margin",
    "minimize_cvar": "mixture",
    "minimize_hinge": "soft_margin",
    "project_capped": "simplex",
    "regularized_weights": "entropic",
    "soft_margin_path": "soft_margin",
    "solve_kernel_svm": "svm",
    "solve_svm": "svm",
    "solve_weights_lp": "reference",
    "solve_mixture_lp": "reference",
    "worst_case_weights": "worst_case",
    "worst_mean": "simplex",
    "worst_weights": "simplex",
}

__getattr__, __dir__ = lazy(__name__, _HOME)
