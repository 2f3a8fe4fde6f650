"""The blocks and the figure of ``boosted-cvar``, as functions of its table."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from papers.boosted_cvar.curves import METHODS, NAME
from papers.boosted_cvar.experiment import DATASETS, measure, wanted
from papers.experiments import Blocks, Experiment, panels
from papers.markdown import markdown_table
from papers.tables import ResultRow, ResultsTable

NEAR = 0.02  # of CVaR
SHOWN = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
_LEAST_ALPHA = 0.02  # below, the worst rows are too few to tell curves apart
_CLASSES = {"covertype": 7, "cifar10": 10, "cifar100": 100}  # of data sets with more than two
_STYLES = {"ERM": ("#777777", "--"), "AdaBoost + Average": ("#d95f02", ":"), "AdaLPBoost": ("#1b7837", "-")}
Means: TypeAlias = Mapping[float, float]  # by alpha


class Pattern(NamedTuple):
    """What one run shows of Figure 1."""

    dataset: str
    learner: str
    n_seeds: int
    excess: float  # AdaLPBoost above the lower of ERM and AdaBoost + Average, the largest over alphas
    distance: float | None  # of Regularized LPBoost from AdaLPBoost, the largest; None where it was not trained
    beyond: float  # AdaLPBoost below the lower of ERM and a fair coin, the most at any alpha

    @property
    def shows_figure_1(self) -> bool:
        """Tell whether AdaLPBoost almost overlaps with the lower of the two others."""
        return self.excess <= NEAR


def plain(rows: ResultsTable, quantity: str) -> list[ResultRow]:
    """Return the rows with all base models: those against the number of them say so in their settings."""
    return [row for row in rows.where(quantity=quantity) if "rounds=" not in row.settings]


def means(rows: Iterable[ResultRow]) -> dict[str, Means]:
    """Return the mean over seeds at each alpha, of each method."""
    known: dict[str, dict[float, list[float]]] = {method: {} for method in METHODS}
    for row in rows:
        known[row.method].setdefault(round(float(row.alpha or 0.0), 9), []).append(row.value)
    return {method: {alpha: float(np.mean(found)) for alpha, found in own.items()} for method, own in known.items()}


def coin(dataset: str) -> float:
    """Return the CVaR, at any alpha, of a decision that is drawn fairly among the classes and looks at nothing."""
    return 1 - 1 / _CLASSES.get(dataset, 2)


def pattern_of(rows: ResultsTable, dataset: str, learner: str) -> Pattern:
    """Return what a run shows."""
    found = plain(rows.where(dataset=dataset, learner=learner), "cvar")
    erm, average, ada, regularized = means(found).values()
    alphas = [alpha for alpha in ada if alpha >= _LEAST_ALPHA - 1e-9]
    excess = max(ada[alpha] - min(erm[alpha], average[alpha]) for alpha in alphas)
    distance = max((abs(regularized[alpha] - ada[alpha]) for alpha in regularized), default=None)
    beyond = max(min(erm[alpha], coin(dataset)) - ada[alpha] for alpha in alphas)
    return Pattern(dataset, learner, len({row.seed for row in found}), excess, distance, beyond)


def patterns(rows: ResultsTable) -> list[Pattern]:
    """Return what all runs of a table show."""
    pairs = sorted({(row.dataset, row.learner) for row in rows})
    return [pattern_of(rows, *pair) for pair in pairs]


def pattern_table(found: Iterable[Pattern]) -> str:
    """Return what runs show as a table."""
    lines = [
        [
            *(run.dataset, run.learner, str(run.n_seeds), f"{run.excess + 0.0:.3f}"),
            *("" if run.distance is None else f"{run.distance:.3f}", f"{run.beyond:+.3f}"),
        ]
        for run in found
    ]
    return markdown_table(["set", "learner", "seeds", "excess", "distance", "below ERM and coin"], lines, n_words=2)


def tail_table(rows: ResultsTable, dataset: str, learner: str) -> str:
    """Return the CVaR of all methods at some alphas."""
    by_method = means(plain(rows.where(dataset=dataset, learner=learner), "cvar"))
    lines = []
    for method, own in by_method.items():
        cells = [f"{own[alpha]:.3f}" if alpha in own else "" for alpha in SHOWN]
        lines += [[method, *cells]] if any(cells) else []
    lines.append(["a fair coin", *[f"{coin(dataset):.3f}"] * len(SHOWN)])
    return markdown_table(["method", *(f"alpha {alpha:g}" for alpha in SHOWN)], lines)


def blocks(rows: ResultsTable) -> Blocks:
    """Return the blocks of what was measured."""
    return {"pattern": pattern_table(patterns(rows))}


def draw(rows: ResultsTable) -> Any:
    """Return the curves of CVaR and of the average loss."""
    pairs = sorted({(row.dataset, row.learner) for row in rows})
    figure, axes = panels(2 * len(pairs), size=(2.7, 2.4), n_columns=len(pairs))
    for row, (quantity, words) in enumerate((("cvar", "CVaR"), ("error", "average loss"))):
        for place, pair in enumerate(pairs):
            axis = axes[row * len(pairs) + place]
            for method, own in means(plain(rows.where(dataset=pair[0], learner=pair[1]), quantity)).items():
                color, line = _STYLES.get(method, ("#5e3c99", "o"))
                axis.plot(list(own), list(own.values()), line, color=color, label=method, markersize=4)
            axis.set(title=", ".join(pair) if row == 0 else "", xlabel="alpha" if row else "")
            if place == 0:
                axis.set_ylabel(f"test {words}")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def figures(rows: ResultsTable) -> dict[str, Any]:
    """Return the figures of what was measured."""
    return {"boosted_cvar.svg": draw(rows)}


EXPERIMENT = Experiment(
    NAME, "Zhai et al. 2021: the curves of Figures 1 and 2 on tables", wanted, measure, blocks, DATASETS, 5, figures
)
