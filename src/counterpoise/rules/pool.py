"""A pool of models of any library: their predictions, scores or class probabilities for given rows.

A model may return strings, numbers, booleans or columns of probabilities. Here its predictions become codes, the places
of the labels among the sorted classes, in one byte for each row and model. Every error names the model it is about.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
from sklearn.exceptions import NotFittedError

from counterpoise._base.checks import as_numbers
from counterpoise._base.frames import check_lightgbm_columns, column_names, select, take_rows
from counterpoise._base.progress import prediction_listener
from counterpoise._base.threads import in_threads
from counterpoise._base.types import AnyArray, ByteArray, FloatArray, IntArray
from counterpoise.goals.classes import as_labels
from counterpoise.rules.goal_rows import TRAIN, Positive
from counterpoise.rules.rows import n_rows, places_among

ANSWERS, SCORES, PROBABILITIES = "answers", "scores", "probabilities"  # what the models of a pool return
_CHUNK = 65_536  # rows that a model predicts at once: its own intermediate arrays stay small
_HALF = 0.5  # the usual threshold of a probability; that of a decision function is 0
_PAIR = 2
_SUM_ROOM = 1e-3  # by which the probabilities of a row may miss one: rounding of small floats
_STORED = {ANSWERS: "stored predictions", SCORES: "stored scores", PROBABILITIES: "stored probabilities"}


class Member(NamedTuple):
    """A model of any library, and the kind of output that is used of it."""

    name: str  # its title in messages
    model: Any
    positive: Positive
    output: str  # ANSWERS, SCORES or PROBABILITIES

    def ask(self, X: Any) -> AnyArray:
        """Return the output of the model for each row."""
        order = column_classes(self.model, self.positive.classes)
        method = {ANSWERS: "predict", PROBABILITIES: "predict_proba", SCORES: scoring_method(self.model)}[self.output]
        outputs = ask_model(self.name, getattr(self.model, method or "", self.model), X)
        if self.output == ANSWERS:
            return codes_of(outputs, n_rows(X), self.positive.classes, self.name, order)
        if self.output == PROBABILITIES:
            return check_probabilities(np.asarray(outputs), n_rows(X), self.positive.classes, order, self.name)
        return scores_of(np.asarray(outputs), n_rows(X), self.positive, order, self.name)

    def margins(self, X: Any) -> FloatArray:
        """Return the decision function of the model, higher where the positive class is more likely."""
        scores = np.asarray(ask_model(self.name, self.model.decision_function, X))
        order = column_classes(self.model, self.positive.classes)
        return scores_of(scores, n_rows(X), self.positive, order, self.name)

    def usual(self, scores: FloatArray) -> float:
        """Return the threshold of scores that the model has by itself."""
        method = scoring_method(self.model)
        return usual_threshold(scores) if method is None else 0.0 if method == "decision_function" else _HALF


class StoredMember(NamedTuple):
    """Stored columns in the place of a model, by dataset: predictions, scores or probabilities."""

    name: str
    columns: Mapping[str, Any]
    positive: Positive
    output: str

    def ask(self, X: Any) -> NoReturn:  # noqa: ARG002 - whatever they are
        """Raise the error for rows that have no stored columns."""
        raise ValueError(
            f"{self.name} is {_STORED[self.output]} for the rows of fit, and cannot predict other rows. Pass the "
            "model itself."
        )

    def on(self, dataset: str | None, n_samples: int) -> AnyArray:
        """Return the columns for a dataset of ``fit``."""
        if dataset is None:
            self.ask(None)
        if dataset not in self.columns:
            raise ValueError(
                f"{self.name} is {_STORED[self.output]} for {', '.join(map(repr, self.columns))}; dataset {dataset!r} "
                "needs its own: pass a dict of arrays by dataset, or the model itself."
            )
        column, name = self.columns[dataset], f"{self.name} (stored for {dataset!r})"
        classes = self.positive.classes
        if self.output == SCORES and np.asarray(column).dtype.kind == "f":
            return scores_of(np.asarray(column), n_samples, self.positive, None, name)
        if self.output == PROBABILITIES and np.ndim(column) > 1:
            return check_probabilities(np.asarray(column), n_samples, classes, None, name)
        codes = codes_of(column, n_samples, classes, name)
        if self.output == ANSWERS:
            return codes
        if self.output == SCORES:
            return np.asarray(codes == self.positive.place, dtype=np.float64)
        return np.asarray(np.eye(len(classes))[codes])  # predictions: the probability of one class is 1

    def usual(self, scores: FloatArray) -> float:
        """Return the threshold that such scores usually have."""
        return usual_threshold(scores)


class Pool(NamedTuple):
    """Models that predict together: members, or plain models whose predictions are used."""

    members: Sequence[Any]
    positive: Positive
    n_jobs: int | None  # threads in which they predict
    output: str = ANSWERS

    @classmethod
    def of(cls, models: Mapping[str, Any], positive: Positive, n_jobs: int | None, output: str | None = None) -> "Pool":
        """Return a pool of models, given by their titles in messages.

        By default the pool uses scores for two classes, and the probabilities of all classes for more.
        """
        output = output or (SCORES if positive.is_binary else PROBABILITIES)
        return cls(
            [make_member(title, model, positive, output) for title, model in models.items()], positive, n_jobs, output
        )

    def ask(self, X: Any, n_samples: int, dataset: str | None = None, places: Iterable[int] | None = None) -> AnyArray:
        """Return the output of models for rows, a column for each model: of all, or of those at some places.

        ``dataset`` is the name that stored columns know the rows by; None where they are not those of ``fit``. Models
        predict in chunks of rows; models and chunks run in ``n_jobs`` threads.
        """
        members = dict(enumerate(self.members if places is None else [self.members[place] for place in places]))
        shape, classes = (n_samples, len(members)), self.positive.classes
        if self.output == PROBABILITIES:
            columns: AnyArray = np.zeros((*shape, len(classes)))
        else:
            kind = np.float64 if self.output == SCORES else np.min_scalar_type(len(classes) - 1)
            columns = np.zeros(shape, dtype=kind, order="F")
        live = {place: one for place, one in members.items() if not isinstance(one, StoredMember)}
        chunks = [slice(start, min(start + _CHUNK, n_samples)) for start in range(0, n_samples, _CHUNK)]
        reports = places is None or self.output != ANSWERS  # a decision by a few of the models is not reported
        report = prediction_listener()

        def fill(place: int, chunk: slice) -> None:
            rows = X if len(chunks) == 1 else take_rows(X, chunk)
            one = live[place]
            columns[chunk, place] = one.ask(rows) if isinstance(one, Member) else predict_codes(one, rows, classes)
            if reports and chunk.stop == n_samples:
                report()

        tasks = [(place, chunk) for place in live for chunk in chunks]
        if len(tasks) == 1:
            fill(*tasks[0])
        else:
            in_threads(fill, tasks, self.n_jobs, shared=True)
        for place in members.keys() - live.keys():
            columns[:, place] = members[place].on(dataset, n_samples)
        return columns

    def needs_rows(self) -> bool:
        """Return whether some models need the rows; stored columns do not."""
        return not all(isinstance(member, StoredMember) for member in self.members)

    def check_live(self, places: Iterable[int]) -> None:
        """Raise an error if one of the models at these places is a stored column, which cannot predict new rows."""
        for place in places:
            if isinstance(self.members[place], StoredMember):
                self.members[place].ask(None)


def make_member(title: str, model: Any, positive: Positive, output: str) -> Member | StoredMember:
    """Return a member of a pool for a model, or for columns in its place."""
    if isinstance(model, type):
        raise TypeError(f"{title} is a class, not a model: add parentheses, and fit it.")
    can_predict, is_function = hasattr(model, "predict"), callable(model) and not hasattr(model, "predict")
    can_answer = {
        ANSWERS: can_predict or callable(model),
        SCORES: is_function or scoring_method(model) is not None,
        PROBABILITIES: is_function or hasattr(model, "predict_proba"),
    }[output]
    if can_answer:
        return Member(title, model, positive, output)
    if isinstance(model, Mapping):
        return StoredMember(title, model, positive, output)
    if hasattr(model, "__len__") and not isinstance(model, (str, bytes)) and not can_predict:
        return StoredMember(title, {TRAIN: model}, positive, output)
    mixing = "Calibrate it (CalibratedClassifierCV), or mix the predictions of models: MixtureClassifier."
    raise TypeError(
        {
            ANSWERS: f"{title} must be a fitted classifier, a callable from rows to labels, or an array of predicted "
            f"labels; got {model!r}.",
            SCORES: f"{title} has no scores to cut: rules need predict_proba or decision_function, a callable from "
            f"rows to scores, or an array of scores; got {model!r}. {mixing}",
            PROBABILITIES: f"{title} has no probabilities of {len(positive.classes)} classes: rules need "
            "predict_proba, a callable from rows to a column for each class, or an array of such columns; got "
            f"{model!r}. {mixing}",
        }[output]
    )


def ask_model(name: str, ask: Callable[[Any], Any], X: Any) -> Any:
    """Return the output of a method of a model; errors name the model."""
    names = getattr(getattr(ask, "__self__", ask), "feature_names_in_", None)
    if names is not None and list(names) != column_names(X) and set(names) <= set(column_names(X)):
        X = select(X, names)  # in the order of the model: some look at places alone
    check_lightgbm_columns(getattr(ask, "__self__", None), X)
    try:
        return ask(X)
    except NotFittedError as error:
        raise ValueError(f"{name} is not fitted. Pass fitted models: {error}") from error
    except Exception as error:
        raise ValueError(f"{name} failed to predict: {type(error).__name__}: {error}") from error


def feature_names(model: Any) -> list[str] | None:
    """Return the names of the features that a model was trained on; None where it had none."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else list(names)


