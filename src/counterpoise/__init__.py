"""Classifiers that meet real-world goals.

Good for the worst-off part of the data and not only on average, and inside limits that someone set.
Submodules load on first use, so ``import counterpoise`` stays light.

>>> import counterpoise as cp
>>> round(cp.metrics.cvar_loss([0.0, 0.0, 1.0, 0.0], alpha=0.5), 3)
0.5
"""

from counterpoise._base.lazy import lazy

__version__ = "0.2.0"
__getattr__, __dir__, __all__ = lazy(__name__, __file__)
