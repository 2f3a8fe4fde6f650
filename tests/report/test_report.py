"""The report of a run: whole, self-contained, accessible, escaped, and true to the results table."""

import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from parsed_page import Page
from run_folders import ALPHA, GOALS, build_plain_run, group_rows, result_of, row, write_folder
from run_numbers import numbers
from scipy import stats

from counterpoise import report
from counterpoise.metrics import rate_table
from counterpoise.report import figures, overview, rates, write_report
from counterpoise.report.page import page_of as rendered
from counterpoise.report.wording import count, number, percent
from counterpoise.runs import RunFolderError
from counterpoise.runs.result import (
    GoalResult,
    MarginResult,
    RunResult,
    SplitLosses,
    SplitResult,
    SplitStanding,
    SwapResult,
    read_result,
)

pytest.importorskip("jinja2", reason="jinja2 is not installed")
matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")

BAD = '<script>alert(\'1\')</script> "&amp; $\\frac{ ]]> --> 漢字 \x07\n id="x"'


def page_of(folder):
    return Page(write_report(folder).read_text(encoding="utf-8"))


def rewrite(folder, change):
    path = folder / "result.json"
    words = json.loads(path.read_text(encoding="utf-8"))
    change(words)
    path.write_text(json.dumps(words), encoding="utf-8")


@pytest.fixture(scope="module")
def page(built):
    """Return the page of the whole run, which lies in ``built`` from then on."""
    return page_of(built)


def test_the_page_is_whole_and_needs_nothing_else(built, page):
    text = (built / "report.html").read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert page.outside == []
    assert page.handlers == []
    assert not {"script", "link", "img", "iframe", "object", "embed"} & {tag for tag, _ in page.tags}
    assert "@import" not in text
    assert set(re.findall(r"url\((.)", text)) == {"#"}
    assert len(text.encode()) < 600_000


def test_names_inside_the_page_are_unique_and_lead_somewhere(built, page):
    text = (built / "report.html").read_text(encoding="utf-8")
    assert len(page.ids) == len(set(page.ids))
    used = {*page.inside, *page.named, *re.findall(r"url\(#([^)]+)\)", text)}
    assert used <= set(page.ids)
    assert len(used) > 20


def test_figures_and_tables_can_be_heard(page):
    assert len(page.svgs) == 1 + 4 + 3 + 5 + 1  # all goals, each, splits, rates, frontiers
    assert all(svg["role"] == "img" and len(svg["aria-labelledby"].split()) == 2 for svg in page.svgs)
    assert all(step <= 1 for step in np.diff(page.headings))
    assert page.headings.count(1) == 1
    tags = [tag for tag, _ in page.tags]
    assert tags.count("caption") == tags.count("table")
    assert all("scope" in found for tag, found in page.tags if tag == "th")
    assert dict(page.tags)["html"] == {"lang": "en"}


def test_the_name_of_an_upright_axis_is_no_longer_than_the_figure(monkeypatch):
    from matplotlib.figure import Figure  # noqa: PLC0415 - optional

    drawn = []
    monkeypatch.setattr(figures, "draw", lambda *given, **_: drawn.append(given[3]))
    points = [(0.7, 0.5, 0.5), (0.8, 0.6, 0.6)]
    for least in ("least share wrong of the worst-off 10 %", "least " + "false_positive_rate(sex=F) + " * 3):
        figures.frontier_figure("frontier-1", GOALS[0], points, least, percent, 0.8)
    for fill in drawn:
        with figures._plain_style():
            figure = Figure(figsize=(figures._WIDTH, 2.2), layout="constrained")
            axes = figure.subplots()
            fill(axes)
            figure.canvas.draw()
            label = axes.yaxis.label.get_window_extent()
        assert 0 <= label.y0 < label.y1 <= figure.bbox.y1


def test_every_number_of_every_goal_is_shown(built, page):
    rows = [row for row in numbers(read_result(built / "result.json")) if row.quantity.startswith("goal ")]
    shown = {"estimate", "low", "high", "bound", "margin", "rows"}
    assert {row.split for row in rows} == {"train", "validation", "test"}
    for found in rows:
        part = found.quantity.removeprefix("goal ")
        if part in shown:
            assert (count(found.value) if part == "rows" else number(found.value)) in page.text.split()
    for goal in GOALS:
        assert goal in page.text


