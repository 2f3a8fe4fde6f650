"""Every option of a command reaches the function that does the work, as it was given."""

import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

from counterpoise import runs
from counterpoise.cli import commands, main
from counterpoise.cli.printing import Shown
from counterpoise.runs import RunSettings, goals_file, tables, use
from counterpoise.runs.rebalanced import changed, command_for


@pytest.fixture
def asked(monkeypatch, capsys, tmp_path):
    """Return a function that tells what a command would call a function of ``counterpoise.runs`` with."""

    monkeypatch.chdir(tmp_path)
    for name in ("rows.csv", "goals.toml", "rules.json"):
        Path(name).touch()
    Path("run").mkdir()

    def calls(name, command, place=runs):
        seen = []

        def record(*given, **named):
            seen.append((given, named))
            raise ValueError("that is all")

        monkeypatch.setattr(place, name, record)
        # No run is there, and "a" is no goal.
        monkeypatch.setattr(runs, "open_run", lambda folder: SimpleNamespace(folder=Path(folder)))
        monkeypatch.setattr(Shown, "open_run", lambda _self, _command, folder, _goals=None: runs.open_run(folder))
        monkeypatch.setattr(Shown, "begin", lambda _self, _command, *_files, goals=None: None)  # noqa: ARG005
        monkeypatch.setattr(commands, "check_run_folder", Path)
        monkeypatch.setattr(goals_file, "check_goals_file", lambda _path: None)
        assert main(command) == 2, capsys.readouterr()
        assert "that is all" in capsys.readouterr().err
        (given, named), *more = seen
        assert not more
        kept = {key: value for key, value in named.items() if key not in {"on_event", "tell", "say", "ready"}}
        return [str(getattr(one, "folder", one)) for one in given], kept

    return calls


NOTHING = dict.fromkeys(
    ("alpha", "objective", "goals", "defer_cost", "budget", "by", "decision", "confidence", "proof")
)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ([], {}),
        (["--alpha", "0.2"], {"alpha": 0.2}),
        (["--objective", "KL(0.1)"], {"objective": "KL(0.1)"}),
        (["--goal", "a", "--goal", "b"], {"goals": ["a", "b"]}),
        (["--budget", "0.05"], {"budget": 0.05}),
        (["--by", "sex", "--by", "age"], {"by": ["sex", "age"]}),
        (["--by", ""], {"by": []}),  # look at no column any more, and not as before
        (["--defer-cost", "0.3"], {"defer_cost": 0.3}),
        (["--defer-cost", "never"], {"defer_cost": "never"}),
        (["--decision", "sticky"], {"decision": "sticky"}),
        (["--confidence", "none"], {"confidence": "none"}),
        (["--proof"], {"proof": True}),
        (["--no-proof"], {"proof": False}),
    ],
)
def test_rebalance(asked, options, named):
    given, kept = asked("rebalance_run", ["fit", "--from", "run", "-o", "new", *options])
    assert given == ["run"]
    assert kept == {**NOTHING, **named, "output": Path("new")}


@pytest.mark.parametrize("proof", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        "",
        "--alpha 0.2 --budget 0.05 --decision sticky",
        "--objective 'KL(0.1)'",
        "--by sex --by age",
        "--by ''",
        "--defer-cost 0.3",
        "--defer-cost never",
        "--confidence none --no-proof",
        "--confidence 0.95 --proof",
        "--goal 'precision(sex=F) >= 0.8' --goal 'f1_score >= 0.5 with confidence 0.99'",
        "--goal 'win_loss_ratio >= 1' --goal 'min_ratio(precision, by=sex) >= 0.8' --goal 'recall == 0.5 +- 0.1'",
    ],
)
def test_a_rebalanced_run_names_the_command_that_makes_it_again(asked, options, proof):
    method = {"parameters": {"deferral": {"cost": 0.4}, "by": ["age"], "budget": 0.2, "decision": "fixed"}}
    settings = RunSettings(data={"files": "a.csv", "target": "y"}, goals=["recall >= 0.6"], method=method, proof=proof)

    def changes_of(words):
        _, named = asked("rebalance_run", words)
        assert named.pop("output") == Path("new")
        return changed(settings, **{name: value for name, value in named.items() if value is not None})

    changes = changes_of(["fit", "--from", "run", "-o", "new", *shlex.split(options)])
    made = settings.model_copy(update=changes)
    command = command_for(SimpleNamespace(folder=Path("run"), settings=settings), made, changes, Path("new"))
    assert all(shlex.quote(goal) in command for goal in shlex.split(options) if "=" in goal)  # in their own words
    assert settings.model_copy(update=changes_of(shlex.split(command)[1:])).model_dump() == made.model_dump()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ([], {}),
        (["--confidence", "0.9"], {"confidence": 0.9}),
        (["--goal", "a", "--goal", "b"], {"goals": ["a", "b"]}),
        (["--largest-weight", "8"], {"largest_weight": 8.0}),
        (["--largest-value", "9"], {"largest_value": 9.0}),
        (["--drawn"], {"drawn": True}),
    ],
)
def test_audit_of_a_run(asked, options, named):
    given, kept = asked("audit_run", ["audit", "run", "rows.csv", *options])
    assert given == ["run", "rows.csv"]
    assert kept == {
        "confidence": None,
        "goals": None,
        "largest_weight": None,
        "largest_value": None,
        "drawn": False,
        **named,
    }
    assert asked("audit_run", ["audit", "run"])[0] == ["run", "None"]


