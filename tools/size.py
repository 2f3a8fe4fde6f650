"""How large the project is, beside what is asked of it.

Usage: python tools/size.py [--wheel dist/counterpoise-0.2.0-py3-none-any.whl] [--walks]

A line of code is a line with a token that is no comment and no part of a docstring. A line asks of what kind something
is where it calls ``isinstance`` or ``issubclass`` on a class of the package, or reads an attribute of ``KIND_NAMES``.
A walk is the functions of the package that a call enters, lambdas and comprehensions too, and the files they are in.
"""

import argparse
import ast
import contextlib
import graphlib
import io
import re
import sys
import tempfile
import threading
import tokenize
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "counterpoise"
MOST_CODE_LINES = {"src": 34_500, "tests": 30_000, "papers and bench": 11_000}
FOLDERS = {"src": ("src",), "tests": ("tests",), "papers and bench": ("papers", "bench")}
MOST = {
    "files": 280,
    "functions": 3_200,
    "lines that ask of what kind something is": 120,
    "class names that stand twice": 0,
    "private reads (noqa: SLF001)": 12,
    "arguments for others (noqa: ARG002)": 10,
    "circles of files": 0,
}
MOST_WHEEL = 1.5  # MB
KIND_NAMES = re.compile(r"\.(is_binary|has_rules|decides_by_scores|keeps_answers)\b")
_SILENT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Line(NamedTuple):
    """A size, and the most that it should be."""

    name: str
    size: float
    most: float


def code_lines(path: Path, tree: ast.Module) -> int:
    """Return how many lines of a file hold code."""
    docstrings: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
            docstrings.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    with path.open("rb") as file:
        tokens = [token for token in tokenize.tokenize(file.readline) if token.type not in _SILENT]
    return len({line for token in tokens for line in range(token.start[0], token.end[0] + 1)} - docstrings)


def parsed(folder: Path) -> dict[Path, ast.Module]:
    """Return the syntax trees of a folder's files."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.py"))}


def module_of(path: Path) -> str:
    """Return the dotted name of a file of the package."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(tree: ast.Module, modules: set[str]) -> set[str]:
    """Return the modules of the package that a file imports, inside of functions too."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & modules
        elif isinstance(node, ast.ImportFrom):
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & modules
            found |= inner or {node.module or ""} & modules
    return found


def circle(trees: dict[Path, ast.Module]) -> list[str]:
    """Return files that import each other in a circle; none where there are no such files."""
    modules = {module_of(path) for path in trees}
    order = graphlib.TopologicalSorter({module_of(path): imports_of(tree, modules) for path, tree in trees.items()})
    try:
        order.prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def kind_checks(trees: dict[Path, ast.Module]) -> int:
    """Return how many lines ask of what kind something of the package is."""
    nodes = [(path, node) for path, tree in trees.items() for node in ast.walk(tree)]
    classes = {node.name for _, node in nodes if isinstance(node, ast.ClassDef)}
    lines = set()
    for path, node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            inside = ast.walk(node.args[-1]) if node.func.id in {"isinstance", "issubclass"} else ()
            names = {getattr(part, "id", getattr(part, "attr", None)) for part in inside}
            if names & classes:
                lines.add((path, node.lineno))
    for path in trees:
        text = path.read_text(encoding="utf-8").splitlines()
        lines |= {(path, number) for number, line in enumerate(text, start=1) if KIND_NAMES.search(line)}
    return len(lines)


def measure() -> list[Line]:
    """Return the sizes of the sources."""
    trees = parsed(SOURCE)
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    classes = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    texts = [path.read_text(encoding="utf-8") for path in trees]
    sizes = (
        len(trees),
        sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes),
        kind_checks(trees),
        sum(count > 1 for count in classes.values()),
        sum(text.count("noqa: SLF001") for text in texts),
        sum(text.count("noqa: ARG002") for text in texts),
        int(bool(circle(trees))),
    )
    lines = []
    for name, folders in FOLDERS.items():
        files = {path: tree for folder in folders for path, tree in parsed(ROOT / folder).items()}
        n_lines = sum(code_lines(path, tree) for path, tree in files.items())
        lines.append(Line(f"code lines of {name}", n_lines, MOST_CODE_LINES[name]))
    return lines + [Line(name, size, most) for (name, most), size in zip(MOST.items(), sizes, strict=True)]


def walk(call: Callable[[], Any]) -> tuple[int, int]:
    """Return how many functions of the package a call enters, and in how many files they are."""
    entered: set[tuple[str, str]] = set()

    def note(frame: Any, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(SOURCE)):
            entered.add((code.co_filename, code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return len(entered), len({file for file, _ in entered})


def walks(folder: Path) -> list[Line]:
    """Return the walks of four fits: of a model with goals, of a booster, of a command, and of a run's rules anew."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415 - sizes are printed without

    import counterpoise as cp  # noqa: PLC0415
    from counterpoise.datasets import loans  # noqa: PLC0415
    from counterpoise.runs import fit_run, open_run, rebalance_run  # noqa: PLC0415

    people, _ = loans(6000, random_state=0)
    y, sex = people["default"], people[["sex"]]
    X = people.drop(columns=["sex", "last_year", "default"]).astype({"job": "category", "region": "category"})
    goals = ["recall >= 0.7", "max_difference(false_positive_rate, by=sex) <= 0.08"]
    strong = HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=50)
    many, _ = loans(30_000, random_state=0)
    many.to_parquet(folder / "loans.parquet")
    (folder / "goals.toml").write_text(
        f"goals = {goals!r}\n"
        '[data]\nfiles = "loans.parquet"\ntarget = "default"\npositive = "yes"\ngroups = ["sex"]\n'
        'drop = ["last_year"]\n[splits]\ntest = 0.2\n[method]\nname = "goals"\n'
    )
    named = {
        "GoalClassifier(goals).fit": (
            lambda: cp.GoalClassifier(strong, goals=goals, pos_label="yes").fit(X, y, sensitive_features=sex),
            (250, 30),
        ),
        "LPBoostClassifier(goals).fit": (
            lambda: cp.LPBoostClassifier(goals=goals, pos_label="yes").fit(
                X.select_dtypes("number"), y, sensitive_features=sex
            ),
            (300, 35),
        ),
        "counterpoise fit": (lambda: fit_run(folder / "goals.toml", output=folder / "run"), (600, 70)),
        "rules of a run anew": (
            lambda: rebalance_run(open_run(folder / "run"), goals=goals[:1], output=folder / "other"),
            (600, 70),
        ),
    }
    lines = []
    for name, (call, most) in named.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sizes = walk(call)
        lines += [
            Line(f"{name}: {what}", *ends) for what, *ends in zip(("functions", "files"), sizes, most, strict=True)
        ]
    return lines


def main() -> int:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, help="a built wheel, whose size is asked for too")
    parser.add_argument("--walks", action="store_true", help="the functions and files that four fits walk, too")
    options = parser.parse_args()
    lines = measure()
    if options.wheel is not None:
        lines.append(Line("megabytes of the wheel", options.wheel.stat().st_size / 1e6, MOST_WHEEL))
    if options.walks:
        with tempfile.TemporaryDirectory() as folder:
            lines += walks(Path(folder))
    print(f"{'':46}{'measured':>10}{'at most':>10}")
    for name, size, most in lines:
        digits = ".2f" if isinstance(size, float) else ","
        print(f"{name:46}{size:>10{digits}}{most:>10,}  {'met' if size <= most else 'missed'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
