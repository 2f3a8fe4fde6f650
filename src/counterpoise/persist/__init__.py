"""Models on disk without pickle: one file of arrays and a manifest, checked before anything is built from it.

Names load on first use: what only reads or writes files needs no numpy.

>>> import numpy as np
>>> from counterpoise.persist import dumps, loads
>>> loads(dumps({"mixture": np.array([0.25, 0.75]), "rounds": (1, 2)}))
{'mixture': array([0.25, 0.75]), 'rounds': (1, 2)}
"""

from counterpoise._base.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
