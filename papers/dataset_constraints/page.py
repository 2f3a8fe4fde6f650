"""The blocks and the figure of ``dataset-constraints``, as functions of its table."""

from typing import Any, NamedTuple

import numpy as np

from papers.arrays import FloatArray
from papers.dataset_constraints.experiment import (
    CHURN,
    DATASETS,
    DEPLOYED,
    FAIRNESS,
    LINEARS,
    NO_BIAS,
    PEER,
    RANDOMIZED,
    REDUCTION,
    REGULARIZATION,
    SHIFTED,
    THRESHOLDED,
    ZAFAR,
    measure,
    wanted,
)
from papers.dataset_constraints.theorem import least_bounds
from papers.experiments import Blocks, Experiment, panels
from papers.markdown import markdown_table
from papers.tables import ResultsTable

_MARKS = {
    THRESHOLDED: ("o", "#1f4fb4"),
    RANDOMIZED: ("s", "#c0392b"),
    ZAFAR: ("^", "#1b7837"),
    REDUCTION: ("D", "#7b4fa3"),
}
_PERCENT = 100.0
_AT = 0.001  # a rate this near to its bound is at it
_MOST = 0.9  # of the targets
MUCH, NEAR = 0.5, 0.05  # points of error that are "much"; of ratio, within which kappa is a proxy
_BASELINE = f"regularization={REGULARIZATION:g}"
_OFFICIAL = 0  # the seed of the official split


class Curve(NamedTuple):
    """Means over the repeats of a method, one entry for each setting, in the order in which it was run."""

    settings: list[str]
    values: dict[tuple[str, str], FloatArray]  # by quantity and split

    @property
    def numbers(self) -> FloatArray:
        """Return the settings as numbers: kappa, c, ratio, target."""
        return np.array([float(text.partition("=")[2] or np.nan) for text in self.settings])

    def of(self, quantity: str, split: str = "test") -> FloatArray:
        """Return the means of a quantity."""
        return self.values[quantity, split]


def curve(rows: ResultsTable, dataset: str, method: str) -> Curve | None:
    """Return the means of a method over the repeats, or None where it was not run."""
    here = rows.where(dataset=dataset, method=method)
    settings = list(dict.fromkeys(row.settings for row in here))
    values: dict[tuple[str, str], dict[str, list[float]]] = {}
    for row in here:
        values.setdefault((row.quantity, row.split), {}).setdefault(row.settings, []).append(row.value)
    if not settings:
        return None
    return Curve(
        settings,
        {key: np.array([np.mean(found.get(text, [np.nan])) for text in settings]) for key, found in values.items()},
    )


def _required(rows: ResultsTable, dataset: str, method: str) -> Curve:
    found = curve(rows, dataset, method)
    if found is None:
        raise ValueError(f"The results table has no rows of {method!r} on {dataset!r}: run the experiment again.")
    return found


def blocks(rows: ResultsTable) -> Blocks:
    """Return the blocks of what was measured."""
    found: dict[str, str] = {}
    if len(rows.where(dataset=FAIRNESS)):
        found |= {"fairness": _fairness(rows), "statements": _statements(fairness_statements(of_linear(rows, NO_BIAS)))}
        found["theorem"] = ", ".join(f"{bound:,.2f} at {name}" for name, bound in least_bounds().items())
    if len(rows.where(dataset=CHURN)):
        found["churn"] = _statements(churn_statements(rows))
    return found


def of_linear(rows: ResultsTable, learner: str) -> ResultsTable:
    """Return what was measured of one kind of linear classifier on a9a."""
    return rows.where(dataset=FAIRNESS, learner=learner)


def _fairness(rows: ResultsTable) -> str:
    """Return the error of others less ours at equal ratios: over all splits, and on the official one."""
    lines = []
    for learner in LINEARS:
        for other, name in ((ZAFAR, learner), (REDUCTION, PEER)):
            cells = []
            for chosen in (rows, rows.where(seed=_OFFICIAL)):
                ours, theirs = (
                    curve(of_linear(chosen, learner), FAIRNESS, THRESHOLDED),
                    curve(of_linear(chosen, name), FAIRNESS, other),
                )
                for split in ("test", "train"):
                    gaps = less(theirs, ours, split) if ours is not None and theirs is not None else np.empty(0)
                    cells.append(f"{gaps.min():+.2f} to {gaps.max():+.2f}" if gaps.size else "")
            lines.append([learner, other, *cells])
    heads = ["ours", "beside", "test rows", "training rows", "official split, test", "official split, training"]
    n_splits = len({row.seed for row in rows.where(dataset=FAIRNESS)})
    return f"{markdown_table(heads, lines, n_words=2)}\n\n{n_splits} splits; without a bias is the paper's."


def fairness_statements(rows: ResultsTable) -> list["Statement"]:
    """Return the statements of the text on Figure 2, for one kind of linear classifier."""
    ours, drawn, zafar = (_required(rows, FAIRNESS, method) for method in (THRESHOLDED, RANDOMIZED, ZAFAR))
    reached = [float(np.nanmax(one.of("ratio"))) for one in (ours, zafar)]
    missed = [float(np.abs(one.of("ratio") - one.numbers).max()) for one in (ours, drawn)]
    ahead = less(zafar, ours, "test")
    shown = f"{ahead.min():+.2f} to {ahead.max():+.2f} points" if ahead.size else "no ratio that both reach"
    return [
        Statement(
            "much more accurate than Zafar et al. at any fairness", shown, bool(ahead.size and ahead.min() >= MUCH)
        ),
        Statement(
            "reaches ratios that Zafar et al. cannot for any c",
            f"largest test ratio: ours {reached[0]:.2f}, Zafar et al. {reached[1]:.2f}",
            reached[0] > reached[1],
        ),
        Statement(
            "kappa is an effective proxy for the ratio",
            f"test ratio at most {missed[0]:.3f} (thresholded) and {missed[1]:.3f} (randomized) from kappa",
            max(missed) <= NEAR,
        ),
    ]


