# Everything runs from here on a machine with python3 (3.11 or newer) and make; `make help` lists the targets.
# Packages come from requirements/*.lock, by hash, into .venv; a stamp file a lock keeps later runs fast.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/python -m pip --disable-pip-version-check install -qq
LOCKS := demo test dev docs lock
WORKERS ?= 2
# `warpsmith.kernel` is no module once it is imported: the decorator stands in its place, on the page of `warpsmith`
API := warpsmith warpsmith.base.errors warpsmith.debugkit '!warpsmith\.kernel$$'
PYTEST := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS)

##@ Use
.PHONY: help demo
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMPS)/demo ## a warp-specialised Hopper attention kernel on the CPU, and a broken barrier named
	@$(BIN)/warpsmith demo

##@ Check
.PHONY: test test-all lint format types layers check
test: $(STAMPS)/test ## the test suite (10 minutes at most on two cores)
	$(PYTEST) --ignore=tests/slow $(ARGS)

test-all: $(STAMPS)/test ## the test suite with its long tests (40 minutes at most)
	$(PYTEST) $(ARGS)

lint: $(STAMPS)/dev ## ruff: errors, style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMPS)/dev ## mend style and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMPS)/dev ## basedpyright, strict
	$(BIN)/basedpyright --pythonpath $(BIN)/python

layers: $(STAMPS)/test ## import-linter: a room imports only rooms below it
	$(BIN)/lint-imports
	$(BIN)/lint-imports cycles.ini

check: lint types layers docs test ## what CI runs

##@ Make
.PHONY: docs bench lock clean
docs: $(STAMPS)/docs ## HTML documentation in site/
	rm -rf site
	$(BIN)/sphinx-build -q -W --keep-going -b html docs site
	$(BIN)/python -W error::UserWarning -m pdoc --output-directory site/api --docformat markdown $(API)
	@echo "documentation: site/index.html"

bench: $(STAMPS)/test ## every benchmark, one after the other
	@for f in benchmarks/*.py; do echo "== $$f"; $(BIN)/python $$f; done

lock: $(STAMPS)/lock ## resolve the newest versions into requirements/*.lock
	@$(BIN)/python requirements/lock.py

clean: ## remove what make made
	rm -rf $(VENV) site build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache

# --- the environment ------------------------------------------------------------------------------------------------

$(STAMPS)/venv:
	@[ -n "$(PYTHON)" ] || { echo "make: Python 3.11 or newer is needed and none was found; set PYTHON=/path/to/python3"; exit 2; }
	@echo "creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "make: '$(PYTHON) -m venv' failed; on Debian and Ubuntu: apt-get install python3-venv"; exit 2; }
	@mkdir -p $(STAMPS) && touch $@

# the package itself, editable; its build backend stands in every lock
$(addprefix $(STAMPS)/,$(LOCKS)): $(STAMPS)/%: requirements/%.lock pyproject.toml | $(STAMPS)/venv
	@echo "installing requirements/$*.lock"
	@$(PIP) --require-hashes --only-binary :all: -r requirements/$*.lock
	@$(PIP) --no-build-isolation --no-deps --editable .
	@touch $@
