"""Rules of class probabilities as plain data: two tiers of answers, by benefit.

Rows have probabilities p of the classes and lose ``1 - q[label]`` where a rule answers k with probability q[k]. With t
the threshold of the tail of a fraction alpha, and B[k] what answer k is worth to goals and averages, the best answers
for right probabilities minimize

    sum over labels j of p[j] max(1 - q[j] - t, 0) / alpha  -  sum over answers k of q[k] B[k],

which grows by ``p[k] / alpha + B[k]`` a unit of q[k] up to ``1 - t`` and by B[k] beyond: a fill from the top. Where a
row can be deferred at a cost c, for a benefit of its own, the cheapest of three is taken: the fill; deferring, at
``max(c - t, 0) / alpha``; or deferring with a part of ``(1 - t) / (1 - c)``, which caps the loss of every label at t.

A rule of the largest benefit follows the probabilities, and where these are a little wrong its labelled cost at the
same dual can be lowered: a constant added to the benefit of one answer lets it win more rows or fewer, those of the
smallest margins first. So the best constant is the cheapest prefix of the rows by margin, computed exactly, answer by
answer. On covertype, every recall at least 0.7, that took the error from 0.281 to 0.271, on other rows from 0.285 to
0.272.
"""

from typing import NamedTuple

import numpy as np

from counterpoise._base.types import FloatArray, IntArray

SOFT = -1  # the layer of rules that draw
_ROUNDING = 1e-9  # of the number of shares that make up 1, before it is rounded up
_DIGITS = 9  # of a probability that are compared: another batch may differ in the last


class TierRule(NamedTuple):
    """A two-tier rule: a share of ``1 - level`` for each class by falling first-tier benefit, the rest to the best.

    The benefit of an answer is ``B = p @ benefits[group]``, in the first tier ``p / alpha + B``. Classes get
    their share while the first is at least the largest B and anything is left; what is left goes to the class of the
    largest B. With level 0 the class of the largest first-tier benefit has it all.

    Attributes
    ----------
    model : int
        Place of the model among ``estimators_``.
    level : float in [0, 1)
        The threshold t of the tail.
    alpha : float
        The fraction of the tail; infinite where there is none.
    benefits : array of shape (n_groups, n_classes, n_answers)
        By group, label and answer; the last answer is deferral, where there is a cost of it.
    layer : int
        The step of the fill that alone decides, for a rule without draws; -1 for all of them.
    defer_cost : float or None
        The loss of a deferred row; None where no row is deferred.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.rules.class_scores.rules import TierRule
    >>> probabilities = np.array([[0.5, 0.4, 0.1], [0.8, 0.1, 0.1]])
    >>> nobody = np.zeros(2, dtype=np.int64)
    >>> TierRule(0, 0.5, 0.1, np.eye(3)[None] * 10).answers(probabilities, nobody).tolist()
    [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]
    """

    model: int
    level: float
    alpha: float
    benefits: FloatArray
    layer: int = SOFT
    defer_cost: float | None = None

    @property
    def n_layers(self) -> int:
        """Return how many steps the fill can have."""
        return int(np.ceil(1.0 / (1.0 - self.level) - _ROUNDING))

    @property
    def draws(self) -> bool:
        """Return whether some rows may get one of several answers."""
        return self.layer == SOFT and self.level > 0

    def first_tier_benefits(self, probabilities: FloatArray, groups: IntArray) -> FloatArray:
        """Return the first-tier benefit of each answer about each row; where level is 0 the largest decides."""
        second = np.einsum("ij,ijk->ik", probabilities, self.benefits[groups])
        second[:, : probabilities.shape[1]] += probabilities / self.alpha
        if self.defer_cost is not None:
            second[:, -1] += (1.0 - self.defer_cost) / self.alpha
        return np.asarray(second)

    def answers(self, probabilities: FloatArray, groups: IntArray) -> FloatArray:
        """Return the probability of each answer for each row, shape (n_rows, n_answers)."""
        answers = np.empty((len(probabilities), self.benefits.shape[2]))
        for start in range(0, len(answers), _CHUNK):
            rows = slice(start, start + _CHUNK)
            answers[rows] = self._answers_of_few(probabilities[rows], groups[rows]).T
        return answers

    def _answers_of_few(self, probabilities: FloatArray, groups: IntArray) -> FloatArray:
        """Return the answers with a line for each: whole lines are added and compared, which stay in the cache."""
        gain, share, by_class = 1.0 / self.alpha, 1.0 - self.level, np.ascontiguousarray(probabilities.T)
        second = expected_benefits(by_class, groups, self.benefits)
        shares = fill_tiers(by_class, second, gain, share, self.layer)
        if self.defer_cost is None:
            return shares
        defer_rows(by_class, second, gain, share, self.defer_cost, shares)
        if self.layer == SOFT:
            return shares
        n_answers, is_deferred = len(shares), shares[-1] > self.layer / self.n_layers  # in part: by first layers
        return np.asarray(np.eye(n_answers)[:, np.where(is_deferred, n_answers - 1, shares[:-1].argmax(axis=0))])

    def __str__(self) -> str:
        kind = "one answer" if self.layer != SOFT or not self.level else f"shares of {1 - self.level:.3g}"
        return f"model {self.model}, {kind} by benefit"

    def check_loaded(self) -> None:
        """Check the values that were read from a file."""
        numbers = (self.level, self.alpha, 0.0 if self.defer_cost is None else self.defer_cost)
        if type(self.model) is not int or not all(type(one) is float for one in numbers) or type(self.layer) is not int:
            raise ValueError("it is no model with a level, a tail and a layer")
        if not 0 <= self.level < 1 or not self.alpha > 0 or self.benefits.ndim != 3:  # noqa: PLR2004
            raise ValueError("its level, tail or benefits are out of range")
        if self.defer_cost is not None and not 0 <= self.defer_cost <= 1:
            raise ValueError("its cost of deferral is out of range")
        if self.benefits.dtype != np.float64 or not np.isfinite(self.benefits).all():
            raise ValueError("its benefits are not finite numbers")


