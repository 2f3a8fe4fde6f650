"""A network that fits in milliseconds, and rows for it."""

import numpy as np
from sklearn.datasets import load_digits, make_blobs

from counterpoise.learners import NetworkLearner, networks


def tiny(**settings):
    """Return a learner that fits in milliseconds."""
    small = {"n_iterations": 40, "batch_size": 32, "learning_rate": 0.1, "decay_at": (30,), "device": "cpu"}
    return NetworkLearner(networks.Perceptron((8,)), **({"random_state": 0} | small | settings))


def blobs(n_samples=120, centers=3):
    X, codes = make_blobs(n_samples, centers=centers, n_features=4, random_state=0)
    return X, codes, np.arange(centers)


def digit_images(n_samples):
    """Return bytes of shape (n_samples, 1, 8, 8) and labels."""
    digits = load_digits()
    return (digits.images[:n_samples, None] * 15).astype(np.uint8), digits.target[:n_samples]


def same_state(first, second):
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)
