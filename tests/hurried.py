"""Runs in a hurry, for tests of all but their figures and their models."""

from contextlib import contextmanager

import pytest
from markupsafe import escape
from matplotlib.figure import Figure

from counterpoise.boosting import fit_data


@contextmanager
def hurried():
    """Write what stands below the axes of figures in their place, and let a strong model have few rounds.

    To lay out figures takes most of a report's time, and tests/report looks at them; the model that boosting begins
    with by default takes most of a fit's, and tests/boosting and tests/papers have it whole.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", _named)
        patch.setattr(fit_data._STRONG, "n_estimators", 20)
        yield


def _named(figure, stream, **_settings):
    below = " ".join(axes.get_xlabel() for axes in figure.axes)
    stream.write(f"<svg></metadata><text>{escape(below)}</text></svg>")
