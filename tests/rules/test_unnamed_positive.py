"""Where goals refer to a positive class and nobody named it, the fit says which it takes."""

import numpy as np
import pytest

from counterpoise import ConstrainedClassifier, GoalClassifier
from counterpoise.learners import HistogramTree

TEXTS = np.where(np.arange(80) % 2, "paid", "default")
SCORES = (np.arange(80) % 7)[:, None]


def fitted_to(goals, labels, **settings):
    return GoalClassifier(HistogramTree(), cv=2, goals=goals, random_state=0, **settings, confidence=None).fit(
        SCORES, labels
    )


def test_a_positive_class_that_is_but_the_last_of_two_texts_is_said():
    with pytest.warns(UserWarning, match=r"takes 'paid', because it sorts after 'default'.*pos_label='default'"):
        fitted_to("recall >= 0.1", TEXTS)
    with pytest.warns(UserWarning, match="pos_label='default'"):
        fitted_to((), TEXTS, objective="precision")
    with pytest.warns(UserWarning, match="pos_label='default'"):
        ConstrainedClassifier(goals="recall >= 0.1").fit(SCORES, TEXTS)


@pytest.mark.parametrize(
    ("goals", "labels", "settings"),
    [
        ("recall >= 0.1", TEXTS, {"pos_label": "paid"}),
        ("error_rate <= 0.9", TEXTS, {}),
        ("recall(of=default) >= 0.1", TEXTS, {}),
        ("recall >= 0.1", np.where(TEXTS == "paid", "yes", "no"), {}),
        ("recall >= 0.1", TEXTS == "paid", {}),
        ((), TEXTS, {}),
    ],
)
def test_nothing_is_said_of_a_positive_class_that_is_known_or_of_no_matter(goals, labels, settings, recwarn):
    fitted_to(goals, labels, **settings)
    assert not [warning for warning in recwarn if "sorts after" in str(warning.message)]
