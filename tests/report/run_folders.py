"""Run folders as ``counterpoise fit`` leaves them, made of real models on data that scikit-learn brings."""

from operator import itemgetter

import numpy as np
from run_numbers import ResultRow
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from counterpoise import MixtureClassifier, audit, tradeoff
from counterpoise.datasets import split_three_ways
from counterpoise.goals import Table, as_goals
from counterpoise.metrics import cvar_curve, rate_table
from counterpoise.runs.result import RunResult

ALPHA = 0.1
ALPHAS = np.unique([*np.geomspace(0.01, 1.0, 30), ALPHA])
GOALS = (
    "recall >= 0.8",
    "error_rate <= 0.01",
    "positive_rate(size=small) <= 0.5 * positive_rate(size=large)",
    "precision >= 0.999",
)
COLUMNS = (slice(0, 2), slice(1, 5), slice(5, 7), slice(13, 16), slice(24, 27))
SETTINGS = {
    "data": {"files": ["cancer.csv"], "positive": 1, "target": "malignant", "groups": ["size"]},
    "method": {"name": "pool", "models": [{"name": "tree", "parameters": {"max_depth": 2}}]},
    "alpha": ALPHA,
    "goals": [{"goal": goal, "confidence": None} for goal in GOALS],
    "seed": 0,
}
VERDICTS = {"holds": 1.0, "undecided": 0.0, "fails": -1.0}
ENVIRONMENT = {"python": "3.11.9", "counterpoise": "0.1.0", "numpy": "2.4.0", "time": "2026-11-15T08:00:00Z"}


def row(method, quantity, split, value, *, alpha=None, settings=""):
    return ResultRow("run", "cancer", "", method, 0, alpha, quantity, split, float(value), settings)


def result_of(rows, texts=None, settings=None, environment=ENVIRONMENT, drawn=()):
    """Return the result of a run that has numbers, as rows of a long table, and words."""
    texts, settings = texts or {}, settings or {}
    found = {"settings": dict(settings), "versions": dict(environment), "data": {"name": "cancer"}}
    found["data"] |= {"lines": texts.get("data", []), "classes": [one["text"] for one in texts.get("classes", [])]}
    for name in ("met_on", "method", "certificate", "shares_rows", "objective", "why", "examples", "commands"):
        found |= {name: texts[name]} if name in texts else {}
    found |= {name: texts.get(name) for name in ("margin_cost", "confidence")}
    if "deferral" in texts:
        found["deferral"] = {"cost": texts["deferral"]["cost"], "curve": []}
    splits = dict.fromkeys(one.split for one in rows if one.quantity in ("rows", "error", "cvar", "goal estimate"))
    found["splits"] = {split: _split_of(rows, split) for split in sorted(splits, key=_ORDER.index)}
    found["is_drawn"] = any(one.quantity == "realised cvar" for one in rows)
    found["chosen_on"] = next((one.split for one in rows if one.quantity.startswith(("frontier", "scores"))), "")
    found["goals"] = [_goal_of(rows, drawn, entry) for entry in texts.get("goals", [])]
    by_name = {kind: {one["name"]: one for one in texts.get(kind, [])} for kind in ("groups", "models", "segments")}
    found["groups"] = _groups_of(rows, by_name["groups"])
    found["rules"] = _rules_of(rows, by_name["models"])
    found["segments"] = _segments_of(rows, by_name["segments"])
    _add_answers(found, rows, texts)
    columns = [one.value for one in rows if one.quantity == "columns"]
    found["data"]["columns"] = {"numeric": [f"x{k}" for k in range(int(columns[0]))]} if columns else {}
    if drawn:
        found["drawn"] = {one.quantity: one.value for one in drawn if one.quantity in ("error", "cvar")}
    return RunResult.model_validate(found)


_ORDER = ("train", "validation", "test")


def _split_of(rows, split):
    own = [one for one in rows if one.split == split]
    losses = {}
    names = {"error": "error", "defer rate": "defer_rate", "decided error": "decided_error", "objective": "objective"}
    for one in own:
        if one.method in ("mixture", "first model", "average", "deployed model") and not one.quantity.startswith(
            "goal"
        ):
            entry = losses.setdefault(one.method, {"tails": {}})
            if one.quantity in names:
                entry[names[one.quantity]] = one.value
            elif one.quantity in ("cvar", "realised cvar"):
                part = "value" if one.quantity == "cvar" else "realised"
                entry["tails"].setdefault(one.alpha, {"alpha": one.alpha, "value": None})[part] = one.value
    losses = {who: entry | {"tails": list(entry["tails"].values())} for who, entry in losses.items()}
    sizes = [one.value for one in own if one.quantity == "rows"]
    shares = {one.settings: one.value for one in own if one.quantity == "class share"}
    return {"rows": sizes[0] if sizes else None, "classes": shares, "losses": losses}


