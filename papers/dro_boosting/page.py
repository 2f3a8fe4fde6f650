"""The blocks and the figure of ``dro-boosting``, as functions of its table."""

import math
from collections.abc import Iterable
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from papers.arrays import FloatArray
from papers.dro_boosting.coverage import DEGREES
from papers.dro_boosting.experiment import (
    ABROAD,
    ADABOOST_ROW,
    CONTROL,
    CREDIT,
    DATASETS,
    DEFAULT,
    DRO,
    PLAIN,
    RADII,
    RATES,
    REGIONS,
    ROUND_COUNTS,
    SHIFT,
    SHIFT_NOISES,
    SIMULATION,
    measure,
    path_settings,
    wanted,
)
from papers.experiments import Blocks, Experiment, panels, with_error
from papers.markdown import markdown_table
from papers.printed import Printed, count
from papers.tables import ResultRow, ResultsTable

_CLEAR = 2.0  # standard errors of a difference that counts
_N_PUBLISHED = 20  # splits of the paper, which it does not say: as many as ours
_PRINTED_AS = {"true positive rate": '"False Negative Rate"', "true negative rate": '"True Positive Rate"'}
METHODS = ("AdaBoost", DRO)


class Published(NamedTuple):
    """A number of Table 1: train and test, AdaBoost and DRO-Boosting, each with its deviation over splits."""

    quantity: str
    values: tuple[tuple[float, float], ...]  # AdaBoost train, DRO train, AdaBoost test, DRO test


TABLE_1 = (
    Published("accuracy", ((0.948, 0.001), (0.840, 0.006), (0.788, 0.004), (0.819, 0.003))),
    Published("true positive rate", ((0.807, 0.039), (0.406, 0.032), (0.352, 0.021), (0.354, 0.023))),
    Published("true negative rate", ((0.988, 0.005), (0.963, 0.006), (0.913, 0.009), (0.946, 0.006))),
)


def blocks(rows: ResultsTable) -> Blocks:
    """Return the blocks of what was measured."""
    found: dict[str, str] = {}
    if len(rows.where(dataset=CREDIT)):
        found |= {"table 1": _table_1(rows), "control": _control(rows), "as printed": _as_printed(rows)}
    if len(rows.where(dataset=SHIFT)):
        found["shift"] = _shift(rows)
    if len(rows.where(dataset=SIMULATION)):
        found["coverage"] = _coverage(rows)
    return found


def figures(rows: ResultsTable) -> dict[str, Any]:
    """Return the path over rounds and radii."""
    return {"dro_boosting_path.svg": _draw_path(rows)} if len(rows.where(dataset=CREDIT)) else {}


def of_table_1(rows: ResultsTable, quantity: str, split: str) -> list[FloatArray]:
    """Return the values over splits of AdaBoost and of DRO-Boosting behind two cells of Table 1."""
    here = rows.where(dataset=CREDIT, quantity=quantity, split=split)
    both = here.where(method=METHODS[0], settings=ADABOOST_ROW), here.where(method=DRO, settings=DEFAULT)
    return [np.array([row.value for row in found]) for found in both]


def printed(rows: ResultsTable) -> list[Printed]:
    """Return the twelve numbers of Table 1 beside ours; the printed deviations are those over splits."""
    numbers = []
    for published in TABLE_1:
        for place, split in enumerate(("train", "test")):
            own = of_table_1(rows, published.quantity, split)
            theirs = published.values[2 * place : 2 * place + 2]
            for method, ours, (mean, deviation) in zip(METHODS, own, theirs, strict=True):
                error = float(ours.std(ddof=1) / math.sqrt(ours.size)) if ours.size > 1 else math.nan
                item = f"{published.quantity}, {split}, {method}"
                shown = float(ours.mean()), error, mean, deviation / math.sqrt(_N_PUBLISHED)
                numbers.append(Printed("DRO-Boosting, Table 1", item, *shown))
    return numbers


def _table_1(rows: ResultsTable) -> str:
    lines = []
    numbers = printed(rows)
    spreads = [own for published in TABLE_1 for split in ("train", "test") for own in
               of_table_1(rows, published.quantity, split)]  # fmt: skip
    deviations = [pair[1] for published in TABLE_1 for pair in published.values]
    for number, own, deviation in zip(numbers, spreads, deviations, strict=True):
        quantity, split, method = number.item.split(", ")
        name = f"{quantity} (printed as {_PRINTED_AS[quantity]})" if quantity in _PRINTED_AS else quantity
        ours = f"{number.ours:.4f}, {own.std(ddof=1):.4f}" if own.size > 1 else f"{number.ours:.4f}"
        lines.append([name, split, method, ours, f"{number.published:.3f}, {deviation:.3f}", f"{number.away:+.1f}"])
    heads = ["", "rows", "method", "ours: mean, deviation", "published", "standard errors apart"]
    read = [number._replace(published_error=deviation) for number, deviation in zip(numbers, deviations, strict=True)]
    return (
        f"{markdown_table(heads, lines, n_words=3)}\n\n{count(numbers)} numbers agree. Read as standard errors, which "
        f"their sizes speak against, {count(read)} would."
    )


