"""The classes that a file may name. Nothing else is ever built from one."""

from importlib import import_module
from typing import Any

from counterpoise.persist.container import UnreadableModel
from counterpoise.persist.scikit_learn import ESTIMATORS

# Class name -> module. A class is imported when a file or a model that has it is met.
CLASSES = ESTIMATORS | {
    "Absolute": "counterpoise.goals.expressions",
    "AdaBoostClassifier": "counterpoise.boosting.adaboost",
    "AdaLPBoostClassifier": "counterpoise.boosting.lpboost",
    "Answers": "counterpoise.rules.goal_rows",
    "AveragedClassifier": "counterpoise.classifiers.folds",
    "BitRows": "counterpoise.solvers.rows",
    "CVaR": "counterpoise.theory.risks",
    "Calibration": "counterpoise.rules.class_scores.table",
    "Cell": "counterpoise.goals.rows",
    "CellAnswers": "counterpoise.distributed.rows",
    "Checkpoint": "counterpoise.boosting.checkpoint",
    "ChiSquare": "counterpoise.theory.risks",
    "ClassTable": "counterpoise.rules.class_scores.table",
    "ClassRules": "counterpoise.rules.families",
    "ConstrainedClassifier": "counterpoise.classifiers.constrained",
    "Count": "counterpoise.goals.rows",
    "DROBoostClassifier": "counterpoise.boosting.dro",
    "DaskAdaLPBoostClassifier": "counterpoise.distributed.estimators",
    "DaskGoalClassifier": "counterpoise.distributed.estimators",
    "DaskLPBoostClassifier": "counterpoise.distributed.estimators",
    "DaskMixtureClassifier": "counterpoise.distributed.estimators",
    "Dataset": "counterpoise.goals.rows",
    "Deferral": "counterpoise.rules.options",
    "Descent": "counterpoise.boosting.dro",
    "Draws": "counterpoise.rules.options",
    "EBBoostClassifier": "counterpoise.boosting.vadaboost",
    "EmpiricalLikelihood": "counterpoise.theory.risks",
    "Ensemble": "counterpoise.boosting.additive",
    "PoolPredictions": "counterpoise.rules.choosing",
    "Goal": "counterpoise.goals.expressions",
    "GoalCheck": "counterpoise.goals.expressions",
    "GoalClassifier": "counterpoise.classifiers.goal",
    "GoalRows": "counterpoise.rules.goal_rows",
    "Grid": "counterpoise.rules.draws",
    "Groups": "counterpoise.rules.options",
    "HingeSolution": "counterpoise.solvers.soft_margin",
    "HistogramTree": "counterpoise.learners.trees",
    "KL": "counterpoise.theory.risks",
    "KeyedDraws": "counterpoise.rules.draws",
    "LPBoostClassifier": "counterpoise.boosting.lpboost",
    "LeastErrorStump": "counterpoise.learners.bernstein_stump",
    "LinearRate": "counterpoise.rules.goal_rows",
    "Majorization": "counterpoise.solvers.ramp",
    "Mean": "counterpoise.theory.risks",
    "Member": "counterpoise.rules.pool",
    "MeanVariance": "counterpoise.theory.risks",
    "Metric": "counterpoise.goals.rows",
    "MixtureClassifier": "counterpoise.classifiers.mixture",
    "NetworkLearner": "counterpoise.learners.network",
    "Perceptron": "counterpoise.learners.networks",
    "Phrase": "counterpoise.goals.rates",
    "Pipeline": "sklearn.pipeline",  # which may hold ours; its other steps go through skops
    "Pool": "counterpoise.rules.pool",
    "PooledModels": "counterpoise.rules.families",
    "Positive": "counterpoise.rules.goal_rows",
    "RLPBoostClassifier": "counterpoise.boosting.margin_boost",
    "RQPBoostClassifier": "counterpoise.boosting.margin_boost",
    "Range": "counterpoise.goals.rows",
    "Rate": "counterpoise.goals.expressions",
    "RatioRule": "counterpoise.rules.class_scores.rules",
    "Ratio": "counterpoise.goals.expressions",
    "ResNet18": "counterpoise.learners.networks",
    "Resampled": "counterpoise.learners.resampling",
    "Rule": "counterpoise.rules.scores.cuts",
    "RuleGroups": "counterpoise.rules.scores.table",
    "ScoreTable": "counterpoise.rules.scores.table",
    "Selection": "counterpoise.rules.choosing",
    "Share": "counterpoise.goals.population",
    "SoftMarginSolution": "counterpoise.solvers.soft_margin",
    "SoftAnswers": "counterpoise.rules.class_scores.table",
    "Stopping": "counterpoise.boosting.stopping",
    "StoredMember": "counterpoise.rules.pool",
    "Stump": "counterpoise.learners.trees",
    "Table": "counterpoise.goals.tables",
    "Term": "counterpoise.goals.rows",
    "TierRule": "counterpoise.rules.class_scores.rules",
    "Thresholds": "counterpoise.rules.families",
    "Tree": "counterpoise.learners._growing",
    "VadaBoostClassifier": "counterpoise.boosting.vadaboost",
    "WeightedShare": "counterpoise.goals.population",
    "WeightedSum": "counterpoise.theory.risks",
    "WideResNet": "counterpoise.learners.networks",
    "WorstGroup": "counterpoise.theory.risks",
    "WorstOfGroups": "counterpoise.theory.risks",
}


def is_known(kind: type) -> bool:
    """Tell whether a class is in the table, and not another one of the same name."""
    return CLASSES.get(kind.__name__) == kind.__module__


def known_class(name: Any) -> Any:
    """Return the class of that name."""
    if not isinstance(name, str) or name not in CLASSES:
        raise UnreadableModel(f"it names the class {name!r}, which this version cannot restore")
    return getattr(import_module(CLASSES[name]), name)
