# Everything runs in a virtual environment of the project's own; Python 3.11+ and a C compiler are all it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: setup demo test lint types check benchmark clean

setup: $(READY)

$(READY): pyproject.toml setup.py $(wildcard src/native/*)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Jointwise needs Python 3.11 or newer; set PYTHON=python3.11 (or later)."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $(READY)

demo: setup
	@$(BIN)/jointwise demo

# Files of tests are shared out among the cores, each with one thread of linear algebra.
test: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

check: lint types test

benchmark: setup
	$(BIN)/python benchmarks/rigid.py
	$(BIN)/python benchmarks/calibration.py
	$(BIN)/python benchmarks/simulation.py
	$(BIN)/python benchmarks/gms.py
	$(BIN)/python benchmarks/joint.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info src/jointwise/*.so demo-output
