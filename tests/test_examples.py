"""The examples of the gallery run as they stand, print something and leave a figure."""

import json
import runpy
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import matplotlib as mpl
import pytest

from counterpoise.datasets import loans

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))


@pytest.fixture
def pyplot(monkeypatch, tmp_path):
    """Draw into memory, and close what was drawn; without a data folder, so that every machine runs the same."""
    monkeypatch.delenv("COUNTERPOISE_DATA", raising=False)
    monkeypatch.setenv("COUNTERPOISE_CACHE", str(tmp_path))
    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415 - after the backend is named

    plt.close("all")  # what other tests left
    yield plt
    plt.close("all")


def run(example):
    """Run a script, or skip where a package that it needs is not installed."""
    try:
        runpy.run_path(str(example), run_name="__main__")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("counterpoise"):
            raise
        pytest.skip(f"{example.name} needs {error.name}, which is not installed")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")  # of plt.show, where there is a screen
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_prints_something_and_leaves_one_figure(example, pyplot, capsys):
    run(example)
    assert capsys.readouterr().out.strip()
    assert len(pyplot.get_fignums()) == 1


@contextmanager
def served(app):
    """Serve an app in a thread; yield a function that posts JSON to a path and returns the status and the answer."""
    uvicorn = pytest.importorskip("uvicorn", reason="the service")
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    with closing(socket.create_server(("127.0.0.1", 0))) as listening, ThreadPoolExecutor(1) as thread:
        running = thread.submit(server.run, sockets=[listening])

        def post(path, content):
            with closing(HTTPConnection(*listening.getsockname(), timeout=60)) as connection:
                connection.request("POST", path, json.dumps(content), {"Content-Type": "application/json"})
                answer = connection.getresponse()
                return answer.status, json.load(answer)

        try:
            yield post
        finally:
            server.should_exit = True
            running.result(timeout=60)


@pytest.mark.slow
def test_the_service_decides_as_the_model_does_one_by_one_in_threads_and_many_at_once(monkeypatch):
    pytest.importorskip("fastapi", reason="the service")
    monkeypatch.delenv("MODEL", raising=False)
    service = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "serve_fastapi.py"))
    table = loans(60, random_state=5)[0][service["COLUMNS"]].astype(float)
    people = [{name: value for name, value in row.items() if value == value} for row in table.to_dict("records")]  # noqa: PLR0124 - NaN
    with served(service["app"]) as post:
        status, together = post("/decide_many", people)
        with ThreadPoolExecutor(4) as threads:
            alone = list(threads.map(lambda one: post("/decide", one)[1], people))
        refused = [post("/decide", one)[0] for one in ({"amount": -1, "months": 12}, {**people[0], "sex": "F"})]
        assert (status, together) == (200, service["app"].state.model.predict(table).tolist())
    assert [one["default"] for one in alone] == together
    assert [one["score"] > one["threshold"] for one in alone] == [one == "yes" for one in together]
    assert len(set(together)) > 1
    assert refused == [422, 422]
