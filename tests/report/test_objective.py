"""What a report says of other objectives than the tail, of the rows as they are, and of settings."""

import json
import math

import pytest
from parsed_page import Page
from run_folders import ALPHA, build_plain_run, result_of, row, write_folder

from counterpoise.report import write_report
from counterpoise.report.sections import points_at
from counterpoise.report.wording import number, percent
from counterpoise.runs.result import read_result

pytest.importorskip("jinja2", reason="jinja2 is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

pytestmark = pytest.mark.usefixtures("undrawn")

RATE = "false_positive_rate"
GOALS = ("recall >= 0.8", "churn <= 0.1")
VALUES = {  # method: on train, validation and test rows
    "mixture": (0.0611, 0.0522, 0.0733),
    "first model": (0.0812, 0.0923, 0.1034),
    "deployed model": (0.0141, 0.0252, 0.0363),
}
SPLITS = ("train", "validation", "test")


def objective_rows():
    """Yield an objective on three splits for three methods, errors, and two undecided goals, one of them missed."""
    for method, values in VALUES.items():
        for split, value in zip(SPLITS, values, strict=True):
            yield row(method, "objective", split, value)
            if method != "deployed model":
                yield row(method, "error", split, value / 2)
                yield row(method, "cvar", split, value / 2, alpha=1.0)
    for place, violation in enumerate((0.0, 0.0192)):
        parts = {"estimate": 0.8, "low": 0.7, "high": 0.9, "bound": 0.8, "margin": -0.1, "verdict": 0, "rows": 40}
        for part, value in (parts | {"violation": violation}).items():
            for split in SPLITS:
                yield row("mixture", f"goal {part}", split, value, settings=f"goal {place + 1}")
    for bound, value in ((0.7, 0.031), (0.8, 0.0522), (0.9, 0.0777)):
        for part in ("value", "lower"):
            where = f"goal 1 bound={bound!r}"
            yield row("mixture", f"frontier {part}", "validation", value, settings=where)


def page_of(folder, *, objective, alpha=1.0, rows=None, **texts):
    goals = [{"name": f"goal {place + 1}", "text": text, "confidence": 0.95} for place, text in enumerate(GOALS)]
    texts = {"goals": goals, "objective": objective, **texts}
    write_folder(folder, list(objective_rows()) if rows is None else rows, texts, {"alpha": alpha})
    return Page(write_report(folder).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("objective", "name", "show"),
    [
        ({"kind": "rate", "text": RATE}, RATE, number),
        ({"kind": "worst-group"}, "the share wrong in the worst group", percent),
    ],
)
def test_another_objective_is_named_and_shown_on_every_split(tmp_path, objective, name, show):
    page = page_of(tmp_path, objective=objective, met_on="validation")
    ours, first, deployed = (" ".join(show(values[2]).split()) for values in VALUES.values())
    others = f"(plain training: {first}, deployed model: {deployed})"
    assert f"The objective, {name}, is {ours} on the test rows {others}." in page.text
    assert f"Minimised {name}" in page.text
    for values in VALUES.values():
        for value in values:
            assert " ".join(show(value).split()) in page.text
    assert "worst-off 100" not in page.text
    assert "costs" not in page.text.partition("What was requested")[0]
    assert f"The least value of {name} over" in " ".join(page.text.split())
    assert f"bound least {name.removeprefix('the ')} proven lower bound" in page.text
    assert f"0.8000 (requested) {' '.join(show(0.0522).split())}" in page.text


def test_an_alpha_of_one_is_the_plain_error(tmp_path):
    page = page_of(tmp_path, objective={"kind": "cvar"})
    head = page.text.partition("Do the goals hold?")[0]
    assert "Minimised the share wrong of all rows" in head
    assert "worst-off 100" not in page.text
    assert "worst-off" not in head.replace("Worst-off rows", "")
    assert "(alpha)" not in page.text
    assert "worst-off" not in page.text
    assert "How small is the objective?" not in page.text


def test_a_method_with_an_aim_of_its_own_was_not_asked_for_the_tail(tmp_path):
    page = page_of(tmp_path, objective={"kind": "own"}, alpha=ALPHA)
    assert "Least wrong for" not in page.text
    assert "Also measured for the worst-off 10 % of the rows (alpha = 0.1)" in page.text


def test_verdicts_say_whether_the_rows_themselves_meet_the_bound(tmp_path):
    page = page_of(tmp_path, objective={"kind": "rate", "text": RATE}, met_on="validation")
    told = "On the test rows as they are 1 of 2 goals is met; they are too few to be sure of either."
    assert f"Do not deploy: neither goal is shown to hold {told}" in page.text
    assert page.text.count("? undecided met on these rows") == 7  # three splits, in two tables, and first
    assert page.text.count("? undecided missed by 0.0192") == 7
    assert "The decisions were chosen inside the goals on the validation rows" in " ".join(page.text.split())
    assert "met by construction" in page.text


def test_goals_that_nothing_was_chosen_inside_are_not_met_by_construction(tmp_path):
    assert "by construction" not in page_of(tmp_path, objective={"kind": "own"}).text


def test_one_goal_alone_is_met_or_missed(tmp_path):
    rows = [found for found in objective_rows() if "goal 1" not in found.settings]
    rows = [found._replace(settings=found.settings.replace("goal 2", "goal 1")) for found in rows]
    texts = {"goals": [{"name": "goal 1", "text": GOALS[1]}]}
    write_folder(tmp_path, rows, texts, {"alpha": 1.0})
    text = Page(write_report(tmp_path).read_text(encoding="utf-8")).text
    assert (
        "Do not deploy: the goal is not shown to hold On the test rows as they are it is missed; they are too few "
        "to be sure." in text
    )


def test_reasons_stand_in_the_place_of_what_is_missing(tmp_path):
    why = {"groups": "there are 10 classes", "frontier": "no goals were set", "segments": "there are 30 rows"}
    rows = [row("mixture", "error", "test", 0.1)]
    text = page_of(tmp_path, objective={"kind": "cvar"}, rows=rows, alpha=ALPHA, goals=[], why=why).text
    assert "No rates by group were measured: there are 10 classes." in text
    assert "No frontier was computed: no goals were set." in text
    assert "The worst-off rows were not described: there are 30 rows." in text


def test_settings_that_were_not_set_are_left_out_and_the_others_grouped(tmp_path):
    folder = build_plain_run(tmp_path)
    settings = json.loads(
        '{"alpha": 0.1, "output": null, "data": {"target": "kind", "drop": [], "weights": null, "max_long_key": 3},'
        ' "method": {"name": "pool", "parameters": {}, "learner": null, "enforce_goals": true, "models": ['
        ' {"name": "tree", "title": null, "parameters": {"max_depth": 2}}, {"name": "svm", "parameters": {}}]},'
        ' "goals": [{"goal": "recall >= 0.5", "confidence": null}]}'
    )
    result = read_result(folder / "result.json").model_copy(update={"settings": settings})
    (folder / "result.json").write_text(result.model_dump_json(), encoding="utf-8")
    page = Page(write_report(folder).read_text(encoding="utf-8"))
    told = page.text.partition("Settings key value")[2].partition("Run it again")[0]
    assert told.strip() == (
        "alpha 0.1 data target kind max_long_key 3 method name pool enforce_goals true models 1 "
        "name = tree; parameters.max_depth = 2 models 2 svm goals 1 recall >= 0.5"
    )
    assert "max_<wbr>long_<wbr>key" in (folder / "report.html").read_text(encoding="utf-8")


def test_models_of_one_kind_are_described_once_and_many_are_summed_up(tmp_path):
    shares = [0.2, *[0.8 / 20] * 20]
    rows = [row("mixture", "error", "test", 0.1)]
    rows += [row(f"model {place}", "share", "", share) for place, share in enumerate(shares, start=1)]
    models = [{"name": f"model {place}", "title": f"round {place}", "description": "a stump"} for place in range(1, 22)]
    page = page_of(tmp_path, objective={"kind": "cvar"}, rows=rows, goals=[], models=models)
    assert page.text.count("a stump") == 1
    assert "21 of 21 models carry weight. Each is: a stump." in page.text
    rest = math.fsum(shares[15:])
    assert f"The 15 largest are listed; the others have {' '.join(percent(rest).split())} together." in page.text
    assert "what it is" not in page.text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("recall >= 0.8", "Goal 1 costs most: without it"),
        (
            "precision >= 0.8",
            "Goal 1 costs most: with the bound 0.7500",
        ),  # of which only bounds near it are known
    ],
)
def test_what_a_goal_costs_is_told_by_the_end_where_it_is_not_asked(tmp_path, text, said):
    """Within a budget the curve may have less than at its end."""
    curves = {"goal 1": ((0.7, 0.04), (0.75, 0.03)), "goal 2": ((0.7, 0.05), (0.9, 0.0511))}
    rows = list(objective_rows())
    for name, points in curves.items():
        for bound, value in (*points, (0.8, 0.0522)):
            for part in ("value", "lower"):
                where = f"{name} bound={bound!r}"
                rows.append(row("mixture", f"frontier {part}", "validation", value, settings=where))
    goals = [{"name": f"goal {place}", "text": goal} for place, goal in enumerate((text, "churn <= 0.8"), start=1)]
    page = page_of(tmp_path, objective={"kind": "rate", "text": RATE}, rows=rows, goals=goals)
    least = "0.0400" if "without" in said else "0.0300"
    assert f"{said} {RATE} could be {least} in place of 0.0522" in " ".join(page.text.split())


