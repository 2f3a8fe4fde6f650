"""Who decides: members that answer with class codes, together a pool, and with a share for each a mixture.

A member is anything with ``predict_codes(X)``, the places of its answers among the sorted classes, or a plain model
with ``predict``. Whatever a mixture says follows from its members, their shares and how one is drawn for a row.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from counterpoise._base.checks import is_frame
from counterpoise._base.shards import in_threads
from counterpoise._base.types import AnyArray, FloatArray, IntArray
from counterpoise.mixtures.answers import TRAIN
from counterpoise.mixtures.draws import KeyedDraws, pick, pick_each
from counterpoise.mixtures.pool import codes_of, empty_codes, fill_codes, is_text, n_rows, predict_codes, take_rows

_PAIR = 2


class _Member(NamedTuple):
    """A model of any library, asked by our code: what it says as places among the classes, and errors with its name."""

    name: str
    model: Any
    classes: AnyArray

    def predict_codes(self, X: Any) -> IntArray:
        said = asked(self.name, self.model.predict if hasattr(self.model, "predict") else self.model, X)
        order = getattr(self.model, "classes_", None)
        return codes_of(said, n_rows(X), self.classes, self.name, None if order is None else np.asarray(order))


def asked(name: str, ask: Callable[[Any], Any], X: Any) -> Any:
    """Return what a model says; an error tells which model it was."""
    try:
        return ask(known_to(getattr(ask, "__self__", ask), X))
    except NotFittedError as error:
        raise ValueError(f"{name} is not fitted; a mixture is chosen among fitted models: {error}") from error
    except Exception as error:
        raise ValueError(f"{name} failed to predict: {type(error).__name__}: {error}") from error


def known_to(model: Any, X: Any) -> Any:
    """Return the columns that a model knows by name, in its order: some models look at places alone."""
    names = feature_names(model)
    if names is None or not is_frame(X) or list(X.columns) == names:
        return X
    return X[names] if set(names) <= set(X.columns) else X


def feature_names(model: Any) -> list[str] | None:
    """Return the names of the features that a model was trained on; None where it had none."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else list(names)


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows with the scores of models and the groups that rules look at; the rows themselves are for draws."""

    features: Any
    scores: FloatArray  # (n_rows, n_models)
    groups: IntArray

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the scores."""
        return self.scores.shape

    def __getitem__(self, rows: Any) -> Self:
        """Return some of the rows."""
        return type(self)(None, self.scores[rows], self.groups[rows])


class ToldMember(NamedTuple):
    """A model that was asked before: rows come with what it said about them, a column for each model."""

    place: int

    def predict_codes(self, X: ScoredRows) -> IntArray:
        """Return the place of the class that the model said of each row."""
        return np.asarray(X.scores[:, self.place], dtype=np.int64)


class _Stored(NamedTuple):
    """Predictions instead of a model, by dataset."""

    name: str
    labels: Mapping[str, Any]
    classes: AnyArray

    def predict_codes(self, X: Any) -> NoReturn:  # noqa: ARG002 - whatever they are
        """Say that other rows cannot be decided about."""
        raise ValueError(
            f"{self.name} is stored predictions for the rows of fit, which say nothing about other rows. Pass the "
            "model itself to decide about those."
        )

    def on(self, dataset: str | None, n_samples: int) -> IntArray:
        """Return the predictions for a dataset of ``fit``."""
        if dataset is None:
            self.predict_codes(None)
        if dataset not in self.labels:
            raise ValueError(
                f"{self.name} is stored predictions for {', '.join(map(repr, self.labels))}; dataset {dataset!r} needs "
                "its own: pass a dict of arrays by dataset, or the model itself."
            )
        return codes_of(self.labels[dataset], n_samples, self.classes, f"{self.name} (stored for {dataset!r})")


