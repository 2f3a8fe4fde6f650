"""No table of a page is cut on a phone, and none needs scrolling on a desk."""

import os
import shutil

import pytest
from run_folders import build_run

from counterpoise.report import write_report

api = pytest.importorskip("playwright.sync_api", reason="needs playwright, which drives the browser")
BROWSER = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore"),  # of libraries, on their way out
]
CUT = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.ariaLabel)"


@pytest.mark.usefixtures("undrawn")
def test_no_table_is_cut_at_any_width(tmp_path):
    page = write_report(build_run(tmp_path))
    with api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        for width in (390, 1280):
            tab = browser.new_page(viewport={"width": width, "height": 900})
            tab.goto(page.as_uri())
            assert tab.evaluate(CUT) == []
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
        browser.close()
