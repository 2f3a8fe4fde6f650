"""The page of ``inside_goals``, as a function of its results table."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from papers.arrays import FloatArray
from papers.drawing import panels, picture
from papers.frontier import Compared, Frontier, compared, interval
from papers.inside_goals.experiment import (
    CHURNED,
    DATASETS,
    ERROR,
    FITS,
    KEPT,
    MOST_TEST,
    MOST_TRAIN,
    SECONDS,
    VIOLATION,
    measure,
    wanted,
)
from papers.inside_goals.methods import (
    ASKED,
    BOUNDS,
    CHURN,
    CONSTRAINED,
    INSIDE,
    LINEAR,
    MORE_BOUNDS,
    NETWORK,
    PLAIN,
    RATES,
    REDUCTION,
    TREES,
    WITH_CHURN,
)
from papers.markdown import markdown_table
from papers.results import ResultsTable
from papers.study import Study

_COMMAND = "python -m papers inside-goals --output docs/results/inside_goals"
_LEARNERS = {LINEAR: "Logistic regression", TREES: "LightGBM of 30 trees", NETWORK: "A network of two hidden layers"}
_MARKS = {INSIDE: ("o", "tab:red"), REDUCTION: ("s", "tab:blue"), CONSTRAINED: ("^", "tab:green"), PLAIN: ("x", "k")}


class Case(NamedTuple):
    """The rows of one data set, learner and question."""

    dataset: str
    question: str
    rows: ResultsTable

    def values(self, method: str, quantity: str, bound: float | None) -> FloatArray:
        """Return what was measured, by split."""
        settings = "" if bound is None else f"bound={bound:g}"
        found = self.rows.where(method=method, quantity=quantity, settings=settings)
        return np.array([row.value for row in sorted(found, key=lambda row: row.seed)])

    def bounds(self, method: str) -> list[float | None]:
        """Return the bounds for which a method has a result on every split, the strictest first; None: it has none."""
        counts = Counter(row.settings for row in self.rows.where(method=method, quantity=ERROR))
        found = [text for text, count in counts.items() if count == self.n_splits]
        return [None] if "" in found else [*sorted(float(text.removeprefix("bound=")) for text in found)]

    @property
    def n_splits(self) -> int:
        """Return the number of splits."""
        return len({row.seed for row in self.rows})

    def all_values(self, method: str, quantity: str) -> FloatArray:
        """Return what was measured, a row for each split and a column for each bound."""
        return np.column_stack([self.values(method, quantity, bound) for bound in self.bounds(method)])

    def frontier(self, method: str) -> Frontier:
        """Return the method's errors and violations on test rows."""
        return Frontier(self.all_values(method, VIOLATION), self.all_values(method, ERROR))

    def against(self, method: str) -> Compared:
        """Return ours beside another at equal violations, where both reach some."""
        return compared(self.frontier(INSIDE), self.frontier(method))

    def cost(self, method: str, quantity: str) -> float:
        """Return the mean of a cost over splits and the bounds that all were asked for."""
        return float(np.mean([self.values(method, quantity, bound) for bound in BOUNDS]))

    def methods(self) -> list[str]:
        """Return who took part."""
        return [method for method in _MARKS if self.bounds(method)]


def sections(rows: ResultsTable, folder: Path) -> list[str]:
    """Return the paragraphs of the page, and leave its figures in the folder."""
    parts = [_head(rows)]
    for learner, title in _LEARNERS.items():
        cases = list(_cases(rows.where(learner=learner)))
        stated = [case for case in cases if case.question != WITH_CHURN]
        if not stated:
            continue
        draw(stated).savefig(folder / f"{learner}.png", dpi=110)
        parts += [
            f"## {title}",
            picture(f"{learner}.png", f"{title}: test error against test violation"),
            _beside(stated),
        ]
        parts += [_linear(stated)] if learner == LINEAR else []
        parts += [_points(stated), *_churn([case for case in cases if case.question == WITH_CHURN])]
    return [*parts, _NETWORKS]


def _cases(rows: ResultsTable) -> Iterator[Case]:
    found = {(row.dataset, row.split) for row in rows}  # parts end in any order
    for dataset, question in sorted(found, key=lambda one: (one[0], list(RATES).index(one[1]))):
        yield Case(dataset, question, rows.where(dataset=dataset, split=question))


