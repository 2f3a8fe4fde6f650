"""Models that wait in their file until they are asked for something.

A pool of models is read in milliseconds this way, and of seventeen models only the two that decide are ever built.
"""

from collections.abc import Callable
from typing import Any


def _itself(model: Any) -> Any:
    return model


class Waiting:
    """A model that is read from its bytes when it is first asked for anything, and stands for it from then on."""

    __slots__ = ("_model", "_read", "content")

    def __init__(self, content: bytes, read: Callable[[bytes], Any]) -> None:
        self.content, self._read = content, read
        self._model: Any = None

    def loaded(self) -> Any:
        """Return the model itself."""
        if self._model is None:
            self._model = self._read(self.content)
        return self._model

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copy, and send to others, the model itself."""
        del protocol
        return _itself, (self.loaded(),)

    def __getattr__(self, name: str) -> Any:
        if name == "__sklearn_tags__" and self._model is None:  # asked of all models wherever one decides
            raise AttributeError(name)
        return getattr(self.loaded(), name)

    def __getitem__(self, key: Any) -> Any:
        """Return a step of a pipeline."""
        return self.loaded()[key]

    def __repr__(self) -> str:
        return repr(self.loaded())
