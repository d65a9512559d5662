# Two commands: `make run` and `make test`. Everything they need goes into .venv, by plain pip.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready

.PHONY: run test test-all chaos lint bench clean help

run: $(READY)  ## the paper's ridge comparison: a live display, a table, a report in report/ridge
	$(BIN)/zerothresh reproduce ridge --out report/ridge

test: $(READY)  ## the tests, in a few minutes
	$(BIN)/pytest -q -n 2

test-all: $(READY)  ## the slow tests too
	$(BIN)/pytest -q -n 2 -m ''

chaos: $(READY)  ## kill 120 runs at random instants, and count what was lost (minutes)
	$(BIN)/python tests/chaos.py

lint: $(READY)  ## style, types, and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)  ## the benchmarks, each printing its ratio
	for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

clean:  ## remove what the others made
	rm -rf .venv report .pytest_cache .mypy_cache .ruff_cache .hypothesis

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "zerothresh needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@
