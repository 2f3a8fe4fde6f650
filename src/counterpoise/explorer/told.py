"""What the models say about rows, kept: how likely a mixture calls each of them positive, what it decides and loses."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from counterpoise._base.types import BoolArray, ByteArray, FloatArray, IntArray
from counterpoise.explorer.program import Solved
from counterpoise.metrics import cvar_curve, cvar_loss
from counterpoise.solvers.rows import BitRows
from counterpoise.solvers.tail import TailOracle

_HALF = 0.5


class Labels(NamedTuple):
    """Which rows are positive, and what they weigh."""

    is_positive: BoolArray
    weights: FloatArray | None
    defer_cost: float = 0.0  # of a row that is not decided

    def losses(self, shares: FloatArray, deferred: FloatArray | None = None) -> FloatArray:
        """Return the expected loss of each row, given how likely it is called positive, and how likely deferred."""
        wrong = np.abs(shares - self.is_positive)
        return wrong if deferred is None else wrong + deferred * (self.defer_cost - self.is_positive)


class Loss(NamedTuple):
    """The mean loss, and that of the tail where one is asked for."""

    mean: float
    tail: float | None


class Said(NamedTuple):
    """What an audit is made of: codes of decisions, or where these are drawn how likely each of them is."""

    answers: ByteArray | FloatArray
    are_drawn: bool

    @property
    def positive(self) -> FloatArray:
        """Return how likely each row is called positive, where answers are drawn."""
        return np.asarray(self.answers if self.answers.ndim == 1 else self.answers[:, 1])

    @property
    def deferred(self) -> FloatArray | None:
        """Return how likely each row is deferred; None where none may be."""
        return None if self.answers.ndim == 1 else np.asarray(self.answers[:, 2])


def said_of(rows: "ToldRows", solved: Solved, *, are_drawn: bool) -> Said:
    """Return what is said of rows: in expectation where decisions are drawn, so that no key plays a part."""
    if not are_drawn:
        return Said(rows.decided(solved), are_drawn=False)
    positive, deferred = rows.expected(solved), rows.deferred(solved)
    if deferred is None:
        return Said(positive, are_drawn=True)
    others = np.maximum(1.0 - positive - deferred, 0.0)
    return Said(np.column_stack([others, positive, deferred]), are_drawn=True)


class ToldRows(Protocol):
    """Rows about which everything was asked; only labelled ones have losses."""

    labels: Labels | None

    def expected(self, solved: Solved) -> FloatArray:
        """Return how likely a draw from the mixture calls each row positive."""

    def decided(self, solved: Solved) -> ByteArray:
        """Return 1 for rows that are called positive, 2 for deferred ones: by the model's draws, or else by vote."""

    def losses(self, solved: Solved) -> FloatArray:
        """Return the expected loss of each row over the draws."""

    def deferred(self, solved: Solved) -> FloatArray | None:
        """Return how likely each row is deferred; None where none may be."""

    def loss(self, solved: Solved, alpha: float | None) -> Loss:
        """Return the expected loss over the draws."""

    def said(self, solved: Solved) -> Said:
        """Return what an audit of the rows is made of."""


class SortedDraws:
    """Numbers from 0 to 1 that decide by which member each row is decided, sorted once."""

    def __init__(self, uniforms: FloatArray) -> None:
        self._order = np.argsort(uniforms, kind="stable")
        self._sorted = uniforms[self._order]

    def by_member(self, mixture: FloatArray) -> Iterator[tuple[int, IntArray]]:
        """Yield each member that decides about rows, and those rows: as ``mixtures.draws.pick`` would draw them."""
        members = np.flatnonzero(mixture)
        ends = np.searchsorted(self._sorted, np.cumsum(mixture)[members], side="left")
        ends[-1] = self._sorted.size
        first = 0
        for member, end in zip(members.tolist(), ends.tolist(), strict=True):
            if end > first:
                yield member, self._order[first:end]
                first = end


