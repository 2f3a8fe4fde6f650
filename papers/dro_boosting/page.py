"""The figures and the page of ``dro_boosting``, as functions of its results table."""

import math
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from papers.arrays import FloatArray
from papers.drawing import panels, picture
from papers.dro_boosting.coverage import DEGREES, N_SAMPLES
from papers.dro_boosting.experiment import (
    ABROAD,
    ADABOOST_ROUNDS,
    ADABOOST_ROW,
    CONFIDENCE,
    CONTROL,
    CREDIT,
    DATASETS,
    DEFAULT,
    DEGREES_OF_FREEDOM,
    DEPTH,
    DRO,
    HOME,
    N_TRAIN,
    PLAIN,
    RADII,
    RATES,
    REGIONS,
    ROUND_COUNTS,
    SHIFT,
    SHIFT_NOISES,
    SIMULATION,
    STEP,
    default_radius,
    measure,
    path_settings,
    wanted,
)
from papers.markdown import markdown_table
from papers.results import ResultRow, ResultsTable, summarize
from papers.study import Study

_COMMAND = "python -m papers dro-boosting --output docs/results/dro_boosting"


_CLEAR = 2.0  # standard errors of a difference that counts
LABEL_LOSS, SCORE_LOSS = "exponential loss of the labels said", "exponential loss"


class Published(NamedTuple):
    """A number of Table 1: train and test, AdaBoost and DRO-Boosting, each with its deviation."""

    quantity: str
    printed_as: str
    values: tuple[tuple[float, float], ...]  # AdaBoost train, DRO train, AdaBoost test, DRO test


TABLE_1 = (
    Published("accuracy", "Accuracy", ((0.948, 0.001), (0.840, 0.006), (0.788, 0.004), (0.819, 0.003))),
    Published(
        "true positive rate", "False Negative Rate", ((0.807, 0.039), (0.406, 0.032), (0.352, 0.021), (0.354, 0.023))
    ),
    Published(
        "true negative rate", "True Positive Rate", ((0.988, 0.005), (0.963, 0.006), (0.913, 0.009), (0.946, 0.006))
    ),
    Published(LABEL_LOSS, "Average Exponential Loss", ((0.497, 0.041), (0.738, 0.013), (0.860, 0.009), (0.801, 0.007))),
)
_SIZE = (4.6, 3.4)  # of a panel of a figure, in inches


def sections(rows: ResultsTable, folder: Path) -> list[str]:
    """Return the paragraphs of the page, and leave its figures in the folder."""
    found = [_HEAD]
    if len(rows.where(dataset=CREDIT)):
        _draw_path(rows).savefig(folder / "path.png", dpi=110)
        shown = picture("path.png", "Credit default, test rows: accuracy and exponential loss")
        found += [_table_1(rows), _control(rows), shown, _nearest(rows), _paths(rows)]
    if len(rows.where(dataset=SHIFT)):
        found.append(_shift(rows))
    if len(rows.where(dataset=SIMULATION)):
        _draw_coverage(rows).savefig(folder / "coverage.png", dpi=110)
        shown = picture("coverage.png", "Theorem 1: 2 n R_n of every repeat against its chi-square")
        found += [_coverage(rows), shown]
    return found


_HEAD = f"""# DRO-Boosting

Made by `{_COMMAND}`; every number is in
`results.parquet` beside this page. Means over random splits, and their standard errors after ±. *DRO-Boosting* is
`DROBoostClassifier` with a fifth of the line search's step, rounds chosen on a fifth of the training rows, the radius
calibrated on the others. Its control is the same fit with radius 0: the same steps and the same stopping, without
robustness. LightGBM with trees of the same depth is the plain model.

The rule: a gain is that of robustness only if DRO-Boosting is ahead of its control by more than two standard errors of
the difference over the same splits."""


