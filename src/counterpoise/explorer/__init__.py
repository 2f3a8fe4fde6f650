"""The explorer: a page where a person moves alpha and the bounds of goals, and sees what the models can do."""

from counterpoise._base.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