class AnsweredRows:
    """Rows with what each model says about them."""

    def __init__(self, bits: BitRows, uniforms: FloatArray | None, labels: Labels | None) -> None:
        self.labels, self._bits = labels, bits
        self._draws = None if uniforms is None else SortedDraws(uniforms)
        self._oracle: TailOracle | None = None
        self._means = np.zeros(0)

    def expected(self, solved: Solved) -> FloatArray:
        """Return how likely a draw from the mixture calls each row positive."""
        shares = np.empty(self._bits.n_rows)
        self._bits.scores(solved.mixture, shares)
        return np.minimum(shares, 1.0)

    def decided(self, solved: Solved) -> ByteArray:
        """Return which rows are called positive."""
        if self._draws is None:
            return (self.expected(solved) > _HALF).astype(np.uint8)
        said = np.empty(self._bits.n_rows, dtype=np.uint8)
        for member, rows in self._draws.by_member(solved.mixture):
            said[rows] = (self._bits.packed[rows, member >> 3] >> np.uint8(member & 7)) & 1
        return said

    def said(self, solved: Solved) -> Said:
        """Return what an audit of the rows is made of."""
        is_one = np.count_nonzero(solved.mixture) == 1
        return said_of(self, solved, are_drawn=self._draws is not None and not is_one)

    def losses(self, solved: Solved) -> FloatArray:
        """Return the expected loss of each row over the draws."""
        assert self.labels is not None  # noqa: S101 - asked of labelled rows
        return self.labels.losses(self.expected(solved))

    def deferred(self, solved: Solved) -> None:
        """Defer nothing."""

    def loss(self, solved: Solved, alpha: float | None) -> Loss:
        """Return the expected loss over the draws."""
        assert self.labels is not None  # noqa: S101 - asked of labelled rows
        if self._oracle is None:
            said = np.unpackbits(self._bits.packed, axis=1, bitorder="little")[:, : self._bits.n_models]
            wrong = said ^ self.labels.is_positive[:, None].view(np.uint8)
            self._oracle = TailOracle.of(wrong, self.labels.weights, 1.0)
            self._means = np.average(wrong, axis=0, weights=self.labels.weights)
        if alpha is None:
            return Loss(float(self._means @ solved.mixture), None)
        self._oracle.alpha = alpha
        return Loss(float(self._means @ solved.mixture), self._oracle.value(solved.mixture))


