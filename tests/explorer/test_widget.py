"""The same page in a notebook: the widget talks as the server does, and gives the model of what it shows."""

import json
from queue import Queue

import pandas as pd
import pytest

pytest.importorskip("anywidget", reason="the widget needs anywidget")
from counterpoise import explore
from counterpoise.runs import fit_run
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
    setting = {"alpha": 0.5, "goals": [{"text": "recall >= 0.7"}], "by": ["sex"]}
    answer = said(type="set", seq=1, setting=setting, exact=True)
    assert answer["kind"] == "answer"
    assert said(type="rows")["type"] == "refused"
    assert widget.setting.alpha == 0.6
    widget.state = json.dumps({"setting": setting})
    assert widget.setting.alpha == 0.5
    assert widget.model().value_ == pytest.approx(answer["value"], abs=3e-4)
    assert "export default" in widget._esm


GOALS = """
alpha = 0.5
goals = ["recall >= 0.5"]
[data]
files = "people.csv"
target = "paid"
[method]
name = "adalpboost"
parameters = { n_estimators = 3 }
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return a run whose model prepares raw frames before it mixes rounds."""
    folder = tmp_path_factory.mktemp("bank")
    frame = pd.DataFrame({"income": X[:, 0], "sex": SEX, "paid": Y})
    frame.to_csv(folder / "people.csv", index=False)
    (folder / "goals.toml").write_text(GOALS)
    return fit_run(folder / "goals.toml")


def test_of_a_run_folder_the_widget_gives_the_whole_model(run):
    frame = pd.read_csv(run.folder.parent / "people.csv")
    widget = explore(run.folder)
    assert widget.model().predict(frame).tolist() == run.model().predict(frame).tolist()
    assert json.loads(widget._hello)["exports"] == ["goals"]
    assert json.loads(explore(run.folder, output=run.folder.parent)._hello)["exports"] == ["goals", "model", "report"]


def test_rows_beside_a_run_folder_are_refused(run):
    with pytest.raises(ValueError, match=r"A run folder is explored with its own test rows; got X, y, baseline too"):
        explore(str(run.folder), X[TEST], Y[TEST], baseline=Y[TEST])
