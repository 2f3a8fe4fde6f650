"""Reports: the results table of a run, drawn and told on one self-contained HTML page."""

from counterpoise._base.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
