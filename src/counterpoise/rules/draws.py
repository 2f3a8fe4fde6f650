"""Sticky draws: a keyed random number for each row or id, which selects the model of a mixture that decides.

A classifier that draws afresh can be queried until the decision is favourable. A sticky draw is a keyed hash of the
row, or of an id: the same person always gets the same decision, in any batch, process or machine, and without the key
nobody can compute it. Over keys the numbers are uniform, so each decision has the probability that the mixture gives
it. With one key decisions are deterministic: their realised losses are 0 or 1.

The key is passed by the user, derived from a random state, or read from the system's random source. The hash depends on
values, not on their types, and not on rounding: see ``draw_messages``. Pass ids where rows are people: without them
those who have the same features share a draw, and who changes a feature draws anew.
"""

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from counterpoise._base.checks import check_random_state, warn_caller
from counterpoise._base.frames import is_frame
from counterpoise._base.text import Secret
from counterpoise._base.types import FloatArray, IntArray
from counterpoise.rules.draw_messages import id_messages, row_messages

_KEY_BYTES = 32
_LEAST, _MOST = 16, 64  # bytes of a key: fewer could be guessed, and the hash takes no more
_HASH_BYTES = 8
_MANY = 200  # rows with one hash, beyond which their decisions are too few draws to have the shares of a mixture
_ROW, _ID = b"row", b"id"  # so that a row of one column and an id of the same value draw independently


def check_key(key: Any) -> Secret:
    """Return a key after checking its type and length; no message shows it."""
    if not isinstance(key, bytes):
        kind = "str" if isinstance(key, str) else type(key).__name__
        raise TypeError(f"key must be bytes, as secrets.token_bytes(32) makes them; got {kind}.")
    if not _LEAST <= len(key) <= _MOST:
        raise ValueError(
            f"key must have {_LEAST} to {_MOST} bytes, as secrets.token_bytes(32) makes them; got {len(key)}."
        )
    return Secret(key)


def make_key(random_state: Any) -> Secret:
    """Return a secret key: fresh from the system if ``random_state`` is None, else determined by it."""
    check_random_state(random_state)
    if random_state is None:
        return Secret(secrets.token_bytes(_KEY_BYTES))
    if not isinstance(random_state, np.random.RandomState):
        random_state = np.random.RandomState(random_state)
    return Secret(random_state.bytes(_KEY_BYTES))


def generator_of(random_state: Any) -> np.random.Generator:
    """Return the generator of fresh draws."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31)
    return np.random.default_rng(random_state)


def derived_key(key: bytes, purpose: str) -> Secret:
    """Return another key, the same for the same purpose, from which the first cannot be computed."""
    return Secret(hashlib.blake2b(purpose.encode(), key=key, digest_size=_KEY_BYTES).digest())


class SharedDraws(UserWarning):
    """Hundreds of rows hash alike, so that one draw decides about all of them."""


@dataclass(frozen=True, eq=False)
class KeyedDraws:
    """The key of a fitted classifier, without which nobody can compute a draw."""

    key: bytes = field(repr=False)

    def with_key(self, key: bytes, models: Iterable[Any] = ()) -> Self:
        """Return draws with another key, independent of those of models inside.

        Where one of them, or a model inside of it, draws with the same key, both would draw the same numbers: another
        key is derived from it then.
        """
        used_keys, waiting = set(), list(models)
        while waiting:
            model = waiting.pop()
            draws = draws_of(model)
            if draws is not None:
                used_keys.add(draws.key)
            waiting.extend(step for _, step in getattr(model, "steps", ()))
            waiting.extend(getattr(model, "estimators_", ()))
        while key in used_keys:
            key = derived_key(key, "outside")
        return replace(self, key=key)

    def uniforms(self, X: Any, checked: Any, ids: Any = None) -> FloatArray:
        """Return a number in [0, 1) for every row, by itself or by its id.

        A data frame counts as it was given, column by column: as an array its whole numbers may have lost digits.
        """
        if ids is not None:
            return self.by_id(ids, checked.shape[0])
        return self.by_row(X if is_frame(X) else checked)

    def by_row(self, X: Any) -> FloatArray:
        """Return a number in [0, 1) for every row of an array, sparse matrix or data frame."""
        numbers = _uniforms(row_messages(X), self.key, _ROW)
        most = int(np.unique(numbers, return_counts=True)[1].max(initial=0))
        if most >= _MANY:
            warn_caller(
                f"{most} of {numbers.size} rows are the same up to rounding, and share one draw. Pass ids, one for "
                "each person, so that each draws alone.",
                SharedDraws,
            )
        return numbers

    def by_id(self, ids: Any, n_rows: int) -> FloatArray:
        """Return a number in [0, 1) for every id."""
        return _uniforms([id_messages(ids, n_rows)], self.key, _ID)

    def check_loaded(self) -> None:
        """Check the values that were read from a file."""
        if not isinstance(self.key, bytes) or not 0 < len(self.key) <= hashlib.blake2b.MAX_KEY_SIZE:
            raise ValueError("it lacks a key")


def draws_of(model: Any) -> KeyedDraws | None:
    """Return the draws of a fitted classifier; None where it has none."""
    draws = getattr(model, "__dict__", {}).get("draws_")
    return draws if isinstance(draws, KeyedDraws) else None


def require_draws(model: Any) -> KeyedDraws:
    """Return the draws of a fitted classifier, or raise a ``ValueError`` where it has none."""
    draws = draws_of(model)
    if draws is None:
        raise ValueError("it has no key to draw with")
    return draws


def pick(uniforms: FloatArray, mixture: FloatArray) -> IntArray:
    """Return for each number in [0, 1) the model whose share of the unit interval it falls into."""
    edges = np.cumsum(mixture)
    last = int(np.flatnonzero(mixture)[-1])  # rounding may leave the last edge just below 1
    return np.minimum(np.searchsorted(edges, uniforms, side="right"), last).astype(np.int64)


def pick_each(uniforms: FloatArray, shares: FloatArray) -> IntArray:
    """Return for each number in [0, 1) the place of the answer whose share of the row it falls into, shape (n_rows,).

    Examples
    --------
    >>> import numpy as np
    >>> from counterpoise.rules.draws import pick_each
    >>> pick_each(np.array([0.4, 0.4]), np.array([[0.5, 0.5], [0.2, 0.8]])).tolist()
    [0, 1]
    """
    edges = np.cumsum(shares, axis=1)
    places = (uniforms[:, None] * edges[:, -1:] >= edges).sum(axis=1)  # rounding may leave the last edge off 1
    last = shares.shape[1] - 1 - (shares[:, ::-1] > 0).argmax(axis=1)
    return np.asarray(np.minimum(places, last), dtype=np.int64)


def _uniforms(messages: Iterable[Iterable[bytes]], key: bytes, kind: bytes) -> FloatArray:
    start = hashlib.blake2b(key=key, digest_size=_HASH_BYTES, person=kind)
    digests = []
    for some in messages:
        for message in some:
            hasher = start.copy()
            hasher.update(message)
            digests.append(hasher.digest())
    # The top 53 bits: exactly the numbers that a float in [0, 1) can hold evenly.
    return (np.frombuffer(b"".join(digests), dtype="<u8") >> np.uint64(11)).astype(np.float64) * 2.0**-53