def _table_1(rows: ResultsTable) -> str:
    n_splits = len({row.seed for row in rows.where(dataset=CREDIT)})
    rounds = _cell(rows.where(dataset=CREDIT, method=DRO, quantity="rounds"), digits=0)
    lines = [
        "## Table 1: credit default",
        "",
        f"{N_TRAIN:,} training and 27,000 test rows, {n_splits} splits, trees of depth {DEPTH}.",
        _radius_of_the_default(),
        f"AdaBoost has {ADABOOST_ROUNDS} rounds; DRO-Boosting stopped by itself after {rounds}.",
        "The paper prints two rows under wrong names; they are named rightly here. Its ± are as printed.",
        "",
    ]
    body = []
    for published in TABLE_1:
        name = published.quantity
        if published.printed_as.lower() not in (name, f"average {name}"):
            name += f' (printed as "{published.printed_as}")'
        for place, split in enumerate(("train", "test")):
            cells = _ours(with_label_losses(rows), published.quantity, split)
            theirs = [f"{mean:.3f} ± {error:.3f}" for mean, error in published.values[2 * place : 2 * place + 2]]
            body.append([name, split, cells[0], theirs[0], cells[1], theirs[1]])
    for split in ("train", "test"):
        ada, dro = _ours(rows, SCORE_LOSS, split)
        body.append(["exponential loss of the scores", split, ada, "", dro, ""])
    heads = ["", "rows", "AdaBoost", "published", "DRO-Boosting", "published"]
    return "\n".join([*lines, markdown_table(heads, body, n_words=2), "", _what_loss(), "", _CHOSEN_ELSEWHERE])


def gain(rows: ResultsTable, method: str, other: str) -> tuple[float, float]:
    """Return how far one method's accuracy is above another's over the same splits, and the standard error."""
    values = [{row.seed: row.value for row in rows.where(method=name)} for name in (method, other)]
    differences = np.array([values[0][seed] - values[1][seed] for seed in sorted(values[0].keys() & values[1].keys())])
    return float(differences.mean()), float(differences.std(ddof=1) / math.sqrt(differences.size))


def is_ahead(rows: ResultsTable, method: str, other: str) -> bool:
    """Return whether one method is ahead of another by more than two standard errors."""
    difference, error = gain(rows, method, other)
    return difference > _CLEAR * error


def _control(rows: ResultsTable) -> str:
    """Say whether the gain is that of robustness."""
    here = rows.where(dataset=CREDIT, split="test", quantity="accuracy")
    if len({row.seed for row in here.where(method=CONTROL)}) < 2:  # noqa: PLR2004 - a spread needs two
        return ""
    default = here.where(settings=DEFAULT)
    lines = [
        "### The control",
        "",
        "Test accuracy, and the difference of DRO-Boosting from each over the same splits:",
        "",
    ]
    kinds = {CONTROL: default, PLAIN: default, "AdaBoost": here.where(settings=ADABOOST_ROW)}
    body = []
    for method, own in kinds.items():
        if len(own.where(method=method)):
            pairs = ResultsTable((*default.where(method=DRO), *own.where(method=method)))
            difference, error = gain(pairs, DRO, method)
            body.append([method, _cell(own.where(method=method)), f"{difference:+.4f} ± {error:.4f}"])
    verdict = (
        "The gain over the control is more than two standard errors: reproduced."
        if is_ahead(default, DRO, CONTROL)
        else "**Not reproduced**: DRO-Boosting is not ahead of the same fit without robustness. Short steps and early "
        "stopping explain its gain over AdaBoost."
    )
    return "\n".join([*lines, markdown_table(["method", "accuracy", "DRO-Boosting less that"], body), "", verdict])


def of_table_1(rows: ResultsTable, quantity: str, split: str) -> list[ResultsTable]:
    """Return the rows of AdaBoost and of DRO-Boosting behind two cells of Table 1."""
    here = rows.where(dataset=CREDIT, quantity=quantity, split=split)
    return [here.where(method="AdaBoost", settings=ADABOOST_ROW), here.where(method=DRO, settings=DEFAULT)]


def _ours(rows: ResultsTable, quantity: str, split: str) -> list[str]:
    return [_cell(own) for own in of_table_1(rows, quantity, split)]


def label_loss(accuracy: float) -> float:
    """Return the mean of ``exp(-y s)`` for labels y and predictions s, both 1 or -1, so many of them equal.

    Examples
    --------
    >>> from papers.dro_boosting.page import label_loss
    >>> round(label_loss(0.788), 3)  # of AdaBoost on test rows; Table 1 prints 0.860
    0.866
    """
    return math.e - (math.e - 1.0 / math.e) * accuracy


def with_label_losses(rows: ResultsTable) -> ResultsTable:
    """Return the rows, and those of the labels' loss, which is a function of the accuracy."""
    found = [row._replace(quantity=LABEL_LOSS, value=label_loss(row.value)) for row in rows.where(quantity="accuracy")]
    return ResultsTable((*rows, *found))