_CHUNK = 4096  # rows that are answered at once
_FILLED = 1e-9  # of a row's mass that is left: rounding
_NEAR = 1e-9  # part of the largest benefit by which two must differ: another batch may add them up in another order


def expected_benefits(probabilities: FloatArray, groups: IntArray, benefits: FloatArray) -> FloatArray:
    """Return what each answer is worth to each row, shape (n_answers, n_rows): probabilities times group benefits.

    Parameters
    ----------
    probabilities : array of shape (n_classes, n_rows)
    groups : array of shape (n_rows,)
    benefits : array of shape (n_groups, n_classes, n_answers)

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.rules.class_scores.rules import expected_benefits
    >>> benefits = np.array([np.eye(2), 2 * np.eye(2)])
    >>> expected_benefits(np.array([[0.25, 0.5], [0.75, 0.5]]), np.array([0, 1]), benefits).tolist()
    [[0.25, 1.0], [0.75, 1.0]]
    """
    # Not by the threads of a matrix product, which wait for each other longer than this takes.
    if len(benefits) == 1:
        return np.asarray(np.einsum("ji,jk->ki", probabilities, benefits[0]))
    expected = np.empty((benefits.shape[2], groups.size))
    for group in np.unique(groups).tolist():
        rows = np.flatnonzero(groups == group)
        expected[:, rows] = np.einsum("ji,jk->ki", probabilities[:, rows], benefits[group])
    return expected


