"""The page in a real browser: drag, conflict, offered bound, pin, undo, reload, export; markup is shown as text."""

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("starlette", reason="the server needs starlette")
pytest.importorskip("websockets", reason="the server needs websockets")
api = pytest.importorskip("playwright.sync_api", reason="needs playwright, which drives the browser")
from counterpoise import load  # noqa: E402
from counterpoise.explorer import session_of_model  # noqa: E402
from tests.explorer.inside import Conversation  # noqa: E402
from tests.explorer.served import HOSTILE, WITH_MARGINS, make_run, served, serving  # noqa: E402
from tests.explorer.sessions import SEX, TEST, X, Y, fitted, pool_as_file  # noqa: E402

BROWSER = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,  # each takes seconds of the browser
    pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed: apt-get install chromium"),
    pytest.mark.filterwarnings("ignore"),  # of libraries, on their way out
]
try:
    from axe_playwright_python.sync_playwright import Axe
except ModuleNotFoundError:
    Axe = None
_LONG = 60_000  # milliseconds: the machine may be busy


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="module")
def server(folder):
    with served(make_run(folder), folder) as found:
        yield found


@pytest.fixture(scope="module")
def browser():
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    found = context.new_page()
    found.set_default_timeout(_LONG)
    problems = []
    found.on("pageerror", lambda error: problems.append(str(error)))
    found.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    found.on("dialog", lambda dialog: problems.append(dialog.message))
    yield found
    context.close()
    assert not problems


def opened(page, address):
    page.goto(address)
    settled(page)


def settled(page):
    """Wait until the present setting and all views of it are drawn."""
    api.expect(page.locator(".goals li .verdict").nth(1)).to_be_visible(timeout=_LONG)
    api.expect(page.locator("[aria-busy=true]")).to_have_count(0, timeout=_LONG)


def detailed(page):
    """Turn to what is behind the decisions."""
    page.get_by_role("tab", name="Details").click()
    settled(page)


def people(page):
    """Return the numbers of 1,000 people of all groups: decided positive, wrong, and both kinds of wrong."""
    cells = page.get_by_role("region", name="Decisions by group, of 1,000 people").locator("tr.numbers td")
    return [int(cells.nth(place).evaluate("(cell) => cell.firstChild.textContent")) for place in range(4)]


def drag(page, slider, parts):
    """Drag a slider over parts of its width, hold it there, and return where it is."""
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    for place, part in enumerate(parts):
        page.mouse.move(box["x"] + box["width"] * part, box["y"] + box["height"] / 2)
        if place == 0:
            page.mouse.down()
    return box


def state(page):
    return json.loads(page.evaluate("decodeURIComponent(location.hash.slice(1))"))


def outdated(page):
    """Check that where goals cannot be met nothing is said to hold or to be under way, and old views are called so."""
    api.expect(page.locator(".goals")).to_contain_text("No result: these goals cannot be met together")
    api.expect(page.locator(".goals .verdict")).to_have_count(0)
    api.expect(page.locator("[aria-busy=true]")).to_have_count(0)
    words = page.locator(".views section:visible .stale-word").all_inner_texts()
    assert set(words) <= {"from the last setting that could be met", ""}
    assert words.count("") <= 1  # what is pinned
    api.expect(page.get_by_role("button", name="Pin", exact=True)).to_be_disabled()


def bound_of(page, text):
    return page.get_by_label(f"Bound of {text}", exact=False).and_(page.locator("input[type=number]"))


