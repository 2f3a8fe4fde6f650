# Two commands for a newcomer: `make demo` and `make test`. Each first installs into .venv what it needs.
PYTHON ?= python3
BIN := .venv/bin
# Where the plain package is the large build for GPUs, name the one for processors as PyTorch's own pages say.
TORCH ?= torch==2.13.0

.PHONY: help demo test test-all drill test-networks test-lowest lock lint size docs bench bench-full reproduce wheel-test changelog release-check known-faults fuzz clean

help:
	@echo "make demo        a whole story on made-up loans, whose truth is known; ends with a report"
	@echo "make test        run the tests of what a change is likely to break: some minutes"
	@echo "make test-all    run these and the slow tests in one go"
	@echo "make test-networks  install PyTorch too, and run the tests of networks"
	@echo "make drill       random sequences of calls and commands, some of them killed, for a minute: make drill SECONDS=3600"
	@echo "make lint        ruff, mypy, import contracts"
	@echo "make size        code lines, functions, the wheel and what four fits walk, beside what is asked of them"
	@echo "make docs        build the documentation site into build/docs, with warnings as errors"
	@echo "make bench       quick benchmarks against peers; make bench-full: all sizes in 25 minutes, and docs/results/benchmarks.md"
	@echo "make reproduce PAPER=vadaboost  an experiment on real data (papers/README.md); ARGS=--quick takes about a minute"
	@echo "make wheel-test  build the wheel and run the tests against it"
	@echo "make lock        renew the versions that CI tests"
	@echo "make test-lowest  run the tests with the oldest versions that pyproject.toml allows"
	@echo "make fuzz        damaged and random inputs for every reader, for a minute: make fuzz SECONDS=600"
	@echo "make changelog   show CHANGELOG.md's next part; make changelog VERSION=X.Y.Z writes it and removes the fragments"
	@echo "make release-check  wheel and sdist as they would be published, each installed and used alone"
	@echo "make known-faults   ask pypi.org for known faults of what release-check installed; needs a network"

# Bytecode of what is imported is written at its first import, wherever that is forbidden too: compiling every file of every
# package costs minutes, and compiling those that are imported in each of hundreds of processes costs more.
export PYTHONDONTWRITEBYTECODE :=
PIP := -m pip install --no-compile --disable-pip-version-check
# The versions that CI tests. Without LOCK the newest are installed: make test LOCK=
LOCK := --constraint requirements/ci.txt
# pip says nothing while it unpacks: a line every few seconds says that it goes on.
# The pip that comes with older Pythons does not know groups of dependencies.
define install
	@echo "installs counterpoise[$(1)] into .venv"
	@(while sleep 4 >/dev/null 2>&1; do echo "  still installing"; done) & beat=$$!; trap "kill $$beat" EXIT; \
	{ test -x $(BIN)/pip || $(PYTHON) -m venv .venv; } && \
	$(if $(2),$(BIN)/python $(PIP) --quiet "pip>=25.1" &&) \
	$(BIN)/python $(PIP) --progress-bar off $(LOCK) --editable ".[$(1)]" $(2)
	touch $(3)
endef

# The demo needs the command line, not the tools of development.
.venv/installed-cli: pyproject.toml requirements/ci.txt src/counterpoise/__init__.py
	$(call install,cli,,$@)

.venv/installed: pyproject.toml requirements/ci.txt src/counterpoise/__init__.py
	$(call install,all,--group dev,$@ .venv/installed-cli)

demo: .venv/installed-cli
	$(BIN)/counterpoise demo

# Tests of one file share what they fit.
PYTEST := -m pytest -q -n auto --dist loadfile
test: .venv/installed
	$(BIN)/python $(PYTEST) -m "not slow"

# In one go: a second one would start workers, collect and fit again.
test-all: .venv/installed
	$(BIN)/python $(PYTEST)

SECONDS := 60
SEED := 0
drill: .venv/installed
	$(BIN)/python tools/fault_drill.py --seconds $(SECONDS) --seed $(SEED)

fuzz: .venv/installed
	$(BIN)/python tools/fuzz.py --seconds $(SECONDS) --seed $(SEED)

