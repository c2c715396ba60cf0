# Everything starts here: each target sets up what it needs first.
SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV := .venv
PYTHON := $(VENV)/bin/python
READY := $(VENV)/ready
DEMO := $(VENV)/ready-demo
SOURCES := numakin enforcer extender lab tools benchmarks tests

.PHONY: help setup demo cluster test test-all soak fuzz kubernetes kustomize helm runtimes emulated check format proto simulate bench bench-quick quality reference docs lock audit images release sbom programs page clean

help:  ## what can be made
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY)  ## Debian packages (as root), and the virtual environment

$(READY): pyproject.toml tools/setup/debian-packages tools/setup/install tools/setup/locked/dev.txt
	@tools/setup/install $(VENV) all
	@touch $@

# A fraction of the rest: an environment that is ready for all is ready for the demo.
$(DEMO): pyproject.toml tools/setup/debian-packages tools/setup/install tools/setup/locked/demo.txt
	@[ $(READY) -nt pyproject.toml ] || tools/setup/install $(VENV) demo
	@touch $@

demo: $(DEMO)  ## the main job on this machine, without a cluster (ARGS=--keep leaves it running)
	@$(PYTHON) -m lab.demo $(ARGS)

simulate: $(READY)  ## a simulated cluster under load (ARGS="--nodes 1000")
	@$(PYTHON) -m benchmarks.cluster $(ARGS)
	@$(if $(ARGS),,$(PYTHON) -m benchmarks.groups)

BENCH_READY := $(PYTHON) -c 'import gunicorn' 2>/dev/null || $(VENV)/bin/pip install --quiet --disable-pip-version-check --editable '.[bench]' \
	|| echo "bench: without gunicorn: the extender is measured beside its own server alone" >&2

bench: $(READY)  ## every target's figure in one table, about 100 minutes; goes on where it was ended (ARGS=--fresh)
	@$(BENCH_READY)
	@$(PYTHON) -m benchmarks $(ARGS)

bench-quick: $(READY)  ## the same in about seven minutes, smaller
	@$(BENCH_READY)
	@$(PYTHON) -m benchmarks --quick $(ARGS)

quality: $(READY)  ## how good the places are, on twelve graphs and machines of 2 to 32 NUMA nodes: an hour (ARGS="--numa-nodes 4 --seed 7")
	@$(PYTHON) -m benchmarks.quality --rows --fills 0.7 --worst 5 $(ARGS)

cluster: $(READY)  ## a real Kubernetes on loopback with numakin and an example, until ^C (ARGS="--nodes 5")
	@$(PYTHON) -m lab.cluster $(ARGS)

# Most tests wait for processes rather than compute: more of them at once than there are CPUs.
WORKERS := $(shell echo $$((5 * $$(nproc) < 12 ? 5 * $$(nproc) : 12)))
SIDE_BY_SIDE := --numprocesses=$(WORKERS) --dist=loadscope --no-loadscope-reorder --cache-clear
# A quarter of hypothesis' examples, others in each run (tests/examples.py).
SAMPLE := --hypothesis-profile=fewer

test: $(READY) $(if $(ARGS),,kubernetes kustomize helm runtimes)  ## the tests but those that take longest: 9 minutes on two quiet CPUs (ARGS=... for pytest: any tests)
	@$(PYTHON) -m pytest $(or $(ARGS),$(SIDE_BY_SIDE) $(SAMPLE) -m "not thorough") $(if $(ARGS),,|| $(PYTHON) -m tests.again $$?)

test-all: $(READY) kubernetes kustomize helm emulated  ## all tests, also emulated machines, images, several clusters, soak and fuzz: 40 minutes on two quiet CPUs (ARGS=... for pytest; CRIO_BIN, CONTAINERD_BIN, KUBERNETES_BIN: folders with programs that Debian lacks)
	@$(PYTHON) -m pytest $(SIDE_BY_SIDE) $(ARGS) || $(PYTHON) -m tests.again $$?

