"""The page and the figure of ``decisions.py``, as functions of its table."""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from decisions_methods import CROSSED, FIXED, GOALS, GRADIENT, OURS, PARITY, PEERS, PLAIN, Goal
from decisions_methods import ODDS as ODDS_GOAL
from scipy.stats import t as student

sys.path.insert(0, str(Path(__file__).parent.parent))
from papers.drawing import panels
from papers.markdown import markdown_table

ERROR, VALUE, SECONDS = range(3)
BOOST, PLAIN_TREES, PLAIN_ALL = "AdaLPBoost", "HistGradientBoosting", "HistGradientBoosting, all rows"
COIN = "HistGradientBoosting and a coin"
BUDGET = "0.03"  # of our tails in the direct comparison
LEVEL = 0.05
Path2 = tuple[np.ndarray, np.ndarray]  # (n_bounds, n_seeds): values and errors along a frontier


class Results:
    """The table by who, where and what; every entry is an array of (seed, [error, value, seconds])."""

    def __init__(self, rows: list[dict[str, str]]) -> None:
        found: dict[tuple[str, ...], dict[int, list[float]]] = {}
        for row in rows:
            key = tuple(row[name] for name in ("part", "set", "method", "question", "bound"))
            found.setdefault(key, {})[int(row["seed"])] = [float(row[name]) for name in ("error", "value", "seconds")]
        self._found = found
        self.sets = {part: list(dict.fromkeys(key[1] for key in found if key[0] == part)) for part in ("tail", "goals")}
        self.n_seeds = 1 + max(seed for one in found.values() for seed in one)

    def has(self, *key: Any) -> bool:
        """Tell whether something was measured."""
        return tuple(map(_text, key)) in self._found

    def seeds(self, *keys: tuple[Any, ...]) -> list[int]:
        """Return the seeds for which all of several things were measured."""
        return sorted(set.intersection(*(set(self._found[tuple(map(_text, key))]) for key in keys)))

    def of(self, key: tuple[Any, ...], seeds: Sequence[int] | None = None) -> np.ndarray:
        """Return error, value and seconds for seeds, of shape (n_seeds, 3)."""
        one = self._found[tuple(map(_text, key))]
        return np.array([one[seed] for seed in (sorted(one) if seeds is None else seeds)])

    def bounds(self, *key: Any) -> list[str]:
        """Return the bounds that a method was asked for, in the order of the table."""
        return [one[4] for one in self._found if one[:4] == key]


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


class Compared(NamedTuple):
    """Differences, ours less the other's, by set and seed: the mean of the sets' means, and how sure it is."""

    mean: float
    error: float
    p_other_better: float
    p_ours_better: float


def compared(differences: Sequence[np.ndarray]) -> Compared:
    """Compare pairs, a set each: the standard error is that of the mean over these sets, from the seeds in each."""
    sizes = [one.size for one in differences]
    mean = float(np.mean([one.mean() for one in differences]))
    error = float(np.sqrt(sum(one.var(ddof=1) / one.size for one in differences))) / len(sizes)
    if error == 0:
        return Compared(mean, 0.0, float(mean <= 0), float(mean >= 0))
    score, freedom = mean / error, sum(sizes) - len(sizes)
    return Compared(mean, error, float(student.sf(score, freedom)), float(student.cdf(score, freedom)))


def holm(chances: Sequence[float]) -> list[float]:
    """Return p-values that hold for all comparisons together (Holm 1979)."""
    order, adjusted, most = np.argsort(chances), np.zeros(len(chances)), 0.0
    for place, at in enumerate(order):
        most = max(most, min(1.0, (len(chances) - place) * chances[at]))
        adjusted[at] = most
    return adjusted.tolist()


def at_equal(xs: np.ndarray, ys: np.ndarray, x: float) -> tuple[np.ndarray, float]:
    """Return the errors of our frontier where its mean value over the seeds is ``x``.

    Parameters
    ----------
    xs, ys : arrays of shape (n_bounds, n_seeds)
        Values and errors on test rows, from the strictest bound to the loosest.
    x : the mean value of the other

    Returns
    -------
    errors by seed, and by how much our value is above ``x``: 0 but where all of ours are; below 0 where all are below

    Between two bounds the errors are interpolated: a mixture of two of our mixtures has just that error, and at most
    that violation.
    """
    means = np.maximum.accumulate(xs.mean(axis=1))  # the loosest bound of those that are no worse
    if x <= means[0]:
        return ys[0], float(means[0] - x)
    if x >= means[-1]:
        return ys[-1], float(means[-1] - x)
    above = int(np.searchsorted(means, x, side="right"))
    share = (x - means[above - 1]) / (means[above] - means[above - 1])
    return (1 - share) * ys[above - 1] + share * ys[above], 0.0


