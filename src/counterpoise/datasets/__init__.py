"""Real data sets by name, synthetic ones by formula, and splits of their rows.

Each name loads its module on first use.
"""

from counterpoise._base.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
