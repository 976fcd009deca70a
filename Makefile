# Every target works as the first command on a fresh clone: it makes its own virtual environment, .venv.
# Needed: Python 3.11, 3.12 or 3.13, and for Spark Java 17 or newer.

VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKERS ?= 2
# One process of the tests has all of Spark, and often waits for its JVM.
TEST_WORKERS ?= $(shell echo $$(($(WORKERS) + 1)))
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

# The newest Python that starts, by its name or by pyenv: a shim alone may name one that is not there.
NEWEST ?= $(shell for v in 3.13 3.12; do for p in python$$v "$$(pyenv prefix $$v 2>/dev/null)/bin/python"; do \
	"$$p" -c '' 2>/dev/null && echo "$$p" && exit; done; done)
NEWEST_VENV := .venv-newest
HAS_NEWEST = $(shell [ -n "$(NEWEST)" ] && [ "$$("$(NEWEST)" -V)" != "$$($(PYTHON) -V)" ] && echo yes)
# What may differ from one Python to another: how lambdas are read, what is pickled and saved, types that are looked into, how
# deep calls go, and all operators once, by their transcripts. Laws, jobs, benchmarks and mypy's part are the same on each.
NEWEST_PARTS := tests/transcripts tests/laws/test_tracing.py tests/unit/test_deep.py tests/unit/test_import.py \
	$(addprefix tests/unit/,contract denote engine/state expr facade io temporal testing/test_plugin.py udm) \
	--ignore tests/unit/facade/test_wrong_arguments.py

