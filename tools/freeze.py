"""Keep what this version writes and says, for the tests of all later ones: ``python tools/freeze.py``.

Writes ``tests/frozen/VERSION``: saved models with their answers about some rows, a file of rules with whom it draws
for, and the public names. What stands there is never written again.
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import counterpoise as cp
from counterpoise.learners import HistogramTree, Stump
from counterpoise.runs.rule_file import FileRule, RuleFile

FOLDER = Path(__file__).parents[1] / "tests" / "frozen"
PACKAGES = ("", "datasets", "distributed", "explorer", "learners", "report", "runs", "solvers")
KEY = b"kept for the tests of later versions"
N_ROWS, N_ASKED = 240, 40
GOAL = "demographic_parity_difference(train, by=sex) <= 0.1"
RULES = RuleFile(
    "granted",
    "refused",
    ("sex",),
    KEY.decode(),
    (
        FileRule(0.3, "0000000000000000", "score", {"Female": 0.25, "Male": 0.5}, {"Female": 0.125, "Male": 0.5}),
        FileRule(0.7, "4ccccccccccccccd", "score", {"Female": 0.375, "Male": 0.75}, {"Female": 0.25, "Male": 0.625}),
    ),
    "a person decides",
)


def models() -> dict[str, Any]:
    """Return one model of every kind of file, by name."""
    rounds: dict[str, Any] = {"n_estimators": 6, "random_state": 0}
    tree = HistogramTree(max_depth=2)
    return {
        "adalpboost": cp.AdaLPBoostClassifier(tree, alpha=0.3, key=KEY, **rounds),
        "lpboost_inside_goals": cp.LPBoostClassifier(tree, alpha=1.0, goals=[GOAL], key=KEY, **rounds),
        "goal_classifier": cp.GoalClassifier(tree, goals=[GOAL], by="sex", cv=3, key=KEY, random_state=0),
        "sticky_rules": cp.GoalClassifier(
            tree, goals=[GOAL], by="sex", cv=3, decision="sticky", key=KEY, random_state=0
        ),
        "constrained": cp.ConstrainedClassifier(goals=[GOAL], key=KEY),
        "vadaboost": cp.VadaBoostClassifier(Stump(), **rounds),
        "dro": cp.DROBoostClassifier(tree, **rounds),
    }


def rows() -> dict[str, list[Any]]:
    """Return rows of which the label depends on two columns and, unfairly, on a group."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 3)).round(2)
    sex = np.array(["Female", "Male"])[rng.integers(2, size=N_ROWS)]
    y = X[:, 0] + X[:, 1] + 0.8 * (sex == "Male") + rng.normal(size=N_ROWS) > 0
    return {"X": X.tolist(), "y": y.astype(int).tolist(), "sex": sex.tolist()}


def main() -> int:
    """Write the folder of this version, unless it is there."""
    folder = FOLDER / cp.__version__
    if folder.exists():
        sys.stderr.write(f"{folder} is there already, and is never written again.\n")
        return 1
    folder.mkdir(parents=True)
    kept = rows()
    X, y, groups = np.array(kept["X"]), np.array(kept["y"]), {"sex": np.array(kept["sex"])}
    answers = {}
    for name, model in models().items():
        model.fit(X, y, **({"sensitive_features": groups} if getattr(model, "goals", None) else {}))
        cp.save(model, folder / f"{name}.cpz")
        asked = {"sensitive_features": {"sex": groups["sex"][:N_ASKED]}} if getattr(model, "by", None) else {}
        answers[name] = {
            "takes": sorted(asked),
            "predict": model.predict(X[:N_ASKED], **asked).tolist(),
            "predict_proba": model.predict_proba(X[:N_ASKED], **asked).tolist(),
        }
    _write(folder / "answers.json", {"rows": {name: part[:N_ASKED] for name, part in kept.items()}, "answers": answers})
    _write(folder / "names.json", {package: public_names(package) for package in PACKAGES})
    (folder / "rules.json").write_text(RULES.as_json(), encoding="utf-8")
    ids = [f"person {number}" for number in range(N_ASKED)]
    _write(folder / "drawn.json", {"ids": ids, "drawn": RULES.drawn(ids).tolist()})
    return 0


def public_names(package: str) -> list[str]:
    """Return the public names of a package of the library; of the library itself for the empty name."""
    return sorted(importlib.import_module(f"counterpoise.{package}" if package else "counterpoise").__all__)


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
