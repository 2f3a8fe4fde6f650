"""The same page in a notebook: the widget talks as the server does, and gives the model of what it shows."""

import json
from queue import Queue

import pytest

pytest.importorskip("anywidget", reason="the widget needs anywidget")
from counterpoise import explore
from tests.explorer.sessions import SEX, TEST, X, Y, fitted

pytestmark = pytest.mark.filterwarnings("ignore")  # of libraries, on their way out


def test_the_widget_talks_as_the_server_does_and_gives_the_model_it_shows(monkeypatch):
    widget = explore(fitted("score"), X[TEST], Y[TEST], sensitive_features={"sex": SEX[TEST]})
    told = Queue()
    monkeypatch.setattr(type(widget), "send", lambda _widget, content: told.put(json.loads(content["text"])))

    def said(**message):
        widget._handle_custom_msg({"text": json.dumps(message)}, [])
        return told.get(timeout=60)

    widget._handle_custom_msg({"text": "hello"}, [])
    assert told.get(timeout=60)["type"] == "hello"
    setting = {"alpha": 0.5, "goals": [{"text": "recall(train) >= 0.7"}], "by": ["sex"]}
    answer = said(type="set", seq=1, setting=setting, exact=True)
    assert answer["kind"] == "answer"
    assert said(type="rows")["type"] == "refused"
    assert widget.setting.alpha == 0.6
    widget.state = json.dumps({"setting": setting})
    assert widget.setting.alpha == 0.5
    assert widget.model().value_ == pytest.approx(answer["value"], abs=3e-4)
    assert "export default" in widget._esm
