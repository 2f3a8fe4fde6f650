"""The whole story in under two minutes, on data that ships inside scikit-learn.

First the tail: trees boosted for the worst-off handwritten digits. Then goals: among models for tumours, miss at most
2 % of the malignant ones, change at most 3 % of the old model's decisions, else raise as few false alarms as possible.
Each part writes a table and a goals file as a user would have them, fits it, and leaves a run folder with a report.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from counterpoise._base.text_table import text_table
from counterpoise.persist import write_atomically
from counterpoise.report import write_report
from counterpoise.runs import Run, fit_run

Say = Callable[[str], None]

_SHOWN = (0.05, 0.1, 0.2, 0.5, 1.0)  # tail fractions of the printed table
_N_OLD = 100  # tumours that the old model was trained on
_CAUTION = (5, 20, 100)  # how many false alarms a missed tumour outweighs, in the eyes of a model of the pool

_DIGITS = """\
# Handwritten digits: the tenth of them that is hardest to read counts, not the average.
alpha = 0.1
seed = 0

[data]
files = "digits.csv"
target = "digit"

[splits]
validation = 0.3        # rows on which the mixture is chosen
test = 0.3              # rows that nothing has seen

[method]
name = "adalpboost"
parameters = { n_estimators = 100 }
learner = { name = "histogram_tree", parameters = { max_depth = 8 } }
"""

_TUMOURS = """\
# Miss at most 2 % of the malignant tumours, change at most 3 % of the old model's decisions,
# else raise as few false alarms as possible.
alpha = 1.0
seed = 0
goals = [
    "false_negative_rate(train) <= 0.02",
    "churn(train) <= 0.03",
]

[data]
files = "tumours.csv"
target = "diagnosis"
positive = "malignant"
baseline = "old_decision"       # the column with what the old model says

[splits]
validation = 0.35
test = 0.3

[method]
name = "pool"
parameters = { objective = "false_positive_rate(train)" }
"""


def run_demo(output: Path, say: Say = lambda _text: None) -> list[Path]:
    """Run both parts and return the paths of their reports.

    Parameters
    ----------
    output : Path
        Folder for tables, goals files and run folders. What is there from an earlier demo is not fitted again.
    say : callable
        Told what happens, in lines for people.

    Returns
    -------
    list of Path
    """
    return [_digits(output, say), _tumours(output, say)]


def _digits(output: Path, say: Say) -> Path:
    from sklearn.datasets import load_digits  # noqa: PLC0415 - heavy: only where the demo runs

    table = load_digits(as_frame=True).frame.rename(columns={"target": "digit"})
    say("1. The tail: 100 trees boosted for the worst-off tenth of handwritten digits.\n")
    run = _fit(output, "digits", table, _DIGITS)
    say(_tail_table(run))
    say("\n   ERM is the first tree alone. The mixture draws one tree for each digit, so no digit is lost for sure.\n")
    return write_report(run.folder)


def _tumours(output: Path, say: Say) -> Path:
    say(
        "2. Goals: miss at most 2 % of malignant tumours, change at most 3 % of the old model's decisions,\n"
        "   else raise as few false alarms as possible. Twelve models, one mixture.\n"
    )
    run = _fit(output, "tumours", _tumour_table(), _TUMOURS + "".join(_models()))
    say(_indented(str(run.summary())))
    say(
        "\n   The goals hold where the mixture was chosen. The test rows are too few to decide: the report says how\n"
        "   wide the intervals are, and what each goal costs."
    )
    return write_report(run.folder)


def _fit(output: Path, name: str, table: Any, goals: str) -> Run:
    write_atomically(output / f"{name}.csv", [table.to_csv(index=False).encode()])
    write_atomically(output / f"{name}.toml", [goals.encode()])
    return fit_run(output / f"{name}.toml")


def _tumour_table() -> Any:
    """Return the tumours that the old model was not trained on, with what it says about them."""
    import numpy as np  # noqa: PLC0415 - heavy: only where the demo runs
    from sklearn.datasets import load_breast_cancer  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    table = load_breast_cancer(as_frame=True).frame
    labels = np.where(table.pop("target") == 0, "malignant", "benign")
    is_old = np.zeros(len(labels), dtype=np.bool_)
    is_old[np.random.default_rng(0).permutation(len(labels))[:_N_OLD]] = True
    cautious = LogisticRegression(C=0.1, class_weight={"benign": 1, "malignant": 10})
    old_model = make_pipeline(StandardScaler(), cautious).fit(table[is_old], labels[is_old])
    decisions = old_model.predict(table)
    return table.assign(diagnosis=labels, old_decision=decisions)[~is_old]


def _models() -> list[str]:
    """Return the pool, as tables of a goals file."""
    logistic = [
        f'[[method.models]]\nname = "logistic"\ntitle = "logistic, C {strength:g}, caution {caution}"\n'
        f"parameters = {{ C = {strength}, class_weight = {{ benign = 1, malignant = {caution} }} }}\n"
        for strength in (0.03, 0.1, 1.0)
        for caution in _CAUTION
    ]
    others = [
        '[[method.models]]\nname = "svm"\nparameters = { class_weight = { benign = 1, malignant = 10 } }\n',
        '[[method.models]]\nname = "forest"\nparameters = { n_estimators = 50 }\n',
        '[[method.models]]\nname = "naive_bayes"\n',
    ]
    return ["\n" + model for model in (*logistic, *others)]


def _tail_table(run: Run) -> str:
    """Return the loss of the worst-off fractions of the test rows, of plain training, the average and the mixture."""
    rows = run.results().where(quantity="cvar", split="test")
    methods = {"first model": "ERM", "average": "average", "mixture": "mixture"}
    lines = [(f"{alpha:.0%}", *(f"{_value(rows, method, alpha):.1%}" for method in methods)) for alpha in _SHOWN]
    table = text_table([("worst-off", *methods.values()), *lines], ">>>>", least=9)
    return _indented(f"Share of test digits misread among the worst-off:\n\n{table}")


def _value(rows: Any, method: str, alpha: float) -> float:
    """Return the value at the tail fraction of the table's grid that is nearest."""
    nearest = min(rows.where(method=method), key=lambda row: abs(row.alpha - alpha))
    return float(nearest.value)


def _indented(text: str) -> str:
    return "\n".join(f"   {line}".rstrip() for line in text.splitlines())