def column_classes(model: Any, classes: AnyArray) -> AnyArray | None:
    """Return the classes that the columns of a model are of; None where the model has no ``classes_``.

    Models that were trained on places among the classes, as those of XGBoost are, know 0, 1, 2 and so on in their
    place; of fitted models that a user brings, ``all_classes`` makes sure that they know the labels themselves.
    """
    order = getattr(model, "classes_", None)
    if order is None:
        return None
    has_codes = np.array_equal(np.asarray(order), np.arange(len(classes)))
    return classes if has_codes else np.asarray(order)


def scoring_method(model: Any) -> str | None:
    """Return the method of a model that scores; None where there is none."""
    return next((one for one in ("predict_proba", "decision_function") if hasattr(model, one)), None)


def usual_threshold(scores: FloatArray) -> float:
    """Return one half for what may be probabilities, else 0."""
    return _HALF if scores.min(initial=0.0) >= 0 and scores.max(initial=1.0) <= 1 else 0.0


def predict_codes(model: Any, X: Any, classes: AnyArray) -> IntArray:
    """Return the predictions of a model as places in ``classes``, which are sorted."""
    if isinstance(model, Member):
        return model.ask(X)
    if hasattr(model, "predict_codes"):
        codes = np.asarray(model.predict_codes(X))
        known = getattr(model, "classes_", classes)  # a model may have been fitted to rows that lack a class
        return codes if len(known) == len(classes) else np.searchsorted(classes, known)[codes]
    return codes_of(model.predict(X), n_rows(X), classes, f"The base model {model!r}")


