"""How deep a TOML text goes, told in one pass before it is parsed.

A parser follows lists in lists by recursion, and looks at every beginning of a dotted key: of a few bytes it makes an
overflow, or work that grows with their square. No goals file needs either.
"""

import re

_MODEL = re.compile(r"\s*\[\[\s*method\s*\.\s*models\s*\]\]")
_MODELS = re.compile(r"^\s*(?:method\.)?models\s*=\s*\[", re.MULTILINE)
_ENTRY = re.compile(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
_DEEPEST = 16  # lists and tables inside one another; a goals file has four
_MOST_PARTS = 16  # of a dotted key; a goals file has three
# Strings and comments first, each as a whole: what they hold is no structure. One without its end goes as far as it
# can, where a parser stops, so that no character is looked at twice.
_TOKEN = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+(?:"{3,5})?'
    r"|'''(?:[^']|'(?!''))*+(?:'{3,5})?"
    r'|"(?:[^"\\\n]|\\.)*+"?'
    r"|'[^'\n]*+'?"
    r"|#[^\n]*+"
    r"|(?P<opens>[\[{])|(?P<closes>[\]}])|(?P<dot>\.)|(?P<ends>[\n,=])",
    re.DOTALL,
)


def line_of_model(text: str, place: int) -> str:
    r"""Return the line on which an entry of ``method.models`` begins, as messages say it; nothing where it is not seen.

    Examples
    --------
    >>> from counterpoise.runs.toml_shape import line_of_model
    >>> line_of_model('[[method.models]]\nname = "tree"\n\n[[method.models]]\nname = "svm"\n', 1)
    ' (line 4)'
    >>> line_of_model('[method]\nmodels = [\n    { name = "tree" },\n    { name = "svm" },\n]\n', 1)
    ' (line 4)'
    """
    headers = [number for number, line in enumerate(text.splitlines(), start=1) if _MODEL.match(line)]
    if not headers:
        begin = _MODELS.search(text)
        starts = [] if begin is None else [one.start() for one in _ENTRY.finditer(text, begin.end())]
        headers = [text.count("\n", 0, start) + 1 for start in starts]
    return f" (line {headers[place]})" if place < len(headers) else ""


def too_deep(text: str) -> str:
    r"""Return where a TOML text goes deeper than any goals file, in words; nothing where it does not.

    Examples
    --------
    >>> from counterpoise.runs.toml_shape import too_deep
    >>> too_deep("a = 1\nb = " + 20 * "[" + 20 * "]")
    'line 2: lists and tables must be at most 16 deep'
    >>> too_deep(".".join(20 * "a") + " = 1")
    'line 1: a key must have at most 16 parts'
    >>> too_deep('# ' + 20 * "[" + '\nfiles = ["' + 20 * "a." + '"]')
    ''
    """
    depth = n_dots = 0
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        depth += (kind == "opens") - (kind == "closes")
        n_dots = n_dots + 1 if kind == "dot" else 0 if kind else n_dots
        if depth > _DEEPEST or n_dots >= _MOST_PARTS:
            line = text.count("\n", 0, token.start()) + 1
            if n_dots >= _MOST_PARTS:
                return f"line {line}: a key must have at most {_MOST_PARTS} parts"
            return f"line {line}: lists and tables must be at most {_DEEPEST} deep"
    return ""
