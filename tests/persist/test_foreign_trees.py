"""Trees in files of LightGBM and XGBoost lead nowhere but to their own nodes; no library is needed to see that."""

import copy
import json

import pytest

from counterpoise.persist.boosted import check_lightgbm, check_xgboost

TREE = {
    "num_leaves": "3",
    "num_cat": "1",
    "split_feature": "0 3",
    "split_gain": "1 2",
    "threshold": "0.5 0",
    "decision_type": "2 1",
    "left_child": "1 -2",
    "right_child": "-1 -3",
    "cat_boundaries": "0 1",
    "cat_threshold": "4294967295",
    "leaf_value": "0.1 -0.2 1e-3",
    "leaf_weight": "1 2 3",
    "leaf_count": "4 5 6",
    "internal_value": "0 0",
    "internal_weight": "0 7",
    "internal_count": "15 9",
    "is_linear": "0",
    "shrinkage": "0.1",
}
HEAD = {
    "version": "v4",
    "num_class": "1",
    "num_tree_per_iteration": "1",
    "max_feature_idx": "3",
    "feature_names": "a b c d",
    "feature_infos": "none none none none",
}


def lightgbm_file(trees=({},), sizes=None, end="\nend of trees\n\nrest\n", **head):
    """Return a model of LightGBM whose trees are the usual one but for some lines; None leaves a line out."""
    texts = []
    for number, changes in enumerate(trees):
        lines = {name: value for name, value in (TREE | changes).items() if value is not None}
        texts.append("".join(f"{name}={value}\n" for name, value in {"Tree": number, **lines}.items()) + "\n")
    found = [len(text) for text in texts] if sizes is None else sizes(texts)
    lines = {name: value for name, value in (HEAD | head).items() if value is not None}
    lines["tree_sizes"] = " ".join(map(str, found))
    top = "tree\n" + "".join(f"{name}={value}\n" for name, value in lines.items())
    return (top + "\n" + "".join(texts) + end).encode()


def test_a_whole_file_of_lightgbm_says_how_many_features_and_outputs_it_has():
    assert check_lightgbm(lightgbm_file()) == (4, 1)
    three = lightgbm_file([{}] * 6, num_class="3", num_tree_per_iteration="3")
    assert check_lightgbm(three) == (4, 3)
    assert check_lightgbm(lightgbm_file([])) == (4, 1)
    only_leaf = {"num_leaves": "1", "num_cat": "0", "leaf_value": "0.3"} | dict.fromkeys(("split_feature", "threshold"))
    assert check_lightgbm(lightgbm_file([only_leaf])) == (4, 1)
    older = {"internal_weight": None, "leaf_count": None, "is_linear": None, "shrinkage": None}
    assert check_lightgbm(lightgbm_file([older])) == (4, 1)
    assert check_lightgbm(lightgbm_file([{"num_cat": "0", "decision_type": "2 14", "threshold": "-inf nan"}])) == (4, 1)


BROKEN_TREES = {
    "a feature that no row has": {"split_feature": "0 4"},
    "a feature below the first": {"split_feature": "-1 3"},
    "half a feature": {"split_feature": "0.5 3"},
    "a kind of split that there is not": {"decision_type": "2 17"},
    "a kind of split just above the last": {"decision_type": "16 1"},
    "a way back to the root": {"left_child": "1 0"},
    "a way to itself": {"left_child": "0 -2"},
    "a child that is no node": {"left_child": "2 -2"},
    "a leaf that there is not": {"right_child": "-1 -4"},
    "half a child": {"right_child": "-1.5 -3"},
    "too few thresholds": {"threshold": "0.5"},
    "too many children": {"left_child": "1 -2 -3"},
    "too few leaves": {"leaf_value": "0.1 -0.2"},
    "too many weights of leaves": {"leaf_weight": "1 2 3 4"},
    "too few values inside": {"internal_value": "0"},
    "no leaves": {"num_leaves": "0"},
    "a number of sets below nothing": {"num_cat": "-1"},
    "a set that there is not": {"threshold": "0.5 1"},
    "sets where there are none": {"num_cat": "0"},
    "sets that begin later": {"cat_boundaries": "1 1"},
    "sets that end before they begin": {"num_cat": "2", "cat_boundaries": "0 2 1", "cat_threshold": "7"},
    "more of a set than there is": {"cat_boundaries": "0 2"},
    "more categories than a word has": {"cat_threshold": "4294967296"},
    "linear leaves": {"is_linear": "1"},
    "words": {"leaf_value": "0.1 x 1"},
    "numbers apart by two blanks": {"leaf_value": "0.1  -0.2 1e-3"},
    "no leaf values": {"leaf_value": None},
    "two numbers of leaves": {"num_leaves": "3\nnum_leaves=3"},
}