def codes_of(predicted: Any, n_samples: int, classes: AnyArray, name: str, order: AnyArray | None = None) -> IntArray:
    """Return predictions as places in the sorted ``classes``.

    Parameters
    ----------
    predicted : labels of shape (n_samples,) or (n_samples, 1), or probabilities of shape (n_samples, n_classes)
    order : the classes of the columns, where predictions are probabilities; default ``classes``
    name : title of the model in errors
    """
    labels = as_labels(predicted)
    if labels.ndim == _PAIR and labels.shape[1] == 1:
        labels = labels[:, 0]
    order = classes if order is None else order
    if labels.shape == (n_samples, len(order)) and labels.dtype.kind == "f" and labels.ndim == _PAIR:
        labels = order[labels.argmax(axis=1)]
    if labels.shape != (n_samples,):
        raise ValueError(
            f"{name} must predict one label for each of the {n_samples} rows, or a column of probabilities for each of "
            f"{len(order)} classes; it returned shape {labels.shape}."
        )
    if is_text(labels) != is_text(classes):
        raise ValueError(
            f"{name} predicted the label {labels.tolist()[0]!r}, which is not among the classes {classes.tolist()}: "
            "texts and numbers are different labels."
        )
    codes, is_unknown = places_among(labels, classes)
    if is_unknown.any():
        hint = ""
        if labels.dtype.kind == "f" and labels.min() >= 0 and labels.max() <= 1:
            hint = " If these are probabilities, return labels instead, or a column for each class."
        raise ValueError(
            f"{name} predicted the label {labels[is_unknown].tolist()[0]!r}, which is not among the classes "
            f"{classes.tolist()} that it was trained on.{hint}"
        )
    return codes


def is_text(labels: AnyArray) -> bool:
    """Return whether labels are texts: strings, or objects of which the first is one."""
    return labels.dtype.kind in "UST" or (labels.dtype.kind == "O" and labels.size > 0 and isinstance(labels[0], str))