def gain(rows: ResultsTable, method: str, other: str) -> FloatArray:
    """Return how far one method's accuracy is above another's, split by split."""
    both = [{row.seed: row.value for row in rows.where(method=name)} for name in (method, other)]
    return np.array([both[0][seed] - both[1][seed] for seed in sorted(both[0].keys() & both[1].keys())])


def is_ahead(differences: FloatArray) -> bool:
    """Tell whether differences are above zero by more than two standard errors."""
    return bool(differences.mean() > _CLEAR * differences.std(ddof=1) / math.sqrt(differences.size))


def _control(rows: ResultsTable) -> str:
    here = rows.where(dataset=CREDIT, split="test", quantity="accuracy")
    default = here.where(settings=DEFAULT)
    kinds = {CONTROL: default, PLAIN: default, "AdaBoost": here.where(settings=ADABOOST_ROW)}
    lines = []
    for method, found in kinds.items():
        own = found.where(method=method)
        if len(own):
            differences = gain(ResultsTable((*default.where(method=DRO), *own)), DRO, method)
            mean = with_error(np.array([row.value for row in own]), 4)
            lines.append([method, mean, with_error(differences, 4, sign="+")])
    differences = gain(default, DRO, CONTROL)
    verdict = "not decided by one split"
    if differences.size > 1:
        verdict = "reproduced" if is_ahead(differences) else "not reproduced"
    table = markdown_table(["test accuracy of", "", "DRO-Boosting less that"], lines)
    return f"{table}\n\nThe gain of robustness: **{verdict}**."


def _as_printed(rows: ResultsTable) -> str:
    """Return the algorithm as it is printed: whole steps, no stopping, the calibrated radius."""
    here = rows.where(dataset=CREDIT, method=DRO, split="test", quantity="accuracy")
    cells = [_mean(here.where(settings=f"{path_settings(RADII[1], 1.0)} rounds={n}")) for n in ROUND_COUNTS]
    return markdown_table(["rounds", *map(str, ROUND_COUNTS)], [["test accuracy", *(f"{cell:.3f}" for cell in cells)]])


def _shift(rows: ResultsTable) -> str:
    here = rows.where(dataset=SHIFT)
    regions = (*REGIONS, ABROAD)
    said = []
    for other in (CONTROL, PLAIN):
        ahead = behind = cells = 0
        for noise, region in product(SHIFT_NOISES, regions):
            differences = gain(here.where(settings=f"noise={noise:g}", split=region), DRO, other)
            if differences.size > 1:
                cells, ahead, behind = cells + 1, ahead + is_ahead(differences), behind + is_ahead(-differences)
        said.append([other, str(cells), str(ahead), str(behind)])
    return markdown_table(["beside", "cells", "DRO-Boosting ahead", "behind"], said)


def coverage_of(rows: ResultsTable) -> tuple[Any, dict[float, float]]:
    """Return a test of the statistic's distribution, and in what part of the samples each ball holds the optimum."""
    from scipy.stats import chi2, kstest  # noqa: PLC0415 - heavy

    values = np.array([row.value for row in rows.where(dataset=SIMULATION)])
    levels = {level: float((values <= chi2.ppf(level, DEGREES)).mean()) for level in (0.5, 0.9, 0.95)}
    return kstest(values, chi2(DEGREES).cdf), levels


def _coverage(rows: ResultsTable) -> str:
    test, shares = coverage_of(rows)
    levels = ", ".join(f"{share:.3f} at {level:g}" for level, share in shares.items())
    n_samples = len(rows.where(dataset=SIMULATION))
    return f"{n_samples} samples: p-value {test.pvalue:.2f}; the ball holds the optimum in {levels}."


def _mean(rows: Iterable[ResultRow]) -> float:
    return float(np.mean([row.value for row in rows]))


def _draw_path(rows: ResultsTable) -> Any:
    figure, axes = panels(2, size=(4.6, 3.4))
    here = rows.where(dataset=CREDIT, split="test")
    for place, quantity in zip(axes, ("accuracy", "exponential loss"), strict=True):
        for rate, line in zip(RATES, ("-", ":"), strict=True):
            for color, radius in enumerate(RADII):
                texts = [f"{path_settings(radius, rate)} rounds={n}" for n in ROUND_COUNTS]
                means = [_mean(here.where(method=DRO, quantity=quantity, settings=text)) for text in texts]
                label = f"radius {radius:g}, step {rate:g}" + (" (AdaBoost)" if radius == 0 and rate == 1 else "")
                place.plot(ROUND_COUNTS, means, line, color=f"C{color}", label=label)
        place.set(xscale="log", xlabel="rounds", ylabel=f"test {quantity}")
    axes[1].set_ylim(0.7, 1.2)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize="small")
    return figure


EXPERIMENT = Experiment(
    "dro-boosting", "Blanchet, Zhang, Kang and Hu: Table 1, its control, shift, Theorem 1",
    wanted, measure, blocks, DATASETS, 20, figures,
)  # fmt: skip
