"""Rules as numbers of cuts: a model, and one of its cuts for each group."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from counterpoise._base.types import BoolArray, FloatArray, IntArray
from counterpoise.mixtures.scores.cuts import Cuts

_SLIVER = 1e-12  # shares below this are rounding of sums
_HALF = 0.5  # the usual threshold of a probability


class Rule(NamedTuple):
    """A rule as plain data: it says the positive class where the score of a model is above the threshold of the group.

    A rule may defer: it says the negative class where the score is not above the lower threshold of the group, and lets
    a person decide between the two.

    Attributes
    ----------
    model : int
        Place of the model among ``estimators_``.
    thresholds : dict from names of groups to floats
        Such as ``{"sex=F": 0.41, "sex=M": 0.53}``, or ``{"all": 0.5}`` for one threshold; infinite where nobody, or
        everybody, of a group is called positive.
    lower : dict from names of groups to floats, or None
        Where scores begin that are deferred, in each group no higher than the threshold. None: nobody is deferred.
    """

    model: int
    thresholds: dict[str, float]
    lower: dict[str, float] | None = None

    @property
    def levels(self) -> tuple[list[float], list[float]]:
        """Return the thresholds and the lower ones, by group."""
        upper = [*self.thresholds.values()]
        return upper, upper if self.lower is None else [self.lower[group] for group in self.thresholds]

    def __str__(self) -> str:
        shown = ", ".join(f"{group}: {threshold:.4g}" for group, threshold in self.thresholds.items())
        if self.lower is None:
            return f"model {self.model} above {shown}"
        lower = ", ".join(f"{group}: {threshold:.4g}" for group, threshold in self.lower.items())
        return f"model {self.model} above {shown}; deferred above {lower}"

    def check_loaded(self) -> None:
        """Check what came from a file."""
        if type(self.model) is not int or not all(type(one) is float for one in self.thresholds.values()):
            raise ValueError("it is no model with thresholds")
        if self.lower is None:
            return
        if tuple(self.lower) != tuple(self.thresholds) or not all(type(one) is float for one in self.lower.values()):
            raise ValueError("its lower thresholds are of other groups")
        if any(lower > upper for upper, lower in zip(*self.levels, strict=True)):
            raise ValueError("a lower threshold is above the upper one")


@dataclass(frozen=True, eq=False)
class CutRules:
    """Rules of the scores whose cuts are known."""

    models: IntArray  # (n_rules,)
    cuts: IntArray  # (n_rules, n_groups), or (n_rules, 2 n_groups) where they have a lower edge in each group too

    def __len__(self) -> int:
        return self.models.size

    def joined(self, others: Self) -> Self:
        """Return these rules, then those of the others that are not among them."""
        places = {
            cuts.tobytes(): place for place, cuts in reversed(list(enumerate(others.cuts)))
        }  # the first of equals
        known = {cuts.tobytes() for cuts in self.cuts}
        fresh = sorted(place for cuts, place in places.items() if cuts not in known)
        return type(self)(
            np.concatenate([self.models, others.models[fresh]]), np.concatenate([self.cuts, others.cuts[fresh]])
        )

    def only(self, chosen: IntArray | BoolArray | slice) -> Self:
        """Return some of the rules."""
        return type(self)(self.models[chosen], self.cuts[chosen])


def at_usual(cuts: Cuts, usual: FloatArray, defer_cost: float | None = None) -> CutRules:
    """Return for each model the rule of its usual threshold, for all groups, and that which defers as probabilities do.

    Where scores are probabilities, cut at one half, to defer is cheaper than to guess where both classes are more
    likely than the cost of deferring (Chow 1970).
    """
    found = [(model, threshold, threshold) for model, threshold in enumerate(usual.tolist())]
    if defer_cost is not None and defer_cost < _HALF:
        edges = 1.0 - defer_cost, defer_cost
        found += [(model, *edges) for model, threshold in enumerate(usual.tolist()) if threshold == _HALF]
    return _with_levels(cuts, found)


def usual_rules(cuts: Cuts, usual: FloatArray, defer_cost: float | None = None) -> CutRules:
    """Return the rules that any search starts from: of each model its usual ones, nobody, everybody, all deferred."""
    ends = [(np.inf, np.inf), (-np.inf, -np.inf), *([(np.inf, -np.inf)] if cuts.defers else [])]
    found = []
    for model, threshold in enumerate(usual.tolist()):
        found += [(model, threshold, threshold), *((model, *end) for end in ends)]
    start = _with_levels(cuts, found)
    return start.only(slice(0)).joined(start).joined(at_usual(cuts, usual, defer_cost))


def _with_levels(cuts: Cuts, levels: list[tuple[int, float, float]]) -> CutRules:
    """Return rules of models with an upper and a lower threshold for all groups."""
    rows = [cuts.at(model, *(np.full(cuts.n_groups, level) for level in both)) for model, *both in levels]
    return CutRules(np.array([model for model, *_ in levels]), np.array(rows))


def coupled(rules: CutRules, mixture: FloatArray) -> tuple[CutRules, FloatArray]:
    """Return rules and shares with the same chance of each cut in each group, that fall together in all groups.

    What a mixture says about a row depends on the chances of the cuts of its own group alone. So the rules can be
    ordered: where one has a higher threshold than another in some group, it has a lower one in none. Of two edges in
    a group each is ordered by itself, and stays on its side of the other.
    """
    parts = [
        _coupled_cuts(rules.cuts[rules.models == model], mixture[rules.models == model])
        for model in _used(rules, mixture)
    ]
    models = np.repeat(_used(rules, mixture), [len(shares) for _, shares in parts])
    shares = np.concatenate([shares for _, shares in parts])
    return CutRules(models, np.concatenate([cuts for cuts, _ in parts])), shares / shares.sum()


def _used(rules: CutRules, mixture: FloatArray) -> IntArray:
    return np.unique(rules.models[mixture > 0])


def _coupled_cuts(cuts: IntArray, shares: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the cuts of one model's rules, those of the lowest thresholds first, and their shares."""
    orders = np.argsort(-cuts, axis=0, kind="stable")
    edges = np.cumsum(shares[orders], axis=0)  # by group: where the cut of each rule ends in the unit interval
    ends = np.unique(edges)
    ends = ends[np.append(np.diff(ends) > _SLIVER, True)]
    ends = ends[ends > _SLIVER]
    middles = ends - np.diff(ends, prepend=0.0) / 2
    columns = [
        cuts[order[np.minimum(np.searchsorted(edge, middles), len(edge) - 1)], group]
        for group, (order, edge) in enumerate(zip(orders.T, edges.T, strict=True))
    ]
    found, lengths = np.column_stack(columns), np.diff(ends, prepend=0.0)
    firsts = np.flatnonzero(np.append(True, (found[1:] != found[:-1]).any(axis=1)))  # equal neighbours are one rule
    return found[firsts], np.add.reduceat(lengths, firsts)
