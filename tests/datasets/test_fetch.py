"""Fetching: verified before it is kept, fetched once, and the same table as from a data folder."""

import hashlib
import re
from email.message import Message
from io import BytesIO
from urllib.error import URLError
from urllib.request import BaseHandler, OpenerDirector, install_opener
from urllib.response import addinfourl

import numpy as np
import pytest
import sklearn.datasets
from sklearn.utils import Bunch

import papers.datasets
from counterpoise.datasets import ChecksumMismatch, DataNotAvailable, fetch
from counterpoise.datasets.columns import as_category, as_strings, read_columns
from counterpoise.datasets.fetch import ADULT_COLUMNS
from counterpoise.datasets.recipes import RECIPES as LIBRARY_RECIPES
from counterpoise.persist import write_atomically
from papers.datasets import WINE_COLUMNS, load_dataset

RECIPES = LIBRARY_RECIPES | papers.datasets.RECIPES

HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"  # sha256 of b"hello"

A9A_TEST = "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9"  # sha256 of LIBSVM's a9a.t


@pytest.fixture
def web():
    """A web of files by name, which counts what is asked of it; what it lacks cannot be reached."""
    files, asked = {}, []

    class Web(BaseHandler):
        def https_open(self, request):
            asked.append(request.full_url)
            name = request.full_url.rsplit("/", 1)[-1]
            if name not in files:
                raise URLError("no route to host")
            return addinfourl(BytesIO(files[name]), Message(), request.full_url, 200)

    opener = OpenerDirector()
    opener.add_handler(Web())
    install_opener(opener)
    yield files, asked
    install_opener(None)


def sha256_of(content):
    return hashlib.sha256(content).hexdigest()


def read_text(paths):
    return {"text": np.array([path.read_text() for path in paths])}


def test_a_file_is_fetched_once_and_kept(web, cache):
    files, asked = web
    files["greeting"] = b"hello"
    get = fetch.from_publisher({"https://example.org/greeting": HELLO}, read_text)
    for _ in range(2):
        assert get(cache)["text"].tolist() == ["hello"]
    assert asked == ["https://example.org/greeting"]
    assert [path.name for path in cache.iterdir()] == ["greeting"]


def test_a_changed_source_is_refused_and_not_kept(web, cache):
    files, _ = web
    files["greeting"] = b"hello!"
    with pytest.raises(ChecksumMismatch, match=f"https://example.org/greeting must have the sha256 {HELLO}"):
        fetch.from_publisher({"https://example.org/greeting": HELLO}, read_text)(cache)
    assert not cache.exists()


def test_a_damaged_cache_is_refused(web, cache):
    write_atomically(cache / "greeting", [b"hullo"])
    with pytest.raises(ChecksumMismatch, match=re.escape(str(cache / "greeting"))):
        fetch.from_publisher({"https://example.org/greeting": HELLO}, read_text)(cache)
    assert web[1] == []


def test_only_secure_addresses_are_opened():
    with pytest.raises(ValueError, match="url must start with https://; got 'file:"):
        fetch.download("file:///etc/hosts")


@pytest.mark.usefixtures("web")
def test_an_unreachable_source_says_so(cache):
    with pytest.raises(DataNotAvailable, match=r"needs the file adult.parquet.*URLError.*no route to host") as caught:
        load_dataset("adult")
    assert str(cache) in str(caught.value)
    assert isinstance(caught.value.__cause__, URLError)


def test_data_with_other_classes_than_published_are_refused(web, cache, monkeypatch):
    files, _ = web
    files["winequality-red.csv"] = files["winequality-white.csv"] = b"1,2,3,4,5,6,7,8,9,10,11,5\n"
    monkeypatch.setattr(fetch, "check_sha256", lambda *_: None)
    with pytest.raises(ChecksumMismatch, match=rf"'wine-quality' must have .*3 \(30 rows\).*got 5 \(2 rows\).*{cache}"):
        load_dataset("wine-quality")


# Publishers' files, written anew from the files of the data folder.


def csv_text(columns, names, rows=slice(None), *, ending="\n"):
    texts = [as_strings(columns[name])[rows] for name in names]
    return "".join(", ".join(line) + ending for line in zip(*texts, strict=True)).encode()


def adult_files(columns):
    is_train = as_strings(columns["split"]) == "train"
    income = as_category(np.where(np.asarray(columns["y"]) == 1, ">50K", "<=50K"))
    table, names = columns | {"income": income}, (*ADULT_COLUMNS, "income")
    test = b"|1x3 Cross validator\n" + csv_text(table, names, ~is_train, ending=".\n")
    return {"adult.data": csv_text(table, names, is_train) + b"\n", "adult.test": test}


def wine_files(columns):
    is_red = as_strings(columns["color"]) == "red"
    names = (*WINE_COLUMNS, "y")
    return {
        "winequality-red.csv": csv_text(columns, names, is_red),
        "winequality-white.csv": csv_text(columns, names, ~is_red),
    }


def compas_files(columns):
    header = [re.sub(r"\.1$", "", name) for name in columns]
    quoted = [[f'"{value}"' for value in as_strings(column)] for column in columns.values()]
    lines = [",".join(header), *(",".join(line) for line in zip(*quoted, strict=True))]
    return {"compas-scores-two-years.csv": "\n".join(lines).encode()}


