"""What an earlier version wrote is read, and answers as it did; what it named is there."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import counterpoise as cp
from counterpoise.runs.rule_file import read_rules

FROZEN = Path(__file__).parent / "frozen"
VERSIONS = sorted(folder.name for folder in FROZEN.iterdir())
MODELS = [pytest.param(version, path.stem) for version in VERSIONS for path in sorted((FROZEN / version).glob("*.cpz"))]
each_version = pytest.mark.parametrize("version", VERSIONS)


def kept(version, name):
    return json.loads((FROZEN / version / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("version", "name"), MODELS)
def test_a_model_of_an_earlier_version_answers_as_it_did(version, name):
    model = cp.load(FROZEN / version / f"{name}.cpz")
    told = kept(version, "answers")
    rows, answers = told["rows"], told["answers"][name]
    given = {word: {"sex": np.array(rows["sex"])} for word in answers["takes"]}
    assert_array_equal(model.predict(np.array(rows["X"]), **given), answers["predict"])
    assert_allclose(model.predict_proba(np.array(rows["X"]), **given), answers["predict_proba"], rtol=0, atol=1e-12)


@each_version
def test_rules_of_an_earlier_version_are_drawn_for_the_same_people(version):
    told = kept(version, "drawn")
    assert_array_equal(read_rules(FROZEN / version / "rules.json").drawn(told["ids"]), told["drawn"])
    assert len(set(told["drawn"])) > 1


@each_version
def test_public_names_of_an_earlier_version_are_there(version):
    """Whoever removes one after its deprecation names it here, with the version that warned."""
    for package, names in kept(version, "names").items():
        module = importlib.import_module(f"counterpoise.{package}" if package else "counterpoise")
        assert not set(names) - set(module.__all__), package
