"""How deep a goals file goes is told right, whatever its strings and comments hold."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoise.runs import GoalsFileError, RunSettings
from counterpoise.runs.goals_file import parse_goals_file, too_deep

HIDDEN = "[" * 20 + "a." * 20  # deep, were it not in a string or a comment
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
SIMPLE = st.sampled_from([*STRINGS, "1.5", "true", "1979-05-27"])


def listed(values):
    """Return lists over several lines, with comments, and tables in one."""
    lines = st.lists(st.tuples(values, st.sampled_from(["", *COMMENTS])), max_size=3)
    tables = st.lists(values, max_size=2)
    return lines.map(lambda some: "[" + "".join(f"{value}, {comment}\n" for value, comment in some) + "]") | tables.map(
        lambda some: "{" + ", ".join(f"k{at}.'{HIDDEN}' = {value}" for at, value in enumerate(some)) + "}"
    )


VALUES = st.recursive(SIMPLE, listed, max_leaves=4)
KEYS = st.sampled_from(["k{}", "[k{}]\nx", "[[k{}.'" + HIDDEN + "']]\nx", 'k{}."' + HIDDEN + '" . b'])
LINES = st.lists(st.tuples(KEYS, VALUES, st.sampled_from(["", *COMMENTS])), max_size=4)
TEXTS = LINES.map(
    lambda lines: "\n".join(f"{key.format(at)} = {value} {comment}" for at, (key, value, comment) in enumerate(lines))
)


@given(TEXTS)
def test_what_tomllib_reads_is_measured_right(text):
    tomllib.loads(text)
    assert too_deep(text) == ""
    n_lines = text.count("\n") + 2
    assert too_deep(f"{text}\n{'.'.join('a' * 17)} = 1") == f"line {n_lines}: a key must have at most 16 parts"
    assert too_deep(f"{text}\ny = {'[' * 17}") == f"line {n_lines}: lists and tables must be at most 16 deep"


@given(st.lists(st.sampled_from(ANYTHING), max_size=15).map("".join))
def test_any_text_is_settings_or_one_sentence(text):
    try:
        assert isinstance(parse_goals_file(text.encode(), "goals.toml"), RunSettings)
    except GoalsFileError as error:
        assert "\n" not in str(error)  # noqa: PT017 - both are right
        assert len(str(error)) < 1000  # noqa: PT017


@pytest.mark.parametrize("depth", [16, 17])
def test_the_limits_are_where_they_are_said_to_be(depth):
    is_deep = depth > 16
    assert bool(too_deep("x = " + "[" * depth + "]" * depth)) == is_deep
    assert bool(too_deep(".".join("a" * depth) + " = 1")) == is_deep
    assert bool(too_deep("[" + ".".join("a" * depth) + "]")) == is_deep
