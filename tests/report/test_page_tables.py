"""Every cell of every table of a page is the number of its row and its column, counted here from the rows."""

from collections import Counter

import numpy as np
import pytest
from parsed_page import Page, Tables
from run_folders import row, write_folder

from counterpoise.report import write_report

pytest.importorskip("jinja2", reason="jinja2 is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

SPLITS = {"train": 300, "validation": 150, "test": 211}
METHODS = {
    "mixture": "mixture",
    "first model": "plain training",
    "average": "average of all",
    "deployed model": "deployed model",
}
TAIL, LEFT = 0.1, -1  # the tail fraction, and the answer that leaves a row to a person
ALPHAS = (0.013, 0.05, 0.1, 0.17, 0.24, 0.41, 0.62, 1.0)
GOALS = {
    "goal 1": "recall >= 0.8",
    "goal 2": "error_rate <= 0.3",
    "goal 3": "churn <= 0.2",
}
VERDICTS = {1: "holds", 0: "undecided", -1: "fails"}
RATES = ("positive_rate", "recall", "error_rate")


def share(value):
    return f"{100 * value:.1f} %" if np.isfinite(value) else "\N{EN DASH}"


def number(value):
    return f"{value:.4f}".replace("-", "\N{MINUS SIGN}")


class Run:
    """Labels and answers drawn at random, and other numbers of which no two are alike."""

    def __init__(self, *, defers):
        rng = np.random.default_rng(7)
        self.defers, self.rng, self.rows, self.other = defers, rng, [], {}
        self.labels = {split: (rng.random(n) < 0.4).astype(int) for split, n in SPLITS.items()}
        self.groups = {split: rng.choice(["F", "M"], n, p=[0.3, 0.7]) for split, n in SPLITS.items()}
        self.said = {}
        for method, wrong in zip(METHODS, (0.1, 0.17, 0.25, 0.32), strict=True):
            for split, labels in self.labels.items():
                said = np.where(rng.random(len(labels)) < wrong, 1 - labels, labels)
                if defers and method == "mixture":
                    said = np.where(rng.random(len(labels)) < 0.2, LEFT, said)
                self.said[method, split] = said

    def wrong(self, method, split):
        said = self.said[method, split]
        return (said != self.labels[split]) & (said != LEFT)

    def draw(self, method, quantity, split, low=0.0, high=1.0, **where):
        """Add a number that is drawn."""
        self.keep(method, quantity, split, float(self.rng.uniform(low, high)), **where)

    def keep(self, method, quantity, split, value, **where):
        """Add a number, and keep it by what it is."""
        self.other[method, quantity, split, where.get("settings", ""), where.get("alpha")] = value
        self.rows.append(row(method, quantity, split, value, **where))

    def value(self, method, quantity, split, settings="", alpha=None):
        return self.other[method, quantity, split, settings, alpha]


def confusion(run, method):
    """Yield how many test rows of each class get each answer."""
    said, labels = run.said[method, "test"], run.labels["test"]
    names = {(1, 1): "true positives", (1, 0): "false positives", (0, 1): "false negatives", (0, 0): "true negatives"}
    if run.defers:
        names |= {(LEFT, 1): "deferred positives", (LEFT, 0): "deferred negatives"}
    for (answer, label), name in names.items():
        yield name, int(np.sum((said == answer) & (labels == label)))


def group_values(run, name):
    """Return the rates of a group on the test rows, and how many rows it has."""
    chosen = np.ones(211, bool) if name == "all" else run.groups["test"] == name[-1]
    said, labels = run.said["mixture", "test"][chosen], run.labels["test"][chosen]
    wrong = run.wrong("mixture", "test")[chosen]
    values = {"positive_rate": np.mean(said == 1), "recall": np.mean(said[labels == 1] == 1)}
    values |= {"error_rate": wrong.mean()}
    if run.defers:
        values |= {"defer_rate": np.mean(said == LEFT), "decided_error_rate": wrong.sum() / np.sum(said != LEFT)}
    return int(chosen.sum()), values


GROUPS = {"group 0": "all", "group 1": "sex=F", "group 2": "sex=M"}


def filled(run):
    """Add all rows to a run."""
    for split in SPLITS:
        add_losses(run, split)
        add_goals(run, split)
    add_answers(run)
    add_scores(run)
    for bound in (0.3, 0.35, 0.4, 0.45):
        for part in ("value", "lower"):
            run.draw("mixture", f"frontier {part}", "validation", settings=f"goal 1 bound={bound!r}")
    for place in (1, 2, 3):
        run.draw(f"model {place}", "error", "test")
        run.rows.append(row(f"model {place}", "share", "", (0.2, 0.5, 0.3)[place - 1]))
        for part, most in {"tail share of segment": 1, "tail part": 1, "segment rows": 900, "tail lift": 9}.items():
            run.draw("mixture", part, "test", 0, most, alpha=TAIL, settings=f"segment {place}")
    if run.defers:
        add_deferral(run)
    return run


def add_losses(run, split):
    run.rows += [row("data", "rows", split, SPLITS[split])]
    for label in (0, 1):
        run.rows.append(row("data", "class share", split, np.mean(run.labels[split] == label), settings=str(label)))
    for method in METHODS:
        run.rows.append(row(method, "error", split, run.wrong(method, split).mean()))
        for alpha in ALPHAS:
            run.draw(method, "cvar", split, alpha=alpha)
    for alpha in ALPHAS:
        run.draw("mixture", "realised cvar", split, alpha=alpha)


def add_goals(run, split):
    for method in ("mixture", "first model", "deployed model"):
        run.draw(method, "objective", split)
        for name in GOALS:
            run.draw(method, "goal estimate", split, settings=name)
            run.keep(method, "goal violation", split, max(0.0, float(run.rng.uniform(-1, 1))), settings=name)
    for place, name in enumerate(GOALS):
        for part in ("low", "high", "margin"):
            run.draw("mixture", f"goal {part}", split, -1.0, settings=name)
        run.draw("mixture", "goal rows", split, 1000, 9000, settings=name)
        run.rows.append(row("mixture", "goal bound", split, 0.3 + 0.1 * place, settings=name))
        run.keep("mixture", "goal verdict", split, 1 - (place + len(split)) % 3, settings=name)


def add_answers(run):
    for method in ("mixture", "first model", "deployed model"):
        run.rows += [row(method, f"confusion {name}", "test", count) for name, count in confusion(run, method)]
    for name, text in GROUPS.items():
        size, values = group_values(run, text)
        run.rows.append(row("mixture", "group n_samples", "test", size, settings=name))
        run.rows += [row("mixture", f"group {rate}", "test", value, settings=name) for rate, value in values.items()]


def add_scores(run):
    run.rows += [row("panel 1", "scores positive", "validation", 3, settings="bin 1")]
    run.draw("first model", "auc", "test")
    run.draw("first model", "brier score", "test")
    for place in range(1, 11):
        for part in ("score", "share"):
            run.draw("first model", f"calibration {part}", "test", settings=f"tenth {place}")


def add_deferral(run):
    for split in ("validation", "test"):
        said, wrong = run.said["mixture", split], run.wrong("mixture", split)
        run.rows.append(row("mixture", "defer rate", split, np.mean(said == LEFT)))
        run.rows.append(row("mixture", "decided error", split, wrong.sum() / np.sum(said != LEFT)))
        for limit in (0.0, 0.05, 0.2):
            for part in ("defer rate", "tail", "error", "decided error"):
                run.draw("mixture", f"deferral {part}", split, settings=f"rate={limit!r}")


def drawn_rows(run):
    """Yield the numbers of the drawn decisions, each of which differs from the expected one."""
    for part in ("estimate", "verdict", "violation"):
        for name in GOALS:
            value = run.value("mixture", f"goal {part}", "test", name)
            other = {"estimate": value / 3, "verdict": -value, "violation": value / 7}[part]
            yield row("mixture", f"goal {part}", "test", other, settings=name)
    yield row("mixture", "error", "test", 0.4321)
    yield row("mixture", "cvar", "test", 0.8765, alpha=TAIL)


def page_of(folder, run):
    texts = {
        "goals": [{"name": name, "text": text, "confidence": 0.9} for name, text in GOALS.items()],
        "groups": [{"name": name, "text": text} for name, text in GROUPS.items()],
        "models": [{"name": f"model {place}", "title": f"tree {place}"} for place in (1, 2, 3)],
        "segments": [{"name": f"segment {place}", "text": f"region {place}"} for place in (1, 2, 3)],
        "scores": [{"name": "panel 1", "text": "all rows"}],
        "objective": {"kind": "rate", "text": "false_positive_rate"},
        "met_on": "validation",
        **({"deferral": {"cost": 0.25}} if run.defers else {}),
    }
    write_folder(folder, run.rows, texts, {"alpha": TAIL}, drawn=list(drawn_rows(run)))
    text = write_report(folder).read_text(encoding="utf-8")
    return Tables(text), Page(text).text


@pytest.fixture(scope="module", params=[False, True], ids=["decided", "deferring"])
def shown(request, tmp_path_factory):
    """Return a run, the tables of its page and the text of it; the figures are left out."""
    from markupsafe import Markup  # noqa: PLC0415 - optional

    from counterpoise.report import figures  # noqa: PLC0415 - optional

    run = filled(Run(defers=request.param))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "draw", lambda *_, **__: Markup("<svg></svg>"))
        return run, *page_of(tmp_path_factory.mktemp("page"), run)


