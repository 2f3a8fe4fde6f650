"""The explorer: from input to drawn result in a browser, and fifty pages at one server for a minute.

    python bench/explorer.py latency [--rows 100000]     needs Chromium and playwright
    python bench/explorer.py margins [--rows 100000]     the same for one rule, with a confidence and without
    python bench/explorer.py clients [--seconds 60]
    python bench/explorer.py schema                      needs schemathesis

The first three write to docs/results/tables. Latency is measured in the page, from the first input that an answer
reflects to the frame in which it is drawn. Every answer that the fifty pages get is compared with the library's own.
"""

import argparse
import asyncio
import csv
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.tree import DecisionTreeClassifier

from counterpoise import GoalClassifier, MixtureClassifier
from counterpoise.datasets import load_dataset
from counterpoise.explorer import Session, session_of_model
from counterpoise.explorer.conversation import Conversation
from counterpoise.explorer.server import Serving

RESULTS = Path(__file__).parents[1] / "docs" / "results" / "tables"
GOALS = [
    "positive_rate(train, sex=Female) >= 0.8 * positive_rate(train, sex=Male)",
    "recall(train) >= 0.6",
    "false_positive_rate(train) <= 0.2",
    "recall(train, sex=Female) >= recall(train, sex=Male) - 0.05",
    "positive_rate(train) <= 0.5",
]
_TRAINED = 40_000
_STEPS = 150
_CLIENTS = 50
_PAUSE = 0.4  # seconds between two settings of one page
_TOL = 3e-3 + 2e-4
DRAG = """async ([low, steps]) => {
  const alpha = [...document.querySelectorAll('label')].find((one) => one.textContent.startsWith('Tail')).control;
  const times = [], recall = document.querySelector('input[type=range][aria-label^="Bound of recall"]');
  const root = document.querySelector('.cp-explorer');
  let seed = 1;
  const random = () => { seed = (seed * 16807) % 2147483647; return seed / 2147483647; };
  const start = Number(recall.value);
  for (let step = 0; step < steps; step += 1) {
    const one = step % 2 ? alpha : recall;
    const drawn = new Promise((done) =>
      root.addEventListener('explorer-drawn', (event) => done(event.detail.ms), { once: true }));
    const moved = one === alpha ? Number(alpha.value) + 0.04 * (random() - 0.5) : start - 0.08 * random();
    one.value = one === alpha ? Math.min(Math.max(moved, low), 0) : moved;
    one.dispatchEvent(new Event('input', { bubbles: true }));
    times.push(await drawn);
  }
  return times;
}"""

RELEASE = """async (step) => {
  const alpha = [...document.querySelectorAll('label')].find((one) => one.textContent.startsWith('Tail')).control;
  const since = performance.now();
  alpha.value = Number(alpha.value) - step;
  for (const name of ['input', 'change']) alpha.dispatchEvent(new Event(name, { bubbles: true }));
  do await new Promise((done) => setTimeout(done, 20)); while (document.querySelector('[aria-busy=true]'));
  return performance.now() - since;
}"""

DRAG_ONE = """async ([name, low, high, steps]) => {
  const one = document.querySelector(`input[type=range][aria-label^="${name}"]`), times = [];
  const root = document.querySelector('.cp-explorer');
  for (let step = 0; step < steps; step += 1) {
    const drawn = new Promise((done) =>
      root.addEventListener('explorer-drawn', (event) => done(event.detail.ms), { once: true }));
    one.value = low + (high - low) * ((step * 0.618034) % 1);
    one.dispatchEvent(new Event('input', { bubbles: true }));
    times.push(await drawn);
  }
  return times;
}"""

RELEASE_ONE = """async ([name, value]) => {
  const one = document.querySelector(`input[type=range][aria-label^="${name}"]`), since = performance.now();
  one.value = value;
  for (const kind of ['input', 'change']) one.dispatchEvent(new Event(kind, { bubbles: true }));
  const wait = async (busy) => {
    do await new Promise((done) => setTimeout(done, 20)); while (document.querySelector(busy));
    return performance.now() - since;
  };
  return [await wait('.field[aria-busy=true]'), await wait('[aria-busy=true]')];
}"""


