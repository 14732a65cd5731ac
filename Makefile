# Tasks of this repository. `make` lists them.
#
# Everything runs in .venv, which the first task that needs it sets up (scripts/setup.sh); the stamp
# file makes the second time instant. PYTHON chooses the interpreter, e.g. `make test PYTHON=python3.12`.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast test-pythons lint format bench docs wheel clean distclean

help:  ## list the tasks
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml scripts/setup.sh
	@sh scripts/setup.sh "$(PYTHON)" "$(VENV)"
	@touch $@

setup: $(STAMP)  ## virtual environment with everything (the other tasks do this by themselves)

demo: $(STAMP)  ## digits: compile, simulate the RTL, place and route; the second run uses the cache
	@$(BIN)/python examples/demo.py

test: $(STAMP)  ## all tests
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder

test-fast: $(STAMP)  ## tests without simulation and synthesis, a minute or so
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile -m "not slow and not rtl and not synth and not netlist"

test-pythons: $(STAMP)  ## the tests that are not slow, on Python 3.10 to 3.13 (those that are installed)
	@$(BIN)/python -m nox --non-interactive $(ARGS)

lint: $(STAMP)  ## style, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)  ## mend what ruff can mend
	$(BIN)/ruff check --fix .

bench: $(STAMP)  ## the benchmark table (make bench ARGS="--layers --models kws")
	@$(BIN)/onnxhw bench $(ARGS)

docs: $(STAMP)  ## regenerate the generated pages in docs/
	$(BIN)/python scripts/generate_docs.py

wheel: $(STAMP)  ## dist/*.whl
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:  ## caches and outputs (keeps .venv)
	rm -rf build dist out sim_build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean  ## clean, and .venv
	rm -rf $(VENV) .nox
