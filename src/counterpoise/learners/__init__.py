"""Base learners for boosting: weighted histogram trees, stumps, and a wrapper for learners that take no weights.

Each name loads its module on first use, because the kernels need numba.
"""

from typing import TYPE_CHECKING

from counterpoise._lazy import lazy

if TYPE_CHECKING:
    from counterpoise.learners.bernstein_stump import LeastErrorStump
    from counterpoise.learners.binning import BinnedFeatures, bin_features
    from counterpoise.learners.resampling import Resampled
    from counterpoise.learners.trees import HistogramTree, Stump

__all__ = ["BinnedFeatures", "HistogramTree", "LeastErrorStump", "Resampled", "Stump", "bin_features"]

_HOME = {
    "BinnedFeatures": "binning",
    "HistogramTree": "trees",
    "LeastErrorStump": "bernstein_stump",
    "Resampled": "resampling",
    "Stump": "trees",
    "bin_features": "binning",
}

__getattr__, __dir__ = lazy(__name__, _HOME)
