"""Classifiers that meet real-world goals.

Good for the worst-off part of the data and not only on average, and inside limits that someone set.
Submodules load on first use, so ``import counterpoise`` stays light.

>>> import counterpoise as cp
>>> round(cp.metrics.cvar_loss([0.0, 0.0, 1.0, 0.0], alpha=0.5), 3)
0.5
"""

from typing import TYPE_CHECKING

from counterpoise._lazy import lazy

if TYPE_CHECKING:
    from counterpoise.boosting.adaboost import AdaBoostClassifier
    from counterpoise.boosting.adalpboost import AdaLPBoostClassifier
    from counterpoise.boosting.lpboost import LPBoostClassifier
    from counterpoise.boosting.vadaboost import VadaBoostClassifier

__version__ = "0.1.0.dev0"
__all__ = [
    "AdaBoostClassifier",
    "AdaLPBoostClassifier",
    "LPBoostClassifier",
    "VadaBoostClassifier",
    "__version__",
    "boosting",
    "datasets",
    "guarantees",
    "learners",
    "metrics",
    "solvers",
]

_HOME = {
    "AdaBoostClassifier": "boosting.adaboost",
    "AdaLPBoostClassifier": "boosting.adalpboost",
    "LPBoostClassifier": "boosting.lpboost",
    "VadaBoostClassifier": "boosting.vadaboost",
    "boosting": "",
    "datasets": "",
    "guarantees": "",
    "learners": "",
    "metrics": "",
    "solvers": "",
}

__getattr__, __dir__ = lazy(__name__, _HOME)
