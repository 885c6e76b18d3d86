# Everything a contributor runs. `make` alone lists the targets.

GO ?= go

# Tools are installed under bin/tools, once per version: a new number here is a new file there.
GOLANGCI_LINT_VERSION := v2.12.0
GOFUMPT_VERSION       := v0.9.2
HUGO_VERSION          := v0.150.0

TOOLS         := $(CURDIR)/bin/tools
GOLANGCI_LINT := $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION)
GOFUMPT       := $(TOOLS)/gofumpt-$(GOFUMPT_VERSION)
HUGO          := $(TOOLS)/hugo-$(HUGO_VERSION)

# Settings to override on the command line, e.g. `make test PKGS=./worker/...`.
PKGS     ?= ./...
TIMEOUT  ?= 25m
FUZZTIME ?= 10s
EXAMPLE  ?= wordcount
SECONDS  ?= 60
# Of make demo: --addr, --data, --fresh.
DEMO_FLAGS ?=
# Of the chaos rig's schedule; empty: it draws one and says which.
SEED     ?=
# auto: race detector if there is a C compiler. required: fail without one.
RACE     ?= auto

# The race detector, but not in the interpreter of the embedded Redis: that shares no memory with what is tested, and would be
# a third of the time of the tests.
RACE_FLAGS := -race -gcflags=github.com/yuin/gopher-lua/...=-race=false

# Succeeds if there is a C compiler and a C library to compile against.
HAVE_CC = printf '\#include <stdlib.h>\n' | $$($(GO) env CC) -fsyntax-only -x c - >/dev/null 2>&1

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## Compile every package; put the weir command in bin/
	$(GO) build $(PKGS)
	$(GO) build -o bin/weir ./cmd/weir

# A build that is there sooner: without what only debuggers read, without inlining, and without C.
BUILD_SOON := env CGO_ENABLED=0 $(GO) build -gcflags='all=-dwarf=false -l' -ldflags='-s -w'

# The demo is there before the whole command, which is built while the demo runs.
.PHONY: demo
demo: ## Run the demo, as soon as it can be built, and put the weir command in bin/
	@echo "Building the demo: the first time that takes a minute or so."
	@$(BUILD_SOON) -o bin/weir-demo ./cmd/weir-demo
	@echo 'For the commands below, in another terminal: export PATH="$(CURDIR)/bin:$$PATH"'
	@(nice $(BUILD_SOON) -o bin/weir ./cmd/weir & pid=$$!; trap 'kill $$pid' TERM; wait $$pid && echo "bin/weir is built: the weir commands above work now.") & \
		building=$$!; bin/weir-demo $(DEMO_FLAGS) || { code=$$?; kill $$building 2>/dev/null; exit $$code; }; wait

.PHONY: test
test: redis ## Run the tests, with the race detector if there is a C compiler, and then those of the other modules
	@if $(HAVE_CC); then \
		set -x; CGO_ENABLED=1 $(GO) test $(RACE_FLAGS) -count=1 -timeout $(TIMEOUT) $(PKGS); \
	elif [ "$(RACE)" = required ]; then \
		echo "make: the race detector needs a C compiler: install gcc and libc6-dev (or clang), then try again" >&2; \
		exit 1; \
	else \
		echo "No C compiler here, and the race detector needs one: running the tests without -race."; \
		set -x; $(GO) test -count=1 -timeout $(TIMEOUT) $(PKGS); \
	fi
	@[ "$(PKGS)" != ./... ] || for m in chaos examples/orders clients; do (set -x; $(GO) test -C $$m -count=1 ./...) || exit 1; done
	@[ "$(PKGS)" != ./... ] || $(MAKE) --no-print-directory page-test

.PHONY: race
race: RACE = required
race: test ## The same, but fail if the race detector cannot run

.PHONY: redis
redis: ## Make sure that there is what the tests run: redis-server, curl, nc, promtool, python3, node, npm, chromium
	@./scripts/install-tools.sh

.PHONY: web
web: ## Build the page into web/dist, which is committed (needs node 20 and npm)
	./scripts/build-page.sh

