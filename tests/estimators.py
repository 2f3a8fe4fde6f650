"""Every estimator of the library, small enough to fit in milliseconds: the one list that all contract tests go through.

What is added here is tested as a scikit-learn classifier, on disk, with weights, frames, texts and bad input.
"""

from importlib.util import find_spec
from typing import NamedTuple

from sklearn.base import BaseEstimator, clone
from sklearn.tree import DecisionTreeRegressor

import counterpoise as cp
from counterpoise import Stopping
from counterpoise.learners import HistogramTree, LeastErrorStump, NetworkLearner, Resampled, Stump, networks
from tests.tiers import slow

SPLITS = "the split that validation_fraction draws differs between weighted and repeated samples"
RANDOM = "rows are drawn at random, so that a weight of 2 and a row given twice are the same on average only"
TIES = "scikit-learn's trees break ties between splits by the order of the rows"
ASCENT = "coordinate ascent goes from row to row, so repeated rows lead to another point within the tolerance"
FOLDS = "rounds are judged on folds drawn at random, which differ between weighted and repeated samples"
DRAWS = "decisions are drawn; the check wants the argmax of predict_proba"


class TrainedMixture(cp.MixtureClassifier):
    """Trains the models first, so that contract tests, which bring their own rows, can fit it."""

    def fit(self, X, y, sample_weight=None):
        params = self.get_params(deep=False)
        trained = [clone(model).fit(X, y, sample_weight) for model in params["estimators"]]
        self.chosen_ = cp.MixtureClassifier(**params | {"estimators": trained}).fit(X, y, sample_weight)
        vars(self).update({name: value for name, value in vars(self.chosen_).items() if name not in params})
        return self


class Case(NamedTuple):
    """An estimator, and why it does not take weights for repeated rows or answers by its argmax, where it does not."""

    estimator: BaseEstimator
    repeats_differ: str = ""
    answers_differ: str = ""
    folds_differ: str = ""  # why weights and repeated rows differ on our own rows; scikit-learn's check shows it not

    @property
    def unmet(self):
        """Return the checks of scikit-learn that it cannot meet, with the reasons."""
        by_weight = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
        reasons = dict.fromkeys(by_weight, self.repeats_differ) | {"check_classifiers_train": self.answers_differ}
        return {check: reason for check, reason in reasons.items() if reason}


