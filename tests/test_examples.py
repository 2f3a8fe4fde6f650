"""The examples of the gallery run as they stand, print something and leave a figure."""

import runpy
from pathlib import Path

import matplotlib as mpl
import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))


@pytest.fixture
def pyplot(monkeypatch, tmp_path):
    """Draw into memory, and close what was drawn; without a data folder, so that every machine runs the same."""
    monkeypatch.delenv("COUNTERPOISE_DATA", raising=False)
    monkeypatch.setenv("COUNTERPOISE_CACHE", str(tmp_path))
    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415 - after the backend is named

    plt.close("all")  # what other tests left
    yield plt
    plt.close("all")


def run(example):
    """Run a script, or skip where a package that it needs is not installed."""
    try:
        runpy.run_path(str(example), run_name="__main__")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("counterpoise"):
            raise
        pytest.skip(f"{example.name} needs {error.name}, which is not installed")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")  # of plt.show, where there is a screen
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_prints_something_and_leaves_one_figure(example, pyplot, capsys):
    run(example)
    assert capsys.readouterr().out.strip()
    assert len(pyplot.get_fignums()) == 1
