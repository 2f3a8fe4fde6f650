"""A table on disk that grows row by row, so that a stopped run goes on where it was."""

import argparse
import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def arguments(purpose: str, sets: Iterable[str], n_splits: int, output: Path) -> argparse.ArgumentParser:
    """Return the arguments of a table over sets and their splits."""
    parser = argparse.ArgumentParser(description=purpose)
    parser.add_argument("--only", nargs="*", default=list(sets), metavar="NAME", help="sets")
    parser.add_argument("--splits", type=int, default=n_splits, metavar="N", help="random splits of each set")
    parser.add_argument("--resume", action="store_true", help="keep the rows that the results hold already")
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page of what is there")
    parser.add_argument("--output", type=Path, default=output, metavar="FOLDER")
    return parser


def records_of(options: argparse.Namespace, columns: tuple[str, ...], n_keys: int) -> "Records":
    """Return the table that the arguments ask for: that of before, or an empty one."""
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "results.csv"
    if not options.resume and not options.page:
        path.unlink(missing_ok=True)
    return Records(path, columns, n_keys)


class Records:
    """The table of a file; the first ``n_keys`` columns tell rows apart, and known ones need not be measured again."""

    def __init__(self, path: Path, columns: tuple[str, ...], n_keys: int) -> None:
        self._path, self._columns, self._n_keys = path, columns, n_keys
        self.rows: list[dict[str, str]] = []
        if path.exists():
            with path.open(newline="", encoding="utf-8") as file:
                self.rows = list(csv.DictReader(file))
        self._known = {self._key(row) for row in self.rows}

    def has(self, *key: Any) -> bool:
        """Tell whether a row is there."""
        return tuple(map(as_text, key)) in self._known

    def add(self, *values: Any) -> None:
        """Append a row."""
        row = dict(zip(self._columns, map(as_text, values), strict=True))
        is_new = not self._path.exists()
        with self._path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self._columns)
            if is_new:
                writer.writeheader()
            writer.writerow(row)
        self.rows.append(row)
        self._known.add(self._key(row))
        print(*row.values(), sep="  ", flush=True)

    def _key(self, row: dict[str, str]) -> tuple[str, ...]:
        return tuple(row[name] for name in self._columns[: self._n_keys])


def as_text(value: Any) -> str:
    """Return a value as the table holds it."""
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
