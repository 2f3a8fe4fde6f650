"""The key of the draws: given, determined by a random state, or fresh from the system."""

import hashlib
import secrets
from collections.abc import Collection
from typing import Any

import numpy as np

from counterpoise._base.checks import check_random_state
from counterpoise._base.text import Secret

_KEY_BYTES = 32
_LEAST, _MOST = 16, 64  # bytes: fewer could be guessed, and the hash takes no more


def check_key(key: Any) -> Secret:
    """Return a key that was given after checking that it is one; no message shows it."""
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
    if isinstance(random_state, np.random.RandomState):
        return Secret(random_state.bytes(_KEY_BYTES))
    return Secret(np.random.RandomState(random_state).bytes(_KEY_BYTES))


def generator_of(random_state: Any) -> np.random.Generator:
    """Return what fresh draws come from."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)


def derived_key(key: bytes, purpose: str) -> Secret:
    """Return another key, the same for the same purpose, that tells nothing of the first."""
    return Secret(hashlib.blake2b(purpose.encode(), key=key, digest_size=_KEY_BYTES).digest())


def apart_from(key: Secret, taken: Collection[bytes]) -> Secret:
    """Return the key, or one derived from it where a model inside draws with it: both would draw the same numbers."""
    while key in taken:
        key = derived_key(key, "outside")
    return key
