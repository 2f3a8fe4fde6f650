"""The classes that a file may name. Nothing else is ever built from one."""

from importlib import import_module
from typing import Any

from counterpoise.persist.container import UnreadableModel

# By module, as a class is imported when a file or a model that has it is met. A Pipeline may hold ours; its other steps
# go through skops.
_CLASSES_OF = {
    "counterpoise.boosting.adaboost": ("AdaBoostClassifier",),
    "counterpoise.boosting.additive": ("Ensemble",),
    "counterpoise.boosting.checkpoint": ("Checkpoint",),
    "counterpoise.boosting.dro": ("DROBoostClassifier", "Descent"),
    "counterpoise.boosting.lpboost": ("AdaLPBoostClassifier", "LPBoostClassifier"),
    "counterpoise.boosting.margin_boost": ("RLPBoostClassifier", "RQPBoostClassifier"),
    "counterpoise.boosting.stopping": ("Stopping",),
    "counterpoise.boosting.vadaboost": ("EBBoostClassifier", "VadaBoostClassifier"),
    "counterpoise.classifiers.constrained": ("ConstrainedClassifier",),
    "counterpoise.classifiers.folds": ("AveragedClassifier",),
    "counterpoise.classifiers.goal": ("GoalClassifier",),
    "counterpoise.classifiers.mixture": ("MixtureClassifier",),
    "counterpoise.distributed.boosting": ("DaskAdaLPBoostClassifier",),
    "counterpoise.distributed.estimators": ("DaskGoalClassifier", "DaskMixtureClassifier"),
    "counterpoise.goals.checks": ("GoalCheck",),
    "counterpoise.goals.disparity": ("GroupDisparities", "GroupInStratum", "WorstDisparity"),
    "counterpoise.goals.equality": ("Distance",),
    "counterpoise.goals.expressions": ("Absolute", "ComparedRatios", "Goal", "Rate", "Ratio"),
    "counterpoise.goals.population": ("Share", "WeightedShare"),
    "counterpoise.goals.rates": ("WorstRate",),
    "counterpoise.goals.terms": ("Cell", "Count", "Dataset", "Metric", "Range", "Term"),
    "counterpoise.goals.tables": ("Table",),
    "counterpoise.learners._tree": ("Tree",),
    "counterpoise.learners.bernstein_stump": ("LeastErrorStump",),
    "counterpoise.learners.network": ("NetworkLearner",),
    "counterpoise.learners.networks": ("Perceptron", "ResNet18", "WideResNet"),
    "counterpoise.learners.resampling": ("Resampled",),
    "counterpoise.learners.trees": ("HistogramTree", "Stump"),
    "counterpoise.rules.choosing": ("PoolPredictions", "Selection"),
    "counterpoise.rules.class_scores.rules": ("TierRule",),
    "counterpoise.rules.class_scores.table": ("Calibration", "ClassTable", "SoftAnswers"),
    "counterpoise.rules.draws": ("KeyedDraws",),
    "counterpoise.rules.families": ("ClassRules", "PooledModels", "ThresholdRules"),
    "counterpoise.rules.goal_rows": ("Answers", "GoalConstraints", "LinearRate", "Positive"),
    "counterpoise.rules.margins": ("Margin",),
    "counterpoise.rules.options": ("Deferral", "Draws", "Groups", "Proof"),
    "counterpoise.rules.proving": ("GoalProof",),
    "counterpoise.rules.pool": ("Member", "Pool", "StoredMember"),
    "counterpoise.rules.scores.cuts": ("Rule",),
    "counterpoise.rules.scores.table": ("RuleGroups", "ScoreTable"),
    "counterpoise.solvers.ramp": ("Majorization",),
    "counterpoise.solvers.rows": ("BitRows",),
    "counterpoise.solvers.soft_margin": ("HingeSolution", "SoftMarginSolution"),
    "counterpoise.theory.risks": (
        "CVaR",
        "ChiSquare",
        "EmpiricalLikelihood",
        "KL",
        "Mean",
        "MeanVariance",
        "WeightedSum",
        "WorstGroup",
        "WorstOfGroups",
    ),
    "sklearn.pipeline": ("Pipeline",),
}
CLASSES = {name: home for home, names in _CLASSES_OF.items() for name in names}


def is_known(kind: type) -> bool:
    """Return whether a class is in the table, and not another one of the same name."""
    return CLASSES.get(kind.__name__) == kind.__module__


def known_class(name: Any) -> Any:
    """Return the class of that name."""
    if not isinstance(name, str) or name not in CLASSES:
        raise UnreadableModel(f"it names the class {name!r}, which this version cannot restore")
    return getattr(import_module(CLASSES[name]), name)
