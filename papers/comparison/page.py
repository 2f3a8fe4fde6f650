"""The page of the comparison, as a function of its results table."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from papers.arrays import FloatArray
from papers.comparison import earlier
from papers.comparison.experiment import (
    DATASETS,
    FAILED,
    FULL_SEEDS,
    METHODS,
    MISSING,
    N_SEEDS,
    QUICK_SEEDS,
    QUICK_SIZES,
    REACHED,
    SECONDS,
    SIZES,
    VALUE,
    is_final,
    measure,
    wanted,
)
from papers.comparison.losses import WHY
from papers.comparison.methods import OURS_NAME, SURE, TRAINED, Method
from papers.comparison.peers import GRADIENT, GRID, PEERS, REJECT
from papers.comparison.questions import ALPHAS, GOALS, ODDS, PARITY, RATIO, TAIL, Question
from papers.comparison.rows import N_FOLDS
from papers.comparison.verdicts import (
    EVERY,
    FEWEST,
    LOSS,
    QUESTIONS,
    TIE,
    WIN,
    Measured,
    Verdict,
    bound_of,
    counted,
    counts,
    in_all,
    verdicts,
)
from papers.drawing import panels, picture
from papers.markdown import markdown_table
from papers.results import ResultsTable, read_rows
from papers.study import TABLE, Study

_COMMAND = "make reproduce PAPER=comparison"
_MARKS = dict(zip((peer.name for peer in PEERS), "xXsDv^<>P*1", strict=True))
_COLORS = dict(zip(_MARKS, ("k", *(f"C{place}" for place in (1, 2, 4, 5, 6, 7, 8, 9, 1, 2))), strict=True))
_DRAWN = (PARITY, ODDS)
_SHORT = 0.001  # seconds: an answer that was there already
_MOST, _ENOUGH = 0.9, 0.75  # of the pairs must be ties, and of their intervals near 0, for choosers to be alike
_NEAR = 0.01  # a bound missed by less is not counted as missed


def sections(rows: ResultsTable, folder: Path) -> Iterator[str]:
    """Yield the paragraphs of the page, and leave its figures in the folder."""
    measured, side_by_side = Measured(rows), Measured(in_all(rows))
    alike = verdicts(measured)
    yield _head(rows)
    yield _headline(alike)
    yield _lost(alike)
    yield _kept(side_by_side, rows)
    drawn = [name for name in measured.datasets if measured.points(name, PARITY, OURS_NAME)]
    if drawn:
        draw(measured, drawn).savefig(folder / "frontier.png", dpi=100)
        yield picture("frontier.png", "Error against violation on test rows, means over splits; the line is ours")
    for question in (*QUESTIONS, EVERY):
        yield from _question(question, [one for one in alike if one.question == question])
    yield from _asked(side_by_side, rows)
    yield from _failures(rows)
    if (folder / earlier.FILE).exists():
        yield from _ten_splits(earlier.as_today(read_rows(folder / earlier.FILE)))


def _head(rows: ResultsTable) -> str:
    return f"""# Ours against every peer

Made by `{_COMMAND}`, which goes on where it was stopped (`ARGS=--quick` for a look at few rows, `ARGS=--full` for more
splits); every number is in `results.parquet` beside this page. {_ran(rows)} Disjoint
rows of each: at most {SIZES.old:,} of before, on which a deployed model was trained; at most {SIZES.fit:,}, and two
thirds of all, to fit; at most {SIZES.test:,} to test (`--quick`: {QUICK_SIZES.old:,}, {QUICK_SIZES.fit:,} and
{QUICK_SIZES.test:,}).
All have the same features, the group among them, and the same model: a LightGBM whose size is tuned on the rows to fit.
Methods that choose by scores, ours included, have the same ones: out of {N_FOLDS} folds for the rows to fit, on which
rules are chosen, and of the model fitted to all of these for test rows. Methods that train have the rows to fit. Groups
are the sexes, in COMPAS African-American against all others. Everything is
judged on test rows, in expectation over the draws of those that draw. Seconds are of processor time, on one thread.

