"""Base learners for boosting: weighted histogram trees, stumps, and a wrapper for learners that take no weights.

Each name loads its module on first use, because the kernels need numba.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from counterpoise.learners.binning import BinnedFeatures, bin_features
    from counterpoise.learners.resampling import Resampled
    from counterpoise.learners.trees import HistogramTree, Stump

__all__ = ["BinnedFeatures", "HistogramTree", "Resampled", "Stump", "bin_features"]

_HOME = {
    "BinnedFeatures": "binning",
    "HistogramTree": "trees",
    "Resampled": "resampling",
    "Stump": "trees",
    "bin_features": "binning",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)
