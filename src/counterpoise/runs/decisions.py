"""What a fitted model, and those it is compared with, decide about the rows of a run: computed once, by one function.

Where decisions are drawn, they are known as probabilities, which do not depend on the secret key of the run. What the
key draws is asked for by ``Decisions.labels``, and kept apart.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.types import AnyArray, BoolArray, FloatArray, IntArray
from counterpoise.classifiers.base import DRAWN
from counterpoise.classifiers.goal import GoalClassifier
from counterpoise.classifiers.mixture import MixtureClassifier
from counterpoise.goals.classes import where_equal
from counterpoise.rules.class_scores.rules import SOFT, TierRule
from counterpoise.rules.deciding import DecisionRows, total_shares, with_label
from counterpoise.rules.families import ClassRules
from counterpoise.rules.options import Deferral, kind_of_decision
from counterpoise.rules.pool import failures
from counterpoise.runs.data import Data, RunRows
from counterpoise.runs.results import AVERAGE, DEPLOYED, FIRST, MIXTURE, TRAIN


def final_estimator(model: Any) -> Any:
    """Return the estimator of ours or scikit-learn's at the end of a model."""
    return model[-1] if hasattr(model, "steps") else model


def seen_by_last(model: Any, frame: Any) -> Any:
    """Return a raw frame as the last step takes it."""
    return model[:-1].transform(frame) if hasattr(model, "steps") else frame


def mixes(model: Any) -> bool:
    """Tell whether a model is a mixture."""
    return hasattr(final_estimator(model), "mixture_")


def has_rules(model: Any) -> bool:
    """Tell whether a model is a mixture of rules of scores."""
    return hasattr(final_estimator(model), "rules_")


def has_class_rules(model: Any) -> bool:
    """Tell whether the rules of a model are of the probabilities of more than two classes, and not of a score."""
    return has_rules(model) and isinstance(final_estimator(model).family_, ClassRules)


def keeps_answers(model: Any) -> bool:
    """Tell whether a model is a mixture of models of any kind, which may load and predict slowly: rounds do not."""
    return isinstance(model, GoalClassifier | MixtureClassifier)


def is_drawn(model: Any) -> bool:
    """Tell whether answers are drawn, if only from one model or rule."""
    return mixes(model) and kind_of_decision(final_estimator(model).decision) in DRAWN


def deferral_of(model: Any) -> Deferral | None:
    """Return the cost of deferring a row, and the label of deferred rows; None where no row is deferred."""
    return final_estimator(model).family_.selection_data.deferral if has_rules(model) else None


def decision_inputs(part: RunRows) -> dict[str, Any]:
    """Return what rules may use beside the features of rows, as keyword arguments of ``predict``."""
    return {"sensitive_features": part.groups or None, "baseline": part.baseline}


def some_rows(value: Any, rows: IntArray) -> Any:
    """Return some rows of columns by name, of one column, or of none."""
    if value is None or isinstance(value, Mapping):
        return value and {name: np.asarray(column)[rows] for name, column in value.items()}
    return np.asarray(value)[rows]


def shares_rows(rule: Any) -> bool:
    """Tell whether a rule gives a row to several classes, so that its answers are drawn."""
    return isinstance(rule, TierRule) and rule.layer == SOFT and (rule.level > 0 or rule.defer_cost is not None)


class Decisions(NamedTuple):
    """What is decided about rows: a label for each or, where draws decide, how likely each answer is."""

    answers: AnyArray  # the classes, and last the label of deferred rows where some may be
    fixed: AnyArray | None  # labels that no key of draws changes
    chances: FloatArray | None = None  # else, of shape (n_rows, n_answers)
    draw: Callable[[], AnyArray] | None = None  # what the key draws

    @property
    def labels(self) -> AnyArray:
        """Return a label for each row, the drawn one where draws decide."""
        assert self.fixed is not None or self.draw is not None  # noqa: S101 - one of them is there
        return self.fixed if self.draw is None else np.asarray(self.draw())  # type: ignore[return-value]

    @property
    def probabilities(self) -> FloatArray:
        """Return how likely each answer is about each row: surely one, unless draws decide."""
        if self.chances is not None:
            return self.chances
        is_decision: BoolArray = np.asarray(self.labels[:, None] == self.answers)
        return is_decision.astype(np.float64)

    def losses(self, labels: AnyArray, deferral: Deferral | None) -> FloatArray:
        """Return the expected loss of each row: how likely it is decided wrongly; a deferred row has its cost."""
        if self.chances is None:
            return label_losses(self.labels, labels, deferral)
        places = np.searchsorted(self.answers[: self.chances.shape[1] - (deferral is not None)], labels)
        lost = 1.0 - self.chances[np.arange(labels.size), places]
        return lost if deferral is None else lost - (1.0 - deferral.loss) * self.chances[:, -1]


def label_losses(decisions: AnyArray, labels: AnyArray, deferral: Deferral | None) -> FloatArray:
    """Return 1 for each wrong answer, and for deferred rows their cost."""
    lost: FloatArray = np.asarray(decisions != labels).astype(np.float64)
    if deferral is not None:
        lost[where_equal(decisions, deferral.label)] = deferral.loss
    return lost


class RowDecisions(NamedTuple):
    """The decisions of every decider about the rows of one dataset, with scores and errors of the models."""

    by: dict[str, Decisions]
    losses: dict[str, FloatArray]  # of labelled rows: in expectation, of an equal mixture of all models too
    member_errors: list[float]  # of each model or rule, on the rows that count
    scores: AnyArray | None = None  # by all models, where rules of scores decide
    groups: IntArray | None = None  # that the rules use


