"""The same estimators where rows live in shards: in other processes, on other machines, or in files."""

from counterpoise._base.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__, extra="dask")