def test_curves_rates_shares_and_segments_are_shown(built, page):
    for found in numbers(read_result(built / "result.json")):
        is_asked = found.quantity == "cvar" and found.alpha == ALPHA and found.split == "test"
        is_rate = found.quantity.startswith("group ") and not found.quantity.endswith(("n_samples", "rows"))
        is_part = found.quantity in {"tail part", "tail share of segment"}
        if is_asked or (is_rate and not math.isnan(found.value)) or is_part:
            assert " ".join(percent(found.value).split()) in page.text
    for words in (
        "mean radius between 13.1 and 15.0",
        "counterpoise fit goals.toml",
        "569 tumours",
        "The model sees 30 columns.",
        "3.11.9",
    ):
        assert words in page.text
    assert re.search(r"tree \d", page.text)


def test_the_headline_says_whether_goals_hold_and_what_the_tail_costs(built, page):
    result = read_result(built / "result.json")
    assert [goal.on("test").verdict for goal in result.goals] == ["undecided", "fails", "holds", "fails"]
    assert "1 of 4 goals holds, 2 fail, 1 not shown" in page.text
    assert "Goal 2 and goal 4 are shown by the test rows to fail, with confidence 0.95." in page.text
    n_met = sum(goal.on("test").violation == 0 for goal in result.goals)
    assert n_met == 1
    assert "On the test rows as they are 1 of 4 goals is met; they are too few to be sure of goal 1." in page.text
    errors = [percent(result.losses(decider).error) for decider in ("mixture", "first model")]
    told = f"The mixture gets {errors[0]} of the test rows wrong, plain training {errors[1]}."
    assert " ".join(told.split()) in page.text
    ours, first = (result.losses(decider).tail(ALPHA).value for decider in ("mixture", "first model"))
    gain = f"plain training {percent(first)}, {100 * (first - ours):.1f} points"
    told = f"the mixture is expected to get {percent(ours)} wrong; {gain}"
    assert " ".join(told.split()) in page.text


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("verdicts", "title"),
    [
        ([1], "Deploy: the goal holds"),
        ([1, 1], "Deploy: both goals hold"),
        ([0, 0, 0], "Do not deploy: none of 3 goals is shown to hold"),
        ([1, 0, 1], "2 of 3 goals hold, 1 not shown"),
        ([-1], "Do not deploy: the goal fails"),
        ([-1, 0], "0 of 2 goals hold, 1 fails, 1 not shown"),
        ([1, math.nan], "1 of 2 goals holds, 1 not measured"),
    ],
)
def test_verdicts_are_told_in_words(tmp_path, verdicts, title):
    rows = [row("mixture", "error", "test", 0.1)]
    for place, verdict in enumerate(verdicts):
        for part, value in {"estimate": 0.9, "low": 0.8, "high": 1.0, "bound": 0.7, "verdict": verdict}.items():
            rows.append(row("mixture", f"goal {part}", "test", value, settings=f"goal {place + 1}"))
    texts = {"goals": [{"name": f"goal {k + 1}", "text": "recall >= 0.7"} for k in range(len(verdicts))]}
    assert title in page_of(write_folder(tmp_path, rows, texts, {})).text


@pytest.mark.slow
def test_what_a_user_wrote_is_only_text(run_folder):
    def spoil(words):
        for entries in words.values():
            for entry in entries if isinstance(entries, list) else []:
                entry.update({key: BAD for key in ("text", "title", "description") if key in entry})
        words["data"] |= {"name": BAD, "lines": [BAD]}
        words["commands"] = [BAD]
        words["settings"] |= {BAD: BAD, "data": {"target": BAD}}
        words["versions"][BAD] = BAD

    rewrite(run_folder, lambda words: words.update(commands=[]))
    rewrite(run_folder, spoil)
    page = page_of(run_folder)
    assert not {"script"} & {tag for tag, _ in page.tags}
    assert page.outside == []
    assert len(page.ids) == len(set(page.ids))
    assert "x" not in page.ids
    assert page.text.count("<script>alert('1')</script>") > 20


def test_without_parts_a_sentence_stands_in_their_place(tmp_path):
    page = page_of(build_plain_run(tmp_path))
    for sentence in (
        "No goals were set",
        "No rates by group were measured",
        "No frontier was computed",
        "The model itself decides every row",
        "worst-off rows were not described",
        "The run has no command",
    ):
        assert sentence in page.text
    assert len(page.svgs) == 2  # the curves on train and test rows
    assert not re.search(r"\bnan\b", page.text)


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ("tails", "The tail was not measured"),
        ("groups", "No rates by group"),
        ("tradeoff", "No frontier"),
        ("segments", "not described"),
        ("rules", "The model itself decides every row"),
    ],
)
@pytest.mark.usefixtures("undrawn")
def test_a_part_that_is_missing_takes_nothing_with_it(run_folder, part, sentence):
    def leave_out(words):
        for entry in [
            *words["goals"],
            *(one for split in words["splits"].values() for one in split["losses"].values()),
        ]:
            entry.pop(part, None)
        words.pop(part, None)

    rewrite(run_folder, leave_out)
    page = page_of(run_folder)
    assert sentence in page.text
    assert "Do the goals hold?" in page.text
    assert not re.search(r"\bnan\b", page.text)


