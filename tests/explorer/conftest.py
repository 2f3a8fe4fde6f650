"""A fixture of all tests of the explorer."""

import pytest


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """Let first answers take their time: a busy machine would answer with the last rule."""
    monkeypatch.setattr("counterpoise.explorer.session._FIRST_SECONDS", 600.0)
