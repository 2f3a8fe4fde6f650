"""The result of a run: one typed, versioned value, which is stored as one JSON file beside the model.

The report, the tables of the command line, ``--json``, comparisons, the explorer and what MLflow logs are functions
of it. ``RunResult.model_json_schema()`` is its schema; ``docs/guide/report.md`` explains it. A number that was not
measured is null.
"""

import math
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from counterpoise._base.text import short, shown
from counterpoise.runs.errors import RunFolderError, load_json_file
from counterpoise.runs.results import (
    AVERAGE,
    DEPLOYED,
    FIRST,
    MIXTURE,
    OWN,
    SPLITS,
    TEST,
    VERDICTS,
)

FORMAT: Final = "counterpoise run result 1"
_MOST_BYTES = 1 << 28
_ROUNDING = 1e-9  # part of the largest bound by which two bounds that are one may differ
_DIGITS = 9  # that count of a tail fraction, however small it is: 0.1 + 0.2 is 0.3


def _as_json(value: float) -> float | str | None:
    return value if math.isfinite(value) else None if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"


# NaN, which JSON has not, is null, and stands for what was not measured.
Number: TypeAlias = Annotated[
    float,
    BeforeValidator(lambda value: math.nan if value is None else value),
    PlainSerializer(_as_json, when_used="json"),
    WithJsonSchema({"anyOf": [{"type": ["number", "null"]}, {"enum": ["Infinity", "-Infinity"]}]}),
]
Decider: TypeAlias = Literal["mixture", "first model", "average", "deployed model"]
Verdict: TypeAlias = Literal["holds", "undecided", "fails", "not asked", ""]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class TailLoss(_Part):
    """The loss of the worst-off fraction of the rows, and the same once decisions are drawn."""

    alpha: float = Field(gt=0, le=1)
    value: Number
    realised: Number = math.nan
    high: Number = math.nan  # of new rows, with a confidence of 0.95 whatever their number: at the alpha of the run


class SplitLosses(_Part):
    """What one decider loses on the rows of one split, in expectation over its draws."""

    error: Number = math.nan
    defer_rate: Number = math.nan
    decided_error: Number = math.nan  # errors among the rows that are not deferred
    objective: Number = math.nan  # where it is neither the error nor the tail
    tails: list[TailLoss] = []

    def tail(self, alpha: float | None) -> TailLoss:
        """Return the loss of a tail; NaN where it was not measured."""
        wanted = "" if alpha is None else f"{alpha:.{_DIGITS}g}"
        matches = (one for one in self.tails if f"{one.alpha:.{_DIGITS}g}" == wanted)
        return next(matches, TailLoss(alpha=1.0, value=math.nan))


class SplitResult(_Part):
    """The rows of one split, and what each decider loses on them."""

    rows: Number = math.nan
    classes: dict[str, Number] = {}  # the share of each class
    losses: dict[Decider, SplitLosses] = {}


class SplitStanding(_Part):
    """How a goal stands on the rows of one split; of those that the model is compared with, two numbers only."""

    estimate: Number = math.nan
    low: Number = math.nan
    high: Number = math.nan
    bound: Number = math.nan
    margin: Number = math.nan
    verdict: Verdict = ""
    violation: Number = math.nan  # of the estimate itself
    rows: Number = math.nan
    note: str = ""  # why the rows cannot answer
    left_out: list[str] = []  # groups or classes with fewer rows than min_rows asks for


class FrontierPoint(_Part):
    """The least value of the objective for a bound, and what it is proven not to be below."""

    bound: FiniteFloat
    value: Number
    lower: Number = math.nan


class MarginResult(_Part):
    """What decisions aim at so that a goal holds on new rows, and what is expected there."""

    value: Number  # on the rows on which decisions were chosen
    low: Number = math.nan
    high: Number = math.nan
    standard_error: Number = math.nan
    optimism: Number = math.nan  # by how much the choice makes the value look better
    cost: Number = math.nan  # what the objective would gain without this margin
    reason: str = ""  # why the goal has no margin


