# Dynamo Platform: `make` prints what there is. Needs Python 3.11 to 3.14, git, make, and Go (or Docker) for the local cluster.

# For 3.15, pmdarima and PyYAML of the locks have no wheels yet.
PYTHON ?= $(shell for each in python3 python3.13 python3.12 python3.11 python3.14; do \
	"$$each" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null && echo "$$each" && break; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.dynamo-setup
CONTAINER_TOOLS := .dynamo/container-tools
BROWSER_TOOLS := .dynamo/browser-tools
FUZZ_TOOLS := .dynamo/fuzz-tools
MEMBERS := shared services/watcher services/pod-builder services/scaler services/model-discovery services/profiler services/planner services/admission services/dynadmin services/image-builder services/devcluster services/ctl
INPUTS := Makefile requirements/uv.txt requirements/dev.txt $(addsuffix /pyproject.toml,$(MEMBERS))
N ?= 100
# Processes of `make test`: most tests wait for servers, so there are more of them than of cores.
WORKERS ?= 4

# The user's --user and --target do not apply to a venv. AI Configurator works with Python 3.14, and pip would refuse it. uv gets the certificates and the index of pip's configuration.
export PIP_USER := 0
export PIP_REQUIRE_VIRTUALENV := 0
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PIP_TARGET PIP_PREFIX PYTHONHOME PYTHONPATH
export UV_HTTP_TIMEOUT ?= 180
export UV_PYTHON_DOWNLOADS := never
UV_ENVIRONMENT = index=$$($(BIN)/python -m pip config get global.index-url 2>/dev/null || true); \
	[ -z "$${PIP_INDEX_URL:-$$index}" ] || export UV_DEFAULT_INDEX="$${UV_DEFAULT_INDEX:-$${PIP_INDEX_URL:-$$index}}"; \
	[ -z "$${PIP_CERT:-}" ] || export SSL_CERT_FILE="$${SSL_CERT_FILE:-$$PIP_CERT}"; \
	export VIRTUAL_ENV="$(CURDIR)/$(VENV)"

# Tests start hundreds of processes of Python. Where the user wants no __pycache__, each would compile all that it imports.
test test-fast test-long properties conformance charts deflake seeds: export PYTHONDONTWRITEBYTECODE :=
test test-fast test-long properties conformance charts deflake seeds: export PYTHONPYCACHEPREFIX ?= $(CURDIR)/$(VENV)/bytecode

# Says what a long command does, and for how long it has done it; the first Python is enough for it.
STEP = $(PYTHON) -m tools.step

.DEFAULT_GOAL := help
# No target is a file's name.
.PHONY: $(shell awk -F: '/^[a-z0-9-]+:/ {print $$1}' $(firstword $(MAKEFILE_LIST)))

help: ## Print this help.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: $(STAMP) ## Create .venv with the locked packages and the project's own; again only when its inputs change.

$(STAMP): $(INPUTS)
	@test -n "$(PYTHON)" || { echo "Python 3.11 to 3.14 is needed; install it, or name it: make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "Setting up $(VENV) ($$($(PYTHON) --version)): a minute or two, most of it downloads"
	@test -x $(BIN)/python && $(BIN)/python -m pip --version >/dev/null 2>&1 || \
		$(STEP) "creating $(VENV)" $(PYTHON) -m venv --clear $(VENV) || \
		{ echo "$(PYTHON) cannot make a virtual environment; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(STEP) "installing uv" $(BIN)/python -m pip install --quiet --require-hashes --requirement requirements/uv.txt
	@$(UV_ENVIRONMENT); $(STEP) --packages requirements/dev.txt "installing the locked packages" \
		$(BIN)/uv pip sync --quiet --require-hashes requirements/uv.txt requirements/dev.txt || \
		{ echo "uv could not install the packages; trying pip" >&2; $(STEP) --packages requirements/dev.txt "installing with pip" \
		  $(BIN)/python -m pip install --quiet --require-hashes --ignore-requires-python --requirement requirements/dev.txt; }
	@$(STEP) "installing the project" \
		$(BIN)/uv pip install --quiet --offline --python $(BIN)/python --no-deps --no-build-isolation $(addprefix --editable ./,$(MEMBERS))
	@touch $@

demo: $(STAMP) ## A local Kubernetes with the platform and the examples, until Ctrl-C. EXIT=1 exits after success.
	@$(BIN)/dynamoctl demo $(if $(EXIT),--exit)

programs: $(STAMP) ## Obtain etcd, kube-apiserver and the other programs of the local cluster; the first time may take minutes.
	@$(BIN)/python -m dynamo_devcluster fetch

$(CONTAINER_TOOLS)/.complete: requirements/containers.txt $(STAMP)
	@rm -rf $(CONTAINER_TOOLS)
	@$(STEP) "installing the tools of containers" $(BIN)/python -m pip install --quiet --no-deps --require-hashes --target $(CONTAINER_TOOLS) --requirement requirements/containers.txt
	@touch $@

$(BROWSER_TOOLS)/.complete: requirements/browser.txt $(STAMP)
	@rm -rf $(BROWSER_TOOLS)
	@$(STEP) "installing the tools of the browser" $(BIN)/python -m pip install --quiet --no-deps --require-hashes --target $(BROWSER_TOOLS) --requirement requirements/browser.txt
	@touch $@

$(FUZZ_TOOLS)/.complete: requirements/fuzz.txt $(STAMP)
	@rm -rf $(FUZZ_TOOLS)
	@$(STEP) "installing schemathesis" $(BIN)/python -m pip install --quiet --no-deps --require-hashes --target $(FUZZ_TOOLS) --requirement requirements/fuzz.txt
	@touch $@

fuzz-dynadmin: programs $(FUZZ_TOOLS)/.complete ## Run schemathesis against the REST API on a local cluster; ARGS="--examples 50 --seed 3".
	@$(BIN)/python -m tests.fuzz $(ARGS)

image: $(STAMP) $(CONTAINER_TOOLS)/.complete ## Build an image of the services, without Docker; PARTS=planner, PLATFORM=linux/arm64, BASE=NAME@DIGEST, ARGS=--twice.
	@PYTHONPATH=$(CONTAINER_TOOLS) $(BIN)/python -m tools.images $(if $(PARTS),--parts $(PARTS)) $(if $(PLATFORM),--platform $(PLATFORM)) $(if $(BASE),--base $(BASE)) $(ARGS)

test-runtime: $(STAMP) ## Install NVIDIA's Dynamo runtime, which some tests need, in a separate environment.
	@$(BIN)/python -m tests.dynamo_runtime --optional

page: $(STAMP) ## Build the page of dynadmin from services/dynadmin/page, with its own Node; the results are committed.
	@$(BIN)/python -m tools.page build

page-tools: $(STAMP) ## Install the Node and the packages that build and test the page of dynadmin.
	@$(BIN)/python -m tools.page obtain --optional

test: programs test-runtime page-tools ## Run the tests, four files at a time (WORKERS): unit, contract, and integration with real etcd, NATS and kube-apiserver.
	@$(BIN)/pytest $(if $(ARGS),$(ARGS),-n $(WORKERS) --dist loadfile -m "not long")

test-long: programs test-runtime page-tools ## Run the slow tests that `make test` omits: restarts, profiling with all tables, installation, several NATS.
	@$(BIN)/pytest $(if $(ARGS),$(ARGS),-n $(WORKERS) --dist loadfile) -m long

test-fast: $(STAMP) ## Run the tests that need no Kubernetes: unit and contract, in less than three minutes.
	@$(BIN)/pytest $(if $(ARGS),$(ARGS),-n 3 --dist loadfile tests/unit tests/contract)

check: $(STAMP) ## Check format, lint, types, layers, generated files, compose file; before every push.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy shared/src services/watcher/src services/pod-builder/src services/scaler/src services/model-discovery/src services/profiler/src services/planner/src services/admission/src services/dynadmin/src services/image-builder/src services/devcluster/src services/ctl/src tests tools
	$(BIN)/lint-imports --no-cache
	$(MAKE) --no-print-directory verify
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec compose.yaml

verify: $(STAMP) ## Fail if a generated file is stale, the API changed without notice, a file uses a replaced word, a page has long lines, or two classes share a name.
	$(BIN)/python -m tools.generate --check
	$(BIN)/python -m tools.releases check
	$(BIN)/python -m tools.releases graduation
	$(BIN)/python -m tools.pictures --check
	$(BIN)/python -m tools.words
	$(BIN)/python -m tools.class_names
	$(BIN)/python -m tools.page check
	$(BIN)/pytest --quiet tests/unit/test_documents.py

pictures: $(STAMP) ## Redraw the diagrams of docs/pictures if their text changed; needs Graphviz.
	@$(BIN)/python -m tools.pictures

generate: $(STAMP) ## Write CRDs, registries, JSON Schemas, AsyncAPI document and settings reference.
	$(BIN)/python -m tools.generate

format: $(STAMP) ## Format the code and fix what ruff can fix.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: $(STAMP) ## Resolve the packages again and write the locks in requirements/ (needs the network).
	$(BIN)/uv lock --upgrade
	$(BIN)/uv export --quiet --all-packages --all-groups --no-emit-workspace --no-header --no-annotate \
		--format requirements-txt --output-file requirements/dev.txt
	$(BIN)/uv export --quiet --package dynamo-ctl --no-dev --no-emit-workspace --no-header --no-annotate \
		--format requirements-txt --output-file requirements/runtime.txt
	$(BIN)/uv export --quiet --package dynamo-ctl --extra planner --no-dev --no-emit-workspace --no-header --no-annotate \
		--format requirements-txt --output-file requirements/planner.txt
	$(BIN)/uv pip compile --quiet --universal --upgrade --generate-hashes --no-header --no-annotate \
		requirements/uv.in --output-file requirements/uv.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--constraint requirements/dev.txt requirements/build.in --output-file requirements/build.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes --no-header --no-annotate \
		requirements/containers.in --output-file requirements/containers.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes --no-header --no-annotate \
		requirements/fuzz.in --output-file requirements/fuzz.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes --no-header --no-annotate \
		requirements/page.in --output-file requirements/page.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes --no-header --no-annotate \
		--constraint requirements/dev.txt requirements/browser.in --output-file requirements/browser.txt

lock-dynamo-runtime: $(STAMP) ## Resolve the real Dynamo runtime of the tests again (needs the network).
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes --no-header --no-annotate \
		--override requirements/dynamo-runtime-overrides.in requirements/dynamo-runtime.in \
		--output-file requirements/dynamo-runtime.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes --no-header --no-annotate \
		--constraint requirements/dev.txt --no-emit-package typing-extensions requirements/played-engine.in \
		--output-file requirements/played-engine.txt

bench: bench-reconcile bench-ready bench-bus bench-relist bench-scale bench-admission bench-render bench-rows bench-estimator bench-plan bench-ticks bench-mocker bench-models bench-rapid bench-dynadmin ## Run all benchmarks but bench-build and bench-size.

bench-reconcile: programs ## N=100 graphs at once: throughput, latency, API writes, CPU, memory.
	@$(BIN)/python -m tests.benchmarks.reconcile -n $(N) $(ARGS)

bench-ready: programs ## From creation to successful, twenty times, with KWOK.
	@$(BIN)/python -m tests.benchmarks.ready $(ARGS)

bench-bus: programs ## Event latency and objects a second through the watcher.
	@$(BIN)/python -m tests.benchmarks.bus $(ARGS)

bench-relist: programs ## N=3000 graphs: how soon changes are published while a new watcher still lists everything.
	@$(BIN)/python -m tests.benchmarks.relist $(if $(filter command line,$(origin N)),-n $(N)) $(ARGS)

bench-dynadmin: programs ## The REST API: a list of 1,000 graphs, 500 streams, dry runs, estimates, memory.
	@$(BIN)/python -m tests.benchmarks.dynadmin $(ARGS)

bench-build: programs ## Debian, root: archives built by a real BuildKit into a real registry; a repeated build, and ten requests at once.
	@$(BIN)/python -m tests.benchmarks.build

bench-scale: programs ## From an adapter's /scale to the Deployment: one at a time, and 200 adapters at once.
	@$(BIN)/python -m tests.benchmarks.scale $(ARGS)

bench-size: programs ## N=1000 graphs with pods in one cluster: reaction, restarts, failover, memory and CPU at rest.
	@$(BIN)/python -m tests.benchmarks.size -n $(N)

bench-admission: programs ## Latency of validation, defaulting and conversion of a graph of 25 components; ARGS="--rate 50".
	@$(BIN)/python -m tests.benchmarks.admission $(ARGS)

bench-render: $(STAMP) ## From a manifest of 25 components to all its objects, without a server.
	@$(BIN)/python -m tests.benchmarks.render

bench-rows: $(STAMP) ## Memory and time of the watcher's rows of 30,000 objects, without a server.
	@$(BIN)/python -m tests.benchmarks.rows $(ARGS)

bench-estimator: $(STAMP) ## Leave-one-out errors of the planner's estimator and of the reference's, on measured profiles.
	@$(BIN)/python -m tests.benchmarks.estimator $(ARGS)

bench-plan: $(STAMP) ## Policies over the same traffic, compared with the best plan in hindsight; ARGS="--seeds 1-10" for all seeds (hours at first, then minutes).
	@$(BIN)/python -m tests.benchmarks.plan $(ARGS)

bench-ticks: $(STAMP) ## CPU of one tick of the policy adaptive, and planned graphs a core; half a minute.
	@$(BIN)/python -m tests.benchmarks.ticks $(ARGS)

bench-mocker: $(STAMP) ## Compare the simulator of replay with Dynamo's own mocker, on five loads.
	@$(BIN)/python -m tests.benchmarks.mocker $(ARGS)

bench-rapid: $(STAMP) ## Rapid profiling: time, memory, /healthz during it, comparison with AI Configurator's tables; ARGS=--long for DeepSeek-V3.
	@$(BIN)/python -m tests.benchmarks.rapid $(ARGS)

bench-models: programs ## N=1000 workers that take 50 ms for a request load an adapter.
	@$(BIN)/python -m tests.benchmarks.models $(if $(filter command line,$(origin N)),-n $(N)) $(ARGS)

conformance: programs ## CASES=DIR of recorded cases: compare this platform's objects with the reference operator's, on a real API server.
	@$(BIN)/python -m tests.conformance.run $(or $(CASES),../shared/conformance/cases/deployments) $(ARGS)

seeds: programs ## Run every test that docs/seeds.md names; the last line counts the rows that hold.
	@$(BIN)/python -m tools.seeds $(ARGS)

charts: programs ## Check the Helm charts: lint, rejected values, committed renderings, objects on a real API server. ARGS=--update writes renderings.
	@$(BIN)/python -m tests.charts $(ARGS)

rights: programs ## Compare the requests of services in all integration tests with their rights (takes half an hour).
	@$(BIN)/python -m tests.rights $(ARGS)

properties: programs ## Run property tests with TIMES=60 times as many examples as `make test`, random ones.
	@DYNAMO_EXAMPLES=$(or $(TIMES),60) $(BIN)/pytest -q -n 2 -m "hypothesis or exhaustive" --timeout 3600 $(or $(ARGS),tests/unit tests/integration/test_embedded.py)

deflake: programs ## Run the restart tests ten times in a row.
	@set -e; for round in 1 2 3 4 5 6 7 8 9 10; do echo "round $$round"; $(BIN)/pytest -q -m restart $(ARGS); done

e2e-planning: programs ## A graph under sine-shaped traffic for ten minutes: Prometheus, planner, scaler, adapters, pods.
	@$(BIN)/pytest -q tests/integration/wave_of_planning.py

e2e-requests: programs ## Every sample of a deployment request in ../shared, through the profiler, with the real AI Configurator.
	@$(BIN)/pytest -q tests/integration/sample_requests.py

e2e-runtime: $(STAMP) ## Debian, root: the real Dynamo runtime in pods of a real kubelet and containerd, in separate namespaces.
	@$(BIN)/python -m tests.e2e $(ARGS)

hostile: programs ## A tenant with `edit` in one namespace tries to stop or mislead the platform; ARGS="--only lease", ARGS=--list.
	@$(BIN)/python -m tests.hostile $(ARGS)

chaos: programs ## ROUNDS=10 rounds in which replicas, NATS, etcd and the API server are killed, stopped, wiped and restored.
	@$(BIN)/python -m tests.chaos $(if $(ROUNDS),--rounds $(ROUNDS)) $(ARGS)

e2e-platform: $(STAMP) ## Debian, root: both charts on a real node, from helm install to helm uninstall.
	@$(BIN)/python -m tests.e2e_platform $(ARGS)

e2e-legacy: $(STAMP) ## Debian, root: the kinds before graphs on a real node, from an archive to pods that run the image built from it.
	@$(BIN)/python -m tests.e2e_legacy

e2e-compose: $(STAMP) $(CONTAINER_TOOLS)/.complete ## Debian, root: the unchanged compose.yaml under podman-compose, in separate namespaces.
	@$(BIN)/python -m tests.e2e_compose $(ARGS)

e2e-dynadmin: programs page-tools $(BROWSER_TOOLS)/.complete ## The page of dynadmin in a real Chromium against the local cluster; ARGS="--only keyboard".
	@PYTHONPATH=$(BROWSER_TOOLS) $(BIN)/python -m tests.e2e_dynadmin $(ARGS)

clean: ## Remove what make and the tools created here; the cache of built programs stays.
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .dynamo dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
