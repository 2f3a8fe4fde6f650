"""What fitted models keep to themselves and some behaviour is checked by: the one place of the tests that knows."""

from functools import cache

import numpy as np

from counterpoise import Draws, MixtureClassifier


def drawn_numbers(model, rows):
    """Return the number from 0 to 1 that each row draws."""
    return model.draws_.by_row(rows)


@cache
def keyed_draws(key=bytes(range(32))):
    """Return the draws of a model with such a key."""
    y = np.array([0, 1])
    return MixtureClassifier([y], decision=Draws(key)).fit(np.zeros((2, 1)), y).draws_


def key_of(model):
    """Return the secret key of the draws."""
    return model.draws_.key


def kept_table(model, name="train"):
    """Return the rows of a dataset that were chosen on, without their features."""
    return model.family_.selection_data.answers.tables[name]


def kept_scores(model):
    """Return the scores on which rules were chosen, a column for each model."""
    return model.family_.selection_data.scores["train"]
