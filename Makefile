# Everything here sets up what it needs, says so, and may be called again.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo lite test test-fast lint format bench setup pyodide-venv clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8000

help:  ## Show what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(VENV)/.ready  ## Make the virtual environment with all developer tools

# torch has its own line: pip resolves the exact version once and the rest does not touch it.
$(VENV)/.ready: pyproject.toml
	@echo "== virtual environment in $(VENV)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"  # 25.1 knows dependency groups
	@echo "== Python packages (torch takes a minute)"
	$(BIN)/python -m pip install --quiet --group dev --editable ".[desktop,cli,widgets]"
	@touch $@

$(VENV)/.demo-ready: pyproject.toml
	@test -e $(VENV)/.ready || echo "== virtual environment in $(VENV), with what the demo needs"
	@test -e $(VENV)/.ready || $(PYTHON) -m venv $(VENV)
	@test -e $(VENV)/.ready || $(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@test -e $(VENV)/.ready || $(BIN)/python -m pip install --quiet --group build
	@touch $@

demo: $(VENV)/.demo-ready  ## Build the MNIST page and serve it; prints its address (PORT=8000)
	$(BIN)/python web-demo/assemble.py
	$(BIN)/python web-demo/serve.py --port $(PORT)

lite: setup  ## Build the notebooks as a JupyterLite site in web-demo/_lite, which needs no server
	$(BIN)/python web-demo/lite.py

test: setup lint  ## Check style, types and layers, then run all tests (Pyodide and Chromium too)
	@echo "== Chromium"
	bash tests/browser/install-chromium.sh
	@echo "== tests"
	$(BIN)/python -m pytest

test-fast: setup  ## Run the tests that need no browser
	$(BIN)/python -m pytest -m "not browser" -x -q

lint: setup  ## ruff, mypy, pyright and the import contracts
	@echo "== style"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@echo "== types"
	$(BIN)/mypy
	$(BIN)/pyright --warnings
	@echo "== who imports whom"
	$(BIN)/lint-imports

format: setup  ## Let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup  ## Measure beside the peers; one table (needs a quiet machine)
	$(BIN)/python -m benchmarks

pyodide-venv:  ## With open internet and Python >= 3.13: run the portable tests in pyodide-build's venv
	$(PYTHON) -m venv .venv-pyodide-build
	.venv-pyodide-build/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	.venv-pyodide-build/bin/python -m pip install --quiet --group pyodide
	.venv-pyodide-build/bin/pyodide venv .venv-pyodide
	.venv-pyodide/bin/pip install --editable . pytest hypothesis
	.venv-pyodide/bin/python -m pytest -m "not desktop and not browser and not oracle" tests/pack tests/nn tests/inspect

clean:  ## Remove what was built; downloads in .cache stay
	rm -rf $(VENV) .venv-pyodide .venv-pyodide-build build dist web-demo/_site web-demo/_lite benchmarks/out