def fill_tiers(probabilities: FloatArray, second: FloatArray, gain: float, share: float, layer: int) -> FloatArray:
    """Return the shares of the answers of a two-tier rule, shape (n_answers, n_rows): see ``TierRule``.

    Parameters
    ----------
    probabilities : array of shape (n_classes, n_rows)
    second : array of shape (n_answers, n_rows)
        The benefits of the second tier.
    gain : float
        What a unit of probability adds to the benefit of a class in the first tier.
    share : float
        The share of a class in the first tier.
    layer : int
        The number of the step that alone decides; -1: each has its share.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.rules.class_scores.rules import fill_tiers
    >>> fill_tiers(np.array([[0.5], [0.4], [0.1]]), np.zeros((3, 1)), 10.0, 0.5, -1).ravel().tolist()
    [0.5, 0.5, 0.0]
    """
    n_classes, n_rows = probabilities.shape
    first, shares, every = gain * probabilities + second[:n_classes], np.zeros(second.shape), np.arange(n_rows)
    best, worth = np.zeros(n_rows, dtype=np.intp), second[0].copy()
    for label in range(1, n_classes):
        is_better = second[label] > worth + _NEAR * np.abs(worth)
        np.copyto(best, label, where=is_better)
        np.copyto(worth, second[label], where=is_better)
    tolerance, answer = _NEAR * (gain + np.abs(worth)), best.copy()
    # All rows that are not done have as much left: a row is done at the step at which no class is worth its share.
    rest, left, step, is_open = np.zeros(n_rows), 1.0, 0, np.ones(n_rows, dtype=np.bool_)
    while left > _FILLED and is_open.any():
        chosen, highest = np.full(n_rows, -1), worth - tolerance
        for label in range(n_classes):
            is_higher = first[label] > highest
            if step:
                is_higher &= shares[label] == 0.0
            np.copyto(chosen, label, where=is_higher)
            np.copyto(highest, first[label] + tolerance, where=is_higher)
        rest[is_open & (chosen < 0)] = left
        is_open &= chosen >= 0
        if step == layer:
            np.copyto(answer, chosen, where=is_open)
        rows = every[is_open]
        shares[chosen[rows], rows] = min(share, left)
        left, step = left - min(share, left), step + 1
    if layer == SOFT:
        rest[is_open] = left
        shares[best, every] += rest
        return shares
    shares[:] = 0.0
    shares[answer, every] = 1.0
    return shares