CASES = {
    "AdaLPBoostClassifier": Case(cp.AdaLPBoostClassifier(HistogramTree(), n_estimators=3)),
    "AdaLPBoostClassifier, default": Case(cp.AdaLPBoostClassifier(n_estimators=3), folds_differ=FOLDS),
    "AdaLPBoostClassifier, vote": Case(cp.AdaLPBoostClassifier(HistogramTree(), n_estimators=3, decision="vote")),
    "AdaLPBoostClassifier, average": Case(
        cp.AdaLPBoostClassifier(HistogramTree(), n_estimators=3, eta=1.0, mixture="average", decision="vote")
    ),
    "AdaLPBoostClassifier, first": Case(
        cp.AdaLPBoostClassifier(HistogramTree(), n_estimators=3, mixture="first", decision="vote")
    ),
    # Draws from two very different models: on the check's own data they do differ from the vote.
    "AdaLPBoostClassifier, undecided": Case(
        cp.AdaLPBoostClassifier(Stump(), n_estimators=2, mixture="average"), answers_differ=DRAWS
    ),
    "LPBoostClassifier": Case(cp.LPBoostClassifier(HistogramTree(), n_estimators=3)),
    "LPBoostClassifier, vote": Case(cp.LPBoostClassifier(HistogramTree(), n_estimators=3, decision="vote")),
    "LPBoostClassifier, regularized": Case(
        cp.LPBoostClassifier(HistogramTree(), n_estimators=3, beta=50.0, decision="vote")
    ),
    "AdaBoostClassifier": Case(cp.AdaBoostClassifier(HistogramTree(), n_estimators=3)),
    "AdaBoostClassifier, default": Case(cp.AdaBoostClassifier(n_estimators=3)),
    "VadaBoostClassifier": Case(cp.VadaBoostClassifier(HistogramTree(), n_estimators=3)),
    "VadaBoostClassifier, auto": Case(
        cp.VadaBoostClassifier(
            n_estimators=3, penalty="auto", stopping=Stopping(patience=100, validation_fraction=0.3)
        ),
        repeats_differ=SPLITS,
    ),
    "EBBoostClassifier": Case(cp.EBBoostClassifier(n_estimators=3)),
    "EBBoostClassifier, stumps": Case(cp.EBBoostClassifier(Stump(), n_estimators=3)),
    "LPBoostClassifier, goals": Case(
        cp.LPBoostClassifier(HistogramTree(3), n_estimators=3, goals="error_rate <= 0.6", decision="vote")
    ),
    "RLPBoostClassifier": Case(cp.RLPBoostClassifier(HistogramTree(), n_estimators=3)),
    "RLPBoostClassifier, auto": Case(
        cp.RLPBoostClassifier(n_estimators=3, C="auto", stopping=Stopping(patience=100, validation_fraction=0.3)),
        repeats_differ=SPLITS,
    ),
    "RQPBoostClassifier": Case(cp.RQPBoostClassifier(HistogramTree(), n_estimators=3)),
    "DROBoostClassifier": Case(cp.DROBoostClassifier(HistogramTree(), n_estimators=3)),
    "DROBoostClassifier, kl": Case(
        cp.DROBoostClassifier(
            HistogramTree(), n_estimators=3, radius=0.1, loss="logistic", divergence="kl", learning_rate=1.0
        )
    ),
    "DROBoostClassifier, regressor": Case(
        cp.DROBoostClassifier(DecisionTreeRegressor(max_depth=3), n_estimators=4, loss="squared", learning_rate=0.5),
        repeats_differ=TIES,
    ),
    "ConstrainedClassifier": Case(cp.ConstrainedClassifier(goals="positive_rate <= 0.6")),
    "ConstrainedClassifier, rbf": Case(cp.ConstrainedClassifier(kernel="rbf"), repeats_differ=ASCENT),
    "MixtureClassifier": Case(TrainedMixture([HistogramTree(max_depth=depth) for depth in (1, 3)])),
    "GoalClassifier": Case(cp.GoalClassifier(HistogramTree(max_depth=3), cv=2), folds_differ=FOLDS),
    "GoalClassifier, sticky": Case(
        cp.GoalClassifier(HistogramTree(max_depth=3), cv=2, decision="sticky", alpha=0.3, budget=0.05),
        folds_differ=FOLDS,
    ),
    "HistogramTree": Case(HistogramTree()),
    "LeastErrorStump": Case(LeastErrorStump()),
    "Resampled": Case(Resampled(HistogramTree()), repeats_differ=RANDOM),
    "Stump": Case(Stump()),
}
if find_spec("torch") is not None:
    small = {"n_iterations": 40, "batch_size": 32, "learning_rate": 0.1, "decay_at": (30,), "device": "cpu"}
    CASES["NetworkLearner"] = Case(NetworkLearner(networks.Perceptron((8,)), **small), repeats_differ=RANDOM)

ESTIMATORS = {name: case.estimator for name, case in CASES.items()}
# scikit-learn's checks of these take the same way through fit and predict as those of another variant.
SAME_WAY = {
    "AdaBoostClassifier, default",
    "AdaLPBoostClassifier, average",
    "AdaLPBoostClassifier, first",
    "AdaLPBoostClassifier, vote",
    "EBBoostClassifier, stumps",
    "LPBoostClassifier, regularized",
    "LPBoostClassifier, vote",
}
PLAIN = [name for name in ESTIMATORS if "," not in name]  # one of each class
VARIANTS = [name for name in ESTIMATORS if name not in PLAIN]


def in_tiers(names):
    """Return names of estimators as parameters of a test: the first of each class, the other variants as slow tests."""
    return [name if name in PLAIN else slow(name) for name in names]


def unfitted(name, **settings):
    """Return a copy of an estimator of the list; its random numbers, where it has any, are those of 0."""
    copy = clone(ESTIMATORS[name])
    fixed = {place: 0 for place in copy.get_params() if place.rsplit("__", 1)[-1] == "random_state"}
    return copy.set_params(**fixed | settings)


def having(parameter):
    """Return the names of those estimators that have a parameter."""
    return [name for name, one in ESTIMATORS.items() if parameter in one.get_params(deep=False)]


def public_name(name):
    """Return the name of the class that an estimator of the list is about."""
    return name.split(",", 1)[0]
