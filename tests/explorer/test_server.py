"""The server tells nothing without its token, nothing to other origins, and outlives whatever is sent to it."""

import json
import logging
import urllib.error
import urllib.request
from contextlib import ExitStack, suppress

import pytest

pytest.importorskip("starlette", reason="the server needs starlette")
pytest.importorskip("uvicorn", reason="the server needs uvicorn")
client = pytest.importorskip("websockets.sync.client", reason="the server needs websockets")
from websockets.exceptions import ConnectionClosed, InvalidStatus  # noqa: E402 - as above

from counterpoise.explorer import Setting  # noqa: E402
from counterpoise.explorer.conversation import MOST_BYTES, MOST_EXPORTS, PlainLines, RateLimit  # noqa: E402
from counterpoise.explorer.server import FULL, MOST_CLIENTS  # noqa: E402
from tests.explorer.served import asked, make_run, served  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # of libraries, on their way out


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("explorer")


@pytest.fixture(scope="module")
def server(folder):
    with served(make_run(folder), folder) as found:
        yield found


def connected(server, *, token=None, origin=None):
    own = f"http://127.0.0.1:{server.port}"
    address = f"ws://127.0.0.1:{server.port}/{token or server.token}/socket"
    return client.connect(address, origin=origin or own, max_size=None, proxy=None)


def fetched(server, path, host=None):
    address = f"http://127.0.0.1:{server.port}{path}"
    request = urllib.request.Request(address, headers={} if host is None else {"Host": host})
    with urllib.request.urlopen(request) as found:  # noqa: S310 - http
        return found.status, dict(found.headers), found.read()


def setting(**changes):
    goals = [{"text": "recall >= 0.6"}, {"text": "positive_rate <= 0.6"}]
    return {"alpha": 0.6, "goals": goals, "by": ["sex"], **changes}


def test_the_page_is_small_strict_and_whole(server):
    pages = {name: fetched(server, f"/{server.token}/{name}") for name in ("", "explorer.js", "explorer.css")}
    assert sum(len(content) for _, _, content in pages.values()) <= 200_000
    for status, headers, content in pages.values():
        assert status == 200
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"
        assert b"http://" not in content.replace(b"http://www.w3.org/2000/svg", b"")
        assert b"https://" not in content


@pytest.mark.parametrize(
    "path", ["/", "/wrong/", "/wrong/explorer.js", "/{}/x", "/{}/../../etc/passwd", "/{}/%2e%2e/x"]
)
def test_nothing_is_told_without_the_token_or_beyond_the_page(server, path):
    with pytest.raises(urllib.error.HTTPError) as caught:
        fetched(server, path.format(server.token))
    assert caught.value.code == 404
    assert caught.value.read().decode().startswith("There is nothing here.")


def test_another_name_of_the_host_is_refused(server):
    with pytest.raises(urllib.error.HTTPError) as caught:
        fetched(server, f"/{server.token}/", host=f"evil.example:{server.port}")
    assert caught.value.code == 421


@pytest.mark.parametrize(
    ("words", "sentence"),
    [({"token": "wrong"}, "There is nothing here."), ({"origin": "http://evil.example"}, "answers its own page alone")],
)
def test_a_socket_with_a_wrong_token_or_of_another_origin_is_refused_in_a_sentence(server, words, sentence, caplog):
    with caplog.at_level(logging.WARNING), pytest.raises(InvalidStatus) as caught:
        connected(server, **words)
    assert sentence in caught.value.response.body.decode()
    assert [sentence in record.message for record in caplog.records] == [True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "A message must be JSON"),
        ("[" * 10_000, "A message must be JSON"),
        ("[1]", "A message must be an object whose type is one of set, conflict, view, read, export"),
        ('{"type": "rows"}', "A message must be an object whose type is one of"),
        ('{"type": "set", "seq": "x"}', "seq must be a whole number"),
        ('{"type": "set", "setting": []}', "A setting must be an object"),
        (json.dumps({"type": "set", "setting": {"alpha": 7}}), "alpha must lie in"),
        (json.dumps({"type": "read", "text": "recal(train) >= 0.9"}), "Did you mean 'recall'"),
        (json.dumps({"type": "read", "text": "recall(hair=red) >= 0.9"}), "Unknown column 'hair'"),
        (json.dumps({"type": "read", "text": "recall(mail) >= 0.9"}), "'mail'"),
        (
            json.dumps({"type": "set", "setting": {"alpha": 1, "goals": [{"text": "recall >= 0.9"}] * 1000}}),
            "At most 20",
        ),
        (json.dumps({"type": "view", "view": "rows", "setting": {"alpha": 1}}), "A view is one of curve"),
        (json.dumps({"type": "export", "what": "rows", "setting": {"alpha": 1}}), "You can export goals"),
        (json.dumps({"type": "set", "setting": {"alpha": 1, "by": ["shoe"]}}), "Columns that they can use: 'sex'."),
    ],
)
def test_what_is_no_message_is_refused_in_a_sentence_and_the_server_goes_on(server, text, message):
    with connected(server) as socket:
        assert json.loads(socket.recv())["type"] == "hello"
        socket.send(text)
        told = json.loads(socket.recv(timeout=60))
        assert told["type"] == "refused"
        assert message in told["message"]
        assert asked(socket, type="set", seq=1, setting=setting())["kind"] == "answer"


@pytest.mark.parametrize("goals", [[{"text": "x" * 1_000_000}], [{"text": "recall >= 0.9"}] * 10_000])
def test_a_large_message_is_refused_in_a_sentence(server, goals, caplog):
    with connected(server) as socket, caplog.at_level(logging.WARNING, logger="counterpoise.explorer"):
        told = asked(socket, type="set", seq=1, setting={"alpha": 1, "goals": goals})
        assert told["message"].startswith(f"A message must have at most {MOST_BYTES} bytes; got ")
        assert asked(socket, type="set", seq=2, setting=setting())["kind"] == "answer"
    assert "A message must have at most" in caplog.text