@pytest.mark.parametrize("name", BROKEN_TREES)
def test_a_broken_tree_of_lightgbm_is_refused_wherever_it_stands(name):
    for trees in ([BROKEN_TREES[name]], [{}, BROKEN_TREES[name]]):
        with pytest.raises(ValueError, match="cannot be right"):
            check_lightgbm(lightgbm_file(trees))


BROKEN_FILES = {
    "another beginning": lightgbm_file().replace(b"tree\n", b"three\n", 1),
    "lines of another system": lightgbm_file().replace(b"num_class=1\n", b"num_class=1\r\n"),
    "no end": lightgbm_file(end=""),
    "more behind the trees": lightgbm_file(end="Tree=1\n\nend of trees\n"),
    "a tree more than there is": lightgbm_file(sizes=lambda texts: [len(texts[0]), 5]),
    "a tree that is cut": lightgbm_file(sizes=lambda texts: [len(texts[0]) - 9]),
    "a tree of no size": lightgbm_file(sizes=lambda texts: [0, len(texts[0])]),
    "two trees as one": lightgbm_file([{}, {}], sizes=lambda texts: [len(texts[0]) + len(texts[1])]),
    "classes without trees": lightgbm_file(num_class="2", num_tree_per_iteration="2"),
    "other classes than trees": lightgbm_file([{}, {}], num_class="2"),
    "no classes": lightgbm_file([], num_class="0", num_tree_per_iteration="0"),
    "no features": lightgbm_file([], max_feature_idx="-1", feature_names="", feature_infos=""),
    "too few names": lightgbm_file(feature_names="a b c"),
    "too many infos": lightgbm_file(feature_infos="none none none none none"),
    "two lines of one name": lightgbm_file(version="v4\nversion=v4"),
}


@pytest.mark.parametrize("name", BROKEN_FILES)
def test_a_broken_file_of_lightgbm_is_refused(name):
    with pytest.raises(ValueError, match="cannot be right"):
        check_lightgbm(BROKEN_FILES[name])


XGBOOST_TREE = {
    "id": 0,
    "tree_param": {"num_nodes": "5", "num_feature": "4", "size_leaf_vector": "1", "num_deleted": "0"},
    "split_conditions": [0.5, 0.0, 0.1, 0.2, 0.3],
    "base_weights": [0.0] * 5,
    "loss_changes": [1.0, 2.0, 0.0, 0.0, 0.0],
    "sum_hessian": [9.0, 5.0, 4.0, 2.0, 3.0],
    "left_children": [1, 3, -1, -1, -1],
    "right_children": [2, 4, -1, -1, -1],
    "parents": [2147483647, 0, 0, 1, 1],
    "split_indices": [3, 0, 0, 0, 0],
    "default_left": [1, 0, 0, 0, 0],
    "split_type": [0, 1, 0, 0, 0],
    "categories_nodes": [1],
    "categories_segments": [0],
    "categories_sizes": [2],
    "categories": [0, 3],
}


def xgboost_file(change=lambda _: None, n_trees=1, n_classes=0):
    """Return a model of XGBoost after a change of what is in it."""
    trees = [{**copy.deepcopy(XGBOOST_TREE), "id": place} for place in range(n_trees)]
    params = {"num_trees": str(n_trees), "num_parallel_tree": "1"}
    info = [place % max(n_classes, 1) for place in range(n_trees)]
    rounds = [*range(0, n_trees + 1, max(n_classes, 1))]
    model = {"trees": trees, "tree_info": info, "gbtree_model_param": params, "iteration_indptr": rounds}
    name = "multi:softprob" if n_classes else "binary:logistic"
    learner = {
        "learner_model_param": {"num_feature": "4", "num_class": str(n_classes), "num_target": "1"},
        "gradient_booster": {"name": "gbtree", "model": model},
        "objective": {"name": name},
        "feature_names": [],
    }
    change(learner)
    return json.dumps({"learner": learner}).encode()


def of_tree(**changes):
    """Return a change of the first tree."""
    return lambda learner: learner["gradient_booster"]["model"]["trees"][0].update(changes)


def of_param(**changes):
    """Return a change of what the first tree says of itself."""
    return lambda learner: learner["gradient_booster"]["model"]["trees"][0]["tree_param"].update(changes)


def of_model(**changes):
    return lambda learner: learner["gradient_booster"]["model"].update(changes)