def less(other: Curve, ours: Curve, split: str) -> FloatArray:
    """Return errors less ours, in points, at the ratios of another method, by straight lines between our points."""
    order = np.argsort(ours.of("ratio", split))
    ratios, errors = ours.of("ratio", split)[order], ours.of("error", split)[order]
    theirs = other.of("ratio", split)
    common = (theirs >= ratios[0]) & (theirs <= ratios[-1])
    return np.asarray(_PERCENT * (other.of("error", split) - np.interp(theirs, ratios, errors))[common])


class Statement(NamedTuple):
    """What the paper's text says of Figure 3, in numbers here, and whether these bear it out."""

    text: str
    measured: str
    holds: bool


def churn_statements(rows: ResultsTable) -> list[Statement]:
    """Return the statements of the text on Figure 3."""
    ours, drawn, base = (_required(rows, CHURN, method) for method in (THRESHOLDED, RANDOMIZED, SHIFTED))
    place, deployed = base.settings.index(_BASELINE), _required(rows, CHURN, DEPLOYED)
    churns, errors = ours.of("churn"), ours.of("error")
    svm_churn, svm_error = base.of("churn")[place], base.of("error")[place]
    kept, kept_on_test = drawn.of("churn", "train") - drawn.numbers, drawn.of("churn") - drawn.numbers
    below = ours.of("churn", "train") - ours.numbers
    recalls = [ours.of("recall", split) - deployed.of("recall", split)[0] for split in ("train", "test")]
    return [
        Statement(
            "randomized: training churn extremely close to the target",
            f"churn less target: {_range(kept)}; within {_AT:g} of it at {_count(np.abs(kept) <= _AT)}",
            bool((np.abs(kept) <= _AT).mean() >= _MOST),
        ),
        Statement(
            "randomized: less close on test rows",
            f"churn less target: {_range(kept_on_test)}",
            bool(np.abs(kept_on_test).mean() > np.abs(kept).mean()),
        ),
        Statement(
            "thresholded: churn substantially below the target, except for the lowest",
            f"churn less target: {_range(below)} on training rows, {_range(churns - ours.numbers)} on test rows",
            bool((below < 0)[ours.numbers > ours.numbers.min()].all()),
        ),
        Statement(
            "thresholded significantly outperforms randomized",
            f"its test error less that of the draws: {_range(errors - drawn.of('error'))}; "
            f"its test churn: {_range(churns - drawn.of('churn'))}",
            bool((errors < drawn.of("error")).all()),
        ),
        Statement(
            "lower churn than the thresholded SVM at all targets",
            f"at {_count(churns < svm_churn)}; test churn {_range(churns)}, SVM {svm_churn:.3f}",
            bool((churns < svm_churn).all()),
        ),
        Statement(
            "better accuracy than the thresholded SVM at all targets",
            f"at {_count(errors < svm_error)}; test error {_range(errors)}, SVM {svm_error:.3f}",
            bool((errors < svm_error).all()),
        ),
        Statement(
            "meets the recall constraint",
            f"recall of the signs less that of the deployed model: {_range(recalls[0])} on training rows, "
            f"{_range(recalls[1])} on test rows",
            bool((recalls[0] >= -_AT).all()),
        ),
    ]


def _statements(found: list[Statement]) -> str:
    lines = [[one.text, one.measured, "yes" if one.holds else "no"] for one in found]
    return markdown_table(["the paper says of its method", "here", "borne out"], lines, n_words=3)


def _range(values: FloatArray) -> str:
    low, high = (round(float(value), 3) + 0.0 for value in (values.min(), values.max()))  # + 0.0: no minus zero
    return f"{low:.3f} to {high:.3f}"


def _count(is_so: Any) -> str:
    return f"{int(is_so.sum())} of {is_so.size} targets"


def figures(rows: ResultsTable) -> dict[str, Any]:
    """Return Figure 2 without a bias: error against ratio over all splits, and on the official one."""
    if not len(rows.where(dataset=FAIRNESS)):
        return {}
    figure, axes = panels(2, size=(4.4, 3.3))
    for axis, (title, chosen) in zip(
        axes, (("all splits", rows), ("official split", rows.where(seed=_OFFICIAL))), strict=True
    ):
        for method, (mark, color) in _MARKS.items():
            found = curve(of_linear(chosen, PEER if method == REDUCTION else NO_BIAS), FAIRNESS, method)
            if found is not None:
                axis.plot(found.of("ratio"), found.of("error"), f"{mark}-", color=color, markersize=4, label=method)
        axis.set(xlabel="test ratio, women over men", ylabel="test error", title=title)
    axes[0].legend(frameon=False, fontsize="small")
    return {"dataset_constraints.svg": figure}


EXPERIMENT = Experiment(
    "dataset-constraints", "Goh et al. 2016: Figures 2 and 3", wanted, measure, blocks, DATASETS, 100, figures
)
