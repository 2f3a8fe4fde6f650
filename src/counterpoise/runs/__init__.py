"""Runs on a user's own data: from a goals file to a folder with a model and every number about it.

``read_goals_file`` checks what is asked for, ``fit_run`` does it, ``open_run`` finds it again. What a run folder
holds is said in ``runs.folder``; the keys of a goals file in ``runs.settings``.
"""

from counterpoise._base.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__, extra="cli")
