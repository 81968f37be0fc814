# Hone. `make` builds, `make demo` shows, `make check` tests. docs/testing.md and docs/benchmarking.md say more.
#
# Meson does the building; this file only names the things people ask for.

SHELL   := /bin/bash
PREFIX  ?= /usr/local
PY      ?= python3
RELEASE := build/release
CACHE   := $(or $(HONE_FETCH_DIR),.cache)
TOOLS   := $(CACHE)/peers/tools/bin/python
CFG     := --buildtype=release --prefix=$(PREFIX)

.PHONY: all deps demo check check-long check-gpu conformance contrib numbers exporters bench bench-gpu fuzz fuzz-guided fuzz-graphs install clean distclean models peers \
        help

all:
	@scripts/build.sh $(RELEASE) $(CFG)
	@scripts/link_outputs.sh $(RELEASE)

help:
	@printf '%s\n' 'make              build build/hone, build/libhone.so, build/libhone-rt.so' \
	  'make deps         install the Debian packages that building needs' \
	  'make demo         build, tune and race six real models (about 15 minutes)' \
	  'make check        every test a change must pass' \
	  'make check-long   the slow ones too' \
	  'make check-gpu    kernels, graphs, node cases, models and compute-sanitizer on an NVIDIA GPU' \
  'make conformance  the ONNX node tests' \
  'make contrib      the ops of com.microsoft against ONNX Runtime' \
	  'make numbers      our float32 errors against float64 beside ONNX Runtime'"'"'s (NUMBERS_FLAGS=--models: of the real models)' \
	  'make exporters    export 40 architectures and more, compare with ONNX Runtime (1 GB of packages, hours)' \
	  'make bench        all models against the peers, to build/bench/cpu.json' \
	  'make bench-gpu    engines against torch on an NVIDIA GPU, to build/bench/gpu.json' \
	  'make fuzz         mutate models and engines (FUZZ_SECONDS=60)' \
	  'make fuzz-guided  libFuzzer over import (FUZZ_SECONDS=600, a process a core)' \
	  'make fuzz-graphs  random models: engines, evaluation and ONNX Runtime vote (FUZZ_GRAPHS=500)' \
	  'make install      to PREFIX ($(PREFIX)), DESTDIR is honoured' \
	  'make clean        remove build/; make distclean removes fetched files too'

deps:
	@scripts/deps.sh build

demo:
	@scripts/deps.sh demo
	@$(MAKE) --no-print-directory all
	@$(PY) scripts/peers.py
	@$(PY) scripts/fetch_models.py --set demo
	@$(TOOLS) bench/demo.py $(DEMO_FLAGS)

check:
	@scripts/deps.sh check
	@$(PY) scripts/check.py $(CHECK_FLAGS)

check-long:
	@scripts/deps.sh check
	@$(PY) scripts/check.py --long $(CHECK_FLAGS)

check-gpu:
	@scripts/deps.sh build images conformance python
	@$(MAKE) --no-print-directory all
	@$(PY) tests/gpu/run.py $(CHECK_GPU_FLAGS)

conformance:
	@scripts/deps.sh build images conformance python
	@$(MAKE) --no-print-directory all
	@$(PY) tests/conformance/run.py $(CONFORMANCE_FLAGS)

contrib:
	@scripts/deps.sh build conformance python
	@$(MAKE) --no-print-directory all
	@$(PY) scripts/peers.py fuzz
	@$(CACHE)/peers/fuzz/bin/python tests/conformance/contrib.py $(CONTRIB_FLAGS)

numbers:
	@scripts/deps.sh build images conformance python
	@$(MAKE) --no-print-directory all
	@$(PY) scripts/peers.py fuzz
	@$(CACHE)/peers/fuzz/bin/python tests/conformance/accuracy.py $(NUMBERS_FLAGS)

exporters:
	@scripts/deps.sh build python export
	@$(MAKE) --no-print-directory all
	@$(PY) tests/exporters/run.py $(EXPORTERS_FLAGS)

models:
	@scripts/deps.sh python export
	@$(PY) scripts/fetch_models.py
	@/usr/bin/python3 bench/export_torch.py

peers:
	@scripts/deps.sh python
	@$(PY) scripts/peers.py

bench: models peers
	@scripts/deps.sh bench
	@$(MAKE) --no-print-directory all
	@$(TOOLS) bench/bench.py $(BENCH_FLAGS)

bench-gpu:
	@scripts/deps.sh build
	@$(MAKE) --no-print-directory all
	@python3 bench/gpu/bench_gpu.py $(BENCH_GPU_FLAGS)

fuzz:
	@scripts/deps.sh fuzz
	@$(PY) scripts/fuzz.py --seconds $(or $(FUZZ_SECONDS),60)

fuzz-guided:
	@scripts/deps.sh fuzz conformance
	@$(PY) scripts/fuzz.py --guided --seconds $(or $(FUZZ_SECONDS),600)

fuzz-graphs:
	@scripts/deps.sh build python
	@$(MAKE) --no-print-directory all
	@$(PY) scripts/peers.py fuzz
	@$(CACHE)/peers/fuzz/bin/python tests/fuzz/graphs.py --graphs $(or $(FUZZ_GRAPHS),500) $(FUZZ_FLAGS)
	@$(CACHE)/peers/fuzz/bin/python tests/fuzz/metamorphic.py --graphs $(or $(FUZZ_GRAPHS),500) $(FUZZ_FLAGS)

install: all
	@meson install -C $(RELEASE) --no-rebuild $(if $(DESTDIR),--destdir $(DESTDIR))

clean:
	rm -rf build

distclean: clean
	rm -rf $(CACHE)