def _head(rows: ResultsTable) -> str:
    n_seeds = len({row.seed for row in rows})
    asked, more = (", ".join(f"{bound:g}" for bound in bounds) for bounds in (BOUNDS, MORE_BOUNDS))
    return f"""# Training inside goals: frontiers beside ExponentiatedGradient and ConstrainedClassifier

Made by `{_COMMAND}` (fairlearn and LightGBM are needed; the network takes part where PyTorch is installed); every
number is in `results.parquet` beside this page. {n_seeds} random splits of each set: at most half of the rows, and
{MOST_TRAIN:,}, to train on, at most {MOST_TEST:,} others to test on. Everyone has the same learner, the same rows and
one thread, in the same run; seconds are of processor time.

The rate of each group (`sex`, which is not among the features) must be within a bound of that of all rows, which is
what ExponentiatedGradient means by its bound. All are trained anew for the bounds {asked}, ours for {more} too, and
choose on the training rows. *Violation*: the largest such distance on test rows.

*At equal violation*: over the bounds, each method has a frontier of its mean violation over the splits and of the error
of each split. Bounds whose mean violations noise has in the wrong order are pooled (isotonic regression), and between
bounds both are straight lines. At five violations from the lowest to the highest that both reach, our error less the
other's is averaged for each split; the 95 % interval is of these paired differences (Student's t). Intervals are one at
a time and take splits for independent, though these share rows: one in twenty or more leaves out 0 by chance. Where no
violation is reached by both, the line says so and compares the two nearest ends, which are not equal."""


def _beside(cases: list[Case]) -> str:
    """Return ours beside ExponentiatedGradient, with what all lines come to."""
    head = ["set", "goal", "fits", "seconds", "violation, training rows", "equal test violations", "error there"]
    lines = [[case.dataset, case.question, *_costs(case), *_equal(case, REDUCTION)] for case in cases]
    table = markdown_table([*head, "difference, points"], lines, n_words=2)
    return f"""*Inside goals / ExponentiatedGradient*; fits of the learner and seconds are means over splits and the
{len(BOUNDS)} bounds that both were asked for, the violation on training rows is at the bound {ASKED:g}.

{table}

{_verdict(cases)}"""


def _costs(case: Case) -> list[str]:
    pairs = [[case.cost(method, quantity) for method in (INSIDE, REDUCTION)] for quantity in (FITS, SECONDS)]
    kept = [case.values(method, KEPT, ASKED).mean() for method in (INSIDE, REDUCTION)]
    texts = [(pairs[0], ".1f"), (pairs[1], ".2f"), (kept, ".4f")]
    return [" / ".join(f"{value:{digits}}" for value in pair) for pair, digits in texts]


def _equal(case: Case, method: str) -> list[str]:
    found = case.against(method)
    ours, other = found.at
    where = f"{ours[0]:.4f} to {ours[-1]:.4f}" if found.is_equal else f"nearest: {ours[0]:.4f} / {other[0]:.4f}"
    low, middle, high = found.difference()
    errors = f"{found.ours.mean():.4f} / {found.other.mean():.4f}"
    return [where, errors, f"{middle:+.2f} ({low:+.2f} to {high:+.2f})"]


def _verdict(cases: list[Case]) -> str:
    fits, seconds = (
        [case.cost(INSIDE, what) / case.cost(REDUCTION, what) for case in cases] for what in (FITS, SECONDS)
    )
    return (
        f"Ours takes {min(fits):.2f} to {max(fits):.2f} times the fits of ExponentiatedGradient (at most half in "
        f"{sum(one <= 1 / 2 for one in fits)} of {len(cases)} lines) and {min(seconds):.2f} to {max(seconds):.2f} "
        f"times its time (at most a third in {sum(one <= 1 / 3 for one in seconds)}). {_won(cases, REDUCTION)}"
    )


def _won(cases: list[Case], method: str) -> str:
    """Say in how many lines who has the smaller error at equal violation."""
    found = {f"{case.dataset}, {case.question}": case.against(method) for case in cases}
    equal = {name: one.difference() for name, one in found.items() if one.is_equal}
    text = f"Violations that both reach: in {len(equal)} of {len(cases)} lines."
    if not equal:
        return text
    above, below = ([name for name, ends in equal.items() if side(ends)] for side in (_is_above, _is_below))
    low, middle, high = interval(np.array([ends[1] for ends in equal.values()]))
    spread = f" ({low:+.3f} to {high:+.3f} over lines)" if len(equal) > 1 else ""
    return (
        f"{text} There our error is above that of {method} with an interval that leaves out 0 in {_named(above)}, "
        f"below it in {_named(below)}; the mean of the differences is {middle:+.3f} points"
        f"{spread}. With so few splits intervals are wide: they reach "
        f"{max(ends[2] for ends in equal.values()):+.2f} points at most."
    )


