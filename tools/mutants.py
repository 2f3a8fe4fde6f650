"""Do the tests notice? Puts small faults into the code, one at a time, and runs the tests of its room until one fails.

    python tools/mutants.py --count 150 --seed 0 --output mutants.csv -- -m "not slow"
    python tools/mutants.py --survivors mutants.csv --output slow.csv -- -m slow

Each mutant changes one operator, comparison, constant or name in a copy of the checkout. It is killed if a test fails
or runs for ever, and survives if all pass. The table says for each mutant what was changed and which test failed.
"""

import argparse
import ast
import csv
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
ROOMS = ("solvers", "goals")  # folders of the package, each with as many mutants
LONGEST = 300  # seconds, after which tests are said to run for ever

COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.BitAnd: ast.BitOr}
OPERATORS |= {ast.BitOr: ast.BitAnd, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "argmin": "argmax", "argmax": "argmin"}
NAMES |= {"any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}


class Mutant(NamedTuple):
    """A place in a file and what stands there instead."""

    path: str  # relative to the checkout
    line: int
    before: str
    after: str
    source: str  # of the whole file


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield every mutant of a file; signatures, decorators, annotations and messages stay."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    for node in _code_nodes(tree):
        for changed in _changed(node):
            start, end = (
                _offset(source, node.lineno, node.col_offset),
                _offset(source, node.end_lineno, node.end_col_offset),
            )
            before, after = source[start:end], ast.unparse(changed)
            yield Mutant(
                str(path.relative_to(ROOT)),
                node.lineno,
                " ".join(before.split()),
                after,
                f"{source[:start]}({after}){source[end:]}",
            )


def _offset(source: str, line: int | None, column: int | None) -> int:
    lines = source.encode().splitlines(keepends=True)
    return len((b"".join(lines[: (line or 1) - 1]) + lines[(line or 1) - 1][: column or 0]).decode())


def _code_nodes(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the expressions inside of functions that compute something."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for statement in function.body:
            if isinstance(statement, ast.Raise) or _is_text(statement):
                continue
            for node in ast.walk(statement):
                if isinstance(node, ast.expr) and not _is_inside_message(node, statement):
                    yield node


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_inside_message(node: ast.expr, statement: ast.stmt) -> bool:
    for outer in ast.walk(statement):
        if isinstance(outer, (ast.Raise, ast.JoinedStr, ast.FunctionDef)) and any(
            inner is node for inner in ast.walk(outer)
        ):
            return True
        if isinstance(outer, ast.AnnAssign) and any(inner is node for inner in ast.walk(outer.annotation)):
            return True
    return False


def _changed(node: ast.expr) -> Iterator[ast.expr]:  # noqa: C901 - one branch a kind of expression
    """Yield what may stand instead of an expression."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        yield ast.Compare(node.left, [COMPARISONS[type(node.ops[0])](), *node.ops[1:]], node.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
        if name in NAMES and isinstance(node.func, ast.Attribute):
            yield ast.Call(ast.Attribute(node.func.value, NAMES[name], ast.Load()), node.args, node.keywords)
        elif name in NAMES:
            yield ast.Call(ast.Name(NAMES[name], ast.Load()), node.args, node.keywords)


def chosen(rooms: list[str], count: int, seed: int) -> list[Mutant]:
    """Return mutants of each room, the same for the same code and seed."""
    rng, found = random.Random(seed), []  # noqa: S311 - no secret
    for room in rooms:
        paths = sorted((ROOT / "src" / "counterpoise" / room).rglob("*.py"))
        every = [mutant for path in paths for mutant in mutants_of(path)]
        found += rng.sample(every, round(count / len(rooms)))
    return found


def tests_of(path: str) -> list[str]:
    """Return the tests of a file's room, those that are named like the file first."""
    room, stem = Path(path).parts[2], Path(path).stem.strip("_")  # src/counterpoise/room
    files = sorted((ROOT / "tests" / room).glob("test_*.py"))
    near = [file for file in files if any(word in file.stem for word in stem.split("_"))]
    ordered = [*near, *(file for file in files if file not in near)]
    return [str(file.relative_to(ROOT)) for file in ordered] + [f"src/counterpoise/{room}"]


class Verdict(NamedTuple):
    """What the tests said of a mutant."""

    mutant: Mutant
    killer: str  # the first test that failed, "time" where they ran for ever, empty where all passed
    seconds: float


def tried(mutant: Mutant, copy: Path, more: list[str]) -> Verdict:
    """Run the tests of a mutant's room in a copy of the checkout."""
    target = copy / mutant.path
    before = target.read_bytes()
    target.write_text(mutant.source, encoding="utf-8")
    started = time.monotonic()
    environment = {
        **os.environ,
        "PYTHONPATH": str(copy / "src"),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", *more]
    try:
        done = subprocess.run(
            [*command, *tests_of(mutant.path)],
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        killer = "" if done.returncode == 0 else (lines or ["ERROR at import"])[0].split(" - ")[0]
    except subprocess.TimeoutExpired:
        killer = "time"
    finally:
        target.write_bytes(before)
    return Verdict(mutant, killer, time.monotonic() - started)


def survivors_of(table: Path) -> set[tuple[str, int, str, str]]:
    """Return the mutants of a table that no test killed, as they are known: by file, line and what was changed."""
    with table.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if not row["killed by"]]
    return {(row["file"], int(row["line"]), row["before"], row["after"]) for row in rows}


def main() -> None:
    """Try mutants in two copies of the checkout, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS), help="folders of the package")
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=Path("mutants.csv"))
    parser.add_argument("--survivors", type=Path, help="a table of before: try those only that no test killed then")
    parser.add_argument("pytest", nargs="*", help="further arguments for pytest, behind --")
    given = parser.parse_args()
    copies: Queue[Path] = Queue()
    with tempfile.TemporaryDirectory() as folder, given.output.open("w", newline="", encoding="utf-8") as file:
        for job in range(given.jobs):
            copy = Path(folder) / str(job)
            shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".venv*", ".git", "build", "dist", "results"))
            copies.put(copy)

        def run(mutant: Mutant) -> Verdict:
            copy = copies.get()
            try:
                return tried(mutant, copy, given.pytest)
            finally:
                copies.put(copy)

        table = csv.writer(file)
        table.writerow(["file", "line", "before", "after", "killed by", "seconds"])
        n_killed, mutants = 0, chosen(given.rooms, given.count, given.seed)
        if given.survivors is not None:
            mutants = [mutant for mutant in mutants if mutant[:4] in survivors_of(given.survivors)]
        with ThreadPoolExecutor(given.jobs) as pool:
            for mutant, killer, seconds in pool.map(run, mutants):
                n_killed += bool(killer)
                table.writerow([mutant.path, mutant.line, mutant.before, mutant.after, killer, f"{seconds:.1f}"])
                file.flush()
    print(f"{n_killed} of {len(mutants)} mutants killed ({n_killed / len(mutants):.1%}); table in {given.output}")


if __name__ == "__main__":
    main()
