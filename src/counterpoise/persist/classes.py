"""The classes that a file may name. Nothing else is ever built from one."""

from importlib import import_module
from typing import Any

from counterpoise.persist.errors import UnreadableModel

# Class name -> module. A class is imported when a file or a model that has it is met.
CLASSES = {
    "AdaBoostClassifier": "counterpoise.boosting.adaboost",
    "AdaLPBoostClassifier": "counterpoise.boosting.adalpboost",
    "Answers": "counterpoise.goal_rows",
    "BitRows": "counterpoise.solvers.rows",
    "Cell": "counterpoise._language.rows",
    "ConstrainedClassifier": "counterpoise.constrained",
    "Count": "counterpoise._language.terms",
    "DROBoostClassifier": "counterpoise.boosting.dro",
    "Dataset": "counterpoise._language.rows",
    "Descent": "counterpoise.boosting.descent",
    "DeterministicRule": "counterpoise.deterministic",
    "Draws": "counterpoise.draws",
    "EBBoostClassifier": "counterpoise.boosting.ebboost",
    "Ensemble": "counterpoise.boosting.additive",
    "Evidence": "counterpoise.randomized",
    "Goal": "counterpoise._language.expressions",
    "GoalCheck": "counterpoise._language.expressions",
    "GoalRows": "counterpoise.goal_rows",
    "Grid": "counterpoise._draws.rows",
    "HingeSolution": "counterpoise.solvers.soft_margin",
    "HistogramTree": "counterpoise.learners.trees",
    "LPBoostClassifier": "counterpoise.boosting.lpboost",
    "LeastErrorStump": "counterpoise.learners.bernstein_stump",
    "Majorization": "counterpoise.solvers.ramp",
    "Metric": "counterpoise._language.terms",
    "MixtureClassifier": "counterpoise.mixture_classifier",
    "NetworkLearner": "counterpoise.learners.network",
    "Perceptron": "counterpoise.learners.networks",
    "Pipeline": "sklearn.pipeline",  # which may hold ours; its other steps go through skops
    "Positive": "counterpoise.goal_rows",
    "RLPBoostClassifier": "counterpoise.boosting.margin_boost",
    "RQPBoostClassifier": "counterpoise.boosting.margin_boost",
    "Rate": "counterpoise._language.expressions",
    "RateRow": "counterpoise.goal_rows",
    "Ratio": "counterpoise._language.expressions",
    "ResNet18": "counterpoise.learners.networks",
    "Resampled": "counterpoise.learners.resampling",
    "Selection": "counterpoise.mixing",
    "Share": "counterpoise._language.shares",
    "SoftMarginSolution": "counterpoise.solvers.soft_margin",
    "Stump": "counterpoise.learners.trees",
    "Table": "counterpoise._language.tables",
    "Term": "counterpoise._language.terms",
    "Tree": "counterpoise.learners._tree",
    "VadaBoostClassifier": "counterpoise.boosting.vadaboost",
    "WeightedShare": "counterpoise._language.shares",
    "WideResNet": "counterpoise.learners.networks",
    "_Best": "counterpoise.boosting.base",
    "_Member": "counterpoise.mixture_classifier",
    "_Stored": "counterpoise.mixture_classifier",
}


def is_known(kind: type) -> bool:
    """Tell whether a class is in the table, and not another one of the same name."""
    return CLASSES.get(kind.__name__) == kind.__module__


def known_class(name: Any) -> Any:
    """Return the class of that name."""
    if not isinstance(name, str) or name not in CLASSES:
        raise UnreadableModel(f"it names the class {name!r}, which this version cannot restore")
    return getattr(import_module(CLASSES[name]), name)
