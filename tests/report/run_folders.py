"""Run folders as ``counterpoise fit`` leaves them, made of real models on data that scikit-learn brings."""

import json
from operator import itemgetter

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from counterpoise import MixtureClassifier, audit, tradeoff
from counterpoise.datasets import split_three_ways
from counterpoise.goals import Table, as_goals
from counterpoise.metrics import cvar_curve, rate_table
from counterpoise.runs.results import ResultRow, append_rows

ALPHA = 0.1
ALPHAS = np.unique([*np.geomspace(0.01, 1.0, 30), ALPHA])
GOALS = (
    "recall(train) >= 0.8",
    "error_rate(train) <= 0.01",
    "positive_rate(train, size=small) <= 0.5 * positive_rate(train, size=large)",
    "precision(train) >= 0.999",
)
COLUMNS = (slice(0, 2), slice(1, 5), slice(5, 7), slice(13, 16), slice(24, 27))
SETTINGS = {
    "data": {"files": ["cancer.csv"], "positive": 1, "target": "malignant", "groups": ["size"]},
    "method": {"name": "pool", "models": [{"name": "tree", "parameters": {"max_depth": 2}}]},
    "alpha": ALPHA,
    "goals": [{"goal": goal, "confidence": None} for goal in GOALS],
    "seed": 0,
    "fingerprint": "3f8a" * 16,
    "sources": "../somewhere",
}
VERDICTS = {"holds": 1.0, "undecided": 0.0, "fails": -1.0}
ENVIRONMENT = {"python": "3.11.9", "counterpoise": "0.1.0", "numpy": "2.4.0", "time": "2026-11-15T08:00:00Z"}


def row(method, quantity, split, value, *, alpha=None, settings=""):
    return ResultRow("run", "cancer", "", method, 0, alpha, quantity, split, float(value), settings)


def write_folder(folder, rows, texts, settings, environment=ENVIRONMENT):
    append_rows(folder / "results.csv", rows)
    written = {"texts": texts, "settings": settings, "environment": environment, "done": {"fingerprint": "3f8a" * 16}}
    for name, words in written.items():
        (folder / f"{name}.json").write_text(json.dumps(words), encoding="utf-8")
    return folder


def loss_rows(model, pool, parts, X, y):
    """Yield errors and CVaR curves on every split, and the errors of the models."""
    for split, part in parts.items():
        losses = np.column_stack([one.predict(X[part]) != y[part] for one in pool]).astype(float)
        first, average = np.eye(1, len(pool))[0], np.full(len(pool), 1 / len(pool))
        for method, shares in (("mixture", model.mixture_), ("first model", first), ("average", average)):
            yield row(method, "error", split, (losses @ shares).mean())
            for alpha, value in zip(ALPHAS, cvar_curve(losses, ALPHAS, mixture=shares), strict=True):
                yield row(method, "cvar", split, value, alpha=float(alpha))
            if method == "mixture":
                error = (losses @ shares).mean()
                for alpha in ALPHAS:
                    yield row(method, "realised cvar", split, min(1.0, error / alpha), alpha=float(alpha))
        yield row("data", "rows", split, len(part))
        for label in np.unique(y):
            yield row("data", "class share", split, np.mean(y[part] == label), settings=str(label))
        for place, column in enumerate(losses.T):
            yield row(f"model {place + 1}", "error", split, column.mean())
    for place, share in enumerate(model.mixture_):
        yield row(f"model {place + 1}", "share", "", share)


def goal_rows(goals, predicted, plain, table, split):
    for method, said in (("mixture", predicted), ("first model", plain)):
        for place, found in enumerate(audit(goals, said, table)):
            name = f"goal {place + 1}"
            outside = found.estimate - found.bound if found.goal.sense == "<=" else found.bound - found.estimate
            parts = {"estimate": found.estimate, "violation": max(outside, 0.0)}
            if method == "mixture":
                parts |= {part: getattr(found, part) for part in ("low", "high", "bound", "margin")}
                parts |= {"verdict": VERDICTS[found.verdict], "rows": sum(count for _, count in found.counts)}
            for part, value in parts.items():
                yield row(method, f"goal {part}", split, value, settings=name)


