# Everything lives in .venv: the packages, and every cache and temporary file that the tools keep.
PYTHON  ?= $(shell command -v python3.11 || command -v python3)
VENV    := .venv
BIN     := $(VENV)/bin
CACHE   := $(CURDIR)/$(VENV)/cache
WORKERS ?= 2
CONSTRAINTS := constraints.txt

export PIP_CACHE_DIR := $(CACHE)/pip
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export RUFF_CACHE_DIR := $(CACHE)/ruff
export MYPY_CACHE_DIR := $(CACHE)/mypy
export HYPOTHESIS_STORAGE_DIRECTORY := $(CACHE)/hypothesis
export PYTHONPYCACHEPREFIX := $(CACHE)/pycache
export PYTHONDONTWRITEBYTECODE :=
export PYTEST_DEBUG_TEMPROOT := $(CACHE)/pytest-tmp
export MPLCONFIGDIR := $(CACHE)/matplotlib
export IPYTHONDIR := $(CACHE)/ipython
export JUPYTER_CONFIG_DIR := $(CACHE)/jupyter/config
export JUPYTER_DATA_DIR := $(CACHE)/jupyter/data
export JUPYTER_RUNTIME_DIR := $(CACHE)/jupyter/runtime
export SE_CACHE_PATH := $(CACHE)/selenium
export XDG_CACHE_HOME := $(CACHE)/xdg

# Where Python comes without ensurepip, the pip beside it installs into the environment.
PIP = $(shell test -x $(BIN)/pip && echo $(BIN)/pip || echo $(PYTHON) -m pip --python $(BIN)/python)

.PHONY: demo docs test test-fast test-lowest check lint clean torture torture-tests

demo: $(VENV)/.installed
	$(BIN)/softgold demo -o demo_run --force
	@echo "The results are in $(CURDIR)/demo_run"

docs: $(VENV)/.installed-dev
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "The site is in $(CURDIR)/docs/_build/html"

PYTEST = mkdir -p $(PYTEST_DEBUG_TEMPROOT); $(BIN)/pytest -q -n $(WORKERS) --dist worksteal -o cache_dir=$(CACHE)/pytest

# mypy needs one core for a minute where it has no cache. It runs beside the tests and is printed after them.
test: lint
	@mkdir -p $(CACHE); $(BIN)/mypy > $(CACHE)/mypy.log 2>&1 & types=$$!; \
	trap 'kill $$types 2> /dev/null' INT TERM; \
	$(PYTEST); tests=$$?; \
	wait $$types; types=$$?; echo "mypy:"; cat $(CACHE)/mypy.log; \
	test $$tests -eq 0 && test $$types -eq 0

test-fast: $(VENV)/.installed-dev
	@$(PYTEST) -m "not slow"

# The fast tests with the lowest versions that pyproject.toml allows, in an environment of their own.
test-lowest:
	$(MAKE) --no-print-directory VENV=.venv-lowest CONSTRAINTS=constraints-lowest.txt test-fast

# The campaigns of tests/robustness/ with many more cases, for hours: make torture CASES=100000 SEED=3
CASES ?= 2000
SEED  ?= 1
torture: $(VENV)/.installed-dev
	@echo "$(CASES) cases per campaign, seed $(SEED)"
	@SOFTGOLD_CASES=$(CASES) SOFTGOLD_SEED=$(SEED) $(MAKE) --no-print-directory torture-tests

torture-tests:
	@$(PYTEST) tests/robustness

check: lint
	$(BIN)/mypy

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

$(VENV)/.made:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || \
		{ echo "softgold needs Python 3.11 or later: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || $(PYTHON) -m venv --without-pip $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.made pyproject.toml $(CONSTRAINTS)
	$(PIP) install -q -c $(CONSTRAINTS) -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.made pyproject.toml $(CONSTRAINTS)
	$(PIP) install -q -c $(CONSTRAINTS) -e ".[dev]"
	@touch $(VENV)/.installed $@

clean:
	rm -rf $(VENV) demo_run docs/_build docs/api docs/gallery
