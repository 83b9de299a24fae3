# Interlock: `make help` lists what there is. Nothing is needed beforehand but Python 3.11 or newer.

PYTHON ?= python3
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DEV_INSTALLED := $(VENV)/.dev-installed
BENCH_VENV := .venv-bench
BENCH_INSTALLED := $(BENCH_VENV)/.installed
# Frameworks that `make bench` measures in the environments in which they are tested; the others fit into its own.
BENCH_FRAMEWORKS := langchain openai_agents engines
# What others have and Interlock works with: an environment for each, since their packages do not fit together.
FRAMEWORKS := langchain openai_agents agent_framework agno crewai engines humanlayer
FRAMEWORKS_INSTALLED := $(FRAMEWORKS:%=.venv-frameworks/%/.installed)
NODE_PACKAGES_INSTALLED := $(VENV)/.node-packages-installed
# Not test-results: Playwright empties that folder.
RESULTS := test-reports
PYTEST := $(BIN)/python -m pytest -n $(WORKERS)
UNIT := tests/unit tests/architecture
RECORDS := $(patsubst %,$(RESULTS)/test/%.json,unit main browser)
BENCH ?= --write --json $(BENCH_VENV)/figures.json
LOCK_VENV := .venv-lock
LOCK_TOOL := uv==0.13.7

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Where it is set, as in many container images, every program that a test starts would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE
PIP_INSTALL := $(BIN)/python -m pip install -qq
# The files name all there is to install. Left to resolve them again, the pip of Python 3.11 takes the newest release
# for a requirement with an extra, such as coverage[toml], and refuses it because only the pinned one has a hash.
LOCKED := --no-deps --require-hashes

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help install dev-install page run dev check fix ui-test quick test test-all test-all-suites test-times \
	frameworks $(FRAMEWORKS:%=framework-%) node-packages pgbouncer chromium bench faults mutants lock clean

help: ## list the targets
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do printf '%-17s %s\n' "$$name" "$$text"; done

install: $(INSTALLED) ## the environment: .venv/bin/interlock and .venv/bin/python

dev-install: $(DEV_INSTALLED) ## what checks and tests need besides

# The web app is built where it is not up to date; see hatch_build.py.
page: $(INSTALLED)
	@$(BIN)/python hatch_build.py

# HOST, PORT, DATABASE and CONFIG may be given; the defaults are those of `interlock serve`.
SERVE := $(if $(HOST),--host $(HOST)) $(if $(PORT),--port $(PORT)) $(if $(DATABASE),--database $(DATABASE)) $(if $(CONFIG),--config $(CONFIG))
run: page ## the server with demo calls, on http://127.0.0.1:8321; prints a one-time link to sign in
	@exec $(BIN)/interlock serve --demo $(SERVE)

dev: page $(DEV_INSTALLED) ## the same, started again whenever a file under src/, the configuration or your own tools change; the page with reload, on port 8322
	@INTERLOCK_SERVER=http://127.0.0.1:$(or $(PORT),8321) exec $(BIN)/python -m scripts.dev $(BIN)/interlock serve --demo $(SERVE)

quick: check ## a minute: the checks, the unit tests and the architecture tests
	@$(PYTEST) -q -m 'not nightly' $(UNIT)

# Three runs. The unit tests prove that core is covered: where threads are traced too, Python 3.11 now and then fails to
# start one. The browser tests are apart because Playwright holds the event loop that other tests need.
# All three run, even if one fails: a quarter of an hour should tell all there is to tell.
test: check ui-test page pgbouncer chromium ## before pushing, a quarter of an hour: the checks, and all tests but those of test-all alone
	@rm -rf $(RESULTS)/test
	@failed=; \
	$(PYTEST) -m 'not nightly' --workload=$(RESULTS)/test/unit.json $(UNIT) --cov || failed="$$failed unit"; \
	$(PYTEST) -m 'not nightly' --workload=$(RESULTS)/test/main.json $(UNIT:%=--ignore=%) --ignore=tests/browser || failed="$$failed main"; \
	$(PYTEST) -m 'not nightly' --workload=$(RESULTS)/test/browser.json tests/browser || failed="$$failed browser"; \
	$(BIN)/python -m scripts.test_report --check tests/budget.toml $(REPORT) $(RECORDS) || failed="$$failed budget"; \
	test -z "$$failed" || { echo "Failed:$$failed" >&2; exit 1; }

