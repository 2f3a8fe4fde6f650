"""What needs the optional dependencies of boosting, and the sentence that says what to install."""

from importlib import import_module


def require_boosting(what: str, modules: tuple[str, ...] = ("numba", "daqp")) -> None:
    """Refuse to do something where packages of the extra ``boosting`` are not installed.

    Parameters
    ----------
    what : str
        What needs them, as the subject of the sentence.
    modules : tuple of str
        Which of them.

    Examples
    --------
    >>> from counterpoise._base.extras import require_boosting
    >>> require_boosting("A tail", modules=("a_package_that_nobody_has",))
    Traceback (most recent call last):
    ModuleNotFoundError: A tail needs a_package_that_nobody_has: pip install "counterpoise[boosting]"
    """
    for module in modules:
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f'{what} needs {error.name}: pip install "counterpoise[boosting]"', name=error.name
            ) from error
