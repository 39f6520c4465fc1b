# What people run:   make demo, make test, make check, make bench.
# What they install: make setup-demo, make setup (called by the others; see .ci/setup).

SHELL := /bin/bash -o pipefail
.DELETE_ON_ERROR:
.PHONY: demo test check bench setup setup-demo build build-cuda vet fmt staticcheck tidy generate clean-tree clean

targets := --target sm_80 --target sm_90a
gpt2    := testdata/models/gpt2_tiny
ptxas   := $(CURDIR)/build/cuda/nvcc/nvidia/cuda_nvcc/bin/ptxas
gotest  := go run ./.ci/gotest

# The first command: a model exported by PyTorch becomes an artifact, which runs on the emulator.
demo: setup-demo build
	build/weft compile $(gpt2)/model.pt2 $(targets) -o build/gpt2_tiny.weft
	build/weft run build/gpt2_tiny.weft --device emu --inputs $(gpt2)/io.safetensors --expect $(gpt2)/io.safetensors

setup-demo:
	@sh .ci/setup demo

setup:
	@sh .ci/setup test

build:
	CGO_ENABLED=0 go build -trimpath -o build/weft ./cmd/weft

# The variant for NVIDIA GPUs; it builds, and starts, without one.
build-cuda: setup
	sh runtime/cuda/build.sh build -o build/weft-cuda ./cmd/weft
	build/weft-cuda version

vet: setup
	go vet ./... ./.ci/gotest
	sh runtime/cuda/build.sh vet ./...

# The second command. With WEFT_REQUIRE_TOOLS a test that lacks llc or ptxas fails; without, it may skip.
test: setup vet build build-cuda
	WEFT_REQUIRE_TOOLS=1 WEFT_PTXAS="$${WEFT_PTXAS:-$(ptxas)}" $(gotest) $(TESTFLAGS) ./... ./.ci/gotest

# What a change must pass before it lands.
check: fmt staticcheck tidy generate test clean-tree

fmt:
	@found=$$(gofmt -l .); [ -z "$$found" ] || { echo "not gofmt-ed:"; echo "$$found"; exit 1; }

staticcheck:
	go tool staticcheck ./... ./.ci/gotest

tidy:
	go mod tidy -diff

# Generated files must be what their generators write now. The polynomials of the elementary functions are derived anew only
# where their generator has changed, or with REDERIVE=1: that needs a Python with mpmath and minutes.
generate: setup
	WEFT_REQUIRE_TOOLS=1 WEFT_PTXAS="$${WEFT_PTXAS:-$(ptxas)}" go generate ./...

clean-tree:
	@[ -z "$$(git status --porcelain)" ] || { echo "the work tree is not clean:"; git status --short; git --no-pager diff --stat; exit 1; }

# Compile times (whole processes, median of five) of the fixtures, or of the full-size graphs in the folder WEFT_MODELS, and
# the emulator's speed. See docs/benchmarks.md, also for the measurements that need a GPU.
bench: setup-demo
	go test -run='^$$' -bench='GEMM|Elementwise' $(BENCHFLAGS) ./runtime/emu
	go test -run='^$$' -bench='Emulator|Compile' -benchtime=5x -timeout=30m $(BENCHFLAGS) ./cmd/weft

clean:
	rm -rf build
