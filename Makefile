# Everything runs in a virtual environment of the project; Python 3.11+ and a C compiler are required.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_READY := $(VENV)/.ready-demo
DEV_READY := $(VENV)/.ready-dev
LOCK := requirements-dev.lock
SOURCES := pyproject.toml setup.py $(wildcard src/native/* src/jointwise/runtime/core/*)

.PHONY: setup lock demo test thorough sanitize lint types docs check gate compat package benchmark clean

setup: $(DEV_READY)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Jointwise needs Python 3.11 or newer; set PYTHON=python3.11 (or later)."; exit 1; }
	@$(PYTHON) -m venv $(VENV)

# Without --no-compile pip would compile every module of every package, used or not: 80 MB and 30 s more.
$(DEMO_READY): $(SOURCES) | $(BIN)/python
	@echo "setting up $(VENV) for the demo ..."
	@$(BIN)/python -m pip install --quiet --no-compile --editable '.[report]'
	@touch $@

# The packages of the lock file only, each checked against its hash; setuptools, which builds the project, is one of them.
$(DEV_READY): $(SOURCES) $(LOCK) | $(BIN)/python
	@echo "setting up $(VENV) for development ..."
	@$(BIN)/python -m pip install --quiet --require-hashes --requirement $(LOCK)
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $(DEMO_READY) $@

# Newer versions for the lock file, for all supported versions of Python and systems; needs uv.
lock:
	@echo 'setuptools>=77' | uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate --no-emit-index-url --extra dev pyproject.toml - --output-file $(LOCK)
	@sed -i.old '1i\
	# What `make setup` installs for development and CI, with hashes; made by `make lock` from pyproject.toml.' $(LOCK)
	@rm $(LOCK).old

demo: $(DEMO_READY)
	@$(BIN)/jointwise demo

# Test files are distributed over the cores, each process with one thread of linear algebra. `test`: every command and
# law, in minutes; `thorough`: the tests that take longer, and more time for mutated files.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto
test: setup
	JOINTWISE_FUZZ_SECONDS=5 $(PYTEST) --dist loadfile -m 'not thorough'

thorough: setup
	$(PYTEST) --dist worksteal -m thorough
	JOINTWISE_FUZZ_SECONDS=60 $(PYTEST) tests/test_fuzz.py

sanitize: setup
	$(BIN)/python -c 'import jointwise._native'  # it is optional elsewhere: a failed build must not pass unnoticed
	tools/sanitize.sh

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

docs: setup
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build/html
	@echo "documentation: docs/_build/html/index.html"

# Figures that no change may make worse, against those in benchmarks/gate.toml; UPDATE=1 rewrites them.
gate: setup
	$(BIN)/python benchmarks/gate.py $(if $(UPDATE),--update)

# Numerical tests on every BLAS kernel, compiler option, Python and set of libraries that this machine has.
compat: setup
	$(BIN)/python tools/compat.py

# The sdist and the wheel, checked, and used in empty environments without a compiler; they are kept in dist.
package: setup
	$(BIN)/python tools/package.py

check: test lint types sanitize docs thorough gate compat package

benchmark: setup
	$(BIN)/python benchmarks/rigid.py
	$(BIN)/python benchmarks/calibration.py
	$(BIN)/python benchmarks/simulation.py
	$(BIN)/python benchmarks/gms.py
	$(BIN)/python benchmarks/runtime.py
	$(BIN)/python benchmarks/joint.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info src/jointwise/*.so demo-output docs/_build
