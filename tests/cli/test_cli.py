"""The command line: help that reads like documentation, errors without a traceback, output for scripts."""

import json
import os
import re
import subprocess
import sys

import pytest

import counterpoise
from counterpoise.cli import main, sentence
from counterpoise.cli.commands import app
from counterpoise.cli.printing import Shown

COMMANDS = sorted(name for name in app if not name.startswith("-"))


@pytest.mark.parametrize("asked", [[], ["-h"], ["--help"]])
def test_help_names_every_command_once_and_what_it_does(asked, capsys):
    assert main(asked) == 0
    shown = capsys.readouterr().out
    listed = re.findall(r"^  (?!counterpoise)([a-z-]+) +\w+ \w+", shown, re.MULTILINE)
    assert sorted(listed) == sorted(name for name in app if not name.startswith("-"))
    assert set(re.findall(r"(?<=[ ,])--[a-z-]+", shown)) >= {name for name in app if name.startswith("--")} - {"--help"}
    assert "Exit codes: 0 done" in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_one_screen_that_begins_with_an_example_and_names_every_option(command, capsys):
    assert main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert main([command, "--help-all"]) == 0
    whole = capsys.readouterr().out
    assert shown.startswith(f"  counterpoise {command}")
    assert shown.count("\n") <= 24
    assert max(map(len, shown.splitlines())) <= 80
    assert set(re.findall(r"(?<![a-z-])--[a-z][a-z-]+", whole)) <= {*re.findall(r"--[a-z-]+", shown), "--help"}


def test_help_in_full_explains_every_option(capsys):
    assert main(["choose", "--help-all"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Usage: counterpoise choose")
    rows = [line for line in shown.splitlines() if line.startswith(("│ --", "│ *"))]
    assert all(len(line.strip("│ *").split("  ", 1)) == 2 for line in rows), "an option without words"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fitt", "goals.toml"], "Did you mean 'fit'?"),
        (["fit"], "fit needs a goals file, or --from RUN"),
        (["fit", "goals.toml", "--alpha", "0.2"], "--alpha is for fit --from RUN."),
        (["fit", "goals.toml", "--no-proof"], "--proof is for fit --from RUN."),
        (["fit", "goals.toml", "--from", "run", "-o", "new"], "and no goals file"),
        (["fit", "--from", "run"], "--from needs --output"),
        (["fit", "goals.toml", "--strickt"], "Did you mean --strict"),
        (["fit", "--from", "run", "-o", "new", "--alpha", "much"], "--alpha"),
        (["data", "fetch", "addult"], "name must be one of"),
        (["predict", "run", "data.csv"], "--output"),
    ],
)
def test_a_slip_in_the_command_is_one_sentence_and_exit_code_2(arguments, words, capsys):
    assert main(arguments) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("counterpoise: ")
    assert words in shown.replace('"', "")
    assert shown.count("\n") == 1


@pytest.mark.parametrize(
    ("command", "now"),
    [("certify", "audit RUN"), ("rebalance", "fit --from RUN"), ("pack", "report RUN --pack FILE.zip")],
)
def test_the_error_for_a_command_of_before_says_what_it_is_now(command, now, capsys):
    assert main([command, "run"]) == 2
    assert capsys.readouterr().err == f"counterpoise: `{command}` is `{now}` since 0.3.\n"


def test_json_output_is_one_object_and_quiet_prints_nothing(capsys):
    assert main(["data", "list", "--json"]) == 0
    assert "adult" in json.loads(capsys.readouterr().out)["names"]
    assert main(["data", "list", "--quiet"]) == 0
    assert capsys.readouterr().out == ""


def test_numbers_that_json_lacks_become_null(capsys):
    Shown(json=True).answer("", {"a": float("nan"), "b": [float("inf"), 1.5], "c": None, "d": True})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [None, 1.5], "c": None, "d": True}


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion_installs(shell, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))  # the shell's own start-up file gets a line
    script = tmp_path / "completion"
    assert main(["--install-completion", "--shell", shell, "--output", str(script)]) == 0
    text = script.read_text()
    assert "counterpoise" in text
    assert "alternatives" in text
    assert capsys.readouterr().out


def test_a_fault_of_our_own_says_so_and_how_to_see_more():
    assert "bug in counterpoise" in sentence(RuntimeError("unreachable"))
    assert "COUNTERPOISE_TRACEBACK=1" in sentence(KeyError("x"))


def test_what_to_install_is_said_once():
    told = sentence(ModuleNotFoundError("No module named 'rich'"))
    assert told.endswith('. This needs more packages: pip install "counterpoise[cli]"')
    other = 'PNG images need Pillow: pip install "counterpoise[images]"'
    assert sentence(ModuleNotFoundError(other)) == other


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from counterpoise.cli import main; main(['--help']);"
        "heavy = {'numpy', 'scipy', 'sklearn', 'pandas', 'matplotlib', 'numba', 'pydantic', 'cyclopts', 'rich'};"
        "heavy &= set(sys.modules);"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("policy", [None, "active"])
def test_waiting_threads_sleep_unless_another_policy_is_set(policy, monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", policy or "")
    if policy is None:
        monkeypatch.delenv("OMP_WAIT_POLICY")
    assert main(["--version"]) == 0
    assert os.environ["OMP_WAIT_POLICY"] == (policy or "passive")


@pytest.mark.parametrize(("closed", "code"), [("--help >&-", 0), ("--help >&- 2>&-", 0), ("bogus >&- 2>&-", 2)])
def test_streams_that_are_closed_change_no_exit_code(closed, code):
    command = ["sh", "-c", f"{sys.executable} -m counterpoise {closed}"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (code, b"")


@pytest.mark.slow
def test_the_package_runs_as_a_module():
    command = [sys.executable, "-m", "counterpoise"]
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, counterpoise.__version__)
    refused = subprocess.run([*command, "fitt"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert refused.stderr.startswith("counterpoise: ")
