"""A small table as CSV and Parquet, a goals file and one fitted run; every test works on its own copy."""

import shutil

import pytest
from hurried import hurried
from loan_tables import make_folder
from sklearn.datasets import load_breast_cancer

from counterpoise.cli import main

GOALS = """
alpha = 0.2
goals = ["recall >= 0.5", "error_rate(size=large) <= 0.5"]

[data]
files = "tumours.csv"
target = "diagnosis"
groups = "size"

[method]
name = "adalpboost"
parameters.n_estimators = 5
"""


@pytest.fixture(scope="module", autouse=True)  # wider ones outlive this folder, and reach the tests of others
def _hurried():
    with hurried():
        yield


COLUMNS = ["mean radius", "mean texture", "mean smoothness", "worst area", "worst symmetry"]


def tumours():
    """Return five numbers about each tumour, its size as text, some values missing, and the diagnosis."""
    found = load_breast_cancer(as_frame=True)
    frame = found.data[COLUMNS].copy()
    frame["size"] = (frame["mean radius"] > 13).map({True: "large", False: "small"})
    frame.loc[::17, "mean texture"] = None
    frame["diagnosis"] = found.target.map({0: "malignant", 1: "benign"})
    return frame


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """Return a folder with the table, the goals file and the run; nobody writes there."""
    folder = tmp_path_factory.mktemp("fitted")
    tumours().to_csv(folder / "tumours.csv", index=False)
    tumours().to_parquet(folder / "tumours.parquet", index=False)
    (folder / "goals.toml").write_text(GOALS)
    with hurried():
        assert main(["fit", str(folder / "goals.toml"), "-o", str(folder / "run"), "--quiet"]) == 0
    return folder


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Return a folder with a table, rules and decisions; nobody writes there."""
    return make_folder(tmp_path_factory.mktemp("made"))


@pytest.fixture
def here(fitted, tmp_path, monkeypatch):
    """Return a copy of that folder, made the current one."""
    folder = tmp_path / "work"
    shutil.copytree(fitted, folder)
    monkeypatch.chdir(folder)
    return folder
