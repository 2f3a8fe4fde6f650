"""A run folder for the tests of its report, built once."""

import pytest
from run_folders import build_run

from counterpoise.report.record import FILES


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    return build_run(tmp_path_factory.mktemp("run"))


@pytest.fixture
def run_folder(built, tmp_path):
    """Return a copy of the run folder that a test may change."""
    for name in FILES:
        (tmp_path / name).write_bytes((built / name).read_bytes())
    return tmp_path