def scores_of(scores: AnyArray, n_samples: int, positive: Positive, order: AnyArray | None, name: str) -> FloatArray:
    """Return scores of the positive class.

    Parameters
    ----------
    scores : array of shape (n_samples,) or (n_samples, n_classes)
        Scores, of the second class where ``order`` names two, or a column for each class.
    order : the classes in the order of the model; default those of ``positive``
    name : title of the model in errors
    """
    values = as_numbers(scores, f"The scores of {name}").astype(np.float64, copy=False)
    classes = positive.classes if order is None else order
    where = np.flatnonzero(classes == positive.classes[positive.place])
    if values.shape == (n_samples, len(classes)):
        values = values[:, where[0]] if where.size else np.zeros(n_samples)
    elif values.shape == (n_samples, 1):
        values = values[:, 0]
    elif values.shape == (n_samples,) and order is not None and where.size and where[0] == 0 and len(order) == _PAIR:
        values = -values
    if values.shape != (n_samples,):
        raise ValueError(
            f"{name} must give one score for each of the {n_samples} rows, or a column for each of {len(classes)} "
            f"classes; it returned shape {values.shape}."
        )
    bad = values[~np.isfinite(values)].tolist()
    if bad:
        raise ValueError(
            f"The scores of {name} must be finite; {len(bad)} of {values.size} are not, the first is {bad[0]!r}. "
            "Impute what is missing before the model, or leave those rows out."
        )
    return np.ascontiguousarray(values)


def check_probabilities(
    outputs: AnyArray, n_samples: int, classes: AnyArray, order: AnyArray | None, name: str
) -> FloatArray:
    """Return probabilities in the order of the classes, each row summing to one.

    Parameters
    ----------
    outputs : array of shape (n_samples, n_classes)
    classes : all classes, sorted
    order : the classes of the columns, where a model knows some of them or in another order; default ``classes``
    name : title of the model in errors
    """
    values = as_numbers(outputs, f"The probabilities of {name}").astype(np.float64, copy=False)
    columns = classes if order is None else np.asarray(order)
    if values.shape != (n_samples, len(columns)):
        raise ValueError(
            f"{name} must give a probability for each of {len(columns)} classes, shape ({n_samples}, {len(columns)}); "
            f"it returned shape {values.shape}."
        )
    sums = values.sum(axis=1)
    problems = {
        "finite": ~np.isfinite(values).all(axis=1),
        "at least 0": (values < -_SUM_ROOM).any(axis=1),
        "of sum 1 in each row": np.abs(sums - 1.0) > _SUM_ROOM,
    }
    for condition, bad in problems.items():
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            shown = f"sums to {sums[row]:.4g}" if condition.startswith("of sum") else f"is {values[row].tolist()!r}"
            raise ValueError(
                f"The probabilities of {name} must be {condition}; row {row} {shown}, one of {int(bad.sum())} such "
                f"rows of {len(values)}. Rules of several classes need probabilities: normalize the columns, "
                "or calibrate the model (CalibratedClassifierCV)."
            )
    probabilities = np.zeros((n_samples, len(classes)))
    probabilities[:, np.searchsorted(classes, columns)] = np.maximum(values, 0.0)
    return np.asarray(probabilities / probabilities.sum(axis=1, keepdims=True))


def failures(predicted: AnyArray, codes: IntArray) -> ByteArray:
    """Return where predicted codes, a column for each model, differ from the true ones, one byte each."""
    losses = np.empty(predicted.shape, dtype=np.uint8, order="F")
    for place in range(predicted.shape[1]):
        np.not_equal(predicted[:, place], codes, out=losses[:, place].view(np.bool_))
    return losses


def named_models(estimators: Any) -> list[tuple[str, Any]]:
    """Return the models of a pool with their names, given models and pairs of a name and a model."""
    if isinstance(estimators, (str, Mapping)) or not hasattr(estimators, "__len__"):
        raise TypeError(f"estimators must be a list of fitted models; got {type(estimators).__name__}.")
    if len(estimators) == 0:
        raise ValueError("estimators must hold at least one fitted model; got an empty list.")
    is_pair = [isinstance(one, tuple) and len(one) == _PAIR and isinstance(one[0], str) for one in estimators]
    return [one if is_named else ("", one) for one, is_named in zip(estimators, is_pair, strict=True)]


def titled_models(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the models by their titles in messages."""
    return {
        f"Model {place} ({name!r})" if name else f"Model {place} ({type(model).__name__})": model
        for place, (name, model) in enumerate(pairs)
    }


def all_classes(labels: AnyArray, models: Mapping[str, Any]) -> AnyArray:
    """Return the classes of y and of the models, sorted: a model may know classes that do not occur in y."""
    own = np.unique(labels)  # once: rows are many, and so may models be
    parts = [own]
    for title, model in models.items():
        own_classes = getattr(model, "classes_", None)
        if own_classes is None:
            continue
        array = np.asarray(own_classes)
        if is_text(array) != is_text(own) or not np.isin(own, array).any():
            raise ValueError(f"{title} knows the classes {array.tolist()}, none of which is in y: {own.tolist()}.")
        parts.append(array)
    classes = np.unique(np.concatenate(parts))
    if classes.size < _PAIR:
        raise ValueError(f"y must hold at least two classes; got one class only: {classes.tolist()[0]!r}.")
    return classes