def _goal_of(rows, drawn, entry):
    def standing(found):
        parts = {one.quantity.removeprefix("goal "): one.value for one in found}
        words = {verdict: word for word, verdict in VERDICTS.items()}
        return parts | ({"verdict": words.get(parts["verdict"], "")} if "verdict" in parts else {})

    own = [one for one in rows if one.settings == entry["name"] and one.quantity.startswith("goal ")]
    splits = {}
    for one in own:
        splits.setdefault(one.split, {}).setdefault(one.method, []).append(one)
    splits = {split: {who: standing(found) for who, found in by.items()} for split, by in splits.items()}
    for split, why in entry.get("unanswered", {}).items():
        splits[split]["mixture"]["note"] = why
    points = {}
    for one in rows:
        if one.quantity.startswith("frontier ") and one.settings.startswith(f"{entry['name']} bound="):
            bound = float(one.settings.partition("bound=")[2])
            points.setdefault(bound, {"bound": bound})[one.quantity.removeprefix("frontier ")] = one.value
    by_draws = [one for one in drawn if one.settings == entry["name"]]
    found = {"text": entry["text"], "confidence": entry.get("confidence"), "margin": entry.get("margin")}
    return found | {
        "splits": splits,
        "tradeoff": list(points.values()),
        "drawn": standing(by_draws) if by_draws else None,
    }


def _groups_of(rows, words):
    groups = {}
    for one in rows:
        if one.settings.startswith("group ") and one.quantity.startswith("group "):
            group = groups.setdefault(one.settings, {"text": words.get(one.settings, {}).get("text", one.settings)})
            name, _, part = one.quantity.removeprefix("group ").partition(" ")
            if name == "n_samples":
                group[name] = one.value
            else:
                group.setdefault("rates", {}).setdefault(name, {})[part or "value"] = one.value
    return list(groups.values())


def _rules_of(rows, words):
    rules = {}
    for one in rows:
        if one.method.startswith("model ") and (one.quantity == "share" or one.split == "test"):
            entry = {key: value for key, value in words.get(one.method, {}).items() if key in ("title", "description")}
            rules.setdefault(one.method, entry)[one.quantity] = one.value
    return [rules[name] for name in sorted(rules, key=lambda name: int(name.split()[1]))]


def _segments_of(rows, words):
    names = {"tail share of segment": "share", "tail part": "part", "segment rows": "rows", "tail lift": "lift"}
    segments = {}
    for one in rows:
        if one.quantity in names:
            segments.setdefault(one.settings, {"text": words[one.settings]["text"]})[names[one.quantity]] = one.value
    return list(segments.values())


def _add_answers(found, rows, texts):
    """Add counts of answers, scores and the curve of deferred rows."""
    places = {"true positives": (1, 1), "false positives": (0, 1), "false negatives": (1, 0), "true negatives": (0, 0)}
    places |= {"deferred positives": (1, None), "deferred negatives": (0, None)}
    answers, scores, curve = {}, {"tenths": {}, "panels": {}}, {}
    for one in rows:
        kind, _, rest = one.quantity.partition(" ")
        if kind == "confusion":
            label, answer = places[rest]
            answers.setdefault(one.method, []).append({"label": label, "answer": answer, "rows": one.value})
            found["data"] |= {"classes": ["0", "1"], "positive": "1"}
        elif kind == "called":
            label, _, answer = one.settings.removesuffix(" deferred").partition(" as ")
            cell = {"label": int(label.split()[1]) - 1, "answer": int(answer.split()[1]) - 1 if answer else None}
            answers.setdefault(one.method, []).append(cell | {"rows": one.value})
        elif kind in ("auc", "brier"):
            scores[kind] = one.value
        elif kind == "calibration":
            scores["tenths"].setdefault(one.settings, {})[rest] = one.value
        elif kind == "scores":
            scores["panels"].setdefault(one.method, {}).setdefault(rest, []).append(one.value)
        elif kind == "deferral":
            point = curve.setdefault(one.settings, {"limit": float(one.settings[5:]), "splits": {}})
            point["splits"].setdefault(one.split, {})[rest.replace(" ", "_")] = one.value
    named = {
        one["name"]: {key: value for key, value in one.items() if key != "name"} for one in texts.get("scores", [])
    }
    scores["panels"] = [named[name] | entry for name, entry in scores["panels"].items()]
    found |= {"answers": answers, "scores": scores | {"tenths": list(scores["tenths"].values())}}
    if "deferral" in found:
        found["deferral"]["curve"] = list(curve.values())
        found["chosen_on"] = found["chosen_on"] or "validation"


def write_folder(folder, rows, texts, settings, environment=ENVIRONMENT, drawn=()):
    found = result_of(rows, texts, settings, environment, drawn)
    (folder / "result.json").write_text(found.model_dump_json(), encoding="utf-8")
    (folder / "done.json").write_text("{}", encoding="utf-8")
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