def defer_rows(
    probabilities: FloatArray, second: FloatArray, gain: float, share: float, cost: float, shares: FloatArray
) -> None:
    """Defer rows, wholly or with a part of the mass, where that is cheaper than the answers that were filled in.

    Arrays have a line for each class or answer, of which the last is deferral. With a part of ``share / (1 - cost)`` no
    label loses more than ``1 - share``. The shares are changed in place.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.rules.class_scores.rules import defer_rows
    >>> shares = np.array([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    >>> defer_rows(np.array([[0.9, 0.6], [0.1, 0.4]]), np.zeros((3, 2)), 1.0, 1.0, 0.2, shares)
    >>> shares.T.tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    n_classes = len(probabilities)
    filled = np.zeros(shares.shape[1])
    for label in range(n_classes):
        missing = np.maximum(share - shares[label], 0.0)
        filled += gain * probabilities[label] * missing - shares[label] * second[label]
    best, own = second[:n_classes].argmax(axis=0), second[n_classes]
    rest = second[best, np.arange(best.size)]
    tolerance = _NEAR * (gain + np.abs(own) + np.abs(rest))
    deferring, part = gain * max(cost - 1.0 + share, 0.0) - own, np.ones(best.size)
    if share < 1.0 - cost:
        mass = share / (1.0 - cost)
        capped = -mass * own - (1.0 - mass) * rest
        is_capped = capped < deferring - tolerance
        deferring, part = np.where(is_capped, capped, deferring), np.where(is_capped, mass, 1.0)
    rows = np.flatnonzero(deferring < filled - tolerance)
    shares[:, rows] = 0.0
    shares[best[rows], rows] = 1.0 - part[rows]
    shares[n_classes, rows] = part[rows]


def argmax_rule(model: int, shape: tuple[int, int, int]) -> TierRule:
    """Return the rule that decides for the most likely class; the shape is that of its benefits."""
    return TierRule(model, 0.0, 1.0, np.zeros(shape))


_ALWAYS = 2.0  # a benefit that is larger than any probability


def constant_rules(shape: tuple[int, int, int]) -> list[TierRule]:
    """Return the rules that decide for one class whatever its probability; the shape is that of their benefits."""
    return [
        TierRule(0, 0.0, 1.0, np.where(np.arange(shape[2]) == place, _ALWAYS, np.zeros(shape)))
        for place in range(shape[1])
    ]


_N_SWEEPS = 3  # over all answers: later ones hardly move
_MOST_ROWS = 20_000  # of a group, that constants are computed from
# Benefits and costs are in parts of the units of the objective and the goals, so values below these are small.
_NOTHING = 1e-12
_APART = 1e-7  # of the largest benefit, or of 1: margins that are nearer are one


class PricedRows(NamedTuple):
    """Labelled rows with their probabilities by one model, and what each answer about them costs."""

    probabilities: FloatArray  # (n_rows, n_classes)
    groups: IntArray
    costs: FloatArray  # (n_rows, n_answers)


def refine(rule: TierRule, rows: PricedRows, n_standard_errors: float = 0.0) -> TierRule:
    """Return a rule of one tier with constants for its answers that lower its cost on the rows.

    A constant is used only where it saves more than ``n_standard_errors`` standard errors: labels are noisy, and with
    few rows so is the best constant.

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.rules.class_scores.rules import PricedRows, refine
    >>> from counterpoise.rules.class_scores.rules import argmax_rule
    >>> probabilities = np.array([[0.5, 0.3, 0.2], [0.6, 0.3, 0.1], [0.9, 0.1, 0.0]])
    >>> nobody = np.zeros(3, dtype=np.int64)
    >>> costs = np.array([[1.0, 0.0, 1.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    >>> rule = refine(argmax_rule(0, (1, 3, 3)), PricedRows(probabilities, nobody, costs))
    >>> rule.answers(probabilities, nobody).argmax(axis=1).tolist()
    [1, 1, 0]
    """
    benefits = rule.benefits.copy()
    for group in range(len(benefits)):
        places = np.flatnonzero(rows.groups == group)
        if places.size > _MOST_ROWS:
            places = places[np.random.default_rng(0).permutation(places.size)[:_MOST_ROWS]]
        if not places.size:
            continue
        probabilities, gain = rows.probabilities[places], 1.0 / rule.alpha
        worth = probabilities @ rule.benefits[group]  # of each answer, deferral too where there is a cost of it
        worth[:, : probabilities.shape[1]] += gain * probabilities
        if rule.defer_cost is not None:
            worth[:, -1] += gain * (1.0 - rule.defer_cost)
        benefits[group] += _constants(worth, rows.costs[places], n_standard_errors)
    return rule._replace(benefits=benefits)


def _constants(worth: FloatArray, costs: FloatArray, n_standard_errors: float) -> FloatArray:
    """Return constants for the answers, computed one after another."""
    worth, constants = worth.copy(), np.zeros(worth.shape[1])
    for _ in range(_N_SWEEPS):
        steps = [_best_step(worth, costs, answer, n_standard_errors) for answer in range(constants.size)]
        for answer in np.argsort([-gain for _, gain in steps], kind="stable").tolist():  # whatever the classes' order
            step, _ = _best_step(worth, costs, answer, n_standard_errors)
            constants[answer] += step
            worth[:, answer] += step
        if not any(gain for _, gain in steps):
            break
    return constants


def _best_step(worth: FloatArray, costs: FloatArray, answer: int, n_standard_errors: float) -> tuple[float, float]:
    """Return the constant for an answer above just those margins whose rows cost least in total, and what it saves.

    Both are 0 where none costs less.
    """
    others, rows = worth.copy(), np.arange(len(worth))
    others[:, answer] = -np.inf
    best = others.argmax(axis=1)
    margins, added = others[rows, best] - worth[:, answer], costs[:, answer] - costs[rows, best]
    order = np.argsort(margins, kind="stable")
    sorted_margins, totals = margins[order], np.append(0.0, np.cumsum(added[order]))
    tolerance = _APART * max(1.0, float(np.abs(sorted_margins).max()))
    edges = np.concatenate([[sorted_margins[0] - 1.0], sorted_margins, [sorted_margins[-1] + 1.0]])
    can_cut = np.diff(edges) > 2 * tolerance
    now = int(np.searchsorted(sorted_margins, 0.0))
    place = int(np.where(can_cut, totals, np.inf).argmin())
    gain, changed = float(totals[now] - totals[place]), added[order[min(now, place) : max(now, place)]]
    is_enough = gain > max(_NOTHING, n_standard_errors * float(np.sqrt(changed @ changed)))
    return (float((edges[place] + edges[place + 1]) / 2), gain) if is_enough else (0.0, 0.0)