def test_answers_are_counted_and_their_rates_follow(shown):
    run, tables, _ = shown
    found = tables.columns("Decisions on the test rows")
    for method in ("mixture", "first model", "deployed model"):
        said, labels, name = run.said[method, "test"], run.labels["test"], METHODS[method]
        assert found["wrong"][name] == share(run.wrong(method, "test").mean())
        assert found["recall"][name] == share(np.mean(said[labels == 1] == 1))
        assert found["precision"][name] == share(np.mean(labels[said == 1] == 1))
        assert found["false positive rate"][name] == share(np.mean(said[labels == 0] == 1))
        assert found["called positive"][name] == share(np.mean(said == 1))
        if run.defers:
            assert found["deferred"][name] == share(np.mean(said == LEFT))
        for cell, count in confusion(run, method):
            assert found[cell][name] == str(count)
    assert ("deferred" in found) == run.defers


def test_scores_are_told_by_tenth(shown):
    run, tables, text = shown
    found = tables.columns("Are the scores calibrated?")
    for place in range(1, 11):
        for part, head in (("score", "mean score"), ("share", "positive")):
            asked = run.value("first model", f"calibration {part}", "test", f"tenth {place}")
            assert found[head][f"tenth {place}"] == share(asked)
    assert len(found["mean score"]) == 10
    auc, brier = (number(run.value("first model", quantity, "test")) for quantity in ("auc", "brier score"))
    assert f"On the test rows the AUC of the first model's scores is {auc}, and their Brier score {brier}." in text


