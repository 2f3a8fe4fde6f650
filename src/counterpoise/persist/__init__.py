"""Models on disk without pickle: one file of arrays and a manifest, checked before anything is built from it.

>>> import numpy as np
>>> from counterpoise.persist import dumps, loads
>>> loads(dumps({"mixture": np.array([0.25, 0.75]), "rounds": (1, 2)}))
{'mixture': array([0.25, 0.75]), 'rounds': (1, 2)}
"""

from counterpoise.persist.container import UnreadableModel, UnstorableModel
from counterpoise.persist.file_access import watch_changes, write_atomically
from counterpoise.persist.models import dumps, load, loads, save

__all__ = ["UnreadableModel", "UnstorableModel", "dumps", "load", "loads", "save", "watch_changes", "write_atomically"]
