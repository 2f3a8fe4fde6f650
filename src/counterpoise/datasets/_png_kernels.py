"""Undoing the filters of PNG rows."""

from numba import int64, types, uint8

from counterpoise._base.compiled import kernel
from counterpoise._base.types import ByteArray

_BYTES = types.Array(uint8, 2, "C")
_GIVEN = types.Array(uint8, 2, "C", readonly=True)


@kernel([int64(_GIVEN, _BYTES, int64)])
def unfilter_rows(filtered: ByteArray, image: ByteArray, step: int) -> int:
    """Fill ``image`` with the rows whose filtered bytes follow a filter's number; return the first bad row, or -1.

    ``step`` is the number of bytes of a pixel. The filters (PNG specification, section 9) predict a byte from its
    neighbours: left, above and above left, zero outside of the image.
    """
    n_rows, n_bytes = image.shape
    for row in range(n_rows):
        kind = filtered[row, 0]
        if kind > 4:  # noqa: PLR2004 - none, sub, up, average, Paeth
            return row
        for at in range(n_bytes):
            left = int64(image[row, at - step]) if at >= step else int64(0)
            above = int64(image[row - 1, at]) if row > 0 else int64(0)
            corner = int64(image[row - 1, at - step]) if row > 0 and at >= step else int64(0)
            guess = int64(0)
            if kind == 1:
                guess = left
            elif kind == 2:  # noqa: PLR2004
                guess = above
            elif kind == 3:  # noqa: PLR2004
                guess = (left + above) // 2
            elif kind == 4:  # noqa: PLR2004 - whichever of the three is nearest to left + above - corner
                off_left, off_above = abs(above - corner), abs(left - corner)
                off_corner = abs(left + above - 2 * corner)
                if off_left <= off_above and off_left <= off_corner:
                    guess = left
                else:
                    guess = above if off_above <= off_corner else corner
            image[row, at] = uint8((int64(filtered[row, at + 1]) + guess) & 255)
    return -1