def test_a_person_finds_out_what_the_models_can_do(server, page, folder):
    opened(page, server.address)
    detailed(page)
    loss = page.get_by_role("region", name="Loss", exact=True)
    before = loss.inner_text()
    drag(page, page.get_by_label("Tail: the worst-off fraction of the rows (alpha)"), (0.9, 0.88, 0.86, 0.84, 0.97))
    page.mouse.up()
    settled(page)
    api.expect(loss).not_to_have_text(before)
    alpha = state(page)["setting"]["alpha"]
    assert 0.7 < alpha <= 1

    page.get_by_role("button", name="Pin", exact=True).click()
    api.expect(page.get_by_role("region", name="Pinned settings").first).to_contain_text("pin 1")

    recall = bound_of(page, "recall")
    recall.fill("0.99")
    recall.press("Enter")
    alert = page.get_by_role("alert", name="Conflict")
    api.expect(alert).to_contain_text("cannot hold together", timeout=_LONG)
    outdated(page)
    offered = alert.get_by_role("button").first
    api.expect(offered).to_contain_text("Use ")
    offered.click()
    api.expect(alert).to_be_empty(timeout=_LONG)
    settled(page)
    after = state(page)["setting"]

    page.get_by_role("button", name="Undo").click()
    api.expect(alert).to_contain_text("cannot hold together", timeout=_LONG)
    page.get_by_role("button", name="Redo").click()
    api.expect(alert).to_be_empty(timeout=_LONG)
    settled(page)
    assert state(page)["setting"] == after

    shown = loss.inner_text()
    page.reload()
    settled(page)
    assert state(page)["setting"] == after
    detailed(page)
    api.expect(loss).to_have_text(shown.replace("\t", "").replace("\n", ""), use_inner_text=False, timeout=_LONG)
    api.expect(page.get_by_role("region", name="Pinned settings").first).to_contain_text("pin 1", timeout=_LONG)

    with page.expect_download() as found:
        page.get_by_role("button", name="Goals file").click()
    text = Path(found.value.path()).read_text()
    assert f"alpha = {alpha}" in text
    page.get_by_role("button", name="Model file").click()
    written = page.get_by_text("The server wrote the file")
    written.wait_for(timeout=_LONG)
    model = load(written.inner_text().partition(": ")[2])
    frame = pd.read_csv(folder / "people.csv")
    answers = model.predict(frame[["income", "age"]], sensitive_features={"sex": frame["sex"].to_numpy()})
    assert set(answers) == {"yes", "no"}


@pytest.fixture(scope="module")
def server_with_margins(tmp_path_factory):
    folder = tmp_path_factory.mktemp("margins")
    with served(make_run(folder, WITH_MARGINS), folder) as found:
        yield found