test-all: $(DEV_INSTALLED) ## everything there is, in slices: make test-all SUITE=browser runs one
	@$(BIN)/python -m scripts.test_all --workers $(WORKERS) $(SUITE)

test-all-suites: ## the names of those slices
	@$(PYTHON) -m scripts.test_all --list

test-times: ## run make test, and keep where its time goes in docs/test-times.md
	@$(MAKE) --no-print-directory test REPORT='--write docs/test-times.md'

ui-test: $(DEV_INSTALLED)
	@$(BIN)/python -m scripts.ui test

# Without root or Debian, the tests that need pgbouncer are skipped and say how to install it; in CI they fail.
pgbouncer:
	@PATH=$$PATH:/usr/sbin; if ! command -v pgbouncer && test "$$(id -u)" = 0 && command -v apt-get; then \
		export DEBIAN_FRONTEND=noninteractive; apt-get -q update && apt-get -q install -y --no-install-recommends pgbouncer; \
	fi >/dev/null 2>&1; PATH=$$PATH:/usr/sbin; command -v pgbouncer >/dev/null || echo 'pgbouncer is not installed: the tests that need it are skipped.' >&2

# Without root or Debian, an installed Chromium is used, or the tests say which command installs one.
chromium:
	@if ! command -v chromium && ! command -v chromium-browser && ! command -v google-chrome && test "$$(id -u)" = 0 && command -v apt-get; then \
		export DEBIAN_FRONTEND=noninteractive; apt-get -q update && apt-get -q install -y --no-install-recommends chromium fonts-dejavu-core; \
	fi >/dev/null 2>&1; { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null || echo 'Chromium is not installed: the tests that need a browser fail and say so.' >&2

check: $(DEV_INSTALLED) ## format, lint, types, import rules, for the page too
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy src $(wildcard benchmarks)
	@$(BIN)/lint-imports --no-cache --no-logo
	@$(BIN)/python -m scripts.ui check

fix: $(DEV_INSTALLED) ## format, and mend what the linter can mend
	@$(BIN)/ruff check --fix . || true
	@$(BIN)/ruff format .
	@$(BIN)/python -m scripts.ui fix

bench: $(BENCH_INSTALLED) ## Interlock beside the databases and others: docs/benchmarks.md (20 minutes, on a quiet machine)
	-@$(MAKE) -s --no-print-directory -k $(BENCH_FRAMEWORKS:%=.venv-frameworks/%/.installed)
	@$(BENCH_VENV)/bin/python -m benchmarks $(BENCH)

# About two hours with two jobs for the database suites; FAULTS='--only parity --scale 0.01' for less.
faults: $(DEV_INSTALLED) ## every fault suite at full size, with its red controls; keeps the report
	@$(BIN)/python -m tests.faults $(or $(FAULTS),--write)

mutants: $(DEV_INSTALLED) ## mistakes made on purpose in the rules and the verifier: do the tests notice?
	@$(BIN)/python -m tests.mutants --workers $(WORKERS)

# Keeps the pins that still fit; `make lock UPGRADE=--upgrade` takes the newest of all.
EXTRAS := --extra postgres --extra server --extra chat --extra mcp --extra slack --extra email --extra webhook --extra terminal --extra demo
LOCK := $(LOCK_VENV)/bin/uv pip compile -q --no-config $(UPGRADE) --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-header
LOCK_FRAMEWORKS := $(FRAMEWORKS:%=lock-%)
.PHONY: $(LOCK_FRAMEWORKS)
$(LOCK_FRAMEWORKS): lock-%:
	@$(LOCK) pyproject.toml --extra postgres --extra client $(if $(filter-out humanlayer,$*),--extra $(subst _,-,$*)) requirements/frameworks/$*.in -o requirements/frameworks/$*.txt

lock: ## pin the requirements again, with hashes
	@test -x $(LOCK_VENV)/bin/uv || $(PYTHON) -m venv $(LOCK_VENV)
	@$(LOCK_VENV)/bin/python -m pip install -qq '$(LOCK_TOOL)'
	@$(LOCK) pyproject.toml $(EXTRAS) -o requirements/base.txt
	@$(LOCK) requirements/build.in -c requirements/base.txt -o requirements/build.txt
	@$(LOCK) pyproject.toml $(EXTRAS) requirements/dev.in -c requirements/base.txt -c requirements/build.txt -o requirements/dev.txt
	@$(LOCK) pyproject.toml $(EXTRAS) --extra bench -c requirements/base.txt -c requirements/build.txt \
		-c requirements/dev.txt -o requirements/bench.txt
	@$(MAKE) -s --no-print-directory $(LOCK_FRAMEWORKS)
	@! grep -nE '://|^-' requirements/*.txt requirements/frameworks/*.txt || { echo 'A requirement file holds an address or an option.' >&2; exit 1; }

clean: ## remove what the other targets made
	@rm -rf $(VENV) .venv-frameworks $(BENCH_VENV) $(LOCK_VENV) $(RESULTS) build dist ui/node_modules src/interlock/server/ui .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

# The stamps are written last, so an install that was cut off starts again.
$(INSTALLED): pyproject.toml hatch_build.py requirements/base.txt requirements/build.txt
	@command -v $(PYTHON) >/dev/null || { echo 'Interlock needs Python 3.11 or newer; there is no $(PYTHON). On Debian: apt install python3 python3-venv' >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Interlock needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) --version 2>&1). Name another one: make PYTHON=python3.12 install" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make environments. On Debian: apt install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@echo 'Installing into $(VENV) ...'
	@$(PIP_INSTALL) $(LOCKED) -r requirements/base.txt -r requirements/build.txt
	@$(BIN)/python hatch_build.py
	@$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

# Without Node's packages their tests are skipped, and say so; the next run tries again. In CI they fail.
$(DEV_INSTALLED): $(INSTALLED) requirements/dev.txt requirements/provider/package-lock.json requirements/clients/package-lock.json ui/package-lock.json
	@echo 'Installing what the tests need ...'
	@$(PIP_INSTALL) $(LOCKED) -r requirements/dev.txt
	@$(BIN)/python hatch_build.py --tools
	@if $(BIN)/python -m tests.node_packages clients provider; then touch $@; fi

node-packages: $(NODE_PACKAGES_INSTALLED)
$(NODE_PACKAGES_INSTALLED): $(DEV_INSTALLED) requirements/mcp/package-lock.json requirements/restate/package-lock.json
	@echo 'Installing packages of Node for make test-all ...'
	@$(BIN)/python -m tests.node_packages clients provider mcp restate
	@touch $@

# The package itself is taken from the checkout, so that what is tested is what stands here.
frameworks: $(FRAMEWORKS_INSTALLED)
$(FRAMEWORKS:%=framework-%): framework-%: .venv-frameworks/%/.installed
$(FRAMEWORKS_INSTALLED): .venv-frameworks/%/.installed: requirements/frameworks/%.txt $(INSTALLED)
	@$(@D)/bin/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(@D)
	@echo 'Installing $* into $(@D) ...'
	@$(@D)/bin/python -m pip install -qq $(LOCKED) -r $<
	@$(@D)/bin/python -c 'import sysconfig; open(sysconfig.get_path("purelib") + "/interlock.pth", "w").write("$(CURDIR)/src\n")'
	@touch $@

# Interlock as it is measured, with Pydantic AI, a PostgreSQL server and the server of Restate.
$(BENCH_INSTALLED): $(INSTALLED) requirements/bench.txt requirements/restate/package-lock.json
	@$(BENCH_VENV)/bin/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(BENCH_VENV)
	@echo 'Installing what is measured into $(BENCH_VENV) ...'
	@$(BENCH_VENV)/bin/python -m pip install -qq $(LOCKED) -r requirements/bench.txt -r requirements/build.txt
	@$(BENCH_VENV)/bin/python -m pip install -qq --no-deps --no-build-isolation -e .
	@$(BENCH_VENV)/bin/python -m tests.node_packages restate || echo 'Restate will not be measured.' >&2
	@touch $@
