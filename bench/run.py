"""Run the benchmarks, print a table and append it to the results.

Usage: python bench/run.py [--full] [--only TEXT] [--output PATH]
"""

import argparse
from importlib.util import find_spec
from pathlib import Path

import boosting
import constrained
import dro
import ebboost
import harness
import learners
import mixture
import mixture_goals
import scores
import svm

SUITES = [mixture, learners, boosting, ebboost, svm, dro, constrained, mixture_goals, scores]
if find_spec("torch") is not None:
    import network

    SUITES.append(network)
RESULTS = Path(__file__).parent.parent / "docs" / "results" / "benchmarks.csv"


def main() -> None:
    """Run what was asked for; a benchmark whose two answers disagree stops the run."""
    parser = argparse.ArgumentParser(description="Side-by-side benchmarks; ratio is peer seconds over ours.")
    parser.add_argument("--full", action="store_true", help="all sizes (about half an hour) instead of the quick ones")
    parser.add_argument("--only", default="", metavar="TEXT", help="only benchmarks whose name or size contains TEXT")
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="PATH", help="results table (CSV) to append to")
    options = parser.parse_args()
    print(harness.header(), flush=True)
    for suite in SUITES:
        for benchmark in suite.full() if options.full else suite.quick():
            if options.only in f"{benchmark.name} {benchmark.size}":
                row = harness.run(benchmark)
                harness.append([row], options.output)
                print(harness.show(row), flush=True)
    harness.write_page(options.output, options.output.with_suffix(".md"))
    print(f"appended to {options.output}")


if __name__ == "__main__":
    main()
