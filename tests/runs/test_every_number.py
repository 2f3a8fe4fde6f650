"""Every number of a results table is computed anew from the rows of the file and the answers of the saved model."""

import re

import numpy as np
import pandas as pd
import pytest
from run_numbers import numbers
from sklearn.metrics import roc_auc_score

from counterpoise import audit
from counterpoise.goals import Table
from counterpoise.runs import audit_run, fit_run, predict_run
from counterpoise.runs.data import load_data
from tests.tiers import some_fast

ALPHA = 0.3
GOALS = (
    "recall >= 0.6",
    "churn <= 0.5",
    "positive_rate(sex=F) >= 0.5 * positive_rate(sex=M)",
)
FILE = """
alpha = {alpha}
goals = [{goals}]
[data]
files = "{folder}/loans.csv"
target = "paid"
positive = "yes"
baseline = "today"
groups = "sex"
{weights}
[splits]
validation = 0.25
[method]
name = "goals"
parameters = {{ objective = "error_rate", by = "sex" }}
[[method.models]]
name = "logistic"
[[method.models]]
name = "naive_bayes"
"""
WEIGHTS = {"weighted": 'weights = "weight"\nlargest_weight = 3', "plain": 'drop = "weight"'}


@pytest.fixture(scope="module", params=some_fast(WEIGHTS))
def told(request, loans_folder, tmp_path_factory):
    """Return a run of one rule, which draws nothing, and its rows by split."""
    path = tmp_path_factory.mktemp("numbers") / "goals.toml"
    goals = ", ".join(f'"{goal}"' for goal in GOALS)
    path.write_text(FILE.format(folder=loans_folder, alpha=ALPHA, goals=goals, weights=WEIGHTS[request.param]))
    run = fit_run(path)
    return Told(run, load_data(run.settings, loans_folder).splits)


class Told:
    """Rows of a run, what each method says of them and what they weigh."""

    def __init__(self, run, parts):
        self.run, self.parts, self.model = run, parts, run.model()
        self.answers = {}
        self.weights = {
            split: np.ones(len(part)) if part.weights is None else part.weights for split, part in parts.items()
        }

    def said(self, method, split):
        if (method, split) not in self.answers:
            self.answers[method, split] = self._asked(method, split)
        return self.answers[method, split]

    def _asked(self, method, split):
        part = self.parts[split]
        if method == "deployed model":
            return np.asarray(part.baseline)
        if method == "first model":
            return self.model.estimators_[0].predict(part.X)
        return self.model.predict(part.X, sensitive_features=part.groups)

    def mean(self, values, split, chosen=slice(None)):
        return np.average(np.asarray(values)[chosen], weights=self.weights[split][chosen])

    def rate(self, name, method, split, group):
        """Return a rate of the rows of a group."""
        part, said = self.parts[split], self.said(method, split)
        inside = np.ones(len(part), bool) if group == "all" else part.groups["sex"] == group[-1]
        values, chosen = {
            "positive_rate": (said == "yes", inside),
            "error_rate": (said != part.y, inside),
            "recall": (said == "yes", inside & (part.y == "yes")),
            "false_positive_rate": (said == "yes", inside & (part.y == "no")),
            "precision": (part.y == "yes", inside & (said == "yes")),
            "churn": (said != part.baseline, inside),
        }[name]
        return self.mean(values, split, chosen), int(chosen.sum())

    def scores(self, split, model=0):
        return self.model.estimators_[model].predict_proba(self.parts[split].X)[:, 1]

    def rows(self, quantity, **where):
        return list(numbers(self.run).where(quantity=quantity, **where))


METHODS = ("mixture", "first model", "deployed model")


def tail_of(wrong, weights, alpha):
    """Return how much of each row is in the tail: wrong answers come first, alike ones share."""
    mass, part = weights @ wrong / weights.sum(), np.zeros(len(wrong))
    part[wrong] = min(1.0, alpha / mass)
    part[~wrong] = max(0.0, (alpha - mass) / (1 - mass))
    return part


def test_the_rows_of_each_split_are_counted(told):
    for split, part in told.parts.items():
        assert [row.value for row in told.rows("rows", split=split)] == [len(part)]
        shares = {row.settings: row.value for row in told.rows("class share", split=split)}
        assert shares == {label: pytest.approx(np.mean(part.y == label)) for label in ("no", "yes")}
    assert [row.value for row in told.rows("columns")] == [3]


