"""A validation file: a zip of what a run came to, which can be read and checked without this package and without data.

README.md                a model card: what decides, its goals, its errors, its data in numbers, how to make it again
report.html              the page of the run
result.json              every number
goals.toml               the goals file as it was read
SHA256SUMS, verify.py    checksums of the other files, and ten lines of code that check them
"""

import hashlib
import zipfile
from io import BytesIO
from pathlib import Path

from counterpoise._base.lazy import import_optional
from counterpoise.report.page import page_of
from counterpoise.report.wording import count, number, percent
from counterpoise.runs.folder import Run, write_output
from counterpoise.runs.goals_file import read_bytes
from counterpoise.runs.places import GOALS, REPORT, RESULT
from counterpoise.runs.result import RunResult, SplitStanding

VERIFY = """\
import hashlib
import pathlib
import sys
folder, bad = pathlib.Path(__file__).parent, []
for line in (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines():
    known, name = line.split("  ", 1)
    path = folder / name
    bad += [] if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == known else [name]
print("changed or missing: " + ", ".join(bad) if bad else "all files are as they were written")
sys.exit(bool(bad))
"""
SUMS, VERIFIER, README = "SHA256SUMS", "verify.py", "README.md"


def write_pack(run: Run, output: str | Path) -> Path:
    """Write the validation file of a run.

    It holds what the run folder holds: groups and explained decisions of people are in the report and the result.

    Parameters
    ----------
    run : Run
    output : path
        A zip file.

    Returns
    -------
    Path
    """
    result, path = run.result(), Path(output)
    files = {
        README: model_card(result).encode(),
        REPORT: page_of(result).encode("utf-8", errors="replace"),
        RESULT: result.model_dump_json(indent=1).encode(),
        GOALS: read_bytes(run.folder / GOALS),
        VERIFIER: VERIFY.encode(),
    }
    files[SUMS] = "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items()
    ).encode()
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(f"{path.stem}/{name}", content)
    write_output(path, buffer.getvalue())
    return path


def model_card(result: RunResult) -> str:
    """Return a model card of a run as Markdown."""
    message = 'A pack has a model card by skops: pip install "counterpoise[models]".'
    skops_card = import_optional("skops.card", ImportError, message)
    card = skops_card.Card(None, template=None)
    title = f"Validation file of {result.data.name or 'a classifier'}"
    card.add(**{title: f"{result.method}. To check all files: python verify.py."})
    tables = {
        "Rules that decide": [
            {"rule": rule.title, "what it does": rule.description, "share": percent(rule.share)}
            for rule in result.rules
        ],
        f"Goals, audited on the {result.judged} rows": [
            {"goal": goal.text, **_standing(goal.on(result.judged))} for goal in result.goals
        ],
        "Errors": [
            {
                "rows of": name,
                "number": count(split.rows),
                **{who: percent(loss.error) for who, loss in split.losses.items()},
            }
            for name, split in result.splits.items()
        ],
        "Groups": [{"group": group.text, "rows": count(group.n_samples)} for group in result.groups],
        "Versions": [{"package": name, "version": text} for name, text in result.versions.items()],
        "Checksums of data and run": [{"of": name, "SHA-256": digest} for name, digest in result.checksums.items()],
    }
    for heading, rows in tables.items():
        if rows:
            columns = {column: [str(row.get(column, "-")) for row in rows] for column in rows[0]}
            card.add_table(folded=False, **{heading: columns})
    notes = {"Data": result.data.lines, "Advice": result.advice, "Warnings": result.warnings}
    for heading, lines in notes.items():
        if lines:
            card.add(folded=False, **{heading: "\n\n".join(lines)})
    card.add(**{"How to make it again": "```\n" + "\n".join(result.commands) + "\n```"})
    return str(card.render())


def _standing(standing: SplitStanding) -> dict[str, str]:
    numbers = {name: number(getattr(standing, name)) for name in ("bound", "estimate", "low", "high")}
    return {**numbers, "verdict": standing.verdict or "-"}
