"""The pattern of Boosted CVaR Classification's figures in numbers, and which of our runs show it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from papers.boosted_cvar.curves import METHODS
from papers.markdown import markdown_table
from papers.tables import ResultRow

_SMALL_ALPHA = 0.1 + 1e-9
_FAR, _NEAR = 0.1, 0.02  # of CVaR: how far below ERM is far, and how near is near
N_CLASSES = {"covertype": 7, "cifar10": 10, "cifar100": 100}  # of data sets with more than two
Means: TypeAlias = Mapping[float, float]  # test CVaR by alpha


class At(NamedTuple):
    """A difference of test CVaR, and the alpha that has it."""

    value: float
    alpha: float

    def __str__(self) -> str:
        return f"{round(self.value, 3) + 0.0:.3f}"  # no minus zero


class Pattern(NamedTuple):
    """What one run shows of the three things that the paper's figures show."""

    dataset: str
    learner: str
    gain: At  # ERM minus AdaLPBoost, the least over small alphas
    excess: At  # AdaLPBoost above the lower of ERM and AdaBoost + Average, the largest
    distance: At | None  # of Regularized LPBoost from AdaLPBoost, the largest; None where it was not trained
    beyond: At  # AdaLPBoost below the lower of ERM and a fair coin, the most at any alpha

    @property
    def run(self) -> str:
        """Return its name in a sentence."""
        return f"{self.dataset} with {self.learner}"

    @property
    def lacks(self) -> list[str]:
        """Return what it does not show, in words."""
        said = []
        if self.gain.value < _FAR:
            said.append(f"AdaLPBoost is {self.gain} below ERM at alpha {self.gain.alpha:g}")
        if self.excess.value > _NEAR:
            said.append(
                f"AdaLPBoost is {self.excess} above the lower of ERM and the average at alpha {self.excess.alpha:g}"
            )
        if self.distance is not None and self.distance.value > _NEAR:
            said.append(f"Regularized LPBoost is {self.distance} away from AdaLPBoost at alpha {self.distance.alpha:g}")
        return said


def pattern_of(dataset: str, learner: str, rows: Iterable[ResultRow]) -> Pattern:
    """Return the pattern of a run, given its rows of CVaR with all base models."""
    erm, average, ada, lp = means_over_seeds(rows)
    gain = min(At(erm[alpha] - ada[alpha], alpha) for alpha in ada if alpha <= _SMALL_ALPHA)
    excess = max(At(ada[alpha] - min(erm[alpha], average[alpha]), alpha) for alpha in ada)
    distance = max((At(abs(lp[alpha] - ada[alpha]), alpha) for alpha in lp), default=None)
    beyond = max(At(min(erm[alpha], coin(dataset)) - ada[alpha], alpha) for alpha in ada)
    return Pattern(dataset, learner, gain, excess, distance, beyond)


def coin(dataset: str) -> float:
    """Return the CVaR, at any alpha, of a decision that is drawn fairly among the classes and looks at nothing."""
    return 1 - 1 / N_CLASSES.get(dataset, 2)


def means_over_seeds(rows: Iterable[ResultRow]) -> list[Means]:
    """Return the mean test CVaR at each alpha, of each method in turn."""
    values: dict[str, dict[float, list[float]]] = {method: {} for method in METHODS}
    for row in rows:
        values[row.method].setdefault(round(float(row.alpha or 0.0), 9), []).append(row.value)
    return [{alpha: float(np.mean(found)) for alpha, found in values[method].items()} for method in METHODS]


def table(patterns: Sequence[Pattern]) -> str:
    """Return the section with the numbers, and what they say."""
    lines = [
        "## The pattern in numbers",
        "",
        "Differences of test CVaR, means over seeds. *Gain*: ERM minus AdaLPBoost, the least over alpha <= 0.1.",
        "*Excess*: AdaLPBoost above the lower of ERM and AdaBoost + Average, the largest over all alphas.",
        "*Distance*: of Regularized LPBoost from AdaLPBoost, the largest over the alphas at which it was trained.",
        "*Beyond*: AdaLPBoost below the lower of ERM and a fair coin, the most at any alpha, and that alpha. The coin",
        "draws among the classes and looks at nothing: its CVaR is 0.5 for two classes, at every alpha.",
        "",
    ]
    heads = ["data set", "learner", "gain", "excess", "distance", "beyond", "at alpha"]
    cells = [
        [
            *(str(part) for part in (one.dataset, one.learner, one.gain, one.excess, one.distance or "", one.beyond)),
            f"{one.beyond.alpha:g}",
        ]
        for one in patterns
    ]
    return "\n".join([*lines, markdown_table(heads, cells, n_words=2), "", *_verdict(patterns)])


def _verdict(patterns: Sequence[Pattern]) -> list[str]:
    shown = [one for one in patterns if not one.lacks]
    lines = [
        f"A run shows the pattern if it gains {_FAR:g} or more, with an excess and a distance of at most {_NEAR:g}:",
        f"{len(shown)} of {len(patterns)} do." + (" The others:" if len(shown) < len(patterns) else ""),
    ]
    others = [f"- {one.run}: {'; '.join(one.lacks)}." for one in patterns if one.lacks]
    return [*lines, *(["", *others] if others else []), "", *_beside_the_coin(patterns)]


def _beside_the_coin(patterns: Sequence[Pattern]) -> list[str]:
    """Say in which runs drawn models serve the tail better than a coin or ERM does."""
    better = [one.run for one in patterns if one.beyond.value >= _NEAR]
    of_two = [one for one in patterns if one.dataset not in N_CLASSES]
    n_better = sum(one.beyond.value >= _NEAR for one in of_two)
    return [
        f"Beside its controls: in {n_better} of the {len(of_two)} runs of two classes AdaLPBoost is {_NEAR:g} or more",
        f"below both ERM and the coin at some alpha. Over all runs: {'; '.join(better) or 'none'}.",
    ]


def in_short(patterns: Sequence[Pattern]) -> str:
    """Return one sentence on how many runs show the pattern, and which do not."""
    others = [one.run for one in patterns if one.lacks]
    n_shown = len(patterns) - len(others)
    if not others:
        return f"All {n_shown} runs here show it."
    return f"Of {len(patterns)} runs here {n_shown} show it, and {len(others)} not: {'; '.join(others)}."
