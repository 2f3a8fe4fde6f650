"""The options that every command has which reads a table: how a CSV file is written."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

_TABS = {"\\t": "\t", "tab": "\t"}  # as a shell lets them be typed


@dataclass(frozen=True, kw_only=True)
class Csv:
    """How CSV files are written."""

    delimiter: str | None = None
    """What stands between the columns of a CSV file, such as ";" or "tab". Default: as the run says, else a comma."""

    encoding: str | None = None
    """Of a CSV file, such as "latin-1". Default: as the run says, else UTF-8."""

    decimal: str | None = None
    """What stands before the decimals of a CSV file's numbers, "." or ",". Default: as the run says, else a point."""

    def told(self) -> AbstractContextManager[None]:
        """Read files so, until the context ends."""
        from counterpoise.runs.written import Written, written_as  # noqa: PLC0415 - only where a command runs

        delimiter = None if self.delimiter is None else _TABS.get(self.delimiter, self.delimiter)
        return written_as(Written(delimiter, self.encoding, self.decimal))


Read = Annotated[Csv, Parameter(name="*", negative="", show_default=False)]
USUAL = Csv()
