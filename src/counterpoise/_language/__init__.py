"""The parts of the goal language: rows, tables, terms, expressions, and their binding to data."""
