"""Settings shared by all tests."""

import pytest
from hypothesis import HealthCheck, settings

from counterpoise._base import budget
from counterpoise.boosting import fit_data

# No deadline: the first call of a kernel may compile it. The same examples in every run: CI must not flicker.
HOW = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("counterpoise", derandomize=True, max_examples=20, **HOW)
settings.register_profile("thorough", max_examples=1000, **HOW)  # pytest --hypothesis-profile=thorough searches on
settings.load_profile("counterpoise")


@pytest.fixture
def quick_default(monkeypatch):
    """Make the strong model that boosting begins with by default one of few rounds, for tests of what it is given."""
    monkeypatch.setattr(fit_data._STRONG, "n_estimators", 10)


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Let advice take its time: what an error says would otherwise depend on how busy the machine is."""
    monkeypatch.setattr(budget, "ADVICE_SECONDS", 600.0)
