"""Machines of other sizes than this one."""

import os

import pytest


@pytest.fixture
def processors(monkeypatch):
    """Return a function after which this process may use so many processors, as far as it can see."""
    return lambda n: monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(n)), raising=False)
