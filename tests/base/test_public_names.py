"""Each public name stands for one thing, and errors are shown under the name by which they can be caught."""

from importlib import import_module
from inspect import getmodule, isclass, ismodule

import pytest

import counterpoise as cp

ROOMS = [cp, *(room for room in (getattr(cp, name) for name in cp.__all__) if ismodule(room)), cp.learners.networks]


def _public(room):
    """Yield the names of a room: those it lists, or those it defines."""
    for name in getattr(room, "__all__", None) or vars(room):
        value = getattr(room, name)
        if not name.startswith("_") and (hasattr(room, "__all__") or getmodule(value) is room):
            yield name, value


NAMES = [(name, value) for room in ROOMS for name, value in _public(room)]
ERRORS = {value for _, value in NAMES if isclass(value) and issubclass(value, Exception)}


def test_no_public_name_stands_for_two_things():
    found = {}
    twice = {name for name, value in NAMES if found.setdefault(name, value) is not value}
    assert not twice
    assert callable(cp.certify)
    assert {"recall", "CVaR", "minimize_cvar", "HistogramTree", "load_dataset", "cvar_loss"} <= set(found)


@pytest.mark.parametrize("error", sorted(ERRORS, key=lambda error: error.__name__))
def test_an_error_is_shown_under_its_public_name(error):
    room = import_module(error.__module__)
    assert room in ROOMS
    assert getattr(room, error.__name__) is error
