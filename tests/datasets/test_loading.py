"""Real data by name: published counts, aligned groups, checksums, and errors that say where to look."""

import hashlib
import re
import shutil
import sys

import numpy as np
import pytest

import papers.datasets
from counterpoise.datasets import ChecksumMismatch, DataNotAvailable, TableData, dataset_names, load_dataset
from counterpoise.datasets.folders import cache_folder
from counterpoise.datasets.recipes import RECIPES as LIBRARY_RECIPES

RECIPES = LIBRARY_RECIPES | papers.datasets.RECIPES

# name: rows, features, categorical features, missing values
SHAPES = {
    "compas": (7_214, 8, 3, 0),
    "adult": (48_842, 14, 8, 6_465),
    "covertype": (581_012, 54, 0, 0),
    "acs-income": (665_800, 10, 5, 0),
    "credit-default": (30_000, 23, 3, 0),
    "a9a": (48_842, 123, 0, 0),
    "census-income": (299_285, 40, 32, 624_096),
    "spambase": (4_601, 57, 0, 0),
    "musk2": (6_598, 166, 0, 0),
    "wine-quality": (6_497, 11, 0, 0),
    "abalone": (4_177, 8, 1, 0),
    "mushrooms": (8_124, 22, 22, 2_480),
    "image-segment": (2_310, 19, 0, 0),
    "splice": (3_190, 60, 60, 0),
    "breast-cancer-wisconsin": (699, 9, 0, 16),
    "twonorm": (7_400, 20, 0, 0),
    "ringnorm": (7_400, 20, 0, 0),
    "w8a": (49_749, 300, 0, 0),
    "donors": (619_326, 10, 0, 0),
    "mnist": (70_000, 784, 0, 0),
}
SPLITS = {
    "adult": (32_561, 16_281),
    "a9a": (32_561, 16_281),
    "census-income": (199_523, 99_762),
    "image-segment": (210, 2_100),
    "mnist": (60_000, 10_000),
}


def counts(values):
    return dict(zip(*(part.tolist() for part in np.unique(values, return_counts=True)), strict=True))


def test_every_name_is_tested():
    assert list(SHAPES) == [*dataset_names(), *papers.datasets.RECIPES]


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_each_set_has_its_published_shape_classes_and_split(name, data_folder):
    data = papers.datasets.load_dataset(name, folder=data_folder)
    n_rows, n_features, n_categorical, n_missing = SHAPES[name]
    assert data.X.shape == (n_rows, n_features)
    assert counts(data.y) == RECIPES[name].classes
    assert data.categorical.sum() == n_categorical
    assert len(set(data.feature_names)) == n_features
    assert "y" not in data.feature_names
    values = data.X.data if hasattr(data.X, "indptr") else data.X
    assert values.dtype == (np.uint8 if name == "mnist" else np.float64)
    assert values.dtype == np.uint8 or np.isnan(values).sum() == n_missing
    assert all(column.dtype.kind == "U" and len(column) == n_rows for column in data.sensitive.values())
    assert_split_is_official(data)
    if n_categorical:
        assert_codes_are_whole_numbers_from_zero(data)


def assert_split_is_official(data):
    if data.name not in SPLITS:
        assert data.split is None
        return
    train, test = SPLITS[data.name]
    assert counts(data.split) == {"train": train, "test": test}
    assert data.part("test").X.shape == (test, data.X.shape[1])


def assert_codes_are_whole_numbers_from_zero(data):
    for column in data.X[:, data.categorical].T:
        known = np.unique(column[~np.isnan(column)])
        assert known[0] >= 0
        assert known[-1] < 255
        assert (known == known.round()).all()


def test_compas_has_the_counts_of_the_2021_paper(data_folder):
    data = load_dataset("compas", folder=data_folder)
    assert data.feature_names[-3:] == ["c_charge_degree", "sex", "race"]
    assert counts(data.y) == {0: 3_743, 1: 3_471}
    assert counts(data.X[:, -1]) == {0.0: 2_454, 1.0: 3_696, 2.0: 1_064}
    assert counts(data.sensitive["race"])["Hispanic"] == 637
    assert counts(data.sensitive["sex"]) == {"Female": 1_395, "Male": 5_819}
    np.testing.assert_array_equal(data.X[:, -2], data.sensitive["sex"] == "Male")
    np.testing.assert_array_equal(data.X[:, -1] == 1, data.sensitive["race"] == "African-American")


def test_adult_and_a9a_are_the_same_people(data_folder):
    adult, a9a = load_dataset("adult", folder=data_folder), load_dataset("a9a", folder=data_folder)
    np.testing.assert_array_equal(adult.sensitive["sex"], a9a.sensitive["sex"])
    np.testing.assert_array_equal(adult.y == 1, a9a.y == 1)
    np.testing.assert_array_equal(adult.split, a9a.split)
    sex = adult.X[:, adult.feature_names.index("sex")]
    np.testing.assert_array_equal(sex == 1, adult.sensitive["sex"] == "Male")
    assert counts(adult.part("train").sensitive["sex"])["Male"] == 21_790