def _what_loss() -> str:
    """Say of what the published losses are, by the published accuracies."""
    accuracies, losses = TABLE_1[0].values, TABLE_1[-1].values
    ours = ", ".join(f"{label_loss(mean):.3f}" for mean, _ in accuracies)
    printed = ", ".join(f"{mean:.3f}" for mean, _ in losses)
    spreads = ", ".join(f"{label_loss(0.0) - label_loss(spread):.3f}" for _, spread in accuracies)
    printed_spreads = ", ".join(f"{spread:.3f}" for _, spread in losses)
    return (
        'What the paper prints as "Average Exponential Loss" fits that of the labels said, `exp(-y s)` with s = 1 or '
        "-1 in place of the score,\nwhich is `e - (e - 1/e) * accuracy`: its four accuracies give "
        f"{ours}\nfor the printed {printed}, and their deviations {spreads}\nfor {printed_spreads} (that of "
        "AdaBoost's training accuracy fits neither of its two rates). The loss of the scores\nthemselves grows on "
        "test rows as AdaBoost goes on, as the paths below show."
    )


def _radius_of_the_default() -> str:
    n_kept, radius = default_radius(N_TRAIN)
    return (
        f"At confidence {CONFIDENCE:g} and {DEGREES_OF_FREEDOM} degrees of freedom Theorem 1 gives the radius "
        f"{RADII[1]:g} for {N_TRAIN:,} rows: the second of the paths below.\nDRO-Boosting in the table holds out a "
        f"fifth of the rows, so that its own radius is that for the {n_kept:,} others, {radius:.4f}."
    )


_CHOSEN_ELSEWHERE = f"""The stopping rule sees no test row, and the step of {STEP:g} was
[chosen](../what_did_not_help.md) on other data sets."""


def _nearest(rows: ResultsTable) -> str:
    """Say which rounds and radius come nearest to the published accuracy."""
    published, spread = TABLE_1[0].values[-1]
    here = rows.where(dataset=CREDIT, method=DRO, split="test", quantity="accuracy")
    lines = [f"Nearest to the published test accuracy, {published:.3f} ± {spread:.3f}:", ""]
    for rate in RATES:
        settings = [f"{path_settings(radius, rate)} rounds={count}" for radius in RADII[1:] for count in ROUND_COUNTS]
        found = [_mean(here.where(settings=text)) for text in settings]
        best = int(np.argmin(np.abs(np.array(found) - published)))
        what = "whole steps, as in the paper" if rate == 1 else f"steps of {rate:g}"
        lines.append(f"- {what}: `{settings[best]}`, accuracy {found[best]:.4f}.")
    return "\n".join(lines)


def _paths(rows: ResultsTable) -> str:
    lines = []
    here = rows.where(dataset=CREDIT, split="test")
    kinds = [("AdaBoost", "", "path")]
    kinds += [(f"DRO, {rate:g}", f"{radius:g}", path_settings(radius, rate)) for rate in RATES for radius in RADII]
    for name, radius, settings in kinds:
        method = "AdaBoost" if name == "AdaBoost" else DRO
        cells = []
        for count in ROUND_COUNTS:
            there = here.where(method=method, settings=f"{settings} rounds={count}")
            cells.append(
                f"{_mean(there.where(quantity='accuracy')):.3f} / {_mean(there.where(quantity='exponential loss')):.2f}"
            )
        lines.append([name, radius, *cells])
    table = markdown_table(["step", "radius", *map(str, ROUND_COUNTS)], lines)
    return f"Test accuracy / exponential loss after so many rounds:\n\n{table}"


def _shift(rows: ResultsTable) -> str:
    here = rows.where(dataset=SHIFT)
    methods = list(dict.fromkeys(row.method for row in here))
    regions, n_splits = (*REGIONS, ABROAD), len({row.seed for row in here})
    lines = [
        "## Shift: income by region of birth",
        "",
        f"American Community Survey 2018. The file has neither state nor year, so people born in the {HOME} stand",
        f"for the home region: 10,000 of them train, 10,000 of each region test, {n_splits} splits. Place of birth is",
        "not among the features. Test accuracy; *noise* is the share of training labels that were flipped.",
        "",
    ]
    body = []
    for noise, method in product(SHIFT_NOISES, methods):
        found = here.where(method=method, settings=f"noise={noise:g}")
        body.append([f"{noise:g}", method, *(_cell(found.where(split=region)) for region in regions)])
    table = markdown_table(["noise", "method", *regions], body, n_words=2)
    return "\n".join([*lines, table, "", _of_cells(here, regions)])


