# What people and CI do with this tree. `make help` lists the targets; CMake does the building.

SHELL  := /bin/bash
JOBS   ?= $(shell nproc)
PREFIX ?= /usr/local
PROMPT ?= The capital of France is
MODEL  ?= models/smollm2-135m-instruct.yaml
OUT    ?= build/smollm2
PEERS  ?= build/peers

# CMake reads the launcher from the environment. ccache then also serves a clone in another folder.
export CMAKE_CXX_COMPILER_LAUNCHER := $(shell command -v ccache)
export CMAKE_C_COMPILER_LAUNCHER := $(CMAKE_CXX_COMPILER_LAUNCHER)
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1

.DEFAULT_GOAL := help
.NOTPARALLEL:

# --- Use ----------------------------------------------------------------------------------------

run: build ## compile SmolLM2 and let it answer: make run PROMPT="Once upon a time"
	@echo "compiling $(MODEL) to $(OUT)"
	@build/bin/tenon compile $(MODEL) -o $(OUT)
	@echo "asking: $(PROMPT)"
	@$(OUT) "$(PROMPT)"

build: deps ## install what is missing, then build into build/
	@scripts/build.sh release -j$(JOBS)

install: build ## install into PREFIX (default /usr/local)
	@cmake --install build --prefix "$(PREFIX)"

bench: build bench-peers bench-growth bench-page ## all measurements (two hours, 8 GB): writes docs/performance.md

bench-peers: build ## SmolLM2 beside other engines (an hour)
	@build/bin/tenon compile $(MODEL) -o $(OUT)
	@python3 bench/peers/compare.py --tenon $(OUT) --dir $(PEERS) --jobs $(JOBS)

bench-growth: build ## how time and memory grow, 7B, perplexity (half an hour, 4 GB)
	@build/bin/tenon compile $(MODEL) -o $(OUT)
	@python3 bench/growth/growth.py --tenon $(OUT)
	@python3 bench/growth/large.py
	@python3 bench/quality/perplexity.py

bench-instructions: build ## instructions of a token, kernel by kernel, against the committed counts
	@python3 bench/instructions/count.py

bench-page: ## docs/performance.md, from what was measured before
	@python3 bench/peers/report.py $(PEERS)/results.json bench/peers/performance.md.in build > build/performance.md
	@cp build/performance.md docs/performance.md

# --- Test ---------------------------------------------------------------------------------------

test: build ## all GoogleTest and lit tests
	@JOBS=$(JOBS) scripts/run-tests.sh build

conformance: build ## a table of every oracle model: each computation's error on each backend
	@build/bin/tenon-conformance-tests --gtest_brief=1

check-all: lint check-docs check-plugins check-asan ## everything CI checks besides `make test`

lint: deps check-text check-names check-layers check-format check-tidy ## layout, layers, formatting, clang 22, clang-tidy

check-text check-names check-layers check-format: deps
	@scripts/$@.sh && echo "$@: ok"

check-docs: deps
	@scripts/docs.sh --check && echo "$@: ok"

check-plugins: build ## plugins, built against an installed Tenon
	@scripts/check-plugins.sh build && echo "$@: ok"

check-clang: deps
	@scripts/build.sh clang -j$(JOBS) && echo "$@: ok"

check-tidy: check-clang
	@JOBS=$(JOBS) scripts/check-tidy.sh build-clang && echo "$@: ok"

check-asan: deps
	@scripts/build.sh asan -j$(JOBS)
	@JOBS=$(JOBS) scripts/run-tests.sh build-asan

# --- Keep ---------------------------------------------------------------------------------------

format: deps ## run clang-format over the tree
	@scripts/check-format.sh --fix

docs: deps ## regenerate docs/reference from the .td files
	@scripts/docs.sh

clean: ## remove what was built (not build/deps)
	@rm -rf build-asan build-clang
	@[ ! -d build ] || find build -mindepth 1 -maxdepth 1 ! -name deps -exec rm -rf {} +

deps:
	@scripts/install-deps.sh

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run build install bench bench-peers bench-growth bench-instructions bench-page test \
  conformance check-all lint check-text check-names check-layers check-format check-docs \
  check-plugins check-clang check-tidy check-asan format docs clean deps help
