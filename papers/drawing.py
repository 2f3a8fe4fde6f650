"""The figures of the pages: panels side by side, and the Markdown that shows them."""

from typing import Any


def panels(n_panels: int, *, size: tuple[float, float], n_columns: int = 4) -> tuple[Any, list[Any]]:
    """Return a figure and its panels, each of a size in inches, so many in a row."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - an optional package

    n_columns = min(n_panels, n_columns)
    n_rows = -(-n_panels // n_columns)
    figure = Figure(figsize=(size[0] * n_columns, size[1] * n_rows), layout="constrained")
    axes = [figure.add_subplot(n_rows, n_columns, place + 1) for place in range(n_panels)]
    for axis in axes:
        axis.grid(alpha=0.25)
    return figure, axes


def picture(name: str, caption: str) -> str:
    """Return the Markdown of a figure with its caption below it."""
    return f"![{caption}]({name})\n\n*{caption}.*"