@pytest.mark.slow
@pytest.mark.usefixtures("page")
def test_the_same_files_give_the_same_bytes_whatever_the_style(built, run_folder):
    with matplotlib.rc_context({"font.size": 20, "axes.facecolor": "red", "svg.fonttype": "path"}):
        again = write_report(str(run_folder)).read_bytes()
    assert again == (built / "report.html").read_bytes()
    assert sorted(path.name for path in run_folder.iterdir()) == [
        "done.json",
        "report.html",
        "result.json",
    ]


@pytest.mark.slow
def test_many_goals_and_groups_stay_small(run_folder):
    def repeat(words):
        words["goals"] = [words["goals"][0]] + words["goals"][1:] + [words["goals"][0] | {"tradeoff": []}] * 4
        words["groups"] += [words["groups"][1]] * 40

    rewrite(run_folder, repeat)
    text = write_report(run_folder).read_text(encoding="utf-8")
    assert len(text.encode()) < 600_000
    assert len(Page(text).svgs) == 1 + 8 + 3 + 5 + 1


def test_curves_are_drawn_from_the_table(monkeypatch):
    drawn = {}
    monkeypatch.setattr(figures, "draw", lambda name, *_, **__: drawn.update({name: _[2]}))
    curves = {"mixture": ([0.01, 0.1, 1.0], [1.0, 0.6, 0.2]), "plain training": ([0.01, 0.1, 1.0], [1.0, 0.9, 0.1])}
    figures.cvar_figure("curve", "test", curves, 0.1)
    dots = [figures.Dot("train", 0.9, 0.8, 0.95, other=0.7), figures.Dot("test", 0.85, 0.7, 0.93)]
    figures.goal_figure("goal", "recall >= 0.8", dots, 0.8, ">=")
    axes = matplotlib.figure.Figure().subplots(1, 2)
    drawn["curve"](axes[0])
    for line, (alphas, values) in zip(axes[0].lines, curves.values(), strict=False):
        np.testing.assert_array_equal(line.get_xydata(), np.column_stack([alphas, values]))
    drawn["goal"](axes[1])
    np.testing.assert_array_equal(axes[1].lines[0].get_xydata(), [[0.9, 0], [0.85, 1]])
    (bars,) = axes[1].collections
    np.testing.assert_allclose([path[:, 0] for path in bars.get_segments()], [[0.8, 0.95], [0.7, 0.93]])
    assert axes[1].get_xlabel() == "shaded: allowed, at least 0.8000"


@pytest.mark.usefixtures("page")
def test_figures_tell_their_numbers(built):
    text = (built / "report.html").read_text(encoding="utf-8")
    result = read_result(built / "result.json")
    told = re.search(r'id="cvar-3-desc">(.*?)</desc>', text)[1]
    assert f"mixture {percent(result.losses().tail(ALPHA).value)}" in told
    told = re.search(r'id="goal-1-desc">(.*?)</desc>', text)[1]
    assert f"test {number(result.goals[0].on('test').estimate)}, from" in told


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_the_interval_of_each_rate_is_that_of_the_rows_behind_it(pairs):
    labels, said = np.array([[0, 1], [1, 0], *pairs], dtype=int).T
    table = rate_table(said, labels)
    rows = [*group_rows(table), row("mixture", "error", "test", table[0].error_rate)]
    result = result_of(tuple(rows))
    hits = {"recall": labels == 1, "false_positive_rate": labels == 0, "precision": said == 1}
    for rate in ("positive_rate", "error_rate", *hits):
        trials = int(hits[rate].sum()) if rate in hits else len(labels)
        dot = rates._dot(result.groups[0], rate)
        exact = stats.binomtest(round(dot.value * trials), trials).proportion_ci(0.95, method="exact")
        assert (dot.low, dot.high) == pytest.approx((exact.low, exact.high))