**What is compared.** Two methods are comparable where one of their two numbers is equal. So ours is moved along its
bounds, by straight lines between them, until its mean value over the splits (the violation, the recall, the average
error) is the peer's, at each of the three bounds that the peer is asked for; {_costly()} are
asked at the middle one alone, as each answer takes them seconds. There our cost less the peer's (the error,
the false alarms, the tail loss) is taken split by split, in points, and averaged over the bounds. What each split's
values are off from their means is charged at the slope of our line, so that intervals know of the noise of both
numbers. Where a peer's value is beyond the ends of our line the bound counts only if one of the two is better in both
numbers; else it is left out, and *apart* says how often. A method without a bound is compared where it is. **Win** and
**loss**: a difference from zero at the level 0.05, two-sided (Student's t, with the variance of the mean corrected for
rows that splits share, after Nadeau and Bengio), after Holm's correction over all pairs of a set and a question of that
peer; fewer than {FEWEST} splits decide nothing. A method without a bound decides alike whatever is asked: it is one
pair a set. Pairs without a number, and cells that repeat another of the same peer and set, are not counted.

**Ours** is `{OURS_NAME}` on these scores, with `confidence=None`, so that it meets its bounds on the rows to fit as the
peers do. It decides by one rule, and draws only for tails and where no single rule meets the goal. `{SURE}` trains the
tuned model in folds itself and keeps margins for new rows at confidence 0.9, which is its default: it is not on the
shared scores, so it is in no verdict. Peers with our margins are on [a page of their own](../holding/README.md).
{REJECT} looks for the best balanced accuracy, not for the least error: that ours has less is no news; its grid has
{GRID["num_class_thresh"]} thresholds and {GRID["num_ROC_margin"]} margins, half of its own in each. FairGBM fits on
this scikit-learn after a keyword that was renamed there is given its old name. TunedThreshold has one threshold for
all, where ours may have one a group. Training inside goals, linear models and
robust boosting have pages of their own. `dro` has no comparable model, and is left out."""


def _costly() -> str:
    return " and ".join(peer.name for peer in PEERS if peer.costly)


def _ran(rows: ResultsTable) -> str:
    """Say which sets were run, and how many splits they have: a stopped run has fewer of both."""
    by_set = {name: len({row.seed for row in rows.where(dataset=name)}) for name in DATASETS}
    some = ", ".join(f"{name} ({count})" for name, count in by_set.items() if count)
    absent = [name for name, count in by_set.items() if not count]
    left = f" Not run: {', '.join(absent)}." if absent else ""
    return f"Public sets, in brackets the random splits of each: {some}.{left}"


def _headline(found: list[Verdict]) -> str:
    return f"""## Wins, ties and losses of ours, by peer

{in_short(found)}
(The sentence in bold stands where {_MOST:.0%} of the pairs are ties and {_ENOUGH:.0%} of the intervals lie there.) What
differs is whether goals hold on new rows, how many can be asked for at once, and what the choice costs in time: see the
next table and the last ones.

{_by_peer(found)}"""


def _by_peer(found: list[Verdict]) -> str:
    """Return how many pairs are decided, in all and by peer."""
    by_peer = counts(found)
    lines = [
        [peer.name, peer.needs, *(str(by_peer[peer.name][word]) for word in (WIN, TIE, LOSS))]
        for peer in PEERS
        if sum(by_peer[peer.name].values())
    ]
    table = markdown_table(["peer", "package", "wins", "ties", "losses"], lines, n_words=2)
    ahead = [name for name, one in by_peer.items() if one[LOSS] > one[WIN]]
    told = f"More losses than wins: against {', '.join(ahead)}." if ahead else "No peer wins more pairs than it loses."
    total = Counter(one.word for one in counted(found))
    apart = Counter(np.sign(one.mean) for one in counted(found) if one.low > 0 or one.high < 0)
    return f"""Pairs of a set and a question. {total[WIN]} wins, {total[TIE]} ties and {total[LOSS]} losses in all,
{by_peer[REJECT][WIN]} of the wins against {REJECT}. {told} A tie is no proof of equality: before the
correction of Holm {apart[-1.0]} intervals lie wholly on our side of zero and {apart[1.0]} on the other.

