"""The reproduction of Tables 1 and 2: trees, means that agree, and exact CART."""

import numpy as np

from counterpoise import AdaBoostClassifier
from counterpoise.datasets import twonorm
from counterpoise.learners import HistogramTree
from counterpoise.runs import RunProgress
from papers.tables import ResultRow, ResultsTable
from papers.vadaboost import experiment as vadaboost
from papers.vadaboost import page as vadaboost_page
from papers.vadaboost.data import TASKS, Task

TOYS = tuple(
    Task(name, lambda seed, rows=rows: twonorm(rows, random_state=seed), (5.0,) * 5, (40.0,) * 4, "made up")
    for name, rows in (("small", 120), ("smaller", 80))
)


def test_a_remembering_tree_is_the_tree_it_remembers():
    X, y = twonorm(150, random_state=0)
    plain = AdaBoostClassifier(HistogramTree(max_depth=2), n_estimators=8).fit(X, y)
    vadaboost.forget()
    again = [AdaBoostClassifier(vadaboost.RememberingTree(max_depth=2), n_estimators=8).fit(X, y) for _ in range(2)]
    for model in again:
        assert np.array_equal(model.decision_function(X), plain.decision_function(X))
    assert len(vadaboost._FITTED) == 8


def test_published_figures_are_complete():
    assert len(TASKS) == 18
    assert all(len(task.stump) == 5 and len(task.cart) == 4 for task in TASKS)
    published = sum(task.cart[1] <= task.cart[0] for task in TASKS)
    assert published == 17  # of 18 in the paper, ties counted


def test_progress_says_how_long():
    assert str(RunProgress(2, 8, "wine", 30.0, 5400.0)) == "2 of 8: wine; 30 s so far, about 1.5 h left"


def made_up(learner, values, methods=("AdaBoost", "VadaBoost", "RLP-Boost", "RQP-Boost")):
    return [
        ResultRow("vadaboost", "abalone", learner, method, seed, None, "error", "test", value)
        for method in methods
        for seed, value in enumerate(values)
    ]


def test_exact_trees_stand_beside_binned_ones_on_the_same_splits():
    rows = [*made_up("cart", (0.1, 0.2, 0.3)), *made_up(vadaboost.EXACT, (0.05, 0.16), ("AdaBoost", "VadaBoost"))]
    table = vadaboost_page.blocks(ResultsTable(tuple(rows)))["exact"]
    assert "| abalone | VadaBoost | 2 | 10.50 ± 5.50 | 15.00 ± 5.00 | -4.50 ± 0.50 |" in table


def test_exact_trees_are_cart_with_the_smallest_node_of_the_table():
    trees = {name: model.estimator for name, model in vadaboost.make_models(vadaboost.EXACT, 0).items()}
    assert set(trees) == {"AdaBoost", "VadaBoost"}
    assert all(tree.min_samples_split == 10 and tree.max_depth is None for tree in trees.values())


def test_a_mean_agrees_within_two_standard_errors_of_both():
    errors = np.array([[5.0, 5.2], [6.0, 6.2], [5.0, 5.2], [5.0, 5.2]])
    line = vadaboost_page.Line(
        TOYS[0], ("AdaBoost", "VadaBoost", "RLP-Boost", "RQP-Boost"), (5.0,) * 4, (0.0,) * 4, errors
    )
    assert [number.agrees for number in line.printed("a table")] == [True, False, True, True]
