"""Some of the inputs of ``tools/fuzz.py`` for each reader; what they take is measured there."""

import numpy as np
import pytest

pytest.importorskip("resource", reason="memory is measured as POSIX does")
pytest.importorskip("starlette", reason="readers of the explorer")
from tools.fuzz import fuzz, outcome, readers


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of models that are of no use
def test_changed_inputs_are_read_or_refused(tmp_path):
    for name, reader in readers(tmp_path).items():
        assert {outcome(reader, data, np.inf) for data in reader.valid} == {"read"}, name
        counts, wrong = fuzz(reader, 0, range(40 if name in ("monitor file", "message", "result") else 200), np.inf)
        assert not wrong, name
        assert counts["refused"] > 10, name
