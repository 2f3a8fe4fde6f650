"""Texts and categories in data frames: one sentence that names the column and how to encode it."""

import numpy as np
import pytest

import counterpoise as cp
from counterpoise.learners import HistogramTree

pd = pytest.importorskip("pandas", reason="pandas is not installed")
LABELS = np.arange(20) % 2
WORDS = np.array(["red", "blue"], dtype=object)[LABELS]
FRAMES = {
    "categories": pd.DataFrame({"age": np.arange(20.0), "colour": pd.Categorical(WORDS)}),
    "texts": pd.DataFrame({"age": np.arange(20.0), "colour": WORDS}),
}
MODELS = [cp.AdaLPBoostClassifier(n_estimators=2), cp.AdaBoostClassifier(n_estimators=2), HistogramTree()]
MODELS += [cp.ConstrainedClassifier()]


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_texts_are_refused_with_the_encoder_to_use(model, frame):
    name = type(model).__name__
    with pytest.raises(
        ValueError,
        match=rf"^{name} takes numbers; the column 'colour' holds texts or categories\. Encode such columns first: "
        r"make_pipeline\(make_column_transformer\(\(OrdinalEncoder\(\), \['colour'\]\), remainder='passthrough'\)",
    ):
        model.fit(frame, LABELS)


def test_numbers_written_as_texts_or_categories_are_taken():
    frame = pd.DataFrame({"age": np.arange(20.0), "size": pd.Categorical(LABELS)})
    assert HistogramTree().fit(frame, LABELS).score(frame, LABELS) == 1.0
