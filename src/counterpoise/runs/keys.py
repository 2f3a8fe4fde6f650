"""The key of the draws of a run: drawn by the system at the first fit, then kept in the run folder and in the model.

A fit that goes on, or is made again in the same folder, takes the key that is there, so that people keep their answers.
To let a new run draw as another one, copy the file into its folder before the fit.
"""

from pathlib import Path

from counterpoise._base.text import Secret
from counterpoise.mixtures.draws import check_key, make_key
from counterpoise.persist import write_atomically
from counterpoise.persist.files import read_file
from counterpoise.runs.errors import RunFolderError

KEY = "draws.key"  # hexadecimal digits in one line, for nobody but the owner
_MOST = 1000  # bytes that are read


def run_key(folder: Path) -> Secret:
    """Return the key in a run folder, after drawing one where there is none."""
    path = folder / KEY
    if not path.exists():
        keep_key(folder, make_key(None))
    try:
        key = check_key(bytes.fromhex(read_file(path, _MOST).decode("ascii")))
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {error.strerror or error}.") from error
    except ValueError:
        key = None
    if key is None:
        raise RunFolderError(f"{path} must hold 16 to 64 bytes as hexadecimal digits; it does not. Copy it anew.")
    return key


def keep_key(folder: Path, key: bytes) -> None:
    """Put a key into a run folder."""
    try:
        write_atomically(folder / KEY, [key.hex().encode(), b"\n"], private=True)
    except OSError as error:
        raise RunFolderError(f"{folder / KEY} cannot be written: {error.strerror or error}.") from error
