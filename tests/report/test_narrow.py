"""No table of a page is cut on a phone, and none needs scrolling on a desk."""

import os
import shutil

import pytest
from run_folders import build_run

from counterpoise import impact_ratios
from counterpoise.report import write_report
from counterpoise.report.page import write_page

api = pytest.importorskip("playwright.sync_api", reason="needs playwright, which drives the browser")
BROWSER = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore"),  # of libraries, on their way out
]
CUT = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.ariaLabel)"


def run_page(folder):
    return write_report(build_run(folder))


def impact_page(folder):
    people = {"sex": ["F", "M", None] * 400, "race": ["a rather long name of a category", "b", "c", "d"] * 300}
    return write_page(impact_ratios([0, 1, 1, 1, 0] * 240, people), folder / "impact.html")


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("write", [run_page, impact_page])
def test_no_table_is_cut_at_any_width(write, tmp_path):
    page = write(tmp_path)
    with api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        for width in (390, 1280):
            tab = browser.new_page(viewport={"width": width, "height": 900})
            tab.goto(page.as_uri())
            assert tab.evaluate(CUT) == []
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
        browser.close()
