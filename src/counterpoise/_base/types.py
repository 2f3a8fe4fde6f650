"""Short names for the array types in signatures."""

from typing import TYPE_CHECKING, Any, NewType, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
else:  # numpy's is a union of 300 characters, which help() would print in every signature
    ArrayLike = NewType("ArrayLike", object)

__all__ = ["AnyArray", "ArrayLike", "BoolArray", "ByteArray", "FloatArray", "IntArray"]

AnyArray: TypeAlias = NDArray[Any]
BoolArray: TypeAlias = NDArray[np.bool_]
ByteArray: TypeAlias = NDArray[np.uint8]
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
