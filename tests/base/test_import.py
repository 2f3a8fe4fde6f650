"""The package is light to import, and says what it has."""

import inspect
import subprocess
import sys

import pytest

import counterpoise as cp

HEAVY = ("sklearn", "numba", "matplotlib", "pandas", "torch", "scipy", "highspy", "mlflow", "onnx")


def test_import_pulls_in_nothing_heavy():
    code = f"import sys, counterpoise; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_submodules_load_on_first_use():
    assert cp.metrics.cvar_loss([0, 1], 0.5) == 1.0
    assert callable(cp.solvers.minimize_cvar)
    assert {"metrics", "solvers"} <= set(dir(cp))
    assert "minimize_cvar" in dir(cp.solvers)


@pytest.mark.parametrize(
    ("module", "text"), [(cp, "it has .*metrics, .*solvers"), (cp.solvers, "it has .*minimize_cvar")]
)
def test_an_unknown_name_lists_the_known_ones(module, text):
    with pytest.raises(AttributeError, match=text):
        _ = module.minimise


@pytest.mark.slow
def test_a_package_without_its_dependencies_says_which_extra_brings_them():
    code = "import sys, counterpoise; sys.modules['pydantic'] = None; counterpoise.runs.fit_run"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'counterpoise.runs needs pydantic, which is not installed: pip install "counterpoise[cli]"' in done.stderr


def test_a_booster_without_its_dependencies_says_which_extra_brings_them(monkeypatch):
    for module in ("counterpoise.boosting.vadaboost", "counterpoise.learners.trees", "counterpoise.learners.binning"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(
        ModuleNotFoundError, match=r'needs numba, which is not installed: pip install "counterpoise\[boosting\]"'
    ):
        _ = cp.VadaBoostClassifier


def test_signatures_are_short_enough_to_read_in_help():
    parameter = inspect.signature(cp.metrics.cvar_loss).parameters["losses"]
    assert str(parameter) == "losses: counterpoise._base.types.ArrayLike"
