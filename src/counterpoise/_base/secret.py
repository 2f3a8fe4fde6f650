"""Bytes that are kept, copied and saved like others, but never printed."""

from typing import Any


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


class SecretText(str):
    """Text that tells nothing of itself: no key, and refused as such, but it may have been meant as one."""

    __slots__ = ()
    __repr__ = __str__ = Secret.__repr__


class SecretParameter:
    """A parameter of an estimator that becomes ``Secret`` however it is set; None where it never was."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else instance.__dict__.get(self.name)

    def __set__(self, instance: Any, value: Any) -> None:
        # One that is Secret already stays the same object: scikit-learn's clone looks at that.
        if isinstance(value, bytes | bytearray) and not isinstance(value, Secret):
            value = Secret(value)
        elif isinstance(value, str) and not isinstance(value, SecretText):
            value = SecretText(value)
        instance.__dict__[self.name] = value
