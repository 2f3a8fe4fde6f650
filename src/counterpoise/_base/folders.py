"""The folder of the user's that files are kept in which can be made or fetched again."""

import os
import sys
from pathlib import Path


def user_cache_folder() -> Path:
    """Return the folder that the conventions of the system name, which need not exist."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local", "counterpoise")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "counterpoise"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "counterpoise")