def test_errors_and_tails_of_every_method_are_those_of_its_answers(told):
    for split, part in told.parts.items():
        for method in METHODS:
            wrong, weights = told.said(method, split) != part.y, told.weights[split]
            (error,) = told.rows("error", split=split, method=method)
            assert error.value == pytest.approx(told.mean(wrong, split))
            tails = told.rows("cvar", split=split, method=method)
            assert len(tails) > 30
            for row in tails:
                inside = weights * tail_of(wrong, weights, row.alpha)
                assert row.value == pytest.approx(inside @ wrong / inside.sum())


@pytest.mark.slow
def test_goals_are_judged_by_the_answers_on_each_split(told):
    for split, part in told.parts.items():
        limit = None if part.weights is None else 3.0
        table = Table(None, part.y, part.groups, part.baseline, sample_weight=part.weights, largest_weight=limit)
        for method in METHODS:
            rates = [
                told.rate("recall", method, split, "all")[0],
                told.rate("churn", method, split, "all")[0],
                told.rate("positive_rate", method, split, "F")[0]
                - 0.5 * told.rate("positive_rate", method, split, "M")[0],
            ]
            beyond = [max(0.6 - rates[0], 0.0), max(rates[1] - 0.5, 0.0), max(-rates[2], 0.0)]
            for place in range(3):
                where = {"split": split, "method": method, "settings": f"goal {place + 1}"}
                numbers = {part: told.rows(f"goal {part}", **where)[0].value for part in ("estimate", "violation")}
                assert numbers["estimate"] == pytest.approx(rates[place])
                assert numbers["violation"] == pytest.approx(beyond[place], abs=1e-12)
        for place, found in enumerate(audit(GOALS, told.said("mixture", split), table, pos_label="yes")):
            where = {"split": split, "method": "mixture", "settings": f"goal {place + 1}"}
            for name in ("low", "high", "bound", "margin"):
                (row,) = told.rows(f"goal {name}", **where)
                assert row.value == pytest.approx(getattr(found, name))
            (verdict,) = told.rows("goal verdict", **where)
            assert verdict.value == {"holds": 1, "undecided": 0, "fails": -1}[found.verdict]
            (counted,) = told.rows("goal rows", **where)
            assert counted.value == (np.sum(part.y == "yes") if place == 0 else len(part))


def test_the_rates_of_groups_are_weighted_means_of_their_rows(told):
    is_weighted = told.parts["test"].weights is not None
    names = {f"group {place}": text for place, text in enumerate(("all", "sex=F", "sex=M"))}
    rates = ("positive_rate", "error_rate", "recall", "false_positive_rate", "precision", "churn")
    for place, text in names.items():
        for rate in rates:
            value, trials = told.rate(rate, "mixture", "test", text)
            (row,) = told.rows(f"group {rate}", split="test", settings=place)
            assert row.value == pytest.approx(value)
            counted = [one.value for one in told.rows(f"group {rate} rows", settings=place)]
            assert counted == ([] if is_weighted else [trials])  # a weighted rate is a count out of nothing


def test_answers_are_counted_by_class(told):
    is_yes = told.parts["test"].y == "yes"
    for method in METHODS:
        said = told.said(method, "test") == "yes"
        cells = {
            "true positives": said & is_yes,
            "false positives": said & ~is_yes,
            "false negatives": ~said & is_yes,
            "true negatives": ~said & ~is_yes,
        }
        for name, chosen in cells.items():
            (row,) = told.rows(f"confusion {name}", method=method, split="test")
            assert row.value == chosen.sum()


