"""What each feature adds to the scores of scikit-learn's histogram gradient boosting, which computes no such thing.

On the way of a row from the root of a tree to its leaf each split changes the mean of the training rows in the node.
That change is due to the feature of the split. Over all trees the changes add up to the score of the row less the mean
score of the training rows: they are exact for the score, and depend on the order of splits, as Shapley values do not.
"""

from copy import copy
from typing import Any

import numpy as np

from counterpoise._base.types import AnyArray, FloatArray


def path_contributions(model: Any, X: Any) -> FloatArray:
    """Return the contributions to the score of each class, or of the second of two.

    Parameters
    ----------
    model : fitted HistGradientBoostingClassifier
    X : rows, as the model takes them

    Returns
    -------
    array of shape (n_rows, n_scores * (n_features + 1))
        For each score its features, then the constant: all of them add up to it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from counterpoise.rules.path_contributions import path_contributions
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(X, y)
    >>> np.allclose(path_contributions(model, X).sum(axis=1), model.decision_function(X))
    True
    """
    state = vars(model)  # scikit-learn has no public way to the leaves of rows
    encoder, places = state["_preprocessor"], _places_of_features(model)
    rows = np.asarray(X, dtype=np.float64) if encoder is None else encoder.transform(X)
    known, by_feature = state["_bin_mapper"].make_known_categories_bitsets()
    start = np.ravel(state["_baseline_prediction"])
    total = np.zeros((len(rows), start.size, places.size + 1))
    total[:, :, -1] = start
    for trees in state["_predictors"]:
        for score, tree in enumerate(trees):
            changes = _changes_to_nodes(tree.nodes, places)
            finder = copy(tree)
            finder.nodes = tree.nodes.copy()
            finder.nodes["value"] = np.arange(len(tree.nodes))
            nodes = finder.predict(rows, known_cat_bitsets=known, f_idx_map=by_feature, n_threads=1)
            total[:, score] += changes[nodes.astype(np.int64)]
    return total.reshape(len(rows), -1)


def _places_of_features(model: Any) -> AnyArray:
    """Return the place of each feature that the trees see among those of the user: categories come first there."""
    is_category = model.is_categorical_
    if is_category is None:
        return np.arange(model.n_features_in_)
    return np.concatenate([np.flatnonzero(is_category), np.flatnonzero(~is_category)])


def _changes_to_nodes(nodes: Any, places: AnyArray) -> FloatArray:
    """Return what each feature, and last the root, adds on the way to each node of a tree."""
    left, right, counts = nodes["left"].tolist(), nodes["right"].tolist(), nodes["count"].tolist()
    means, inner = nodes["value"].tolist(), np.flatnonzero(nodes["is_leaf"] == 0).tolist()
    for node in inner[::-1]:  # children come behind their parents
        one, other = left[node], right[node]
        means[node] = (counts[one] * means[one] + counts[other] * means[other]) / (counts[one] + counts[other])
    changes = np.zeros((len(nodes), places.size + 1))
    changes[0, -1] = means[0]
    features = places[nodes["feature_idx"][inner]].tolist()
    for node, feature in zip(inner, features, strict=True):
        for child in (left[node], right[node]):
            changes[child] = changes[node]
            changes[child, feature] += means[child] - means[node]
    return changes