def test_rows_errors_and_classes_are_those_of_each_split(shown):
    run, tables, _ = shown
    found, classes = tables.columns("Rows and plain errors"), tables.columns("Classes")
    assert list(found["rows"]) == list(SPLITS)
    for split, n_rows in SPLITS.items():
        assert found["rows"][split] == str(n_rows)
        for method, name in METHODS.items():
            assert found[f"wrong: {name}"][split] == share(run.wrong(method, split).mean())
        for label in (0, 1):
            assert classes[f"{split} rows"][str(label)] == share(np.mean(run.labels[split] == label))


def test_the_rates_of_groups_are_those_of_their_rows(shown):
    run, tables, _ = shown
    found = tables.columns("Rates by group")
    for name in GROUPS.values():
        size, values = group_values(run, name)
        assert found["rows"][name] == str(size)
        for rate, value in values.items():
            assert found[rate.replace("_", " ")][name] == share(value)


def test_goals_are_told_on_every_split(shown):
    run, tables, text = shown
    verdicts = tables.columns("Verdicts")
    assert tables.heads("Verdicts") == ["goal", "test rows", "train rows", "validation rows"]
    for place, (name, goal) in enumerate(GOALS.items()):
        found = tables.columns(f"{name}: bound {number(0.3 + 0.1 * place)}, confidence 0.9")
        for split in SPLITS:
            for part in ("estimate", "low", "high", "margin"):
                assert found[part][split] == number(run.value("mixture", f"goal {part}", split, name))
            assert found["rows"][split] == f"{run.value('mixture', 'goal rows', split, name):,.0f}"
            assert found["plain training"][split] == number(run.value("first model", "goal estimate", split, name))
            missed = run.value("mixture", "goal violation", split, name)
            stands = f"missed by {number(missed)}" if missed > 0 else "met on these rows"
            told = VERDICTS[run.value("mixture", "goal verdict", split, name)] + stands
            assert found["verdict"][split].partition(" ")[2] == told
            assert verdicts[f"{split} rows"][f"{name}: {goal}"].partition(" ")[2] == told
    tally = Counter(VERDICTS[run.value("mixture", "goal verdict", "test", name)] for name in GOALS)
    assert tally == {"holds": 1, "undecided": 1, "fails": 1}
    assert "Do not deploy: 1 of 3 goals holds, 1 fails, 1 met but not shown" in text