def test_credit_default_names_the_sexes(data_folder):
    assert counts(load_dataset("credit-default", folder=data_folder).sensitive["sex"]) == {
        "Female": 18_112,
        "Male": 11_888,
    }


def test_the_data_folder_is_found_by_its_variable(data_folder, cache, monkeypatch):
    monkeypatch.setenv("COUNTERPOISE_DATA", str(data_folder))
    assert load_dataset("compas").X.shape == (7_214, 8)
    assert not cache.exists()


@pytest.mark.parametrize("name", SHAPES)
def test_the_files_have_the_recorded_checksums(name, data_folder):
    content = (data_folder / RECIPES[name].file).read_bytes()
    assert hashlib.sha256(content).hexdigest() == RECIPES[name].sha256


def test_a_damaged_file_is_refused(data_folder, cache, tmp_path):
    damaged = tmp_path / "compas.parquet"
    shutil.copyfile(data_folder / "compas.parquet", damaged)
    content = bytearray(damaged.read_bytes())
    content[1000] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(ChecksumMismatch, match=rf"{re.escape(str(damaged))} must have the sha256 6c80f.*delete it"):
        load_dataset("compas", folder=tmp_path)
    assert not cache.exists()


def test_parquet_without_pyarrow_names_the_extra(data_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r'compas.parquet is a Parquet file: pip install "counterpoise\[data\]"'):
        load_dataset("compas", folder=data_folder)


def test_what_cannot_be_had_says_which_file_where_and_how(cache, tmp_path):
    with pytest.raises(DataNotAvailable) as caught:
        load_dataset("acs-income", folder=tmp_path)
    text = str(caught.value)
    assert isinstance(caught.value, FileNotFoundError)
    for part in ("folktables_ACSIncome.parquet", str(tmp_path), str(cache), "set COUNTERPOISE_DATA", "aequitas"):
        assert part in text


BAD_NAMES = {"adlut": "'adult'", "Covertyp": "'covertype'", "acs_income": "'acs-income'"}


@pytest.mark.parametrize("name", BAD_NAMES)
def test_an_unknown_name_gets_the_nearest_one(name):
    with pytest.raises(ValueError, match=f"one of compas, adult.*got '{name}'. Did you mean {BAD_NAMES[name]}"):
        load_dataset(name)


def test_sets_of_the_papers_are_no_part_of_the_library():
    with pytest.raises(ValueError, match=r"one of compas, .*a9a; got 'spambase'"):
        load_dataset("spambase")
    with pytest.raises(ValueError, match=r"one of compas, .*mnist; got 'spanbase'. Did you mean 'spambase'"):
        papers.datasets.load_dataset("spanbase")


def test_the_default_cache_is_the_users(monkeypatch, tmp_path):
    monkeypatch.delenv("COUNTERPOISE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_folder() == tmp_path / "counterpoise"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder().parts[-3:] == ("Library", "Caches", "counterpoise")
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache_folder() == tmp_path / "local" / "counterpoise"


def toy(**changes):
    fields = {
        "name": "toy",
        "X": np.eye(3),
        "y": np.array([0, 1, 1]),
        "feature_names": ["a", "b", "c"],
        "categorical": np.zeros(3, dtype=bool),
        "sensitive": {"sex": np.array(["F", "M", "F"])},
        "split": None,
        "description": "",
    }
    return TableData(**fields | changes)


BAD_TABLES = {
    "y": ({"y": np.array([0])}, r"y must have 3 entries, one for each row of X; got 1"),
    "sensitive": ({"sensitive": {"sex": np.array(["F"])}}, r"sensitive\['sex'\] must have 3 entries"),
    "split": ({"split": np.array(["train"])}, r"split must have 3 entries"),
    "names": ({"feature_names": ["a"]}, r"feature_names must have 3 entries, one for each column of X; got 1"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_rows_that_do_not_align_are_refused(case):
    changes, text = BAD_TABLES[case]
    with pytest.raises(ValueError, match=text):
        toy(**changes)


def test_parts_need_an_official_split():
    with pytest.raises(ValueError, match=r"'toy' has no official split to take part 'train' of.*split_rows"):
        toy().part("train")
    with pytest.raises(ValueError, match=r"part must be one of 'test', 'train'; got 'valid'"):
        toy(split=np.array(["train", "train", "test"])).part("valid")


def test_taking_rows_takes_them_everywhere():
    taken = toy().take([2, 0])
    assert taken.X.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert taken.y.tolist() == [1, 0]
    assert taken.sensitive["sex"].tolist() == ["F", "F"]
    assert taken.split is None
