"""The page and the figure of ``mixture_goals``, as functions of its results table."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from counterpoise.runs.results import ResultsTable
from papers.arrays import BoolArray, FloatArray
from papers.drawing import panels
from papers.markdown import markdown_table
from papers.mixture_goals.experiment import (
    ALPHAS,
    CAREFUL,
    CHOICE,
    CONFIDENCE,
    CVAR,
    DATASETS,
    ERROR,
    FRONTIER,
    GOAL_TEXTS,
    MIXTURE,
    POOL,
    PRICED,
    RULE,
    SECONDS,
    SHARE,
    SINGLE,
    SIZES,
    TEST,
    measure,
    wanted,
)
from papers.mixture_goals.pool import DEPLOYED
from papers.study import Study

_COMMAND = "python -m papers mixture-goals --output docs/results/mixture_goals"
_MET = 1e-9  # a goal missed by no more is met: sums over rows are not exact
_COLORS = {CHOICE: "tab:blue", TEST: "tab:orange"}
_POOLED = (MIXTURE, CAREFUL, RULE)


class Who(NamedTuple):
    """Of whom a number is: a single model, or what is made of the pool."""

    learner: str
    method: str
    alpha: float | None = None  # what it was made for


class Numbers(NamedTuple):
    """The results table, a value for each split, in the order of the splits."""

    values: dict[tuple[Any, ...], FloatArray]  # by learner, method, alpha, quantity, split and settings
    models: tuple[str, ...]
    n_splits: int

    def of(self, who: Who, quantity: str, split: str, *, alpha: float | None = None) -> FloatArray:
        """Return a quantity; ``alpha`` is that of a tail loss where a model was made for none."""
        return self.values[who.learner, who.method, who.alpha or alpha, quantity, split, ""]

    def misses(self, who: Who, split: str) -> FloatArray:
        """Return by how much each goal is missed in each split, of shape (n_goals, n_splits)."""
        return np.array([self.of(who, goal, split) for goal in GOAL_TEXTS])


def as_numbers(rows: ResultsTable) -> Numbers:
    """Return the numbers that every split has."""
    seeds = sorted({row.seed for row in rows})
    found: dict[tuple[Any, ...], dict[int, float]] = {}
    for row in rows:
        key = (row.learner, row.method, row.alpha, row.quantity, row.split, row.settings)
        found.setdefault(key, {})[row.seed] = row.value
    values = {key: np.array([one[seed] for seed in seeds]) for key, one in found.items() if len(one) == len(seeds)}
    models = tuple(dict.fromkeys(row.learner for row in rows.where(method=SINGLE)))
    return Numbers(values, models, len(seeds))


def sections(rows: ResultsTable, folder: Path) -> list[str]:
    """Return the paragraphs of the page, and leave its figure in the folder."""
    numbers = as_numbers(rows)
    draw_frontier(numbers).savefig(folder / "frontier.png", dpi=110)
    return [_head(numbers), _tails(numbers), _goals(numbers), _FIGURE, _models(numbers)]


def _head(numbers: Numbers) -> str:
    minutes = numbers.of(Who(POOL, "all"), SECONDS, "").mean() / 60
    goals = "\n".join(f"- `{goal}`" for goal in GOAL_TEXTS)
    return f"""# Twenty real models, six goals, one mixture

Made by `{_COMMAND}`; every number is in
`results.parquet` beside this page. ACS Income, {numbers.n_splits} random splits: {SIZES.train:,} rows train
{len(numbers.models)} models, on {SIZES.choice:,} others the mixture is chosen, with {SIZES.live:,} more, without
labels, for the churn, and {SIZES.test:,} are for testing. Rows are data frames with category columns; each model
encodes them in its own way. The deployed model, from which churn is counted, is the {DEPLOYED}. A split takes
{minutes:.1f} minutes of processor time, nearly all of it to train and ask the models. ± is the standard deviation over
the splits. The goals:

{goals}

