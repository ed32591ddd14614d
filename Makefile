# Each target sets up what it needs in .venv, given Python >= 3.11 and a C++20 compiler.
PYTHON ?= python3
SECONDS ?= 60
WORKERS ?= 2
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export SKBUILD_CMAKE_DEFINE := DATUM_WERROR=ON

NATIVE := $(shell find native -name '*.cc' -o -name '*.h')
SOURCES := $(NATIVE) $(shell find src -name '*.py' -o -name '*.pyi' -o -name py.typed) \
  CMakeLists.txt pyproject.toml
PIP := python -m pip install --quiet --disable-pip-version-check
STAMP := .venv/.stamp-

.NOTPARALLEL:
.PHONY: help demo test check docs bench fuzz torture format clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

demo: $(STAMP)demo $(STAMP)package ## from image files to a trained model, every call shown
	datum demo --train

test: $(STAMP)test $(STAMP)package ## run the tests; with CI=true, fuzz for a minute too
	scripts/system-packages clang qemu
	scripts/azurite
	python -m pytest -n $(WORKERS) --dist worksteal
ifeq ($(CI),true)
	scripts/fuzz 60 1
endif

check: $(STAMP)check $(STAMP)package ## lint, formatting, types, stubs, layers
	ruff check
	ruff format --check
	mypy
	python scripts/stubtest.py --ignore-disjoint-bases datum._core
	clang-format --dry-run --Werror $(NATIVE)
	lint-imports

docs: $(STAMP)docs $(STAMP)package ## build the documentation as a site
	NO_MKDOCS_2_WARNING=1 python -m mkdocs build --strict --quiet
	@echo The documentation lies in build/site. With its search:
	@echo python -m http.server --bind 127.0.0.1 --directory build/site

bench: $(STAMP)peers $(STAMP)package ## run the benchmarks
	python -m benchmarks

fuzz: $(STAMP)test $(STAMP)package ## fuzz the native code and the Python face for SECONDS in all
	scripts/system-packages clang
	scripts/fuzz $(SECONDS)

torture: $(STAMP)test $(STAMP)package ## kill writers, damage files, disturb readers for SECONDS in all
	python -m tests.torture --seconds $(SECONDS) $(SEED:%=--seed %) $(ONLY:%=--only %) \
	  $(ROUNDS:%=--rounds %)

format: $(STAMP)check ## format the code and fix what lint can
	ruff check --fix-only
	ruff format
	clang-format -i $(NATIVE)

clean: ## remove all that was built, but not .venv
	rm -rf build dist .hypothesis .*_cache

# The build tools live in .venv too, so that a rebuild compiles only what changed.
$(STAMP)build: pyproject.toml
	test -x .venv/bin/python || $(PYTHON) -m venv .venv
	$(PIP) --upgrade pip cmake nanobind ninja numpy scikit-build-core setuptools
	touch $@

$(STAMP)package: $(SOURCES) | $(STAMP)build
	$(PIP) --no-build-isolation .
	touch $@

# What peers require is left out: another PyTorch with CUDA, and an older NumPy.
$(STAMP)peers: benchmarks/peers.txt $(STAMP)bench
	$(PIP) --no-deps -r $<
	touch $@

# An extra brings the package with it.
what = Building Datum, and fetching what '$*' needs
$(STAMP)demo: what = Building Datum, and fetching scikit-learn and TensorFlow
$(STAMP)test $(STAMP)check $(STAMP)docs $(STAMP)bench $(STAMP)demo: $(STAMP)%: pyproject.toml | $(STAMP)build
	@echo "$(what): some minutes, once"
	$(PIP) --no-build-isolation ".[$*]"
	touch $@ $(STAMP)package
