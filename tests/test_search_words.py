"""The words that people search for lead to the right page of the documentation first.

The score is in the manner of the site's search (``searchtools.js`` of Sphinx): a page must have all words of a query
but for Sphinx's stop words; a word of its title counts 15, of its text 5, and here one of another heading 7 more.
"""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
TITLE, HEADING, TEXT = 15, 7, 5
STOP = {"a", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "near", "no", "not"}
STOP |= {
    "of",
    "on",
    "or",
    "such",
    "that",
    "the",
    "their",
    "then",
    "there",
    "these",
    "they",
    "this",
    "to",
    "was",
    "will",
}
STOP |= {"with"}

PHRASES = {
    "threshold with recall at least 0.9": "guide/jobs/screening",
    "precision at recall scikit-learn": "coming_from_tuned_threshold",
    "TunedThresholdClassifierCV recall": "coming_from_tuned_threshold",
    "GridSearchCV cross_validate pipeline threshold": "coming_from_tuned_threshold",
    "alert limit per day": "guide/jobs/fraud",
    "fraud alerts a day": "guide/jobs/fraud",
    "review queue block accept": "guide/jobs/fraud",
    "reviewers who err": "guide/jobs/fraud",
    "health screening sensitivity": "guide/jobs/screening",
    "recall in every site": "guide/jobs/screening",
    "false alarms in every month": "guide/jobs/screening",
    "lending bad rate cut-off": "guide/jobs/lending",
    "swap set": "guide/jobs/lending",
    "adverse reasons lending": "guide/jobs/lending",
    "threshold per topic": "guide/jobs/moderation",
    "is the judge good enough": "guide/jobs/moderation",
    "moderation precision several labels": "guide/jobs/moderation",
    "top 60 of a batch": "guide/jobs/hiring",
    "hiring impact ratios": "guide/jobs/hiring",
    "marketing campaign budget": "guide/jobs/hiring",
}


def words(text):
    """Return the words of a text, without plural endings and without those that every page has."""
    found = re.findall(r"[a-z0-9_]+(?:\.[0-9]+)?", text.lower())
    return [re.sub(r"s$", "", word) for word in found if word not in STOP]


def index():
    """Return the words of the title, the other headings and the prose of each page."""
    pages = {}
    for path in [*DOCS.glob("*.md"), *(DOCS / "guide").rglob("*.md")]:
        text = path.read_text(encoding="utf-8")
        headings = re.findall(
            r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), flags=re.MULTILINE
        )
        if headings:
            name = path.relative_to(DOCS).with_suffix("").as_posix()
            pages[name] = set(words(headings[0])), set(words(" ".join(headings[1:]))), set(words(text))
    return pages


PAGES = index()


def score(query, page):
    """Return how well a page matches a query; 0 where it lacks a word."""
    title, headings, text = PAGES[page]
    total = 0
    for word in words(query):
        if word not in text:
            return 0
        total += TITLE * (word in title) + HEADING * (word in headings) + TEXT
    return total


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_that_people_use_leads_to_its_page_first(phrase):
    found = sorted(PAGES, key=lambda page: score(phrase, page), reverse=True)
    assert found[0] == PHRASES[phrase], [(page, score(phrase, page)) for page in found[:3]]
    assert score(phrase, found[0]) > score(phrase, found[1])


def test_there_are_twenty_phrases_and_every_page_of_a_job_is_found():
    assert len(PHRASES) == 20
    assert {path.stem for path in (DOCS / "guide" / "jobs").glob("*.md")} <= {
        page.rpartition("/")[2] for page in PHRASES.values()
    }