def group_rows(rates):
    for place, found in enumerate(rates):
        parts = {"n_samples": found.n_samples, **found.rates}
        parts |= {f"{rate} rows": count for rate, count in found.trials.items() if count}
        for part, value in parts.items():
            yield row("mixture", f"group {part}", "test", value, settings=f"group {place}")


def frontier_rows(points):
    for point in points:
        for part in ("value", "lower"):
            where = {"alpha": ALPHA, "settings": f"goal 1 bound={point.bound!r}"}
            yield row("mixture", f"frontier {part}", "validation", getattr(point, part), **where)


def segment_rows():
    parts = ("tail share of segment", "tail part", "segment rows", "tail lift")
    for name, values in {"segment 1": (0.61, 0.7, 18, 6.1), "segment 2": (0.12, 0.3, 31, 1.2)}.items():
        for part, value in zip(parts, values, strict=True):
            yield row("mixture", part, "test", value, alpha=ALPHA, settings=name)


def words_of(goals, rates, parts):
    return {
        "goals": [{"name": f"goal {k + 1}", "text": str(g), "confidence": 0.95} for k, g in enumerate(goals)],
        "groups": [{"name": f"group {place}", "text": found.group} for place, found in enumerate(rates)],
        "models": [
            {"name": f"model {k + 1}", "title": f"tree {k + 1}", "description": f"depth 2, {part}"}
            for k, part in enumerate(parts)
        ],
        "segments": [
            {"name": "segment 1", "text": "mean radius between 13.1 and 15.0 and mean texture above 21"},
            {"name": "segment 2", "text": "mean radius above 15.0 and worst concave points below 0.13"},
        ],
        "objective": {"kind": "cvar"},
        "met_on": "validation",
        "data": ["569 tumours, 30 measurements each; positive is malignant."],
        "commands": ["counterpoise fit goals.toml", "counterpoise report runs/cancer"],
    }


def build_run(folder):
    """Write a run of a mixture of five trees under four goals, with two groups, a frontier and tail segments."""
    X, labels = load_breast_cancer(return_X_y=True)
    y, size = 1 - labels, np.where(X[:, 0] > 13, "large", "small")
    parts = dict(zip(("train", "validation", "test"), split_three_ways(len(y), seed=0), strict=True))
    fit, choose, test = parts.values()
    pool = []
    for part in COLUMNS:  # each tree sees a few columns: none is good, and they fail on different rows
        tree = DecisionTreeClassifier(max_depth=2, random_state=0)
        pool.append(make_pipeline(FunctionTransformer(itemgetter((slice(None), part))), tree).fit(X[fit], y[fit]))
    goals = as_goals(GOALS)
    model = MixtureClassifier(pool, alpha=ALPHA, goals=goals[:1], random_state=0)
    model.fit(X[choose], y[choose], sensitive_features={"size": size[choose]})
    rows = [*loss_rows(model, pool, parts, X, y), row("data", "columns", "", X.shape[1])]
    for split, part in parts.items():
        table = Table(None, y[part], {"size": size[part]})
        rows += goal_rows(goals, model.predict(X[part]), pool[0].predict(X[part]), table, split)
    rates = rate_table(model.predict(X[test]), y[test], {"size": size[test]})
    rows += [*group_rows(rates), *frontier_rows(tradeoff(model, goals[0], n_points=9)), *segment_rows()]
    rows += [row("fit", "seconds", "", 1.25), row("predict", "seconds", "test", 0.04)]
    return write_folder(folder, rows, words_of(goals, rates, COLUMNS), SETTINGS)


def build_plain_run(folder):
    """Write a run of one model on ten classes: no goals, groups, frontier, mixture or tail segments."""
    X, y = load_digits(return_X_y=True)
    model = DecisionTreeClassifier(max_depth=5, random_state=0).fit(X[:900], y[:900])
    parts = {"train": np.arange(900), "test": np.arange(900, len(y))}
    rows = []
    for split, part in parts.items():
        wrong = (model.predict(X[part]) != y[part]).astype(float)
        rows += [row("mixture", "error", split, wrong.mean()), row("data", "rows", split, len(part))]
        curve = cvar_curve(wrong, ALPHAS)
        rows += [
            row("mixture", "cvar", split, value, alpha=float(alpha)) for alpha, value in zip(ALPHAS, curve, strict=True)
        ]
    return write_folder(folder, rows, {}, {"alpha": ALPHA})
