"""Every booster is a scikit-learn classifier."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from counterpoise import AdaLPBoostClassifier, EBBoostClassifier, LPBoostClassifier
from counterpoise.learners import Stump

VOTING = [
    AdaLPBoostClassifier(n_estimators=5, decision="vote"),
    AdaLPBoostClassifier(n_estimators=5, eta=1.0, mixture="average", decision="vote"),
    AdaLPBoostClassifier(n_estimators=5, mixture="first", decision="vote"),
    LPBoostClassifier(n_estimators=5, decision="vote"),
    LPBoostClassifier(n_estimators=5, beta=50.0, decision="vote"),
    EBBoostClassifier(n_estimators=5),
]
STICKY = [AdaLPBoostClassifier(n_estimators=5), LPBoostClassifier(n_estimators=5)]
# Draws from two very different models: on the check's own data they do differ from the vote.
UNDECIDED = AdaLPBoostClassifier(Stump(), n_estimators=2, mixture="average")


@parametrize_with_checks(VOTING + STICKY)
def test_boosters_pass_every_check(estimator, check):
    check(estimator)


def draws_do_not_vote(_estimator):
    return {"check_classifiers_train": "predict draws from predict_proba; the check wants its argmax"}


@parametrize_with_checks([UNDECIDED], expected_failed_checks=draws_do_not_vote)
def test_an_undecided_mixture_passes_every_check_but_that_of_the_argmax(estimator, check):
    check(estimator)