def test_margins_are_kept_while_a_bound_moves_and_new_when_it_rests(server_with_margins, page):
    opened(page, server_with_margins.address)
    detailed(page)
    first = page.locator(".goals > li").first
    price = page.locator(".field[aria-busy]").get_by_text(re.compile("^Margins cost"))
    api.expect(price).to_be_visible()
    figure = first.get_by_role("img", name="expected in the population")
    before = figure.get_attribute("aria-label")
    assert re.match(r"Bound 0.600, aimed at 0.\d+, 0.\d+ to 0.\d+ expected in the population", before)
    slider = page.get_by_role("slider", name="Bound of recall")
    box = drag(page, slider, (0.6, 0.62, 0.64, 0.66))
    kept = page.locator(".field[aria-busy=true]")
    api.expect(kept).to_contain_text("(Last setting.)")
    api.expect(first.locator(".stale")).to_contain_text("New rows: ")
    assert slider.bounding_box()["y"] == box["y"]  # nothing above it jumps
    page.mouse.up()
    settled(page)
    api.expect(first.locator(".stale")).to_have_count(0)
    assert figure.get_attribute("aria-label") != before

    level = page.get_by_role("slider", name="Confidence that all goals hold on new rows")
    level.focus()
    level.press("ArrowLeft")
    settled(page)
    assert state(page)["setting"]["confidence"] == 0.89
    assert level.get_attribute("aria-valuetext").startswith("all goals hold on new rows in about 89.0")
    with page.expect_download() as found:  # by key: views that arrive may move the button away from the mouse
        page.get_by_role("button", name="Goals file").press("Enter")
    assert "confidence = 0.89" in Path(found.value.path()).read_text()
    page.reload()
    settled(page)
    assert level.input_value() == "0.89"

    page.get_by_role("checkbox", name="Confidence that all goals hold on new rows").uncheck()
    settled(page)
    assert state(page)["setting"]["confidence"] is None
    api.expect(page.get_by_text("each may fail on new rows about half of the time")).to_be_visible()
    api.expect(figure).to_have_count(0)
    api.expect(level).to_be_disabled()
    page.set_viewport_size({"width": 390, "height": 844})
    detailed(page)
    page.get_by_role("button", name="Undo").click()
    settled(page)
    api.expect(figure).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_goals_are_picked_or_typed_and_errors_are_the_parsers_own(server, page):
    opened(page, server.address)
    page.get_by_text("Add a goal").click()
    text = page.get_by_label("Goal as text")
    page.get_by_label("Metric", exact=True).select_option("false_positive_rate")
    page.get_by_label("Group", exact=True).select_option("sex")
    page.get_by_label("Value", exact=True).select_option(HOSTILE)
    page.get_by_label("Must be", exact=True).select_option("<=")
    assert text.input_value() == f"false_positive_rate(sex='{HOSTILE}') <= 0.5"
    page.get_by_role("button", name="Add", exact=True).click()
    settled(page)
    api.expect(page.locator(".goals > li")).to_have_count(3, timeout=_LONG)
    api.expect(page.locator(".goals > li code").nth(2)).to_contain_text(HOSTILE)
    assert "the share of negatives that are predicted positive" in page.locator("form").inner_text()
    page.get_by_label("Kind", exact=True).select_option("max_difference")
    page.get_by_label("Metric", exact=True).select_option("recall")
    assert text.input_value() == "max_difference(recall, by=sex) <= 0.1"
    page.get_by_label("Kind", exact=True).select_option("demographic_parity_ratio")
    assert text.input_value() == "demographic_parity_ratio(by=sex) >= 0.8"
    page.get_by_role("button", name="Add", exact=True).click()
    api.expect(page.locator(".goals > li")).to_have_count(4, timeout=_LONG)
    settled(page)
    page.get_by_role("button", name="Add", exact=True).click()
    api.expect(page.locator("pre.error")).to_contain_text("is already in the list", timeout=_LONG)
    text.fill("recal(train) >= 0.9")
    page.get_by_role("button", name="Add", exact=True).click()
    api.expect(page.locator("pre.error")).to_contain_text("Did you mean 'recall'", timeout=_LONG)
    switch = page.get_by_role("switch").nth(2)
    switch.uncheck()
    settled(page)
    api.expect(page.locator(".goals > li").nth(2)).to_contain_text("off")
    assert page.locator("img").count() == 0
    detailed(page)
    api.expect(page.get_by_role("heading", name="Rates by group")).to_be_visible()


def test_the_first_screen_counts_people_and_says_what_changes(page):
    """The numbers are those of the model's own decisions, the deployed model's stand beside them."""
    model, deployed = fitted("score"), np.where(X[:, 0] > 0.8, 1, 0)
    own = session_of_model(model, X[TEST], Y[TEST], sensitive_features={"sex": SEX[TEST]}, baseline=deployed[TEST])
    with serving(Conversation(own)) as server:
        opened(page, server.address)
        api.expect(page.get_by_role("tab", name="Decisions")).to_have_attribute("aria-selected", "true")
        for hidden in ("Tail: the worst-off fraction", "Limit the average loss"):
            api.expect(page.get_by_label(hidden)).to_be_hidden()
        chances = model.decision_proba(X[TEST], sensitive_features={"sex": SEX[TEST]})[:, 1]
        wrong = [(chances * (Y[TEST] == 0)).mean(), ((1 - chances) * (Y[TEST] == 1)).mean()]
        expected = [round(1000 * part) for part in (chances.mean(), *wrong)]
        before = people(page)
        assert [before[0], *before[2:]] == pytest.approx(expected, abs=1)
        assert before[1] == before[2] + before[3]
        changes = page.locator(".changes")
        more = before[0] - round(1000 * deployed[TEST].mean())
        api.expect(changes).to_have_text(re.compile(f"Against today.s decisions: {more} more decided “1”"))
        recall = bound_of(page, "recall")
        recall.fill("0.8")
        recall.press("Enter")
        settled(page)
        more = people(page)[0] - before[0]
        assert more > 0
        api.expect(changes).to_contain_text(f"Against the model as fitted: {more} more decided “1”")
        page.reload()  # a link: the page asks for the model as fitted too
        settled(page)
        api.expect(changes).to_contain_text(f"Against the model as fitted: {more} more decided “1”")


