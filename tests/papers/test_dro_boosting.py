"""The reproduction of DRO-Boosting: radius, regions, measures, coverage, and Table 1 in right standard errors."""

import numpy as np
import pytest
from scipy.stats import chi2

from counterpoise import DROBoostClassifier
from counterpoise.datasets import TableData
from counterpoise.learners import HistogramTree
from papers.dro_boosting import coverage as dro_coverage
from papers.dro_boosting import experiment as dro_boosting
from papers.dro_boosting import page as dro_boosting_page
from papers.tables import ResultRow, ResultsTable

BIRTHS = (36, 17, 48, 6, 303)  # New York, Illinois, Texas, California, Mexico


def toy_data(name):
    """Return a small noisy data set with places of birth and a column of categories."""
    rng = np.random.default_rng(0)
    n_rows = 1000
    X = np.column_stack([rng.normal(size=(n_rows, 2)), rng.integers(0, 3, n_rows), rng.choice(BIRTHS, n_rows)])
    y = (X[:, 0] + 0.7 * rng.normal(size=n_rows) > 0.4).astype(int)
    return TableData(
        name=name,
        X=X,
        y=y,
        feature_names=["AGEP", "WKHP", "SEX", "POBP"],
        categorical=np.array([False, False, True, False]),
        sensitive={},
        split=None,
        description="made up",
    )


@pytest.mark.parametrize("n_train", [500, 503, 999])
def test_the_radius_that_the_page_names_is_that_of_a_default_fit(n_train):
    rng = np.random.default_rng(n_train)
    X = rng.normal(size=(n_train, 2))
    y = (X[:, 0] + rng.normal(size=n_train) > 0).astype(int)
    model = DROBoostClassifier(
        HistogramTree(max_depth=2), degrees_of_freedom=30, **dro_boosting.STOPPED | {"n_estimators": 2}
    ).fit(X, y)
    n_kept, radius = dro_boosting.default_radius(n_train)
    assert model.descents_[0].weights[0].size == n_kept
    assert model.radius_ == pytest.approx(radius)


def test_regions_of_birth():
    births = np.array([36.0, 55.0, 11.0, 56.0, 72.0, 210.0])
    expected = ["Northeast", "Midwest", "South", "West", "abroad or territories", "abroad or territories"]
    assert dro_boosting.region_of(births).tolist() == expected
    codes = [code for codes in dro_boosting.REGIONS.values() for code in codes]
    assert len(codes) == len(set(codes)) == 51  # the states and the capital


def test_the_measures_are_named_rightly():
    found = dro_boosting.measures(np.array([1.0, -1.0, 1.0, -1.0]), np.array([1.0, 1.0, -1.0, -1.0]))
    assert found["accuracy"] == found["true positive rate"] == found["true negative rate"] == 0.5
    assert found["exponential loss"] == pytest.approx((np.e + 1 / np.e) / 2)


def test_coverage_in_a_small_simulation():
    found = dro_coverage.coverage(200, n_samples=300, degrees=3)
    assert 0.83 < (found <= chi2.ppf(0.9, 3)).mean() < 0.97


def test_printed_deviations_are_divided_by_the_root_of_the_splits():
    rows = [
        ResultRow(
            "dro-boosting", "credit-default", "tree", method, seed, None, quantity, split, 0.8 + 0.01 * seed, settings
        )
        for method, settings in (("AdaBoost", dro_boosting.ADABOOST_ROW), ("DRO-Boosting", dro_boosting.DEFAULT))
        for quantity in ("accuracy", "true positive rate", "true negative rate")
        for split in ("train", "test")
        for seed in range(5)
    ]
    first, *others = dro_boosting_page.printed(ResultsTable(tuple(rows)))
    assert len(others) == 11
    assert first.published_error == pytest.approx(0.001 / np.sqrt(20))
    assert first.error == pytest.approx(np.std([0, 0.01, 0.02, 0.03, 0.04], ddof=1) / np.sqrt(5))
    assert first.away == pytest.approx((0.82 - 0.948) / np.hypot(first.error, first.published_error))
