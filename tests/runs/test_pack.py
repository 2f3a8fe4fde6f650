"""The validation file of a run: a zip that is complete, and checkable without the package."""

import json
import subprocess
import sys
import zipfile

import pytest

from counterpoise.cli import main
from counterpoise.report import write_pack
from counterpoise.runs import fit_run

GOALS = """
goals = ["recall >= 0.8", "selection_rate(sex=F) <= 0.9"]
[data]
files = "{folder}/loans.csv"
target = "paid"
positive = "yes"
drop = ["today", "weight"]
groups = "sex"
[method]
models = [{ name = "logistic" }]
parameters = { cv = 2, by = ["sex"] }
"""
FILES = {"README.md", "report.html", "result.json", "goals.toml", "SHA256SUMS", "verify.py"}


@pytest.fixture(scope="module")
def fitted(loans_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    (folder / "goals.toml").write_text(GOALS.replace("{folder}", str(loans_folder)))
    return fit_run(folder / "goals.toml", output=folder / "run")


@pytest.fixture(scope="module")
def packed(fitted, tmp_path_factory):
    path = write_pack(fitted, tmp_path_factory.mktemp("packed") / "loans.zip")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(path.parent)
    return path.parent / "loans"


def test_a_pack_holds_the_result_the_report_and_a_model_card(packed, fitted):
    assert {path.name for path in packed.iterdir()} == FILES
    result = fitted.result()
    assert json.loads((packed / "result.json").read_text(encoding="utf-8")) == result.model_dump(mode="json")
    assert (packed / "goals.toml").read_bytes() == (fitted.folder / "goals.toml").read_bytes()
    card = (packed / "README.md").read_text(encoding="utf-8")
    for text in ("# Rules that decide", "# Errors", *(goal.text for goal in result.goals), *result.commands):
        assert text in card


def test_checksums_are_verified_without_the_package(packed):
    def verify():
        command = [sys.executable, "-I", "-S", str(packed / "verify.py")]
        return subprocess.run(command, check=False, capture_output=True, text=True, env={})

    assert verify().returncode == 0
    (packed / "result.json").write_text("{}")
    (packed / "README.md").unlink()
    shown = verify()
    assert shown.returncode == 1
    assert "changed or missing: README.md, result.json" in shown.stdout


def test_the_command_says_where_the_pack_is(fitted, tmp_path, capsys):
    assert main(["report", str(fitted.folder), "--pack", str(tmp_path / "out.zip")]) == 0
    assert capsys.readouterr().out == f"pack: {tmp_path / 'out.zip'}\n"
    assert zipfile.is_zipfile(tmp_path / "out.zip")
