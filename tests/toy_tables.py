"""Made-up tables in the place of downloaded ones."""

import numpy as np

from counterpoise.datasets import TableData


def three_numbers_and_a_word(name, n_rows, rng, score):
    """Return rows of three numbers and a category, positive where their noisy score is."""
    X = np.column_stack([rng.normal(size=(n_rows, 3)), rng.integers(0, 4, n_rows)])
    y = (score(X) + 0.5 * rng.normal(size=n_rows) > 0).astype(int)
    return TableData(
        name=name,
        X=X,
        y=y,
        feature_names=list("abcd"),
        categorical=np.array([False, False, False, True]),
        sensitive={},
        split=None,
        description="made up",
    )
