"""Do the tests notice? Puts small faults into the code and runs the fast tests that pass by each of them.

    python tools/mutants.py --output tools/mutants_baseline.csv
    python tools/mutants.py --against tools/mutants_baseline.csv --rooms rules goals --output build/mutants.csv

Each mutant changes one operator, comparison, constant or name. All of them are written into one copy of the checkout,
where a number chooses the one that is active, so that the tests are collected once: one process runs them all and
writes down how long each takes and which mutants it passes by; then a process is forked for each mutant and runs the
cheapest tests that pass by it, up to a number of seconds. A mutant is killed if a test fails or runs for ever.

Which mutants are tried depends on the seed and on what stands in the code, not on the lines before it: a change of one
function leaves the mutants of the others what they are, and ``--against`` tells for each room how many of those that
are still there were killed before, and are now.
"""

import argparse
import ast
import csv
import gc
import hashlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pytest
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).parents[1]
ROOMS = ("solvers", "goals", "rules", "auditing", "boosting", "explorer", "report")  # each with as many mutants
COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.BitAnd: ast.BitOr}
OPERATORS |= {ast.BitOr: ast.BitAnd, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "argmin": "argmax", "argmax": "argmin"}
NAMES |= {"any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}
KERNEL_DECORATORS = {"kernel", "kernel_family", "helper", "njit"}  # numba compiles what they stand before
ACTIVE, ACTIVE_IN_KERNELS = "_ACTIVE_MUTANT", "_ACTIVE_MUTANT_IN_KERNELS"
VARIABLE = "COUNTERPOISE_MUTANT"  # which mutant is active in processes that tests start


class Mutant(NamedTuple):
    """What stands at a place in a function, and what stands there instead."""

    path: str  # relative to the checkout
    function: str
    before: str
    after: str
    occurrence: int  # of the same change in the function, from 0
    line: int
    in_kernel: bool

    @property
    def key(self) -> tuple[str, ...]:
        """What stays the same when other code changes."""
        return (self.path, self.function, self.before, self.after, str(self.occurrence))

    @property
    def room(self) -> str:
        """The folder of the package."""
        return Path(self.path).parts[2]


class Records(NamedTuple):
    """What the tests passed by, and processor time in seconds."""

    passed: dict[str, list[int]]
    calls: dict[str, float]
    fixtures: dict[str, float]  # the longest set-up of a test of each file


class Verdict(NamedTuple):
    """What the tests said of a mutant."""

    mutant: Mutant
    killer: str  # the test that failed, "time" where one ran for ever, empty where all passed
    n_tests: int  # that pass by it


def mutated(node: ast.expr) -> ast.expr | None:  # noqa: PLR0911 - one return for each kind of expression
    """Return what may stand instead of an expression, or None."""
    match node:
        case ast.Compare(ops=[operator, *others]) if type(operator) in COMPARISONS:
            return ast.Compare(node.left, [COMPARISONS[type(operator)](), *others], node.comparators)
        case ast.BinOp() if type(node.op) in OPERATORS:
            return ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
        case ast.BoolOp():
            return ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(op=ast.USub() | ast.Not()):
            return node.operand
        case ast.IfExp():
            return ast.IfExp(node.test, node.orelse, node.body)
        case ast.Constant(value=bool(value)):
            return ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            return ast.Constant(value + 1)
        case ast.Call(func=ast.Attribute(attr=name)) if name in NAMES:
            return ast.Call(ast.Attribute(node.func.value, NAMES[name], ast.Load()), node.args, node.keywords)
        case ast.Call(func=ast.Name(id=name)) if name in NAMES:
            return ast.Call(ast.Name(NAMES[name], ast.Load()), node.args, node.keywords)
    return None


class Writer(ast.NodeTransformer):
    """Finds the mutants of a file; writes those that are chosen beside what stood there before."""

    def __init__(self, path: Path, numbers: dict[tuple[str, ...], int] | None = None) -> None:
        self.path, self.numbers = str(path.relative_to(ROOT)), numbers or {}
        self.mutants: list[Mutant] = []
        self.scopes: list[str] = []
        self.kernel_depth = self.function_depth = 0
        self.seen: Counter[tuple[str, str, str]] = Counter()
        self.tree = self.visit(ast.parse(path.read_text(encoding="utf-8")))

    def source(self) -> str:
        """Return the file with its chosen mutants, none of which is active unless the environment names it."""
        number = f"int(__import__('os').environ.get({VARIABLE!r}, -1))"
        body = self.tree.body
        start = sum(isinstance(node, ast.Expr) or getattr(node, "module", "") == "__future__" for node in body[:2])
        body.insert(start, ast.parse(f"{ACTIVE} = {ACTIVE_IN_KERNELS} = {number}").body[0])
        return ast.unparse(ast.fix_missing_locations(self.tree))

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Name what is inside of a class after it."""
        self.scopes.append(node.name)
        self.generic_visit(node)
        self.scopes.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Visit the body alone: signatures and decorators stay."""
        names = {
            name.id for decorator in node.decorator_list for name in ast.walk(decorator) if isinstance(name, ast.Name)
        }
        is_kernel = bool(names & KERNEL_DECORATORS)
        self.scopes.append(node.name)
        self.function_depth += 1
        self.kernel_depth += is_kernel
        node.body = [self.visit(statement) for statement in node.body]
        self.kernel_depth -= is_kernel
        self.function_depth -= 1
        self.scopes.pop()
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - ast's name

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Leave the annotation as it is."""
        node.value = node.value and self.visit(node.value)
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        """Leave messages as they are."""
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """Leave texts as they are."""
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        """Leave patterns as they are."""
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit(self, node: ast.AST) -> Any:
        """Write a chosen mutant beside its expression: what is inside of the expression has its own mutants."""
        changed = mutated(node) if self.function_depth and isinstance(node, ast.expr) else None
        if changed is None:
            return super().visit(node)
        before, after = " ".join(ast.unparse(node).split()), " ".join(ast.unparse(changed).split())
        function = ".".join(self.scopes)
        occurrence = self.seen[function, before, after]
        self.seen[function, before, after] += 1
        mutant = Mutant(self.path, function, before, after, occurrence, node.lineno, bool(self.kernel_depth))
        self.mutants.append(mutant)
        changed = ast.parse(after, mode="eval").body  # shares no node with what is visited next
        node = super().visit(node)
        if mutant.key not in self.numbers:
            return node
        active = ast.Name(ACTIVE_IN_KERNELS if self.kernel_depth else ACTIVE, ast.Load())
        is_active = ast.Compare(active, [ast.Eq()], [ast.Constant(self.numbers[mutant.key])])
        return ast.IfExp(is_active, changed, node)


def chosen(rooms: Iterable[str], count: int, seed: int) -> list[Mutant]:
    """Return as many mutants of each room, those with the smallest digests."""

    def digest(mutant: Mutant) -> str:
        return hashlib.sha256("\n".join((str(seed), *mutant.key)).encode()).hexdigest()

    ranked = []
    for room in rooms:
        paths = sorted((ROOT / "src" / "counterpoise" / room).rglob("*.py"))
        of_room = sorted((mutant for path in paths for mutant in Writer(path).mutants), key=digest)
        ranked += list(enumerate(of_room[: round(count / len(ROOMS))]))
    return [mutant for _, mutant in sorted(ranked, key=lambda pair: pair[0])]  # a run that ends early has some of each


class Recorder:
    """Stands for the number of the active mutant: none is, and those that are asked for are written down."""

    def __init__(self) -> None:
        self.passed: set[int] = set()

    def __eq__(self, number: object) -> bool:
        self.passed.add(number)  # type: ignore[arg-type]
        return False

    __hash__ = None  # type: ignore[assignment]


def set_active(number: Any, name: str = ACTIVE) -> None:
    """Make one mutant active in all modules that hold any."""
    for module in list(sys.modules.values()):
        if name in getattr(module, "__dict__", {}):
            setattr(module, name, number)


def forget_kernels() -> None:
    """Let every kernel be compiled anew when it is called."""
    from counterpoise._base.compiled import Kernel  # noqa: PLC0415 - of the copy, which is found by then

    for module in [module for name, module in sys.modules.items() if name.startswith("counterpoise.")]:
        for kernel in [value for value in vars(module).values() if isinstance(value, Kernel)]:
            kernel._run, kernel._dispatcher = kernel._first, None  # noqa: SLF001 - no user does this


class Plugin:
    """Runs the collected tests in forked processes: all of them once, then for each mutant those that pass by it."""

    def __init__(self, mutants: list[Mutant], folder: Path, options: argparse.Namespace) -> None:
        self.mutants, self.folder, self.options = mutants, folder, options
        self.hints: dict[tuple[str, ...], str] = {}
        self.verdicts: list[Verdict] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take the place of pytest's own loop."""
        items = {item.nodeid: item for item in session.items}
        records = self.options.records
        if records is None or not records.exists():
            records = records or self.folder / "records.json"
            process = os.fork() or self._last(self._record, list(items.values()), records)
            os.waitpid(process, 0)
        found = Records(*json.loads(records.read_text()))
        running: dict[int, int] = {}
        started = time.monotonic()
        for number in range(len(self.mutants)):
            if self.options.minutes and time.monotonic() - started > 60 * self.options.minutes:
                break
            names = self._tests_of(number, found)
            process = os.fork() or self._last(self._try, number, [items[name] for name in names if name in items])
            running[process] = number
            if len(running) == self.options.jobs:
                self._finish(running, found)
        while running:
            self._finish(running, found)
        return True

    def _tests_of(self, number: int, records: Records) -> list[str]:
        """Return the tests that pass by a mutant, file by file: what killed it before, then the cheapest."""
        hint = self.hints.get(self.mutants[number].key)
        costs = {
            name: records.calls[name] + records.fixtures[file_of(name)]
            for name, passed in records.passed.items()
            if number in passed
        }
        files: dict[str, list[str]] = {}
        left = self.options.seconds
        for name in sorted(costs, key=lambda name: (name != hint, costs[name])):
            left -= records.calls[name] if file_of(name) in files else costs[name]
            if left < 0 and files:
                break
            files.setdefault(file_of(name), []).append(name)
        return [name for names in files.values() for name in names]

    def _finish(self, running: dict[int, int], records: Records) -> None:
        process, status = os.wait()
        number = running.pop(process)
        told = self.folder / f"{number}.txt"
        killer = told.read_text() if told.exists() else "time" if os.WIFSIGNALED(status) else "ERROR"
        n_tests = sum(number in passed for passed in records.passed.values())
        self.verdicts.append(Verdict(self.mutants[number], killer, n_tests))
        print(
            f"{len(self.verdicts)} {':'.join(self.mutants[number].key)} -> {killer or 'survives'}", file=sys.__stderr__
        )

    def _last(self, work: Callable[..., None], *arguments: Any) -> NoReturn:
        """Do something and end the process, whatever comes: the folder belongs to the one that forked it."""
        try:
            work(*arguments)
        except BaseException:  # noqa: BLE001 - a mutant may end in anything
            traceback.print_exc(file=sys.__stderr__)
            os._exit(1)
        os._exit(0)

    def _record(self, items: list[pytest.Item], records: Path) -> None:
        """Run all tests; write how long each takes and which mutants it passes by, in Python and in kernels."""
        from counterpoise._base.compiled import Kernel  # noqa: PLC0415 - of the copy, which is found by then

        recorder, call, found = Recorder(), Kernel.__call__, Records({}, {}, {})
        in_kernels: dict[str, set[int]] = {}
        for number, mutant in enumerate(self.mutants):
            if mutant.in_kernel:
                module = mutant.path.removeprefix("src/").removesuffix(".py").replace("/", ".")
                in_kernels.setdefault(module, set()).add(number)

        def recorded_call(kernel: Any, *arguments: Any) -> Any:
            recorder.passed |= in_kernels.get(kernel.__module__, set())
            return call(kernel, *arguments)

        Kernel.__call__ = recorded_call
        set_active(recorder)
        by_fixtures: dict[str, set[int]] = {}  # counts for all tests of a file
        for item, following in zip_longest(items, items[1:]):
            recorder.passed.clear()
            file, seconds, failed = file_of(item.nodeid), {"setup": 0.0, "call": 0.0, "teardown": 0.0}, False
            started = time.process_time()
            for report in runtestprotocol(item, log=False, nextitem=following):
                failed |= report.failed
                seconds[report.when] = report.duration
            share = (time.process_time() - started) / (sum(seconds.values()) + 1e-9)
            by_fixtures.setdefault(file, set())
            if seconds["setup"] > 0.01:
                by_fixtures[file] |= recorder.passed
            found.fixtures[file] = max(found.fixtures.get(file, 0.0), share * seconds["setup"])
            if not failed:
                found.calls[item.nodeid] = share * seconds["call"]
                found.passed[item.nodeid] = sorted(recorder.passed | by_fixtures[file])
            if following is None or file_of(following.nodeid) != file:
                records.write_text(json.dumps(found))

    def _try(self, number: int, items: list[pytest.Item]) -> None:
        """Run tests with a mutant active until one fails, and write which one."""
        signal.alarm(int(5 * self.options.seconds) + 60)
        os.environ[VARIABLE] = str(number)
        set_active(number)
        if self.mutants[number].in_kernel:
            set_active(number, ACTIVE_IN_KERNELS)
            forget_kernels()
        killer = ""
        for item, following in zip_longest(items, items[1:]):
            if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
                killer = item.nodeid
                break
        (self.folder / f"{number}.txt").write_text(killer)


def file_of(name: str) -> str:
    """Return the file of a test."""
    return name.partition("::")[0]


def rows_of(table: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the keys of the mutants of a table, and what killed each."""
    with table.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            yield (row["file"], row["function"], row["before"], row["after"], row["occurrence"]), row["killed by"]


def summary(verdicts: list[Verdict], before: dict[tuple[str, ...], str]) -> str:
    """Return for each room how many mutants were killed, and of those tried before how many then and now."""
    lines = []
    for room in (*ROOMS, ""):
        of_room = [verdict for verdict in verdicts if room in ("", verdict.mutant.room)]
        again = [verdict for verdict in of_room if verdict.mutant.key in before]
        line = f"{room or 'all':10s} {sum(bool(verdict.killer) for verdict in of_room)} of {len(of_room)} killed"
        if before:
            n_before = sum(bool(before[verdict.mutant.key]) for verdict in again)
            n_now = sum(bool(verdict.killer) for verdict in again)
            line += f"; of the {len(again)} that were tried before {n_before} then, {n_now} now"
        lines += [line] if of_room else []
    return "\n".join(lines)


def main() -> None:
    """Try mutants in a copy of the checkout, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS), choices=ROOMS, help="folders of the package")
    parser.add_argument("--count", type=int, default=300, help="mutants of all rooms together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10.0, help="processor time of the tests tried for one mutant")
    parser.add_argument("--minutes", type=float, help="begin no mutant after so long")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--against", type=Path, help="a table of before: each mutant's killer is tried first")
    parser.add_argument("--records", type=Path, help="a file that keeps what the tests pass by, for a next time")
    parser.add_argument("--output", type=Path, default=Path("build/mutants.csv"))
    parser.add_argument("tests", nargs="*", default=["tests", "src"])
    options = parser.parse_args()
    output, against = options.output.absolute(), dict(rows_of(options.against)) if options.against else {}
    options.records = options.records and options.records.absolute()
    mutants = chosen(options.rooms, options.count, options.seed)
    numbers = {mutant.key: number for number, mutant in enumerate(mutants)}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".venv*", ".git", "build", "dist", ".*cache"))
        for path in {mutant.path for mutant in mutants}:
            (copy / path).write_text(Writer(ROOT / path, numbers).source(), encoding="utf-8")
        os.chdir(copy)
        os.environ |= {"PYTHONPATH": f"{copy / 'src'}", "OMP_NUM_THREADS": "1"}
        os.environ.setdefault("NUMBA_CACHE_DIR", f"{folder}/kernels")
        sys.path[:0] = [str(copy / "src")]
        plugin = Plugin(mutants, Path(folder), options)
        plugin.hints = against
        gc.freeze()
        pytest.main(["-q", "--no-header", "-p", "no:cacheprovider", "-n0", "-m", "not slow", *options.tests], [plugin])
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["file", "function", "before", "after", "occurrence", "tests", "killed by"])
        for verdict in sorted(plugin.verdicts, key=lambda verdict: verdict.mutant.key):
            table.writerow([*verdict.mutant.key, verdict.n_tests, re.sub(r"\s+", " ", verdict.killer)])
    print(summary(plugin.verdicts, against))


if __name__ == "__main__":
    main()