def test_a_whole_file_of_xgboost_says_how_many_features_and_outputs_it_has():
    assert check_xgboost(xgboost_file()) == (4, 1)
    assert check_xgboost(xgboost_file(n_trees=6, n_classes=3)) == (4, 3)
    assert check_xgboost(xgboost_file(lambda learner: learner.update(feature_names=list("abcd")))) == (4, 1)
    assert check_xgboost(xgboost_file(of_tree(categories=[0, (1 << 24) - 1]))) == (4, 1)


BROKEN_XGBOOST = {
    "a feature that no row has": of_tree(split_indices=[4, 0, 0, 0, 0]),
    "a feature below the first": of_tree(split_indices=[-1, 0, 0, 0, 0]),
    "a way back to the root": of_tree(right_children=[2, 0, -1, -1, -1]),
    "a way to itself": of_tree(left_children=[1, 1, -1, -1, -1]),
    "a child that is no node": of_tree(left_children=[1, 5, -1, -1, -1]),
    "one child of two nodes": of_tree(left_children=[1, 2, -1, -1, -1]),
    "one child only": of_tree(right_children=[2, 4, -1, 3, -1]),
    "another parent": of_tree(parents=[2147483647, 0, 0, 1, 0]),
    "a node that nothing leads to": of_param(num_deleted="1"),
    "too few conditions": of_tree(split_conditions=[0.5, 0.0, 0.1, 0.2]),
    "conditions that are words": of_tree(split_conditions=[0.5, 0.0, 0.1, 0.2, "x"]),
    "too many weights": of_tree(base_weights=[0.0] * 6),
    "a side that there is not": of_tree(default_left=[2, 0, 0, 0, 0]),
    "a kind of split that there is not": of_tree(split_type=[0, 2, 0, 0, 0]),
    "a set of another node": of_tree(categories_nodes=[0]),
    "a set that begins later": of_tree(categories_segments=[1]),
    "a set that is longer": of_tree(categories_sizes=[3]),
    "an empty set": of_tree(categories_sizes=[0], categories=[]),
    "a category below the first": of_tree(categories=[-1, 3]),
    "a category that a float skips": of_tree(categories=[0, 1 << 24]),
    "half a child": of_tree(left_children=[1, 3.5, -1, -1, -1]),
    "a number that is a truth": of_tree(left_children=[True, 3, -1, -1, -1]),
    "another place": of_tree(id=1),
    "other features": of_param(num_feature="3"),
    "leaves that are vectors": of_param(size_leaf_vector="2"),
    "more nodes than there are": of_param(num_nodes="6"),
    "a tree more": lambda learner: learner["gradient_booster"]["model"]["gbtree_model_param"].update(num_trees="2"),
    "a tree of no class": of_model(tree_info=[1]),
    "a tree without a class": of_model(tree_info=[]),
    "other rounds": of_model(iteration_indptr=[0]),
    "no trees in a round": lambda learner: learner["gradient_booster"]["model"]["gbtree_model_param"].update(
        num_parallel_tree="0"
    ),
    "recoded categories": of_model(cats={"enc": [1]}),
    "too few names": lambda learner: learner.update(feature_names=["a"]),
    "no features": lambda learner: learner["learner_model_param"].update(num_feature="0"),
    "two targets": lambda learner: learner["learner_model_param"].update(num_target="2"),
    "no classifier": lambda learner: learner["objective"].update(name="reg:squarederror"),
    "other classes": lambda learner: learner["objective"].update(softmax_multiclass_param={"num_class": "3"}),
    "no trees": lambda learner: learner["gradient_booster"].update(name="gblinear"),
    "no learner": lambda learner: learner.clear(),
}


@pytest.mark.parametrize("name", BROKEN_XGBOOST)
def test_a_broken_file_of_xgboost_is_refused(name):
    with pytest.raises(ValueError, match=r"cannot be right|is not a model file of XGBoost"):
        check_xgboost(xgboost_file(BROKEN_XGBOOST[name]))


def test_weights_of_dropped_trees_are_as_many_as_the_trees():
    def dart(n_weights):
        def change(learner):
            inner = learner["gradient_booster"]
            learner["gradient_booster"] = {"name": "dart", "weight_drop": [1.0] * n_weights, "gbtree": inner}

        return change

    assert check_xgboost(xgboost_file(dart(2), n_trees=2)) == (4, 1)
    with pytest.raises(ValueError, match="the weights of its trees cannot be right"):
        check_xgboost(xgboost_file(dart(1), n_trees=2))


def test_the_trees_of_a_round_are_one_for_each_class():
    with pytest.raises(ValueError, match="its rounds cannot be right"):
        check_xgboost(xgboost_file(n_trees=4, n_classes=3))