def frontier(results: Results, title: str, method: str, goal: Goal, seeds: Sequence[int]) -> Path2:
    """Return misses and errors of our frontier, from the strictest bound to the loosest."""
    bounds = sorted(results.bounds("goals", title, method, goal.name), key=float, reverse=goal.is_floor)
    found = np.array([results.of(("goals", title, method, goal.name, bound), seeds) for bound in bounds])
    return goal.miss(found[:, :, VALUE], 0.0), found[:, :, ERROR]


def goal_differences(results: Results, peer: str, goal: Goal, bound: float) -> tuple[list[np.ndarray], list[float]]:
    """Return our errors less the peer's at the peer's violation, by set, and by how much ours is above it."""
    ours = CROSSED if peer == GRADIENT else OURS
    differences, excess = [], []
    for title in results.sets["goals"]:
        key = ("goals", title, peer, goal.name, bound)
        seeds = results.seeds(key, ("goals", title, ours, goal.name, bound))
        other = results.of(key, seeds)
        errors, above = at_equal(
            *frontier(results, title, ours, goal, seeds), float(goal.miss(other[:, VALUE].mean(), 0.0))
        )
        differences.append(errors - other[:, ERROR])
        excess.append(above)
    return differences, excess


def goal_questions(results: Results) -> Iterator[tuple[str, Goal, float]]:
    """Yield which peer was asked what, where all sets have an answer."""
    for peer in PEERS:
        for goal in GOALS.values():
            for bound in goal.asked:
                if all(results.has("goals", title, peer, goal.name, bound) for title in results.sets["goals"]):
                    yield peer, goal, bound


def equal_table(results: Results) -> tuple[str, str]:
    """Return the table of comparisons at equal violation, and a sentence about it."""
    asked = list(goal_questions(results))
    parts = [goal_differences(results, *one) for one in asked]
    found = [compared(differences) for differences, _ in parts]
    adjusted = [holm([getattr(one, side) for one in found]) for side in ("p_other_better", "p_ours_better")]
    lines = []
    for (peer, goal, bound), (differences, excess), one, other_p, our_p in zip(
        asked, parts, found, *adjusted, strict=True
    ):
        ahead = sum(two_errors(difference) for difference in differences)
        behind = sum(two_errors(-difference) for difference in differences)
        verdict = "**peer**" if other_p < LEVEL else "ours" if our_p < LEVEL else "none shown"
        spread = f"{100 * one.mean:+.2f} ± {100 * one.error:.2f}"
        chances = [f"{other_p:.3f}", f"{our_p:.3f}", verdict]
        lines.append([peer, f"{goal.name} {bound:g}", spread, *chances, str(ahead), str(behind), outside(excess)])
    heads = ["peer", "goal", "ours less peer", "p, peer better", "p, ours better", "better"]
    heads += ["sets, peer ahead", "sets, ours ahead", "stricter than ours"]
    n_peer, n_ours = (sum(line[5] == word for line in lines) for word in ("**peer**", "ours"))
    before = [sum(sign * one.mean > 2 * one.error > 0 for one in found) for sign in (1, -1)]
    told = (
        f"Of {len(lines)} comparisons a peer is better in {n_peer} and ours in {n_ours}; the others show none. "
        f"Without Holm's correction a peer is ahead by two standard errors in {before[0]}, ours in {before[1]}, and in "
        f"{sum(one.mean > 0 for one in found)} the difference is above zero: what leaning there is, is to the peers."
    )
    return markdown_table(heads, lines, n_words=2), told


def outside(excess: Sequence[float]) -> str:
    """Return on how many sets the other is stricter than all of ours, and by how much at the most."""
    above = [one for one in excess if one > 0]
    return f"{len(above)} (by {max(above):.3f})" if above else "0"


