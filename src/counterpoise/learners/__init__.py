"""Base learners for boosting: weighted trees and stumps, networks, and a wrapper for learners that take no weights.

Each name loads its module on first use, because the kernels need numba.
"""

from typing import TYPE_CHECKING

from counterpoise._lazy import lazy

if TYPE_CHECKING:
    from counterpoise.learners import networks
    from counterpoise.learners.bernstein_stump import LeastErrorStump
    from counterpoise.learners.binning import BinnedFeatures, bin_features
    from counterpoise.learners.network import NetworkLearner
    from counterpoise.learners.resampling import Resampled
    from counterpoise.learners.trees import HistogramTree, Stump

__all__ = [
    "BinnedFeatures",
    "HistogramTree",
    "LeastErrorStump",
    "NetworkLearner",
    "Resampled",
    "Stump",
    "bin_features",
    "networks",
]

_HOME = {
    "BinnedFeatures": "binning",
    "HistogramTree": "trees",
    "LeastErrorStump": "bernstein_stump",
    "NetworkLearner": "network",
    "Resampled": "resampling",
    "Stump": "trees",
    "bin_features": "binning",
    "networks": "",
}

__getattr__, __dir__ = lazy(__name__, _HOME)
