"""Small problems of several classes with true probabilities, and the program over all randomized rules, by HiGHS."""

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from counterpoise.goals import Table, bind
from counterpoise.rules.choosing import as_problem
from counterpoise.rules.class_scores.choosing import choose_class_rules
from counterpoise.rules.class_scores.table import ClassTable, no_calibration
from counterpoise.rules.goal_rows import Answers, find_positive
from counterpoise.rules.scores.table import RuleGroups

ALL = RuleGroups((), ("all",))


def drawn_rows(seed, n_rows, n_classes, sharpness=1.5):
    """Return probabilities, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    raw = sharpness * rng.normal(size=(n_rows, n_classes))
    told = np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True)
    labels = (rng.random(n_rows)[:, None] > told.cumsum(axis=1)).sum(axis=1)
    labels[:n_classes] = np.arange(n_classes)
    return told, np.minimum(labels, n_classes - 1)


def written_rows(told):
    """Return rows that hold every label as often as its probability says: those are then true, to the last digit."""
    n_rows, n_classes = told.shape
    return np.repeat(told, n_classes, axis=0), np.tile(np.arange(n_classes), n_rows), told.ravel()


def known_rows(told, labels, weights=None, groups=ALL, columns=None, classes=None):
    """Return rows as rules see them; ``told`` is of one model, or a list of several."""
    several = told if isinstance(told, list) else [told]
    classes = np.arange(several[0].shape[1]) if classes is None else np.asarray(classes)
    table = Table(None, classes[labels], columns, sample_weight=weights)
    nothing = ClassTable({}, Answers({}, {}, find_positive(classes, None)), weights, None)
    evidence = nothing.with_dataset("train", table, np.stack(several, axis=1))
    return evidence.calibrated_scores(groups, (no_calibration(len(classes)),) * len(several))


def chosen(known, alpha=1.0, goals=(), budget=None, objective=None):
    """Return our choice."""
    return choose_class_rules(known, as_problem(None, objective, goals, default_alpha=alpha, budget=budget))


def best_of_all(told, labels, weights, alpha, goals=(), most=None):
    """Return the least tail of all randomized answers that look at probabilities alone, written out.

    Rows with the same probabilities have the same answers: one variable for each of them and class, then the threshold
    of the tail, then what each row has above it.
    """
    kinds, places = np.unique(told.round(12), axis=0, return_inverse=True)
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
