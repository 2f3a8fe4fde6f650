"""Classifiers that meet real-world goals.

Good for the worst-off part of the data and not only on average, and inside limits that someone set.
Submodules load on first use, so ``import counterpoise`` stays light.

>>> import counterpoise as cp
>>> round(cp.metrics.cvar_loss([0.0, 0.0, 1.0, 0.0], alpha=0.5), 3)
0.5
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from counterpoise.boosting.adalpboost import AdaLPBoostClassifier
    from counterpoise.boosting.lpboost import LPBoostClassifier

__version__ = "0.1.0.dev0"
__all__ = [
    "AdaLPBoostClassifier",
    "LPBoostClassifier",
    "__version__",
    "boosting",
    "datasets",
    "guarantees",
    "learners",
    "metrics",
    "solvers",
]

_HOME = {"AdaLPBoostClassifier": "boosting.adalpboost", "LPBoostClassifier": "boosting.lpboost"}
_SUBMODULES = ("boosting", "datasets", "guarantees", "learners", "metrics", "solvers")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    known = ", ".join((*_HOME, *_SUBMODULES))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {known}")


def __dir__() -> list[str]:
    return sorted(__all__)
