"""Real data sets by name, synthetic ones by formula, and splits of their rows.

Each name loads its module on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from counterpoise.datasets.files import ChecksumMismatch, DataNotAvailable
    from counterpoise.datasets.loading import dataset_names, load
    from counterpoise.datasets.splits import split_rows
    from counterpoise.datasets.synthetic import ringnorm, twonorm, waveform
    from counterpoise.datasets.table import TableData

__all__ = [
    "ChecksumMismatch",
    "DataNotAvailable",
    "TableData",
    "dataset_names",
    "load",
    "ringnorm",
    "split_rows",
    "twonorm",
    "waveform",
]

_HOME = {
    "ChecksumMismatch": "files",
    "DataNotAvailable": "files",
    "TableData": "table",
    "dataset_names": "loading",
    "load": "loading",
    "ringnorm": "synthetic",
    "split_rows": "splits",
    "twonorm": "synthetic",
    "waveform": "synthetic",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)