def test_fit_and_predict(asked):
    assert asked("fit_run", ["fit", "goals.toml", "-o", "run"]) == (["goals.toml"], {"output": Path("run")})
    options = ["--probabilities", "--ids", "person", "--top", "5"]
    named = {"probabilities": True, "ids": "person", "top": 5}
    assert asked("predict_run", ["predict", "run", "rows.csv", "-o", "said.csv", *options]) == (
        ["run", "rows.csv", "said.csv"],
        named,
    )
    printed = asked("predictions_of", ["predict", "run", "rows.csv", "-o", "-", *options], use)
    assert printed == (["run", "rows.csv"], named)


CHOSEN = {
    **dict.fromkeys(
        ("baseline", "weights", "largest_weight", "largest_value", "positive", "objective", "budget", "defer_cost")
    ),
    **dict.fromkeys(("defer_label", "ids", "key", "sql")),
    "by": (),
    "groups": (),
    "alpha": None,
    "decision": "fixed",
    "confidence": 0.9,
}
OF_ROWS = {
    "--baseline": ("baseline", "old", "old"),
    "--weights": ("weights", "mass", "mass"),
    "--largest-weight": ("largest_weight", "4", 4.0),
    "--largest-value": ("largest_value", "5", 5.0),
    "--positive": ("positive", "yes", "yes"),
    "--defer-label": ("defer_label", "ask", "ask"),
}
OF_CHOICE = {
    **OF_ROWS,
    "--alpha": ("alpha", "0.2", 0.2),
    "--objective": ("objective", "KL(0.1)", "KL(0.1)"),
    "--budget": ("budget", "0.05", 0.05),
    "--decision": ("decision", "sticky", "sticky"),
    "--defer-cost": ("defer_cost", "0.3", 0.3),
    "--ids": ("ids", "person", "person"),
    "--confidence": ("confidence", "0.8", 0.8),
    "--key": ("key", "sixteen characters", "sixteen characters"),
    "--by": ("by", "sex", ["sex"]),
    "--groups": ("groups", "sex", ["sex"]),
}


@pytest.mark.parametrize("option", OF_CHOICE)
def test_choose(asked, option):
    name, text, value = OF_CHOICE[option]
    command = ["choose", "rows.csv", "--target", "y", "--score", "s", "--score", "t", "--goal", "a", "--goal", "b"]
    given, kept = asked("choose_table", [*command, option, text, "-o", "rules.json"], tables)
    assert given == ["rows.csv", "rules.json"]
    assert kept == {**CHOSEN, "target": "y", "scores": ["s", "t"], "goals": ["a", "b"], name: value}


@pytest.mark.parametrize("option", [*OF_ROWS, "--confidence", "--groups"])
def test_audit(asked, option):
    more = {"--confidence": ("confidence", "0.9", 0.9), "--groups": ("groups", "sex", ("sex",))}
    name, text, value = {**OF_ROWS, **more}[option]
    command = ["audit", "rows.csv", "--target", "y", "--prediction", "p", "--goal", "a", "--goal", "b", option, text]
    given, kept = asked("audit_table", command, tables)
    nothing = dict.fromkeys([*(one for one, *_ in OF_ROWS.values()), "confidence"])
    assert given == ["rows.csv"]
    nothing["groups"] = ()
    assert kept == {**nothing, "target": "y", "prediction": "p", "goals": ["a", "b"], name: value}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("run rows.csv --prediction p", "--prediction is for tables; run is a run, which knows its columns."),
        ("run rows.csv --impact", "--impact is for tables; run is a run, which knows its columns."),
        ("rows.csv --drawn", "--drawn is for runs; rows.csv is a table."),
    ],
)
@pytest.mark.usefixtures("asked")
def test_an_audit_refuses_options_of_the_other_kind(words, sentence, capsys):
    assert main(["audit", *words.split()]) == 2
    assert capsys.readouterr().err == f"counterpoise: {sentence}\n"


def test_apply(asked):
    found = asked("apply_rules", ["apply", "rules.json", "rows.csv", "--ids", "person", "-o", "said.csv"], tables)
    assert found == (["rules.json", "rows.csv", "said.csv"], {"ids": "person"})