class GoalResult(_Part):
    """One goal: its text, how it stands for each decider on each split, and what other bounds cost."""

    text: str
    confidence: Number = math.nan
    margin: MarginResult | None = None  # between the bound and what decisions aim at
    splits: dict[str, dict[Decider, SplitStanding]] = {}
    drawn: SplitStanding | None = None  # of the drawn decisions
    tradeoff: list[FrontierPoint] = []

    def on(self, split: str, decider: str = MIXTURE) -> SplitStanding:
        """Return how the goal stands on the rows of a split."""
        return self.splits.get(split, {}).get(decider, SplitStanding())  # type: ignore[call-overload, no-any-return]

    @property
    def cost(self) -> float:
        """Return by how much its bound raises the objective above the least of all bounds tried; NaN where unknown."""
        bound = next((self.on(split).bound for split in self.splits), math.nan)
        scale = max((abs(point.bound) for point in self.tradeoff), default=1.0)
        at = [point.value for point in self.tradeoff if abs(point.bound - bound) <= _ROUNDING * scale]
        return at[0] - min(point.value for point in self.tradeoff) if at else math.nan


class GroupRate(_Part):
    """A rate of a group: out of how many rows it is a count, or the interval of an expectation."""

    value: Number = math.nan
    rows: Number = math.nan
    low: Number = math.nan
    high: Number = math.nan


class GroupResult(_Part):
    """The rates of a group; the first group is all rows."""

    text: str
    n_samples: Number = math.nan
    rates: dict[str, GroupRate] = {}

    def rate(self, name: str) -> GroupRate:
        """Return a rate; NaN where it was not measured."""
        return self.rates.get(name, GroupRate())


class RuleResult(_Part):
    """A rule or a model that decides: its share, and its error on the rows that count."""

    title: str = ""
    description: str = ""
    share: Number = math.nan
    error: Number = math.nan


class SegmentResult(_Part):
    """Rows that a few conditions describe, and how much of the tail they are."""

    text: str
    rows: Number = math.nan
    share: Number = math.nan  # of its rows that are in the tail
    part: Number = math.nan  # of the tail that lies in it
    lift: Number = math.nan  # its share, in terms of that of all rows


class Cut(_Part):
    """Where a rule cuts scores, how often it decides, and where scores begin that it defers."""

    threshold: FiniteFloat
    share: FiniteFloat
    lower: Number = math.nan


class ScorePanel(_Part):
    """A histogram of the scores of a group by class, and the thresholds of the rules."""

    text: str
    low: FiniteFloat = 0.0
    high: FiniteFloat = 1.0
    positive: list[Number] = []
    negative: list[Number] = []
    rules: list[Cut] = []

    @model_validator(mode="after")
    def _check_ends(self) -> Self:
        if not 0 < self.high - self.low < math.inf:
            raise ValueError(f"low must be less than high; got {self.low:g} and {self.high:g}")
        return self


class ScoreTenth(_Part):
    """The mean score of a tenth of the rows, and the share of positive ones in it."""

    score: Number
    share: Number


class ScoreResult(_Part):
    """How well scores rank and fit the rows that count, and how they are spread where rules were chosen."""

    auc: Number = math.nan
    brier: Number = math.nan
    tenths: list[ScoreTenth] = []
    panels: list[ScorePanel] = []


class AnswerCount(_Part):
    """How many rows of a class get an answer, by the places of both; None is the place of deferred rows."""

    label: int
    answer: int | None
    rows: FiniteFloat


class SwapResult(_Part):
    """Rows about which the deployed model decides otherwise, by the places of both decisions; of a group, or of all."""

    before: int
    after: int | None  # None is the place of deferred rows
    group: str = ""  # such as sex=F; nothing for all rows
    rows: FiniteFloat = 0.0
    right: FiniteFloat = 0.0  # of these: the new decision is the truth
    was_right: FiniteFloat = 0.0  # the decision of the deployed model is


class DeferralLoss(_Part):
    """What the best mixture that defers at most so many rows does on the rows of a split."""

    tail: Number = math.nan
    error: Number = math.nan
    defer_rate: Number = math.nan
    decided_error: Number = math.nan


