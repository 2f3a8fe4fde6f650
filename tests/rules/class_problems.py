"""Small problems of several classes with true probabilities, and the program over all randomized rules, by HiGHS."""

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

import counterpoise as cp
from counterpoise.goals import Table, bind


def drawn_rows(seed, n_rows, n_classes, sharpness=1.5):
    """Return probabilities, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    raw = sharpness * rng.normal(size=(n_rows, n_classes))
    shares = np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True)
    labels = (rng.random(n_rows)[:, None] > shares.cumsum(axis=1)).sum(axis=1)
    labels[:n_classes] = np.arange(n_classes)
    return shares, np.minimum(labels, n_classes - 1)


def written_rows(shares):
    """Return rows that hold every label as often as its probability says: those are then true, to the last digit."""
    n_rows, n_classes = shares.shape
    return np.repeat(shares, n_classes, axis=0), np.tile(np.arange(n_classes), n_rows), shares.ravel()


def fitted(shares, labels, weights=None, columns=None, **settings):
    """Return the classifier that chooses among rules of such probabilities."""
    settings = {"alpha": None if "objective" in settings else 1.0} | settings
    model = cp.GoalClassifier([shares], cv="prefit", decision="sticky", confidence=None, random_state=0, **settings)
    return model.fit(np.zeros((len(labels), 1)), labels, weights, sensitive_features=columns)


def losses(model):
    """Return the probability that each row is decided wrongly."""
    return model.selection_.losses @ model.mixture_


def best_of_all(shares, labels, weights, alpha, goals=(), most=None):
    """Return the least tail of all randomized answers that look at probabilities alone, written out.

    Rows with the same probabilities have the same answers: one variable for each of them and class, then the threshold
    of the tail, then what each row has above it.
    """
    kinds, places = np.unique(shares.round(12), axis=0, return_inverse=True)
    places, (n_kinds, n_classes), n_rows = places.ravel(), kinds.shape, len(labels)
    mass, n_answers = weights / weights.sum(), kinds.size
    right = sp.csr_array((np.ones(n_rows), (np.arange(n_rows), places * n_classes + labels)), (n_rows, n_answers))
    tail = sp.hstack([-right, -np.ones((n_rows, 1)), -sp.eye(n_rows)])
    rows, bounds = [tail], [-np.ones(n_rows)]
    if goals:
        bound = bind(goals, Table(None, labels, sample_weight=weights), classes=np.arange(n_classes))
        columns = (places[:, None] * n_classes + np.arange(n_classes)).ravel()
        shared = sp.csr_array((np.ones(columns.size), (np.arange(columns.size), columns)), (columns.size, n_answers))
        rows.append(sp.hstack([bound.weights["train"] @ shared, sp.csr_array((len(bound.bounds), 1 + n_rows))]))
        bounds.append(bound.bounds)
    if most is not None:
        rows.append(sp.hstack([sp.csr_array(-(mass @ right)[None]), sp.csr_array((1, 1 + n_rows))]))
        bounds.append([most - 1.0])
    whole = sp.hstack([sp.kron(sp.eye(n_kinds), np.ones((1, n_classes))), sp.csr_array((n_kinds, 1 + n_rows))])
    cost = np.concatenate([np.zeros(n_answers), [1.0], mass / alpha])
    found = linprog(
        cost, sp.vstack(rows), np.concatenate(bounds), whole, np.ones(n_kinds), [(0, None)] * cost.size, method="highs"
    )
    return found.fun if found.status == 0 else None
