"""Run the benchmarks and print a table; a full run also writes the page of results, of one machine and one run.

Usage: python bench/run.py [--full] [--only TEXT] [--minutes N] [--output PATH]
"""

import argparse
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import harness
from asked import summary

# Those that the summary of the page asks for come first: a run may be short of time.
SUITES = ("asked", "mixture", "boosting", "learners", "mixture_goals", "scores", "dro", "ebboost", "constrained", "svm")
STORED = Path(__file__).parent.parent / "docs" / "results"
RESULTS = STORED / "tables" / "benchmarks.csv"


def benchmarks(*, full: bool, left_out: list[str]) -> Iterator[harness.Benchmark]:
    """Yield the benchmarks whose packages are installed; note the others."""
    for name in (*SUITES, "network"):
        try:
            suite = import_module(name)
        except ModuleNotFoundError as error:
            left_out.append(f"{name}.py, which needs {error.name}")
            continue
        yield from suite.full() if full else suite.quick()


def main() -> int:
    """Run what was asked for; one that fails, or whose two answers disagree, is named and the others go on."""
    parser = argparse.ArgumentParser(description="Side-by-side benchmarks; ratio is peer seconds over ours.")
    parser.add_argument("--full", action="store_true", help="all sizes, and the page, instead of the quick ones")
    parser.add_argument("--only", default="", metavar="TEXT", help="only benchmarks whose name or size contains TEXT")
    parser.add_argument("--minutes", type=float, default=25.0, metavar="N", help="begin no benchmark after so many")
    parser.add_argument(
        "--output", type=Path, metavar="PATH", help=f"results (CSV); of a full run {RESULTS}, and the page"
    )
    options = parser.parse_args()
    output = options.output or (RESULTS if options.full and not options.only else None)
    rows: list[dict[str, Any]] = []
    failed: list[str] = []
    left_out: list[str] = []
    began = time.monotonic()
    print(harness.header(), flush=True)
    for benchmark in benchmarks(full=options.full, left_out=left_out):
        name = f"{benchmark.name} {benchmark.size}"
        if options.only not in name:
            continue
        if time.monotonic() - began > 60 * options.minutes:
            left_out.append(f"{name}, for which there was no time")
            continue
        try:
            rows.append(harness.run(benchmark))
        except Exception as error:  # noqa: BLE001 - whatever fails in one, the others are of use
            failed.append(f"{name}: {type(error).__name__}: {error}")
            print(failed[-1], flush=True)
        else:
            print(harness.show(rows[-1]), flush=True)
    notes = [*(f"Failed: {one}" for one in failed), *(f"Left out: {one}." for one in left_out)]
    print("\n".join([summary(rows), *notes]))
    if output is not None and rows:
        harness.write_table(rows, output)
        print(f"wrote {output}")
    if output == RESULTS and rows:
        harness.write_page(rows, STORED / "benchmarks.md", summary(rows), notes)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
