"""Figure (d): all printed numbers of the papers beside ours, and what they say of themselves, counted once each."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from papers.boosted_cvar import images_page, steps
from papers.boosted_cvar import page as boosted_cvar
from papers.boosted_cvar.images_page import LONG
from papers.dataset_constraints import page as constraints
from papers.dataset_constraints.experiment import NO_BIAS
from papers.dro_boosting import page as dro
from papers.dro_boosting.experiment import CONTROL, CREDIT, DEFAULT, DRO
from papers.experiments import Blocks, Experiment, panels
from papers.markdown import markdown_table
from papers.printed import AGREES, Printed, count
from papers.tables import ResultRow, ResultsTable
from papers.vadaboost import page as vadaboost

_MOST, _HALF = 0.9, 0.5  # parts of the numbers of a table that agree
_FEW, _MANY, _ALPHA = 20, 100, 0.1  # models of Figure 4, and its alpha
_TIMES = (3.0, 6.0)  # of ERM
_CLEAR = 2.0  # standard errors
MATCHES, IN_PART, DIFFERS = "matches", "in part", "differs"


class Verdict(NamedTuple):
    """What was published, the rule, our figures, and the verdict by the rule."""

    published: str
    rule: str
    figures: str
    word: str


def printed() -> list[Printed]:
    """Return all printed numbers of which the tables have ours."""
    return [*vadaboost.printed(vadaboost.EXPERIMENT.rows()), *dro.printed(dro.EXPERIMENT.rows())]


def verdicts() -> list[Verdict]:
    """Return the verdicts on what is printed, once each, from the stored tables."""
    return [*_boosted_cvar(), *_vadaboost(), *_dro_boosting(), *_dataset_constraints()]


def _word(is_so: bool) -> str:
    return MATCHES if is_so else DIFFERS


def _of_share(numbers: Sequence[Printed]) -> str:
    share = np.mean([number.agrees for number in numbers])
    return MATCHES if share >= _MOST else IN_PART if share >= _HALF else DIFFERS


def _boosted_cvar() -> list[Verdict]:
    tables, images = boosted_cvar.EXPERIMENT.rows(), images_page.EXPERIMENT.rows()
    near = f"AdaLPBoost at most {boosted_cvar.NEAR:g} above the lower of ERM and the average, alpha from 0.02"
    found = []
    for title, rows, pair in (
        ("Figure 1 (a), COMPAS, its network", tables, ("compas", "network")),
        ("Figure 1 (b), CIFAR-10, its schedule", images, ("cifar10", "WRN-28-1")),
    ):
        run = boosted_cvar.pattern_of(rows, *pair)
        found.append(Verdict(f"Boosted CVaR, {title}", near, f"{run.excess + 0.0:.3f}", _word(run.shows_figure_1)))
    long = images.where(learner=LONG)
    erm, average, ada, _ = (np.array(list(own.values())) for own in
                            boosted_cvar.means(boosted_cvar.plain(long, "error")).values())  # fmt: skip
    inside = np.mean((np.minimum(erm, average) <= ada + 1e-9) & (ada <= np.maximum(erm, average) + 1e-9))
    between = f"the average loss of AdaLPBoost between those of ERM and the average at {_MOST:.0%} of the alphas"
    found.append(Verdict("Boosted CVaR, Figure 2 (a)", between, f"{inside:.0%}", _word(bool(inside >= _MOST))))
    distance = boosted_cvar.pattern_of(images, "cifar10", LONG).distance or np.inf
    close = f"Regularized LPBoost within {boosted_cvar.NEAR:g} of AdaLPBoost"
    found.append(Verdict("Boosted CVaR, Figure 3", close, f"{distance:.3f}", _word(distance <= boosted_cvar.NEAR)))
    few, many = (images_page.after(images, n_rounds, _ALPHA) for n_rounds in (_FEW, _MANY))
    converged = f"after {_FEW} models within {boosted_cvar.NEAR:g} of {_MANY}, alpha {_ALPHA:g}"
    near_enough = _word(abs(few - many) <= boosted_cvar.NEAR)
    found.append(Verdict("Boosted CVaR, Figure 4 (a)", converged, f"{few:.3f} and {many:.3f}", near_enough))
    times = {key[0]: images_page.times_of_erm(own) for key, own in images_page.training_seconds(images).items()
             if key[1] == "AdaLPBoost"}  # fmt: skip
    own = times["WRN-28-1"]
    shown = f"{own:.1f} by its schedule, {times[LONG]:.1f} by a longer warm-up"
    said = 'Boosted CVaR, "3 to 6 times the training time of ERM"'
    found.append(Verdict(said, "by the paper's schedule", shown, _word(_TIMES[0] <= own <= _TIMES[1])))
    gains = steps.gains(steps.EXPERIMENT.rows(), _ALPHA)
    ahead = [gain.mean() > _CLEAR * gain.std(ddof=1) / np.sqrt(gain.size) for gain in gains.values()]
    said, rule = (
        "Boosted CVaR, a constant step is better than AdaBoost's",
        "lower CVaR by two standard errors in every run",
    )
    word = MATCHES if all(ahead) else IN_PART if any(ahead) else DIFFERS
    return [*found, Verdict(said, rule, f"in {sum(ahead)} of {len(ahead)}", word)]


def _vadaboost() -> list[Verdict]:
    rows, found = vadaboost.EXPERIMENT.rows(), []
    agree = f"means within {AGREES:g} standard errors of both: {_MOST:.0%} match, half in part"
    for learner, title in vadaboost.TITLES.items():
        lines = vadaboost.lines_of(rows, learner)
        numbers = [number for line in lines for number in line.printed(title)]
        found.append(Verdict(title, agree, count(numbers), _of_share(numbers)))
        ours, theirs = vadaboost.sets_ahead(lines)
        said = f"{title}: VadaBoost at or below AdaBoost"
        found.append(Verdict(said, "on as many sets", f"{ours}, published {theirs}", _word(ours >= theirs)))
    ours, theirs = vadaboost.sets_of_ebboost(vadaboost.lines_of(rows, "stump"))
    said = "VadaBoost, Table 1: EBBoost is best"
    return [*found, Verdict(said, "on as many sets", f"{ours}, published {theirs}", _word(ours >= theirs))]


def _dro_boosting() -> list[Verdict]:
    rows = dro.EXPERIMENT.rows()
    numbers = dro.printed(rows)
    rule = f"means within {AGREES:g} standard errors of both: {_MOST:.0%} match, half in part"
    table = Verdict("DRO-Boosting, Table 1", rule, count(numbers), _of_share(numbers))
    default = rows.where(dataset=CREDIT, split="test", quantity="accuracy", settings=DEFAULT)
    gain = dro.gain(default, DRO, CONTROL)
    shown = f"{gain.mean():+.4f} ± {gain.std(ddof=1) / np.sqrt(gain.size):.4f}"
    said = "DRO-Boosting, Table 1: robustness raises the accuracy"
    return [table, Verdict(said, "above radius 0 by two standard errors", shown, _word(dro.is_ahead(gain)))]


def _dataset_constraints() -> list[Verdict]:
    rows = constraints.EXPERIMENT.rows()
    found = constraints.fairness_statements(constraints.of_linear(rows, NO_BIAS))
    rules = (
        f"by {constraints.MUCH:g} points at every common test ratio",
        "a larger test ratio",
        f"test ratio within {constraints.NEAR:g}",
    )
    fairness = [
        Verdict(f"Dataset constraints, Figure 2: {one.text}", rule, one.measured, _word(one.holds))
        for one, rule in zip(found, rules, strict=True)
    ]
    churn = constraints.churn_statements(rows)
    n_hold = sum(one.holds for one in churn)
    shown = f"{n_hold} of {len(churn)} statements, on public data in place of the paper's"
    return [
        *fairness,
        Verdict("Dataset constraints, Figure 3", "all statements", shown, IN_PART if n_hold else DIFFERS),
    ]


def blocks(_rows: ResultsTable) -> Blocks:
    """Return the verdicts, and how the printed numbers lie."""
    found, numbers = verdicts(), printed()
    words = [verdict.word for verdict in found]
    tables = dict.fromkeys(number.table for number in numbers)
    lines = []
    for table in tables:
        away = np.array([number.away for number in numbers if number.table == table])
        cells = [count(number for number in numbers if number.table == table), f"{np.median(away):+.1f}"]
        lines.append([table, *cells, f"{away.min():+.1f} to {away.max():+.1f}"])
    matching, in_part, differing = (words.count(word) for word in (MATCHES, IN_PART, DIFFERS))
    counts = f"Of {len(words)} items {matching} match, {in_part} in part, {differing} differ."
    heads = ["table", "agree", "median, standard errors", "range"]
    return {
        "counts": counts,
        "verdicts": markdown_table(["published", "rule", "here", "verdict"], found, n_words=4),
        "numbers": markdown_table(heads, lines),
    }


def figures(_rows: ResultsTable) -> dict[str, Any]:
    """Return the dot plot."""
    numbers = printed()
    tables = list(dict.fromkeys(number.table for number in numbers))
    figure, (axis,) = panels(1, size=(7.5, 3.2))
    axis.axvspan(-AGREES, AGREES, color="#e3f1ee", lw=0)
    rng = np.random.default_rng(0)
    for place, table in enumerate(tables):
        away = np.array([number.away for number in numbers if number.table == table])
        axis.plot(np.clip(away, -20, 20), place + rng.uniform(-0.3, 0.3, away.size), ".", alpha=0.7)
    axis.set_yticks(range(len(tables)), tables)
    axis.invert_yaxis()
    axis.set(xlabel="ours minus published, in standard errors of both (beyond 20 at 20); shaded: they agree")
    return {"published.svg": figure}


def parts(_datasets: Sequence[str], _n_seeds: int) -> list[Any]:
    """Return nothing: all of it is a function of the tables of the papers."""
    return []


def measure(_part: Any) -> list[ResultRow]:
    """Return nothing."""
    return []


EXPERIMENT = Experiment("published", "all printed numbers beside ours", parts, measure, blocks, ("papers",), 1, figures)