def violations(page):
    """Return what axe finds on a page, in one line each."""
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['help']} at {[node['target'] for node in one['nodes']]}" for one in found]


@pytest.mark.skipif(Axe is None, reason="needs axe-playwright-python, which brings axe-core")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_screen(server, file, browser, scheme):
    for width in (390, 1280):
        context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme, bypass_csp=True)
        page = context.new_page()
        page.set_default_timeout(_LONG)
        opened(page, server.address)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert violations(page) == []
        detailed(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert violations(page) == []
        slider = page.get_by_label("Tail: the worst-off fraction of the rows (alpha)")
        slider.focus()
        slider.press("ArrowLeft")
        settled(page)
        assert state(page)["setting"]["alpha"] < 0.6
        page.get_by_role("tab", name="Details").press("ArrowLeft")
        api.expect(page.get_by_role("tab", name="Decisions")).to_be_focused()
        bound_of(page, "recall").fill("0.99")
        bound_of(page, "recall").press("Enter")
        api.expect(page.get_by_role("alert", name="Conflict")).to_contain_text("cannot hold together", timeout=_LONG)
        assert violations(page) == []
        page.goto(file)
        settled(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert violations(page) == []
        context.close()


@pytest.fixture(scope="module")
def file(folder):
    """Write the explorer of a pool as a file, and return its address."""
    path = folder / "explorer.html"
    path.write_text(pool_as_file(), encoding="utf-8")
    return path.as_uri()


def test_a_static_file_shows_answers_of_its_own_settings_alone(page, file):
    page.goto(file)
    settled(page)
    assert page.get_by_role("button", name="Remove").count() == 0
    recall = bound_of(page, "recall")
    recall.fill("0.99")
    recall.press("Enter")
    api.expect(page.locator(".goals")).to_contain_text("This file has no result for 0.99.")
    settled(page)
    shown = float(recall.input_value())
    assert 0.7 < shown < 0.99
    assert state(page)["setting"]["goals"][0]["bound"] == pytest.approx(shown, abs=1e-4)
    api.expect(page.locator(".goals code").first).to_have_text(f"recall >= {shown}")
    page.get_by_role("slider", name="Bound of false_positive_rate").press("Home")
    conflict = page.get_by_role("alert", name="Conflict")
    api.expect(conflict).to_contain_text("cannot hold together")
    outdated(page)
    conflict.get_by_role("button", name=re.compile("^Use false_positive_rate")).click()  # a bound that the file has
    api.expect(conflict).to_be_empty()
    page.get_by_role("button", name="Undo").click()
    api.expect(conflict.get_by_role("button")).to_have_count(2)
    page.get_by_role("switch").first.uncheck()
    settled(page)
    api.expect(page.locator(".goals > li").first).to_contain_text("off")
    api.expect(page.locator(".goals")).not_to_contain_text("no result for 0.99")
    goals = state(page)["setting"]["goals"]
    assert [goal["on"] for goal in goals] == [False, True]
    assert goals[1]["bound"] == 0.3
    api.expect(page.get_by_text("which was reset")).to_contain_text("false_positive_rate <= ")