def test_a_message_without_end_ends_its_connection_alone(server, caplog):
    goal = {"text": "x" * 5_000_000}
    with connected(server) as socket, caplog.at_level(logging.WARNING):
        assert json.loads(socket.recv())["type"] == "hello"
        with suppress(ConnectionClosed):  # perhaps while it is still being sent
            socket.send(json.dumps({"type": "set", "setting": {"alpha": 1, "goals": [goal]}}))
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=60)
        with connected(server) as other:
            assert asked(other, type="set", seq=1, setting=setting())["kind"] == "answer"
    assert "refused: a message of more than 4194304 bytes" in caplog.text


def test_an_answer_repeats_the_number_of_its_question_and_old_ones_are_dropped(server):
    with connected(server) as socket:
        for seq in range(1, 31):
            socket.send(json.dumps({"type": "set", "seq": seq, "setting": setting(alpha=0.3 + seq / 100)}))
        seen = []
        while not seen or seen[-1]["seq"] < 30:
            found = json.loads(socket.recv(timeout=60))
            if found["type"] == "answer":
                seen.append(found)
    numbers = [found["seq"] for found in seen]
    assert numbers == sorted(numbers)
    assert seen[-1]["setting"]["alpha"] == pytest.approx(0.6)


def told_last(socket):
    """Return the refusals that came before a socket was closed, and the reason."""
    refused = []
    while True:
        try:
            found = json.loads(socket.recv(timeout=60))
        except ConnectionClosed as error:
            return refused, error.rcvd.reason
        if found["type"] == "refused":
            refused.append(found["message"])


def test_a_page_that_floods_is_let_go_with_a_sentence_and_one_line_and_others_stay(server, caplog):
    with connected(server) as other, connected(server) as socket, caplog.at_level(logging.WARNING):
        with suppress(ConnectionClosed):
            for _ in range(1000):
                socket.send("{}")
        refused, reason = told_last(socket)
        assert reason == "Too many messages: a page may send at most 100 a second."
        assert refused[-1] == reason
        assert asked(other, type="set", seq=1, setting=setting())["kind"] == "answer"
    assert caplog.text.count(reason) <= 2


def test_a_page_too_many_gets_a_sentence(server):
    with ExitStack() as stack:
        pages = [stack.enter_context(connected(server)) for _ in range(MOST_CLIENTS)]
        assert all(json.loads(page.recv(timeout=60))["type"] == "hello" for page in pages)
        with connected(server) as socket:
            assert told_last(socket) == ([FULL], FULL)
        assert asked(pages[0], type="set", seq=1, setting=setting())["kind"] == "answer"


def test_bytes_are_refused_in_a_sentence(server):
    with connected(server) as socket:
        assert json.loads(socket.recv())["type"] == "hello"
        socket.send(b"{}")
        assert json.loads(socket.recv(timeout=60))["message"] == "A message must be a text; got bytes."
        assert asked(socket, type="set", seq=1, setting=setting())["kind"] == "answer"


def test_a_page_has_few_exports_under_way(server):
    with connected(server) as socket:
        for seq in range(8):
            socket.send(json.dumps({"type": "export", "seq": seq, "what": "goals", "setting": setting()}))
        found = [json.loads(socket.recv(timeout=60)) for _ in range(9)]
    kinds = {one["seq"]: one for one in found if one["type"] != "hello"}
    assert set(kinds) == set(range(8))
    assert {one["message"] for one in kinds.values() if one["type"] == "refused"} <= {
        "3 exports wait already: ask again when one is done."
    }
    assert sum(one["type"] == "export" for one in kinds.values()) >= MOST_EXPORTS


@pytest.mark.parametrize(
    ("goals", "field"),
    [
        ([{"text": "recall >= 0.6"}, {"text": "recall >= 1.5"}], {"field": "goals", "place": 1}),
        ([{"text": "recall >= 0.6"}, {"text": "recall >= 0.5"}], {"field": "goals", "place": 1}),
        ([{"text": "recall(age=20) >= 0.6"}], {"field": "goals", "place": 0}),
        (3, {"field": "goals"}),
    ],
)
def test_a_refusal_names_the_field_that_it_is_about(server, goals, field):
    with connected(server) as socket:
        told = asked(socket, type="set", seq=1, setting=setting(goals=goals))
    assert {name: told[name] for name in told if name not in ("type", "seq", "message")} == field


def test_no_row_is_among_what_a_page_is_told(server):
    with connected(server) as socket:
        told = socket.recv()
        answer = asked(socket, type="set", seq=1, setting=setting(), exact=True)
    known = json.loads(told)
    assert "income" not in known["datasets"][0]["columns"]  # a column of numbers has too many values to be told
    assert len(json.dumps(answer)) < 20_000
    assert Setting.of(answer["setting"]) == Setting.of(setting())


def test_the_log_has_plain_lines_and_not_too_many():
    log = logging.getLogger("counterpoise.explorer.lines")
    times = iter([0.0] * 5 + [1.0])
    lines = []
    log.addFilter(PlainLines(RateLimit(1.0, 2.0, lambda: next(times))))
    log.addHandler(handler := logging.Handler())
    handler.emit = lambda record: lines.append(record.getMessage())
    for _ in range(4):
        log.warning("refused: %s", "\x1b[31m\nroot: 100 %")
    assert lines == [r"refused: \x1b[31m\nroot: 100 %"] * 2
    log.warning("later")
    assert lines[2:] == ["later (2 lines before were left out)"]
