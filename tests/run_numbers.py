"""Every number of a result as one long list of rows, so that tests can ask for one by what it is."""

import math
from typing import NamedTuple

from counterpoise.runs.result import confusion
from counterpoise.runs.results import FIRST, MIXTURE, VERDICTS

DEFER_RATE, DECIDED_ERROR = "defer rate", "decided error"
REALISED = "realised cvar"


class ResultRow(NamedTuple):
    """One measured number, and all that says what it is."""

    experiment: str
    dataset: str
    learner: str
    method: str
    seed: int
    alpha: float | None
    quantity: str
    split: str
    value: float
    settings: str = ""

    @property
    def run(self):
        """Return everything but the value."""
        return (*self[:8], self.settings)


class Numbers(NamedTuple):
    """Rows that can be narrowed down."""

    rows: tuple[ResultRow, ...]

    def __iter__(self):
        return iter(self.rows)

    def __len__(self):
        return len(self.rows)

    def where(self, **wanted):
        """Return the rows whose columns have the given values."""
        return Numbers(tuple(row for row in self.rows if all(getattr(row, key) == wanted[key] for key in wanted)))


def numbers(run, *, drawn=False):
    """Return every number of a run or a result, or of its drawn decisions."""
    result = run.result() if hasattr(run, "folder") else run
    learner = (result.settings.get("method") or {}).get("learner") or {}
    head = ("run", result.data.name, learner.get("name", ""))
    seed = result.settings.get("seed") or 0
    rows = [_Row(*one) for one in (_drawn_rows(result) if drawn else _rows(result))]
    return Numbers(
        tuple(
            ResultRow(*head, one.method, seed, one.alpha, one.quantity, one.split, float(one.value), one.settings)
            for one in rows
            if not math.isnan(one.value) or one.quantity.startswith("goal ")
        )
    )


class _Row(NamedTuple):
    method: str
    quantity: str
    split: str
    value: float
    settings: str = ""
    alpha: float | None = None


def _rows(result):
    """Yield method, quantity, split, value, settings and alpha of every number."""
    yield "data", "columns", "", result.data.n_features
    for split, split_result in result.splits.items():
        yield "data", "rows", split, split_result.rows
        for label, share in split_result.classes.items():
            yield "data", "class share", split, share, label
        for decider, losses in split_result.losses.items():
            yield from _loss_rows(decider, losses, split)
        for number, goal in enumerate(result.goals, start=1):
            for decider, standing in goal.splits.get(split, {}).items():
                yield from _goal_rows(decider, standing, split, number)
    tail = result.alpha if result.objective is not None and result.objective.kind == "cvar" else None
    for number, goal in enumerate(result.goals, start=1):
        for point in goal.tradeoff:
            settings = f"goal {number} bound={point.bound!r}"
            yield MIXTURE, "frontier value", result.chosen_on, point.value, settings, tail
            yield MIXTURE, "frontier lower", result.chosen_on, point.lower, settings, tail
    yield from _group_rows(result)
    yield from _answer_rows(result)
    yield from _score_rows(result)


def _loss_rows(decider, losses, split):
    yield decider, "error", split, losses.error
    yield decider, DEFER_RATE, split, losses.defer_rate
    yield decider, DECIDED_ERROR, split, losses.decided_error
    yield decider, "objective", split, losses.objective
    for one in losses.tails:
        yield decider, "cvar", split, one.value, "", one.alpha
        yield decider, REALISED, split, one.realised, "", one.alpha


def _group_rows(result):
    """Yield the rates of groups, the shares and errors of rules, and the segments of the tail."""
    judged = result.judged
    for place, group in enumerate(result.groups):
        name = f"group {place}"
        yield MIXTURE, "group n_samples", judged, group.n_samples, name
        for rate, group_rate in group.rates.items():
            values = {"": group_rate.value, " rows": group_rate.rows, " low": group_rate.low, " high": group_rate.high}
            for ending, value in values.items():
                yield MIXTURE, f"group {rate}{ending}", judged, value, name
    for place, rule in enumerate(result.rules, start=1):
        yield f"model {place}", "share", "", rule.share
        yield f"model {place}", "error", judged, rule.error
    for place, one in enumerate(result.segments, start=1):
        numbers = {"tail share of segment": one.share, "tail part": one.part, "segment rows": one.rows}
        for quantity, value in (numbers | {"tail lift": one.lift}).items():
            yield MIXTURE, quantity, judged, value, f"segment {place}", result.alpha


def _goal_rows(decider, standing, split, number):
    """Yield the numbers of a goal; where it was not measured there are none."""
    parts = ("estimate", "violation")
    if standing.verdict:
        yield decider, "goal verdict", split, VERDICTS.get(standing.verdict, math.nan), f"goal {number}"
        parts = ("estimate", "low", "high", "bound", "margin", "violation", "rows")
    for part in parts:
        yield decider, f"goal {part}", split, getattr(standing, part), f"goal {number}"


def _answer_rows(result):
    """Yield how rows are decided about, and what other limits on deferred rows buy."""
    judged = result.judged
    for decider, cells in result.answers.items():
        for name, value in confusion(result, decider).items():
            yield decider, f"confusion {name}", judged, value
        for cell in cells if len(result.data.classes) > 2 else ():
            answer = "deferred" if cell.answer is None else f"as class {cell.answer + 1}"
            yield decider, "called", judged, cell.rows, f"class {cell.label + 1} {answer}"
    for limit in () if result.deferral is None else result.deferral.curve:
        for split, bought in limit.splits.items():
            numbers = {"tail": bought.tail, "error": bought.error, DEFER_RATE: bought.defer_rate}
            for quantity, value in (numbers | {DECIDED_ERROR: bought.decided_error}).items():
                yield MIXTURE, f"deferral {quantity}", split, value, f"rate={limit.limit!r}"


def _score_rows(result):
    judged, scores = result.judged, result.scores
    yield FIRST, "auc", judged, scores.auc
    yield FIRST, "brier score", judged, scores.brier
    for place, tenth in enumerate(scores.tenths, start=1):
        yield FIRST, "calibration score", judged, tenth.score, f"tenth {place}"
        yield FIRST, "calibration share", judged, tenth.share, f"tenth {place}"
    for place, panel in enumerate(scores.panels, start=1):
        for kind, counts in (("positive", panel.positive), ("negative", panel.negative)):
            for number, count in enumerate(counts, start=1):
                yield f"panel {place}", f"scores {kind}", result.chosen_on, count, f"bin {number}"


def _drawn_rows(result):
    if result.drawn is not None:
        yield MIXTURE, "error", result.judged, result.drawn.error
        yield MIXTURE, "cvar", result.judged, result.drawn.cvar, "", result.alpha
        yield MIXTURE, "drawn share", result.judged, result.drawn.share
    for number, goal in enumerate(result.goals, start=1):
        if goal.drawn is not None:
            yield from _goal_rows(MIXTURE, goal.drawn, result.judged, number)
