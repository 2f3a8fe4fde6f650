"""A small run, and a server of its explorer in a thread, for tests over a real socket."""

import json
import threading
from contextlib import contextmanager

import numpy as np

from counterpoise.explorer import Session
from counterpoise.runs import fit_run, open_run
from tests.explorer.inside import Conversation, RunExporter, read_run

HOSTILE = "<img src=x onerror=alert(1)>"
GOALS = """
alpha = 0.6
goals = ["recall >= 0.6", "positive_rate <= 0.6"]
[data]
files = ["people.csv"]
target = "paid"
groups = ["sex"]
[splits]
test = 0.4
[method]
name = "goals"
[method.parameters]
by = ["sex"]
cv = 2
decision = "sticky"
[[method.models]]
name = "logistic"
"""

WITH_MARGINS = GOALS.replace("alpha = 0.6\n", "").replace('decision = "sticky"\n', "")


def make_run(folder, goals=GOALS):
    """Fit a small run whose group has markup for a name, and return its folder."""
    rng = np.random.default_rng(0)
    n_rows = 900
    sex = np.where(rng.random(n_rows) < 0.5, HOSTILE, "M")
    income, age = rng.normal(size=n_rows), rng.integers(20, 70, n_rows)
    paid = np.where(income + 0.4 * (sex == "M") + 0.7 * rng.normal(size=n_rows) > 0.2, "yes", "no")
    lines = [f"{a:.4f},{b},{c},{d}" for a, b, c, d in zip(income, age, sex, paid, strict=True)]
    (folder / "people.csv").write_text("income,age,sex,paid\n" + "\n".join(lines) + "\n")
    (folder / "goals.toml").write_text(goals)
    return fit_run(folder / "goals.toml", output=folder / "run").folder


@contextmanager
def served(run_folder, output):
    """Serve a run, and give the server."""
    read = read_run(open_run(run_folder))
    session = Session(read.parts)
    with serving(Conversation(session, RunExporter(session, read, output))) as server:
        yield server


@contextmanager
def serving(conversation):
    """Serve a conversation from a thread, and give the server."""
    from counterpoise.explorer.server import Serving  # noqa: PLC0415 - needs optional packages

    server = Serving(conversation)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()


def asked(socket, **message):
    """Send a message, and return the reply to it."""
    socket.send(json.dumps(message))
    while True:
        found = json.loads(socket.recv(timeout=60))
        if found["type"] != "hello":
            return found
