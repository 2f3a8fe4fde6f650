"""Models that may not be asked: what needs none of them can be told so."""

from contextlib import contextmanager

METHODS = ("fit", "fit_codes", "predict", "predict_codes", "predict_proba", "decision_function")


def refuse(*_arguments, **_settings):
    raise AssertionError("a model was asked or fitted")


@contextmanager
def silenced(models):
    """Let models refuse to be asked or fitted inside the context."""
    for model in models:
        vars(model).update(dict.fromkeys(METHODS, refuse))
    try:
        yield
    finally:
        for model in models:
            for method in METHODS:
                del vars(model)[method]
