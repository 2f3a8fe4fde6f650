"""One table of the pages."""

from collections.abc import Iterable, Sequence


def markdown_table(heads: Sequence[str], lines: Iterable[Sequence[str]], *, n_words: int = 1) -> str:
    """Return a Markdown table whose first ``n_words`` columns are words; the others are numbers, on the right.

    Examples
    --------
    >>> from papers.markdown import markdown_table
    >>> print(markdown_table(["method", "error"], [["AdaBoost", "0.12"]]))
    | method | error |
    |---|---:|
    | AdaBoost | 0.12 |
    """
    rule = "|" + "---|" * n_words + "---:|" * (len(heads) - n_words)
    head, *body = ("| " + " | ".join(cells) + " |" for cells in (heads, *lines))
    return "\n".join([head, rule, *body])
