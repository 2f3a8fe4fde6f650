"""Plain numbers of decisions and scores in a report: who is right how often, how good scores are, where rules cut."""

import math
from typing import Any

from counterpoise.report import figures
from counterpoise.report.record import Record
from counterpoise.report.sections import PageTable, Panel, measured
from counterpoise.report.wording import MISSING, count, number, percent
from counterpoise.runs.quantities import CALIBRATION, CONFUSION, FIRST, SCORES

_CELLS = ("true positives", "false positives", "false negatives", "true negatives")
_LEFT = ("deferred positives", "deferred negatives")


def decision_table(record: Record) -> PageTable | None:
    """Return right and wrong answers by class for every method, and the rates that follow."""
    left = () if record.defer_cost is None else _LEFT
    rows = []
    for method, label in measured(record).items():
        cells = [record.value(CONFUSION + cell, method=method, split=record.judged) for cell in (*_CELLS, *left)]
        if all(map(math.isfinite, cells)):
            rows.append([label, *_rates(*cells)[: None if left else -1], *map(count, cells)])
    rates = ("wrong", "recall", "precision", "false positive rate", "called positive", *(("deferred",) if left else ()))
    heads = ("answers of", *rates, *_CELLS, *left)
    return PageTable(f"Answers on the {record.judged} rows", heads, rows) if rows else None


def _rates(hits: float, alarms: float, misses: float, rejections: float, *left: float) -> list[str]:
    """Return rates of all rows of their kind; ``left`` are deferred positives and negatives, the last their share."""
    unsaid, unsaid_not = left or (0.0, 0.0)
    positives, negatives = hits + misses + unsaid, alarms + rejections + unsaid_not
    total = positives + negatives
    return [
        _share(alarms + misses, total),
        _share(hits, positives),
        _share(hits, hits + alarms),
        _share(alarms, negatives),
        _share(hits + alarms, total),
        _share(unsaid + unsaid_not, total),
    ]


def _share(part: float, whole: float) -> str:
    return percent(part / whole) if whole else MISSING


def score_sentence(record: Record) -> str:
    """Return how good the scores are that rules cut; nothing where there are none."""
    auc, brier = (record.value(name, method=FIRST, split=record.judged) for name in ("auc", "brier score"))
    if not math.isfinite(auc):
        return ""
    fit = f", and their Brier score {number(brier)}" if math.isfinite(brier) else ""
    return f"On the {record.judged} rows the AUC of the first model's scores is {number(auc)}{fit}."


def calibration_table(record: Record) -> PageTable | None:
    """Return the mean score and the share of positives in each tenth of the rows by score."""
    tenths = [row.settings for row in record.named(CALIBRATION + "score")]
    where: dict[str, Any] = {"method": FIRST, "split": record.judged}
    rows = [
        [name, *(percent(record.value(CALIBRATION + part, settings=name, **where)) for part in ("score", "share"))]
        for name in tenths
    ]
    heads = ("rows by score", "mean score", "positive")
    return PageTable("Do the scores mean what they say?", heads, rows) if rows else None


def score_panels(record: Record) -> list[Panel]:
    """Return a histogram of scores for each group, with the thresholds of the rules."""
    panels = []
    for place, (name, entry) in enumerate(record.entries("scores").items(), start=1):
        counts = {
            kind: [row.value for row in record.named(SCORES + kind) if row.method == name]
            for kind in ("positive", "negative")
        }
        rules = [
            figures.Cut(float(one["threshold"]), float(one["share"]), float(one.get("lower", math.nan)))
            for one in entry.get("rules", [])
        ]
        ends = float(entry.get("low", 0.0)), float(entry.get("high", 1.0))
        if any(map(len, counts.values())):
            text = str(entry.get("text", name))
            panels.append(Panel(text, figures.score_figure(f"scores-{place}", text, counts, ends, rules)))
    return panels