class Pool(NamedTuple):
    """Members that are asked together."""

    members: Sequence[Any]
    classes: AnyArray  # sorted
    n_jobs: int | None  # threads in which they are asked
    deferred: Any = None  # what is said of rows that a member defers, whose code is behind those of the classes

    @property
    def answers(self) -> AnyArray:
        """Return what members may say: the classes, and that a person decides, where some defer."""
        return self.classes if self.deferred is None else with_label(self.classes, self.deferred)

    def needs_rows(self) -> bool:
        """Tell whether there are members that must be asked; stored predictions need not."""
        return not all(isinstance(member, _Stored) for member in self.members)

    def codes(self, X: Any, n_samples: int, dataset: str | None) -> AnyArray:
        """Return the class codes of all members on rows, a column for each.

        ``dataset`` is the name that stored predictions know the rows by; None where they are not those of ``fit``.
        """
        places = range(len(self.members))
        stored = {place: self.members[place] for place in places if isinstance(self.members[place], _Stored)}
        live = {place: self.members[place] for place in places if place not in stored}
        codes = empty_codes(n_samples, len(self.members), self.classes)
        fill_codes(codes, live, X, self.classes, self.n_jobs)
        for place, member in stored.items():
            codes[:, place] = member.on(dataset, n_samples)
        return codes


class Mixture(NamedTuple):
    """A pool, with what chance each member decides, and how one is drawn for a row."""

    pool: Pool
    shares: FloatArray  # sum to 1
    draws: KeyedDraws | np.random.Generator | None  # the same for the same person, afresh, or none: by weighted vote

    def decide(self, X: Any, given: Any, ids: Any = None) -> AnyArray:
        """Return the label of every row; ``given`` are the rows as they were before they were checked."""
        codes = self.probabilities(X).argmax(axis=1) if self.draws is None else self._drawn_codes(X, given, ids)
        return np.asarray(self.pool.answers[codes])

    def shares_by(self, place: int, X: Any) -> FloatArray:
        """Return how likely one member gives each answer about each row: surely one, unless it draws itself."""
        return shared([_said_by(self.pool.members[place], X, self.pool.classes)], np.ones(1), len(self.pool.answers))

    def probabilities(self, X: Any) -> FloatArray:
        """Return the probability that a draw gives each answer: each class, then deferral where there is any."""
        active = np.flatnonzero(self.shares).tolist()
        tasks = ((self.pool.members[place], X, self.pool.classes) for place in active)
        votes = in_threads(_said_by, tasks, self.pool.n_jobs)
        return shared(votes, self.shares[active], len(self.pool.answers))

    def drawn(self, X: Any, given: Any, ids: Any = None) -> IntArray:
        """Return the place of the member that decides about each row, where it is drawn."""
        self._check_members()
        return pick(self.uniforms(X, given, ids), self.shares)

    def _drawn_codes(self, X: Any, given: Any, ids: Any) -> IntArray:
        """Return what a draw says: that of a member, or, where members draw themselves, that of an answer."""
        if any(hasattr(member, "predict_shares") for member in self.pool.members):
            return self.answered(X, self.uniforms(X, given, ids))
        return self.codes_of(X, self.drawn(X, given, ids))

    def answered(self, X: Any, uniforms: FloatArray) -> IntArray:
        """Return what each number draws where members draw themselves: an answer by all of them."""
        return pick_each(uniforms, self.probabilities(X))

    def codes_of(self, X: Any, drawn: IntArray) -> IntArray:
        """Ask of each member only the rows that drew it."""
        codes = np.empty(drawn.size, dtype=np.int64)
        for place in np.unique(drawn).tolist():
            rows = np.flatnonzero(drawn == place)
            codes[rows] = predict_codes(self.pool.members[place], take_rows(X, rows), self.pool.classes)
        return codes

    def uniforms(self, X: Any, given: Any, ids: Any = None) -> FloatArray:
        """Return the number that decides about each row, where draws decide."""
        if isinstance(self.draws, KeyedDraws):
            return self.draws.uniforms(given, as_columns(X.features if isinstance(X, ScoredRows) else X), ids)
        assert self.draws is not None  # noqa: S101 - it draws
        return np.asarray(self.draws.random(n_rows(X)))

    def _check_members(self) -> None:
        """Refuse before anything is drawn where a member that may be drawn cannot be asked."""
        for place in np.flatnonzero(self.shares).tolist():
            if isinstance(self.pool.members[place], _Stored):
                self.pool.members[place].predict_codes(None)


class AskedRows(NamedTuple):
    """Rows with the scores of all models, and who decides about them: the rules, and the first model by itself."""

    rows: ScoredRows
    rules: Mixture
    usual: Mixture  # at its usual threshold


