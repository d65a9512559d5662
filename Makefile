# Two commands: `make run` and `make test`. Everything they need goes into .venv, by plain pip.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready

.PHONY: run reproduce browser mpi test test-all chaos lint bench goals queries peers residuals practice methods clean help

run: $(READY)  ## the paper's ridge comparison: a live display, a table, a report in report/ridge-quick
	$(BIN)/zerothresh reproduce ridge --quick --out report/ridge-quick

reproduce: $(READY)  ## all of the paper's experiments: reports in report/all and report/attack, verdicts in docs/reproduction.md
	$(BIN)/zerothresh reproduce all --out report/all
	$(BIN)/python scripts/put_verdicts.py report/all/manifest.json
	$(BIN)/zerothresh reproduce attack --budget 6000 --jobs 1 --out report/attack
	$(BIN)/python scripts/put_attacks.py report/attack

browser:  ## Chromium for the tests that look at a report, from the system's packages, if that can be done here
	@command -v chromium >/dev/null || { apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium; } \
		>/dev/null 2>&1 || echo "Chromium could not be installed: the tests that need it are skipped"

mpi: $(READY)  ## Open MPI and mpi4py for the tests that need them, from the system's packages, if that can be done here
	@command -v mpiexec >/dev/null || { apt-get -qq update && apt-get -qq install -y --no-install-recommends openmpi-bin; } \
		>/dev/null 2>&1 || echo "Open MPI could not be installed: the tests that need it are skipped"
	@$(BIN)/pip install -q -e '.[mpi]' || echo "mpi4py could not be installed: the tests that need it are skipped"

test: $(READY)  ## the tests, in a few minutes
	$(BIN)/pytest -q -n 2 --dist loadgroup

test-all: $(READY) mpi  ## the slow tests too
	$(BIN)/pytest -q -n 2 --dist loadgroup -m ''

chaos: $(READY)  ## disturb 512 runs by kills, Ctrl-C, forks, copies, daemons and failing disks, and count what was lost (10 minutes)
	$(BIN)/python tests/chaos.py

lint: $(READY)  ## style, types, and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY)  ## the benchmarks, each printing its ratio (queries: a few problems)
	for name in overhead blocks variance journal "queries --quick --no-peers" "theory --quick" \
	    "scaling --quick --repeats 1 --draws 1"; do set -- $$name; file=$$1; shift; \
	  echo "== $$file"; $(BIN)/python benchmarks/$$file.py $$@ || exit 1; done

goals: $(READY)  ## measure the goals of auto on the development set (python benchmarks/goals.py --set judge: the judging set)
	$(BIN)/pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/goals.py --jobs 2

queries: $(READY)  ## measure all goals on the development and the judging set, and write docs/queries.md: about an hour
	$(BIN)/pip install -q -e '.[bench]'
	mkdir -p report
	$(BIN)/python benchmarks/goals.py --jobs 2 --json report/goals-dev.json
	$(BIN)/python benchmarks/goals.py --set judge --jobs 2 --json report/goals-judge.json
	$(BIN)/python benchmarks/goal_page.py report/goals-dev.json report/goals-judge.json

peers: $(READY)  ## calls of auto, the paper's methods at their best and other packages on 24 problems, with the search for settings: hours
	$(BIN)/pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/queries.py --plot report/data-profiles.png

residuals: $(READY)  ## runs of gauss-newton where calls return all residuals, beside DFO-LS, SciPy and Py-BOBYQA, and docs/residuals.md: an hour
	$(BIN)/pip install -q -e '.[bench]'
	mkdir -p report
	$(BIN)/python benchmarks/residuals.py --set former --json report/residuals-former.json
	$(BIN)/python benchmarks/residuals.py --set judge --json report/residuals-judge.json
	$(BIN)/python benchmarks/residual_page.py report/residuals-former.json report/residuals-judge.json

practice: $(READY)  ## the worked examples beside their rivals, and docs/practice.md: an hour; genes, BayBE and portfolios need more, see practice.py
	$(BIN)/pip install -q -e '.[bench]'
	mkdir -p report
	$(BIN)/python benchmarks/practice.py wavelengths markers --json report/practice.json
	$(BIN)/python benchmarks/practice_page.py report/practice.json

methods: $(READY)  ## calls of every method on six problems (minutes), and the page of all methods from them
	$(BIN)/pip install -q -e '.[bench,peers]'
	cd benchmarks && ../$(BIN)/python methods.py
	$(BIN)/python scripts/make_methods_page.py

clean:  ## remove everything that the other targets create
	rm -rf .venv report .pytest_cache .mypy_cache .ruff_cache .hypothesis

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "zerothresh needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@
