"""The two ways in which saving and loading end: what cannot be read, and what cannot be stored."""


class UnreadableModel(ValueError):  # noqa: N818 - named for the state it reports
    """A file that is no whole, unaltered model of a known format; the message says what is wrong and what to do."""

    __module__ = "counterpoise.persist"


class UnstorableModel(ValueError):  # noqa: N818 - as above
    """A model with a part that cannot be stored; the message names the part."""

    __module__ = "counterpoise.persist"
