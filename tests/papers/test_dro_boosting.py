"""The reproduction runs, can be resumed, and its page is made of its table."""

import numpy as np
import pytest
from scipy.stats import chi2

from counterpoise import DROBoostClassifier
from counterpoise.datasets import TableData
from counterpoise.learners import HistogramTree
from papers.dro_boosting import coverage as dro_coverage
from papers.dro_boosting import experiment as dro_boosting
from papers.dro_boosting import page as dro_boosting_page
from papers.results import read_rows

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


@pytest.fixture
def toy(monkeypatch):
    seen = []
    monkeypatch.setattr(dro_boosting, "_loaded", lambda name: seen.append(name) or toy_data(name))
    monkeypatch.setattr(dro_boosting, "N_TRAIN", 300)
    monkeypatch.setattr(dro_boosting, "SHIFT_ROWS", 100)
    monkeypatch.setattr(dro_boosting, "coverage", lambda: dro_coverage.coverage(20, n_samples=100))
    for module in (dro_boosting, dro_boosting_page):
        monkeypatch.setattr(module, "RADII", (0.0, 0.007, 0.1))
        monkeypatch.setattr(module, "ROUND_COUNTS", (1, 3))
        monkeypatch.setattr(module, "ADABOOST_ROW", "path rounds=3")
    return seen


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # LightGBM names them itself
def test_a_run_writes_its_table_and_page_and_goes_on_where_it_was(toy, tmp_path):
    table = dro_boosting_page.STUDY.run(tmp_path, n_seeds=1)
    first = read_rows(table).rows
    dro_boosting_page.STUDY.run(tmp_path, n_seeds=2, datasets=["credit-default"])
    both = read_rows(table).rows
    assert both[: len(first)] == first
    assert toy == ["credit-default", "acs-income", "credit-default"]
    assert {row.quantity for row in both if row.dataset == "credit-default"} >= {"accuracy", "true positive rate"}
    page = dro_boosting_page.STUDY.write(table).read_text(encoding="utf-8")
    assert 'true positive rate (printed as "False Negative Rate")' in page
    assert "Nearest to the published test accuracy, 0.819" in page
    assert "| 0.1 | AdaBoost |" in page
    assert all((tmp_path / name).stat().st_size > 5000 for name in ("path.png", "coverage.png"))


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


def test_the_page_names_the_radius_of_the_default_fit_and_that_of_the_paths():
    said = dro_boosting_page._radius_of_the_default()
    assert "radius 0.0067 for 3,000 rows" in said
    assert "for the 2,400 others, 0.0084" in said


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
