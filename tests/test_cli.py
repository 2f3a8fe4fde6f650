"""The command line: help, errors without a traceback."""

import pytest

from counterpoise.cli import main


def test_help_names_the_commands(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    assert "reproduce" in capsys.readouterr().out


def test_an_unknown_data_set_is_one_sentence_and_exit_code_2(capsys, tmp_path):
    assert main(["reproduce", "boosted-cvar", "--datasets", "compass", "--output", str(tmp_path / "new")]) == 2
    assert "--datasets must be among acs-income, adult, compas, covertype; got 'compass'" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
