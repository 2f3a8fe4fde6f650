"""Which of many cases `make test` tries, and which wait for `make test-all`."""

import os

import pytest


def some_fast(cases, n_fast=1):
    """Return cases as parameters of a test: the first ones are tried by every run, the others with the slow tests."""
    return [case if place < n_fast else slow(case) for place, case in enumerate(cases)]


def slow(*case):
    """Return one case as a parameter that is tried with the slow tests."""
    return pytest.param(*case, marks=pytest.mark.slow)


def problems(n_fast=6, n_slow=10):
    """Return numbers of random problems as parameters: a few for every run, some more with the slow tests.

    With the environment variable ``COUNTERPOISE_PROBLEMS`` there are so many in all: after a change of the code that
    solves them, hundreds are worth their minutes.
    """
    return some_fast(range(int(os.environ.get("COUNTERPOISE_PROBLEMS", n_fast + n_slow))), n_fast)
