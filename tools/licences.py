"""Every package that an installation of counterpoise brings, with its licence, as a table and a bill of materials.

    python tools/licences.py [--extra cli --extra dask ...] [--bill FILE]

The table goes to the standard output; ``--bill`` writes CycloneDX 1.5. A package without a licence, or with one that
would bind those who use counterpoise (GPL, AGPL), is an error.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = "counterpoise"
_BINDING = re.compile(r"\bA?GPL|(?<!Lesser )General Public License")
_SHORT = 60  # characters of a licence's name; longer ones are its whole text
# Whose metadata name no licence, or give its text in the place of its name; read in their repositories.
_KNOWN = {"daqp": "MIT", "skops": "MIT"}


def licence_of(found: Distribution) -> str:
    """Return the name of a package's licence, or an empty text."""
    told = found.metadata
    classifiers = told.get_all("Classifier") or []
    named = [text.rpartition(" :: ")[2] for text in classifiers if text.startswith("License :: ")]
    text = (told.get("License") or "").strip()
    short = text if 0 < len(text) <= _SHORT and "\n" not in text else ""
    first = (text.splitlines() or [""])[0].strip()
    return (
        told.get("License-Expression")
        or " or ".join(one for one in named if one != "OSI Approved")
        or short
        or (first if "licen" in first.lower() else "")
        or _KNOWN.get(canonicalize_name(told["Name"]), "")
    )


def installed(name: str, extras: Iterable[str]) -> Iterator[Distribution]:
    """Yield a package and all that it requires here, each once, in the order of their names."""
    left, seen, found = [(name, frozenset(extras))], set[tuple[str, frozenset[str]]](), dict[str, Distribution]()
    while left:
        one = left.pop()
        if one in seen:
            continue
        seen.add(one)
        try:
            found[canonicalize_name(one[0])] = own = distribution(one[0])
        except PackageNotFoundError:
            continue  # required elsewhere, on another system or Python
        left += [_asked(required) for required in map(Requirement, own.requires or []) if _applies(required, one[1])]
    yield from (found[key] for key in sorted(found))


def _asked(required: Requirement) -> tuple[str, frozenset[str]]:
    return canonicalize_name(required.name), frozenset(required.extras)


def _applies(required: Requirement, extras: Iterable[str]) -> bool:
    return required.marker is None or any(required.marker.evaluate({"extra": one}) for one in [*extras, ""])


def bill_of(found: list[Distribution]) -> dict[str, Any]:
    """Return a bill of materials in CycloneDX's words."""
    parts = [
        {
            "type": "library",
            "name": one.metadata["Name"],
            "version": one.version,
            "purl": f"pkg:pypi/{canonicalize_name(one.metadata['Name'])}@{one.version}",
            "licenses": [{"license": {"name": licence_of(one)}}],
        }
        for one in found
    ]
    own = [part for part in parts if part["name"] == ROOT]
    others = [part for part in parts if part["name"] != ROOT]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": own[0]},
        "components": others,
    }


def main(arguments: list[str] | None = None) -> int:
    """Print the table, write the bill, and return 1 where a licence is missing or binds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extra", action="append", default=[], help="an extra of counterpoise that is installed")
    parser.add_argument("--bill", type=Path, help="where to write the bill of materials")
    asked = parser.parse_args(arguments)
    found = list(installed(ROOT, asked.extra))
    for one in found:
        print(f"{one.metadata['Name']} {one.version}: {licence_of(one) or 'no licence told'}")
    if asked.bill is not None:
        asked.bill.write_text(json.dumps(bill_of(found), indent=2) + "\n", encoding="utf-8")
    bad = [one.metadata["Name"] for one in found if not licence_of(one) or _BINDING.search(licence_of(one))]
    if bad:
        sys.stderr.write(f"Look at the licences of {', '.join(bad)}: they are missing, or bind those who use us.\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