def test_weighted_rates_have_no_interval():
    tables = (rate_table([0] * 50, [0, 1] * 25, pos_label=1, sample_weight=weight) for weight in (None, [1, 2] * 25))
    plain, weighted = (result_of(tuple(group_rows(table))) for table in tables)
    assert rates._dot(plain.groups[0], "positive_rate").high == pytest.approx(1 - 0.025 ** (1 / 50))
    assert math.isnan(rates._dot(weighted.groups[0], "positive_rate").high)


@pytest.mark.parametrize(
    ("verdict", "missed", "confidence", "deployed", "decision"),
    [
        (1, 0.0, None, None, "Deploy"),
        (1, 0.0, None, (0.05, 0.2), "Deploy with cautions"),  # which misses the goal, and errs less
        (1, 0.0, None, (0.05, 0.0), "Do not deploy"),
        (0, 0.0, 0.9, None, "Deploy with cautions"),
        (0, 0.0, 0.9, (0.2, 0.0), "Deploy with cautions"),
        (0, 0.0, None, None, "Deploy with cautions"),  # with margins that do not reach the confidence
        (0, 0.0, None, (0.2, 0.1), "Deploy with cautions"),  # which is worse in everything
        (0, 0.0, None, (0.05, 0.0), "Do not deploy"),
        (0, 0.04, 0.9, (0.2, 0.0), "Do not deploy"),  # which meets the goal
        (0, 0.04, 0.9, None, "Deploy with cautions"),  # by chance: less than half of the interval's half
        (0, 0.06, 0.9, None, "Do not deploy"),
        (0, 0.04, None, None, "Do not deploy"),
        (-1, 0.1, 0.9, None, "Do not deploy"),
    ],
)
def test_the_first_line_says_whether_to_deploy_by_the_rule_on_the_page(verdict, missed, confidence, deployed, decision):
    estimate = 0.7 - missed if missed else 0.8
    ours = {
        "estimate": estimate,
        "low": estimate - 0.1,
        "high": estimate + 0.1,
        "bound": 0.7,
        "verdict": {1: "holds", 0: "undecided", -1: "fails"}[verdict],
        "violation": missed,
        "rows": 100.0,
    }
    standings, losses = {"mixture": SplitStanding(**ours)}, {"mixture": SplitLosses(error=0.1)}
    if deployed is not None:
        losses["deployed model"] = SplitLosses(error=deployed[0])
        standings["deployed model"] = SplitStanding(estimate=0.7 - deployed[1], violation=deployed[1])
    goal = GoalResult(text="recall >= 0.7", margin=MarginResult(value=0.75), splits={"test": standings})
    level = {} if confidence is None else {"confidence": confidence}
    result = RunResult(
        settings={"confidence": 0.9, "alpha": 1.0},
        splits={"test": SplitResult(rows=100, losses=losses)},
        goals=[goal],
        **level,
    )
    found = overview.headline(result)
    assert found.title.startswith(f"{decision}: the goal ")


def test_a_confidence_that_was_not_reached_stands_beside_the_probability_that_was():
    standing = SplitStanding(estimate=0.8, low=0.6, high=0.9, bound=0.7, verdict="undecided", violation=0.0)
    goal = GoalResult(text="recall >= 0.7", margin=MarginResult(value=0.75), splits={"test": {"mixture": standing}})
    splits = {"test": SplitResult(rows=100, losses={"mixture": SplitLosses(error=0.1)})}
    result = RunResult(settings={"confidence": 0.9}, met_on="train", probability=0.888, splits=splits, goals=[goal])
    sentences = " ".join(overview.headline(result).sentences)
    assert (
        "0.9 was not reached where decisions were chosen: the goals hold together with a probability of about 0.89."
        in sentences
    )


def test_without_test_rows_the_page_says_so(tmp_path):
    rows = [row("mixture", f"goal {part}", "validation", 1.0, settings="goal 1") for part in ("estimate", "verdict")]
    page = page_of(write_folder(tmp_path, rows, {"goals": [{"name": "goal 1", "text": GOALS[0]}]}, {}))
    assert "There are no test rows: the model was fitted or chosen on the rows judged here" in page.text
    assert "Do not deploy, as there are no test rows: the goal holds The validation rows show it." in page.text


def test_colours_can_be_told_from_their_background():
    style = (Path(report.__file__).parent / "style.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\}", style, flags=re.DOTALL)
    assert len(blocks) == 3  # light, dark, paper
    for block in blocks:
        colours = dict(re.findall(r"--([\w-]+): (#\w{6})", block))
        for name in ("ink", "muted", "series-1", "series-2", "series-3", "holds", "fails", "undecided", "unknown"):
            for back in ("paper", "panel", f"{name}-back"):
                assert contrast(colours[name], colours.get(back, colours["paper"])) >= 4.5, (name, back)