def _said_by(member: Any, X: Any, classes: AnyArray) -> AnyArray:
    """Return the class codes that a member says, or, where it draws itself, how likely it says each class."""
    return member.predict_shares(X) if hasattr(member, "predict_shares") else predict_codes(member, X, classes)


def with_label(classes: AnyArray, label: Any) -> AnyArray:
    """Return the classes and one more label, each as it is: beside numbers a text stays a text."""
    is_same = is_text(classes) == isinstance(label, str) and classes.dtype.kind in "Uiuf"
    found = np.append(classes, [label]) if is_same else np.append(classes.astype(object), [None])
    found[-1] = label
    return found


def shared(votes: Sequence[AnyArray], shares: FloatArray, n_classes: int) -> FloatArray:
    """Return the total share of each class, given class codes of each member, or how likely it says each class."""
    total = np.zeros((len(votes[0]), n_classes))
    rows = np.arange(len(total))
    for said, share in zip(votes, shares.tolist(), strict=True):
        if said.ndim > 1:
            total += share * said
        else:
            total[rows, said] += share
    return np.minimum(total, 1.0, out=total)  # sums of shares may end at 1 + 1e-16


def as_columns(X: Any) -> Any:
    """Return rows as columns: texts are rows of one column."""
    return np.asarray(X)[:, None] if len(X.shape) == 1 else X


def named_models(estimators: Any) -> list[tuple[str, Any]]:
    """Return the models of a pool with their names, given models and pairs of a name and a model."""
    if isinstance(estimators, (str, Mapping)) or not hasattr(estimators, "__len__"):
        raise TypeError(f"estimators must be a list of fitted models; got {type(estimators).__name__}.")
    if len(estimators) == 0:
        raise ValueError("estimators must hold at least one fitted model; got an empty list.")
    return [entry if _is_named(entry) else ("", entry) for entry in estimators]


def _is_named(entry: Any) -> bool:
    return isinstance(entry, tuple) and len(entry) == _PAIR and isinstance(entry[0], str)


def unnamed(entry: Any) -> Any:
    """Return the model of an entry of a pool: a model, or a pair of a name and a model."""
    return entry[1] if _is_named(entry) else entry


def members_of(named: list[tuple[str, Any]], labels: AnyArray) -> list[_Member | _Stored]:
    """Return what asks the models, given the labels of ``y``: all know the classes of all."""
    titled = titled_models(named)
    classes = all_classes(labels, titled)
    return [_member(title, model, classes) for title, model in titled.items()]


def titled_models(named: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the models by what messages call them."""
    return {
        f"Model {place} ({name!r})" if name else f"Model {place} ({type(model).__name__})": model
        for place, (name, model) in enumerate(named)
    }


def _member(title: str, model: Any, classes: AnyArray) -> _Member | _Stored:
    check_instance(title, model)
    if hasattr(model, "predict") or callable(model):
        return _Member(title, model, classes)
    if isinstance(model, Mapping):
        return _Stored(title, model, classes)
    if hasattr(model, "__len__") and not isinstance(model, (str, bytes)):
        return _Stored(title, {TRAIN: model}, classes)
    raise TypeError(
        f"{title} must be a fitted classifier, a callable from rows to labels, or an array of predicted labels; "
        f"got {model!r}."
    )


def check_instance(title: str, model: Any) -> None:
    """Refuse a class in the place of a model."""
    if isinstance(model, type):
        raise TypeError(f"{title} is a class, not a model: add parentheses, and fit it.")


def all_classes(labels: AnyArray, titled: dict[str, Any]) -> AnyArray:
    """Return the labels of y and those that models know: a model may know classes that these rows do not show."""
    own = np.unique(labels)  # once: rows are many, and so may models be
    known = [own]
    for title, model in titled.items():
        classes = getattr(model, "classes_", None)
        if classes is None:
            continue
        array = np.asarray(classes)
        if is_text(array) != is_text(own) or not np.isin(own, array).any():
            raise ValueError(f"{title} knows the classes {array.tolist()}, none of which is in y: {own.tolist()}.")
        known.append(array)
    found = np.unique(np.concatenate(known))
    if found.size < 2:  # noqa: PLR2004
        raise ValueError(f"y must hold at least two classes to tell apart; got one class only: {found.tolist()[0]!r}.")
    return found