def test_the_model_stands_beside_those_it_is_compared_with(shown):
    run, tables, _ = shown
    (caption,) = [one for one in tables.found if one.startswith("On the test rows; ")]
    found = tables.columns(caption)
    for method in ("mixture", "first model", "deployed model"):
        for name, goal in GOALS.items():
            misses = run.value(method, "goal violation", "test", name) > 0
            told = number(run.value(method, "goal estimate", "test", name)) + " \N{BALLOT X}" * misses
            assert found[METHODS[method]][goal] == told
        assert found[METHODS[method]]["share wrong, expected"] == number(run.wrong(method, "test").mean())


def test_the_objective_is_told_for_each_method_and_split(shown):
    run, tables, _ = shown
    found = tables.columns("false_positive_rate")
    for method in ("mixture", "first model", "deployed model"):
        for split in SPLITS:
            assert found[METHODS[method]][split] == number(run.value(method, "objective", split))


def test_the_tail_is_told_at_the_fractions_nearest_to_round_ones(shown):
    run, tables, _ = shown
    head = "Loss" if run.defers else "Share wrong"
    found = tables.columns(f"{head} on the worst-off part of the test rows")
    near = {"1.3 %": 0.013, "5 %": 0.05, "10 % (alpha)": 0.1, "17 %": 0.17, "41 %": 0.41, "100 %": 1.0}
    assert list(found["mixture"]) == list(near)  # 0.41 is 18 % less than a half, 0.62 24 % more
    for text, alpha in near.items():
        for method, name in METHODS.items():
            assert found[name][text] == share(run.value(method, "cvar", "test", alpha=alpha))
        assert found["mixture, once drawn"][text] == share(run.value("mixture", "realised cvar", "test", alpha=alpha))


def test_drawn_decisions_stand_beside_what_was_expected(shown):
    run, tables, _ = shown
    found = tables.columns("Of the drawn decisions, test rows")
    for name, goal in GOALS.items():
        estimate, verdict, missed = (
            run.value("mixture", f"goal {part}", "test", name) for part in ("estimate", "verdict", "violation")
        )
        assert found["expected"][goal] == number(estimate)
        assert found["of the drawn decisions"][goal] == number(estimate / 3)
        stands = f"missed by {number(missed / 7)}" if missed > 0 else "met on these rows"
        assert found["verdict on the drawn decisions"][goal].partition(" ")[2] == VERDICTS[-verdict] + stands
    assert found["expected"]["share wrong"] == number(run.wrong("mixture", "test").mean())
    assert found["of the drawn decisions"]["share wrong"] == "0.4321"
    worst = f"{'Loss' if run.defers else 'Wrong'}, worst-off 10 %"
    assert found["expected"][worst] == number(run.value("mixture", "cvar", "test", alpha=TAIL))
    assert found["of the drawn decisions"][worst] == "0.8765"


