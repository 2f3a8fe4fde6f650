"""Names that load their module on first use, so that importing a package stays light.

A package's public names are written once, in its stub ``__init__.pyi``, as imports: type checkers read them there, and
so does ``lazy``, which makes each of them when it is asked for.
"""

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy(
    package: str, file: str, *, extra: str | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return a package's ``__getattr__``, ``__dir__`` and ``__all__``.

    ``file`` is its ``__file__``, beside which the stub stands. ``extra`` names the optional dependencies without which
    its modules cannot be imported.
    """
    home, is_inside = _homes(Path(file).with_name("__init__.pyi"))

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {', '.join(home)}")
        try:
            module = import_module(home[name])
        except ModuleNotFoundError as error:
            if extra is None:
                raise
            raise ModuleNotFoundError(
                f'{package} needs {error.name}, which is not installed: pip install "counterpoise[{extra}]"'
            ) from error
        return getattr(module, name) if is_inside[name] else module

    return get, lambda: sorted(home), sorted(home)


def _homes(stub: Path) -> tuple[dict[str, str], dict[str, bool]]:
    """Return the module of each name that a stub imports, and whether the name is inside it or is the module itself."""
    home, is_inside = {}, {}
    for line in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(line, ast.Import | ast.ImportFrom):
            for one in line.names:
                name = one.asname or one.name
                home[name] = one.name if isinstance(line, ast.Import) else str(line.module)
                is_inside[name] = isinstance(line, ast.ImportFrom)
    return home, is_inside