class ScoredRows:
    """Rows with the scores of each model, and the groups that rules look at."""

    def __init__(
        self,
        scores: FloatArray,
        groups: IntArray,
        n_groups: int,
        uniforms: FloatArray | None,
        labels: Labels | None,
    ) -> None:
        self.scores, self.groups, self.labels = scores, groups, labels
        self._n_groups = n_groups
        self._draws = None if uniforms is None else SortedDraws(uniforms)
        self._sorted: _SortedScore | None = None

    def expected(self, solved: Solved) -> FloatArray:
        """Return how likely a draw from the mixture calls each row positive."""
        return self._chances(solved, 1)

    def deferred(self, solved: Solved) -> FloatArray | None:
        """Return how likely each row is deferred; None where none may be."""
        return self._chances(solved, 2) if self._defers(solved) else None

    def decided(self, solved: Solved) -> ByteArray:
        """Return 1 for rows that are called positive, 2 for deferred ones."""
        if self._draws is None:
            return self._voted(solved)
        said = np.empty(len(self.groups), dtype=np.uint8)
        for member, rows in self._draws.by_member(solved.mixture):
            said[rows] = self._says(solved, member, rows)
        return said

    def said(self, solved: Solved) -> Said:
        """Return what an audit of the rows is made of."""
        is_one = np.count_nonzero(solved.mixture) == 1
        return said_of(self, solved, are_drawn=self._draws is not None and not is_one)

    def losses(self, solved: Solved) -> FloatArray:
        """Return the expected loss of each row over the draws."""
        assert self.labels is not None  # noqa: S101 - asked of labelled rows
        return self.labels.losses(self.expected(solved), self.deferred(solved))

    def loss(self, solved: Solved, alpha: float | None) -> Loss:
        """Return the expected loss over the draws."""
        assert self.labels is not None  # noqa: S101 - asked of labelled rows
        if self.scores.shape[1] > 1 or self._defers(solved):
            return _loss(self.losses(solved), self.labels.weights, alpha)
        if self._sorted is None:
            self._sorted = _SortedScore(self.scores, self.groups, self._n_groups, self.labels)
        return _loss(*self._sorted.cells(solved), alpha)

    def _defers(self, solved: Solved) -> bool:
        return solved.thresholds is not None and solved.thresholds.shape[1] > self._n_groups

    def _voted(self, solved: Solved) -> ByteArray:
        positive, deferred = self.expected(solved), self.deferred(solved)
        if deferred is None:
            return (positive > _HALF).astype(np.uint8)
        shares = np.column_stack([1.0 - positive - deferred, positive, deferred])
        return np.asarray(shares.argmax(axis=1), dtype=np.uint8)

    def _chances(self, solved: Solved, answer: int) -> FloatArray:
        """Return how likely each row gets an answer."""
        shares = np.zeros(len(self.groups))
        for member in np.flatnonzero(solved.mixture).tolist():
            shares += solved.mixture[member] * (self._says(solved, member, slice(None)) == answer)
        return np.minimum(shares, 1.0)

    def _says(self, solved: Solved, member: int, rows: IntArray | slice) -> ByteArray:
        """Return what one rule answers."""
        assert solved.thresholds is not None  # noqa: S101 - of rules
        groups, column = self.groups[rows], self.scores[rows, int(solved.models[member])]
        upper, *lower = solved.thresholds[member].reshape(-1, self._n_groups)
        above = (column > (upper[0] if upper.size == 1 else upper[groups])).astype(np.uint8)
        return np.asarray(np.where(above, above, 2 * (column > lower[0][groups])).astype(np.uint8) if lower else above)


class _SortedScore:
    """The rows of one score in falling order by group, summed by class: what rules lose takes a few look-ups."""

    def __init__(self, scores: FloatArray, groups: IntArray, n_groups: int, labels: Labels) -> None:
        weights = np.ones(len(groups)) if labels.weights is None else labels.weights
        self._groups = []
        for group in range(n_groups):
            rows = np.flatnonzero(groups == group)
            rows = rows[np.argsort(-scores[rows, 0], kind="stable")]
            by_class = weights[rows] * np.array([labels.is_positive[rows], ~labels.is_positive[rows]])
            sums = np.concatenate([np.zeros((2, 1)), np.cumsum(by_class, axis=1)], axis=1)
            self._groups.append((-scores[rows, 0], sums))

    def cells(self, solved: Solved) -> tuple[FloatArray, FloatArray]:
        """Return the loss and the weight of the rows of each class between two thresholds of a group."""
        assert solved.thresholds is not None  # noqa: S101 - of rules
        losses, masses = [], []
        for (rising, sums), thresholds in zip(self._groups, solved.thresholds.T, strict=True):
            falling = np.argsort(-thresholds, kind="stable")
            above = np.searchsorted(rising, -thresholds[falling], side="left")  # rows whose score is above each
            mass = np.diff(sums[:, np.concatenate([[0], above, [rising.size]])], axis=1)
            chances = 1.0 - np.cumsum(np.append(0.0, solved.mixture[falling]))
            losses += [1.0 - chances, chances]
            masses += [mass[0], mass[1]]
        return np.clip(np.concatenate(losses), 0.0, 1.0), np.maximum(np.concatenate(masses), 0.0)


def _loss(losses: FloatArray, weights: FloatArray | None, alpha: float | None) -> Loss:
    mean = float(np.average(losses, weights=weights))
    return Loss(mean, None if alpha is None else cvar_loss(losses, alpha, weights))


def curve(rows: ToldRows, solved: Solved, alphas: FloatArray) -> FloatArray:
    """Return the loss of the tail at each of many alphas."""
    assert rows.labels is not None  # noqa: S101 - asked of labelled rows
    return cvar_curve(rows.losses(solved), alphas, rows.labels.weights)
