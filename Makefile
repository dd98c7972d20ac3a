# Every target sets up what it needs by itself: the virtual environment, and apt packages for the tests.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check --progress-bar off -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo setup test test-vehicle check bench bench-quality faults soak clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

demo: .venv/.export  ## train, evaluate, export, verify, smoke-test and drive, on rendered roads
	$(BIN)/edge-road demo

setup: .venv/.dev  ## everything for development, in .venv

test: .venv/.dev .venv/.system  ## the whole test suite
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-vehicle: .venv/.dev  ## the vehicle part on Python 3.10 and 3.12, and its packages for aarch64
	bash tests/vehicle_part.sh

check: .venv/.dev  ## ruff and mypy
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --python-version 3.10 & oldest=$$!; $(BIN)/mypy && wait $$oldest

bench: .venv/.dev  ## runtime, training and scale beside the peers, into docs/benchmarks (half an hour)
	$(BIN)/python -m benchmarks.peers.setup
	$(BIN)/python -m benchmarks

bench-quality: .venv/.dev  ## trainings to the end beside the peers' (two hours; goes on when interrupted)
	$(BIN)/python -m benchmarks.peers.setup
	$(BIN)/python -m benchmarks.quality $(if $(DATA),--data $(DATA)) $(if $(WEIGHTS),--weights $(WEIGHTS))

faults: .venv/.dev .venv/.system  ## every fault of the matrix, measured into docs/reliability.md
	$(BIN)/python tests/faults/make_table.py

soak: .venv/.dev .venv/.system  ## fifteen minutes of a daemon amid failing cameras, brokers and workers
	$(BIN)/python tests/soak/soaking.py 900

clean:  ## remove the environment and caches; runs and bundles stay
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info

# Not .venv/bin/python, which is also there when venv has failed halfway, for want of ensurepip.
.venv/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "edge_road needs Python 3.10 or newer; try: make PYTHON=python3.11 ..."; exit 2; }
	$(PYTHON) -m venv .venv

.venv/.export: pyproject.toml constraints.txt | .venv/bin/pip
	@echo "installing the training and export packages (about 6 GB, a few minutes) ..."
	$(PIP) -e '.[export]'
	@touch $@

.venv/.dev: .venv/.export
	$(PIP) -e '.[dev]'
	@touch $@

# Tests that need one of these skip with a reason when it cannot be installed.
.venv/.system: tests/apt-packages.txt
	@missing=$$(for p in $$(cat tests/apt-packages.txt); do dpkg -s $$p >/dev/null 2>&1 || echo $$p; done); \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ]; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	elif [ -n "$$missing" ]; then echo "not installed (needs root): $$missing"; fi
	@touch $@
