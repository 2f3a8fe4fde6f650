"""A run folder for the tests of its report, built once."""

import pytest
from run_folders import build_run


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    return build_run(tmp_path_factory.mktemp("run"))


@pytest.fixture
def run_folder(built, tmp_path):
    """Return a copy of the run folder that a test may change."""
    for name in ("result.json", "done.json"):
        (tmp_path / name).write_bytes((built / name).read_bytes())
    return tmp_path


@pytest.fixture
def undrawn(monkeypatch):
    """Leave the figures out, which take most of the time, where a test is about words."""
    markupsafe = pytest.importorskip("markupsafe", reason="jinja2 is not installed")
    figures = pytest.importorskip("counterpoise.report.figures", reason="matplotlib is not installed")
    monkeypatch.setattr(figures, "draw", lambda *_, **__: markupsafe.Markup("<svg></svg>"))
