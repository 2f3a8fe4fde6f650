"""Thresholds of one score that a search chooses among, and rules of these as running sums over cells.

A cell is a group and a bin of the score: the rows between two neighbouring thresholds of the grid. A rule has for each
group the number of bins above its threshold; where rows may be deferred also the number above its lower threshold.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from scipy.optimize import isotonic_regression

from counterpoise._base.types import FloatArray, IntArray
from counterpoise.goals.terms import Pairs
from counterpoise.rules.scores.cuts import CutRules
from counterpoise.rules.scores.sums import Sums
from counterpoise.rules.scores.table import DEFERRED, RankedScores

_POSITIVE = 1


class ThresholdCells(NamedTuple):
    """Rows of each dataset by group and bin of the score, and rules by how many bins are above their thresholds."""

    rules: IntArray  # (n_rules, n_edges): of each group above the upper thresholds, then above the lower ones
    starts: IntArray  # (n_groups + 1,): where the bins of each group begin among all cells
    bins: Mapping[str, IntArray]  # by dataset the cell of each row
    pairs: Mapping[str, tuple[IntArray, IntArray, IntArray]]  # of pairs: the pair's cell, and each cell's two bins
    n_answers: int

    @property
    def n_rules(self) -> int:
        """Return the number of rules."""
        return len(self.rules)

    def cells(self, name: str) -> IntArray:
        """Return the cell of each row, or pair of rows, of a dataset."""
        return self.pairs[name][0] if name in self.pairs else self.bins[name]

    def n_cells(self, name: str) -> int:
        """Return how many cells a dataset has."""
        return self.pairs[name][1].size if name in self.pairs else int(self.starts[-1])

    def answered(self, name: str, answer: int, values: FloatArray) -> FloatArray:
        """Return sums over the cells that each rule gives an answer to: (n_values, n_cells) to (n_values, n_rules).

        A pair counts as positive where its two rows are decided unlike: from the higher one on, and no longer from the
        lower one on.
        """
        total = values.sum(axis=1, keepdims=True)
        if name in self.pairs:
            _, first, second = self.pairs[name]
            size = int(self.starts[-1])
            flips = [np.bincount(first, own, size) - np.bincount(second, own, size) for own in values]
            values = np.reshape(flips, (len(values), size))
        above = self._above(values, 0)
        if answer == _POSITIVE:
            return above
        reached = above if self.n_answers <= DEFERRED else self._above(values, 1)
        return reached - above if answer == DEFERRED else total - reached

    def _above(self, values: FloatArray, edge: int) -> FloatArray:
        """Return sums over the cells above the upper (0) or lower (1) thresholds of each rule."""
        n_groups, above = self.starts.size - 1, np.zeros((len(values), self.n_rules))
        for group, (start, end) in enumerate(pairwise(self.starts.tolist())):
            used = np.flatnonzero(values[:, start:end].any(axis=1))
            running = np.zeros((used.size, end - start + 1))
            np.cumsum(values[used, start:end], axis=1, out=running[:, 1:])
            above[used] += running[:, self.rules[:, edge * n_groups + group]]
        return above

    def chances(self, name: str, rule: int) -> FloatArray:
        """Return which answer one rule gives to each cell, shape (n_answers, n_cells): 1 for it, 0 for others."""
        n_groups, sizes = self.starts.size - 1, np.diff(self.starts)
        bins = np.arange(int(self.starts[-1])) - np.repeat(self.starts[:-1], sizes)
        upper, lower = (
            np.repeat(self.rules[rule, edges], sizes) for edges in (slice(n_groups), slice(-n_groups, None))
        )
        codes = np.where(bins < upper, _POSITIVE, np.where(bins < lower, DEFERRED, 0))
        if name in self.pairs:
            _, first, second = self.pairs[name]
            codes = codes[first] ^ codes[second]
        return np.asarray(codes == np.arange(self.n_answers)[:, None], dtype=np.float64)

    def only(self, places: IntArray) -> Self:
        """Return some of the rules."""
        return self._replace(rules=self.rules[places])

    def with_rules(self, rules: IntArray) -> Self:
        """Return other rules about the same cells."""
        return self._replace(rules=rules)


class ThresholdGrid(NamedTuple):
    """Some of the cuts of one model in each group, from the highest threshold to the lowest."""

    ranked: RankedScores
    model: int
    kept: tuple[IntArray, ...]  # of each group the cuts, the first and the last of all among them

    @classmethod
    def of(cls, ranked: RankedScores, model: int, most: int, used: Sequence[IntArray] = ()) -> Self:
        """Return all cuts of a model, or about ``most`` in all with equal parts of the rows between them.

        ``used`` are cuts of each group that are kept in any case, with all of their neighbours that there is room for.
        """
        cuts, kept = ranked.cuts, []
        own = [np.arange(start, end) for start, end in pairwise(cuts.starts[model].tolist())]
        n_cuts = sum(part.size for part in own)
        if n_cuts <= most:
            return cls(ranked, model, tuple(own))
        mass = ranked.spread_above
        for group, every in enumerate(own):
            reached = mass[every]
            n_kept = max(int(most * every.size / n_cuts), 2)
            span = max(float(reached[-1] - reached[0]), 1e-300)
            spread = (reached - reached[0]) / span + np.linspace(0.0, 1.0, every.size)
            thin = every[np.minimum(np.searchsorted(spread, np.linspace(0.0, spread[-1], n_kept)), every.size - 1)]
            parts = [every[:1], thin, every[-1:]]
            for cut in used[group].tolist() if used else ():  # all cuts between the neighbours of a good one
                at = int(np.searchsorted(thin, cut))
                low, high = thin[max(at - 1, 0)], thin[min(at + 1, thin.size - 1)]
                step = max(1, int(high - low) * max(len(used[group]), 1) // n_kept)
                parts += [np.arange(low, high + 1, step), np.array([cut])]
            kept.append(np.unique(np.concatenate(parts)))
        return cls(ranked, model, tuple(kept))

    @property
    def is_complete(self) -> bool:
        """Return whether the grid has all cuts of the model."""
        starts = self.ranked.cuts.starts[self.model]
        return sum(part.size for part in self.kept) == int(starts[-1] - starts[0])

    @property
    def n_groups(self) -> int:
        """Return the number of groups."""
        return len(self.kept)

    @property
    def defers(self) -> bool:
        """Return whether rules have a lower threshold too."""
        return self.ranked.cuts.defers

    @property
    def sizes(self) -> IntArray:
        """Return how many bins each edge of a rule can be at most above."""
        return np.array([part.size - 1 for part in self.kept] * (1 + self.defers))

    def cells(self, rules: IntArray, pairs: Sequence[Pairs] = ()) -> ThresholdCells:
        """Return rules of the grid with the cells of all rows, and of pairs of rows."""
        starts = np.cumsum([0, *(part.size - 1 for part in self.kept)])
        places, first, bins = self.ranked.cuts.places[self.model], 0, {}
        begin, end = self.ranked.cuts.starts[self.model, [0, -1]]
        is_kept = np.zeros(int(end - begin), dtype=np.int64)
        is_kept[np.concatenate(self.kept) - begin] = 1
        bin_of = np.cumsum(is_kept) - is_kept  # of each cut: how many are kept before it, of this group and all others
        for name, groups in self.ranked.codes.items():
            # each group has one cut more than it has bins
            cells = bin_of[places[first : first + groups.size] - begin] - groups - 1
            bins[name], first = cells, first + groups.size
        found: dict[str, tuple[IntArray, IntArray, IntArray]] = {}
        for pair in pairs:
            both = np.sort(np.column_stack([bins[pair.rows], bins[pair.twins]]), axis=1)
            distinct, cells = np.unique(both, axis=0, return_inverse=True)
            found[pair] = cells.ravel(), distinct[:, 0], distinct[:, 1]
        return ThresholdCells(rules, starts, bins, found, 2 + self.defers)

    def places(self, rules: CutRules) -> IntArray:
        """Return rules of the model by the bins that are above their cuts: those of the nearest cuts of the grid."""
        n_cuts, columns = self.ranked.cuts.n_cuts, []
        for edge, column in enumerate(rules.cuts.T):
            kept = self.kept[edge % self.n_groups]
            columns.append(np.minimum(np.searchsorted(kept, column % n_cuts), kept.size - 1))
        return np.column_stack(columns)

    def cut_rules(self, rules: IntArray) -> CutRules:
        """Return rules by their cuts, given how many bins are above each edge."""
        n_cuts = self.ranked.cuts.n_cuts
        columns = [
            self.kept[edge % self.n_groups][column] + n_cuts * (edge // self.n_groups)
            for edge, column in enumerate(rules.T)
        ]
        return CutRules(np.full(len(rules), self.model), np.column_stack(columns))

    def reach(self, above: FloatArray | None = None) -> list[FloatArray]:
        """Return for each group the part of its labelled rows above each cut, or of others, given those above cuts."""
        above = self.ranked.spread_above if above is None else above
        return [above[kept] / max(float(above[kept[-1]]), 1e-300) for kept in self.kept]

    def informedness(self, rules: IntArray) -> FloatArray:
        """Return the true less the false positive rate of rules, over all labelled rows: 0 where they tell nothing.

        Of two thresholds in a group the mean of both.
        """
        positives, total = self.ranked.positives_above, np.zeros(len(rules))
        for sign, above in ((1.0, positives), (-1.0, self.ranked.mass_above - positives)):
            whole = sum(float(above[kept[-1]]) for kept in self.kept)
            for edge, column in enumerate(rules.T):
                total += sign / max(whole, 1e-300) * above[self.kept[edge % self.n_groups]][column]
        return total / (1 + self.defers)

    def smoothed(self, losses: Sums) -> FloatArray:
        """Return what each place of each edge adds to losses, without small dips, which are chance: convex.

        The higher a score, the likelier is the positive class, so what the next rows add to a loss should rise from cut
        to cut. Isotonic regression makes it so. A rule is then not moved far inside its goals to where the rows happen
        to fit. The result holds the edges one after the other, shape (n_losses, n_places).
        """
        n_cuts, reach, columns = self.ranked.cuts.n_cuts, self.reach(), []
        for edge in range(self.sizes.size):
            kept, along = self.kept[edge % self.n_groups], reach[edge % self.n_groups]
            own, steps = losses.added[:, kept + n_cuts * (edge // self.n_groups)], np.diff(along)
            has_rows = np.flatnonzero(steps > 0)  # other datasets have cuts between them
            smooth = np.repeat(own[:, :1], kept.size, axis=1)
            for loss, values in zip(smooth, own, strict=True):
                if has_rows.size:
                    rises = np.zeros(steps.size)
                    slopes = np.diff(values)[has_rows] / steps[has_rows]
                    rises[has_rows] = steps[has_rows] * isotonic_regression(slopes, weights=steps[has_rows]).x
                    loss[1:] += np.cumsum(rises)
            columns.append(smooth)
        return np.hstack(columns)

    def edges(self) -> IntArray:
        """Return where the places of each edge begin among those of ``smoothed``."""
        return np.cumsum([0, *(self.sizes[:-1] + 1)])
