"""What may only get better: names that stand for two things, private reads, and phrases that only we would use."""

import ast
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "counterpoise"
FILES = sorted(SOURCE.rglob("*.py"))

# Classes of one name in several modules. Take a name off when its class gets a name of its own; add none.
NAMED_TWICE: set[str] = set()
PHRASES = (  # with what to write instead
    ("rows of choice", "selection rows"),
    ("rows that nobody chose on", "test rows"),
    ("speak of", "refer to"),
    ("speaks of", "refers to"),
    ("made small", "minimised"),
    ("made as small as possible", "minimised"),
    ("room for the audit", "margin for the audit"),
    ("last year's answers", "predictions of the deployed model"),
    ("answer drawn by lot", "drawn decision"),
    ("whoever", "anyone who"),
    ("Whoever", "Anyone who"),
)
TEXTS = [*(SOURCE.parents[1] / "docs").glob("*.md"), *(SOURCE.parents[1] / "docs" / "guide").glob("*.md")]
MOST_PRIVATE_READS = 9  # lines of the package that read a private attribute of another object


def class_names():
    """Return how often each name of a class occurs in the package."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in FILES)
    return Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def test_no_other_class_name_stands_for_two_classes():
    twice = {name for name, count in class_names().items() if count > 1}
    assert not twice - NAMED_TWICE, "give the new class a name of its own"
    assert not NAMED_TWICE - twice, "take these off the list: they are unique now"


def test_reads_of_private_attributes_become_fewer():
    count = sum(path.read_text(encoding="utf-8").count("noqa: SLF001") for path in FILES)
    assert count <= MOST_PRIVATE_READS, "ask for what you need by a public name"
    assert count == MOST_PRIVATE_READS, f"lower MOST_PRIVATE_READS to {count}"


def test_no_private_phrase_stands_in_code_messages_or_guides():
    pages = [
        path for path in SOURCE.rglob("*") if path.suffix in {".py", ".js", ".html", ".css", ".toml", ".md", ".jinja"}
    ]
    uses = [
        f"{path.name}: write {plain!r} for {phrase!r}"
        for path in (*pages, *TEXTS, SOURCE.parents[1] / "README.md")
        for phrase, plain in PHRASES
        if phrase in " ".join(path.read_text(encoding="utf-8").split())
    ]
    assert not uses