{table}"""


def in_short(found: list[Verdict]) -> str:
    """Say how often those who choose by the same scores are told apart; RejectOption looks for something else."""
    choosers = {peer.name for peer in PEERS if peer.on_scores} - {REJECT}
    alike = Counter(one.word for one in counted(found) if one.peer in choosers)
    decided = f"decided for ours: {alike[WIN]}, against it: {alike[LOSS]}"
    start = f"Of the {sum(alike.values())} pairs with a peer that chooses by the same scores {alike[TIE]} are ties"
    ends = [max(-one.low, one.high) for one in counted(found) if one.peer in choosers]
    n_near = sum(end <= 1 for end in ends)
    text = f"{start}; {decided}. {n_near} of their intervals lie within a point of zero."
    if min(alike[TIE] / _MOST, n_near / _ENOUGH) >= len(ends):
        return f"**With equal scores good choosers reach the same frontier.** {text}"
    return text


def summary(folder: Path) -> str:
    """Return the comparison in two paragraphs and a table: who is ahead at equal values, and whose bounds hold."""
    rows = read_rows(folder / TABLE).latest()
    ten = earlier.as_today(read_rows(folder / earlier.FILE))
    found, measured = verdicts(Measured(rows)), Measured(in_all(rows))
    by_peer, lines = counts(found), []
    for method in [one for one in METHODS.values() if one.name != SURE]:
        excess = np.concatenate([_excess(measured, question, method) for question in GOALS.values()])
        n_asked = sum(question.name in method.bounded for question in GOALS.values())
        shares = [f"{(excess <= 0).mean():.2f}", str(n_asked)] if excess.size else ["", ""]
        pairs = by_peer.get(method.name, {})
        lines.append([method.name, *(str(pairs[word]) if pairs else "" for word in (WIN, TIE, LOSS)), *shares])
    heads = ["method", "ours costs less", "no difference", "ours costs more", "bounds that hold", "of questions"]
    return f"""{_ran(rows)} {in_short(found)}

Rule: methods are compared at equal violation, recall, precision or average error. A pair of a data set and a question
is decided if the difference of costs is not zero at the level 0.05, after corrections for splits that share rows and
for many pairs. *Bounds that hold* is the share of bounds that hold on new rows, over all questions that a method takes.
Every method but MAPIE only had to meet them on the rows at hand. If a method found no rule, nothing is counted.

{markdown_table(heads, lines)}

An earlier run (more rows, no scores out of fold): {_ran(ten)} {in_short(verdicts(Measured(ten), earlier.SIZES))}"""


_EARLIER = [
    METHODS[OURS_NAME],
    METHODS[OURS_NAME]._replace(name=TRAINED),
    *(  # ExponentiatedGradient had a bound on ratios that meant another one
        peer._replace(bounded=tuple(name for name in peer.bounded if name != RATIO)) if peer.name == GRADIENT else peer
        for peer in PEERS
    ),
]


def _ten_splits(rows: ResultsTable) -> Iterator[str]:
    """Yield what the earlier run of ten splits comes to by the rules of today."""
    found, measured = verdicts(Measured(rows), earlier.SIZES), Measured(rows)
    yield f"""## Ten splits, from before scores were out of fold

{_ran(rows)} At most {earlier.SIZES.fit:,} rows to fit and {earlier.SIZES.test:,} to test. The shared scores, by which
ours and its peers choose, are those of a model that was fitted to 60 % of the rows to fit, on the other 40 %; beside
methods that train on all of these rows, and plain models, stands ours trained in folds on the same. Every peer was
asked at all three bounds. MAPIE had thresholds above which there was no row, and then proved no precision: those pairs
are missing. Made by the code of commit {earlier.COMMIT}; every number is in `{earlier.FILE}`, and is
judged here by the rules above.