def test_a_frontier_is_told_with_the_bound_that_was_asked_for(shown):
    run, tables, _ = shown
    found = tables.columns("Frontier of goal 1")
    heads = tables.heads("Frontier of goal 1")
    texts = {0.3: "0.3000 (requested)", 0.35: "0.3500", 0.4: "0.4000", 0.45: "0.4500"}
    assert list(found["bound"]) == list(texts.values())
    for bound, text in texts.items():
        for head, part in zip(heads[1:], ("value", "lower"), strict=True):
            assert found[head][text] == number(
                run.value("mixture", f"frontier {part}", "validation", f"goal 1 bound={bound!r}")
            )


def test_models_are_listed_by_share_and_segments_with_what_they_hold(shown):
    run, tables, _ = shown
    models = tables.columns("Models and their shares")
    assert models["share"] == {"tree 2": "50.0 %", "tree 3": "30.0 %", "tree 1": "20.0 %"}
    segments = tables.columns("Where the worst-off rows are")
    for place in (1, 2, 3):
        assert models["wrong, test rows"][f"tree {place}"] == share(run.value(f"model {place}", "error", "test"))
        told = {
            part: run.value("mixture", part, "test", f"segment {place}", TAIL)
            for part in ("segment rows", "tail share of segment", "tail lift", "tail part")
        }
        assert segments["rows"][f"region {place}"] == f"{told['segment rows']:.0f}"
        assert segments["of these worst-off"][f"region {place}"] == share(told["tail share of segment"])
        assert segments["times the average"][f"region {place}"] == f"{told['tail lift']:.1f}"
        assert segments["part of all worst-off"][f"region {place}"] == share(told["tail part"])


def test_deferred_rows_are_told_by_group_and_by_limit(shown):
    run, tables, text = shown
    if not run.defers:
        assert "Deferred test rows by group" not in tables.found
        return
    found = tables.columns("Deferred test rows by group")
    _, of_all = group_values(run, "all")
    for name in GROUPS.values():
        size, values = group_values(run, name)
        assert found["rows"][name] == str(size)
        assert found["deferred"][name] == share(values["defer_rate"])
        assert found["times all rows"][name] == f"{values['defer_rate'] / of_all['defer_rate']:.2f}"
        assert found["wrong among the decided"][name] == share(values["decided_error_rate"])
        assert found["wrong of all"][name] == share(values["error_rate"])
    bought = tables.columns("Best mixtures for other limits, on the test rows")
    heads = {
        "deferred": "defer rate",
        "loss of the worst-off 10 %": "tail",
        "wrong": "error",
        "wrong among the decided": "decided error",
    }
    for limit in (0.0, 0.05, 0.2):
        for head, part in heads.items():
            assert bought[head][share(limit)] == share(
                run.value("mixture", f"deferral {part}", "test", f"rate={limit!r}")
            )
    plain = share(run.wrong("first model", "test").mean())
    decided = share(of_all["decided_error_rate"])
    told = f"{share(of_all['defer_rate'])} of the test rows are left to a person; the mixture decides "
    assert f"{told}{decided} of the others wrongly (plain training, which decides about all rows: {plain})." in text


def test_the_first_lines_tell_the_numbers_of_the_rows_that_count(shown):
    run, _, text = shown
    error, plain, deployed = (run.wrong(method, "test").mean() for method in METHODS if method != "average")
    told = f"The mixture gets {share(error)} of the test rows wrong, the deployed model {share(deployed)} and plain "
    assert f"{told}training {share(plain)}." in text
    drawn = run.value("mixture", "realised cvar", "test", alpha=TAIL)
    assert f"those who are then worst off are {share(drawn)} wrong." in text
