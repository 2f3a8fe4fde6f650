"""The page of ``by_hand.py``, as a function of its table."""

import sys
from pathlib import Path

import numpy as np
from by_hand_tuning import CHURN, DIFFERENCE, RECALL

sys.path.insert(0, str(Path(__file__).parent.parent))
from papers.markdown import markdown_table

RATES = ("error", "recall", "difference", "churn")
MISSED = ("recall missed", "difference missed", "churn missed", "worst miss")
HEADS = ("way", "splits", "error, %", "recall", "difference", "churn", *MISSED)
HAND, OURS = "by hand, by sex and baseline", "ours, by sex and baseline"
PAIRS = ((OURS, HAND), (f"{OURS}, fixed", HAND), (f"{OURS}, margin 0.01", f"{HAND}, margin 0.01"))
TEMPLATE, GOALS_FILE = (Path(__file__).parent / f"by_hand_{name}" for name in ("template.md", "goals.toml"))


def write_page(folder: Path, rows: list[dict[str, str]]) -> None:
    """Write the page of a table."""
    titles = dict.fromkeys(row["set"] for row in rows)
    tables = "\n\n".join(f"### {title}\n\n{_table([row for row in rows if row['set'] == title])}" for title in titles)
    n_splits = str(1 + max(int(row["split"]) for row in rows))
    pairs = [line for title in titles for line in _paired(title, rows)]
    heads = ["set", "ours", "by hand", "error, %", "recall", "difference", "churn", "worst miss"]
    parts = {
        "pairs": markdown_table(heads, pairs, n_words=3),
        "tables": tables,
        "n_splits": n_splits,
        "goals_file": GOALS_FILE.read_text(encoding="utf-8").strip(),
    }
    page = TEMPLATE.read_text(encoding="utf-8")
    for name, text in parts.items():
        page = page.replace(f"{{{name}}}", text)
    (folder / "README.md").write_text(page, encoding="utf-8")


def _table(rows: list[dict[str, str]]) -> str:
    ways: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        ways.setdefault(row["way"], []).append(row)
    return markdown_table(HEADS, [_line(way, some) for way, some in ways.items()])


def _paired(title: str, rows: list[dict[str, str]]) -> list[list[str]]:
    """Return ours less by hand, split by split."""
    lines = []
    for ours, hand in PAIRS:
        one, other = (_told([row for row in rows if (row["set"], row["way"]) == (title, way)]) for way in (ours, hand))
        gaps = [*(one - other).T, _misses(one).max(axis=0) - _misses(other).max(axis=0)]
        texts = [f"{gap.mean():+.3f} ± {_spread(gap):.3f}" for gap in gaps[1:]]
        lines.append([title, ours, hand, f"{100 * gaps[0].mean():+.2f} ± {_spread(100 * gaps[0]):.2f}", *texts])
    return lines


def _told(rows: list[dict[str, str]]) -> np.ndarray:
    """Return error and rates of the splits where there are any."""
    return np.array([[float(row[name]) for name in RATES] for row in rows if row["error"]])


def _misses(told: np.ndarray) -> np.ndarray:
    """Return by how much each goal is missed."""
    _, recall, difference, churn = told.T
    return np.array([RECALL - recall, difference - DIFFERENCE, churn - CHURN])


def _line(way: str, rows: list[dict[str, str]]) -> list[str]:
    told = _told(rows)
    if len(told) < len(rows):
        return [way, str(len(rows)), f"refused in {len(rows) - len(told)}", *[""] * (len(HEADS) - 3)]
    error, recall, difference, churn = told.T
    misses = _misses(told)
    means = [f"{100 * error.mean():.2f} ± {_spread(100 * error):.2f}"]
    means += [f"{one.mean():.3f} ± {_spread(one):.3f}" for one in (recall, difference, churn)]
    violated = [f"{100 * np.mean(one > 0):.0f} %" for one in misses]
    return [way, str(len(rows)), *means, *violated, f"{misses.max(axis=0).mean():+.3f}"]


def _spread(values: np.ndarray) -> float:
    """Return the standard error of the mean."""
    return float(values.std(ddof=1) / len(values) ** 0.5)
