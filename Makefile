# mcpace: every task in one place. `make help` lists them.
# Each task does its own set-up; the only things needed beforehand are named by scripts/doctor.py.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PAGE := python/mcpace/report/assets/report.js
PAGE_SOURCES := $(wildcard web/src/*) web/package-lock.json web/tsconfig.json web/vite.config.mjs
RUST_SOURCES := $(shell find crates -path '*/src/*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock

.DEFAULT_GOAL := help
.PHONY: help build demo test test-rust test-python adapters proof scale conformance compat soak lint lint-workflows check-platforms test-wine format lock docs site man pictures mcpb dist test-dist casebook bench-ledger bench-explain bench-explain-rates bench-explain-live bench-recorder bench-serve bench-load bench-layers bench-shop bench-alternatives fuzz clean

help: ## List the tasks
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-16s %s\n", $$1, $$2}'

build: $(PAGE) $(VENV)/.built ## Build everything; leaves the command at .venv/bin/mcpace

demo: build ## The main job on embedded targets: real SDK releases, the cause of a regression, report.html
	$(BIN)/mcpace demo

test: test-rust test-python conformance soak ## Run all tests; needs Go, a JDK with Maven, Chromium, PostgreSQL and Redis too

test-rust: $(VENV)/.tools ## Run the Rust tests; some run a redis-server
	@$(PYTHON) scripts/doctor.py --servers
	cargo test --workspace --locked --quiet

test-python: build ## Run the Python tests; needs the package index and the same programs
	@$(PYTHON) scripts/doctor.py --tests
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder

adapters: build ## Hold the older releases' programs to the same answers; builds each, once
	@$(PYTHON) scripts/doctor.py --tests
	$(BIN)/pytest -m adapters

proof: build ## Show every finding and its controls, and sound combinations where none may show; builds old releases, once
	@$(PYTHON) scripts/doctor.py --tests
	cargo test --locked --quiet -p mcpace-explain
	$(BIN)/pytest -m "" tests/python/proof

conformance: build ## Run the official conformance suite against our 'everything' servers and our clients; needs Node
	$(BIN)/python tests/conformance/run.py
	$(BIN)/python tests/conformance/clients.py

COMPAT ?=
compat: build ## Run servers of other SDKs as written, migrated and adopted, and compare; needs the package index
	$(BIN)/python tests/compat/run.py $(COMPAT)

scale: build ## Run the tests of distributed load that need minutes or a cluster of Ray; needs the package index
	@$(PYTHON) scripts/doctor.py --tests
	$(BIN)/pytest -m "scale or not scale" tests/python/lab/test_load_workers.py tests/python/lab/test_load_tcp_workers.py \
		tests/python/lab/test_load_manifest.py tests/python/lab/test_load_ray.py

CASE ?=
casebook: build ## Reproduce public reports of slow MCP and compare mcpace's answers; needs the package index and Node
	$(BIN)/python casebook/run.py $(if $(CASE),$(CASE),--write docs/casebook.md)

SOAK_SECONDS ?= 60
soak: ## Mixed load on the runtime for a minute: fails if memory, tasks, threads or descriptors grow
	cargo build --locked --quiet -p mcpace-serve --example everything --example soak
	cargo run --locked --quiet -p mcpace-serve --example soak -- --seconds $(SOAK_SECONDS)

lint: build ## Check formatting, lints and types
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	$(BIN)/ruff check python tests adapters scripts site benches examples casebook packaging
	$(BIN)/ruff format --check python tests adapters scripts site benches examples casebook packaging
	$(BIN)/python scripts/check_prose.py
	$(BIN)/shellcheck action/*.sh scripts/*.sh
	$(BIN)/zizmor --offline --quiet .github action.yml
	$(BIN)/mypy
	$(BIN)/mypy --platform darwin
	$(BIN)/mypy --platform win32
	$(BIN)/python -m mypy.stubtest mcpace._core --allowlist tests/stubtest_allowlist.txt --concise
	@cd web && npm run --silent check && npm run --silent lint

ACTIONLINT := 1.7.12
lint-workflows: $(VENV)/.tools ## Check the workflows with actionlint; needs Go
	go run github.com/rhysd/actionlint/cmd/actionlint@v$(ACTIONLINT) -shellcheck $(BIN)/shellcheck

check-platforms: $(VENV)/.tools ## Check the Rust code for macOS and Windows; needs their targets of rustup
	scripts/check_platforms.sh

CRATES ?=
test-wine: ## Run the tests of crates for Windows under Wine, on Linux; needs Wine, MinGW-w64 and their target of rustup
	scripts/test_under_wine.sh $(CRATES)

format: build ## Format all sources
	cargo fmt --all
	$(BIN)/ruff format python tests adapters scripts site benches examples casebook packaging
	$(BIN)/ruff check --fix python tests adapters scripts site benches examples casebook packaging
	@cd web && npm run --silent format

docs: build ## Write what is generated: command line reference, Run schema, contexts of findings, the page's types, what shows each finding
	$(BIN)/python scripts/finding_contexts.py
	$(BIN)/python scripts/generate_docs.py

man: build ## Write a manual page for each command to target/man
	$(BIN)/python scripts/manual_pages.py target/man

site: $(VENV)/.tools ## Build the documentation site into target/site; needs the package index
	cargo doc --locked --no-deps --quiet -p mcpace-serve -p mcpace-client -p mcpace-auth -p mcpace-redis
	$(BIN)/uv run --no-project --quiet --with-requirements site/requirements.txt python scripts/build_site.py

pictures: build ## Make the pictures of the documents from runs of the demo, of examples/inside, of a check and of the tests of findings; needs the package index and Chromium
	PATH="$(CURDIR)/$(BIN):$(PATH)" $(BIN)/python scripts/pictures.py
	$(BIN)/python scripts/finding_pictures.py

# The packer's version is pinned here; `npx` keeps the package in npm's cache.
MCPB := npx --yes @anthropic-ai/mcpb@2.1.2
MCPB_OUT ?= dist/mcpace.mcpb
mcpb: ## Pack the bundle of `mcpace mcp` for desktop hosts, dist/mcpace.mcpb; needs Node
	@$(PYTHON) scripts/doctor.py --page
	@mkdir -p $(dir $(MCPB_OUT))
	$(MCPB) validate packaging/mcpb/manifest.json
	$(MCPB) pack packaging/mcpb $(MCPB_OUT)

TARGETS ?=
dist: $(PAGE) $(VENV)/.tools ## Build the wheels for Linux and the source distribution into dist/; TARGETS="x86_64-unknown-linux-gnu" builds one
	$(BIN)/uv run --no-project --quiet --with-requirements packaging/wheels/requirements.txt python packaging/wheels/build_wheels.py $(TARGETS)

ROOTS ?=
test-dist: ## Try the wheels of dist/ in roots without compilers and Node; as root, needs Debian's archive and the package index
	$(PYTHON) packaging/wheels/try_in_roots.py $(ROOTS)

bench-ledger: build ## Accuracy of the ledger: delays injected into each layer in turn
	$(BIN)/python benches/ledger/run.py

bench-explain: $(VENV)/.tools ## Time and memory of explaining a recording of a million exchanges
	cargo bench --locked -p mcpace-explain --bench explain

bench-explain-rates: build ## How often explain names a cause that a recording has, and one that it has not
	cargo bench --locked -p mcpace-explain --bench explain-rates
	$(BIN)/python benches/explain-rates/sockets.py

bench-explain-live: build ## Whether live explain names the layer and the cause of servers whose time is known
	$(BIN)/python benches/explain-live/run.py

bench-recorder: build ## Cost of the recorder: latency, exchanges a second, memory of open streams
	cargo bench --locked -p mcpace-net --bench recorder
	$(BIN)/python benches/recorder/stdio.py

bench-serve: $(VENV)/.tools ## The runtime beside its floor and other SDKs: throughput, latency, CPU, memory
	$(BIN)/python benches/serve/run.py

bench-load: build ## The load engine beside wrk, oha and k6: checked requests a second, CPU, memory, start
	$(BIN)/python benches/load/run.py

bench-layers: build ## The handler layer beside djangorestframework-mcp-server's, and what a socket adds
	$(BIN)/python benches/layers/run.py

bench-shop: build ## Client libraries behind a Python server, and whole servers, under the load of the shop; needs Redis and the package index
	$(BIN)/python benches/shop/run.py
	$(BIN)/python benches/shop/run.py --targets

bench-alternatives: $(VENV)/.tools ## Processor time of libraries beside quicker ones with the same use; writes the table of costly-library
	$(BIN)/uv run --no-project --quiet --script benches/alternatives/run.py --write

FUZZ_SECONDS ?= 60
fuzz: $(VENV)/.tools ## Run every fuzz target for a minute (needs cargo-fuzz: cargo install cargo-fuzz)
	# -O leaves hyper's debug assertions out: one of them fails on pipelined rubbish (fuzz/README.md).
	@cd fuzz && for target in fuzz_targets/*.rs; do \
		name=$$(basename $$target .rs); \
		echo "== $$name"; \
		mkdir -p corpus/$$name; \
		RUSTC_BOOTSTRAP=1 cargo fuzz run -O $$name corpus/$$name $$(ls -d seeds/$$name 2>/dev/null) -- \
			-max_total_time=$(FUZZ_SECONDS) || exit 1; \
	done

# All extras but ray, whose package is large: the tests of Ray have an environment of their own.
EXTRAS := django lab otel parquet reload routes toon
lock: $(VENV)/.tools ## Resolve the Python dependencies anew
	$(BIN)/uv pip compile pyproject.toml $(EXTRAS:%=--extra %) --group dev --universal --no-emit-index-url --python-version 3.11 -o requirements.txt -q
	$(BIN)/uv pip compile packaging/wheels/requirements.in --universal --no-emit-index-url --python-version 3.11 -o packaging/wheels/requirements.txt -q
	$(BIN)/uv pip compile pyproject.toml --extra lab --extra ray --constraint requirements.txt --universal --no-emit-index-url --no-header --no-annotate --python-version 3.11 -o tests/workers/ray.txt -q
	echo kubernetes-validate | $(BIN)/uv pip compile - --universal --no-emit-index-url --no-header --no-annotate --python-version 3.11 -o tests/workers/kubernetes.txt -q
	$(BIN)/uv pip compile site/requirements.in --universal --no-emit-index-url --python-version 3.11 -o site/requirements.txt -q

clean: ## Remove what was built
	rm -rf web/node_modules python/mcpace/report/assets
	rm -rf target $(VENV) .pytest_cache .mypy_cache .ruff_cache
	rm -f python/mcpace/_core*.so THIRD-PARTY-LICENSES*

# uv's version is the one that requirements.txt pins, so that the first install and every later one agree.
$(VENV)/.tools: requirements.txt scripts/doctor.py
	@$(PYTHON) scripts/doctor.py
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep -oE '^uv==[0-9.]+' requirements.txt)"
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements.txt
	@touch $@

$(VENV)/.built: $(VENV)/.tools pyproject.toml $(RUST_SOURCES)
	@echo "building mcpace (some minutes the first time)"
	VIRTUAL_ENV="$(CURDIR)/$(VENV)" PATH="$(CURDIR)/$(BIN):$(PATH)" $(BIN)/maturin develop --release --locked --quiet --uv
	@touch $@

# The report's page: one script and one style, which the package carries.
$(PAGE): $(PAGE_SOURCES) web/node_modules/.installed
	@cd web && npm run --silent check && npm run --silent build -- --logLevel warn

web/node_modules/.installed: web/package.json web/package-lock.json
	@$(PYTHON) scripts/doctor.py --page
	@cd web && npm ci --loglevel=error
	@touch $@
