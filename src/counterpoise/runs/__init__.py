"""Runs on a user's own data: from a goals file to a folder with a model and every number about it.

``read_goals_file`` checks a goals file, ``fit_run`` fits it, ``open_run`` opens the finished run. ``runs.folder``
describes a run folder, ``runs.settings`` the keys of a goals file.
"""

from counterpoise._base.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__, extra="cli")