JAVA = $(if $(JAVA_HOME),$(JAVA_HOME)/bin/java,java)
JAVA_VERSION = $(shell $(JAVA) -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p')
HAS_JAVA = $(shell test "0$(JAVA_VERSION)" -ge 17 2>/dev/null && echo yes)
# A JVM that lives for seconds compiles in a hurry, and does not check Spark's classes.
notebooks doctest: export JDK_JAVA_OPTIONS ?= -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m \
	-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote
# Tests start many processes, which would each compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

INSTALL_JAVA = Java 17 or newer (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17)

# What holds a new operator, kind of windows or module to its laws, without Spark: cases whose names have NAME.
OPERATOR_PARTS := tests/operators tests/transcripts tests/architecture/test_completeness.py tests/unit/facade/test_nodes.py \
	tests/unit/facade/test_refusals.py $(addprefix tests/laws/test_,operators.py facts.py shards.py ids.py)
WINDOW_PARTS := tests/operators tests/transcripts tests/architecture/test_completeness.py tests/unit/windows \
	$(addprefix tests/laws/test_,operators.py facts.py window_kinds.py determinism.py incremental.py)
UDM_PARTS := tests/unit/udm_examples
FILE_PARTS := tests/formats tests/unit/jobs/test_run.py tests/architecture/test_tables.py

.PHONY: help environment java demo test collect laws operator window udm files profile named servers check-connectors lint format types doctest docs site links notebooks sabotage newest newest-environment bench bench-check \
	check ci clean

help: ## show what there is to make
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

environment: $(READY) ## the virtual environment, with everything

# The pip that comes with Python 3.11 takes half as long again as a new one; where there is no new one, it will do.
$(READY): pyproject.toml
	$(if $(PYTHON),,$(error streamdsl needs Python 3.11 or newer: install it, or say which one with PYTHON=/path/to/python))
	$(PYTHON) -m venv $(VENV)
	-@$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[dev]'
	@touch $@

java:
	$(if $(HAS_JAVA),@:,$(error the tests need $(INSTALL_JAVA)))

demo: $(READY) ## the real flights out of New York, locally and on Spark (ARGS=--all: the whole year)
	@$(BIN)/python -m streamdsl demo $(ARGS)

test: java $(READY) ## all tests
	@$(BIN)/python -m pytest -q -n $(TEST_WORKERS) --dist loadgroup $(ARGS)

collect: $(READY) ## compile all tests and run none: else each of the processes of `make test` compiles them the first time
	@said="$$($(BIN)/python -m pytest -q --collect-only)" || { echo "$$said"; exit 1; }

laws: $(READY) ## the laws alone (LAW_EXAMPLES=50000: that many random examples of each instead of the fixed ones)
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup tests/laws $(ARGS)

operator: $(READY) named ## what holds one operator to its laws (NAME=throttle), after `make docs`
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup $(OPERATOR_PARTS) -k "$(NAME) or completeness" $(ARGS)

window: $(READY) named ## what holds one kind of windows to its laws (NAME=session), after `make docs`
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup $(WINDOW_PARTS) -k "$(NAME) or completeness" $(ARGS)

udm: $(READY) named ## what holds one module of the gallery to its laws (NAME=Vwap), and its examples
	@$(BIN)/python -m pytest -q --doctest-modules udm_examples -k "$(NAME)" $(ARGS)
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup $(UDM_PARTS) -k "$(NAME) or left_out" $(ARGS)

files: $(READY) named ## what holds one format of files to its laws (NAME=orc), after `make docs`, without Spark
	@$(BIN)/python -m pytest -q -n $(WORKERS) $(FILE_PARTS) -k "$(NAME) or entry or table" $(ARGS)
	@$(BIN)/python -m tests.laws.doors --run 3 --chance 0 --of "$(NAME)"

profile: $(READY) named ## record the answers of one engine (NAME=duckdb-bucket), and hold its profile to them
	@$(BIN)/python -m benchmarks.engines.record $(NAME)
	@$(BIN)/python -m tests.tables
	@$(BIN)/python -m pytest -q tests/witnesses tests/architecture/test_tables.py -k "$(NAME) or today or table" $(ARGS)

named:
	$(if $(NAME),@:,$(error say of which one, as in NAME=throttle))

servers:
	$(if $(PYTHON),@$(PYTHON) -m tests.servers)

check-connectors: servers $(READY) ## every connector on the real thing: databases, Kafka, an object store, websockets (ARGS=--record: into docs)
	@$(BIN)/python -m pip install --quiet --editable '.[check-connectors]'
	@STREAMDSL_CONNECTORS=all $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup tests/unit/connect
	@$(BIN)/python -m tests.connector_reports $(ARGS)
	$(if $(findstring --record,$(ARGS)),@$(BIN)/python -m tests.tables)

lint: $(READY) ## ruff, and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(READY) ## format all files
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(READY) ## mypy --strict over package, examples and tests
	$(BIN)/mypy

doctest: java $(READY) ## the examples in docstrings, README and docs
	$(BIN)/python -m pytest -q --doctest-modules --doctest-glob='*.md' streamdsl udm_examples README.md docs

site: $(READY) ## the pages of docs as a site, with search: open build/site/index.html
	$(BIN)/python -m sphinx -q -W --keep-going -j $(WORKERS) -c docs . build/site

links: $(READY) ## what `make site` says of the pages, in less than half its time, as nothing is written
	$(BIN)/python -m sphinx -q -W --keep-going -j $(WORKERS) -b dummy -c docs . build/links

docs: $(READY) ## write docs/operators and docs/gallery from the docstrings, and the tables of docs (semantics, spark, jobs, secret-profiles)
	$(BIN)/python -m tests.operator_pages
	$(BIN)/python -m tests.gallery_pages
	$(BIN)/python -m tests.spark_matrix
	$(BIN)/python -m tests.tables

notebooks: java $(READY) ## run every notebook, and compare with its stored outputs (ARGS=--store: store them anew; ARGS=03: one)
	$(BIN)/python -m tests.run_notebooks $(ARGS)

sabotage: $(READY) ## break the engine on purpose: the laws must notice each way (ARGS=--record: note which one does; --changed: where a file has)
	WORKERS=$(WORKERS) $(BIN)/python -m tests.sabotage $(ARGS)

newest-environment: ## the virtual environment of `make newest`, if there is a newer Python than that of all tests
	@$(if $(HAS_NEWEST),$(MAKE) --no-print-directory $(NEWEST_VENV)/.ready)

$(NEWEST_VENV)/.ready: pyproject.toml
	"$(NEWEST)" -m venv $(NEWEST_VENV)
	$(NEWEST_VENV)/bin/python -m pip install --quiet --no-compile --editable '.[newest]'
	@touch $@

newest: newest-environment ## what may differ between versions of Python, on the newest there is (NEWEST=/path/to/python)
	@if [ -z "$(NEWEST)" ]; then echo "no Python 3.12 or 3.13 was found, so none is tried"; \
	elif [ -z "$(HAS_NEWEST)" ]; then echo "$$($(PYTHON) -V) is the newest there is, and runs all tests"; \
	else $(NEWEST_VENV)/bin/python -V && $(NEWEST_VENV)/bin/python -m pytest -q -n $(WORKERS) --dist loadgroup -m 'not spark' $(NEWEST_PARTS) $(ARGS); fi

bench: $(READY) ## streamdsl beside its peers, each answer checked (ARGS="tumbling --events 100000 --peers duckdb,polars")
	@$(BIN)/python -m pip install --quiet --editable '.[bench]'
	@$(BIN)/python -m benchmarks $(ARGS)

bench-check: $(READY) ## what an event costs by window and aggregate: no cell much dearer than recorded (ARGS="--record snapshot")
	@$(BIN)/python -m benchmarks.studies.matrix $(if $(findstring --record,$(ARGS)),,--check) $(ARGS)

check: lint types doctest links notebooks sabotage test ## everything that CI does, in the environment at hand

ci: ## everything that CI does, in a fresh environment in a temporary folder
	@.ci/run

clean: ## remove the environment and all caches
	rm -rf $(VENV) $(NEWEST_VENV) .bench build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