Their bounds are the [tightest](../constants/README.md) that two single models at least meet on the selection rows of
splits that are not among these."""


def _tails(numbers: Numbers) -> str:
    allowed, n_splits = _allowed(numbers), numbers.n_splits

    def line(alpha: float) -> list[str]:
        singles = np.array([numbers.of(Who(name, SINGLE), CVAR, TEST, alpha=alpha) for name in numbers.models])
        best_allowed = np.where(allowed, singles, np.inf).min(axis=0)
        pooled = [numbers.of(Who(POOL, method, alpha), CVAR, TEST) for method in _POOLED]
        n_below = int((pooled[0] < best_allowed).sum())
        shown = (*pooled, _coin(numbers, alpha), best_allowed, singles.min(axis=0))
        return [f"{alpha:g}", *map(_spread, shown), f"{n_below} of {n_splits}"]

    heads = [
        "alpha",
        *_POOLED,
        "deterministic rule and a coin",
        "best single model that meets the goals",
        "best single model of all",
    ]
    heads.append("splits in which the mixture is below every single model that meets the goals")
    counts = allowed.sum(axis=0)
    count = f"{counts.min()}" if np.ptp(counts) == 0 else f"{counts.min()} to {counts.max()}"
    return f"""## The loss of the worst-off

Zero-one loss on the worst-off fraction alpha of the test rows. A single model counts as meeting the goals if it does so
on the selection rows or on the test rows: {count} of {len(numbers.models)} do. *Best* is the least loss on the test
rows themselves, which no one could have chosen by. *A coin* is a control that looks at nothing and keeps no goals: it
decides fairly about so many rows, in the place of the deterministic rule, that these err as often as the mixture.

{markdown_table(heads, map(line, ALPHAS))}

A classifier that decides every row one way has a tail loss of min(1, error / alpha) (Proposition 1 of Zhai et al.
2021). No error is below a tenth here, so at alpha = 0.1 every single model and every vote has exactly 1: all of its
worst-off tenth are decided wrongly. The mixture decides rightly about some of them with some probability. At 0.2 and
0.3 single models can be below 1. The mixture pays with a higher mean error than the best single models have: see the
last table. The deterministic rule is a single model or a weighted vote of the mixture. A vote is no mixture of the
models, and can be better than all mixtures where alpha is well above the error; at 0.1, where all rules have 1, it is
the one of least error among those that meet the goals."""


def _coin(numbers: Numbers, alpha: float) -> FloatArray:
    """Return the tail of the deterministic rule where a coin decides so often that it errs as much as the mixture."""
    mixture, rule = (numbers.of(Who(POOL, name, alpha), ERROR, TEST) for name in (_POOLED[0], _POOLED[-1]))
    share = np.maximum(0.0, (mixture - rule) / (1 / 2 - rule))
    return np.asarray((1 - share) * numbers.of(Who(POOL, _POOLED[-1], alpha), CVAR, TEST) + share / 2)


def _goals(numbers: Numbers) -> str:
    found = [numbers.misses(Who(POOL, method, ALPHAS[0]), TEST) for method in _POOLED]
    heads = ["goal", *(f"{name}: {what}" for name in _POOLED for what in ("mean", "worst", "splits missed"))]
    lines = [
        [f"`{goal}`", *(cell for misses in found for cell in _miss_cells(misses[place]))]
        for place, goal in enumerate(GOAL_TEXTS)
    ]
    return f"""## The goals on new rows

By how much each goal is missed on the test rows at alpha = {ALPHAS[0]:g} (negative: met, with so much to spare): mean
over the splits, the worst split, and the number of splits in which it is missed. On the selection rows all hold, those
that cost something with nothing to spare, so that on new rows chance decides. Goals with a confidence of
{CONFIDENCE:g} leave a margin for that; the first table shows what it costs.

{markdown_table(heads, lines)}"""


def _miss_cells(misses: FloatArray) -> list[str]:
    return [f"{misses.mean():+.4f}", f"{misses.max():+.4f}", str(int((misses > _MET).sum()))]


def _models(numbers: Numbers) -> str:
    heads = ["classifier", *(f"tail loss at {alpha:g}" for alpha in ALPHAS), "error", "meets all goals: choice"]
    heads += ["meets all goals: test", "largest miss, test", f"share of the mixture for {ALPHAS[0]:g}"]
    lines = [
        [f"{method}, for alpha = {alpha:g}", *_cells(numbers, Who(POOL, method, alpha)), ""]
        for method in _POOLED
        for alpha in ALPHAS
    ]
    for name in numbers.models:
        share = numbers.of(Who(name, MIXTURE, ALPHAS[0]), SHARE, CHOICE).mean()
        lines.append([name, *_cells(numbers, Who(name, SINGLE)), f"{share:.3f}"])
    return f"""## Every model

