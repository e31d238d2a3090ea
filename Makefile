# Two commands on a fresh machine: `make demo` runs the main job, `make test` the tests.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint docs bench clean

# The library alone, to run.
$(VENV)/installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/python -m pip install -q -e .
	touch $@

# With all that the tests need.
$(VENV)/installed-dev: pyproject.toml $(VENV)/installed
	$(BIN)/python -m pip install -q -e ".[dev]"
	touch $@

demo: $(VENV)/installed
	$(BIN)/jaxscope demo

test: $(VENV)/installed-dev lint
	$(BIN)/python -m pytest -n auto --dist loadfile

lint: $(VENV)/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

# Reference pages; needs the extra `docs`.
docs: $(VENV)/installed-dev
	$(BIN)/python -m pip install -q -e ".[docs]"
	$(BIN)/mkdocs build --strict

# Peers are installed into a place of their own.
.venv-bench/installed: pyproject.toml
	test -x .venv-bench/bin/python || $(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install -q --upgrade pip
	.venv-bench/bin/python -m pip install -q -e . jumanji==1.1.2 lbforaging==2.0.0 jaxmarl==0.2.0 overcooked-ai==1.1.0 \
		torch==2.13.0 transformers==5.24.0
	touch $@

bench: .venv-bench/installed
	.venv-bench/bin/jaxscope bench all --json benchmarks/results.json

clean:
	rm -rf $(VENV) .venv-bench build dist site *.egg-info