# The other tests have passed without PyTorch by then: nothing else may need it.
test-networks: .venv/installed
	$(BIN)/python $(PIP) --compile --quiet "$(TORCH)"  # which every process of the tests imports nearly whole
	$(BIN)/python $(PYTEST) $$(ls tests/*/test_*network*.py src/counterpoise/learners/*network*.py) docs/guide/networks.md
	$(BIN)/python -m pytest -q $$(grep -rlE "torch|NetworkLearner|ESTIMATORS" tests --include=test_*.py | grep -v network) tests/test_examples.py \
	  -k "NetworkLearner or network or every_learner_fits or plot_torch or heavy"

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# How large the package is, beside what is asked of it.
size: .venv/installed
	rm -rf build/size
	$(BIN)/python -m build --wheel --outdir build/size . >/dev/null
	$(BIN)/python tools/size.py --wheel build/size/*.whl --walks

.venv/installed-docs: .venv/installed
	$(BIN)/python $(PIP) --quiet $(LOCK) --group docs
	touch $@

# Nothing is fetched, neither here nor by the pages. ARGS="-E" builds all of it anew.
docs: .venv/installed-docs
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet $(ARGS) docs build/docs
	$(BIN)/python docs/check_links.py build/docs

.venv/installed-bench: .venv/installed
	$(BIN)/python $(PIP) --quiet --group bench
	touch $@

bench: .venv/installed-bench
	$(BIN)/python bench/run.py

bench-full: .venv/installed-bench
	$(BIN)/python bench/run.py --full

# The comparison has peers, which nothing else needs; one that does not install is a line of its page.
.venv/installed-peers: .venv/installed
	$(BIN)/python $(PIP) --quiet --group peers
	-$(BIN)/python $(PIP) --quiet --no-deps error-parity dro
	-$(BIN)/python $(PIP) --quiet ecos "cvxpy>=1.5"
	touch $@

reproduce: .venv/installed $(if $(filter comparison margins ratios proof watching,$(PAPER)),.venv/installed-peers) \
  $(if $(filter inside-goals unseen-groups alternatives amounts by-hand dataset-constraints,$(PAPER)),.venv/installed-bench)
	$(BIN)/python -m papers $(PAPER) $(ARGS)

# What packaging can break: files, entry points, imports. All else is the same source, tested before.
PACKAGED := base/test_import.py base/test_public_names.py cli/test_cli.py report/test_report.py \
	cli/test_commands.py::test_from_a_table_to_a_report \
	explorer/test_static_page.py explorer/test_widget.py datasets/test_loading.py
wheel-test: .venv/installed
	rm -rf dist .venv-wheel
	$(BIN)/python -m build --wheel --outdir dist .
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python $(PIP) --quiet --no-deps dist/*.whl
	# What it depends on lies in .venv, behind the wheel; release-check installs all of it anew.
	$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
	  > "$$(.venv-wheel/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/dependencies.pth"
	cd / && "$(CURDIR)/.venv-wheel/bin/python" -c "import counterpoise; assert '.venv-wheel' in counterpoise.__file__"
	.venv-wheel/bin/python $(PYTEST) $(PACKAGED:%=tests/%) README.md

# The newest versions for each Python and system, without the address of an index. What make test needs comes with it.
lock:
	rm -rf .venv-lock
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python $(PIP) --quiet uv
	.venv-lock/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --extra all --group dev --group docs \
	  --strip-extras --no-emit-index-url --no-header --no-annotate --output-file requirements/ci.txt pyproject.toml

# The oldest versions that pyproject.toml names, on the oldest Python that it names where there is one. The tools of the
# tests are the newest that go with them, and what old libraries say of newer ones below them is not ours. Numbers in the
# documentation and licences are those of an installation of today.
LOWEST ?= $(PYTHON)
test-lowest:
	rm -rf .venv-lowest
	$(LOWEST) -m venv .venv-lowest
	.venv-lowest/bin/python $(PIP) --quiet uv
	.venv-lowest/bin/uv pip compile --quiet --python .venv-lowest/bin/python --resolution lowest-direct --extra all \
	  --output-file .venv-lowest/lowest.txt pyproject.toml
	# Before 1.9 scikit-learn reads frames of polars by a protocol that polars 2 is without.
	echo "polars<2" >> .venv-lowest/lowest.txt
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python --constraint .venv-lowest/lowest.txt --editable ".[all]" --group test
	.venv-lowest/bin/python $(PYTEST) -W ignore::DeprecationWarning -W ignore::FutureWarning README.md src tests --ignore tests/test_release.py

# What is published must work where nothing of the repository is at hand.
# towncrier takes two fragments of one issue and type for the same unless a number tells them apart: each gets its own.
changelog: .venv/installed
	rm -rf build/changelog && mkdir -p build/changelog/src && cp -r pyproject.toml CHANGELOG.md changelog.d build/changelog
	cd build/changelog/changelog.d && n=0 && for file in *.*.*.md; do test -e "$$file" || continue; n=$$((n + 1)) && mv "$$file" "$${file%.*.md}.$$n.md" || exit 1; done
	cd build/changelog && "$(CURDIR)/$(BIN)/towncrier" build --yes $(if $(VERSION),--version $(VERSION),--draft --version next)
ifdef VERSION
	cp build/changelog/CHANGELOG.md CHANGELOG.md && rm -f changelog.d/*.*.md
endif

release-check: .venv/installed
	rm -rf dist .venv-release && mkdir dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python $(PIP) --quiet twine && $(BIN)/twine check --strict dist/*
	for file in dist/*; do \
	  rm -rf .venv-release && $(PYTHON) -m venv .venv-release && \
	  .venv-release/bin/python $(PIP) --quiet "$$file[cli]" && \
	  (cd / && "$(CURDIR)/.venv-release/bin/counterpoise" demo --help >/dev/null && \
	   "$(CURDIR)/.venv-release/bin/python" -c "import counterpoise; print(counterpoise.__version__, counterpoise.__file__)") || exit 1; \
	done
	.venv-release/bin/python tools/licences.py --extra cli --bill .venv-release/bill.json

# --strict: where pypi.org is not reached, or does not know a version, this fails; otherwise it would pass unasked.
known-faults:
	@test -x .venv-release/bin/python || { echo "Run make release-check first: what it installs is what is asked about."; exit 1; }
	rm -rf .venv-audit && $(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python $(PIP) --quiet pip-audit
	.venv-release/bin/python -m pip freeze --exclude counterpoise > .venv-audit/installed.txt
	.venv-audit/bin/pip-audit --strict --no-deps --disable-pip --requirement .venv-audit/installed.txt

clean:
	rm -rf .venv .venv-audit .venv-wheel .venv-lowest .venv-lock .venv-release dist build demo-output docs/gallery docs/api/generated .mypy_cache .ruff_cache .pytest_cache .hypothesis
