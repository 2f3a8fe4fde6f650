"""Reports: the results table of a run, drawn and told on one self-contained HTML page."""

from typing import TYPE_CHECKING

from counterpoise._lazy import lazy

if TYPE_CHECKING:
    from counterpoise.report.page import write_report

__all__ = ["write_report"]

__getattr__, __dir__ = lazy(__name__, {"write_report": "page"})
