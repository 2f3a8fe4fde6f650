"""The pages of the documentation as files: links lead somewhere, and the reference has every public name."""

import importlib
import re
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

from counterpoise import DROBoostClassifier, Stopping
from counterpoise.theory.guarantees import calibrated_radius

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
ROOMS = [
    "",
    ".datasets",
    ".distributed",
    ".explorer",
    ".goals",
    ".learners",
    ".metrics",
    ".report",
    ".runs",
    ".solvers",
]
MODULES = {"boosting", "confidence", "datasets", "displays", "goals", "guarantees", "learners", "losses", "metrics"}
MODULES |= {"networks", "persist", "rates", "risks", "runs", "solvers"}  # they have sections of their own
ELSEWHERE = re.compile(r"[a-z]+:")


def without_code(page):
    """Return the text of a page without its blocks and pieces of code."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`]*`", "code", text)


def places(page):
    """Return the anchors that a page's headings have."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_of_pages_lead_to_files_and_to_headings_there():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
            if ELSEWHERE.match(link):
                continue
            path, _, place = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), f"{link} on {page} leads to no file"
            assert not place or place in places(target), f"{link} on {page} leads to no heading"


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: f"counterpoise{room}")
def test_every_public_name_is_on_a_page_of_the_reference(room):
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "api").glob("*.rst"))
    listed = set(re.findall(r"^   (\w+)$", pages, flags=re.MULTILINE))
    assert set(importlib.import_module(f"counterpoise{room}").__all__) - MODULES <= listed


def defaults_of(estimator):
    return {name: one.default for name, one in signature(estimator).parameters.items()}


def test_numbers_that_the_guide_to_boosting_by_votes_calls_defaults_are_those_of_the_code():
    text = " ".join((ROOT / "docs" / "guide" / "voting.md").read_text(encoding="utf-8").split())
    known = defaults_of(DROBoostClassifier)
    (rate,) = re.findall(r"`learning_rate` .*?The default of ([\d.]+) needs", text)
    assert float(rate) == known["learning_rate"]
    assert DROBoostClassifier.default_stopping.validation_fraction is None
    assert "By default all `n_estimators` rounds are run on all samples." in text
    assert "A default fit holds out none, and calibrates on all" in text
    (part, least) = re.findall(r'`validation_fraction="auto"` a (\w+) of (\d+) samples or more', text)[0]
    rows = np.random.default_rng(0).normal(size=(int(least), 2))
    for n_samples in (int(least) - 1, int(least)):
        stopping = Stopping(patience=10, validation_fraction="auto")
        model = DROBoostClassifier(n_estimators=1, stopping=stopping, degrees_of_freedom=30, random_state=0)
        model.fit(rows[:n_samples], rows[:n_samples, 0] > 0)
        kept = n_samples * {"fifth": 0.8}[part] if n_samples == int(least) else n_samples
        assert model.radius_ == calibrated_radius(kept, known["radius_confidence"], 30)
