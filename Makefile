# Sets up, shows, tests and measures daifu_ipy. `make help` lists the targets.
#
# Environments are made where missing, and brought up to date when pyproject.toml or constraints.txt changed; otherwise
# every target starts at once. pip is used as it is configured on your machine. For torch without CUDA on Linux:
#   PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu make demo

SHELL := bash
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.NOTPARALLEL:

WORKERS ?= 2
BROWSER ?=
DAIFU_CASES ?= tests/scenarios/cases
PYTEST_ARGS ?=
SCREENSHOTS ?= build/screenshots

PINNED := pyproject.toml constraints.txt
READY := .venv/.ready
PANEL := daifu_ipy/static/panel.js
PANEL_SOURCES := $(shell find labextension/src labextension/style labextension/*.* -type f 2>/dev/null)
PYTHON := .venv/bin/python
QUICKSTART := notebooks/01_quickstart.ipynb

# The workers share the cores: one thread for each.
PYTEST = OMP_NUM_THREADS=1 $(PYTHON) -m pytest -n $(WORKERS) $(PYTEST_ARGS)
WANTED = not exhaustive and not gpu

define heading
@printf '\n== %s\n' "$(strip $(1))"
endef

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---- environments

.PHONY: setup
setup: $(READY) $(PANEL) ## make .venv: the project, editable, with its pinned dependencies; build the panel
	@:

$(READY): $(PINNED)
	$(call heading, setting up .venv; the first time takes some minutes)
	@scripts/make-env .venv torch,lab,test,browser,dev 3.11 3.12 3.13 && touch $@

# for the engine's tests on the other Pythons
.envs/%/.ready: $(PINNED)
	$(call heading, setting up .envs/$*)
	@scripts/make-env .envs/$* test-engine $* && touch $@

# the page of the repair panel
$(PANEL): $(PANEL_SOURCES)
	$(call heading, building the panel)
	@scripts/build-panel

.PHONY: lock
lock: ## write constraints.txt anew, with the newest versions
	@scripts/lock

# ---- the demo

.PHONY: demo
demo: $(READY) ## open JupyterLab on the quickstart (BROWSER=none: only print its address)
	@$(MAKE) $(PANEL) || echo "going on without the panel: crashes are answered at a prompt"
	@$(PYTHON) scripts/demo.py $(QUICKSTART) $(if $(filter none,$(BROWSER)),--no-browser)

# ---- tests

.PHONY: test
test: lint test-main test-panel test-engine-3.12 test-engine-3.13 ## CI's whole test set

.PHONY: test-all
test-all: WANTED = not gpu
test-all: test ## every test that needs no GPU

.PHONY: test-fast
test-fast: $(READY) ## the working loop: the engine's quick tests, up to the first failure
	$(call heading,engine: quick tests)
	@$(PYTEST) tests/engine -x -q -m "not slow and $(WANTED)"

.PHONY: test-main
test-main: $(READY) $(PANEL)
	$(call heading,all tests but those in a browser on $$($(PYTHON) -V))
	@$(PYTEST) -q -m "$(WANTED)" --ignore=tests/browser

.PHONY: test-panel
test-panel: $(READY) $(PANEL) ## the panel in JupyterLab and Chromium, which is installed by apt where missing
	$(call heading,the panel in JupyterLab and Chromium)
	@scripts/get-chromium >/dev/null || true
	@DAIFU_SCREENSHOTS=$(SCREENSHOTS) $(PYTEST) -q -m "$(WANTED)" tests/browser

test-engine-%:
	$(call heading,engine tests on Python $*)
	@if scripts/find-python $* >/dev/null; then \
	  $(MAKE) .envs/$*/.ready && $(PYTEST) tests/engine -q -m "$(WANTED)"; \
	else \
	  echo "skipped: no Python $* on PATH or under pyenv"; \
	fi
test-engine-%: PYTHON = .envs/$*/bin/python

.PHONY: test-cases
test-cases: $(READY) ## play recovery cases: DAIFU_CASES=FOLDER make test-cases
	$(call heading,recovery cases in $(DAIFU_CASES))
	@DAIFU_CASES="$(DAIFU_CASES)" $(PYTEST) tests/scenarios/test_cases.py -q

.PHONY: profile-tests
profile-tests: $(READY) $(PANEL) ## show where the tests' time goes
	$(call heading,the slowest of all tests)
	@$(PYTEST) -q -m "$(WANTED)" --durations=40 --durations-min=0.1

# ---- code style and types

.PHONY: lint
lint: $(READY) $(PANEL) ## ruff and mypy; tsc and eslint
	$(call heading,ruff check)
	@.venv/bin/ruff check --quiet .
	$(call heading,ruff format)
	@.venv/bin/ruff format --check --quiet .
	$(call heading,mypy)
	@$(PYTHON) -m mypy
	$(call heading,tsc and eslint)
	@cd labextension && npm run --silent check

.PHONY: format
format: $(READY) ## put the code in shape
	@.venv/bin/ruff check --fix-only --quiet .
	@.venv/bin/ruff format .

# ---- benchmarks: each exits with an error when a goal is missed, and prints the deciding figure last

.PHONY: bench-overhead
bench-overhead: $(READY) ## vaccinated against native code, while nothing crashes
	$(call heading,overhead)
	@$(PYTHON) benchmarks/overhead.py

.PHONY: bench-recovery
bench-recovery: $(READY) ## from the exception to the retried statement
	$(call heading,recovery)
	@$(PYTHON) benchmarks/recovery.py

.PHONY: bench-panel
bench-panel: $(READY) $(PANEL) ## from the crash to the visible panel, from the click to the resumed statement
	$(call heading,panel)
	@scripts/get-chromium >/dev/null
	@PYTHONPATH=. $(PYTHON) benchmarks/panel.py

# ---- the end

.PHONY: clean
clean: ## remove caches and build output
	@rm -rf build dist .pytest_cache .mypy_cache .ruff_cache
	@find . \( -path ./.venv -o -path ./.envs -o -path ./.git \) -prune -o -type d \
	  \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

.PHONY: distclean
distclean: clean ## remove the environments and the built panel as well
	@rm -rf .venv .envs labextension/node_modules daifu_ipy/static