def two_errors(differences: np.ndarray) -> bool:
    """Tell whether the mean is more than two standard errors above zero."""
    error = differences.std(ddof=1) / np.sqrt(differences.size)
    return bool(differences.mean() > 2 * error and differences.mean() > 1e-12)


def asked_table(results: Results) -> str:
    """Return error, value, misses and seconds of everyone at the bounds that were asked for."""
    lines = []
    for goal in GOALS.values():
        for bound in goal.asked:
            for method in (PLAIN, OURS, CROSSED, FIXED, *PEERS):
                keys = [("goals", title, method, goal.name, bound) for title in results.sets["goals"]]
                if all(results.has(*key) for key in keys):
                    lines.append([f"{goal.name} {bound:g}", method, *asked_cells(results, keys, goal, bound)])
    heads = ["goal", "method", "error, %", "value", "mean miss", "missed by more than 0.01", "seconds"]
    return markdown_table(heads, lines, n_words=2)


def asked_cells(results: Results, keys: list[tuple[Any, ...]], goal: Goal, bound: float) -> list[str]:
    """Return means over sets and seeds."""
    found = np.concatenate([results.of(key) for key in keys])
    miss = goal.miss(found[:, VALUE], bound)
    cells = [f"{100 * found[:, ERROR].mean():.2f}", f"{found[:, VALUE].mean():.3f}", f"{miss.mean():+.3f}"]
    return [*cells, f"{int((miss > 0.01).sum())} of {miss.size}", f"{np.median(found[:, SECONDS]):.2g}"]


def tail_questions(results: Results) -> list[str]:
    """Return the alphas as the table writes them."""
    return list(dict.fromkeys(key[3] for key in results._found if key[0] == "tail"))  # noqa: SLF001 - its own


def tail_table(results: Results) -> str:
    """Return tails and errors of everyone, means over sets and seeds."""
    lines = []
    budgets = results.bounds("tail", results.sets["tail"][0], OURS, tail_questions(results)[0])
    who = [(PLAIN_TREES, ""), (PLAIN_ALL, ""), (BOOST, ""), *((OURS, budget) for budget in budgets)]
    for method, budget in who:
        name = method if method != OURS else f"{OURS}, budget {budget or 'none'}"
        cells = []
        for question in tail_questions(results):
            found = np.concatenate(
                [results.of(("tail", title, method, question, budget)) for title in results.sets["tail"]]
            )
            cells += [f"{found[:, VALUE].mean():.3f}", f"{100 * found[:, ERROR].mean():.1f}"]
        lines.append([name, *cells])
    heads = ["method", *(head for question in tail_questions(results) for head in (f"tail, {question}", "error, %"))]
    return markdown_table(heads, lines)


def tail_at_equal(results: Results, title: str, question: str, other: str) -> tuple[np.ndarray, float]:
    """Return our tails less the other's at the other's mean error on a set, by seed."""
    budgets = results.bounds("tail", title, OURS, question)
    ours = np.array([results.of(("tail", title, OURS, question, budget)) for budget in budgets])
    peer = results.of(("tail", title, other, question, ""))
    tails, above = at_equal(ours[:, :, ERROR], ours[:, :, VALUE], float(peer[:, ERROR].mean()))
    return tails - peer[:, VALUE], above