{in_short(found)}

{_by_peer(found)}"""
    yield "### Decided pairs"
    decided = [one for one in counted(found) if one.word != TIE]
    lines = [[one.peer, one.dataset, one.question, one.word, _spread(one)] for one in decided]
    yield markdown_table(["peer", "set", "question", "for ours", "difference, points"], lines, n_words=4)
    yield "### Bounds that held on test rows"
    lines = [line for method in _EARLIER for line in _kept_line(measured, method)]
    yield markdown_table(["method", *GOALS], lines)


def _lost(alike: list[Verdict]) -> str:
    lines = [
        f"- {one.dataset}, {one.question}, {one.peer} ({_spread(one)} points): {WHY.get(_key(one), '**no word yet**')}"
        for one in alike
        if one.word == LOSS
    ]
    return "\n".join(["### Where we lose, and what we would have to change", "", *(lines or ["Nowhere."])])


def _kept(measured: Measured, rows: ResultsTable) -> str:
    """Say how often bounds hold on test rows, by method and question, and by how much they are missed."""
    table = markdown_table(
        ["method", *GOALS], [line for method in METHODS.values() for line in _kept_line(measured, method)]
    )
    return f"""### What was asked for, and what came

The share of bounds that hold on test rows, and the points by which the test value is beyond the bound, nothing where it
is inside: means over bounds, sets and splits that all methods have, of methods that take a bound. MAPIE and `{SURE}`
promise new rows; all others meet their bounds on the rows at hand.{_promised(rows)}

