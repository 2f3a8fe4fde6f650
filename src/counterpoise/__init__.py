"""Classifiers that meet real-world goals.

Good for the worst-off part of the data and not only on average, and inside limits that someone set.
Submodules load on first use, so ``import counterpoise`` stays light.

>>> import counterpoise as cp
>>> round(cp.metrics.cvar_loss([0.0, 0.0, 1.0, 0.0], alpha=0.5), 3)
0.5
"""

from importlib import import_module
from types import ModuleType

__version__ = "0.1.0.dev0"
__all__ = ["__version__", "metrics", "solvers"]

_SUBMODULES = ("metrics", "solvers")


def __getattr__(name: str) -> ModuleType:
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(_SUBMODULES)}")


def __dir__() -> list[str]:
    return sorted(__all__)
