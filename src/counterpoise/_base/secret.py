"""Bytes that are kept, copied and saved like others, but never printed."""


class Secret(bytes):
    """Bytes whose text tells nothing, wherever they are printed: in ``repr``, logs, HTML or an error.

    Examples
    --------
    >>> from counterpoise._base.secret import Secret
    >>> Secret(b"0123456789abcdef"), Secret(b"0123456789abcdef") == b"0123456789abcdef"
    (<hidden>, True)
    """

    def __repr__(self) -> str:
        return "<hidden>"

    __str__ = __repr__
