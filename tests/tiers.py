"""Which of many cases `make test` tries, and which wait for `make test-all`."""

import pytest


def some_fast(cases, n_fast=1):
    """Return cases as parameters of a test: the first ones are tried by every run, the others with the slow tests."""
    return [case if place < n_fast else slow(case) for place, case in enumerate(cases)]


def slow(*case):
    """Return one case as a parameter that is tried with the slow tests."""
    return pytest.param(*case, marks=pytest.mark.slow)
