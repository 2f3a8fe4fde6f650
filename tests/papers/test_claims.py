"""Numbers of README and guides beside a link to a page of results stand on that page, or in a list of exceptions."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
TEXTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "guide").glob("*.md"))]
NUMBER = re.compile(r"(?<![\w.,/-])\d+(?:[.,]\d+)*(?![\w]|\.\d)")
LINK = re.compile(r"results/(\w+)\.md")
# What a sentence says about the question and not about its answer: alpha 0.1, 3,000 rows, a confidence of 0.9.
EXCEPTIONS = tomllib.loads((Path(__file__).parent / "claims.toml").read_text(encoding="utf-8"))


def claims():
    """Yield each sentence that links to a page of results: its file, the pages, and the sentence."""
    for path in TEXTS:
        text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for paragraph in re.split(r"\n\s*\n|\n(?=\||- |\d\. )", text):
            for sentence in re.split(r"(?<=[.:;!?])\s+(?=[A-Z`*\[])", " ".join(paragraph.split())):
                pages = [page for page in LINK.findall(sentence) if page not in {"README", "index"}]
                if pages:
                    yield path.name, pages, sentence


def numbers_of(sentence):
    """Return the numbers of a sentence, without those of code and of links."""
    plain = re.sub(r"`[^`]*`|\]\([^)]*\)", " ", sentence)
    return NUMBER.findall(plain)


@pytest.mark.skipif(not RESULTS.exists(), reason="needs the pages of results")
def test_every_number_beside_a_link_to_results_stands_on_that_page():
    unknown = []
    for name, pages, sentence in claims():
        shown = " ".join((RESULTS / f"{page}.md").read_text(encoding="utf-8") for page in pages)
        known = {*NUMBER.findall(shown), *EXCEPTIONS.get(name, {})}
        unknown += [(name, number, sentence[:160]) for number in numbers_of(sentence) if number not in known]
    assert not unknown


@pytest.mark.skipif(not RESULTS.exists(), reason="needs the pages of results")
def test_every_exception_is_used_and_has_a_reason():
    used = {(name, number) for name, _, sentence in claims() for number in numbers_of(sentence)}
    for name, numbers in EXCEPTIONS.items():
        for number, reason in numbers.items():
            assert (name, number) in used, f"{name}: {number} is in no sentence with a link to results"
            assert len(reason.split()) > 2
