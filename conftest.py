"""What holds for every test: one thread a process, little garbage, doctests only where what they import is, tiers."""

import gc
import os
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path

import pytest

# Several processes test at once: threads of linear algebra under each would only wait for one another.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # tests tell nobody that they run

# What is loaded and collected stays: that the garbage collector passes over it costs a tenth of all the time.
gc.disable()

# What builds the site needs Sphinx, and what it builds are copies.
collect_ignore_glob = ["docs/conf.py", "docs/_extensions/*", "docs/gallery/*"]
if find_spec("torch") is None:
    collect_ignore_glob += ["src/counterpoise/learners/*network*.py", "docs/guide/networks.md"]
if find_spec("starlette") is None:
    collect_ignore_glob.append("src/counterpoise/explorer/server.py")
if find_spec("distributed") is None:
    collect_ignore_glob += ["src/counterpoise/distributed/*dask*.py", "docs/guide/distributed.md"]
if find_spec("anywidget") is None:
    collect_ignore_glob.append("src/counterpoise/explorer/mounted.py")
if find_spec("onnx") is None:
    collect_ignore_glob.append("src/counterpoise/persist/onnx/*.py")
if find_spec("mlflow") is None:
    collect_ignore_glob.append("src/counterpoise/persist/mlflow.py")
if find_spec("mlflow") is None or find_spec("onnxruntime") is None:
    collect_ignore_glob.append("docs/guide/fits_in.md")


def pytest_configure(config: pytest.Config) -> None:
    """Ignore cautions that small tests end with; what they say has tests of its own.

    Not in pyproject.toml: pytest would import the package, and NumPy with all its threads, before this file.
    """
    config.addinivalue_line("filterwarnings", "ignore::counterpoise.rules.cautions.Caution")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Take one worker more than there are processors with slow tests, some of which wait for processes and timeouts."""
    return (os.cpu_count() or 1) + (config.option.markexpr != "not slow")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for examples only in modules that have some: to import and search all others takes half of collecting."""
    collectors = yield
    if file_path.suffix == ".py" and b">>> " not in file_path.read_bytes():
        return [collector for collector in collectors if type(collector) is pytest.Module]
    return collectors


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Count most pages and all papers among the slow tests: each is a whole story, whose parts have tests."""
    root = Path(__file__).parent
    pages, papers = root / "docs", {root / "papers", root / "tests" / "papers"}
    for item in items:
        is_page = pages in item.path.parents and item.path.stem not in {"index", "start"}
        if is_page or papers & set(item.path.parents):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Look for garbage again, but in what the tests make."""
    gc.freeze()
    gc.enable()
