"""Models of other libraries as operators of ONNX: LightGBM's trees as they are, all else through its own converter.

Own code stands only where a converter is wrong or fails on double precision (``tests/persist/test_converters.py`` shows
each), or where operators cannot stand beside each other: those for trees of before ``ai.onnx.ml`` 5, which the
converters of XGBoost and CatBoost write rightly, are read and written anew.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from counterpoise._base.lazy import import_optional
from counterpoise._base.types import AnyArray
from counterpoise.persist.container import UnstorableModel
from counterpoise.persist.onnx.graph import ML, OPSET, Graph, GraphColumns, Rows
from counterpoise.persist.onnx.trees import PlainTree, of_singles

_OLD_TREES, _OPSET_OF_TOOLS, _BINARY = 3, 15, 2
_COLUMNS = ("nodeids", "truenodeids", "falsenodeids", "modes", "values", "featureids", "missing_value_tracks_true")
_MODES = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE", "LEAF"}
_HOW_TO_INSTALL = 'Models of other libraries are converted with {}: pip install "counterpoise[onnx]".'


def lightgbm_odds(graph: Graph, rows: Rows, model: Any) -> str:
    """Return the log odds of a LightGBM classifier: of the second class, or of each."""
    dump = model.booster_.dump_model()
    objective, n_sums = str(dump.get("objective", "none")).split(), dump["num_tree_per_iteration"]
    settings = dict(word.split(":") for word in objective[1:] if ":" in word)
    if objective[0] not in ("binary", "multiclass"):
        raise UnstorableModel(
            f"a LGBMClassifier with the objective {objective[0]!r} is not supported: train it with 'binary' or "
            "'multiclass'"
        )
    trees = [_of_lightgbm(tree["tree_structure"]) for tree in dump["tree_info"]]
    sums = np.eye(n_sums)
    trees = [tree._replace(values=tree.values * sums[place % n_sums]) for place, tree in enumerate(trees)]
    odds = graph.sum_of_leaves(_with_codes(graph, rows, dump.get("pandas_categorical") or []), trees)
    factor = float(settings.get("sigmoid", 1.0)) / (len(trees) / n_sums if dump["average_output"] else 1.0)
    return odds if factor == 1 else graph.add("Mul", odds, np.array(factor))


def _of_lightgbm(root: dict[str, Any]) -> PlainTree:
    """Return a tree as LightGBM dumps it."""
    nodes, sides = [root], []
    for node in nodes:  # which grows
        if "split_feature" not in node:
            sides.append((0, 0))
            continue
        if "leaf_coeff" in node["left_child"] or node["missing_type"] == "Zero":
            raise UnstorableModel(
                "a LGBMClassifier with linear_tree or zero_as_missing is not supported: train it without"
            )
        sides.append((len(nodes), len(nodes) + 1))
        nodes += [node["left_child"], node["right_child"]]
    values = np.array([node.get("leaf_value", 0.0) for node in nodes], dtype=np.float64)
    thresholds, missing_left, members = np.zeros(len(nodes)), np.zeros(len(nodes), dtype=bool), {}
    for place, node in enumerate(nodes):
        if node.get("decision_type") == "==":  # what is missing, or no member, goes right
            members[place] = np.array(node["threshold"].split("||"), dtype=np.int64)
        elif "split_feature" in node:
            thresholds[place] = float(node["threshold"])
            has_missing = node["missing_type"] == "NaN"  # of others, missing values count as zero
            missing_left[place] = node["default_left"] if has_missing else thresholds[place] >= 0
    features = np.array([node.get("split_feature", -1) for node in nodes])
    left, right = np.array(sides).T
    return PlainTree(features, thresholds, left, right, missing_left, values[:, None], members)


def _with_codes(graph: Graph, rows: Rows, categories: list[list[Any]]) -> Rows:
    """Return columns with the codes that LightGBM has for categories of pandas in place of texts."""
    if not categories or isinstance(rows, str):
        return rows
    texts = [place for place, is_text in enumerate(rows.are_texts) if is_text]
    if len(texts) != len(categories) or not all(isinstance(name, str) for names in categories for name in names):
        raise UnstorableModel(
            f"the LGBMClassifier has {len(categories)} columns of categories, of which {len(texts)} hold texts in X: "
            "make the categories of all of them texts"
        )
    values = list(rows.values)
    for place, names in zip(texts, categories, strict=True):
        codes = np.arange(len(names), dtype=np.float64)
        how = {"keys_strings": names, "values_tensor": onnx.numpy_helper.from_array(codes)}
        unknown = onnx.numpy_helper.from_array(np.array([np.nan]))
        values[place] = graph.add("LabelEncoder", values[place], domain=ML, **how, default_tensor=unknown)
    return GraphColumns(rows.names, tuple(values), (False,) * len(values))


def xgboost_odds(graph: Graph, rows: Rows, model: Any) -> str:
    """Return the log odds of an XGBoost classifier: of the second class, or of each."""
    tools = _needed("onnxmltools")
    from onnxmltools.convert.common.data_types import FloatTensorType  # noqa: PLC0415 - optional

    booster = model.get_booster().copy()
    booster.feature_names = None  # it takes no others than f0, f1 and so on
    kinds = [("rows", FloatTensorType([None, model.n_features_in_]))]

    def exported() -> Any:
        return tools.convert_xgboost(booster, "model", kinds, target_opset=_OPSET_OF_TOOLS)

    return _old_odds(graph, rows, model, exported)


def catboost_odds(graph: Graph, rows: Rows, model: Any) -> str:
    """Return the log odds of a CatBoost classifier: of the second class, or of each."""

    def exported() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            model.save_model(str(path), format="onnx")
            return onnx.load(path)

    return _old_odds(graph, rows, model, exported)


def converted_probabilities(graph: Graph, rows: Rows, model: Any) -> str:
    """Return ``predict_proba`` of a classifier as skl2onnx writes it."""
    return add_converted(graph, graph.matrix(rows), model, output=1, options={id(model): {"zipmap": False}})


def add_converted(
    graph: Graph, rows: str, model: Any, *, are_texts: bool = False, output: int = 0, options: Any = None
) -> str:
    """Add a model or a step as skl2onnx writes it, and return one of its outputs."""
    tools = _needed("skl2onnx")
    from skl2onnx.common.data_types import DoubleTensorType, StringTensorType  # noqa: PLC0415 - optional

    kinds = [("rows", (StringTensorType if are_texts else DoubleTensorType)([None, model.n_features_in_]))]
    versions = {"": OPSET, ML: _OLD_TREES}
    converted = _converted(
        graph, model, lambda: tools.convert_sklearn(model, None, kinds, target_opset=versions, options=options)
    )
    return graph.as_doubles(graph.merge(converted, rows, output))


def _needed(name: str) -> Any:
    return import_optional(name, UnstorableModel, _HOW_TO_INSTALL.format(name))


def _converted(graph: Graph, model: Any, convert: Callable[[], Any]) -> Any:
    """Return what a converter makes of a model, and note that one was asked."""
    name = type(model).__name__
    graph.foreign.append(name)
    try:
        return convert()
    except Exception as error:  # theirs may be of any kind
        words = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UnstorableModel(
            f"the {name} cannot be converted ({words}). Change its settings, or run the model in Python and export its "
            "rules alone: see the guide 'Bring your scores, leave with thresholds'"
        ) from error


def _old_odds(graph: Graph, rows: Rows, model: Any, convert: Callable[[], Any]) -> str:
    """Return the sums of an old operator for trees, the only one of a graph, in double precision."""
    converted = _converted(graph, model, convert).graph
    operators = [node for node in converted.node if node.op_type == "TreeEnsembleClassifier"]
    if len(operators) != 1 or any(node.op_type not in ("ZipMap", "TreeEnsembleClassifier") for node in converted.node):
        raise UnstorableModel(f"a {type(model).__name__} that is more than trees is not supported: use boosted trees")
    old = {column.name: np.asarray(helper.get_attribute_value(column)) for column in operators[0].attribute}
    n_sums = 1 if len(model.classes_) == _BINARY else len(model.classes_)
    if n_sums == 1 and old["class_ids"].max() == 1:  # CatBoost has sums of both, one the other's negative
        kept = old["class_ids"] == 1
        for name in ("class_ids", "class_treeids", "class_nodeids", "class_weights"):
            old[name] = old[name][kept]
        old["class_ids"] = old["class_ids"] - 1
    trees = [_of_old(old, number, n_sums) for number in np.unique(old["nodes_treeids"])]
    odds = graph.sum_of_leaves(rows, trees)
    return graph.add("Add", odds, old["base_values"].astype(np.float64)[None, :]) if "base_values" in old else odds


def _of_old(old: dict[str, AnyArray], number: int, n_sums: int) -> PlainTree:
    """Return one tree of an old operator; its thresholds are of single precision, as the rows are."""
    nodes = {name: old[f"nodes_{name}"][old["nodes_treeids"] == number] for name in _COLUMNS}
    places = {int(node): place for place, node in enumerate(nodes["nodeids"])}
    true, false = (
        np.array([places.get(int(node), 0) for node in nodes[f"{side}nodeids"]]) for side in ("true", "false")
    )
    modes = nodes["modes"].astype("U")
    unknown = set(modes) - _MODES
    if unknown:
        raise UnstorableModel(
            f"trees with splits of the kind {min(unknown)} are not supported: encode categories before"
        )
    is_swapped, is_strict = np.isin(modes, ("BRANCH_GT", "BRANCH_GTE")), np.isin(modes, ("BRANCH_LT", "BRANCH_GTE"))
    thresholds = nodes["values"].astype(np.float32)
    thresholds = np.where(is_strict, np.nextafter(thresholds, np.float32(-np.inf)), thresholds)
    values, here = np.zeros((len(modes), n_sums)), old["class_treeids"] == number
    leaves = [places[int(node)] for node in old["class_nodeids"][here]]
    np.add.at(values, (leaves, old["class_ids"][here]), old["class_weights"][here])
    return PlainTree(
        feature=np.where(modes == "LEAF", -1, nodes["featureids"]),
        threshold=of_singles(thresholds.astype(np.float64)),
        left=np.where(is_swapped, false, true),
        right=np.where(is_swapped, true, false),
        missing_left=nodes["missing_value_tracks_true"].astype(bool) ^ is_swapped,
        values=values,
        members={},
    )
