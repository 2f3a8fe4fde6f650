"""Reports: the result of a run as one self-contained HTML page."""

from counterpoise._base.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