class DeferralPoint(_Part):
    """One limit on deferred rows."""

    limit: FiniteFloat
    splits: dict[str, DeferralLoss]


class DeferralResult(_Part):
    """What a deferred row costs and is called, and what other limits on deferred rows would buy."""

    cost: FiniteFloat
    label: str = ""
    curve: list[DeferralPoint] = []


class ObjectiveResult(_Part):
    """What was minimised: "cvar" (the tail), "worst-group", "risk", "rate", or the method's "own"."""

    kind: str = OWN
    text: str = ""


class DrawnResult(_Part):
    """The error and the tail of the drawn decisions, which depend on the key, and the share of rows that are drawn."""

    error: Number = math.nan
    cvar: Number = math.nan
    share: Number = math.nan  # of the rows, by weight: those that no draw decides about get the same with every key


class DataSummary(_Part):
    """What the data are: classes in their order, the positive one, the columns, and sentences."""

    name: str = ""
    classes: list[str] = []
    positive: str | None = None
    columns: dict[str, list[str]] = {}  # the features, numeric and categorical, and all columns of texts
    lines: list[str] = []

    @model_validator(mode="after")
    def _check_positive(self) -> Self:
        if self.positive is not None and self.positive not in self.classes:
            raise ValueError(f"positive must be one of the classes; got {shown(self.positive)}")
        return self

    @property
    def n_features(self) -> float:
        """Return how many columns the model sees; NaN where there is none."""
        known = [self.columns[kind] for kind in ("numeric", "categorical") if kind in self.columns]
        return float(sum(map(len, known))) if known else math.nan


class RunResult(_Part):
    """Every number of a run, and the words that belong to them."""

    format: Literal["counterpoise run result 1"] = FORMAT
    settings: dict[str, Any] = {}  # the goals file with its defaults
    data: DataSummary = DataSummary()
    chosen_on: str = ""  # the split that decisions were chosen on
    met_on: str = ""  # the split on which the goals are met by construction
    method: str = ""
    objective: ObjectiveResult | None = None
    is_drawn: bool = False  # numbers are then expectations over the draws
    shares_rows: bool = False  # rules give a row to several classes
    certificate: str = ""  # what rules of class probabilities are proven best among
    confidence: Number = math.nan  # with which the goals hold together on new rows, where it was reached
    probability: Number = math.nan  # where it was not reached: with which they do, about
    margin_cost: Number = math.nan  # by how much the margins of the goals raise the objective
    proof_rows: int = 0  # on which exact tests prove it; 0 where nothing is proven
    splits: dict[str, SplitResult] = {}
    goals: list[GoalResult] = []
    groups: list[GroupResult] = []
    rules: list[RuleResult] = []
    segments: list[SegmentResult] = []
    scores: ScoreResult = ScoreResult()
    answers: dict[Decider, list[AnswerCount]] = {}  # on the rows that count
    swaps: list[SwapResult] = []  # of two classes, on the rows that count: what changes beside the deployed model
    deferral: DeferralResult | None = None
    drawn: DrawnResult | None = None
    advice: list[str] = []  # what was tried where a goal is missed
    examples: list[str] = []  # decisions explained
    warnings: list[str] = []
    why: dict[str, str] = {}  # why parts are missing
    source: str = ""  # the table that the numbers are of, where there is no run
    commands: list[str] = []
    versions: dict[str, str] = {}
    seconds: dict[str, float] = {}
    checksums: dict[str, str] = {}

    @model_validator(mode="after")
    def _check_places(self) -> Self:
        places = {place for cells in self.answers.values() for one in cells for place in (one.label, one.answer)}
        deferred = set() if self.deferral is None else {None}
        if not places <= {*range(len(self.data.classes)), *deferred}:
            raise ValueError(f"answers must be places of the {len(self.data.classes)} classes, or deferred")
        return self

    @property
    def judged(self) -> str:
        """Return the split that counts: the test rows, or where there are none the last before."""
        known = [split for split in SPLITS if split in self.splits]
        return known[-1] if known else TEST

    @property
    def alpha(self) -> float | None:
        """Return the requested tail fraction."""
        alpha = self.settings.get("alpha")
        return float(alpha) if isinstance(alpha, (int, float)) and not isinstance(alpha, bool) else None

    @property
    def tail(self) -> float | None:
        """Return the tail fraction where it is a part of the rows, not all."""
        return None if self.alpha is None or self.alpha >= 1 else self.alpha

    @property
    def is_mixture(self) -> bool:
        """Tell whether several models or rules decide, or one that shares rows among classes."""
        return self.shares_rows or sum(rule.share > 0 for rule in self.rules) > 1

    def losses(self, decider: str = MIXTURE, split: str | None = None) -> SplitLosses:
        """Return what a decider loses, by default on the rows that count; NaN where it was not measured."""
        split_result = self.splits.get(self.judged if split is None else split, SplitResult())
        return split_result.losses.get(decider, SplitLosses())  # type: ignore[call-overload, no-any-return]

    def deciders(self, quantity: str = "error") -> list[str]:
        """Return the deciders of which a number was measured on some split; errors also where there are tails."""
        measured = [one for split in self.splits.values() for one in split.losses.items()]
        known = {decider for decider, losses in measured if not math.isnan(getattr(losses, quantity))}
        if quantity == "error":
            known |= {decider for decider, losses in measured if losses.tails}
        return [decider for decider in (MIXTURE, FIRST, AVERAGE, DEPLOYED) if decider in known]

    def metrics(self) -> dict[str, float]:
        """Return the numbers of the rows that count by name, as ``mlflow.log_metrics`` takes them."""
        losses = self.losses()
        metrics = {"error": losses.error, "cvar": losses.tail(self.alpha).value, "objective": losses.objective}
        metrics |= {"defer_rate": losses.defer_rate, "plain_error": self.losses(FIRST).error}
        metrics["deployed_error"] = self.losses(DEPLOYED).error
        for number, goal in enumerate(self.goals, start=1):
            standing = goal.on(self.judged)
            metrics |= {f"goal_{number}_{key}": getattr(standing, key) for key in ("estimate", "margin", "violation")}
            metrics[f"goal_{number}_verdict"] = VERDICTS.get(standing.verdict, math.nan)
        return {name: value for name, value in metrics.items() if math.isfinite(value)}


