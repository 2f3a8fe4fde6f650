"""Every estimator is a scikit-learn classifier."""

import pytest
import sklearn
from estimators import CASES, PLAIN, SAME_WAY, VARIANTS, unfitted
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

pytestmark = pytest.mark.usefixtures("quick_default")
UNMET = {str(unfitted(name)): case.unmet for name, case in CASES.items()}
# Before 1.7 the two labels are named after the first row, which is another one once rows are repeated; test_contract
# compares weights and repeated rows on data of its own.
LABELS_BY_FIRST_ROW = parse_version(sklearn.__version__) < parse_version("1.7")


def with_checks(names):
    """Parametrize a test with scikit-learn's checks of these estimators."""
    estimators = [unfitted(name) for name in names]
    return parametrize_with_checks(estimators, expected_failed_checks=lambda one: UNMET[str(one)])


def passes(estimator, check):
    if LABELS_BY_FIRST_ROW and "sample_weight_equivalence" in str(check):
        pytest.skip("scikit-learn before 1.7 compares other labels here")
    check(estimator)


@with_checks(PLAIN)
def test_every_class_passes_every_check(estimator, check):
    passes(estimator, check)


@pytest.mark.slow
@with_checks([name for name in VARIANTS if name not in SAME_WAY])
def test_every_variant_passes_every_check(estimator, check):
    passes(estimator, check)
