"""Draw the figure of the README: how often goals that were asked for hold on people who were not there.

Run as ``python docs/figures/new_rows.py`` from the root of the repository; it reads the table of the study of goals on
new rows (``docs/results/holding``), writes ``new_rows.svg`` beside itself and prints the numbers.
"""

import sys
from pathlib import Path
from statistics import mean
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from papers.holding import peers  # noqa: E402 - a script at the root of the repository
from papers.holding.page import PeerCell, peer_cells  # noqa: E402
from papers.results import read_rows  # noqa: E402

GOALS = {"recall floor": "a recall", "demographic parity": "parity of two groups", peers.BOTH: "both"}
MARKS = {"recall floor": "o", "demographic parity": "s", peers.BOTH: "D"}
PLAIN = "the model as it is\n(meets no goal)"
# Every goal is set beyond what the plain model has: see ``goal_sets`` in ``papers/holding/peers.py``.
NAMES = {
    "counterpoise": (peers.OURS, 1),
    "counterpoise,\nconfidence=None": (peers.OURS, 0),
    "MAPIE": (peers.MAPIE, 0),
    "OxonFair": (peers.OXONFAIR, 0),
    "scikit-learn\nTunedThreshold": ("TunedThreshold", 0),
    "error-parity": ("error-parity", 0),
    "fairlearn\nThresholdOptimizer": (peers.THRESHOLDS, 0),
}
OURS, OTHERS, PROMISE = "#0a7d91", "#c2571a", 0.9


def shares(cells: list[PeerCell]) -> dict[str, dict[str, float]]:
    """Return of each method and kind of goal the mean share of draws in which the goals hold."""
    found: dict[str, dict[str, float]] = {}
    for label, (name, way) in NAMES.items():
        for goals in GOALS:
            own = [cell.holds[way] for cell in cells if (cell.name, cell.goals) == (name, goals)]
            if own:
                found.setdefault(label, {})[goals] = mean(own)
    return found


def draw(found: dict[str, dict[str, float]], n_cells: int, file: Path) -> None:
    """Draw a line for each method, with a mark for each kind of goal."""
    import matplotlib as mpl  # noqa: PLC0415 - only this needs it
    from matplotlib.figure import Figure  # noqa: PLC0415

    mpl.rcParams.update({"svg.hashsalt": "the same file each time", "font.size": 10, "font.family": "sans-serif"})
    figure = Figure(figsize=(8.2, 3.9), layout="constrained")
    axes = figure.subplots()
    labels = [*found, PLAIN]
    axes.axvspan(PROMISE, 1.02, color="#e3f1ee", lw=0)
    axes.axvline(PROMISE, color="#3a6b60", lw=1.2)
    for place, (label, by_goals) in enumerate(found.items()):
        color = OURS if label.startswith("counterpoise") else OTHERS
        axes.plot([min(by_goals.values()), max(by_goals.values())], [place, place], color=color, lw=2, alpha=0.4)
        for goals, share in by_goals.items():
            axes.plot([share], [place], MARKS[goals], color=color, ms=8, mfc="white" if label[-4:] == "None" else color)
    for goals, mark in MARKS.items():
        axes.plot([0], [len(found)], mark, color="#777777", ms=8)
        axes.plot([], [], mark, color="#555555", ms=8, label=GOALS[goals])
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set(xlim=(-0.02, 1.02), xlabel=f"share of draws in which the goals hold on new rows ({n_cells} settings)")
    axes.xaxis.set_major_formatter(lambda share, _place: f"{share:.0%}")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(axis="x", color="#eeeeee")
    axes.set_axisbelow(True)
    axes.legend(title="goals asked for", loc="center left", frameon=False, bbox_to_anchor=(0.03, 0.42))
    axes.annotate("promised", (PROMISE, -0.55), ha="right", va="bottom", color="#3a6b60", annotation_clip=False)
    figure.savefig(file, metadata={"Date": None})


def main() -> Any:
    """Draw from the stored table."""
    table = read_rows(ROOT / "docs" / "results" / "holding" / "results.parquet")
    cells = [one for one in peer_cells(table.where(experiment=peers.EXPERIMENT)) if one.goals in GOALS]
    found = shares(cells)
    for label, by_goals in found.items():
        print(label.replace("\n", " "), {goals: round(share, 3) for goals, share in by_goals.items()})
    draw(found, sum(cell.name == peers.OURS for cell in cells), Path(__file__).with_suffix(".svg"))


if __name__ == "__main__":
    main()