Tail losses, error and largest miss are those on the test rows; *meets all goals* counts splits; the largest miss is
that of the goal that is missed most. The share is the probability with which the mixture lets the model decide, a mean
over the splits.

{markdown_table(heads, lines)}

*Balanced*: class weights. *Reweighed*: sample weights that make sex and label independent (Kamiran and Calders 2012).
*On rates*: categories become rates of positives (target encoding); else they have columns of their own (logistic
regression), are plain codes (trees, boosting), or go in as they are (LightGBM). *Thresholds by sex*: one for women and
one for men, such that women are called positive 0.9 times as often as men (logistic regression on rates: as often).
AdaLPBoost decides by its vote here, so that it is one rule like the others."""


def _cells(numbers: Numbers, who: Who) -> list[str]:
    """Return tail losses, error, splits that meet all goals and the largest miss."""
    levels = [alpha if who.alpha in (None, alpha) else None for alpha in ALPHAS]
    tails = ["" if alpha is None else _spread(numbers.of(who, CVAR, TEST, alpha=alpha)) for alpha in levels]
    error = _spread(numbers.of(who, ERROR, TEST))
    chosen, tested = (numbers.misses(who, part).max(axis=0) for part in (CHOICE, TEST))
    counts = [str(int((largest <= _MET).sum())) for largest in (chosen, tested)]
    return [*tails, error, *counts, f"{tested.mean():+.4f}"]


_FIGURE = f"""## What less churn costs

![The least tail loss against the bound of the churn goal](frontier.png)

*The least tail loss of all mixtures that meet the other goals, as the bound of `{PRICED.left}` moves, by `tradeoff`:
proven on the selection rows, and what the same mixtures have on the test rows. Means over the splits; the bands are ±
one standard deviation. The dotted line is the bound in the tables. Left of the curves no mixture meets the bound, in
one split at least.*"""


def draw_frontier(numbers: Numbers) -> Any:
    """Draw the least tail loss against the bound of the priced goal, a panel for each alpha."""
    figure, axes = panels(len(ALPHAS), size=(11 / len(ALPHAS), 3.6))
    for alpha, place in zip(ALPHAS, axes, strict=True):
        for split, color in _COLORS.items():
            bounds, values = _frontier(numbers, alpha, split)
            mean, spread = values.mean(axis=1), _deviation(values)
            place.plot(bounds, mean, color=color, marker=".", label=f"rows of {split}")
            place.fill_between(bounds, mean - spread, mean + spread, color=color, alpha=0.15, linewidth=0)
        place.axvline(PRICED.bound, color="gray", linestyle=":")
        place.set(title=f"alpha = {alpha:g}", xlabel=f"bound b in {PRICED.left} {PRICED.sense} b")
    axes[0].set_ylabel("zero-one loss on the worst-off alpha")
    axes[0].legend(frameon=False)
    return figure


def _frontier(numbers: Numbers, alpha: float, split: str) -> tuple[FloatArray, FloatArray]:
    """Return the bounds that are possible in all splits, and the tail losses there, of shape (n_bounds, n_splits)."""
    found = {
        float(settings.partition("=")[2]): values
        for (_, method, level, _, part, settings), values in numbers.values.items()
        if (method, level, part) == (FRONTIER, alpha, split)
    }
    bounds = sorted(found)
    return np.array(bounds), np.array([found[bound] for bound in bounds])


def _allowed(numbers: Numbers) -> BoolArray:
    """Return which model meets all goals in which split, on the selection rows or on the test rows."""

    def largest(name: str, split: str) -> FloatArray:
        return np.asarray(numbers.misses(Who(name, SINGLE), split).max(axis=0))

    least = [np.minimum(largest(name, CHOICE), largest(name, TEST)) for name in numbers.models]
    return np.asarray(np.array(least) <= _MET)


def _spread(values: FloatArray) -> str:
    return f"{values.mean():.4f} ± {float(_deviation(values)):.4f}"


def _deviation(values: FloatArray) -> FloatArray:
    """Return the standard deviation over the splits, 0 where there is one only."""
    several = values.shape[-1] > 1
    return np.asarray(values.std(axis=-1, ddof=1) if several else np.zeros(values.shape[:-1]))


STUDY = Study(
    "mixture-goals", "twenty models on ACS Income under goals", wanted, measure, sections, DATASETS, n_seeds=5
)