def decide_rows(model: Any, data: Data, name: str, plain: Any = None) -> RowDecisions:
    """Decide about the rows of a split or extra dataset, by the model, plain training and the deployed model.

    Plain training is the first model of a mixture, at its usual threshold where rules decide; else ``plain``. Models of
    a pool predict slowly: their outputs are kept with the data, for any other mixture of them.
    """
    part, deferral = data.part(name), deferral_of(model)
    answers = data.classes if deferral is None else with_label(data.classes, deferral.label)
    if has_rules(model):
        decisions = _decide_by_rules(model, data, name, answers)
    elif mixes(model):
        decisions = _decide_by_models(model, data, name, answers)
    else:
        deciders = {MIXTURE: model, FIRST: plain}
        predictions = {who: one.predict(part.X) for who, one in deciders.items() if one is not None}
        decisions = RowDecisions({who: Decisions(answers, np.asarray(one)) for who, one in predictions.items()}, {}, [])
    return with_deployed(decisions, part, deferral)


def with_deployed(decisions: RowDecisions, part: RunRows, deferral: Deferral | None) -> RowDecisions:
    """Return decisions with those of the deployed model, where they are known, and the losses of all of them."""
    by = dict(decisions.by)
    if part.baseline is not None:
        by[DEPLOYED] = Decisions(by[MIXTURE].answers, part.baseline)
    if part.y is None:
        return decisions._replace(by=by)
    losses = {who: one.losses(part.labels, deferral) for who, one in by.items() if who not in decisions.losses}
    losses |= decisions.losses
    order = (MIXTURE, FIRST, AVERAGE, DEPLOYED)
    return decisions._replace(by=by, losses={who: losses[who] for who in order if who in losses})


def _decide_by_models(model: Any, data: Data, name: str, answers: AnyArray) -> RowDecisions:
    """Decide by a mixture of models."""
    part, estimator = data.part(name), final_estimator(model)
    X, mixture = seen_by_last(model, part.X), estimator.mixture_
    codes = known_answers(data, name, estimator, "iu")
    if codes is None:
        codes = estimator.pool().ask(X, len(part))
        if keeps_answers(model):
            data.pool_outputs[name] = codes
    rows, decider = estimator.rows_to_decide(X, outputs=codes), estimator.decider()
    ours = Decisions(answers, None, draw=lambda: decider.decide(rows, X))
    if is_drawn(model) and np.count_nonzero(mixture) > 1:
        ours = ours._replace(chances=total_shares(list(codes.T), mixture, len(estimator.classes_)))
    else:
        ours = Decisions(answers, ours.labels)
    by, losses, errors = {MIXTURE: ours, FIRST: Decisions(answers, data.classes[codes[:, 0]])}, {}, []
    if part.y is not None:
        wrong = failures(codes, np.searchsorted(estimator.classes_, part.labels))
        losses = {FIRST: wrong[:, 0].astype(np.float64), AVERAGE: wrong.mean(axis=1)}
        if is_drawn(model):
            losses[MIXTURE] = np.minimum(sum(mixture[one] * wrong[:, one] for one in np.flatnonzero(mixture)), 1.0)
        if name == data.judged:
            errors = [float(np.average(column, weights=part.weights)) for column in wrong.T]  # no copy of them all
    return RowDecisions(by, losses, errors)


def _decide_by_rules(model: Any, data: Data, name: str, answers: AnyArray) -> RowDecisions:
    """Decide by rules of scores; rows that the rules were chosen on have scores of models that have not seen them."""
    part, estimator = data.part(name), final_estimator(model)
    X, kept = seen_by_last(model, part.X), estimator.family_.selection_data
    if name == data.chosen_on:
        scores, groups = kept.scores[TRAIN], estimator.groups_.codes_of_each(kept.answers.tables)[TRAIN]
        outputs = {place: scores[:, place] for place in range(scores.shape[1])}
        rows = DecisionRows(estimator.check_predict_input(X), groups, estimator.pool(), outputs)
    else:
        known = known_answers(data, name, estimator, "f", kept.scores[TRAIN].shape[2:])
        scores = estimator.pool().ask(estimator.check_predict_input(X), len(X)) if known is None else known
        rows = estimator.rows_to_decide(X, **decision_inputs(part), outputs=scores)
        if keeps_answers(model):
            data.pool_outputs[name] = scores
    decider = estimator.decider()
    ours = Decisions(answers, None, draw=lambda: decider.decide(rows, X))
    if is_drawn(model) and (np.count_nonzero(decider.shares) > 1 or any(map(shares_rows, estimator.rules_))):
        ours = ours._replace(chances=decider.probabilities(rows))
    else:
        ours = Decisions(answers, ours.labels)
    by, errors = {MIXTURE: ours, FIRST: Decisions(answers, estimator.usual_decider().decide(rows, X))}, []
    if name == data.judged and part.y is not None:
        labels = np.searchsorted(estimator.classes_, part.labels)
        for place in range(decider.shares.size):  # who defers does not err
            shares = decider.shares_by(place, rows)
            wrong = shares[:, : len(estimator.classes_)].sum(axis=1) - shares[np.arange(labels.size), labels]
            errors.append(float(np.average(wrong, weights=part.weights)))
    return RowDecisions(by, {}, errors, scores, rows.groups)


def known_answers(data: Data, name: str, estimator: Any, kinds: str, each: tuple[int, ...] = ()) -> AnyArray | None:
    """Return the stored predictions or scores of the models; None where there are none.

    ``each`` is the shape of the output of one model for one row.
    """
    outputs, shape = data.pool_outputs.get(name), (len(data.part(name)), len(estimator.estimators_), *each)
    if outputs is None or outputs.shape != shape or outputs.dtype.kind not in kinds:
        return None
    is_class = outputs.dtype.kind == "f" or (outputs.min(initial=0) >= 0 and outputs.max(initial=0) < len(data.classes))
    return outputs if is_class else None
