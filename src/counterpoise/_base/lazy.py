"""Names that load their module on first use, so that importing a package stays light.

A package's public names are written once, in its stub ``__init__.pyi``, as imports: type checkers read them there, and
so does ``lazy``, which imports each of them when it is first used. This file itself imports next to nothing: ``ast``,
``pathlib`` and ``typing`` would take most of the time of ``import counterpoise``.
"""

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_EXTRAS = {"numba": "boosting", "daqp": "boosting"}  # by the package that a module imports


def lazy(
    package: str, file: str, *, extra: str | None = None
) -> "tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]":
    """Return a package's ``__getattr__``, ``__dir__`` and ``__all__``.

    ``file`` is its ``__file__``, beside which the stub stands. ``extra`` names the optional dependencies without which
    its modules cannot be imported.
    """
    home = _homes(f"{file.rpartition('.')[0]}.pyi")

    def get(name: str) -> "Any":
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {', '.join(sorted(home))}")
        try:
            return _load(home[name], name, package)
        except ModuleNotFoundError as error:
            missing = _EXTRAS.get(error.name or "", extra)
            if missing is None:
                raise
            what = package if missing == extra else f"{package}.{name}"
            raise ModuleNotFoundError(
                f'{what} needs {error.name}, which is not installed: pip install "counterpoise[{missing}]"',
                name=error.name,
            ) from error

    return get, lambda: sorted(home), sorted(home)


def import_optional(module: str, kind: type[Exception], message: str) -> "Any":
    """Return an optional module, or raise an error of that kind with the message."""
    try:
        return import_module(module)
    except ImportError as error:
        raise kind(message) from error


def _load(module: str, name: str, package: str) -> "Any":
    """Return a name inside a module, or the submodule of that name."""
    if module != package:
        inside = import_module(module)
        if hasattr(inside, name):
            return getattr(inside, name)
    return import_module(f"{module}.{name}")


def _homes(stub: str) -> dict[str, str]:
    """Return the module from which a stub imports each name, one a line: ``from module import name as name``."""
    with open(stub, encoding="utf-8") as file:  # noqa: PTH123 - pathlib is heavy
        words = [line.split() for line in file if line.startswith("from ")]
    return {name: module for _, module, _, name, _, _ in words}
