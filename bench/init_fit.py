"""The first two commands on tables as they come: ``counterpoise init`` and ``fit``, with nothing changed in the file.

Usage: python bench/init_fit.py [--seeds N] [--output FOLDER]

For each table and seed the error on the test rows beside that of plain training, the same strong model at its usual
threshold, and what the file allows it to be above that: nothing where no tail is asked for, else its budget. Writes a
page with a table. Needs pandas; everything runs on one core.
"""

import argparse
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before any library starts its threads

import numpy as np
import pandas as pd
from records import Records
from sklearn.datasets import load_digits

from counterpoise.runs import fit_run, starting_file

sys.path.insert(0, str(Path(__file__).parent.parent))
from papers.datasets import load_dataset

FOLDER = Path(__file__).parent.parent / "docs" / "results" / "init_fit"
COLUMNS = ("table", "seed", "rows", "classes", "method", "error", "plain", "allowed")
TABLES = ("adult", "credit-default", "compas", "image-segment", "digits")
TOP = """# init and fit with nothing changed

`counterpoise init TABLE --target COLUMN`, then `counterpoise fit`: error in percent on a fifth of the rows that
nothing saw, mean over {seeds} splits, beside plain training (the same strong model, at its usual threshold). Above it
is at most what the file allows: nothing but noise for two classes, where the default is the least error, and the budget
of 1 point for more, where the tail counts too. The standard error is that of the difference over splits.

Made by `python bench/init_fit.py`.

| table | rows | classes | method | ours | plain | difference | allowed |
|---|---|---|---|---|---|---|---|
"""


def table_of(name: str) -> tuple[pd.DataFrame, str]:
    """Return a table as someone might have it, categories as texts, and its target."""
    if name == "digits":
        return load_digits(as_frame=True).frame, "target"
    data = load_dataset(name)
    frame = pd.DataFrame(data.X, columns=data.feature_names)
    for column, is_category in zip(data.feature_names, data.categorical, strict=True):
        if is_category:
            frame[column] = frame[column].map(lambda code: None if np.isnan(code) else f"c{int(code)}")
    return frame.assign(label=data.y), "label"


def measure(records: Records, name: str, seed: int) -> None:
    """Run both commands, and keep what they came to."""
    frame, target = table_of(name)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        frame.to_csv(path, index=False)
        text = starting_file(path, target).replace("seed = 0", f"seed = {seed}")
        (Path(folder) / "goals.toml").write_text(text, encoding="utf-8")
        run = fit_run(Path(folder) / "goals.toml")
        summary, method = run.summary(), run.settings.method
        allowed = float(method.parameters.get("budget", 0.0))
        plain = summary.first_error
        records.add(name, seed, len(frame), frame[target].nunique(), method.name, summary.error, plain, allowed)


def line_of(rows: list[dict[str, Any]]) -> str:
    """Return a line of the page for the rows of a table."""
    ours, plain = (np.array([100 * float(row[name]) for row in rows]) for name in ("error", "plain"))
    difference = ours - plain
    spread = difference.std(ddof=1) / np.sqrt(difference.size) if difference.size > 1 else float("nan")
    first = rows[0]
    cells = (first["table"], first["rows"], first["classes"], f"`{first['method']}`", f"{ours.mean():.2f}")
    others = (f"{plain.mean():.2f}", f"{difference.mean():+.2f} ± {spread:.2f}", f"{100 * float(first['allowed']):g}")
    return f"| {' | '.join(map(str, (*cells, *others)))} |\n"


def main() -> None:
    """Measure what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=FOLDER)
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    records = Records(asked.output / "results.csv", COLUMNS, 2)
    for name in TABLES:
        for seed in range(asked.seeds):
            if not records.has(name, seed):
                measure(records, name, seed)
    by_table = {name: [row for row in records.rows if row["table"] == name] for name in TABLES}
    lines = [line_of(rows) for rows in by_table.values() if rows]
    (asked.output / "README.md").write_text(TOP.format(seeds=asked.seeds) + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