def sessions(n_rows: int) -> Iterator[tuple[str, Session]]:
    """Yield a session of a hundred models and one of a score in two groups, on so many rows to choose and to judge."""
    found = load_dataset("acs-income")
    order = np.random.default_rng(0).permutation(len(found.y))
    train, chosen, test = np.split(order[: _TRAINED + 2 * n_rows], [_TRAINED, _TRAINED + n_rows])
    X, y, sex = found.X, found.y, found.sensitive["sex"]
    given = {"sensitive_features": {"sex": sex[chosen]}}
    rng = np.random.default_rng(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trees = [
            DecisionTreeClassifier(max_depth=int(rng.integers(3, 9)), max_features=4, random_state=place).fit(
                X[train],
                y[train],
                sample_weight=rng.exponential(size=_TRAINED) * np.where(y[train] == 1, rng.uniform(0.5, 3), 1),
            )
            for place in range(100)
        ]
        asked: dict[str, Any] = {"alpha": 0.4, "goals": GOALS, "random_state": 0}
        pool = MixtureClassifier(trees, **asked).fit(X[chosen], y[chosen], **given)
        yield "100 models", session_of_model(pool, X[test], y[test], sensitive_features={"sex": sex[test]})
        scorer = HistGradientBoostingClassifier(random_state=0).fit(X[train], y[train])
        score = GoalClassifier(scorer, cv="prefit", by="sex", decision="sticky", **asked, confidence=None)
        score.fit(X[chosen], y[chosen], **given)
        yield "one score, two groups", session_of_model(score, X[test], y[test], sensitive_features={"sex": sex[test]})


@contextmanager
def served(session: Session) -> Iterator[Serving]:
    """Serve a session from a thread."""
    serving = Serving(Conversation(session))
    thread = threading.Thread(target=serving.run)
    thread.start()
    try:
        yield serving
    finally:
        serving.stop()
        thread.join()


def latency(n_rows: int) -> None:
    """Drag in a browser, and write how long each step took."""
    from playwright.sync_api import expect, sync_playwright  # noqa: PLC0415 - optional

    rows = []
    for name, session in sessions(n_rows):
        with served(session) as serving, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(serving.address)
            expect(page.locator("[aria-busy=true]")).to_have_count(0, timeout=60_000)
            page.evaluate(DRAG, [np.log10(0.1), 20])  # kernels compile, caches fill
            before = time.process_time()
            times = np.array(page.evaluate(DRAG, [np.log10(0.1), _STEPS]))
            processor = 1000 * (time.process_time() - before) / _STEPS
            page.get_by_role("tab", name="Details").click()  # where the slower views are
            expect(page.locator("[aria-busy=true]")).to_have_count(0, timeout=60_000)
            before = time.process_time()
            released = [page.evaluate(RELEASE, step) for step in (0.03, -0.05, 0.04, -0.02, 0.05)]
            views = 1000 * (time.process_time() - before) / len(released)
            browser.close()
        rows.append(
            {
                "models": name,
                "rows to choose on": n_rows,
                "held-out rows": n_rows,
                "goals": len(GOALS),
                "median ms": round(float(np.median(times)), 1),
                "95 % ms": round(float(np.quantile(times, 0.95)), 1),
                "processor ms of the server": round(processor, 1),
                "all views after release, median ms": round(float(np.median(released))),
                "processor ms of the server for them": round(views),
                "steps": _STEPS,
                "load of the machine": round(os.getloadavg()[0], 1),
                "cores": os.cpu_count(),
            }
        )
        print(rows[-1], flush=True)
    _write("explorer_latency.csv", rows)


def margins(n_rows: int) -> None:
    """Drag a bound and the confidence of one rule in a browser, and let go; without margins the same in turn."""
    from playwright.sync_api import expect, sync_playwright  # noqa: PLC0415 - optional

    found = load_dataset("acs-income")
    order = np.random.default_rng(0).permutation(len(found.y))
    train, chosen, test = np.split(order[: _TRAINED + 2 * n_rows], [_TRAINED, _TRAINED + n_rows])
    sex = found.sensitive["sex"]
    scorer = HistGradientBoostingClassifier(random_state=0).fit(found.X[train], found.y[train])
    rule = GoalClassifier(scorer, cv="prefit", by="sex", goals=GOALS, random_state=0)
    rule.fit(found.X[chosen], found.y[chosen], sensitive_features={"sex": sex[chosen]})
    session = session_of_model(rule, found.X[test], found.y[test], sensitive_features={"sex": sex[test]})
    bound, level = "Bound of recall >=", "Confidence that"
    times: dict[str, list[float]] = {}

    def add(name: str, more: list[float]) -> None:
        times.setdefault(name, []).extend(more)

    with served(session) as serving, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(serving.address)
        expect(page.locator("[aria-busy=true]")).to_have_count(0, timeout=60_000)
        page.get_by_role("tab", name="Details").click()  # where the slower views are
        for turn in range(6):
            mode = "with margins" if turn % 2 == 0 else "without"
            page.evaluate(DRAG_ONE, [bound, 0.6, 0.72, 10])  # kernels compile, caches fill
            add(f"drag of a bound, {mode}", page.evaluate(DRAG_ONE, [bound, 0.6, 0.72, _STEPS // 3]))
            for place in range(4):
                first, last = page.evaluate(RELEASE_ONE, [bound, 0.61 + 0.02 * place + 0.002 * turn])
                if turn % 2 == 0:
                    add("release, until margins are new", [first])
                add(f"release, until all views are, {mode}", [last])
            if turn % 2 == 0:
                add("drag of the confidence", page.evaluate(DRAG_ONE, [level, 0.5, 0.99, _STEPS // 3]))
            page.locator("label", has_text=level).locator("input").click()
            expect(page.locator("[aria-busy=true]")).to_have_count(0, timeout=60_000)
        browser.close()
    rows = [
        {
            "what": name,
            "rows to choose on": n_rows,
            "held-out rows": n_rows,
            "goals": len(GOALS),
            "median ms": round(float(np.median(own)), 1),
            "95 % ms": round(float(np.quantile(own, 0.95)), 1),
            "largest ms": round(float(np.max(own)), 1),
            "times": len(own),
            "load of the machine": round(os.getloadavg()[0], 1),
        }
        for name, own in times.items()
    ]
    for row in rows:
        print(row, flush=True)
    _write("explorer_margins.csv", rows)


def grid() -> list[dict[str, Any]]:
    """Return the settings that the pages ask for."""
    return [
        {"alpha": alpha, "goals": [{"text": GOALS[1], "bound": bound}, {"text": GOALS[2]}], "by": ["sex"]}
        for alpha in (0.35, 0.5, 0.7, 0.9, 1.0)
        for bound in (0.5, 0.6, 0.65, 0.7)
    ]


def clients(seconds: float) -> None:
    """Let fifty pages ask for a while, compare every answer with the library's, and watch the memory of the server."""
    session = dict(sessions(20_000))["one score, two groups"]
    settings = grid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = [_library(session, one) for one in settings]
    with served(session) as serving:
        serving_now = [sys.executable, __file__, "pages", serving.address, "--seconds", str(seconds)]
        pages = subprocess.Popen(serving_now, stdout=subprocess.PIPE, text=True)
        memory = []
        while pages.poll() is None:
            memory.append(_memory())
            time.sleep(1.0)
        found = json.loads(pages.communicate()[0])
    gaps = [abs(value - library[place]) for place, value in found["answers"]]
    third = len(memory) // 3
    row = {
        "pages": _CLIENTS,
        "seconds": seconds,
        "settings asked": found["asked"],
        "answers": len(gaps),
        "refused": found["refused"],
        "errors": found["errors"],
        "largest difference from the library": f"{max(gaps):.1e}",
        "answers beyond the tolerance": sum(gap > _TOL for gap in gaps),
        "memory after a third, MB": round(memory[third]),
        "memory at the end, MB": round(memory[-1]),
    }
    print(row)
    _write("explorer_clients.csv", [row])


def _library(session: Session, setting: dict[str, Any]) -> float:
    goals = [
        one["text"] if "bound" not in one else GOALS[1].replace("0.6", str(one["bound"])) for one in setting["goals"]
    ]
    return float(session.parts.estimator.rebalance(alpha=setting["alpha"], goals=goals, by=setting["by"]).value_)


def _memory() -> float:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def pages(address: str, seconds: float) -> None:
    """Be fifty pages: each asks for one setting after another, and keeps the value of every answer."""
    from websockets.asyncio.client import connect  # noqa: PLC0415 - optional

    settings, told = grid(), {"asked": 0, "refused": 0, "errors": 0, "answers": []}
    until = time.monotonic() + seconds

    async def page(number: int) -> None:
        rng = np.random.default_rng(number)
        origin = address.rsplit("/", 2)[0]
        async with connect(address.replace("http", "ws") + "socket", origin=origin, proxy=None) as socket:
            asked: dict[int, int] = {}

            async def listen() -> None:
                async for text in socket:
                    found = json.loads(text)
                    if found["type"] == "answer" and found["kind"] == "answer":
                        told["answers"].append((asked[found["seq"]], found["value"]))
                    elif found["type"] == "refused":
                        told["refused"] += 1
                    elif found["type"] != "hello":
                        told["errors"] += 1

            listening = asyncio.create_task(listen())
            for seq in range(1, 1_000_000):
                if time.monotonic() > until:
                    break
                asked[seq] = int(rng.integers(len(settings)))
                await socket.send(json.dumps({"type": "set", "seq": seq, "setting": settings[asked[seq]]}))
                told["asked"] += 1
                await asyncio.sleep(_PAUSE * (0.5 + rng.random()))
            await asyncio.sleep(1.0)
            listening.cancel()

    async def together() -> None:
        done = await asyncio.gather(*(page(number) for number in range(_CLIENTS)), return_exceptions=True)
        told["errors"] += sum(isinstance(one, Exception) for one in done)

    asyncio.run(together())
    print(json.dumps(told))


def schema() -> None:
    """Let schemathesis call whatever it thinks of on the paths of the page."""
    session = dict(sessions(2_000))["one score, two groups"]
    words = {"description": "refused", "content": {"text/plain": {"schema": {"type": "string"}}}}
    with served(session) as serving, tempfile.TemporaryDirectory() as folder:
        paths: dict[str, Any] = {}
        for name, kind in {"": "text/html", "explorer.js": "text/javascript", "explorer.css": "text/css"}.items():
            page = {"description": "a file of the page", "content": {kind: {"schema": {"type": "string"}}}}
            paths[f"/{serving.token}/{name}"] = {"get": {"responses": {"200": page, "405": words, "421": words}}}
        parts = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
            for name in ("token", "name")
        ]
        paths["/{token}/{name}"] = {"get": {"parameters": parts, "responses": {"404": words, "421": words}}}
        spec = {"openapi": "3.0.2", "info": {"title": "explorer", "version": "1"}, "paths": paths}
        file = Path(folder) / "explorer.json"
        file.write_text(json.dumps(spec), encoding="utf-8")
        address = f"http://127.0.0.1:{serving.port}"
        subprocess.run([sys.executable, "-m", "schemathesis.cli", "run", str(file), "--url", address], check=True)


def _write(name: str, rows: list[dict[str, Any]]) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / name).open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, [*rows[0], "python"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(row | {"python": platform.python_version()} for row in rows)


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("latency", "margins", "clients", "pages", "schema"))
    parser.add_argument("address", nargs="?")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    asked = parser.parse_args()
    if asked.what == "latency":
        latency(asked.rows)
    elif asked.what == "margins":
        margins(asked.rows)
    elif asked.what == "clients":
        clients(asked.seconds)
    elif asked.what == "schema":
        schema()
    else:
        pages(asked.address, asked.seconds)


if __name__ == "__main__":
    main()
