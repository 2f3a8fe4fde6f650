"""Names that load their module on first use, so that importing a package stays light."""

from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy(
    package: str, home: dict[str, str], *, extra: str | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a package's ``__getattr__`` and ``__dir__``.

    ``home`` gives for each public name the submodule that holds it, or an empty string if the name is a submodule.
    ``extra`` names the optional dependencies without which the submodules cannot be imported.
    """

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {', '.join(home)}")
        try:
            module = import_module(f"{package}.{home[name] or name}")
        except ModuleNotFoundError as error:
            if extra is None:
                raise
            raise ModuleNotFoundError(
                f'{package} needs {error.name}, which is not installed: pip install "counterpoise[{extra}]"'
            ) from error
        return getattr(module, name) if home[name] else module

    return get, lambda: sorted(home)
