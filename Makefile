# Each target works on a fresh clone with only Python >= 3.11 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CODE := gateway adapters mcp_host store tests bench

.DEFAULT_GOAL := help
.PHONY: help setup run test check bench soak lint fix types imports sizes audit service crash fresh conformance lock clean

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

setup: $(VENV)/.ready  ## make .venv with hermes and the tools, from the hashed lock

$(VENV)/.ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 …" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

run: setup  ## chat in the terminal (guided, with the demo server, when nothing is configured)
	@$(BIN)/hermes chat

test: setup  ## all tests but those of `service`
	$(BIN)/python -m pytest -q --ignore-glob='tests/e2e/test_gateway*.py'

service: setup  ## the running gateway as real processes (about 2 minutes)
	$(BIN)/python -m pytest -q tests/e2e/test_gateway*.py

check: lint types imports sizes audit test service crash fresh  ## everything CI runs

lint: setup
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)

fix: setup  ## let ruff repair and format
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

types: setup
	$(BIN)/basedpyright

imports: setup
	$(BIN)/lint-imports

sizes: setup
	$(BIN)/python -m tests.support.sizes

audit: setup
	$(BIN)/python -m tests.support.audit

crash: setup  ## 20 random kills of the chat flow, of the gateway on Telegram and of a server, seeds printed
	$(BIN)/python -m tests.soak.kill_chat --kills 20
	$(BIN)/python -m tests.soak.kill_gateway --kills 20 --messages 200
	$(BIN)/python -m tests.soak.connections --kills 20
	$(BIN)/python -m tests.soak.renewals --rounds 25
	$(BIN)/python -m tests.soak.rendering --texts 2000

fresh: setup  ## a clone of what is committed runs with two commands
	$(BIN)/python -m tests.support.fresh

soak: setup  ## the full counts, JSON under bench/results
	$(BIN)/python -m tests.soak.kill_chat --kills 200 --json bench/results/kill_chat.json
	$(BIN)/python -m tests.soak.kill_gateway --kills 500 --messages 5000 --json bench/results/kill_gateway.json
	$(BIN)/python -m tests.soak.connections --kills 200 --json bench/results/connections.json
	$(BIN)/python -m tests.soak.renewals --rounds 500 --json bench/results/renewals.json
	$(BIN)/python -m tests.soak.renewals --rounds 500 --kills 100 --json bench/results/renewals_killed.json
	$(BIN)/python -m tests.soak.rendering --texts 100000 --json bench/results/rendering.json

conformance: setup .conformance/.ready .conformance/.servers  ## the MCP conformance suite and servers of others, from npm (not part of `check`)
	$(BIN)/python -m pytest -q tests/conformance/test_other_servers.py
	$(BIN)/python -m tests.conformance.suite --json bench/results/conformance.json \
		--counts tests/conformance/counts.json

.conformance/.ready:
	npm install --silent --no-audit --no-fund --prefix .conformance @modelcontextprotocol/conformance@0.2.0-alpha.12 node@22
	touch $@

.conformance/.servers: .conformance/.ready
	npm install --silent --no-audit --no-fund --prefix .conformance @modelcontextprotocol/server-everything@2026.8.31 \
		@modelcontextprotocol/server-filesystem@2026.8.31 @modelcontextprotocol/server-memory@2026.8.31
	touch $@

bench: setup  ## the figures of SPEC §19 that exist by now, JSON under bench/results
	$(BIN)/python -m bench

# Extras are written out: pip refuses a hashed lock whose package another one wants with an extra
# as soon as a newer release of it exists.
lock: setup  ## renew requirements.lock from pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-strip-extras --extra dev \
	  --no-emit-index-url --no-emit-find-links --no-header pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .ruff_cache .hypothesis
