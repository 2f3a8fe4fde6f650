"""Ranks of scores: which part of the rows of choice has a lower one, so that scores of any scale can be averaged."""

from typing import NamedTuple, Self

import numpy as np

from counterpoise._base.types import FloatArray


class Ranks(NamedTuple):
    """The different scores that are known, and the part of the rows below each."""

    scores: FloatArray  # rising
    below: FloatArray

    @classmethod
    def of(cls, scores: FloatArray, mass: FloatArray) -> Self:
        """Return the ranks of the scores of rows whose weights sum to 1; half of the equal ones count as lower."""
        known, places = np.unique(scores[mass > 0], return_inverse=True)
        parts = np.bincount(places, weights=mass[mass > 0])
        return cls(known, np.cumsum(parts) - parts / 2)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return the rank of each score: between two known ones in proportion, 0 below all, 1 above all.

        Examples
        --------
        >>> import numpy as np
        >>> from counterpoise.mixtures.scores.ranks import Ranks
        >>> ranks = Ranks.of(np.array([0.1, 0.2, 0.2, 0.9]), np.full(4, 0.25))
        >>> ranks(np.array([-np.inf, 0.1, 0.2, 0.9, 2.0])).tolist()
        [0.0, 0.125, 0.5, 0.875, 1.0]
        """
        inside = np.interp(scores, self.scores, self.below)
        return np.asarray(np.where(scores < self.scores[0], 0.0, np.where(scores > self.scores[-1], 1.0, inside)))
