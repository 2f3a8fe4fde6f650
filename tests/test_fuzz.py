"""Some of the inputs of ``tools/fuzz.py`` for each reader; what they take is measured there."""

import json

import numpy as np
import pytest

from counterpoise import Monitor
from counterpoise.goals import parse_goal

pytest.importorskip("resource", reason="memory is measured as POSIX does")
pytest.importorskip("starlette", reason="readers of the explorer")
from counterpoise.runs.result import RunResult, read_result
from counterpoise.runs.summary import summary_text
from tools.fuzz import (
    GOALS,
    TOKEN,
    Reader,
    from_file,
    fuzz,
    outcome,
    readers,
    restore_monitor,
    with_other_values,
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of models that are of no use
def test_changed_inputs_are_read_or_refused(tmp_path):
    for name, reader in readers(tmp_path).items():
        assert {outcome(reader, data, np.inf) for data in reader.valid} == {"read"}, name
        n_inputs = {"checkpoint": 80, "monitor file": 40, "message": 40, "result": 40, "report": 6}.get(name, 200)
        counts, wrong = fuzz(reader, 0, range(n_inputs), np.inf)
        assert not wrong, name
        assert counts["refused"] > n_inputs // 20, name


@pytest.mark.filterwarnings("ignore")  # of rows that are as many as they can be
def test_changed_states_of_a_monitor_are_restored_or_refused():
    monitor = Monitor(["recall >= 0.5", "max_difference(positive_rate, by=sex) <= 0.3"], classes=[0, 1])
    columns = {"sensitive_features": {"sex": ["F", "M"] * 3}, "ids": list("uvwxyz")}
    monitor.update([0, 1, 1, 0, 1, 1], [0, 1, 1, 0, 1, None], **columns)
    reader = Reader(restore_monitor, [json.dumps(monitor.state()).encode()], with_other_values)
    counts, wrong = fuzz(reader, 0, range(250), np.inf)
    assert not wrong
    assert counts["read"] > 5


def test_changed_results_make_tables_or_are_refused(tmp_path):
    cells = [{"label": label, "answer": answer, "rows": 5.0} for label in (0, 1) for answer in (0, 1, None)]
    settings = {"seed": 1, "alpha": 0.1, "data": {"target": None}, "method": {"learner": {"name": "tree"}}}
    parts = {"splits": {"test": {"rows": 9}}, "answers": {"mixture": cells}, "deferral": {"cost": 0.1}}
    whole = RunResult(settings=settings, data={"classes": ["no", "yes"], "positive": "yes"}, **parts)
    read = from_file(tmp_path / "result.json", lambda path: summary_text(read_result(path)))
    counts, wrong = fuzz(Reader(read, [whole.model_dump_json().encode()], with_other_values), 0, range(200), np.inf)
    assert not wrong
    assert counts["read"] > 10


def test_numbers_of_any_length_are_refused_in_a_sentence():
    for goal in GOALS:
        for place in (one for one in TOKEN.finditer(goal) if one.group()[0].isdecimal()):
            text = f"{goal[: place.start()]}{5000 * '9'}{goal[place.end() :]}"
            assert outcome(Reader(parse_goal, [], with_other_values), text, np.inf) in ("read", "refused")
