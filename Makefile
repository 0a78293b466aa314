# Everything starts from nothing: each target first makes the virtual environment it needs, from a lock file.
# make up ARGS="--hosts 10 --port 8774"     make test ARGS="tests/unit/core -k states"     make find q=allocation

VENV := .venv
CLIENT := .venv-client
PEERS := .venv-peers
ARGS ?=
PYTEST := $(VENV)/bin/python -m pytest
UV_COMPILE = uv pip compile -q --universal --python-version 3.11
export UV_CUSTOM_COMPILE_COMMAND := make lock

.DEFAULT_GOAL := help
.PHONY: help up venv client peers test lint find docs lock clean

help:  ## Say what each target does
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

up: $(VENV)/.runtime  ## Start a whole cloud in this terminal (Ctrl-C stops it; options go in ARGS)
	@exec $(VENV)/bin/kilonova up $(ARGS)

venv: $(VENV)/.dev  ## Make .venv with everything for running, testing and checking

client: $(CLIENT)/.done  ## Make .venv-client with the openstack command
	@echo "The openstack command is there: . $(CLIENT)/bin/activate"

peers: $(PEERS)/.done  ## Make .venv-peers with the Keystone and the Placement of OpenStack, which some tests run against

test: $(VENV)/.dev  ## Run the tests (choose some with ARGS)
	$(PYTEST) -n 2 $(ARGS)

lint: $(VENV)/.dev  ## Check style, types and who imports whom
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-cache

find:  ## Find a word in code, tests and documents: make find q=word
	@test -n "$(q)" || { echo 'Say what to look for: make find q=word' >&2; exit 1; }
	@grep -rniI --color=auto --exclude='*.lock' --exclude-dir='.*' -e '$(q)' . || { echo 'Nothing has "$(q)" in it.'; exit 1; }

docs: $(VENV)/.dev  ## Write docs/reference anew from the declared rows
	$(VENV)/bin/python -m tools.reference

lock:  ## Resolve the dependencies of pyproject.toml anew into the lock files (needs uv)
	$(UV_COMPILE) --upgrade --group build pyproject.toml -o requirements.lock
	$(UV_COMPILE) --upgrade --group build --group dev --extra postgresql --extra mysql --extra rabbitmq -c requirements.lock pyproject.toml -o requirements-dev.lock
	$(UV_COMPILE) --upgrade --group client -o requirements-client.lock
	$(UV_COMPILE) --upgrade --group peers -o requirements-peers.lock

clean:  ## Remove virtual environments and caches (never a cloud's state)
	rm -rf $(VENV) $(CLIENT) $(PEERS) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache build *.egg-info

$(VENV)/.runtime: requirements.lock pyproject.toml tools/venv.sh
	@sh tools/venv.sh $(VENV) requirements.lock editable
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements-dev.lock
	@sh tools/venv.sh $(VENV) requirements-dev.lock
	@touch $@

$(CLIENT)/.done: requirements-client.lock tools/venv.sh
	@sh tools/venv.sh $(CLIENT) requirements-client.lock
	@touch $@

$(PEERS)/.done: requirements-peers.lock tools/venv.sh
	@sh tools/venv.sh $(PEERS) requirements-peers.lock
	@touch $@