def test_points_of_a_frontier_are_told_apart_in_any_unit():
    points = [(bound * 1e-14, 0.5, 0.5) for bound in (0.0, 1.0, 2.0, 3.0)]
    assert points_at(1e-14 * (1 + 1e-12), points) == [points[1]]
    assert points_at(0.0, points) == [points[0]]


def test_tail_fractions_are_told_apart_however_small():
    rows = [row("mixture", "cvar", "test", value, alpha=alpha) for value, alpha in ((0.1, 1e-12), (0.2, 2e-12))]
    record = result_of(tuple(rows), {}, {}, {})
    assert record.losses().tail(2e-12).value == 0.2
    assert record.losses().tail(1e-12 * (1 + 1e-11)).value == 0.1


def test_what_is_met_is_told_of_the_rows_that_count(tmp_path):
    """A goal that the training rows meet and the test rows miss is missed."""
    on_train = [found.quantity == "goal violation" and found.split == "train" for found in objective_rows()]
    rows = [
        found._replace(value=0.0) if is_changed else found
        for found, is_changed in zip(objective_rows(), on_train, strict=True)
    ]
    page = page_of(tmp_path, objective={"kind": "own"}, rows=rows)
    assert "On the test rows as they are 1 of 2 goals is met" in page.text


def test_rows_that_would_show_a_goal_are_as_many_as_the_square_of_what_is_missing(tmp_path):
    """Intervals shrink with the root of the rows: half as wide takes four times as many."""
    parts = {"estimate": 0.85, "low": 0.75, "high": 0.95, "bound": 0.8, "margin": -0.05, "verdict": 0, "rows": 100}
    rows = [found for found in objective_rows() if not found.quantity.startswith("goal ")]
    rows += [
        row("mixture", f"goal {part}", split, value, settings="goal 1")
        for part, value in (parts | {"violation": 0.0}).items()
        for split in SPLITS
    ]
    texts = {"goals": [{"name": "goal 1", "text": GOALS[0], "confidence": 0.95}]}
    write_folder(tmp_path, rows, texts, {"alpha": 1.0})
    text = Page(write_report(tmp_path).read_text(encoding="utf-8")).text
    assert "inside its bound by 0.0500: 4 times as many test rows" in text
