"""Draw the figure of the first page: a strong model before and after three goals, on people it has never seen.

Run as ``python docs/figures/inside_goals.py``; it writes ``inside_goals.svg`` beside itself and prints the numbers.
"""

from pathlib import Path
from typing import Any

import counterpoise as cp

GOALS = {
    "Find 70 % of the loans\nthat will not be paid back": "recall >= 0.7",
    "Refuse good loans of women\nand men alike, within 6 points": (
        "abs(false_positive_rate(sex=F) - false_positive_rate(sex=M)) <= 0.06"
    ),
    "Change at most 20 % of\nlast year's decisions": "churn <= 0.2",
}
RANGES = [(0.6, 0.75), (0.0, 0.1), (0.16, 0.24)]
NAMES = {"plain": "as trained", "inside": "inside\nthe goals"}
PLAIN, OURS, INSIDE = "#c2571a", "#0a7d91", "#e3f1ee"


def people(n_rows: int, seed: int) -> tuple[Any, Any, dict[str, Any]]:
    """Return features, what became of the loans, and what goals may refer to."""
    table, _ = cp.datasets.loans(n_rows, random_state=seed)
    X = table.drop(columns=["sex", "last_year", "default"]).astype({"job": "category", "region": "category"})
    return X, table["default"], {"sensitive_features": table[["sex"]], "baseline": table["last_year"]}


def measured() -> dict[str, tuple[float, list[tuple[float, float, float]]]]:
    """Return the error, and of each goal the estimate with its ends, for the model as it is and inside the goals."""
    X, y, known = people(20_000, seed=0)
    new, truth, known_of_new = people(100_000, seed=1)
    plain = cp.GoalClassifier(pos_label="yes", random_state=0).fit(X, y, **known)
    inside = plain.rebalance(goals=[f"{goal} with confidence 0.95" for goal in GOALS.values()], by="baseline")
    answers = {"plain": plain.predict(new), "inside": inside.predict(new, baseline=known_of_new["baseline"])}
    found = {}
    for name, said in answers.items():
        audit = cp.audit(list(GOALS.values()), said, truth, pos_label="yes", **known_of_new)
        found[name] = (float((said != truth).mean()), [(one.estimate, one.low, one.high) for one in audit])
        print(name, found[name][0], audit, sep="\n")
    return found


def draw(found: dict[str, tuple[float, list[tuple[float, float, float]]]], file: Path) -> None:
    """Draw a line for each goal, with the side that is allowed shaded, and the price beside them."""
    import matplotlib as mpl  # noqa: PLC0415 - only this needs it
    from matplotlib.figure import Figure  # noqa: PLC0415

    mpl.rcParams.update({"svg.hashsalt": "the same file each time", "font.size": 10, "font.family": "sans-serif"})
    figure = Figure(figsize=(9.8, 3.9), layout="constrained")
    parts = figure.subplot_mosaic([["a", "p"], ["b", "p"], ["c", "p"]], width_ratios=[3.6, 1])
    for place, (sentence, text) in enumerate(GOALS.items()):
        standing = {name: one[1][place] for name, one in found.items()}
        _draw_goal(parts["abc"[place]], sentence, text, RANGES[place], standing)
    _draw_price(parts["p"], {name: 100 * one[0] for name, one in found.items()})
    figure.savefig(file, metadata={"Date": None})


def _draw_goal(axes: Any, sentence: str, text: str, limits: tuple[float, float], found: dict[str, Any]) -> None:
    from matplotlib.ticker import MultipleLocator  # noqa: PLC0415

    bound = float(text.rsplit(maxsplit=1)[-1])
    allowed = (bound, limits[1]) if ">=" in text else (limits[0], bound)
    axes.axvspan(*allowed, color=INSIDE, lw=0)
    axes.axvline(bound, color="#3a6b60", lw=1.2)
    for name, color, marker in (("plain", PLAIN, "o"), ("inside", OURS, "D")):
        estimate, low, high = found[name]
        axes.plot([low, high], [0, 0], color=color, lw=3, solid_capstyle="butt")
        axes.plot([estimate], [0], marker, color=color, ms=8)
        axes.text(estimate, 0.34, NAMES[name].replace("\n", " "), color=color, ha="center", va="bottom", fontsize=8.5)
    axes.set(xlim=limits, ylim=(-1, 1.15), yticks=[])
    axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    axes.xaxis.set_major_locator(MultipleLocator(0.02))
    axes.annotate("allowed", (allowed[0], -0.85), (4, 0), textcoords="offset points", fontsize=8, color="#3a6b60")
    axes.set_ylabel(sentence, rotation=0, ha="right", va="center", labelpad=8)
    axes.tick_params(labelsize=8.5, color="#888888")
    for side in ("top", "left", "right"):
        axes.spines[side].set_visible(False)


def _draw_price(axes: Any, errors: dict[str, float]) -> None:
    bars = axes.bar([NAMES[name] for name in errors], list(errors.values()), color=[PLAIN, OURS], width=0.55)
    axes.bar_label(bars, fmt="%.1f", padding=2)
    axes.set(ylim=(0, 1.2 * max(errors.values())), yticks=[])
    axes.set_title("What it costs:\nerrors in 100 decisions", fontsize=10)
    axes.tick_params(length=0, labelsize=9)
    for side in ("top", "left", "right"):
        axes.spines[side].set_visible(False)


if __name__ == "__main__":
    draw(measured(), Path(__file__).with_suffix(".svg"))