def _of_cells(here: ResultsTable, regions: tuple[str, ...]) -> str:
    """Count the cells in which DRO-Boosting is ahead of its control and of the plain model, and behind."""
    cells = [here.where(settings=f"noise={noise:g}", split=region) for noise, region in product(SHIFT_NOISES, regions)]
    said = []
    for other in (CONTROL, PLAIN):
        pairs = [cell for cell in cells if len({row.seed for row in cell.where(method=other)}) > 1]
        if pairs:
            ahead, behind = (sum(is_ahead(cell, *names) for cell in pairs) for names in ((DRO, other), (other, DRO)))
            said.append(
                f"Beside {other} DRO-Boosting is ahead by more than two standard errors in {ahead} of {len(pairs)} "
                f"cells, and behind by as much in {behind}."
            )
    return " ".join(said)


def coverage_of(rows: ResultsTable) -> tuple[Any, dict[float, float]]:
    """Return a test of the statistic's distribution, and in what part of the samples each ball holds the optimum."""
    from scipy.stats import chi2, kstest  # noqa: PLC0415 - heavy

    values = _statistics(rows)
    levels = {level: float((values <= chi2.ppf(level, DEGREES)).mean()) for level in (0.5, 0.9, 0.95)}
    return kstest(values, chi2(DEGREES).cdf), levels


def _statistics(rows: ResultsTable) -> FloatArray:
    return np.array([row.value for row in rows.where(dataset=SIMULATION)])


def _coverage(rows: ResultsTable) -> str:
    values, (test, shares) = _statistics(rows), coverage_of(rows)
    levels = ", ".join(f"{share:.3f} at {level:g}" for level, share in shares.items())
    return "\n".join(
        [
            "## Theorem 1: the coverage of the calibrated radius",
            "",
            f"{values.size} simulated samples of {N_SAMPLES} with a known optimum and {DEGREES} degrees of freedom.",
            f"Kolmogorov-Smirnov distance of 2 n R_n from the chi-square distribution {test.statistic:.4f}, p-value",
            f"{test.pvalue:.2f}; mean {values.mean():.3f} (expected {DEGREES}). Part of the samples whose ball holds",
            f"the optimum: {levels}.",
        ]
    )


def _mean(rows: Iterable[ResultRow]) -> float:
    return float(np.mean([row.value for row in rows]))


def _cell(rows: ResultsTable, digits: int = 4) -> str:
    if not len(rows):
        return ""
    found = summarize(rows, by=("quantity",))[0]
    return f"{found.mean:.{digits}f}" + (f" ± {found.standard_error:.{digits}f}" if found.count > 1 else "")


def _draw_path(rows: ResultsTable) -> Any:
    figure, axes = panels(2, size=_SIZE)
    here = rows.where(dataset=CREDIT, split="test")
    for place, quantity in zip(axes, ("accuracy", "exponential loss"), strict=True):
        ada = [
            _mean(here.where(method="AdaBoost", quantity=quantity, settings=f"path rounds={n}")) for n in ROUND_COUNTS
        ]
        place.plot(ROUND_COUNTS, ada, "--", color="black", label="AdaBoost")
        for rate, line in zip(RATES, ("-", ":"), strict=True):
            for color, radius in enumerate(RADII):
                texts = [f"{path_settings(radius, rate)} rounds={count}" for count in ROUND_COUNTS]
                means = [_mean(here.where(method=DRO, quantity=quantity, settings=text)) for text in texts]
                label = f"radius {radius:g}, step {rate:g}"
                place.plot(ROUND_COUNTS, means, line, color=f"C{color}", label=label)
        place.set(xscale="log", xlabel="rounds", ylabel=quantity)
    axes[1].set_ylim(0.7, 1.2)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize="small")
    return figure


def _draw_coverage(rows: ResultsTable) -> Any:
    from scipy.stats import chi2  # noqa: PLC0415 - heavy

    values = np.sort([row.value for row in rows.where(dataset=SIMULATION)])
    figure, axes = panels(1, size=_SIZE)
    expected = chi2.ppf((np.arange(values.size) + 0.5) / values.size, DEGREES)
    axes[0].plot(expected, expected, "--", color="black", linewidth=1)
    axes[0].plot(expected, values, ".", markersize=3)
    axes[0].set(xlabel="quantile of chi-square", ylabel="2 n R_n")
    return figure


STUDY = Study("dro-boosting", "Blanchet, Zhang, Kang and Hu", wanted, measure, sections, DATASETS, n_seeds=20)
