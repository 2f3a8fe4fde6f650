"""The files of the page, as they are served, mounted in a notebook and put into a static file."""

from importlib.resources import files


def asset(name: str) -> bytes:
    """Return a file of the page."""
    return files(__name__).joinpath(name).read_bytes()
