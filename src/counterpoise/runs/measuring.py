"""Every number about a fitted run, as rows of the results table, and the words that belong to them."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from counterpoise._types import AnyArray, FloatArray
from counterpoise.certify import Audit, audit
from counterpoise.frontier import tradeoff
from counterpoise.goals import Goal, Ratio, Table
from counterpoise.metrics import cvar_curve, rate_table
from counterpoise.pool import failures, pool_codes
from counterpoise.results import ResultRow
from counterpoise.runs.data import TEST, Data, Part
from counterpoise.runs.fitting import last_step, mixes, seen_by_last
from counterpoise.runs.methods import METHODS, describe
from counterpoise.runs.segments import find_segments
from counterpoise.runs.settings import Settings

MIXTURE, FIRST, AVERAGE = "mixture", "first model", "average"
VERDICTS = {"holds": 1.0, "undecided": 0.0, "fails": -1.0}
_ALPHAS = np.geomspace(0.01, 1.0, 30)
_POINTS = 21  # of a frontier
_FRONTIER_TOL = 1e-4  # gap of its points: a figure shows no less
_RATIO_RANGE = 0.1  # on either side of a ratio's bound, whose range is not known beforehand
_RATES = ("n_samples", "positive_rate", "error_rate", "recall", "false_positive_rate", "precision", "churn")


class Measured(NamedTuple):
    """Rows of the results table, and texts by kind."""

    rows: list[ResultRow]
    texts: dict[str, Any]


class Judge:
    """Measures a model on the rows of a run."""

    def __init__(self, settings: Settings, data: Data, model: Any, goals: tuple[Goal, ...], plain: Any = None) -> None:
        self.settings, self.data, self.model, self.goals, self.plain = settings, data, model, goals, plain
        self.alphas = np.unique([*_ALPHAS, float(settings.alpha)])
        self.alphas[-1] = 1.0
        self._decided: dict[str, AnyArray] = {}
        self._asked: tuple[str, AnyArray] | None = None  # the split whose losses were found last, by all models

    def row(self, method: str, quantity: str, split: str, value: float, **more: Any) -> ResultRow:
        """Return one number."""
        learner = self.settings.method.learner.name if self.settings.method.learner else ""
        alpha, words = more.get("alpha"), more.get("settings", "")
        seed = self.settings.seed
        return ResultRow("run", self.data.name, learner, method, seed, alpha, quantity, split, float(value), words)

    def everything(self, seconds: float) -> Measured:
        """Return all rows and texts of a run, given how long its fit took."""
        judged = TEST if TEST in self.data.splits else self.data.chosen_on
        started = time.monotonic()
        self.decisions(judged)
        predict_seconds = time.monotonic() - started
        rows = [self.row("data", "columns", "", len(self.data.columns.features))]
        for split in self.data.splits:
            rows += [*self.data_rows(split), *self.loss_rows(split), *self.goal_rows(split)]
        rows += [*self.group_rows(judged), *self.frontier_rows(), *self.share_rows(judged)]
        segments = find_segments(self.data.splits[judged], self.row_losses(judged)[MIXTURE], float(self.settings.alpha))
        for number, one in enumerate(segments, start=1):
            where = {"settings": f"segment {number}", "alpha": float(self.settings.alpha)}
            parts = {"tail share of segment": one.share, "tail part": one.part, "segment rows": one.n_rows}
            rows += [self.row(MIXTURE, name, judged, value, **where) for name, value in parts.items()]
        rows += [self.row("fit", "seconds", "", seconds), self.row("predict", "seconds", judged, predict_seconds)]
        return Measured(rows, self.texts(judged) | {"segments": _named("segment", (one.text for one in segments))})

    def decisions(self, split: str) -> AnyArray:
        """Return what the model decides about a split or an extra dataset, asked once."""
        if split not in self._decided:
            part = {**self.data.splits, **self.data.extra}[split]
            self._decided[split] = np.asarray(self.model.predict(part.X))
        return self._decided[split]

    def data_rows(self, split: str) -> Iterator[ResultRow]:
        """Yield how many rows a split has, and of which classes."""
        labels = self.data.splits[split].labels
        yield self.row("data", "rows", split, len(labels))
        for label in self.data.classes:
            yield self.row("data", "class share", split, float(np.mean(labels == label)), settings=str(label))

    def row_losses(self, split: str) -> dict[str, FloatArray]:
        """Return for each method the probability that it errs on each row of a split."""
        part = self.data.splits[split]
        found = {MIXTURE: (self.decisions(split) != part.labels).astype(np.float64)}
        if mixes(self.model):
            losses, mixture = self._model_losses(split)
            if last_step(self.model).decision != "vote":
                found[MIXTURE] = _expected(losses, mixture)
            found |= {FIRST: losses[:, 0].astype(np.float64), AVERAGE: losses.mean(axis=1)}
        elif self.plain is not None:
            found[FIRST] = (np.asarray(self.plain.predict(part.X)) != part.labels).astype(np.float64)
        return found

    def loss_rows(self, split: str) -> Iterator[ResultRow]:
        """Yield the error and the CVaR at many tail fractions, by method."""
        weights = self.data.splits[split].weights
        for method, losses in self.row_losses(split).items():
            yield self.row(method, "error", split, float(np.average(losses, weights=weights)))
            values = cvar_curve(losses, self.alphas, weights)
            for alpha, value in zip(self.alphas.tolist(), values.tolist(), strict=True):
                yield self.row(method, "cvar", split, value, alpha=alpha)

    def audit(self, split: str, goals: Iterable[Goal], first: Any = None) -> Audit:
        """Return the audit of the decisions, or of another model's, with a split in the place of ``train``."""
        parts = {"train": self.data.splits[split], **self.data.extra}
        said = {
            name: self.decisions(split if name == "train" else name) if first is None else np.asarray(first(part.X))
            for name, part in parts.items()
        }
        binary = len(self.data.classes) == 2  # noqa: PLR2004
        tables = {name: part.table() if binary else _of_two(part, self.data.positive) for name, part in parts.items()}
        if not binary:
            said = {name: labels == self.data.positive for name, labels in said.items()}
        asked = {name for goal in goals for name in goal.datasets}
        return audit(
            list(goals),
            {name: labels for name, labels in said.items() if name in asked},
            {name: table for name, table in tables.items() if name in asked},
            confidence=self.settings.confidence,
            pos_label=self.data.positive if binary else True,
        )

    def goal_rows(self, split: str) -> Iterator[ResultRow]:
        """Yield how each goal stands on a split, for the model and for plain training."""
        if not self.goals:
            return
        for number, found in enumerate(self.audit(split, self.goals), start=1):
            parts = {name: getattr(found, name) for name in ("estimate", "low", "high", "bound", "margin")}
            parts |= {"verdict": VERDICTS[found.verdict], "violation": _violation(found)}
            parts["rows"] = sum(count for _, count in found.counts)
            for name, value in parts.items():
                yield self.row(MIXTURE, f"goal {name}", split, value, settings=f"goal {number}")
        first = self._first_model()
        for number, found in enumerate(self.audit(split, self.goals, first) if first else (), start=1):
            for name, value in (("estimate", found.estimate), ("violation", _violation(found))):
                yield self.row(FIRST, f"goal {name}", split, value, settings=f"goal {number}")

    def group_rows(self, split: str) -> Iterator[ResultRow]:
        """Yield the rates of every group."""
        for place, found in enumerate(self._rates(split)):
            for name in _RATES:
                value = getattr(found, name)
                if value is not None and not np.isnan(value):
                    yield self.row(MIXTURE, f"group {name}", split, value, settings=f"group {place}")

    def frontier_rows(self) -> Iterator[ResultRow]:
        """Yield the least risk for many bounds of each goal."""
        estimator = last_step(self.model)
        if not mixes(self.model) or estimator.objective_ != "cvar":
            return
        for number, goal in enumerate(estimator.goals_, start=1):
            bounds = None
            if isinstance(goal.left, Ratio):
                bounds = np.clip(goal.bound + np.linspace(-_RATIO_RANGE, _RATIO_RANGE, _POINTS), 0.0, None)
            for point in tradeoff(estimator, goal, bounds, n_points=_POINTS, tol=_FRONTIER_TOL):
                where = {"alpha": estimator.alpha_, "settings": f"goal {number} bound={point.bound!r}"}
                for name in ("value", "lower"):
                    if not np.isnan(point.value):
                        yield self.row(MIXTURE, f"frontier {name}", self.data.chosen_on, getattr(point, name), **where)

    def share_rows(self, split: str) -> Iterator[ResultRow]:
        """Yield the share of each model in the mixture and its error."""
        if not mixes(self.model):
            return
        losses, mixture = self._model_losses(split)
        for number, share in enumerate(mixture.tolist(), start=1):
            yield self.row(f"model {number}", "share", "", share)
            yield self.row(f"model {number}", "error", split, float(losses[:, number - 1].mean()))

    def texts(self, judged: str) -> dict[str, Any]:
        """Return the words that belong to the rows."""
        data = self.data
        counts = ", ".join(f"{len(part)} {name}" for name, part in data.splits.items())
        goals = [
            {
                "name": f"goal {number}",
                "text": str(goal.with_confidence(None)),
                "confidence": self.settings.confidence if goal.confidence is None else goal.confidence,
            }
            for number, goal in enumerate(self.goals, start=1)
        ]
        return {
            "goals": goals,
            "groups": _named("group", (found.group for found in self._rates(judged)), start=0),
            "models": self._model_texts(),
            "method": describe(self.settings.method),
            "data": [
                f"{data.name}: {counts} rows; target {self.settings.data.target}, positive class {data.positive}.",
                f"{len(data.columns.numeric)} numeric and {len(data.columns.categorical)} categorical features.",
            ],
        }

    def _model_texts(self) -> list[dict[str, str]]:
        estimator, asked = last_step(self.model), self.settings.method
        if not mixes(self.model):
            return []
        if asked.models:
            words = [(one.title or METHODS[one.name].title, describe(one)) for one in asked.models]
        else:
            learner = describe(asked.learner) if asked.learner else "histogram tree"
            words = [(f"round {number}", learner) for number in range(1, len(estimator.estimators_) + 1)]
        return [
            {"name": f"model {number}", "title": title, "description": text}
            for number, (title, text) in enumerate(words, start=1)
        ]

    def _model_losses(self, split: str) -> tuple[AnyArray, FloatArray]:
        """Return where each model errs on a split, and the mixture."""
        estimator, part = last_step(self.model), self.data.splits[split]
        if self._asked is None or self._asked[0] != split:
            pool = estimator._pool()  # noqa: SLF001 - of our own kind
            codes = pool_codes(pool, seen_by_last(self.model, part.X), estimator.classes_, estimator.n_jobs)
            self._asked = split, failures(codes, np.searchsorted(estimator.classes_, part.labels))
        return self._asked[1], estimator.mixture_

    def _first_model(self) -> Any:
        if not mixes(self.model):
            return None if self.plain is None else self.plain.predict
        estimator = last_step(self.model)
        first = estimator.estimators_[0]
        return lambda frame: first.predict(seen_by_last(self.model, frame))

    def _rates(self, split: str) -> Any:
        part, positive = self.data.splits[split], self.data.positive
        if positive is None:
            return ()
        said, y, baseline = (
            None if labels is None else labels == positive
            for labels in (self.decisions(split), part.labels, part.baseline)
        )
        assert said is not None  # noqa: S101 - decisions are there
        more = {"baseline": baseline, "sample_weight": part.weights, "pos_label": True}
        return rate_table(said, y, part.groups or None, **more)


def _expected(losses: AnyArray, mixture: FloatArray) -> FloatArray:
    total = np.zeros(len(losses))
    for model in np.flatnonzero(mixture):
        total += mixture[model] * losses[:, model]
    return np.minimum(total, 1.0)


def _of_two(part: Part, positive: Any) -> Table:
    """Return the rows with labels that say whether they are of the positive class."""
    y, baseline = (None if labels is None else labels == positive for labels in (part.y, part.baseline))
    return replace(part, y=y, baseline=baseline).table()


def _violation(found: Any) -> float:
    outside = found.estimate - found.bound if found.goal.sense == "<=" else found.bound - found.estimate
    return max(float(outside), 0.0)


def _named(kind: str, texts: Iterable[str], *, start: int = 1) -> list[dict[str, str]]:
    return [{"name": f"{kind} {number}", "text": text} for number, text in enumerate(texts, start=start)]
