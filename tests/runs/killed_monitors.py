"""Batches counted by processes that are killed, or two at once. A program that forks them, as the import takes long.

``python killed_monitors.py RUN FOLDER`` counts the batches ``1.csv`` to ``8.csv`` of the folder, and prints how often a
process was killed, and how many batches two processes have counted together.
"""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

from counterpoise.persist import watch_changes
from counterpoise.report.page import write_page
from counterpoise.runs import monitor_run, open_run

FILES = ("monitor.json", "monitor.jsonl")


def forked(work):
    """Do work in a process of its own, and return its id."""
    child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(0)
    return child


def killed_at(number):
    """Return a watcher that kills the process at a place where a file changes."""
    left = [number]

    def watch(_what, _path):
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return watch


def main(original, folder):
    def new_run(name):
        run = open_run(shutil.copytree(original, folder / name))
        monitor_run(run, folder / "1.csv")
        return run

    def content(run):
        return [(run.folder / name).read_bytes() for name in FILES]

    right, places = new_run("right"), []
    before = content(right)
    with watch_changes(lambda what, path: places.append(f"{what} {path.name}")):
        monitor_run(right, folder / "2.csv")
    after = content(right)
    for number, place in enumerate(places):
        run = new_run(f"killed {number}")

        def work(run=run, number=number):
            with watch_changes(killed_at(number)):
                monitor_run(run, folder / "2.csv")

        _, status = os.waitpid(forked(work), 0)
        assert os.WIFSIGNALED(status), place
        state = (run.folder / FILES[0]).read_bytes()
        assert state in (before[0], after[0]), place
        summary = monitor_run(run, folder / "2.csv")
        assert summary.is_new == (state == before[0]), place
        assert content(run) == after, place
        write_page(summary, run.folder / "monitor.html")

    run = new_run("two")

    def count(batches):
        for number in batches:
            monitor_run(run, folder / f"{number}.csv")

    for child in [forked(lambda: count((2, 4, 6, 8))), forked(lambda: count((3, 5, 7, 8)))]:  # both the last one
        os.waitpid(child, 0)
    lines = monitor_run(run).lines
    assert sorted(line.batch for line in lines) == [f"{number}.csv" for number in range(1, 9)]
    assert lines[-1].n_rows == sum(line.rows for line in lines)
    sys.stdout.write(json.dumps({"killed": len(places), "batches of two": len(lines)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
