# Every target makes the environment it needs: Python 3.11 and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: setup demo test check conformance bench bench-startup docs clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(READY)
	@$(BIN)/python -m scripts.demo

test: $(READY)
	$(BIN)/python -m pytest

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/python -m pytest tests/test_architecture.py

conformance: $(READY)
	$(BIN)/python -m tests.conformance.run
	$(BIN)/python -m pytest tests/server/inspector_checks.py

docs: $(READY)
	$(BIN)/python -m scripts.make_docs

bench: bench-startup

bench-startup: $(READY)
	$(BIN)/python -m benchmarks.startup

clean:
	rm -rf $(VENV)