.PHONY: page-test
page-test: redis ## Try the page in a browser, against a server of its own
	$(GO) build -o bin/weir ./cmd/weir
	$(GO) build -o bin/mounted ./web/ui/e2e/mounted
	cd web/ui && { [ -d node_modules ] || npm ci --ignore-scripts --no-audit --no-fund; } && node --test e2e/*.test.mjs

.PHONY: cover
cover: redis ## Run the tests and report coverage (cover.html)
	$(GO) test -count=1 -timeout $(TIMEOUT) -coverpkg=./... -coverprofile=cover.out $(PKGS)
	$(GO) tool cover -html=cover.out -o cover.html
	@$(GO) tool cover -func=cover.out | tail -n 1

.PHONY: bench
bench: redis ## Measure Weir beside its peers (BENCH="-quick -only chain,stream"; -h tells all)
	cd bench && $(GO) run . $(BENCH)

.PHONY: chaos
chaos: redis ## Break what can break under Weir while it works, and check what it did (SECONDS=60 SEED=7)
	$(GO) build -C chaos -tags failpoints -o ../bin/chaos .
	bin/chaos -seconds $(SECONDS) $(if $(SEED),-seed $(SEED)) $(CHAOS)

.PHONY: explore
explore: redis ## Go through every order of what a few processes can do to a few jobs, with faults; some ten minutes
	EXPLORE=all $(GO) test -count=1 -timeout 60m -v -run TestExplore ./internal/model

.PHONY: chaos-soak
chaos-soak: redis ## Load Weir at 70 % of its peak, and see whether anything grows (SECONDS=3600)
	$(GO) build -C chaos -tags failpoints -o ../bin/chaos .
	bin/chaos -soak -seconds $(SECONDS) -workers 2 $(CHAOS)

.PHONY: chaos-mutation
chaos-mutation: redis ## Break Weir itself in each of the known ways: the rig must notice all of them
	$(GO) build -C chaos -tags failpoints,mutation -o ../bin/chaos-mutation .
	bin/chaos-mutation -mutation -seconds 25 -patience 30s $(if $(SEED),-seed $(SEED)) $(CHAOS)

.PHONY: fuzz
fuzz: redis ## Run each fuzz target for FUZZTIME (10s)
	@grep -rn --include='*_test.go' -oE '^func Fuzz[A-Za-z0-9_]+' . | sort | \
	while IFS=: read -r file _ func; do \
		name=$${func#func }; \
		echo "==> $$(dirname "$$file") $$name"; \
		$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")" || exit 1; \
	done

.PHONY: lint
lint: export GOLANGCI_LINT_CACHE = $(CURDIR)/bin/lint-cache
lint: $(GOLANGCI_LINT) ## Run the linters and check the formatting, of the other modules too
	$(GOLANGCI_LINT) run $(PKGS)
	cd chaos && $(GOLANGCI_LINT) run --build-tags failpoints
	cd bench && $(GOLANGCI_LINT) run
	cd examples/orders && $(GOLANGCI_LINT) run
	cd clients && $(GOLANGCI_LINT) run
	cd deploy && $(GOLANGCI_LINT) run

.PHONY: fmt
fmt: $(GOFUMPT) $(GOLANGCI_LINT) ## Format the code and group its imports
	$(GOFUMPT) -l -w .
	$(GOLANGCI_LINT) fmt

.PHONY: generate
generate: ## Regenerate what is generated, docs/ included
	$(GO) generate ./...

# Compares against a copy rather than with git, so that it also judges work not committed yet.
.PHONY: check
check: ## Fail if docs/, or the page, differ from what the code generates
	@before=$$(mktemp -d); trap 'rm -rf "$$before"' EXIT; \
	cp -R docs "$$before/docs" && $(MAKE) --no-print-directory generate && \
	if ! diff -ru "$$before/docs" docs; then \
		echo "make: docs/ was out of date; it is regenerated now, commit it" >&2; \
		exit 1; \
	fi; \
	if ! command -v npm >/dev/null 2>&1 || ! node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)'; then \
		echo "No npm with node 20 here: web/dist is not compared with what web/ui builds."; \
	elif ! ./scripts/build-page.sh "$$before/dist" || ! diff -r "$$before/dist" web/dist >&2; then \
		echo "make: web/dist is not what web/ui builds: run make web, and commit it" >&2; \
		exit 1; \
	fi

.PHONY: words
words: ## Check that documents and messages keep to plain words, and that links lead somewhere
	$(GO) test -count=1 ./docs

.PHONY: docs
docs: $(HUGO) ## Build the site of the documents into dist/site, and check that its links lead somewhere
	$(GO) run ./cmd/weir man --markdown dist/reference/cli.md
	$(GO) run ./site/reference dist/reference/api
	$(HUGO) --source site --destination ../dist/site --cleanDestinationDir --panicOnWarning --quiet
	$(GO) run ./site/check dist/site

.PHONY: docs-serve
docs-serve: docs ## Serve the site while documents are written
	$(HUGO) server --source site

.PHONY: man
man: ## Write the manual pages of the weir command into dist/man
	$(GO) run ./cmd/weir man dist/man

.PHONY: release
release: ## Build archives of the weir command for all platforms, checksums and a bill of materials into dist/release
	./scripts/release.sh

.PHONY: deploy-check
deploy-check: ## Check deploy/: Dockerfile, compose file, chart and systemd units, with the libraries of their own tools
	$(GO) test -C deploy -count=1 ./...

.PHONY: example
example: ## Run an example (EXAMPLE=wordcount)
	$(GO) run ./examples/$(EXAMPLE)

.PHONY: clean
clean: ## Remove what was built, except the tools
	rm -rf bin/weir cover.out cover.html

# CGO_ENABLED=0: the tools need no C compiler, and a bare machine has none.
$(GOLANGCI_LINT):
	@echo "Installing golangci-lint $(GOLANGCI_LINT_VERSION) into bin/tools; the first time takes a minute or two."
	@CGO_ENABLED=0 GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	@mv $(TOOLS)/golangci-lint $@

$(GOFUMPT):
	@echo "Installing gofumpt $(GOFUMPT_VERSION) into bin/tools."
	@CGO_ENABLED=0 GOBIN=$(TOOLS) $(GO) install mvdan.cc/gofumpt@$(GOFUMPT_VERSION)
	@mv $(TOOLS)/gofumpt $@

$(HUGO):
	@echo "Installing Hugo $(HUGO_VERSION) into bin/tools: two minutes of CPU, once."
	@CGO_ENABLED=0 GOBIN=$(TOOLS) $(GO) install github.com/gohugoio/hugo@$(HUGO_VERSION)
	@mv $(TOOLS)/hugo $@