soak: $(READY)  ## pods come and go while processes are killed and the network, the API server and disks fail (ARGS="--kills 1000")
	@$(PYTHON) -m tests.soak $(ARGS)

fuzz: $(READY)  ## every parser under mutated input, with coverage (MINUTES=60)
	@$(PYTHON) -c 'import atheris' 2>/dev/null || $(VENV)/bin/pip install --quiet --disable-pip-version-check --editable '.[fuzz]'
	@$(PYTHON) -m tests.fuzz --minutes $(or $(MINUTES),60) $(ARGS)

kubernetes:  # built once (12 CPU minutes, 1.7 GB in ~/.cache/numakin); KUBERNETES_BIN=FOLDER: used as it is
	@tools/setup/kubernetes >/dev/null || echo "kubernetes: the tests with a real control plane will be skipped" >&2

kustomize:  # 6 MB in ~/.cache/numakin, where the machine has none that renders the manifests
	@tools/setup/kustomize >/dev/null || echo "kustomize: the tests of rendered manifests will be skipped" >&2

helm: $(READY)  # 40 MB in ~/.cache/numakin, where the machine has none
	@$(PYTHON) tools/setup/helm >/dev/null || echo "helm: the tests of the chart by Helm itself will be skipped" >&2

runtimes: $(READY)  # Debian root folders of container runtimes, 250 MB each in ~/.cache/numakin
	@$(PYTHON) -m tests.e2e.lab.built

emulated: $(READY)  # those, and the emulated machine: two minutes, once, and 1.2 GB
	@$(PYTHON) -m tests.e2e.lab.built emulated

check: $(READY)  ## lint, format, types, the layers' contracts, generated code, no link out of the tree
	@$(VENV)/bin/ruff check $(SOURCES)
	@$(VENV)/bin/ruff format --check $(SOURCES)
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports --no-cache
	@tools/setup/tree
	@PYTHON=$(abspath $(PYTHON)) tools/setup/generate --check
	@tools/setup/limits --check
	@$(PYTHON) tools/setup/lock --check
	@$(PYTHON) -m tools.reference --check
	@$(PYTHON) -m tools.reference.programs --check

format: $(READY)  ## lint with fixes, and format
	@$(VENV)/bin/ruff check --fix $(SOURCES)
	@$(VENV)/bin/ruff format $(SOURCES)

proto: $(READY)  ## generate the protocol code anew
	@PYTHON=$(abspath $(PYTHON)) tools/setup/generate

docs: $(READY)  ## the documentation as a site, in build/site, its links checked
	@NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --quiet --strict

reference: $(READY)  ## write the tables and pictures of docs/ that are made from the code
	@$(PYTHON) -m tools.reference

lock:  ## renew the locked dependencies in tools/setup/locked, within what pyproject.toml allows (needs the registry)
	@python3 tools/setup/lock

audit:  ## known vulnerabilities of the locked dependencies (needs the registry; says so where it can't be asked)
	@tools/setup/audit

images:  ## the container images, with buildah, podman or docker (PLATFORMS=linux/amd64,linux/arm64 ARGS="--registry NAME --push", ARGS=--help)
	@tools/setup/images $(if $(PLATFORMS),--platform $(PLATFORMS)) $(ARGS)

release: $(READY)  ## what is published of a version, into build/release, offline after `make images sbom` (ARGS="--url URL", ARGS=--no-images)
	@$(PYTHON) -m tools.release $(ARGS)

sbom:  ## the Python packages of the images and of the plugin's one file, as CycloneDX, in build/sbom
	@tools/setup/sbom

programs: $(READY)  ## compile the BPF programs ahead into enforcer/observe/bpf/built (root, bcc)
	@$(PYTHON) -m tools.reference.programs

page:  ## build the web page of web/ into extender/web/assets (Node.js 20 or later, npm)
	@cd web && npm ci --no-audit --no-fund && npm run --silent build

clean:  ## remove what was made
	rm -rf $(VENV) .cache build *.egg-info web/node_modules