def test_scores_are_judged_by_tenths_of_the_rows(told):
    scores, is_yes, weights = told.scores("test"), told.parts["test"].y == "yes", told.weights["test"]
    (auc,) = told.rows("auc")
    assert auc.value == pytest.approx(roc_auc_score(is_yes, scores, sample_weight=weights))
    (brier,) = told.rows("brier score")
    assert brier.value == pytest.approx(told.mean((scores - is_yes) ** 2, "test"))
    order = np.argsort(scores)
    for number in range(10):
        tenth = order[len(order) * number // 10 : len(order) * (number + 1) // 10]  # 120 rows
        for name, values in (("score", scores), ("share", is_yes)):
            (row,) = told.rows(f"calibration {name}", settings=f"tenth {number + 1}")
            assert row.value == pytest.approx(told.mean(values, "test", tenth))


def test_histograms_hold_the_scores_of_the_rows_of_choice_by_group_and_class(told):
    part, (rule,) = told.parts["validation"], told.model.rules_
    scores = told.scores("validation", rule.model)
    panels = {f"panel {place}": one for place, one in enumerate(told.run.result().scores.panels, start=1)}
    assert [entry.text for entry in panels.values()] == ["sex=F", "sex=M"]
    for name, entry in panels.items():
        inside = part.groups["sex"] == entry.text[-1]
        for kind, label in (("positive", "yes"), ("negative", "no")):
            counts = [row.value for row in told.rows(f"scores {kind}", method=name)]
            chosen = scores[inside & (part.y == label)]
            assert counts == np.histogram(chosen, 25, (entry.low, entry.high))[0].tolist()
        assert [(one.threshold, one.share) for one in entry.rules] == [(rule.thresholds[entry.text], 1.0)]


def test_segments_of_the_tail_are_those_that_their_words_describe(told):
    part, weights = told.parts["test"], told.weights["test"]
    wrong = told.said("mixture", "test") != part.y
    tail, frame = tail_of(wrong, weights, ALPHA), part.X.assign(**part.groups)
    segments = told.run.result().segments
    assert segments
    for place, entry in enumerate(segments, start=1):
        inside = np.ones(len(part), bool)
        for words in entry.text.split(" and "):
            inside &= matched(frame, words)
        share = tail[inside].mean()
        expected = {
            "segment rows": inside.sum(),
            "tail share of segment": share,
            "tail part": tail[inside].sum() / tail.sum(),
            "tail lift": share / tail.mean(),
        }
        for quantity, value in expected.items():
            (row,) = told.rows(quantity, settings=f"segment {place}")
            assert row.value == pytest.approx(value)
            assert row.alpha == ALPHA


def matched(frame, words):
    """Return the rows that a condition in words is true of."""
    column, how, value = re.fullmatch(r"(\w+) (at most|above|is not|is) (.+)", words).groups()
    known, or_missing = frame[column], value.endswith(" or missing")
    value = value.removesuffix(" or missing")
    if how in {"at most", "above"}:
        found = known <= float(value) if how == "at most" else known > float(value)
        return np.asarray(found | (or_missing & known.isna()))
    is_value = np.asarray(known.astype(object).where(known.notna(), "(missing)") == value)
    return is_value if how == "is" else ~is_value


def test_the_rule_that_decides_has_all_of_the_share_and_the_error_of_the_model(told):
    assert [row.value for row in told.rows("share")] == [1.0]
    (own,) = told.rows("error", method="model 1")
    assert own.value == pytest.approx(told.mean(told.said("mixture", "test") != told.parts["test"].y, "test"))


def test_what_is_measured_of_another_file_is_of_the_answers_predicted_for_it(told, loans_folder, tmp_path):
    more = loans_folder / "more.csv"
    assert predict_run(told.run, more, tmp_path / "said.csv") == 200
    frame, said = pd.read_csv(more), pd.read_csv(tmp_path / "said.csv")["prediction"].to_numpy()
    weights = np.ones(200) if told.parts["test"].weights is None else frame["weight"].to_numpy(dtype=float)
    true, today = frame["paid"].to_numpy(), frame["today"].to_numpy()

    def mean(values, chosen=slice(None)):
        return np.average(np.asarray(values)[chosen], weights=weights[chosen])

    result, _, audited = audit_run(told.run, more)
    found = result.losses()
    wrong = said != true
    inside = weights * tail_of(wrong, weights, ALPHA)
    women, men = (mean(said == "yes", (frame["sex"] == sex).to_numpy()) for sex in "FM")
    rates = [mean(said == "yes", true == "yes"), mean(said != today), women - 0.5 * men]
    assert found.error == pytest.approx(mean(wrong))
    assert result.losses("deployed model").error == pytest.approx(mean(today != true))
    assert found.tail(result.alpha).value == pytest.approx(inside @ wrong / inside.sum())
    assert [line.estimate for line in audited] == pytest.approx(rates)
    assert [line.violation for line in audited] == pytest.approx(
        [max(0.6 - rates[0], 0), max(rates[1] - 0.5, 0), max(-rates[2], 0)], abs=1e-12
    )
