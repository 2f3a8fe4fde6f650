# Two commands for a newcomer: `make demo` and `make test`. Each sets up its own .venv first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test lint bench bench-full wheel-test clean

help:
	@echo "make demo        show the tail of a pool of models on real data, as a table and a figure"
	@echo "make test        run the tests"
	@echo "make lint        ruff, mypy, import contracts"
	@echo "make bench       quick benchmarks against peers (make bench-full for all sizes)"
	@echo "make wheel-test  build the wheel and run the tests against it"

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

demo: .venv/installed
	$(BIN)/python examples/demo.py

test: .venv/installed
	$(BIN)/python -m pytest -q -n auto

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: .venv/installed
	$(BIN)/python bench/run.py

bench-full: .venv/installed
	$(BIN)/python bench/run.py --full

wheel-test: .venv/installed
	rm -rf dist .venv-wheel
	$(BIN)/python -m build --wheel --outdir dist .
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls dist/*.whl)[test]"
	.venv-wheel/bin/python -m pytest -q -n auto tests docs README.md

clean:
	rm -rf .venv .venv-wheel dist build demo-output .mypy_cache .ruff_cache .pytest_cache .hypothesis