def tail_comparisons(results: Results) -> Iterator[list[str]]:
    """Yield lines of paired comparisons: at our budget, and at equal average error."""

    def direct(title: str, question: str, other: str) -> tuple[np.ndarray, float]:
        ours = results.of(("tail", title, OURS, question, BUDGET))
        return ours[:, VALUE] - results.of(("tail", title, other, question, ""))[:, VALUE], 0.0

    def coin(title: str, question: str, _other: str) -> tuple[np.ndarray, float]:
        """Compare with the plain trees where a fair coin decides so often that they err as much, seed by seed."""
        ours, plain = (
            results.of(("tail", title, *one)) for one in ((OURS, question, BUDGET), (PLAIN_TREES, question, ""))
        )
        share = np.maximum(0.0, (ours[:, ERROR] - plain[:, ERROR]) / (1 / 2 - plain[:, ERROR]))
        return ours[:, VALUE] - ((1 - share) * plain[:, VALUE] + share / 2), 0.0

    kinds: list[tuple[str, Callable[..., tuple[np.ndarray, float]], tuple[str, ...]]] = [
        (f"budget {BUDGET}", direct, (PLAIN_TREES, PLAIN_ALL, BOOST)),
        (f"budget {BUDGET}", coin, (COIN,)),
        ("at equal average error", lambda *about: tail_at_equal(results, *about), (PLAIN_ALL, BOOST)),
    ]
    for kind, difference, others in kinds:
        for other in others:
            for question in tail_questions(results):
                found = [difference(title, question, other) for title in results.sets["tail"]]
                one = compared([differences for differences, _ in found])
                behind = [
                    title
                    for title, (differences, _) in zip(results.sets["tail"], found, strict=True)
                    if two_errors(differences)
                ]
                cells = [f"{one.mean:+.4f} ± {one.error:.4f}", f"{one.p_ours_better:.1e}", f"{one.p_other_better:.1e}"]
                yield [
                    kind,
                    other,
                    question,
                    *cells,
                    ", ".join(behind) or "none",
                    outside([above for _, above in found]),
                ]


def tail_by_set(results: Results, question: str) -> str:
    """Return tails and errors by set at one alpha."""
    who = [(PLAIN_ALL, ""), (BOOST, ""), *((OURS, budget) for budget in ("0.01", "0.03", "0.1", ""))]
    lines = []
    for title in results.sets["tail"]:
        found = [results.of(("tail", title, method, question, budget)).mean(axis=0) for method, budget in who]
        lines.append([title, *(f"{one[VALUE]:.3f} at {100 * one[ERROR]:.1f} %" for one in found)])
    names = [method if method != OURS else f"ours, budget {budget or 'none'}" for method, budget in who]
    return markdown_table(["set", *names], lines)


def draw(results: Results) -> Any:
    """Draw error against violation for each set: our frontiers as lines, the peers as points."""
    sets = results.sets["goals"]
    figure, axes = panels(2 * len(sets), size=(3.2, 2.9), n_columns=len(sets))
    markers = dict(zip(PEERS, "sDv^", strict=True))
    for axis, (goal, title) in zip(
        axes, [(GOALS[name], one) for name in (PARITY, ODDS_GOAL) for one in sets], strict=True
    ):
        for method, color in ((OURS, "tab:blue"), (CROSSED, "tab:cyan")):
            seeds = results.seeds(("goals", title, method, goal.name, goal.asked[0]))
            values, errors = frontier(results, title, method, goal, seeds)
            axis.plot(values.mean(axis=1), 100 * errors.mean(axis=1), ".-", color=color, label=method, markersize=4)
        for peer, marker in markers.items():
            keys = [("goals", title, peer, goal.name, bound) for bound in goal.asked]
            points = np.array([results.of(key).mean(axis=0) for key in keys if results.has(*key)])
            if points.size:
                axis.plot(points[:, VALUE], 100 * points[:, ERROR], marker, label=peer, alpha=0.8, markersize=5)
        axis.set_title(f"{title}, {goal.name}", fontsize=9)
        axis.set_xlabel("largest difference on test rows", fontsize=8)
        axis.set_ylabel("test error, %", fontsize=8)
    axes[0].legend(fontsize=6)
    return figure


def write_page(folder: Path, rows: list[dict[str, str]]) -> None:
    """Write the figure and ``README.md`` beside the table."""
    results = Results(rows)
    draw(results).savefig(folder / "frontier.png", dpi=100)
    equal, told = equal_table(results)
    heads = [
        "ours",
        "against",
        "tail",
        "ours less other",
        "p, ours lower",
        "p, other lower",
        "sets where the other is lower",
        "stricter than ours",
    ]
    template = Path(__file__).with_name("decisions_template.md").read_text(encoding="utf-8")
    page = template.format(
        n_seeds=results.n_seeds,
        asked=asked_table(results),
        equal=equal,
        told=told,
        tails=tail_table(results),
        by_set=tail_by_set(results, "alpha 0.1"),
        comparisons=markdown_table(heads, tail_comparisons(results), n_words=3),
        budget=BUDGET,
    )
    (folder / "README.md").write_text(page, encoding="utf-8")