def confusion(result: RunResult, decider: str) -> dict[str, float]:
    """Return right and wrong answers of a decider by class, and deferred rows; none where no class is positive."""
    cells, positive = result.answers.get(decider, []), result.data.positive  # type: ignore[call-overload]
    if positive is None or not cells:
        return {}
    place = result.data.classes.index(positive)
    names = {(True, True): "true positives", (False, True): "false positives"}
    names |= {(True, False): "false negatives", (False, False): "true negatives"}
    counts = dict.fromkeys(names.values(), 0.0)
    if result.deferral is not None:
        counts |= {"deferred positives": 0.0, "deferred negatives": 0.0}
    for cell in cells:
        is_positive = cell.label == place
        deferred = f"deferred {'positives' if is_positive else 'negatives'}"
        counts[deferred if cell.answer is None else names[is_positive, cell.answer == place]] += cell.rows
    return counts


def read_result(path: Path) -> RunResult:
    """Read the result of a run, and refuse a file that is something else in a sentence."""
    again = "Fit the run again in another folder, or name a finished run."
    wrong = "must hold the result of a run; it is not valid JSON"
    words = load_json_file(path, _MOST_BYTES, RunFolderError, wrong, f" {again}")
    kind = words.get("format") if isinstance(words, dict) else type(words).__name__
    if kind != FORMAT:
        raise RunFolderError(
            f"{path} must hold the result of a run, of the format {FORMAT!r}; got {short(repr(kind))}. {again}"
        )
    try:
        return RunResult.model_validate(words)
    except (ValidationError, RecursionError, OverflowError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": str(error)}
        where = ".".join(map(str, first["loc"]))
        raise RunFolderError(f"{path} is damaged at {short(where)!r}: {first['msg']}. {again}") from error
