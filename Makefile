# Everything there is to type. Needs Python 3.11 or newer, git and make; all else goes into .venv.
# Conformance alone needs Node.js, too.

VENV := .venv
BIN := $(VENV)/bin
RUNNABLE := $(VENV)/.runnable
STAMP := $(VENV)/.installed
DXOS := tests/conformance/vendor/dxos
CLOUDFLARE := tests/conformance/vendor/cloudflare
CLIENTS := $(DXOS)/node_modules/.installed $(CLOUDFLARE)/node_modules/.installed
DATA ?= data
ARGS ?=
PYTHON ?= $(shell for p in python3.11 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help install run test fast check docs reference bench conformance lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP) ## Set up .venv: the pinned packages, checked against their hashes, and this one

# Both are skipped while they are newer than what they were made from. What serves is a small part of what tests.
$(RUNNABLE): requirements/run.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "edgequeues needs Python 3.11 or newer: make PYTHON=/path/to/python" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { echo "making $(VENV)"; $(PYTHON) -m venv --clear $(VENV); }
	$(BIN)/python -m pip install --require-hashes -r requirements/run.txt
	$(BIN)/python -m pip install --no-deps --no-build-isolation -e .
	@touch $@

$(STAMP): requirements/dev.txt $(RUNNABLE)
	$(BIN)/python -m pip install --require-hashes -r requirements/dev.txt
	@touch $@

# 428 and 314 MB. What npm may do there is in .npmrc: no scripts of packages, no lock file, which would name an index.
$(CLIENTS): %/node_modules/.installed: %/package.json %/.npmrc
	@node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null && npm --version >/dev/null 2>&1 || { \
		echo "the clients that others made need Node.js 20 or newer, with npm: install it and try again" >&2; \
		echo "(Debian 13 packages 20; Debian 12 packages 18: take it from nodejs.org there)" >&2; \
		exit 1; }
	cd $* && npm install
	@touch $@

run: $(RUNNABLE) ## Serve on 127.0.0.1:8700 from ./data (DATA=dir), and print what to try with curl
	$(BIN)/edgequeues serve --data $(DATA) --hints $(ARGS)

test: install ## Run every test (ARGS="-k name" narrows)
	$(BIN)/pytest $(ARGS)

fast: install ## Run the tests that need neither minutes nor real processes
	$(BIN)/pytest -m "not slow" $(ARGS)

check: install ## Lint, format, types, layers, and the rules of the house
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest tests/house

docs: install ## Build the documentation's site into ./site, and check every link of it
	$(BIN)/zensical build --clean --strict

reference: install ## Write the pages and pictures of docs/ that are made from the code
	$(BIN)/python -m tests.reference

conformance: install $(CLIENTS) ## Run each dialect's golden requests and replies, and the clients made by others
	$(BIN)/pytest tests/http/test_transcripts.py tests/conformance $(ARGS)

bench: install ## Measure, and print the tables (ARGS="--help" shows what)
	$(BIN)/edgequeues bench $(ARGS)

# No header and no options in the output: they would name this machine and its package index.
PIN := $(BIN)/pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe --annotation-style line \
	--no-header --no-emit-index-url --no-emit-trusted-host --no-emit-find-links

lock: install ## Pin requirements/*.in anew (ARGS=--upgrade takes newer versions)
	$(PIN) $(ARGS) --output-file requirements/dev.txt requirements/dev.in
	$(PIN) --constraint requirements/dev.txt --output-file requirements/run.txt requirements/run.in
	sed -i -e '/^--/d' -e '/./,$$!d' -e '1i # Written by `make lock`, exact and with hashes.' \
		requirements/dev.txt requirements/run.txt

clean: ## Remove .venv, Node.js packages and every cache; data stays
	rm -rf $(VENV) $(DXOS)/node_modules $(CLOUDFLARE)/node_modules dist site .cache .bench-peers .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
