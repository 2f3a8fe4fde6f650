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
    from counterpoise.boosting.dro import DROBoostClassifier
    from counterpoise.boosting.ebboost import EBBoostClassifier
    from counterpoise.boosting.lpboost import LPBoostClassifier
    from counterpoise.boosting.margin_boost import RLPBoostClassifier, RQPBoostClassifier
    from counterpoise.boosting.vadaboost import VadaBoostClassifier
    from counterpoise.constrained import ConstrainedClassifier
    from counterpoise.displays import CVaRCurveDisplay, RateDisplay, TradeoffDisplay
    from counterpoise.frontier import tradeoff
    from counterpoise.mixture_classifier import MixtureClassifier
    from counterpoise.persist import load, save

__version__ = "0.1.0.dev0"
__all__ = [
    "AdaBoostClassifier",
    "AdaLPBoostClassifier",
    "CVaRCurveDisplay",
    "ConstrainedClassifier",
    "DROBoostClassifier",
    "EBBoostClassifier",
    "LPBoostClassifier",
    "MixtureClassifier",
    "RLPBoostClassifier",
    "RQPBoostClassifier",
    "RateDisplay",
    "TradeoffDisplay",
    "VadaBoostClassifier",
    "__version__",
    "boosting",
    "certify",
    "confidence",
    "datasets",
    "displays",
    "goals",
    "guarantees",
    "learners",
    "load",
    "losses",
    "metrics",
    "persist",
    "rates",
    "risks",
    "runs",
    "save",
    "solvers",
    "tradeoff",
]

_HOME = {
    "AdaBoostClassifier": "boosting.adaboost",
    "AdaLPBoostClassifier": "boosting.adalpboost",
    "CVaRCurveDisplay": "displays",
    "ConstrainedClassifier": "constrained",
    "DROBoostClassifier": "boosting.dro",
    "EBBoostClassifier": "boosting.ebboost",
    "LPBoostClassifier": "boosting.lpboost",
    "MixtureClassifier": "mixture_classifier",
    "RLPBoostClassifier": "boosting.margin_boost",
    "RQPBoostClassifier": "boosting.margin_boost",
    "RateDisplay": "displays",
    "TradeoffDisplay": "displays",
    "VadaBoostClassifier": "boosting.vadaboost",
    "boosting": "",
    "certify": "",
    "confidence": "",
    "datasets": "",
    "displays": "",
    "goals": "",
    "guarantees": "",
    "learners": "",
    "load": "persist",
    "losses": "",
    "metrics": "",
    "persist": "",
    "rates": "",
    "risks": "",
    "runs": "",
    "save": "persist",
    "solvers": "",
    "tradeoff": "frontier",
}

__getattr__, __dir__ = lazy(__name__, _HOME)
