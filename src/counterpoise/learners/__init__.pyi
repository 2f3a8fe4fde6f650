from counterpoise.learners import networks as networks
from counterpoise.learners.bernstein_stump import LeastErrorStump as LeastErrorStump
from counterpoise.learners.binning import BinnedFeatures as BinnedFeatures
from counterpoise.learners.binning import bin_features as bin_features
from counterpoise.learners.network import NetworkLearner as NetworkLearner
from counterpoise.learners.resampling import Resampled as Resampled
from counterpoise.learners.trees import HistogramTree as HistogramTree
from counterpoise.learners.trees import Stump as Stump
