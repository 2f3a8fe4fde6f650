"""The same estimators over Dask collections: rows are counted where they are, and rules are chosen on the counts."""

from counterpoise._base.lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__, extra="dask")
