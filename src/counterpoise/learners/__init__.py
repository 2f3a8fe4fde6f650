"""Base learners for boosting: weighted trees and stumps, networks, and a wrapper for learners that take no weights.

Each name loads its module on first use, because some have compiled loops.
"""

from counterpoise._base.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