{table}"""


def _kept_line(measured: Measured, method: Method) -> Iterator[list[str]]:
    excess = [_excess(measured, question, method) for question in GOALS.values()]
    if any(one.size for one in excess):
        cells = [
            f"{(one <= 0).mean():.2f} / {100 * np.maximum(one, 0.0).mean():.2f}" if one.size else "" for one in excess
        ]
        yield [method.name, *cells]


def _promised(rows: ResultsTable) -> str:
    """Say how often ours says that it reached its confidence, and how often its bounds then hold."""
    reached = {(*row[:3], row.seed, row.settings): row.value for row in rows.where(method=SURE, quantity=REACHED)}
    inside = []
    for row in rows.where(method=SURE, quantity=VALUE):
        sign = -1 if GOALS[row.learner].is_floor else 1
        if reached.get((*row[:3], row.seed, row.settings)):
            inside.append(row.value <= sign * float(row.settings.removeprefix("bound=")))
    if not reached:
        return ""
    n_splits = len({row.seed for row in rows.where(method=SURE)})
    return (
        f" `{SURE}`\nwas run on {n_splits} splits of each set; it says that it reached its confidence in "
        f"{len(inside)} of {len(reached)} cases, and of these "
        f"{np.mean(inside):.2f} hold; in the others it\nwarns that these rows are too few. Test rows are a sample too, "
        "and their noise lowers such shares:\nthe promise is judged [on whole populations](../holding/README.md)."
    )


def _excess(measured: Measured, question: Question, method: Method) -> FloatArray:
    """Return by how much the values of all sets, splits and bounds are beyond the bounds that everyone is asked for."""
    if question.name not in method.bounded:
        return np.empty(0)
    points = _points(measured, question.name, method.name)
    sign = -1 if question.is_floor else 1
    return np.array([one[0] - sign * bound_of(point) for point, one in points if bound_of(point) in question.bounds])


def _key(one: Verdict) -> tuple[str, str, str]:
    return one.dataset, one.question, one.peer


def missing_words(rows: ResultsTable) -> list[tuple[str, str, str]]:
    """Return the losses of which nothing is said."""
    return [_key(one) for one in verdicts(Measured(rows)) if one.word == LOSS and _key(one) not in WHY]


def _spread(one: Verdict) -> str:
    return f"{one.mean:+.2f} ({one.low:+.2f} to {one.high:+.2f})"


def _question(name: str, found: list[Verdict]) -> Iterator[str]:
    """Yield a table of one question: sets by peers."""
    peers = list(dict.fromkeys(one.peer for one in found))
    cells = {(one.dataset, one.peer): _cell(one) for one in found}
    sets = list(dict.fromkeys(one.dataset for one in found))
    if sets:
        yield f"## {_title(name)}"
        yield markdown_table(["set", *peers], [[one, *(cells.get((one, peer), "") for peer in peers)] for one in sets])


def _title(name: str) -> str:
    if name == EVERY:
        return "Methods without a bound: cost at equal value, mean over all questions that suit a set"
    if name == TAIL:
        fractions = ", ".join(f"{alpha:g}" for alpha in ALPHAS)
        return f"{name.capitalize()} at equal average error (the worst-off {fractions} of the rows)"
    question = GOALS[name]
    bounds = ", ".join(f"{bound:g}" for bound in question.bounds)
    value, cost = question.words
    return f"{name.capitalize()}: {cost} at equal {value} (bounds {bounds})"


def _cell(one: Verdict) -> str:
    """Return difference and interval; bold where it is decided."""
    if np.isnan(one.mean):
        return f"{one.n_apart} apart"
    mark = "" if one.word == TIE else f" **{one.word}**"
    return _spread(one) + mark + (f", {one.n_apart} apart" if one.n_apart else "")


def _asked(measured: Measured, rows: ResultsTable) -> Iterator[str]:
    """Yield what everyone comes to at the bounds that were asked for, means over sets and splits."""
    yield "## At the bounds that were asked for"
    yield (
        "Means over sets and the splits that all methods have. *Missed*: of all bounds, sets and splits those whose "
        f"test value is beyond the bound by more than {_NEAR:g}. Seconds: of one answer, the median, and before the "
        "first one in brackets (the shared model is not counted)."
    )
    for question in GOALS.values():
        lines = [line for method in METHODS.values() for line in _line(measured, rows, question, method)]
        if lines:
            value, cost = question.words
            bounds = [f"{value} / {cost} at {bound:g}" for bound in question.bounds]
            yield f"### {question.name.capitalize()}"
            yield markdown_table(["method", *bounds, "missed", "seconds"], lines)
    lines = [line for method in METHODS.values() for line in _tail_line(measured, rows, method)]
    if lines:
        yield f"### {TAIL.capitalize()}"
        yield (
            "Average loss / tail loss; ours without a budget, and with one of 0.03 above the least average loss. A "
            "fair coin between two classes, which looks at nothing, has 0.500 / 0.500."
        )
        heads = [f"average / tail at {alpha:g}" for alpha in ALPHAS]
        yield markdown_table(["method", *heads, "seconds"], lines)


def _line(measured: Measured, rows: ResultsTable, question: Question, method: Method) -> Iterator[list[str]]:
    points = _points(measured, question.name, method.name)
    if not points:
        return
    sign = -1 if question.is_floor else 1
    cells, missed, n_asked = [], 0, 0
    for bound in question.bounds:
        found = [one for point, one in points if bound_of(point) in (bound, np.inf)]
        values, costs = (np.array([one[place] for one in found]) for place in (0, 1))
        missed += int((values - sign * bound > _NEAR).sum())
        n_asked += values.size
        cells.append(f"{sign * values.mean():.3f} / {costs.mean():.4f}" if values.size else "")
    yield [method.name, *cells, f"{missed} of {n_asked}", _seconds(rows, question.name, method.name)]


def _points(measured: Measured, question: str, method: str) -> list[tuple[Any, tuple[float, float]]]:
    return [
        (point, tuple(split.values()))  # type: ignore[misc]
        for dataset in measured.datasets
        for point, splits in measured.points(dataset, question, method).items()
        for split in splits.values()
    ]


def _seconds(rows: ResultsTable, question: str, method: str) -> str:
    taken, before = (
        [row.value for row in rows.where(method=method, quantity=SECONDS, learner=what)] for what in (question, "")
    )
    first = f" ({np.median(before):.2g})" if before and question != TAIL and np.median(before) >= _SHORT else ""
    return (f"{np.median(taken):.2g}" if np.median(taken) >= _SHORT else "0") + first


def _tail_line(measured: Measured, rows: ResultsTable, method: Method) -> Iterator[list[str]]:
    points = _points(measured, TAIL, method.name)
    budgets = (1.0, 0.03) if method.name == OURS_NAME else (np.inf,)
    for budget in budgets if points else ():
        cells = []
        for alpha in ALPHAS:
            found = np.array([one for point, one in points if point[0] == alpha and bound_of(point) == budget])
            cells.append(f"{found[:, 0].mean():.3f} / {found[:, 1].mean():.3f}" if found.size else "")
        name = method.name + (", budget 0.03" if budget == 0.03 else "")  # noqa: PLR2004 - one of the two above
        yield [name, *cells, _seconds(rows, TAIL, method.name)]


def _failures(rows: ResultsTable) -> Iterator[str]:
    """Yield who failed, how often and how it was said, and who is missing."""
    failed = Counter((row.method, row.learner, row.settings.split(" ", 1)[-1]) for row in rows.where(quantity=FAILED))
    lines = [[method, question, str(count), f"`{text}`"] for (method, question, text), count in _ordered(failed)]
    yield "## Failures"
    yield markdown_table(["method", "question", "times", "what it said"], lines, n_words=2) if lines else "None."
    measured = {row.method for row in rows if row.quantity != MISSING}
    absent = {row.method: row.settings for row in rows.where(quantity=MISSING) if row.method not in measured}
    yield "\n".join(f"- {name} took no part. {text}" for name, text in absent.items()) or "Every peer took part."


def _ordered(failed: Counter[tuple[str, str, str]]) -> Iterable[tuple[tuple[str, str, str], int]]:
    return sorted(failed.items())


def draw(measured: Measured, sets: list[str]) -> Any:
    """Draw error against violation: ours as a line, the peers as points."""
    figure, axes = panels(len(_DRAWN) * len(sets), size=(3.2, 2.9), n_columns=len(sets))
    cases = [(question, dataset) for question in _DRAWN for dataset in sets]
    for axis, (question, dataset) in zip(axes, cases, strict=True):
        found = sorted(measured.means(dataset, question, OURS_NAME), key=lambda one: bound_of(one[0]))
        axis.plot(*_xy(found), ".-", color="tab:red", label=OURS_NAME, markersize=4)
        for peer, mark in _MARKS.items():
            found = measured.means(dataset, question, peer)
            if found and peer != REJECT:  # far above all others: it looks for another error
                axis.plot(*_xy(found), mark, color=_COLORS[peer], label=peer, alpha=0.8, markersize=5)
        axis.set_title(f"{dataset}, {question}", fontsize=9)
        axis.set_xlabel("largest difference on test rows", fontsize=8)
        axis.set_ylabel("test error, %", fontsize=8)
    handles = {label: one for axis in axes for one, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=5, fontsize=8, frameon=False)
    return figure


def _xy(found: list[tuple[Any, float, float]]) -> tuple[list[float], list[float]]:
    return [value for _, value, _ in found], [100 * cost for _, _, cost in found]


STUDY = Study(
    "comparison",
    "ours against every peer",
    wanted,
    measure,
    sections,
    DATASETS,
    n_seeds=N_SEEDS,
    n_jobs=2,
    is_final=is_final,
    full_seeds=FULL_SEEDS,
)
STUDY = replace(
    STUDY, quick=replace(STUDY, measure=partial(measure, sizes=QUICK_SIZES), n_seeds=QUICK_SEEDS, full_seeds=None)
)
