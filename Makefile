# Everything a person or CI does with this repository. `make` lists it.

# dev builds quickly; `make run PROFILE=release` runs quickly.
PROFILE ?= dev
CARGO ?= cargo

.DEFAULT_GOAL := help
.PHONY: help run test bench lint openapi check-openapi

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: ## build and start the server on 127.0.0.1:8642, SQLite in ./data; ARGS="…" go to `serve`
	@echo "Building hermes-server. The first build takes minutes, later ones seconds."
	@$(CARGO) build --locked --profile $(PROFILE)
	@exec $(CARGO) run --quiet --locked --profile $(PROFILE) -- serve $(ARGS)

test: ## every test, on SQLite and PostgreSQL; ARGS="…" go to the test runner
	@scripts/test --locked $(ARGS)

bench: ## measure the release build on both stores (minutes to build, minutes to run); ARGS="--quick" to try
	@scripts/bench $(ARGS)

lint: ## formatting and clippy, warnings are errors
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings

openapi: ## rewrite the documents in openapi/ from the code
	@$(CARGO) run --quiet --locked -- openapi --output openapi

check-openapi: ## fail if a document in openapi/ is not what the code says
	@$(CARGO) run --quiet --locked -- openapi --output openapi --check \
		|| { echo "run 'make openapi' and commit what it changes" >&2; exit 1; }
