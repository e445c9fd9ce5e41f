# Two commands do everything on a fresh clone: `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test fuzz lint types bench clean

run: $(VENV)/.installed  ## install, train on a real graph beside an MLP and a GCN, print the certificate
	$(BIN)/gind train digits --beside mlp --beside gcn --out runs/digits --overwrite

test: $(VENV)/.installed-dev lint types  ## install with the dev extra, lint, types, import contract, all tests
	$(BIN)/python -m pytest

fuzz: $(VENV)/.installed-dev  ## the tests that generate their inputs, with inputs that differ each time
	$(BIN)/python -m pytest --hypothesis-profile fuzz -m hypothesis

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.installed-dev
	$(BIN)/mypy

bench: $(VENV)/.installed  ## time, memory and growth beside edge-storing code, on this machine
	$(BIN)/gind bench

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt src/gind/__init__.py | $(VENV)/bin/python
	$(BIN)/pip install --quiet -c constraints.txt -e .
	touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt src/gind/__init__.py | $(VENV)/bin/python
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@ $(VENV)/.installed