def _is_above(ends: tuple[float, float, float]) -> bool:
    return ends[0] > 0


def _is_below(ends: tuple[float, float, float]) -> bool:
    return ends[2] < 0


def _named(names: list[str]) -> str:
    return f"{len(names)} ({'; '.join(names)})" if names else "none"


def _linear(cases: list[Case]) -> str:
    lines = [
        [
            case.dataset,
            case.question,
            " / ".join(f"{case.cost(method, SECONDS):.2f}" for method in (INSIDE, CONSTRAINED)),
            *_equal(case, CONSTRAINED),
        ]
        for case in cases
    ]
    head = ["set", "goal", "seconds", "equal test violations", "error there", "difference, points"]
    return f"""*Inside goals / ConstrainedClassifier*, which is one linear classifier, by the sign of its score,
where ours is a mixture of several:

{markdown_table(head, lines, n_words=2)}

{_won(cases, CONSTRAINED)}"""


def _points(cases: list[Case]) -> str:
    """Return every point of the frontiers, with its standard error over splits."""
    asked = sorted((*BOUNDS, *MORE_BOUNDS))
    lines = []
    for case in cases:
        for method in case.methods():
            bounds = case.bounds(method)
            cells = [_point(case, method, bound) if bound in bounds else "" for bound in asked]
            if method == PLAIN:
                cells[-1] = _point(case, method, None)
            lines.append([case.dataset, case.question, method, *cells])
    head = ["set", "goal", "method", *(f"{bound:g}" for bound in asked)]
    text = "Violation / error on test rows for each bound, ± standard error over splits; plain training has no bound:"
    return f"<details><summary>All points</summary>\n\n{text}\n\n{markdown_table(head, lines, n_words=3)}\n\n</details>"


def _point(case: Case, method: str, bound: float | None) -> str:
    return " / ".join(_with_error(case.values(method, quantity, bound)) for quantity in (VIOLATION, ERROR))


def _with_error(values: FloatArray, n_digits: int = 4) -> str:
    spread = f" ± {values.std(ddof=1) / np.sqrt(values.size):.{n_digits}f}" if values.size > 1 else ""
    return f"{values.mean():.{n_digits}f}{spread}" if np.isfinite(values).all() else ""


def _churn(cases: list[Case]) -> list[str]:
    if not cases:
        return []
    lines = [
        [case.dataset, method, *(_with_error(case.values(method, name, bound), n) for name, n in _SHOWN.items())]
        for case in cases
        for method in case.methods()
        for bound in case.bounds(method)
    ]
    table = markdown_table(["set", "method", *_SHOWN], lines, n_words=2)
    text = (
        f"Parity within {ASKED:g}, and churn on unlabelled rows of at most {CHURN:g} against a deployed model that "
        "was trained on half of the training rows. ExponentiatedGradient cannot state that. Violation, churn and error "
        "are on other rows than those of the goals. Where the learner cannot meet both on the training rows, ours is "
        "the mixture that misses them least; ConstrainedClassifier is left out where it found nothing on some split:"
    )
    return [text, table]


_SHOWN = {VIOLATION: 4, CHURNED: 4, ERROR: 4, FITS: 1, SECONDS: 2}  # and digits
_NETWORKS = """Networks trained inside goals, with rows held out to choose on, beside plain training, on COMPAS and
CIFAR-10: [networks](../inside_goals_network/README.md)."""


def draw(cases: list[Case]) -> Any:
    """Draw error against violation on test rows, a panel for each set and goal, with standard errors over splits."""
    figure, axes = panels(len(cases), size=(3.6, 2.9), n_columns=3)
    for axis, case in zip(axes, cases, strict=True):
        for method in case.methods():
            found, (mark, color) = case.frontier(method), _MARKS[method]
            spread = [values.std(axis=0) / np.sqrt(len(values)) for values in found]
            x, y = (values.mean(axis=0) for values in found)
            style = {"marker": mark, "color": color, "markersize": 4, "linewidth": 1, "elinewidth": 0.5}
            axis.errorbar(x, y, xerr=spread[0], yerr=spread[1], label=method, **style)
        axis.set(title=f"{case.dataset}, {case.question}", xlabel="test violation", ylabel="test error")
    axes[0].legend(frameon=False, fontsize="small")
    return figure


STUDY = Study(
    "inside-goals",
    "frontiers of training inside goals, beside peers",
    wanted,
    measure,
    sections,
    DATASETS,
    n_seeds=4,
    n_jobs=2,
)
