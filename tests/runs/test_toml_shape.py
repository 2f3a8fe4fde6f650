"""Any text is settings or one sentence."""

from hypothesis import given
from hypothesis import strategies as st

from counterpoise.runs import GoalsFileError, RunSettings
from counterpoise.runs.goals_file import parse_goals_file

HIDDEN = "[" * 20 + "a." * 20
STRINGS = [
    f'"{HIDDEN}"',
    f"'{HIDDEN}'",
    f'"""{HIDDEN}\n"" "{HIDDEN}"""',
    f"'''{HIDDEN}\n'' '{HIDDEN}'''",
    f'"\\"{HIDDEN}\\\\"',
    f'"""\\"""{HIDDEN}\\\\"""',
    f'"""{HIDDEN}"""""',
    f"'''{HIDDEN}'''''",
    '""',
    "''",
    '""""""',
    "''''''",
]
COMMENTS = [f"# {HIDDEN}", "# '''", '# """', "# it's", '# "']
ANYTHING = [*STRINGS, *COMMENTS, *"a=.,\n[]{}'\"\\", "[" * 30, "a." * 30, "'''", '"""']


@given(st.lists(st.sampled_from(ANYTHING), max_size=15).map("".join))
def test_any_text_is_settings_or_one_sentence(text):
    try:
        assert isinstance(parse_goals_file(text.encode(), "goals.toml"), RunSettings)
    except GoalsFileError as error:
        assert "\n" not in str(error)  # noqa: PT017 - both are right
        assert len(str(error)) < 1000  # noqa: PT017
