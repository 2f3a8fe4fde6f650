"""Values that fitted models hold, as plain parts and back: random states, matrices, secrets; and models that wait."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from counterpoise._base.text import Secret
from counterpoise.persist.container import UnreadableModel

_MT_WORDS = 624  # of the Mersenne twister's state, among which its position must lie
_MOST_POOL = 64  # words of a seed sequence; numpy's own is 4
_MOST_BITS = 4096  # of a seed: numpy takes it apart in a time that grows with the square of them
_MOST_SEEDS = 1000
Parts = tuple[Any, ...]


class ModelFile(NamedTuple):
    """A file of another library, which becomes a member of ours as it is."""

    suffix: str
    content: bytes


def _itself(model: Any) -> Any:
    return model


class LazyModel:
    """A model that is read from its bytes when it is first used, and stands for it from then on.

    A pool of models is read in milliseconds this way, and of seventeen models only the two that decide are ever built.
    """

    __slots__ = ("_model", "_read", "content")

    def __init__(self, content: bytes, read: Callable[[bytes], Any]) -> None:
        self.content, self._read = content, read
        self._model: Any = None

    def load(self) -> Any:
        """Return the model itself."""
        if self._model is None:
            self._model = self._read(self.content)
        return self._model

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copy, and send to others, the model itself."""
        del protocol
        return _itself, (self.load(),)

    def __getattr__(self, name: str) -> Any:
        if name == "__sklearn_tags__" and self._model is None:  # read of all models wherever one decides
            raise AttributeError(name)
        return getattr(self.load(), name)

    def __getitem__(self, key: Any) -> Any:
        """Return a step of a pipeline."""
        return self.load()[key]

    def __repr__(self) -> str:
        return repr(self.load())


class Codec(NamedTuple):
    """How a value of a type is taken apart and put together."""

    apart: Callable[[Any], Parts]
    together: Callable[..., Any]


def _check_seeds(entropy: Any) -> None:
    seeds = entropy if isinstance(entropy, (list, tuple)) else [entropy]
    if len(seeds) > _MOST_SEEDS or any(isinstance(seed, int) and seed.bit_length() > _MOST_BITS for seed in seeds):
        raise TypeError(f"a seed sequence of more than {_MOST_SEEDS} seeds, or of one above {_MOST_BITS} bits")


def _seeds_apart(seeds: np.random.SeedSequence) -> Parts:
    _check_seeds(seeds.entropy)
    _check_seeds(seeds.spawn_key)
    return seeds.entropy, tuple(seeds.spawn_key), seeds.pool_size, seeds.n_children_spawned


def _seeds_together(entropy: Any, spawn_key: Any, pool_size: Any, n_spawned: Any) -> np.random.SeedSequence:
    if type(pool_size) is not int or pool_size > _MOST_POOL:
        raise UnreadableModel("a seed sequence has an impossible size")
    _check_seeds(entropy)
    _check_seeds(spawn_key)
    return np.random.SeedSequence(entropy, spawn_key=spawn_key, pool_size=pool_size, n_children_spawned=n_spawned)


def _generator_apart(generator: np.random.Generator) -> Parts:
    bits = generator.bit_generator
    if type(bits) is not np.random.PCG64:
        raise TypeError(f"a random generator of the kind {type(bits).__name__}")
    return bits.state, bits.seed_seq


def _generator_together(state: Any, seeds: Any) -> np.random.Generator:
    if not isinstance(seeds, np.random.SeedSequence):
        raise UnreadableModel("a random generator lacks its seeds")
    bits = np.random.PCG64(seeds)
    bits.state = state
    return np.random.Generator(bits)


def _random_state_apart(random_state: np.random.RandomState) -> Parts:
    state: Any = random_state.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        raise TypeError(f"a random state of the kind {state['bit_generator']}")
    return (state,)


def _random_state_together(state: Any) -> np.random.RandomState:
    position = state["state"]["pos"]
    if type(position) is not int or not 0 <= position <= _MT_WORDS:  # numpy would read wherever it points
        raise UnreadableModel("a random state has an impossible position")
    random_state = np.random.RandomState(0)
    random_state.set_state(state)
    return random_state


def _sparse_apart(matrix: Any) -> Parts:
    rows = matrix.tocsr()
    return type(rows).__name__, rows.data, rows.indices, rows.indptr, tuple(int(size) for size in rows.shape)


def _sparse_together(name: Any, data: Any, indices: Any, indptr: Any, shape: Any) -> Any:
    import scipy.sparse  # noqa: PLC0415 - few models hold such a matrix

    if name not in ("csr_array", "csr_matrix"):
        raise UnreadableModel(f"it names the matrix type {name!r}, which this version cannot restore")
    matrix = getattr(scipy.sparse, name)((data, indices, indptr), shape=shape)
    matrix.check_format(full_check=True)  # products read where the indices point
    return matrix


VALUES = {
    "SeedSequence": Codec(_seeds_apart, _seeds_together),
    "Generator": Codec(_generator_apart, _generator_together),
    "RandomState": Codec(_random_state_apart, _random_state_together),
    "secret": Codec(lambda secret: (bytes(secret),), Secret),
    "sparse rows": Codec(_sparse_apart, _sparse_together),
}


def value_form_of(value: Any) -> str | None:
    """Return the name of the form of a value, or None where it has none."""
    kind = type(value)
    if kind is Secret:
        return "secret"
    if kind in (np.random.SeedSequence, np.random.Generator, np.random.RandomState):
        return kind.__name__
    is_sparse = kind.__module__.startswith("scipy.sparse") and hasattr(value, "tocsr")
    return "sparse rows" if is_sparse else None