def contrast(one, other):
    """Return the contrast of two colours as WCAG 2 defines it."""

    def light(colour):
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return np.dot(linear, [0.2126, 0.7152, 0.0722])

    low, high = sorted([light(one), light(other)])
    return (high + 0.05) / (low + 0.05)


def test_a_folder_that_is_no_run_is_named(tmp_path, run_folder):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere"):
        write_report(tmp_path / "nowhere")
    (run_folder / "result.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks result.json. Run counterpoise fit first."):
        write_report(run_folder)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "must hold the result of a run; it is not valid JSON"),
        ("[]", "of the format 'counterpoise run result 1'; got 'list'"),
        ('{"format": "counterpoise run result 9"}', "got 'counterpoise run result 9'"),
        ('{"format": "counterpoise run result 1", "goals": [{"txt": 1}]}', r"is damaged at 'goals.0.text'"),
        (
            '{"format": "counterpoise run result 1", "splits": {"test": {"rows": "many"}}}',
            "damaged at 'splits.test.rows'",
        ),
        (
            '{"format": "counterpoise run result 1", "splits": {"": {"losses": {"average": {"tails":[{"alpha":0}]}}}}}',
            "damaged at 'splits..losses.average.tails.0.alpha': Input should be greater than 0",
        ),
        ('{"format": "counterpoise run result 1", "surprise": 1}', "damaged at 'surprise'"),
        ("[" * 100_000, "must hold the result of a run; it is not valid JSON"),
    ],
)
def test_a_corrupt_or_foreign_result_is_refused_in_a_sentence(run_folder, content, said):
    (run_folder / "result.json").write_text(content, encoding="utf-8")
    with pytest.raises(RunFolderError, match=said) as refused:
        write_report(run_folder)
    assert "\n" not in str(refused.value)
    assert not (run_folder / "report.html").exists()


def test_a_missing_package_is_named(run_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'needs jinja2 and matplotlib: pip install "counterpoise\[cli\]"'):
        write_report(run_folder)
    assert not (run_folder / "report.html").exists()


def swapped(*, groups=True):
    """Return the result of a run that decides otherwise than the deployed model about some people."""
    swaps = [SwapResult(before=0, after=1, rows=41, right=25, was_right=16)]
    swaps += [SwapResult(before=1, after=None, rows=20, right=0, was_right=12)]
    if groups:
        swaps += [SwapResult(before=0, after=1, group="sex=F", rows=15, right=9, was_right=6)]
        swaps += [SwapResult(before=1, after=None, group="sex=F", rows=4, right=0, was_right=2)]
    losses = {"mixture": SplitLosses(error=0.2), "deployed model": SplitLosses(error=0.3)}
    return RunResult(
        data={"classes": ["no", "yes"], "positive": "yes"},
        splits={"test": SplitResult(rows=600, losses=losses)},
        deferral={"cost": 0.2, "label": "ask"},
        swaps=swaps,
    )


def test_who_gets_another_decision_stands_on_the_first_page():
    page = Page(rendered(swapped()))
    first = page.text.partition("What was requested")[0]
    told = "61 of 600 people get another decision than today (10.2 %). The new decision is right for 25 of them, "
    assert f"{told}today's for 28." in first
    assert "newly yes (today no) 41 25 16 15 (9 right)" in first
    assert "newly a person (today yes) 20 0 12 4 (0 right)" in first
    assert page.svgs[0]["aria-labelledby"] == "swaps-title swaps-desc"
    alone = overview.swaps(swapped(groups=False))
    assert list(alone.table.columns) == ["decision", "people", "now right", "right today"]
    assert overview.swaps(RunResult()) is None


def test_at_most_three_steps_stand_on_the_first_page():
    standing = SplitStanding(estimate=0.5, low=0.4, high=0.6, bound=0.7, verdict="fails", violation=0.2)
    goals = [GoalResult(text=f"recall >= 0.{k}", splits={"test": {"mixture": standing}}) for k in range(4, 9)]
    found = overview.headline(RunResult(splits={"test": SplitResult(rows=100)}, goals=goals))
    assert len(found.steps) == 3
    assert all(step.endswith("is missed by 0.2000 on the test rows.") for step in [*found.steps, *found.more])
