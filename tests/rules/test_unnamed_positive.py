"""Where goals refer to a positive class and nobody named it, the fit says which it takes."""

import numpy as np
import pytest

from counterpoise import ConstrainedClassifier, GoalClassifier
from counterpoise.goals import Table, parse_goal
from counterpoise.goals.rates import METRICS, RATIOS
from counterpoise.learners import HistogramTree
from counterpoise.rules.cautions import UnnamedPositive, warn_of_the_positive_class

TEXTS = np.where(np.arange(80) % 2, "paid", "default")
SCORES = (np.arange(80) % 7)[:, None]


def fitted_to(goals, labels, **settings):
    return GoalClassifier(HistogramTree(), cv=2, goals=goals, random_state=0, **settings, confidence=None).fit(
        SCORES, labels
    )


def test_a_positive_class_that_is_but_the_last_of_two_texts_is_said():
    with pytest.warns(UnnamedPositive, match=r"takes 'paid', because it sorts after 'default'.*pos_label='default'"):
        fitted_to("recall >= 0.1", TEXTS)
    with pytest.warns(UnnamedPositive):
        fitted_to((), TEXTS, objective="precision")
    with pytest.warns(UnnamedPositive):
        ConstrainedClassifier(goals="recall >= 0.1").fit(SCORES, TEXTS)


@pytest.mark.parametrize("name", [*METRICS, *RATIOS])
def test_it_is_said_exactly_for_metrics_that_are_others_with_the_other_class(name, recwarn):
    goal = parse_goal(f"{name} >= 0.1")
    labels, baseline, answers = np.random.default_rng(0).choice(["default", "paid"], (3, 60), p=[0.3, 0.7])
    rows = Table(None, labels, baseline=baseline)
    values = [goal.left.value(answers, rows, pos_label=label) for label in ("paid", "default")]
    warn_of_the_positive_class([goal], None, np.array(["default", "paid"]), None)
    assert len(recwarn) == (values[0] != pytest.approx(values[1]))


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
    assert not [one for one in recwarn if issubclass(one.category, UnnamedPositive)]
