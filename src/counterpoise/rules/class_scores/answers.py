"""Answers of rules of class probabilities, which nothing merges: a row is a cell."""

from typing import Self

import numpy as np

from counterpoise._base.types import ByteArray, FloatArray, IntArray


class ClassAnswers:
    """The answer of each rule about each row of each dataset."""

    def __init__(self, codes: dict[str, ByteArray], n_answers: int) -> None:
        self.codes, self.n_answers = codes, n_answers
        self.n_rules = next(iter(codes.values())).shape[1]
        self._given: dict[tuple[str, int], FloatArray] = {}  # by dataset and answer, (n_rows, n_rules)

    def cells(self, name: str) -> IntArray:
        """Return the numbers of the rows of a dataset."""
        return np.arange(self.n_cells(name))

    def n_cells(self, name: str) -> int:
        """Return how many rows a dataset has."""
        return len(self.codes[name])

    def answered(self, name: str, answer: int, values: FloatArray) -> FloatArray:
        """Return sums over the rows that each rule gives an answer to: (n_values, n_rows) to (n_values, n_rules)."""
        if (name, answer) not in self._given:
            self._given[name, answer] = (self.codes[name] == answer).astype(np.float64)
        return np.asarray(values @ self._given[name, answer])

    def chances(self, name: str, rule: int) -> FloatArray:
        """Return which answer one rule gives to each row, shape (n_answers, n_rows): 1 for it, 0 for others."""
        return np.asarray(self.codes[name][:, rule] == np.arange(self.n_answers)[:, None], dtype=np.float64)

    def only(self, places: IntArray) -> Self:
        """Return some of the rules."""
        return type(self)({name: codes[:, places] for name, codes in self.codes.items()}, self.n_answers)
