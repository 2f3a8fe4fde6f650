"""What a release hands out beside the code."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

import counterpoise

ROOT = Path(__file__).parents[1]


def test_every_package_of_an_installation_has_a_licence_that_does_not_bind(tmp_path):
    bill = tmp_path / "bill.json"
    command = [sys.executable, ROOT / "tools/licences.py", "--extra", "cli", "--bill", bill]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(bill.read_text(encoding="utf-8"))
    names = {part["name"] for part in told["components"]}
    assert told["metadata"]["component"]["name"] == "counterpoise"
    assert {"numpy", "scikit-learn", "highspy", "cyclopts"} <= names
    assert "pytest" not in names  # of the tests alone
    assert f"counterpoise {counterpoise.__version__}: BSD-3-Clause" in done.stdout


def test_the_citation_has_the_version_and_the_source_distribution_what_it_needs():
    (version,) = [
        line.partition(": ")[2]
        for line in (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
        if line.startswith("version:")
    ]
    assert counterpoise.__version__.split(".dev")[0] == version
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    missing = [
        name for name in settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"] if not (ROOT / name).exists()
    ]
    assert not missing


def test_what_publishes_asks_for_known_faults_before():
    steps = (ROOT / ".github" / "workflows" / "publish.yml").read_text(encoding="utf-8")
    assert steps.index("make release-check") < steps.index("make known-faults") < steps.index("gh-action-pypi-publish")
    rule = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nknown-faults:")[2].partition("\n\n")[0]
    assert "pip-audit --strict" in rule


def test_ci_has_a_version_of_everything_and_no_address_of_an_index():
    lines = (ROOT / "requirements" / "ci.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines]
    assert all(len(pin.specifier) == 1 and str(pin.specifier).startswith("==") and not pin.url for pin in pins)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [one for name, extra in project["optional-dependencies"].items() if name != "torch" for one in extra]
    for one in map(Requirement, [*project["dependencies"], *extras]):
        versions = [str(pin.specifier)[2:] for pin in pins if pin.name == one.name]
        assert (versions and all(map(one.specifier.contains, versions))) or one.name == "counterpoise", (
            f"make lock: {one}"
        )


def test_the_conda_recipe_requires_what_the_project_does():
    text = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    required = {
        line.strip(" -").replace(" ", "") for line in text.partition("  run:\n")[2].partition("\n\n")[0].splitlines()
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    expected = {one.replace(" ", "") for one in project["dependencies"]} | {f"python{project['requires-python']}"}
    assert required == expected
    assert all(f"{name} = {place}" in text for name, place in project["scripts"].items())
