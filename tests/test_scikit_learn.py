"""Every estimator is a scikit-learn classifier."""

from estimators import CASES, ESTIMATORS, unfitted
from sklearn.utils.estimator_checks import parametrize_with_checks

UNMET = {str(unfitted(name)): case.unmet for name, case in CASES.items()}


@parametrize_with_checks([unfitted(name) for name in ESTIMATORS], expected_failed_checks=lambda one: UNMET[str(one)])
def test_it_passes_every_check(estimator, check):
    check(estimator)
