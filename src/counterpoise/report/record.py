"""What a run folder says: its numbers from the results table, its words and settings from JSON files."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from counterpoise.runs.folder import DONE, DRAWN, ENVIRONMENT, RESULTS, SETTINGS, TEXTS, read_json
from counterpoise.runs.results import MIXTURE, REALISED, SPLITS, ResultRow, of_goal, read_rows

_WORDS = (TEXTS, SETTINGS, ENVIRONMENT)
FILES = (DONE, RESULTS, *_WORDS)  # what is in a folder with the first never changes again
_DIGITS = 9  # that count of a tail fraction, however small it is: 0.1 + 0.2 is 0.3

Words: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Record:
    """The rows of a run, in their order, and its words."""

    rows: tuple[ResultRow, ...]
    texts: Words
    settings: Words
    environment: Words
    drawn: tuple[ResultRow, ...] = ()  # of the drawn decisions: other numbers with another key

    @cached_property
    def _values(self) -> dict[tuple[Any, ...], float]:
        tables = {False: self.rows, True: self.drawn}
        return {
            (drawn, *_key(row.quantity, row.method, row.split, row.settings, row.alpha)): row.value
            for drawn, rows in tables.items()
            for row in rows
        }

    def value(
        self,
        quantity: str,
        *,
        method: str = MIXTURE,
        split: str | None = None,
        settings: str = "",
        alpha: float | None = None,
        drawn: bool = False,
    ) -> float:
        """Return one number, by default on the rows that count; not a number where the table has none.

        Those of the drawn decisions are in a table of their own.
        """
        where = self.judged if split is None else split
        return self._values.get((drawn, *_key(quantity, method, where, settings, alpha)), math.nan)

    def goal(self, name: str, part: str, **where: Any) -> float:
        """Return one number of a goal, as ``value`` does: its estimate, bound, verdict or another."""
        return self.value(of_goal(part), settings=name, **where)

    def named(self, *quantities: str) -> list[ResultRow]:
        """Return the rows of some quantities, in their order."""
        places = sorted(place for quantity in set(quantities) for place in self._places.get(quantity, ()))
        return [self.rows[place] for place in places]

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for place, row in enumerate(self.rows):
            found.setdefault(row.quantity, []).append(place)
        return found

    @cached_property
    def dataset(self) -> str:
        """Return the name of the data."""
        return self.rows[0].dataset if self.rows else ""

    @cached_property
    def splits(self) -> list[str]:
        """Return the splits that were measured: train, validation, test, then extra datasets by name."""
        found = dict.fromkeys(row.split for row in self.named("rows", "error", "cvar", of_goal("estimate")))
        return [*(split for split in SPLITS if split in found), *sorted(set(found) - set(SPLITS))]

    @cached_property
    def judged(self) -> str:
        """Return the split that counts: the test rows, or where there are none the last before."""
        known = [split for split in SPLITS if split in self.splits]
        return known[-1] if known else SPLITS[-1]

    @cached_property
    def alpha(self) -> float | None:
        """Return the tail fraction that was asked for."""
        asked = self.settings.get("alpha")
        if isinstance(asked, (int, float)) and not isinstance(asked, bool):
            return float(asked)
        measured = (row.alpha for row in self.named("tail part", "frontier value") if row.alpha is not None)
        return next(measured, None)

    @cached_property
    def tail(self) -> float | None:
        """Return the tail fraction where it is a part of the rows, not all."""
        return None if self.alpha is None or self.alpha >= 1 else self.alpha

    @cached_property
    def defer_cost(self) -> float | None:
        """Return the loss of a deferred row; None where none is deferred."""
        told = self.texts.get("deferral")
        cost = told.get("cost") if isinstance(told, Mapping) else None
        return float(cost) if isinstance(cost, (int, float)) else None

    @cached_property
    def why(self) -> dict[str, str]:
        """Return why parts of the page are missing."""
        found = self.texts.get("why")
        return {str(part): str(reason) for part, reason in found.items()} if isinstance(found, Mapping) else {}

    @cached_property
    def is_mixture(self) -> bool:
        """Tell whether several models or rules decide, or one that shares rows among classes."""
        return self.shares_rows or sum(row.value > 0 for row in self.named("share")) > 1

    @cached_property
    def is_drawn(self) -> bool:
        """Tell whether decisions are drawn, so that numbers are expectations over the draws."""
        return bool(self.named(REALISED))

    @cached_property
    def shares_rows(self) -> bool:
        """Tell whether rules share a row among classes."""
        return self.texts.get("shares_rows") is True

    @cached_property
    def certificate(self) -> str:
        """Return what rules of class probabilities are proven best among; nothing where there are none."""
        return str(self.texts.get("certificate") or "")

    def entries(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the words on goals, groups, models or segments by their name in the results table."""
        return {str(entry["name"]): entry for entry in self.texts.get(kind, [])}


def read_record(folder: Path) -> Record:
    """Read the four files of a run folder that a report needs."""
    if not folder.is_dir():
        raise FileNotFoundError(f"run_folder must be the folder of a run; there is no folder {folder}.")
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise FileNotFoundError(
            f"run_folder must be the folder of a finished run, with {', '.join(FILES)}; {folder} lacks "
            f"{', '.join(missing)}. Run counterpoise fit first."
        )
    rows = read_rows(folder / RESULTS).latest().rows
    drawn = read_rows(folder / DRAWN).latest().rows if (folder / DRAWN).is_file() else ()
    texts, settings, environment = (read_json(folder / name) for name in _WORDS)
    return Record(rows, texts, settings, environment, drawn)


def _key(quantity: str, method: str, split: str, settings: str, alpha: float | None) -> tuple[Any, ...]:
    return quantity, method, split, settings, None if alpha is None else f"{alpha:.{_DIGITS}g}"
