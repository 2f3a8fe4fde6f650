"""What may only get better: circles of files, names for two things, private reads, and phrases that only we would use.

And the map in CONTRIBUTING: every file and every name in it exists.
"""

import ast
import re
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

from tools.size import circle

SOURCE = Path(__file__).parents[2] / "src" / "counterpoise"
FILES = sorted(SOURCE.rglob("*.py"))

# Classes of one name in several modules. Take a name off when its class gets a name of its own; add none.
NAMED_TWICE: set[str] = set()
PHRASES = (  # with what to write instead
    ("rows of choice", "selection rows"),
    ("nobody chose", "test rows or held-out rows"),
    (" shall ", "should, must or is"),
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
TEXTS = [
    *(SOURCE.parents[1] / "docs").glob("*.md"),
    *(SOURCE.parents[1] / "docs" / "guide").glob("*.md"),
    *(SOURCE.parents[1] / "docs" / "api").glob("*.md"),
    *(path for path in (SOURCE.parents[1] / "examples").iterdir() if path.suffix in {".py", ".rst", ".toml"}),
]
MOST_PRIVATE_READS = 7  # lines of the package that read a private attribute of another object


@cache
def tree_of(path):
    """Return the parsed file; parsing all of them takes two seconds."""
    return ast.parse(path.read_text(encoding="utf-8"))


def test_no_files_import_each_other_in_a_circle():
    assert not circle({path: tree_of(path) for path in FILES})


def class_names():
    """Return how often each name of a class occurs in the package."""
    trees = map(tree_of, FILES)
    return Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def test_no_other_class_name_stands_for_two_classes():
    twice = {name for name, count in class_names().items() if count > 1}
    assert not twice - NAMED_TWICE, "give the new class a name of its own"
    assert not NAMED_TWICE - twice, "take these off the list: they are unique now"


def test_reads_of_private_attributes_become_fewer():
    count = sum(path.read_text(encoding="utf-8").count("noqa: SLF001") for path in FILES)
    assert count <= MOST_PRIVATE_READS, "ask for what you need by a public name"
    assert count == MOST_PRIVATE_READS, f"lower MOST_PRIVATE_READS to {count}"


def test_no_private_phrase_stands_in_code_messages_guides_or_examples():
    pages = [
        path for path in SOURCE.rglob("*") if path.suffix in {".py", ".js", ".html", ".css", ".toml", ".md", ".jinja"}
    ]
    pages += [*TEXTS, SOURCE.parents[1] / "README.md"]
    words = {path: " ".join(path.read_text(encoding="utf-8").split()) for path in pages}
    uses = [
        f"{path}: write {plain!r} for {phrase!r}"
        for path, text in words.items()
        for phrase, plain in PHRASES
        if phrase in text
    ]
    assert not uses


ROOT = SOURCE.parents[1]
GUIDE = ROOT / "CONTRIBUTING.md"


def in_backticks(text):
    return re.findall(r"`([^`\n]+)`", text)


def place_of(name):
    """Return the file or folder that a name in the guide stands for, in the package or in the repository."""
    return next((folder / name for folder in (SOURCE, ROOT) if (folder / name).exists()), None)


def names_in(path):
    """Return the functions, classes, methods and constants that a file defines."""
    names = set()
    for node in tree_of(path).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
            inner = (one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
            names |= {each for one in inner for each in (one, f"{node.name}.{one}")}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {each.id for one in targets for each in ast.walk(one) if isinstance(each, ast.Name)}
    return names


def map_entries():
    """Return the entries of the map: each numbered line of a flow, each point, and what to read first."""
    text = GUIDE.read_text(encoding="utf-8")
    text = text[text.index("**Read first**") : text.index("### What an estimator is made of")]
    return [one for one in re.split(r"\n(?=\d+\. |- \*\*)|\n\n", text) if ".py`" in one]


def test_every_file_and_folder_of_the_contributors_guide_exists():
    names = [one for one in in_backticks(GUIDE.read_text(encoding="utf-8")) if re.fullmatch(r"[\w./]+(\.py|/)", one)]
    assert len(names) > 40
    assert not [one for one in names if place_of(one) is None]


def test_every_name_on_the_map_is_defined_in_a_file_of_its_entry():
    entries = map_entries()
    assert len(entries) > 30
    unknown = []
    for entry in entries:
        words = in_backticks(entry)
        known = set().union(*(names_in(place_of(one)) for one in words if one.endswith(".py")))
        names = [one for one in words if re.fullmatch(r"[A-Za-z_][\w.]*", one) and place_of(one) is None]
        unknown += [(name, entry) for name in names if name not in known and not is_file_or_learned(name)]
    assert not unknown


def is_file_or_learned(name):
    """Tell whether a name is that of a file that is written, of a public stub or list, or a learned attribute."""
    return name.endswith((".json", ".pyi")) or name == "__all__" or (name.endswith("_") and not name.startswith("_"))


def test_the_rooms_on_the_map_are_in_the_order_of_the_import_contract():
    text = GUIDE.read_text(encoding="utf-8")
    rooms = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", text, re.MULTILINE)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(one["layers"] for one in contracts if one["name"] == "Imports point down")
    assert rooms == [one.removeprefix("counterpoise.") for one in reversed(layers)]
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders <= set(rooms)


def test_the_readme_of_the_benchmarks_lists_every_script():
    names = set(in_backticks((ROOT / "bench" / "README.md").read_text(encoding="utf-8")))
    scripts = {path.name for path in (ROOT / "bench").glob("*.py")}
    assert scripts <= names
    missing = [one for one in names if re.fullmatch(r"[\w/]+\.(py|csv|md)", one) and not has_file("bench", one)]
    assert set(missing) <= {"results.csv", "README.md"}, "each experiment has its own"


def test_the_readme_of_the_papers_lists_every_experiment():
    names = set(in_backticks((ROOT / "papers" / "README.md").read_text(encoding="utf-8")))
    source = (ROOT / "papers" / "__main__.py").read_text(encoding="utf-8")
    experiments = re.findall(r'^    "([\w-]+)": "papers\.', source, re.MULTILINE)
    assert len(experiments) > 20
    assert set(experiments) <= names
    assert not [one for one in names if one.endswith(".py") and not has_file("papers", one)]


def has_file(folder, name):
    return (ROOT / folder / name).exists() or (ROOT / name).exists()


def test_every_test_that_the_threat_model_names_is_there_and_every_threat_names_one():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = [one.split("::") for one in in_backticks(text) if "::" in one]
    assert len(named) > 20
    assert not [(path, name) for path, name in named if name not in names_in(ROOT / path)]
    table = text.partition("## Threats")[2].partition("\n## ")[0]
    kinds = (
        "model",
        "checkpoint",
        "goals file",
        "run folder",
        "rules file",
        "monitor state",
        "monitor log",
        "pack",
        "explorer",
    )
    assert not [kind for kind in kinds if f"\n| {kind} " not in table]
    assert not [
        line for line in table.splitlines() if line.startswith("| ") and line.count("|") == 4 and "::" not in line
    ][1:]
