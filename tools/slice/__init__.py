"""A measured slice of the library in plain NumPy: rows are counted once, everything else reads the counts.

See ``docs/design/cells.md`` for what it showed. ``python -m tools.slice.measure`` prints its tables.
"""
