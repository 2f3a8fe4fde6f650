"""How large the package is, beside what is asked of it.

Usage: python tools/size.py [--wheel dist/counterpoise-0.2.0-py3-none-any.whl]

A line of code is a line with a token that is no comment and no part of a docstring.
"""

import argparse
import ast
import graphlib
import sys
import tokenize
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "counterpoise"
MOST = {
    "code lines": 36_000,
    "files": 280,
    "functions": 3_400,
    "class names that stand twice": 0,
    "private reads (noqa: SLF001)": 12,
    "circles of files": 0,
}
MOST_WHEEL = 1.5  # MB
_SILENT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(path: Path, tree: ast.Module) -> int:
    """Return how many lines of a file hold code."""
    docstrings: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
            docstrings.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    with path.open("rb") as file:
        tokens = [token for token in tokenize.tokenize(file.readline) if token.type not in _SILENT]
    return len({line for token in tokens for line in range(token.start[0], token.end[0] + 1)} - docstrings)


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


def measure() -> dict[str, int]:
    """Return the sizes by their names."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    classes = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    sizes = (
        sum(code_lines(path, tree) for path, tree in trees.items()),
        len(trees),
        sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes),
        sum(count > 1 for count in classes.values()),
        sum(path.read_text(encoding="utf-8").count("noqa: SLF001") for path in trees),
        int(bool(circle(trees))),
    )
    return dict(zip(MOST, sizes, strict=True))


def main() -> int:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, help="a built wheel, whose size is asked for too")
    options = parser.parse_args()
    lines = [(name, f"{size:,}", f"{MOST[name]:,}", size <= MOST[name]) for name, size in measure().items()]
    if options.wheel is not None:
        size = options.wheel.stat().st_size / 1e6
        lines.append(("wheel", f"{size:.2f} MB", f"{MOST_WHEEL} MB", size <= MOST_WHEEL))
    print(f"{'':30}{'measured':>10}{'at most':>10}")
    for name, size, most, is_met in lines:
        print(f"{name:30}{size:>10}{most:>10}  {'met' if is_met else 'missed'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
