# Everything starts here: each target sets up what it needs first.
SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV := .venv
PYTHON := $(VENV)/bin/python
READY := $(VENV)/ready
SOURCES := placement enforcer extender process proto standins benchmarks tests demo kubectl_numakin

.PHONY: help setup demo test check format proto simulate clean

help:  ## what can be made
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY)  ## Debian packages (as root), and the virtual environment

$(READY): pyproject.toml setup/debian-packages setup/install
	@setup/install $(VENV)
	@touch $@

demo: $(READY)  ## the main job on this machine, without a cluster (ARGS=--keep leaves it running)
	@$(PYTHON) -m demo $(ARGS)

simulate: $(READY)  ## a simulated cluster under load (ARGS="--nodes 1000")
	@$(PYTHON) -m benchmarks.cluster $(ARGS)

test: $(READY)  ## all tests (ARGS=... for pytest)
	@$(PYTHON) -m pytest $(ARGS)

check: $(READY)  ## lint, format, types, the layers' contracts, generated code
	@$(VENV)/bin/ruff check $(SOURCES)
	@$(VENV)/bin/ruff format --check $(SOURCES)
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports --no-cache
	@setup/generate --check

format: $(READY)  ## lint with fixes, and format
	@$(VENV)/bin/ruff check --fix $(SOURCES)
	@$(VENV)/bin/ruff format $(SOURCES)

proto: $(READY)  ## generate the protocol code anew
	@setup/generate

clean:  ## remove what was made
	rm -rf $(VENV) .cache build *.egg-info
