"""The explorer as a file: answers of the session itself, nothing of small groups, and no markup from the data."""

import json
import re

import numpy as np
import pytest

from counterpoise import MixtureClassifier
from counterpoise.explorer import Setting, session_of_model
from counterpoise.explorer.static_page import page_of
from tests.explorer.sessions import CHOSEN, TEST, X, Y, fitted, session

HOSTILE = "</script><script>alert(1)</script>"


def kept_in(page):
    return json.loads(re.search(r'id="explorer-data">(.*?)</script>', page)[1])


def test_the_answers_of_a_file_are_those_of_the_session():
    own = session("pool")
    kept = kept_in(page_of(own))
    assert len(kept["answers"]) > 20
    assert Setting.of(kept["answers"][0]["setting"]) == own.start
    for told in kept["answers"][::9]:
        found = own.answer(Setting.of(told["setting"]), exact=True)
        assert found["kind"] == ("answer" if told["kind"] == "answer" else "unmet")
        assert told.get("value") == pytest.approx(found.get("value"), abs=2e-4)


def test_groups_under_ten_rows_are_hidden_and_texts_cannot_end_the_script():
    group = np.where(np.arange(len(Y)) % 2 == 0, HOSTILE, "b").astype(object)
    group[TEST.start : TEST.start + 9] = "rare"
    group[CHOSEN.start : CHOSEN.start + 9] = "rare"
    models = fitted("pool").estimators_
    pool = MixtureClassifier(models, alpha=0.6, random_state=0)
    pool = pool.fit(X[CHOSEN], Y[CHOSEN], sensitive_features={"group": group[CHOSEN]})
    page = page_of(session_of_model(pool, X[TEST], Y[TEST], sensitive_features={"group": group[TEST]}))
    assert "rare" not in page
    assert page.count("<script") == 2
    assert HOSTILE in [text for one in kept_in(page)["hello"]["datasets"] for text in one["columns"]["group"]]
