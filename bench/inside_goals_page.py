"""The page of ``inside_goals_peers.py``, as a function of its table."""

import csv
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

sys.path.insert(0, str(Path(__file__).parent.parent))
from papers.markdown import markdown_table

OURS = "inside goals"
TEMPLATE = Path(__file__).with_name("inside_goals_template.md")
Rows = list[dict[str, str]]


ASKED, LEAST, MOST = "0.02", 0.01, 0.04  # the bound that both are asked for, and the others of ours


class Pair(NamedTuple):
    """Ours and the other's on the same splits, at the bound that both were asked for, and ours at all bounds."""

    ours: Rows
    other: Rows
    every: Rows  # of ours

    def both(self, column: str, digits: str) -> str:
        """Return two means."""
        return " / ".join(f"{_values(rows, column).mean():{digits}}" for rows in (self.ours, self.other))

    def ratio(self, column: str) -> float:
        """Return ours as a part of the other's."""
        return float(_values(self.ours, column).mean() / _values(self.other, column).mean())

    def equal(self) -> tuple[float, np.ndarray]:
        """Return the bound at which our mean violation is nearest to the other's, and our error of each split there."""
        bounds = np.linspace(LEAST, MOST, 301)
        violations, errors = (self._along(bounds, column) for column in ("violation", "error"))
        away = np.abs(violations.mean(axis=0) - _values(self.other, "violation").mean())
        place = np.lexsort((np.abs(bounds - float(ASKED)), np.round(away, 5)))[0]
        return float(bounds[place]), errors[:, place]

    def _along(self, bounds: np.ndarray, column: str) -> np.ndarray:
        """Return a column of each split between the bounds that were asked for."""
        found = []
        for split in (row["split"] for row in self.ours):
            here = sorted((float(row["bound"]), float(row[column])) for row in self.every if row["split"] == split)
            found.append(np.interp(bounds, *np.array(here).T))
        return np.array(found)

    def differences(self) -> np.ndarray:
        """Return our error less the other's in points, by split, at equal mean violation."""
        return 100 * (self.equal()[1] - _values(self.other, "error"))


def write_page(table: Path) -> None:
    """Write the page beside the table."""
    with table.open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    pairs = {key: _paired(rows, *key) for key in dict.fromkeys((row["set"], row["question"]) for row in rows)}
    churn = {key: pair for key, pair in pairs.items() if pair.ours[0]["churn"]}
    stated = {key: pair for key, pair in pairs.items() if key not in churn}
    head = [
        "set",
        "goal",
        "splits",
        "fits",
        "seconds",
        "violation",
        "error",
        "bound for equal violation",
        "difference there",
    ]
    values = {
        "peers": markdown_table(head, [[*key, *_compared(pair)] for key, pair in stated.items()], n_words=2),
        "churn": markdown_table(
            ["set", "splits", "fits", "seconds", "violation", "churn", "error"],
            [
                [key[0], *_told(pair), pair.both("churn", ".4f"), pair.both("error", ".4f")]
                for key, pair in churn.items()
            ],
        ),
    }
    text = TEMPLATE.read_text(encoding="utf-8").format(**values, **_totals(list(stated.values())))
    table.with_name("README.md").write_text(text, encoding="utf-8")


def _paired(rows: Rows, name: str, question: str) -> Pair:
    here = [row for row in rows if (row["set"], row["question"]) == (name, question)]
    every = [row for row in here if row["method"] == OURS]
    return Pair([row for row in every if row["bound"] == ASKED], [row for row in here if row["method"] != OURS], every)


def _told(pair: Pair) -> list[str]:
    both = [pair.both(column, digits) for column, digits in (("fits", ".1f"), ("seconds", ".2f"), ("violation", ".4f"))]
    return [str(len(pair.ours)), *both]


def _compared(pair: Pair) -> list[str]:
    low, middle, high = _interval(pair.differences())
    found = [*_told(pair), pair.both("error", ".4f"), f"{pair.equal()[0]:.4f}"]
    return [*found, f"{middle:+.2f} ({low:+.2f} to {high:+.2f})"]


def _totals(pairs: list[Pair]) -> dict[str, str]:
    """Return how all of the comparisons came out together."""
    fits, seconds = ([pair.ratio(column) for pair in pairs] for column in ("fits", "seconds"))
    intervals = np.array([_interval(pair.differences()) for pair in pairs])
    low, middle, high = _interval(intervals[:, 1])
    return {
        "n_rows": str(len(pairs)),
        "fits": f"{min(fits):.2f} to {max(fits):.2f}",
        "seconds": f"{min(seconds):.2f} to {max(seconds):.2f}",
        "n_fits": str(sum(one <= 1 / 2 for one in fits)),
        "n_seconds": str(sum(one <= 1 / 3 for one in seconds)),
        "n_above": str(int((intervals[:, 0] > 0).sum())),
        "n_below": str(int((intervals[:, 2] < 0).sum())),
        "difference": f"{middle:+.3f} ({low:+.3f} to {high:+.3f})",
    }


def _interval(values: np.ndarray) -> tuple[float, float, float]:
    """Return the mean between the ends of its 95 % interval."""
    room = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return values.mean() - room, values.mean(), values.mean() + room


def _values(rows: Rows, column: str) -> np.ndarray:
    return np.array([float(row[column]) for row in rows])
