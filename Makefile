# Everything a newcomer types; `make` alone lists it. Needs make and Python 3.11 or newer.

PYTHON ?= python3
# Twice as many as there are cores, on a small machine: for a third of its time a process of the run waits for something.
WORKERS ?= 4
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
export PYTHON
# Compiled bytecode is what keeps a start short.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help up test test-slow check format bench screenshots docs constraints clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

up: $(VENV)/.installed ## Install if needed, then start on 127.0.0.1:4242 (honours PORT and ROOKERY_HOME)
	@exec $(BIN)/rookery up

test: $(VENV)/.installed-dev ## Run the tests on SQLite and PostgreSQL (ARGS="-k name")
	@scripts/postgres.sh
	@scripts/chromium.sh >/dev/null
	@$(BIN)/python scripts/assets.py --dev
	-@$(BIN)/python -m tests.clients.install
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

test-slow: $(VENV)/.installed-dev ## Run the tests that take minutes
	@scripts/postgres.sh
	$(BIN)/python -m pytest -m slow -o faulthandler_timeout=3600 $(ARGS)

check: export PYRIGHT_PYTHON_GLOBAL_NODE := off
check: export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
check: $(VENV)/.installed-dev ## Lint, formatting, types and the shape of the source
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/python -m pytest -q tests/test_architecture.py

format: $(VENV)/.installed-dev ## Sort the imports and lay out the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed ## Measure against peers, into build/bench (ARGS="startup --quick")
	$(BIN)/python -m benchmarks $(ARGS)

screenshots: $(VENV)/.installed ## Take pictures of the pages, into build/screenshots
	@browser=$$(scripts/chromium.sh) && $(BIN)/python scripts/screenshots.py "$$browser" build/screenshots

docs: $(VENV)/.installed ## Write docs/tools.md anew from the registry
	@mkdir -p build
	$(BIN)/rookery tools --markdown > build/tools.md && mv build/tools.md docs/tools.md

constraints: ## Pin the newest versions that pyproject.toml allows
	@mkdir -p build
	scripts/freeze.sh > build/constraints.txt && mv build/constraints.txt constraints.txt

clean: ## Remove the virtual environments, build/ and the caches; never a home folder
	rm -rf $(VENV) .venv-peers build dist .pytest_cache .ruff_cache .hypothesis benchmarks/node/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.installed: pyproject.toml constraints.txt
	@scripts/install.sh $(VENV) embed,code
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt
	@scripts/install.sh $(VENV) dev,embed,notify,a2a,claude,code-more,algorand
	@touch $(VENV)/.installed $@
