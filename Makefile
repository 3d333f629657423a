# The whole workflow, the same for people and CI. Needs Python 3.11+ and the package registries, nothing else.
PYTHON ?= python3
BIN := .venv/bin
DATA ?= ../shared/data

.PHONY: setup setup-bge demo test faults check fix docs bench lock

setup: .venv/.installed

.venv/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

# bge-m3 through FlagEmbedding; brings torch, several GB.
setup-bge: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bge.lock

# A running system with the sample site. ONCE=1 stops after one cited answer.
demo: setup
	$(BIN)/pagewire demo $(if $(ONCE),--once)

# Every ring whose needs are there; the others are named with the command that installs them. The storm's own tests take
# minutes and belong to `make faults` until they have been green again and again on busy machines.
test: setup
	$(BIN)/python -m pytest --ignore=tests/faults/test_storm.py $(PYTEST)

# A storm of faults over real saves, and everything read back: MINUTES long, by a SEED (default: a new one, printed).
MINUTES ?= 30
faults: setup
	$(BIN)/python -m pytest tests/faults/test_storm.py
	$(BIN)/python -m tests.faults.storm --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m docs.generate --check

fix: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Reference pages that follow from the code: settings, topics, commands, schemas.
docs: setup
	$(BIN)/python -m docs.generate

# All benchmarks; one: `.venv/bin/pagewire bench NAME`.
bench: setup
	$(BIN)/pagewire bench all --data $(DATA)

# Pins every version by hash, without naming a registry.
lock: setup
	$(BIN)/uv pip compile --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
		pyproject.toml --extra engine --group dev -o requirements.lock
	$(BIN)/uv pip compile --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
		pyproject.toml --extra engine --extra bge --group dev --constraint requirements.lock -o requirements-bge.lock
