"""Where files change: whatever writes, removes or locks a file of ours says so first, and a test can stop it there.

>>> import tempfile
>>> from pathlib import Path
>>> from counterpoise.persist import watched, write_atomically
>>> seen = []
>>> with tempfile.TemporaryDirectory() as folder, watched(lambda what, path: seen.append((what, path.name))):
...     write_atomically(Path(folder) / "greeting.txt", [b"good day"])
>>> seen
[('write', 'greeting.txt'), ('rename', 'greeting.txt')]
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TypeAlias

Watcher: TypeAlias = Callable[[str, Path], None]


def _nobody(_what: str, _path: Path) -> None:
    """Watch nothing."""


_watcher: ContextVar[Watcher] = ContextVar("counterpoise_watcher", default=_nobody)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Call ``watcher(what, path)`` before each change of a file in this thread, until the context ends.

    ``what`` is "lock", "unlock", "write" (nothing is there yet), "rename" (the content lies beside its place, on disk),
    "append" or "remove". A watcher that waits stops the work there; one that raises an ``OSError`` is a disk that
    fails; a process that is killed while it waits leaves what a kill at that moment leaves.
    """
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def step(what: str, path: Path) -> None:
    """Say that a file is about to change."""
    _watcher.get()(what, path)
