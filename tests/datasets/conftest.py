"""Where the tests find real data, and a cache of their own."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder():
    """The folder that COUNTERPOISE_DATA names; tests that need it skip where there is none."""
    pytest.importorskip("pyarrow", reason="needs pyarrow: pip install counterpoise[data]")
    folder = os.environ.get("COUNTERPOISE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs real data: set COUNTERPOISE_DATA to a folder that holds the files")
    return Path(folder)


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """An empty cache, and no data folder from outside."""
    monkeypatch.delenv("COUNTERPOISE_DATA", raising=False)
    monkeypatch.setenv("COUNTERPOISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
