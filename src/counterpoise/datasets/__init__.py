"""Real data sets by name, synthetic ones by formula, and splits of their rows.

Each name loads its module on first use.
"""

from typing import TYPE_CHECKING

from counterpoise._lazy import lazy

if TYPE_CHECKING:
    from counterpoise.datasets.files import ChecksumMismatch, DataNotAvailable
    from counterpoise.datasets.images import ImageData
    from counterpoise.datasets.loading import dataset_names, load
    from counterpoise.datasets.splits import split_rows
    from counterpoise.datasets.synthetic import ringnorm, twonorm, waveform
    from counterpoise.datasets.table import TableData

__all__ = [
    "ChecksumMismatch",
    "DataNotAvailable",
    "ImageData",
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
    "ImageData": "images",
    "TableData": "table",
    "dataset_names": "loading",
    "load": "loading",
    "ringnorm": "synthetic",
    "split_rows": "splits",
    "twonorm": "synthetic",
    "waveform": "synthetic",
}

__getattr__, __dir__ = lazy(__name__, _HOME)