def libsvm_text(arrays, part):
    starts, places, y = arrays[f"X{part}_indptr"], arrays[f"X{part}_indices"].astype(int) + 1, arrays[f"y{part}"]
    pairs = [" ".join(f"{at}:1" for at in places[starts[row] : starts[row + 1]]) for row in range(len(y))]
    return "".join(f"{label:+d} {line} \n" for label, line in zip(y.tolist(), pairs, strict=True)).encode()


REBUILT = {
    "adult": adult_files,
    "wine-quality": wine_files,
    "compas": compas_files,
    "a9a": lambda arrays: {"a9a": libsvm_text(arrays, "_train"), "a9a.t": libsvm_text(arrays, "_test")},
    "w8a": lambda arrays: {"w8a": libsvm_text(arrays, "")},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REBUILT)
def test_the_publishers_files_give_the_same_table(name, data_folder, web, cache, monkeypatch):
    expected = load_dataset(name, folder=data_folder)
    files = REBUILT[name](read_columns(data_folder / RECIPES[name].file))
    web[0].update(files)
    monkeypatch.setattr(fetch, "check_sha256", lambda *_: None)  # the rows are the publisher's, their text is ours
    same_table(load_dataset(name), expected)
    assert {path.name for path in cache.iterdir()} == set(files)


def same_table(got, expected):
    dense = [data.X.toarray() if hasattr(data.X, "toarray") else data.X for data in (got, expected)]
    np.testing.assert_array_equal(*dense)
    np.testing.assert_array_equal(got.y, expected.y)
    assert got.feature_names == expected.feature_names
    np.testing.assert_array_equal(got.categorical, expected.categorical)
    np.testing.assert_array_equal(got.split, expected.split)
    assert got.sensitive.keys() == expected.sensitive.keys()
    for key, column in expected.sensitive.items():
        np.testing.assert_array_equal(got.sensitive[key], column)


def test_the_test_rows_of_a9a_have_the_published_bytes(data_folder):
    """The rows in the file rebuild LIBSVM's a9a.t to the last byte."""
    content = libsvm_text(read_columns(data_folder / "a9a.npz"), "_test")
    assert sha256_of(content) == A9A_TEST


# OpenML


def small_bunch():
    """What scikit-learn returns for three rows of an id, a number and a nominal column."""
    return Bunch(
        data=np.array([[7.0, 0.5, 1.0], [8.0, np.nan, np.nan], [9.0, 1.5, 0.0]]),
        feature_names=["id", "weight%3A", "letter"],
        categories={"letter": ["b", "a"]},
        target=np.array(["p", "e", "p"], dtype=object),
    )


@pytest.fixture
def openml_calls(monkeypatch):
    calls = []

    def fetch_openml(**arguments):
        calls.append(arguments["data_id"])
        return small_bunch()

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
    return calls


def test_an_openml_table_keeps_names_and_missing_values(openml_calls, cache):
    for _ in range(2):
        table = fetch.openml(24)(cache)
    assert list(table) == ["id", "weight:", "letter", "y"]
    np.testing.assert_array_equal(table["weight:"], [0.5, np.nan, 1.5])
    assert as_strings(table["letter"]).tolist() == ["a", "?", "b"]
    assert as_strings(table["y"]).tolist() == ["p", "e", "p"]
    assert openml_calls == [24]
    assert [path.name for path in cache.iterdir()] == ["openml-24.npz"]


def test_tables_of_openml_become_the_same_data(data_folder, cache, monkeypatch):
    """With scikit-learn's answer rebuilt from the file: letters coded by a list, labels as names."""
    columns = read_columns(data_folder / "mushrooms.parquet")
    features = {name: column for name, column in columns.items() if name != "y"}
    bunch = Bunch(
        data=np.column_stack([column.codes for column in features.values()]).astype(float),
        feature_names=[name + "%3F" * (name == "bruises") for name in features],
        categories={name + "%3F" * (name == "bruises"): column.names for name, column in features.items()},
        target=np.where(np.asarray(columns["y"]) == 1, "p", "e").astype(object),
    )
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **_: bunch)
    same_table(load_dataset("mushrooms"), load_dataset("mushrooms", folder=data_folder))
    assert cache.exists()


def test_mnist_is_cut_into_its_official_parts(cache, monkeypatch):
    digits = (np.arange(70_000) % 10).astype(str)
    bunch = Bunch(data=np.full((70_000, 1), 255.0), feature_names=["pixel1"], categories={}, target=digits)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **_: bunch)
    arrays = RECIPES["mnist"].fetch(cache)
    assert arrays["X_train"].shape == (60_000, 1)
    assert arrays["X_test"].dtype == np.uint8
    assert arrays["y_test"][:3].tolist() == [0, 1, 2]


def test_covertype_comes_under_its_uci_names(cache, monkeypatch):
    bunch = Bunch(data=np.arange(108.0).reshape(2, 54), target=np.array([1, 7]))
    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", lambda **_: bunch)
    columns = fetch.covertype(cache)
    assert columns["Soil_Type40"].tolist() == [53.0, 107.0]
    assert columns["y"].tolist() == [1, 7]


# Readers and writers
